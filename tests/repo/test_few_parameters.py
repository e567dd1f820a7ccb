"""No call of ours is told apart by counting: at most six arguments go by position, all others by name."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("tallystick", "spark_apps/tallystick_spark", "plugins/tallystick_airflow")
POSITIONAL_MAX = 6
_OWN = ("self", "cls")


def find_long(source: str) -> list[str]:
    """Return the functions, and the dataclasses, that take more arguments by position."""
    return [
        f"{node.lineno}: {getattr(node, 'name', 'lambda')} takes {count} by position"
        for node in ast.walk(ast.parse(source))
        if (count := _positional(node)) > POSITIONAL_MAX
    ]


def _positional(node: ast.AST) -> int:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
            return sum(one.arg not in _OWN for one in (*node.args.posonlyargs, *node.args.args))
        case ast.ClassDef():
            return len(list(_fields(node))) if any(map(_is_by_position, node.decorator_list)) else 0
        case _:
            return 0


def _is_by_position(decorator: ast.expr) -> bool:
    """Does it make a class a dataclass whose fields are given by position?"""
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    by_name = isinstance(decorator, ast.Call) and any(
        one.arg == "kw_only" and isinstance(one.value, ast.Constant) and one.value.value is True
        for one in decorator.keywords
    )
    return ast.unparse(called).endswith("dataclass") and not by_name


def _fields(node: ast.ClassDef) -> Iterator[ast.AnnAssign]:
    for one in node.body:
        if isinstance(one, ast.AnnAssign) and "ClassVar" not in ast.unparse(one.annotation):
            yield one


def test_no_function_takes_more_than_six_arguments_by_position() -> None:
    files = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
    assert len(files) > 300
    long = {str(path.relative_to(ROOT)): find_long(path.read_text()) for path in files}
    assert {path: found for path, found in long.items() if found} == {}


SEVEN = "a, b, c, d, e, f, g"


@pytest.mark.parametrize(
    "source",
    [
        f"def planted({SEVEN}): ...",
        f"async def planted({SEVEN}=1): ...",
        f"class A:\n    def planted(self, {SEVEN}): ...",
        f"def outer():\n    return lambda {SEVEN}: a",
        "def planted(a, b, c, /, d, e, f, g): ...",
        "@dataclass(frozen=True)\nclass planted:\n" + "".join(f"    {name}: int\n" for name in "abcdefg"),
        "@dataclasses.dataclass\nclass planted:\n" + "".join(f"    {name}: int = 0\n" for name in "abcdefg"),
    ],
)
def test_a_planted_one_is_found(source: str) -> None:
    (found,) = find_long(source)
    assert "7 by position" in found


@pytest.mark.parametrize(
    "source",
    [
        "def planted(a, b, c, d, e, f): ...",
        "def planted(a, b, c, d, e, f, *, g, h): ...",
        "class A:\n    def planted(self, a, b, c, d, e, f): ...",
        "@dataclass(frozen=True, kw_only=True)\nclass planted:\n" + "".join(f"    {name}: int\n" for name in "abcdefg"),
        "class planted(TypedDict):\n" + "".join(f"    {name}: int\n" for name in "abcdefg"),
    ],
)
def test_its_twin_is_not(source: str) -> None:
    assert find_long(source) == []
