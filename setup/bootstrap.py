"""Makes this checkout runnable: .venv with every locked package and ourselves, and .jars.

    python3 setup/bootstrap.py             what `make setup` runs; any Python 3.11, nothing else installed
    python3 setup/bootstrap.py --packages  .venv alone, for what starts no Java

A step is skipped while its stamp says what it would say now: the locks' hashes, the Python, the Java. So the second run
downloads nothing. The stamp is written after the step has succeeded: interrupt it anywhere and run it again.
Exit 0: ready. 1: a step failed. 2: the machine lacks something, named on stderr. 130: interrupted.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

from class_archive import APP, ArchiveNotMade, describe_jars, make_archive
from machine import Machine, find_problems, look_at

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
JARS = ROOT / ".jars"
SPARK_JARS = ROOT / "tallystick" / "spark" / "jars.lock"
PYTHON = VENV / "bin" / "python"
LOCKS = ROOT / "requirements"
COMPILED = (
    ROOT / "tallystick" / "contract" / "_compared_texts.c",
    ROOT / "tallystick" / "kafka_log" / "_simple_events.c",
    ROOT / "spark_apps" / "tallystick_spark" / "matching" / "_text_hashes.c",
    *(ROOT / "tallystick" / "formats" / name for name in ("flat_json.h", "_flat_avro.c", "_flat_protobuf.c")),
)
PROJECT_FOLDERS = (
    "tallystick",
    "spark_apps/tallystick_spark",
    "plugins/tallystick_airflow",
    "expectations/tallystick_expectations",
)


class StepFailed(Exception):
    """A command of a step ended badly; its own words stand above ours."""


@dataclass(frozen=True)
class Step:
    """One thing to make, and the stamp that says that it was made from the same inputs."""

    title: str
    stamp: Path
    key: str
    make: Callable[[], None]

    @property
    def is_done(self) -> bool:
        """Whether the stamp stands and says the same."""
        return self.stamp.is_file() and self.stamp.read_text() == self.key


def main(*, packages_only: bool) -> int:
    """Check the machine, then make what is not made yet."""
    machine = look_at(ROOT)
    steps = plan(machine)[: 3 if packages_only else None]
    if packages_only and all(step.is_done for step in steps):
        return 0  # it waits for no other that fetches jars
    has_packages = steps[0].is_done and steps[1].is_done
    problems = find_problems(machine, disk_bytes_min=0) if has_packages else find_problems(machine)
    for problem in problems:
        print(f"setup: {problem}", file=sys.stderr)
    if problems:
        return 2
    try:
        with open(__file__) as this_file:  # a lock that needs no file of its own: two `make` at once take turns
            fcntl.flock(this_file, fcntl.LOCK_EX)
            make_all(steps)
            if not packages_only:
                make_archives_if_they_can_be(machine)
    except StepFailed as failed:
        print(f"setup: {failed}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("setup: interrupted; run it again, what is finished is kept", file=sys.stderr)
        return 130
    return 0


def plan(machine: Machine) -> list[Step]:
    """List the steps; each key contains the key before it, since a new environment needs everything again."""
    stamps = VENV / ".stamps"
    installer = fingerprint(machine.python_version, str(ROOT), LOCKS / "uv.lock")
    packages = fingerprint(installer, LOCKS / "dev.lock")
    folders = [folder for folder in PROJECT_FOLDERS if (ROOT / folder).is_dir()]
    project = fingerprint(packages, ROOT / "pyproject.toml", *COMPILED, *folders)
    jars = fingerprint(machine.java_said, LOCKS / "jars.lock", SPARK_JARS)
    return [
        Step("virtual environment and installer", stamps / "installer", installer, lambda: make_installer(machine)),
        Step("packages of requirements/dev.lock", stamps / "packages", packages, make_packages),
        Step("Tallystick itself, editable", stamps / "project", project, make_project),
        Step("jars of both jars.lock", JARS / ".stamp", jars, make_jars),
    ]


def make_all(steps: list[Step]) -> None:
    """Make the steps that are not done, in order, and say how long each took."""
    pending = [step for step in steps if not step.is_done]
    for number, step in enumerate(pending, start=1):
        print(f"setup {number}/{len(pending)}: {step.title} ...", flush=True)
        started = time.monotonic()
        step.stamp.unlink(missing_ok=True)
        step.make()
        step.stamp.parent.mkdir(parents=True, exist_ok=True)
        step.stamp.write_text(step.key)
        print(f"setup {number}/{len(pending)}: done in {time.monotonic() - started:.1f} s", flush=True)


def make_archives_if_they_can_be(machine: Machine) -> None:
    """Make both archives of classes at once. They are speed only: where one fails, say so; the next run tries again.

    Planned once the jars are there, since an archive holds for these very files, wherever they came from.
    """
    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(make_if_it_can_be, step) for step in plan_archives(machine)]:
            done.result()


def plan_archives(machine: Machine) -> list[Step]:
    """List the archives of Spark's and Kafka's classes."""
    (pyspark_jars,) = VENV.glob("lib/python*/site-packages/pyspark/jars")
    spark = fingerprint(machine.java_said, describe_jars(pyspark_jars), SPARK_JARS, APP)
    broker = fingerprint(machine.java_said, describe_jars(JARS / "broker"), LOCKS / "jars.lock")
    return [
        Step("archive of Spark's classes", JARS / ".stamp-archive", spark, make_spark_archive),
        Step("archive of Kafka's classes", JARS / ".stamp-broker-archive", broker, make_broker_archive),
    ]


def make_if_it_can_be(archive: Step) -> None:
    """Make one archive, or say why there is none."""
    try:
        make_all([archive])
    except (ArchiveNotMade, StepFailed) as fault:
        print(f"setup: no {archive.title}, so that starts more slowly: {fault}", file=sys.stderr)


def make_installer(machine: Machine) -> None:
    """Make .venv, unless a sound one of this very Python is there, and put the pinned uv and setuptools into it."""
    check = [str(PYTHON), "-c", "import pip, platform; print(platform.python_version())"]
    sound = PYTHON.exists() and subprocess.run(check, capture_output=True, text=True, check=False)
    if not sound or sound.stdout.strip() != machine.python_version:
        run(sys.executable, "-m", "venv", "--clear", str(VENV))
    run(str(PYTHON), "-m", "pip", "install", "--quiet", "--require-hashes", "-r", str(LOCKS / "uv.lock"))


def make_packages() -> None:
    """Make the environment hold the locked packages and no others, compiled: that halves Airflow's start-up.

    pyspark comes as source; without isolation it is built by the setuptools that uv.lock names, not by the newest.
    """
    lock = str(LOCKS / "dev.lock")
    run_uv("sync", "--require-hashes", "--no-build-isolation", "--compile-bytecode", lock)


def make_project() -> None:
    """Install the folders of PROJECT_FOLDERS, so that DAGs and Spark apps import them from anywhere; edits show."""
    run_uv("install", "--no-deps", "--no-build-isolation", "--editable", str(ROOT))


def make_jars() -> None:
    """Fetch what the two locks of jars name."""
    run(str(PYTHON), str(ROOT / "setup" / "jars.py"), "fetch", str(JARS))


def make_spark_archive() -> None:
    """Have a small Spark run write its classes down."""
    make_archive(JARS / "spark.jsa", python=PYTHON, jars=sorted((JARS / "spark").glob("*.jar")))


def make_broker_archive() -> None:
    """Have the lab's broker write its classes down."""
    run(str(PYTHON), "-m", "lab.servers.broker_class_archive")


def run_uv(command: str, *arguments: str) -> None:
    """Run the pinned uv on .venv."""
    run(str(VENV / "bin" / "uv"), "--quiet", "pip", command, "--python", str(PYTHON), *arguments)


def run(*command: str) -> None:
    """Run a command that must succeed. Byte code is wanted here, whatever the caller's environment says."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    ended = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
    if ended == -2:
        raise KeyboardInterrupt
    if ended:
        shown = " ".join(command).replace(f"{ROOT}/", "")
        raise StepFailed(f"`{shown}` ended with {ended}; see above; cure it and run make setup again")


def fingerprint(*inputs: str | Path) -> str:
    """Hash texts and the contents of files; order counts."""
    digest = hashlib.sha256()
    for item in inputs:
        content = item.read_bytes() if isinstance(item, Path) else item.encode()
        digest.update(hashlib.sha256(content).digest())
    return digest.hexdigest()


if __name__ == "__main__":
    sys.exit(main(packages_only="--packages" in sys.argv[1:]))
