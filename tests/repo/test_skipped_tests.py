"""A skipped test fails the run; a run without one does not."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CONFTEST = ROOT / "tests" / "conftest.py"


@pytest.mark.parametrize(
    ("body", "exit_status"),
    [
        ("def test_x(): pass", 0),
        ("import pytest\ndef test_x(): pass\ndef test_y(): pytest.skip('no broker')", 1),
        ("import pytest\npytest.skip('no module', allow_module_level=True)", 1),
    ],
)
def test_only_a_run_without_skips_is_green(tmp_path: Path, body: str, exit_status: int) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST.read_text())
    (tmp_path / "test_it.py").write_text(body + "\n\ndef test_runs(): pass\n" if exit_status == 0 else body)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        str(tmp_path),
        str(tmp_path),
    ]
    done = subprocess.run(
        command, cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False
    )
    assert bool(done.returncode) == bool(exit_status), done.stdout
    assert ("a test that did not run proved nothing" in done.stdout) == ("def test_y" in body)
