"""No bare string stands right behind another one: the second has slipped away from what it describes."""

import ast
import subprocess
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def find_strings_in_a_row(source: str) -> list[int]:
    """Return the line of each bare string that follows a bare string in the same body."""
    return sorted(
        second.lineno
        for body in bodies(ast.parse(source))
        for first, second in pairwise(body)
        if is_bare_string(first) and is_bare_string(second)
    )


def bodies(tree: ast.Module) -> Iterator[list[ast.stmt]]:
    """Yield each list of statements: of modules, classes, functions, branches, loops, handlers and cases."""
    for node in ast.walk(tree):
        for field in ("body", "orelse", "finalbody"):
            statements = getattr(node, field, None)
            if isinstance(statements, list):
                yield statements


def is_bare_string(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def python_files() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def test_no_two_strings_stand_in_a_row() -> None:
    files = python_files()
    assert files
    found = [f"{file.relative_to(ROOT)}:{line}" for file in files for line in find_strings_in_a_row(file.read_text())]
    assert found == []


@pytest.mark.parametrize(
    "source",
    [
        '"""Of the module."""\n"""Slipped."""',
        'def f():\n    """Of f."""\n    """Slipped."""',
        'class C:\n    """Of C."""\n\n    """Slipped."""\n    x: int',
        'X = 1\n"""Of X."""\n"""Of Y, which was moved away."""',
        'if ready:\n    X = 1\nelse:\n    "first"\n    "second"',
        'try:\n    pass\nfinally:\n    "first"\n    "second"',
    ],
)
def test_a_second_string_is_found(source: str) -> None:
    assert len(find_strings_in_a_row(source)) == 1


@pytest.mark.parametrize(
    "source",
    [
        '"""Of the module."""\nX = 1\n"""Of X."""',
        'class C:\n    """Of C."""\n\n    x: int\n    """Of x."""\n    y: int\n    """Of y."""',
        'X = (\n    "one text "\n    "in two parts"\n)',
        'def f():\n    """Of f."""\n    ...',
    ],
)
def test_a_string_behind_what_it_describes_is_not(source: str) -> None:
    assert find_strings_in_a_row(source) == []
