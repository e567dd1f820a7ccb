"""What the ends of the ranges are tested with: which tools come along, and that what is left out is really there."""

import ast
from pathlib import Path

import pytest
from range_ends import LEFT_OUT, of_the_tests

ROOT = Path(__file__).parents[3]


def is_there(test: str) -> bool:
    """Is this `file::function` a test of this checkout?"""
    file, _, function = test.partition("::")
    path = ROOT / file
    tree = ast.parse(path.read_text()) if path.is_file() else ast.Module([], [])
    return function.partition("[")[0] in {one.name for one in tree.body if isinstance(one, ast.FunctionDef)}


def test_a_tool_of_these_tests_is_taken_as_it_fits_beside_and_nothing_else_is() -> None:
    listed = "# why\n-r runtime.in\napache-airflow-providers-fab==3.10.2\npytest\nnumpy>=2 # for it\n"
    assert of_the_tests(listed) == ["pytest", "numpy"]


@pytest.mark.parametrize("end", LEFT_OUT)
def test_what_is_left_out_is_a_test_and_has_a_reason(end: str) -> None:
    assert [test for test, why in LEFT_OUT[end].items() if not is_there(test) or len(why) < 10] == []


def test_a_test_that_is_gone_is_noticed() -> None:
    here = "tests/unit/setup/test_range_ends.py"
    assert is_there(f"{here}::test_a_test_that_is_gone_is_noticed[one]")
    assert not is_there(f"{here}::test_of_yesterday")
    assert not is_there("tests/unit/setup/test_nothing.py::test_of_yesterday")
