"""Installs the package as a company would, beside its Airflow, and judges a contract in a DAG: `make adopt`.

For the oldest and the newest Python of this machine, and the newest patch of the oldest and newest minor version of
Airflow that the package supports, one combination at a time: a fresh virtual environment, Airflow with a company's
providers (by uv, since it is quicker), the wheel by pip, `pip check`, what Airflow lists, and a contract of one's own
that Airflow's own processes judge (setup/adopter.py). Broker and databases are the lab's, new ones for each combination
and in a process of their own; the adopter's folder lies elsewhere and knows no checkout.

Airflow is installed with its official constraints where they can be fetched; where they cannot, with the versions that
were there on the day it came out. Ours follows without constraints, as Airflow's manual says. Prints what was tried and
writes it to build/adopt.json after each combination; what stands there of other combinations and of the same source is
kept, and `--resume` tries only what is not there yet. Exit 0: all of it worked; 1: something did not.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date, timedelta
from pathlib import Path
from zipfile import ZipFile

from adopter import Adopter, AdoptionFailed, run
from pythons import MINORS, find_pythons

ROOT = Path(__file__).resolve().parent.parent
UV = str(ROOT / ".venv" / "bin" / "uv")
FIGURES = ROOT / "build" / "adopt.json"
OLDEST_AIRFLOW = "3.2"
EXTRAS = "airflow,spark,postgres"
PROVIDERS = ("amazon", "apache-kafka", "databricks", "fab", "google", "snowflake")
CONSTRAINTS = "https://raw.githubusercontent.com/apache/airflow/constraints-{airflow}/constraints-{python}.txt"
SHOWN = ("apache-airflow", "pyspark", "sqlalchemy", "pydantic", "pandas", "pyarrow", "confluent-kafka")
VERDICTS = "verdicts of an own contract in a DAG"
"""The last step: a combination that has it is whole."""
_SECONDS_TO_FETCH = 20
_VOTING = timedelta(days=7)
"""Between the build of a release and the day it comes out, Airflow's project votes on it: 72 hours at least."""
_SECONDS_TO_START = 120

Tried = dict[str, object]
Combination = tuple[str, str]
"""Of Python and Airflow, such as ("3.13", "3.3.2")."""


def main() -> int:
    """Try each combination that was asked for."""
    parser = argparse.ArgumentParser(description="Install the package beside Airflow, and judge a contract in a DAG.")
    parser.add_argument("--python", action="append", help="a version such as 3.13; default: the oldest and the newest")
    parser.add_argument("--airflow", action="append", help="such as 3.3.2; default: of the oldest and newest minor")
    parser.add_argument("--without-providers", action="store_true", help="beside Airflow alone, which is quicker")
    parser.add_argument("--resume", action="store_true", help="leave out what build/adopt.json says worked already")
    given = parser.parse_args()
    pythons = {f"{major}.{minor}": path for (major, minor), path in find_pythons().items()}
    chosen = given.python or list(dict.fromkeys([next(iter(pythons)), next(reversed(pythons))]))
    airflows = given.airflow or supported_airflows(pythons[chosen[0]])
    providers = () if given.without_providers else PROVIDERS
    absent = [f"3.{minor}" for minor in MINORS if f"3.{minor}" not in pythons]
    print(f"Pythons of this machine: {', '.join(pythons)}; not here: {', '.join(absent) or 'none'}", flush=True)
    with tempfile.TemporaryDirectory(prefix="adopt-") as folder:
        sdist = build_sdist(Path(folder, "dist"))
        source = hashlib.sha256(sdist.read_bytes()).hexdigest()[:12]
        tried = read_tried(FIGURES, source)
        for python, airflow in ((python, airflow) for python in chosen for airflow in airflows):
            if given.resume and worked(of_combination(tried, (python, airflow))):
                print(f"== Python {python}, Airflow {airflow}: worked already", flush=True)
                continue
            print(f"== Python {python}, Airflow {airflow}", flush=True)
            with (
                tempfile.TemporaryDirectory(prefix="company-") as home,
                lab_servers(Path(folder, "servers")) as servers,
            ):
                place = Place(Path(home), pythons[python], python, airflow, providers, source)
                tried = with_combination(tried, place.adopt(sdist, servers))
            FIGURES.parent.mkdir(exist_ok=True)
            FIGURES.write_text(json.dumps({"tried": tried}, indent=1) + "\n")
    print(f"\n{table(tried)}\n\nin {FIGURES.relative_to(ROOT)}")
    return 0 if all(one["ok"] for one in tried) else 1


class Place:
    """One company: its folder, its Python and its Airflow. source: a digest of the package that is tried."""

    def __init__(
        self, home: Path, python: Path, minor: str, airflow: str, providers: tuple[str, ...], source: str
    ) -> None:
        self.home, self.base, self.minor, self.airflow, self.providers = home, python, minor, airflow, providers
        self.venv = home / "venv"
        self.python = self.venv / "bin" / "python"
        self.versions: dict[str, str] = {"python": minor, "airflow": airflow, "source": source}
        self.tried: list[Tried] = []

    def adopt(self, sdist: Path, servers: dict[str, str]) -> list[Tried]:
        """Go through all steps; what follows a failed installation is not tried."""
        beside = f"Airflow with {len(self.providers)} providers" if self.providers else "Airflow alone"
        installed = self._try(beside, self._install_airflow) and self._try(
            "pip install of the wheel", lambda: self._install_ours(sdist)
        )
        if not installed:
            return self.tried
        self._try("pip check", self._check)
        adopter = Adopter(self.home / "work", self.python, servers)
        self._try("airflow plugins", lambda: adopter.listed("plugins"))
        self._try("airflow providers list", lambda: adopter.listed("providers", "list"))
        self._try(VERDICTS, adopter.judge_own_contract)
        return self.tried

    def _try(self, what: str, step: Callable[[], str]) -> bool:
        """Run a step, which returns what it has to say, and keep and print how it went."""
        started, ok = time.monotonic(), True
        try:
            said = step()
        except AdoptionFailed as failed:
            ok, said = False, str(failed)
        seconds = round(time.monotonic() - started, 1)
        self.tried.append({"what": what, "versions": dict(self.versions), "ok": ok, "seconds": seconds, "said": said})
        print(f"   {'ok    ' if ok else 'FAILED'} {seconds:7.1f} s  {what}: {said}", flush=True)
        return ok

    def _install_airflow(self) -> str:
        """Airflow and its providers into a new environment, with its constraints. Returns which constraints."""
        run([str(self.base), "-m", "venv", str(self.venv)])
        beside = [f"apache-airflow=={self.airflow}", *(f"apache-airflow-providers-{name}" for name in self.providers)]
        constraints = self.home / "constraints.txt"
        how = "Airflow's own constraints"
        if not self._fetch_constraints(constraints):
            day = self._released()
            self._resolve(beside, constraints, until=day)
            how = f"Airflow's own constraints could not be fetched: instead what was there when it came out, on {day}"
        install = [UV, "pip", "install", "--quiet", "--python", str(self.python), "--constraint", str(constraints)]
        run([*install, *beside], cwd=self.home)
        return f"{how}; {len(self._installed())} packages"

    def _install_ours(self, sdist: Path) -> str:
        """Ours beside it and without constraints, as Airflow's own manual says. Returns what that changed."""
        before = self._installed()
        wheels = self.home / "wheels"
        self._pip("wheel", "--no-deps", "--wheel-dir", str(wheels), str(sdist))
        (wheel,) = wheels.glob("*.whl")
        self._pip("install", f"apache-airflow=={self.airflow}", f"{wheel}[{EXTRAS}]")
        after = self._installed()
        self.versions |= {name: after[name] for name in SHOWN if name in after}
        changed = [f"{name} {before[name]} -> {after[name]}" for name in before if before[name] != after.get(name)]
        return f"{len(after)} packages; of Airflow's were changed: {', '.join(changed) or 'none'}"

    def _fetch_constraints(self, file: Path) -> bool:
        address = CONSTRAINTS.format(airflow=self.airflow, python=self.minor)
        try:
            with urllib.request.urlopen(address, timeout=_SECONDS_TO_FETCH) as answer:
                file.write_bytes(answer.read())
        except OSError:
            return False
        return True

    def _released(self) -> date:
        """Return the day on which this Airflow came out: some days after the newest file of its wheel was made."""
        folder = self.home / "airflow"
        self._pip("download", "--no-deps", "--dest", str(folder), f"apache-airflow-core=={self.airflow}")
        (wheel,) = folder.glob("*.whl")
        with ZipFile(wheel) as archive:
            made = max(member.date_time for member in archive.infolist())
        return date(*made[:3]) + _VOTING

    def _resolve(self, wanted: list[str], file: Path, *, until: date) -> None:
        """Write the versions that fit together and that were there on a day."""
        listed = self.home / "wanted.in"
        listed.write_text("\n".join(wanted) + "\n")
        resolve = [UV, "pip", "compile", "--quiet", "--no-header", "--no-annotate", "--python", str(self.base)]
        run([*resolve, "--exclude-newer", str(until), "--output-file", str(file), str(listed)], cwd=self.home)

    def _check(self) -> str:
        self._pip("check", quiet=False)
        return "no broken requirements"

    def _installed(self) -> dict[str, str]:
        listed = json.loads(self._pip("list", "--format", "json", quiet=False))
        return {one["name"].lower().replace("_", "-"): one["version"] for one in listed}

    def _pip(self, *arguments: str, quiet: bool = True) -> str:
        command = [str(self.python), "-m", "pip", "--disable-pip-version-check", *arguments]
        return run([*command, "--quiet"] if quiet else command, cwd=self.home)


def supported_airflows(python: Path) -> list[str]:
    """Ask the registry for the newest patch of the oldest supported minor, and for the newest below 4."""
    told = run([str(python), "-m", "pip", "--disable-pip-version-check", "index", "versions", "apache-airflow"])
    versions = re.findall(r"\b3\.\d+\.\d+\b(?![a-z])", told.split("Available versions:")[1])
    return [next(one for one in versions if one.startswith(f"{OLDEST_AIRFLOW}.")), versions[0]]


def build_sdist(folder: Path) -> Path:
    """Build the source archive, from which each Python builds its wheel."""
    build = [UV, "--quiet", "build", "--sdist", "--no-build-isolation", "--out-dir", str(folder), str(ROOT)]
    run(build, environment={**os.environ, "VIRTUAL_ENV": str(ROOT / ".venv")})
    (built,) = folder.glob("*.tar.gz")
    return built


@contextmanager
def lab_servers(folder: Path) -> Iterator[dict[str, str]]:
    """Run the lab's broker and databases as a process of its own; gives their addresses."""
    file = folder / "stack.json"
    command = [sys.executable, "-m", "lab.servers.stack", "--folder", str(folder)]
    lab = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
    try:
        end = time.monotonic() + _SECONDS_TO_START
        while not file.is_file():
            if lab.poll() is not None or time.monotonic() > end:
                raise AdoptionFailed("the lab's servers did not start")
            time.sleep(0.2)
        yield {name: str(value) for name, value in json.loads(file.read_text()).items()}
    finally:
        lab.terminate()
        lab.wait()
        shutil.rmtree(folder, ignore_errors=True)


def read_tried(file: Path, source: str) -> list[Tried]:
    """Return what an earlier call tried with the same source, in its order."""
    stored: list[Tried] = json.loads(file.read_text())["tried"] if file.is_file() else []
    return [one for one in stored if _versions(one).get("source") == source]


def of_combination(tried: Sequence[Tried], combination: Combination) -> list[Tried]:
    """Return the steps of one combination."""
    return [one for one in tried if _combination(one) == combination]


def with_combination(tried: Sequence[Tried], new: Sequence[Tried]) -> list[Tried]:
    """Return the steps with those of one combination in the place of its earlier ones; combinations by version."""
    others = [one for one in tried if _combination(one) != _combination(new[0])]
    return sorted([*others, *new], key=lambda one: tuple(_numbers(version) for version in _combination(one)))


def worked(steps: Sequence[Tried]) -> bool:
    """Return whether all steps of a combination worked, to the last."""
    return bool(steps) and steps[-1]["what"] == VERDICTS and all(one["ok"] for one in steps)


def table(tried: Sequence[Tried]) -> str:
    """Return Markdown: a row for each combination, a column for each thing that was tried."""
    rows: dict[Combination, dict[str, str]] = {}
    for one in tried:
        row = rows.setdefault(_combination(one), {})
        row[str(one["what"])] = "yes" if one["ok"] else "**no**"
        row["PySpark"] = _versions(one).get("pyspark", row.get("PySpark", ""))
    columns = list(dict.fromkeys(name for row in rows.values() for name in row))
    lines = [["Python", "Airflow", *columns], ["---"] * (2 + len(columns))]
    lines += [[*place, *(row.get(name, "not tried") for name in columns)] for place, row in rows.items()]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _combination(one: Tried) -> Combination:
    return _versions(one)["python"], _versions(one)["airflow"]


def _versions(one: Tried) -> dict[str, str]:
    versions = one["versions"]
    assert isinstance(versions, dict)
    return versions


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version))


if __name__ == "__main__":
    sys.exit(main())
