"""Imports go one way: rules below, adapters above, DAGs on top; the lab stays outside of what it judges."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# folder: the packages of ours that it may import. dags reach spark_apps by path and argv only.
MAY_IMPORT = {
    "tallystick": {"tallystick"},
    "spark_apps": {"tallystick_spark", "tallystick"},
    "plugins": {"tallystick_airflow", "tallystick"},
    "expectations": {"tallystick_expectations", "tallystick"},
    "dags": {"tallystick", "tallystick_airflow"},
    "docs": set(),  # an example is copied to where nothing of ours may lie beside it
    "lab": {"lab"},
    "bench": {"bench", "lab", "tallystick_spark", "tallystick"},
    "setup": {"bootstrap", "class_archive", "jars", "machine"},
    "tests": {
        "tallystick",
        "tallystick_spark",
        "tallystick_airflow",
        "tallystick_expectations",
        "lab",
        "bootstrap",
        "class_archive",
        "docs_site",
        "jars",
        "machine",
        "tests",
        "bench",
    },
}
MAY_NOT_IMPORT = {
    "tallystick": {"pyspark", "airflow"},  # the rules run in any process, and in a test within a second
}
OURS = set().union(MAY_IMPORT, *MAY_IMPORT.values())


def find_wrong_imports(source: str, folder: str) -> list[str]:
    """Return `line: package` for each import that the tables forbid to a file of this folder."""
    return [
        f"{line}: {package}"
        for line, package in imported_packages(source)
        if (package in OURS and package not in MAY_IMPORT[folder]) or package in MAY_NOT_IMPORT.get(folder, set())
    ]


def imported_packages(source: str) -> Iterator[tuple[int, str]]:
    """Yield line and top-level package of each absolute import, also inside functions; a relative one stays at home."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name.split(".")[0]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.lineno, (node.module or "").split(".")[0]


def python_files() -> list[Path]:
    return [
        file
        for folder in sorted(ROOT.iterdir())
        if folder.is_dir() and not folder.name.startswith(".") and folder.name not in ("build", "dist")
        for file in sorted(folder.rglob("*.py"))
    ]


def test_every_import_goes_the_allowed_way() -> None:
    files = python_files()
    assert files
    wrong = [
        f"{path}:{finding}"
        for path in (file.relative_to(ROOT) for file in files)
        for finding in find_wrong_imports((ROOT / path).read_text(), path.parts[0])
    ]
    assert wrong == []


def test_every_folder_with_python_has_its_line_in_the_table() -> None:
    assert {file.relative_to(ROOT).parts[0] for file in python_files()} - set(MAY_IMPORT) == set()


@pytest.mark.parametrize(
    ("folder", "source"),
    [
        ("tallystick", "import pyspark.sql"),
        ("tallystick", "def f():\n    from airflow.sdk import DAG"),
        ("tallystick", "from tallystick_spark.matching import count_copies"),
        ("plugins", "import tallystick_spark.reconcile_app as app"),
        ("dags", "from tallystick_spark import reconcile_app"),
        ("spark_apps", "from tallystick_airflow import settle_sensor"),
        ("expectations", "import lab.servers.stack"),
        ("lab", "from tallystick.model.verdict import Verdict"),
        ("docs", "from tallystick_airflow.verdict_assets import matched_asset"),
        ("tests", "import dags"),
    ],
)
def test_an_import_against_the_direction_is_found(folder: str, source: str) -> None:
    assert len(find_wrong_imports(f"import json\n{source}\n", folder)) == 1


@pytest.mark.parametrize(
    ("folder", "source"),
    [
        ("tallystick", "from tallystick.model.verdict import Verdict"),
        ("tallystick", "import pyspark_like_name"),
        ("plugins", "from airflow.sdk import BaseSensorOperator"),
        ("plugins", "from .settle_sensor import SettleSensor"),
        ("spark_apps", "from pyspark.sql import DataFrame"),
        ("lab", "TEXT = 'import tallystick'"),
    ],
)
def test_an_import_along_the_direction_is_not(folder: str, source: str) -> None:
    assert find_wrong_imports(source, folder) == []
