"""A package is taken in at one look, and a module read in one go, or it says why not."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULES_MAX = 15
LINES_MAX = 400
REGISTRIES = {
    "tallystick/anomalies/breaks": "a file a rule; the registry has the list",
    "tallystick/anomalies/doubts": "a file a rule; the registry has the list",
    "tallystick/anomalies/notices": "a file a rule; the registry has the list",
    "tallystick/alerting/sinks": "a file a kind of receiver; the registry has the list",
    "tallystick/store/migrations/versions": "a file a migration, numbered; none is ever taken away",
}
"""Folder to the reason why it may have any number of modules: each is one line of a list."""

REASON = re.compile(r"^(?:# )?One file, since \S.{20,}$", re.MULTILINE)
"""How a long module says why it is one: a line of its docstring, or a comment before its first statement."""

FOLDERS = ("tallystick", "spark_apps", "plugins", "expectations", "dags", "lab", "bench", "setup", "tests")


def find_crowded(root: Path) -> list[str]:
    """Return `package: modules` of each package of tallystick that has too many."""
    counts = {
        str(folder.relative_to(root)): sum(file.name != "__init__.py" for file in folder.glob("*.py"))
        for folder in sorted((root / "tallystick").rglob("*"))
        if folder.is_dir()
    }
    return [f"{name}: {count}" for name, count in counts.items() if count > MODULES_MAX and name not in REGISTRIES]


def find_long(root: Path) -> list[str]:
    """Return `module: lines` of each module that is too long and does not say why it is one."""
    return [
        f"{file.relative_to(root)}: {len(lines)}"
        for folder in FOLDERS
        for file in sorted((root / folder).rglob("*.py"))
        if len(lines := file.read_text().splitlines()) > LINES_MAX and not REASON.search(head_of(file.read_text()))
    ]


def head_of(source: str) -> str:
    """Return a module's docstring, and the comments that stand before its first statement."""
    body = ast.parse(source).body
    docstring = ast.get_docstring(ast.Module(body=body, type_ignores=[])) or ""
    first = body[1 if docstring else 0].lineno if len(body) > bool(docstring) else 1
    comments = [line for line in source.splitlines()[: first - 1] if line.startswith("#")]
    return "\n".join([docstring, *comments])


def test_no_package_has_more_modules_than_one_look_takes_in() -> None:
    assert find_crowded(ROOT) == []


def test_no_registry_is_excused_that_is_not_there() -> None:
    assert [name for name in REGISTRIES if not (ROOT / name).is_dir()] == []


def test_no_module_is_long_without_saying_why_it_is_one() -> None:
    assert find_long(ROOT) == []


def test_no_module_says_why_it_is_long_and_is_not() -> None:
    files = [file for folder in FOLDERS for file in sorted((ROOT / folder).rglob("*.py"))]
    assert files
    texts = {str(file.relative_to(ROOT)): file.read_text() for file in files}
    told = [name for name, text in texts.items() if REASON.search(head_of(text))]
    assert [name for name in told if len(texts[name].splitlines()) <= LINES_MAX] == []


def plant(root: Path, name: str, text: str = "") -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text)


@pytest.mark.parametrize(
    ("folder", "modules", "found"),
    [
        ("tallystick/report", 16, ["tallystick/report: 16"]),
        ("tallystick/store/runs", 16, ["tallystick/store/runs: 16"]),
        ("tallystick/report", 15, []),
        ("tallystick/anomalies/breaks", 40, []),
        ("lab/faults", 40, []),
    ],
    ids=["one too many", "in a package of a package", "as many as may be", "a registry", "no package of tallystick"],
)
def test_a_crowded_package_is_found(tmp_path: Path, folder: str, modules: int, found: list[str]) -> None:
    for name in ("__init__", *(f"module_{n}" for n in range(modules))):
        plant(tmp_path, f"{folder}/{name}.py")
    assert find_crowded(tmp_path) == found


LONG = "\n" * (LINES_MAX + 1)


@pytest.mark.parametrize(
    ("text", "is_found"),
    [
        (f'"""What it is."""\n{LONG}X = 1\n', True),
        (f"X = 1\n{LONG}", True),
        (LONG, True),
        (f'"""What it is.\n\nOne file, since.\n"""\n{LONG}X = 1\n', True),
        (f'"""What it is."""\n\nX = 1\n# One file, since what it holds is one table.\n{LONG}', True),
        (f'"""What it is.\n\nOne file, since what it holds is one table.\n"""\n{LONG}X = 1\n', False),
        (f'"""What it is."""\n\n# One file, since what it holds is one table.\nX = 1\n{LONG}', False),
        ('"""What it is."""\n' + "\n" * (LINES_MAX - 1), False),
    ],
    ids=[
        "no reason",
        "no docstring",
        "nothing at all",
        "a reason that is none",
        "a reason further down",
        "a reason in its docstring",
        "a reason in a comment",
        "as long as may be",
    ],
)
def test_a_long_module_without_a_reason_is_found(tmp_path: Path, text: str, is_found: bool) -> None:
    plant(tmp_path, "lab/long.py", text)
    assert bool(find_long(tmp_path)) is is_found
