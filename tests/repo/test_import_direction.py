"""Imports go one way: rules below, adapters above, DAGs on top; the lab stays outside of what it judges.

Inside tallystick/ too: a package imports only packages of the rows above its own.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# folder: the packages of ours that it may import. dags reach spark_apps by path and argv only.
MAY_IMPORT = {
    "tallystick": {"tallystick"},
    "spark_apps": {"tallystick_spark", "tallystick"},
    "plugins": {"tallystick_airflow", "tallystick_expectations", "tallystick_spark", "tallystick"},
    "expectations": {"tallystick_expectations", "tallystick"},
    "dags": {"tallystick", "tallystick_airflow"},
    "docs": set(),  # an example is copied to where nothing of ours may lie beside it
    "lab": {"lab"},
    "bench": {"bench", "lab", "tallystick_spark", "tallystick"},
    "setup": {"adopter", "bootstrap", "class_archive", "jars", "machine", "own_airflow", "pythons", "tallystick"},
    "tests": {
        "adopt",
        "adopter",
        "pythons",
        "range_ends",
        "tallystick",
        "tallystick_spark",
        "tallystick_airflow",
        "tallystick_expectations",
        "lab",
        "bootstrap",
        "build_backend",
        "class_archive",
        "docs_site",
        "jars",
        "machine",
        "own_airflow",
        "tests",
        "bench",
    },
}
MAY_NOT_IMPORT = {
    "tallystick": {"pyspark", "airflow"},  # the rules run in any process, and in a test within a second
}
OURS = set().union(MAY_IMPORT, *MAY_IMPORT.values())

PACKAGE_LAYERS = (
    ("model",),
    ("host", "connections"),
    ("text",),
    ("contract",),
    ("formats",),
    ("kafka_log", "alerting", "spark"),
    ("kafka_cluster", "ledger"),
    ("matching", "proposal"),
    ("anomalies", "compensation"),
    ("judging", "store"),
    ("report", "metrics"),
    ("pipeline", "documents", "pages"),
    ("executor", "tracing"),
    ("cli",),
)
"""The packages of tallystick/: each may import those above its row, and none beside or below it."""
LAYER = {package: row for row, packages in enumerate(PACKAGE_LAYERS) for package in packages}
ENTRY_POINTS = {Path("tallystick/__init__.py"), Path("tallystick/__main__.py")}


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


def find_upward_imports(source: str, package: str) -> list[str]:
    """Return `line: package` for each import of a package beside or below the row of this one."""
    return [
        f"{line}: {imported}"
        for line, imported in imported_layers(source)
        if imported != package and LAYER[imported] >= LAYER[package]
    ]


def imported_layers(source: str) -> Iterator[tuple[int, str]]:
    """Yield line and package of tallystick/ of each import, also inside functions."""
    for node in ast.walk(ast.parse(source)):
        names = (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [f"{node.module}.{alias.name}" for alias in node.names]
            if isinstance(node, ast.ImportFrom)
            else []
        )
        for parts in (name.split(".") for name in names):
            if parts[0] == "tallystick" and len(parts) > 1 and parts[1] in LAYER:
                yield node.lineno, parts[1]


def circles(imports: dict[str, set[str]]) -> list[list[str]]:
    """Modules that import each other at import time, as far as they are on one path."""
    found: list[list[str]] = []
    done: set[str] = set()

    def walk(module: str, path: list[str]) -> None:
        if module in path:
            found.append([*path[path.index(module) :], module])
        elif module not in done:
            for imported in sorted(imports.get(module, ())):
                walk(imported, [*path, module])
            done.add(module)

    for module in sorted(imports):
        walk(module, [])
    return found


def imports_at_import_time(files: list[Path]) -> dict[str, set[str]]:
    """For each module of tallystick/, the modules of it that its import imports first."""
    modules = {".".join(file.with_suffix("").parts).removesuffix(".__init__"): file for file in files}
    return {
        module: {
            name
            for node in ast.parse((ROOT / file).read_text()).body
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
            for name in (f"{node.module}.{alias.name}", node.module or "")
            if name in modules and name != module
        }
        for module, file in modules.items()
    }


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
        ("dags", "import tallystick_spark.reconcile_app as app"),
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


def of_tallystick() -> list[Path]:
    return [path for file in python_files() if (path := file.relative_to(ROOT)).parts[0] == "tallystick"]


def test_no_package_imports_one_beside_or_below_its_row() -> None:
    wrong = [
        f"{path}:{finding}"
        for path in of_tallystick()
        if path not in ENTRY_POINTS
        for finding in find_upward_imports((ROOT / path).read_text(), path.parts[1])
    ]
    assert wrong == []


def test_every_package_has_its_row_and_every_row_its_packages() -> None:
    assert {path.parts[1] for path in of_tallystick() if path not in ENTRY_POINTS} == set(LAYER)


@pytest.mark.parametrize(
    ("package", "source", "found"),
    [
        ("matching", "from tallystick.judging.judge import judge", ["1: judging"]),
        ("model", "def f():\n    from tallystick.contract.contract import Contract", ["2: contract"]),
        ("anomalies", "from tallystick.compensation import plan", ["1: compensation"]),
        ("store", "import tallystick.pages.render", ["1: pages"]),
        ("judging", "from tallystick.matching.evidence import Evidence", []),
        ("store", "from tallystick.store.schema import verdict", []),
        ("cli", "from tallystick import __version__", []),
    ],
)
def test_a_planted_import_upwards_is_found_and_one_downwards_is_not(
    package: str, source: str, found: list[str]
) -> None:
    assert find_upward_imports(source, package) == found


def test_no_modules_import_each_other() -> None:
    assert circles(imports_at_import_time(of_tallystick())) == []


@pytest.mark.parametrize(
    ("imports", "found"),
    [
        ({"a": {"b"}, "b": {"c"}, "c": {"a"}}, [["a", "b", "c", "a"]]),
        ({"a": {"b", "c"}, "b": {"c"}, "c": set()}, []),
    ],
)
def test_a_planted_circle_is_found_and_two_ways_to_one_module_are_none(
    imports: dict[str, set[str]], found: list[list[str]]
) -> None:
    assert circles(imports) == found
