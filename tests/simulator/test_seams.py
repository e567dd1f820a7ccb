"""The stand-ins are what they stand for, and nothing that reaches outside is left where rules run."""

import importlib
import inspect
import pkgutil
from types import FunctionType
from typing import Any

import tallystick.store
from tests.simulator.standins import seams

ONLY_HERE = {"one_run_at_rest"}
"""Functions of the store in memory that stand for no one function."""


def real_functions() -> dict[str, Any]:
    """Every function of the real store, by name."""
    found: dict[str, Any] = {}
    for module in pkgutil.walk_packages(tallystick.store.__path__, "tallystick.store."):
        if ".migrations" in module.name:
            continue
        for name, value in vars(importlib.import_module(module.name)).items():
            if isinstance(value, FunctionType) and value.__module__ == module.name:
                found[name] = value
    return found


def shape_of(function: Any) -> list[tuple[str, Any, Any]]:
    """Names, kinds and defaults of what it takes."""
    return [(one.name, one.kind, one.default) for one in inspect.signature(function).parameters.values()]


def test_each_stand_in_of_the_store_takes_what_the_real_function_takes() -> None:
    real = real_functions()
    assert set(seams.STORE_FUNCTIONS) - set(real) == ONLY_HERE
    wrong = {
        name: (shape_of(stand_in), shape_of(real[name]))
        for name, stand_in in seams.STORE_FUNCTIONS.items()
        if name in real and [one[:2] for one in shape_of(stand_in)] != [one[:2] for one in shape_of(real[name])]
    }
    assert wrong == {}


def test_no_simulated_module_holds_a_function_of_the_real_store() -> None:
    with seams.stand_ins():
        left = {module.__name__: sorted(seams.real_store_functions(module)) for module in seams.simulated_modules()}
    assert {name: names for name, names in left.items() if names} == {}


def test_behind_the_block_every_module_is_as_it_was() -> None:
    before = [(module, name, getattr(module, name)) for module, name, _ in seams.substitutes()]
    with seams.stand_ins():
        assert any(getattr(module, name) is not value for module, name, value in before)
    assert [name for module, name, value in before if getattr(module, name) is not value] == []


def test_each_name_that_is_bound_anew_is_one_that_the_module_has() -> None:
    missing = [
        f"{module_name}.{name}"
        for module_name, names in seams.OUTSIDE.items()
        for name in names
        if not hasattr(importlib.import_module(module_name), name)
    ]
    assert missing == []
