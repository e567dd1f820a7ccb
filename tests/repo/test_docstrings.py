"""Docstrings stand where they belong, one behind each name, and those of the rules begin with a verb or a noun."""

import ast
import re
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


# A docstring begins with what the thing does (Return, Refuse) or with what it is, never with a clause or a question.

IN_PLAIN_WORDS = ("tallystick", "spark_apps", "plugins", "expectations", "dags")

STAYS_AS_IT_WAS = "tallystick/store/migrations/versions"
"""A step of the store's past, which no later release edits."""

NO_BEGINNING = re.compile(
    r"(What|Who|Whom|Whose|Whoever|Whatever|Which|Where|When|How|Why|Whether|Those|That"
    r"|Of|By|As|From|To|In|On|At|For|With|Without|Until|Beside|Between"
    r"|Is|Are|Was|Were|Does|Do|Did|Has|Have|Had|Can|May|Must|Should|Will|And|Or|But|If|Else|So|Also)\b"
)
"""Words that begin a clause or a question: the sentence would lack its verb, or its subject."""


def find_other_beginnings(source: str) -> list[str]:
    """Return `name: first word` of each public module, class and function whose docstring begins with such a word."""
    return [
        f"{name or 'module'}: {begins[0]}"
        for name, docstring in public_docstrings(ast.parse(source))
        if (begins := NO_BEGINNING.match(docstring))
    ]


def public_docstrings(node: ast.AST, name: str = "") -> Iterator[tuple[str, str]]:
    """Yield the dotted name and the docstring of the module and of what it makes public."""
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        if docstring := ast.get_docstring(node):
            yield name, docstring
        for child in node.body:
            if isinstance(child, ast.ClassDef | ast.FunctionDef) and not child.name.startswith("_"):
                yield from public_docstrings(child, f"{name}.{child.name}".strip("."))


def test_docstrings_begin_with_a_verb_or_a_noun() -> None:
    files = [file for file in python_files() if is_in_plain_words(str(file.relative_to(ROOT)))]
    assert all(any(str(file).startswith(str(ROOT / folder)) for file in files) for folder in IN_PLAIN_WORDS)
    found = {str(file.relative_to(ROOT)): find_other_beginnings(file.read_text()) for file in files}
    assert {file: names for file, names in found.items() if names} == {}


def is_in_plain_words(path: str) -> bool:
    return path.startswith(tuple(f"{folder}/" for folder in IN_PLAIN_WORDS)) and not path.startswith(STAYS_AS_IT_WAS)


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ('"""What a run found."""', ["module: What"]),
        ('class Cut:\n    """Where a run ends."""', ["Cut: Where"]),
        ('def is_late():\n    """Is it late?"""', ["is_late: Is"]),
        ('class Cut:\n    def end(self):\n        """Of its slices, the last one\'s."""', ["Cut.end: Of"]),
        ('"""The findings of a run."""', []),
        ('class Cut:\n    """The data of a run: what it reads."""', []),
        ('def is_late():\n    """Return whether it is late."""', []),
        ('def _end():\n    """By its slices."""', []),
        ("def end():\n    def inner():\n        pass", []),
    ],
)
def test_a_docstring_that_begins_with_a_clause_is_found_and_one_with_a_verb_or_a_noun_is_not(
    source: str, found: list[str]
) -> None:
    assert find_other_beginnings(source) == found
