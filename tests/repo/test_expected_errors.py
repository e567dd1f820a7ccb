"""An error that a person may meet says so by its base; every other one is a bug, and named here with the reason."""

import inspect
from collections.abc import Iterator
from importlib import import_module
from pkgutil import walk_packages
from types import ModuleType

import pytest

import tallystick
from tallystick.model.errors import TallystickError
from tallystick.model.verdict import ExitCode

BUGS = {
    "OffsetsOutOfOrder": "a range is computed, never given: a negative one is a mistake in the code",
    "CutOutOfOrder": "the number of a cut is counted on from the store; a gap is a mistake in the code",
    "CutNotFound": "who asks has found the cut in the store, which deletes none",
    "UnreadableBatch": "its message is half a sentence; whoever opens a batch catches it and counts its records",
}
NOT_IMPORTED = ("tallystick.__main__", "tallystick.store.migrations.")
"""The first runs the command line, and those run only inside Alembic; neither has a class."""


def own_modules() -> Iterator[ModuleType]:
    for found in walk_packages(tallystick.__path__, "tallystick."):
        if not found.name.startswith(NOT_IMPORTED):
            yield import_module(found.name)


def errors_of(module: ModuleType) -> list[type[BaseException]]:
    """The public exception classes that this module defines."""
    return [
        one
        for name, one in inspect.getmembers(module, inspect.isclass)
        if issubclass(one, BaseException) and one.__module__ == module.__name__ and not name.startswith("_")
    ]


def without_the_base(module: ModuleType) -> list[str]:
    return [one.__name__ for one in errors_of(module) if not issubclass(one, TallystickError)]


def test_every_public_error_derives_from_the_base_or_is_a_bug_for_a_reason() -> None:
    modules = list(own_modules())
    assert len([one for module in modules for one in errors_of(module)]) > 60
    assert {name for module in modules for name in without_the_base(module)} == set(BUGS)


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("class LedgerLost(RuntimeError): pass", ["LedgerLost"]),
        ("class LedgerLost(BaseException): pass", ["LedgerLost"]),
        ("class LedgerLost(TallystickError): pass", []),
        ("class LedgerLost(TallystickError, RuntimeError): pass", []),
        ("class _LedgerLost(RuntimeError): pass", []),
        ("class LedgerLost: pass", []),
        ("LedgerLost = RuntimeError", []),
    ],
)
def test_an_error_without_the_base_is_found_and_no_other(source: str, found: list[str]) -> None:
    module = ModuleType("planted")
    vars(module)["TallystickError"] = TallystickError
    exec(source, vars(module))  # the way a module is made
    assert without_the_base(module) == found


def test_no_expected_error_ends_as_a_verdict_of_broken_or_matched_or_as_a_bug() -> None:
    codes = {one.exit_code for module in own_modules() for one in errors_of(module) if issubclass(one, TallystickError)}
    assert codes == {ExitCode.REFUSED, ExitCode.INCONCLUSIVE}
