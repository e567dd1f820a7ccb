"""The wheel holds every committed file of the packages: what a checkout can do, an installation can."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

ROOT = Path(__file__).parents[2]
PACKAGES = {  # where it lies in the checkout: where it is imported from
    "tallystick/": "tallystick/",
    "spark_apps/tallystick_spark/": "tallystick_spark/",
    "plugins/tallystick_airflow/": "tallystick_airflow/",
    "expectations/tallystick_expectations/": "tallystick_expectations/",
}


def test_the_wheel_holds_the_packages_and_nothing_else(tmp_path: Path) -> None:
    committed = [name for name in git_ls_files() if (ROOT / name).is_file()]
    copy_files(committed, tmp_path / "checkout")
    built = build_wheel(tmp_path / "checkout", tmp_path / "dist")
    expected = {
        package + name.removeprefix(folder)
        for folder, package in PACKAGES.items()
        for name in committed
        if name.startswith(folder)
    }
    assert expected
    held = {name for name in ZipFile(built).namelist() if ".dist-info/" not in name}
    assert {name for name in held if not name.endswith(".so")} == expected
    assert {name.partition(".")[0] for name in held - expected} == {"tallystick/kafka_log/_simple_events"}


def git_ls_files() -> list[str]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [name for name in listed.split("\0") if name]


def copy_files(names: list[str], folder: Path) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)


def build_wheel(checkout: Path, dist: Path) -> Path:
    uv = Path(sys.executable).with_name("uv")
    command = [str(uv), "--quiet", "build", "--wheel", "--no-build-isolation", "--out-dir", str(dist), str(checkout)]
    environment = {"VIRTUAL_ENV": str(Path(sys.executable).parent.parent), "PATH": f"{uv.parent}:{os.environ['PATH']}"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (wheel,) = dist.glob("*.whl")
    return wheel
