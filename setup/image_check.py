"""Replays the Dockerfile without a container engine: `make image-check`.

Each stage gets a folder of its own, in which /opt lies, and an empty virtual environment in place of the base image's.
Only what .dockerignore lets in is copied; each RUN of the user airflow is carried out with the image's variables. A
stage without gcc gets no compiler. Then the packages must fit together, Airflow must know the provider, the compiled
module must be there, and the DAG files must make the DAG of the shop's contract.

Not proven: the base image itself, its users, and the RUN lines of root; of those, apt is asked whether it can install
their packages here.
Exit 0: each step went well. 1: one did not, and its output stands above. 2: this machine cannot replay it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Callable

from dockerfile import DockerfileRefused, Instruction, Stage, files_of_context, read_stages

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "image"
SHOP = ROOT / "docs" / "examples" / "compose" / "shop_orders.yaml"
_KEPT = re.compile(r"PIP_\w+|JAVA_HOME|LANG|SSL_CERT_FILE|(?i:https?_proxy|no_proxy)")
"""How this machine reaches a registry, and its Java."""
_FIND_DAGS = """
import sys
from airflow.dag_processing.dagbag import BundleDagBag
bag = BundleDagBag(dag_folder=sys.argv[1], bundle_path=sys.argv[1], bundle_name="dags-folder")
print(bag.import_errors, *bag.dag_ids)
sys.exit(bool(bag.import_errors) or "reconcile_shop_orders" not in bag.dag_ids)
"""


class ImageStepFailed(Exception):
    """A step of the image ended badly; the message names it."""


class StageReplay:
    """One stage: its folder, its environment, where it stands and what its user may call."""

    def __init__(self, folder: Path, stage: Stage) -> None:
        """Make the folder and the empty virtual environment."""
        self.opt = folder / "opt"
        self.venv = folder / "venv"
        self.place = self.opt / "airflow"
        self.place.mkdir(parents=True)
        packages = [name for run in stage.named("RUN") for name in run.debian_packages]
        self.variables: dict[str, str] = {
            "PATH": f"{self.venv / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(folder),
            "AIRFLOW_HOME": str(self.place),
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            **{name: value for name, value in os.environ.items() if _KEPT.fullmatch(name)},
            **({} if "gcc" in packages else {"CC": "false"}),
        }
        _call([sys.executable, "-m", "venv", str(self.venv)], cwd=folder, variables=dict(os.environ))

    def carry_out(self, step: Instruction, stages: dict[str, StageReplay]) -> str:
        """Do what one instruction says; returns what was not done, or an empty text. Raises ImageStepFailed."""
        if step.name == "WORKDIR":
            self.place = self.here(step.text)
            self.place.mkdir(parents=True, exist_ok=True)
        elif step.name == "ENV":
            self.variables |= {name: self._moved(value) for name, value in step.variables.items()}
        elif step.name == "COPY":
            self._copy(step, stages)
        elif step.name == "RUN" and step.user == "root":
            return _asked_of_apt(step.debian_packages) if step.debian_packages else "root's"
        elif step.name == "RUN":
            return self.run(["bash", "-o", "pipefail", "-c", self._moved(step.text)])
        return ""

    def run(self, command: list[str], **variables: str) -> str:
        """Run a command of the image in its folder; nothing is left undone. Raises ImageStepFailed."""
        _call(command, cwd=self.place, variables=self.variables | variables)
        return ""

    def here(self, path: str) -> Path:
        """Where a path of the image lies in this replay."""
        return Path(self._moved(path)) if path.startswith("/") else self.place / path

    def _copy(self, step: Instruction, stages: dict[str, StageReplay]) -> None:
        target = self.here(step.target)
        if step.copied_from:
            for source in step.sources:
                shutil.copytree(stages[step.copied_from].here(source), target, dirs_exist_ok=True)
            return
        context = files_of_context(ROOT, (ROOT / ".dockerignore").read_text())
        for source in step.sources:
            found = [name for name in context if name == source or name.startswith(f"{source.rstrip('/')}/")]
            if not found:
                raise ImageStepFailed(f"COPY {source}: no file of that name reaches the builder")
            for name in found:
                inside = Path(name).name if name == source else str(Path(name).relative_to(source))
                (target / inside).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, target / inside)

    def _moved(self, text: str) -> str:
        return re.sub(r"(?<![\w.])/opt(?=/)", str(self.opt), text)


def main() -> int:
    """Replay all stages in order, then ask what the image would hold."""
    try:
        stages = read_stages((ROOT / "Dockerfile").read_text())
    except DockerfileRefused as refused:
        print(f"image-check: {refused}", file=sys.stderr)
        return 2
    wanted = re.findall(r"-python(3\.\d+)", stages[0].base)
    if wanted != [f"{sys.version_info.major}.{sys.version_info.minor}"]:
        print(f"image-check: expected Python {wanted}, that of {stages[0].base}", file=sys.stderr)
        return 2
    shutil.rmtree(FOLDER, ignore_errors=True)
    replays: dict[str, StageReplay] = {}
    try:
        for stage in stages:
            replay = replays[stage.name] = StageReplay(_made(FOLDER / stage.name), stage)
            for step in stage.instructions:
                _tell(f"{stage.name}: {step.name} {step.text}", partial(replay.carry_out, step, replays))
        _look_inside(replays[stages[-1].name])
    except ImageStepFailed as failed:
        print(f"image-check: {failed}", file=sys.stderr)
        return 1
    print("image-check: each step of the user airflow went well; base image and root's steps were not tried")
    return 0


def _look_inside(image: StageReplay) -> None:
    contracts = image.here("/opt/tallystick/contracts")
    shutil.copy(SHOP, contracts)
    python = str(image.venv / "bin" / "python")
    for title, command in {
        "the packages fit together": ["pip", "check"],
        "the compiled modules are in the wheel": [
            python,
            "-c",
            "import tallystick.contract._compared_texts, tallystick.kafka_log._simple_events; "
            "import tallystick_spark.matching._text_hashes; "
            "from tallystick.formats import _flat_avro, _flat_protobuf",
        ],
        "Airflow knows the provider": ["bash", "-c", "airflow providers list | grep -q tallystick"],
        "the shop's contract is valid": ["tallystick", "contract", "check", str(contracts / SHOP.name)],
        "the DAG files make the shop's DAG": [python, "-c", _FIND_DAGS, str(ROOT / "dags")],
    }.items():
        _tell(title, partial(image.run, command, TALLYSTICK_CONTRACTS_DIR=str(contracts)))


def _tell(title: str, do: Callable[[], str]) -> None:
    started = time.monotonic()
    left = do()
    took = f"not replayed: {left}" if left else f"{time.monotonic() - started:.1f} s"
    print(f"image-check: {title[:110]} ... {took}", flush=True)


def _asked_of_apt(packages: list[str]) -> str:
    """Say whether Debian has the packages; nothing is installed. Raises ImageStepFailed where apt does not know one."""
    if not shutil.which("apt-get"):
        return "no apt here"
    asked = subprocess.run(
        ["apt-get", "install", "--simulate", "--quiet", *packages], capture_output=True, text=True, check=False
    )
    if asked.returncode:
        raise ImageStepFailed(f"apt-get cannot install {' '.join(packages)}: {asked.stderr.strip()}")
    return f"root's; apt of this machine would install {' '.join(packages)}"


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder


def _call(command: list[str], *, cwd: Path, variables: dict[str, str]) -> None:
    done = subprocess.run(
        command, cwd=cwd, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if done.returncode:
        print(done.stdout[-4000:], file=sys.stderr)
        raise ImageStepFailed(f"`{' '.join(command)[:300]}` ended with {done.returncode}; its output stands above")


if __name__ == "__main__":
    sys.exit(main())
