"""tests/unit mirrors the packages: whoever changes a module of rules opens the test file of its name."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

PACKAGES = (
    "connections",
    "model",
    "text",
    "contract",
    "formats",
    "kafka_log",
    "kafka_cluster",
    "matching",
    "anomalies",
    "compensation",
    "judging",
    "ledger",
    "alerting",
    "report",
    "metrics",
    "documents",
    "pages",
)
"""The packages whose modules decide something in any process: what a server answers is tried in tests/stack."""

WITHOUT_TESTS_OF_ITS_NAME = {
    "kafka_cluster/settings.py": "asks a broker; tests/stack does, and tests/unit/kafka_cluster judges the answers",
    "ledger/input_topics.py": "values: a ledger whose every answer is that it has no rows",
    "ledger/postgres.py": "asks a PostgreSQL; tests/stack does, and its statements are tried in test_postgres_sql.py",
    "ledger/postgres_connection.py": "opens a session; what it asks for is tried in test_postgres_address.py",
    "ledger/postgres_standby.py": "asks a standby and its primary; tests/stack/test_standby.py does",
    "ledger/postgres_table.py": "asks a PostgreSQL's catalogue; tests/stack does",
    "ledger/protocol.py": "values, and the interface that each kind of ledger has a test file of its own for",
    "matching/match_case.py": "values: what is matched, and what a match says",
    "model/census_values.py": "values: a count, and the sum of its readable records",
    "model/direction.py": "values: the three directions",
    "model/open_item.py": "values: an item and its states",
    "model/run_result.py": "values: what a run says",
}
"""Module to the reason why no test file has its name. A module without any function needs no line here."""


def decides(source: str) -> bool:
    """Return whether a module holds a function: without one it is values, or texts."""
    return any(isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) for node in ast.walk(ast.parse(source)))


def modules(root: Path) -> Iterator[str]:
    """Yield the modules that decide something, as paths inside `tallystick`."""
    for package in PACKAGES:
        for file in sorted((root / "tallystick" / package).rglob("*.py")):
            if decides(file.read_text()):
                yield str(file.relative_to(root / "tallystick"))


def path_of_tests(module: str) -> str:
    """Return where the tests of a module stand."""
    path = Path("tests", "unit", module)
    return str(path.with_name(f"test_{path.name}"))


def find_untested(root: Path) -> list[str]:
    """Return the modules whose test file is missing, or has no test in it."""
    return [module for module in modules(root) if not has_tests(root / path_of_tests(module))]


def find_astray(root: Path) -> list[str]:
    """Return the test files in a package's folder whose name is no module of that package."""
    unit = root / "tests" / "unit"
    named = {
        str(file.relative_to(root)): file.relative_to(unit).with_name(file.name.removeprefix("test_"))
        for package in sorted((root / "tallystick").iterdir())
        for file in sorted((unit / package.name).rglob("test_*.py"))
    }
    return [file for file, module in named.items() if not (root / "tallystick" / module).is_file()]


def has_tests(file: Path) -> bool:
    """Return whether a file is there and pytest would find a test in it, be it in a class that inherits them."""
    if not file.exists():
        return False
    return any(
        (isinstance(node, ast.FunctionDef) and node.name.startswith("test_"))
        or (isinstance(node, ast.ClassDef) and node.name.startswith("Test"))
        for node in ast.parse(file.read_text()).body
    )


def test_every_module_of_rules_has_a_test_file_of_its_name() -> None:
    assert list(modules(ROOT))
    assert [module for module in find_untested(ROOT) if module not in WITHOUT_TESTS_OF_ITS_NAME] == []


def test_every_test_file_of_a_package_is_named_for_a_module() -> None:
    """A claim over several modules stands in tests/laws; one of a module that is gone has moved with it."""
    assert find_astray(ROOT) == []


def test_no_reason_is_left_over() -> None:
    assert set(WITHOUT_TESTS_OF_ITS_NAME) - set(find_untested(ROOT)) == set()


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    """A rule with its test file, and values that need none."""
    put(tmp_path / "tallystick/anomalies/breaks/torn.py", "def torn():\n    yield 1\n")
    put(tmp_path / "tests/unit/anomalies/breaks/test_torn.py", "def test_it_is_torn():\n    pass\n")
    put(tmp_path / "tallystick/model/colour.py", "RED = 1\n")
    return tmp_path


def put(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def test_a_rule_with_its_test_file_and_values_without_one_are_not_found(planted: Path) -> None:
    assert find_untested(planted) == []
    assert find_astray(planted) == []


@pytest.mark.parametrize(
    "left",
    [None, "from tests.unit.builders import torn\n", "class TornCases:\n    def test_it(self):\n        pass\n"],
    ids=["no file", "no test in it", "no class that pytest looks into"],
)
def test_a_rule_without_its_test_file_is_found(planted: Path, left: str | None) -> None:
    file = planted / "tests/unit/anomalies/breaks/test_torn.py"
    file.unlink()
    if left is not None:
        file.write_text(left)
    assert find_untested(planted) == ["anomalies/breaks/torn.py"]


def test_a_test_file_of_that_name_elsewhere_does_not_count(planted: Path) -> None:
    (planted / "tests/unit/anomalies/breaks/test_torn.py").rename(planted / "tests/unit/anomalies/test_torn.py")
    assert find_untested(planted) == ["anomalies/breaks/torn.py"]
    assert find_astray(planted) == ["tests/unit/anomalies/test_torn.py"]


def test_values_that_learn_to_decide_are_found(planted: Path) -> None:
    put(planted / "tallystick/model/colour.py", "def is_red(colour: int) -> bool:\n    return colour == 1\n")
    assert find_untested(planted) == ["model/colour.py"]


# What several test files need stands in a module of builders: a test file can move without breaking another one.

AIMS_AT_TESTS = {"tests/stack/test_sabotage.py"}
"""Runs tests of other files by name, on a rule that it has broken: it needs the tests themselves."""


def find_imports_of_tests(source: str) -> list[str]:
    """Return `line: module` of each test file that a source imports."""
    return [
        f"{node.lineno}: {module}"
        for node in ast.walk(ast.parse(source))
        for module in imported_modules(node)
        if module.startswith(("tests.", ".")) and any(part.startswith("test_") for part in module.split("."))
    ]


def imported_modules(node: ast.AST) -> list[str]:
    """Return the dotted names that an import statement may stand for; a relative one begins with its dots."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        module = "." * node.level + (node.module or "")
        behind = module if module.endswith(".") else f"{module}."
        return [module] if ".test_" in module else [f"{behind}{alias.name}" for alias in node.names]
    return []


def test_no_test_file_is_imported() -> None:
    files = sorted((ROOT / "tests").rglob("*.py"))
    assert files
    importing = {str(file.relative_to(ROOT)): find_imports_of_tests(file.read_text()) for file in files}
    assert {file: found for file, found in importing.items() if found and file not in AIMS_AT_TESTS} == {}
    assert {file for file, found in importing.items() if found} >= AIMS_AT_TESTS


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("from tests.unit.alerting.test_alert import MISSING", ["1: tests.unit.alerting.test_alert"]),
        ("from tests.unit.alerting import test_alert", ["1: tests.unit.alerting.test_alert"]),
        ("import tests.unit.alerting.test_alert as alerts", ["1: tests.unit.alerting.test_alert"]),
        ("from .test_absence import expire", ["1: .test_absence"]),
        ("from . import broken_executor, test_absence", ["1: .test_absence"]),
        ("from ..stack.test_absence import expire", ["1: ..stack.test_absence"]),
        ("from tests.unit.alerting.run_alerts import MISSING", []),
        ("from .retention import expire", []),
        ("from . import broken_executor", []),
        ("from tallystick.alerting import sample_alert", []),
    ],
)
def test_an_import_of_a_test_file_is_found_and_one_of_builders_is_not(source: str, found: list[str]) -> None:
    assert find_imports_of_tests(source) == found
