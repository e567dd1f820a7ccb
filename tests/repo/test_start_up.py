"""From a command to its first byte read: imports that serve other commands wait until these are asked for."""

import subprocess
import sys
from pathlib import Path

import pytest
from alembic.script import ScriptDirectory

from tallystick.store import migrations
from tallystick.store.schema import REVISION

SLOW = ("airflow", "great_expectations", "pandas", "pyarrow.dataset", "opentelemetry", "jinja2", "httpx", "alembic")
"""Seconds of importing between them; none has a part in a verdict."""
DATABASE_CLIENTS = ("sqlalchemy", "psycopg")
"""A third of a second; an executor reads the ledger without."""
ARROW = ("pyarrow", "numpy")


def imported_by(module: str, among: tuple[str, ...] = (*SLOW, *DATABASE_CLIENTS)) -> set[str]:
    """Which of these a fresh interpreter has loaded after this import."""
    code = f"import sys, {module}; print(*sys.modules)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    return set(told.stdout.split()) & {*among}


@pytest.mark.parametrize(
    "module",
    [
        "tallystick_spark.reconcile_app",
        "tallystick.cli.app",
        "tallystick.pipeline.make_cut",
        "tallystick.pipeline.local_run",
    ],
)
def test_the_way_to_a_verdict_imports_nothing_that_has_no_part_in_it(module: str) -> None:
    assert imported_by(module) & {*SLOW} == set()


@pytest.mark.parametrize(
    "module",
    [
        "tallystick_spark.readers.log_reader",
        "tallystick_spark.readers.postgres_rows",
        "tallystick_spark.matching.hash_match",
    ],
)
def test_a_task_of_an_executor_imports_no_client_of_a_database_either(module: str) -> None:
    assert imported_by(module) == set()


def test_a_cut_imports_no_arrow() -> None:
    """A fifth of a second, for each task that settles or cuts; ledgers of files alone need it."""
    assert imported_by("tallystick.pipeline.make_cut", ARROW) == set()
    assert imported_by("tallystick.ledger.parquet", ARROW) == {*ARROW}


def test_a_command_that_needs_no_contract_does_not_load_what_checks_one() -> None:
    """Two thirds of the time of `tallystick --help`."""
    assert imported_by("tallystick.cli.app", ("pydantic",)) == set()
    assert imported_by("tallystick.contract.contract", ("pydantic",)) == {"pydantic"}


def test_the_script_begins_with_what_every_command_needs() -> None:
    """What it imports is loaded with few searches for garbage, so nothing is before that is said."""
    assert imported_by("tallystick.__main__", ("typer", "rich", "tallystick.cli.app")) == set()
    assert imported_by("tallystick.cli.app", ("typer", "tallystick.cli.app")) == {"typer", "tallystick.cli.app"}


def test_the_revision_that_a_store_must_have_is_the_newest_migrations() -> None:
    """It is written down, so that who opens a store need not load the migrations."""
    assert ScriptDirectory(str(Path(migrations.__file__).parent)).get_current_head() == REVISION


def test_the_newest_migration_can_be_taken_back() -> None:
    """Or says in words why not: `store downgrade` calls it."""
    newest = ScriptDirectory(str(Path(migrations.__file__).parent)).get_revision(REVISION)
    assert callable(getattr(newest.module, "downgrade", None))


def test_the_guard_sees_what_an_import_brings_along() -> None:
    assert imported_by("pyarrow.dataset") == {"pandas", "pyarrow.dataset"}
    assert imported_by("tallystick.store.runs.cut_store") == {"sqlalchemy"}
