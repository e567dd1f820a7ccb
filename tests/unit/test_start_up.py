"""From a command to its first byte read: imports that serve other commands wait until these are asked for."""

import subprocess
import sys

import pytest

SLOW = ("airflow", "great_expectations", "pandas", "pyarrow.dataset", "opentelemetry", "jinja2")
"""Seconds of importing between them; none has a part in a verdict."""


def imported_by(module: str) -> set[str]:
    """Which of the slow ones a fresh interpreter has loaded after this import."""
    code = f"import sys, {module}; print(*sys.modules)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    return set(told.stdout.split()) & set(SLOW)


@pytest.mark.parametrize("module", ["spark_apps.reconcile_app", "tallystick.cli", "tallystick.cutting"])
def test_the_way_to_a_verdict_imports_nothing_that_has_no_part_in_it(module: str) -> None:
    assert imported_by(module) == set()


def test_the_guard_sees_what_an_import_brings_along() -> None:
    assert imported_by("pyarrow.dataset") == {"pandas", "pyarrow.dataset"}
