"""Runs the tests of the rules and of the DAGs with the newest, or the oldest, versions that pyproject.toml allows.

    python setup/range_ends.py newest     on the newest Python of this machine: `make test-newest`
    python setup/range_ends.py oldest     on the oldest, each package that pyproject.toml names at its lower bound

In a copy of this checkout and an environment of its own, both in build/ends/. What only tests import is taken as it
fits beside. Prints the versions that matter, and which tests are left out and why. Exit code: that of pytest; 1 where
nothing could be installed.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

from pythons import find_pythons

ROOT = Path(__file__).resolve().parent.parent
UV = str(ROOT / ".venv" / "bin" / "uv")
ENDS = ROOT / "build" / "ends"
TESTS = ("tests/unit", "tests/dags")
OTHER_TOOLS = frozenset(
    {
        "apache-airflow-providers-fab",
        "axe-playwright-python",
        "mypy",
        "pandas-stubs",
        "playwright",
        "ruff",
        "types-psutil",
        "types-pyyaml",
    }
)
"""Of dev.in, what these tests do not import."""
_LIBPQ = "the libpq of psycopg 3.2.1 is 16, which knows no such parameter, and refuses it itself"
_ADDRESSES = "tests/unit/connections/test_postgres_address.py::"
LEFT_OUT: dict[str, dict[str, str]] = {
    "newest": {},
    "oldest": {
        "tests/unit/text/test_plain.py::test_no_such_character_reaches_a_terminal_or_a_pipe[print_as_a_cell]": (
            "rich below 15 takes some characters for wider, and cuts the end of a cell with thousands of them"
        ),
        f"{_ADDRESSES}test_a_parameter_is_told_in_the_drivers_words[sslmode=require&sslnegotiation=direct-expected7]": (
            _LIBPQ
        ),
        f"{_ADDRESSES}test_what_the_driver_cannot_be_told_is_refused_by_its_name_and_without_its_value"
        "[scram_client_key=s3cret-scram_client_key ]": _LIBPQ,
    },
}
"""End of the ranges: test that cannot pass there, and why."""


@dataclass(frozen=True)
class End:
    """One end of the ranges: where it is built, on which Python, and by which of uv's rules."""

    name: str
    python: Path
    resolution: str

    @property
    def folder(self) -> Path:
        """Its environment, its copy of the checkout, and the versions that were chosen."""
        return ENDS / self.name

    @property
    def interpreter(self) -> Path:
        """The Python of its environment."""
        return self.folder / "venv" / "bin" / "python"


def main() -> int:
    """Install one end of the ranges and run the tests there."""
    parser = argparse.ArgumentParser(description="Run tests with the newest or the oldest versions that are allowed.")
    parser.add_argument("end", choices=tuple(LEFT_OUT))
    parser.add_argument("tests", nargs="*", default=TESTS, help="what pytest is given; default: the rules and the DAGs")
    given = parser.parse_args()
    pythons = list(find_pythons().values())
    end = End("newest", pythons[-1], "highest") if given.end == "newest" else End("oldest", pythons[0], "lowest-direct")
    try:
        install(end)
    except subprocess.CalledProcessError as failed:
        print(f"{end.name}: `{' '.join(failed.cmd[:3])}` ended with {failed.returncode}; see above", file=sys.stderr)
        return 1
    print(f"== {end.name}: Python {end.interpreter.resolve().name}; {', '.join(chosen(end))}", flush=True)
    for test, why in LEFT_OUT[end.name].items():
        print(f"   without {test}: {why}", flush=True)
    left_out = [f"--deselect={test}" for test in LEFT_OUT[end.name]]
    pytest = [str(end.interpreter), "-m", "pytest", "-q", "-n", "2", *given.tests, *left_out]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(pytest, cwd=end.folder / "source", env=environment, check=False).returncode


def install(end: End) -> None:
    """Choose the versions, make the environment, and install the copy into it. Raises CalledProcessError."""
    source, tools = end.folder / "source", end.folder / "tools.in"
    shutil.rmtree(end.folder, ignore_errors=True)
    shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns(".*", "build", "*.egg-info", "__pycache__", "*.so"))
    shutil.copytree(ROOT / ".ci", source / ".ci")
    (source / ".jars").symlink_to(ROOT / ".jars")
    tools.write_text("\n".join(of_the_tests((ROOT / "requirements" / "dev.in").read_text())) + "\n")
    versions, beside = end.folder / "versions.txt", end.folder / "tools.txt"
    compile_ = ("pip", "compile", "--no-annotate", "--no-header", "--python", str(end.python), "-o")
    pyproject = str(source / "pyproject.toml")
    uv(*compile_, str(versions), "--resolution", end.resolution, "--extra", "all", pyproject)
    uv(*compile_, str(beside), "-c", str(versions), str(tools))
    uv("venv", "--python", str(end.python), str(end.folder / "venv"))
    into = ("pip", "install", "--python", str(end.interpreter))
    uv(*into, "-r", str(versions), "-r", str(beside))
    uv(*into, "--no-deps", "--editable", str(source))
    for left in source.glob("*.egg-info"):  # of the build; who runs in this folder would find the package twice
        shutil.rmtree(left)


def of_the_tests(listed: str) -> list[str]:
    """Return the packages of dev.in that these tests import, without their versions."""
    lines = [line.partition("#")[0].strip() for line in listed.splitlines()]
    names = [re.split(r"[=<>]", line)[0] for line in lines if line and not line.startswith("-")]
    return [name for name in names if name.lower() not in OTHER_TOOLS]


def chosen(end: End) -> list[str]:
    """Return `name version` of each package that pyproject.toml names."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = [*project["dependencies"], *(line for lines in project["optional-dependencies"].values() for line in lines)]
    wanted = {re.split(r"[\[=<>]", line)[0] for line in named}
    pins = re.findall(r"^([a-z0-9-]+)==(\S+)", (end.folder / "versions.txt").read_text(), flags=re.MULTILINE)
    return [f"{name} {version}" for name, version in pins if name in wanted]


def uv(*arguments: str) -> None:
    """Run the pinned uv. Raises CalledProcessError."""
    subprocess.run([UV, "--quiet", *arguments], cwd=ENDS, check=True)


if __name__ == "__main__":
    sys.exit(main())
