"""The product's values without their guard: fields are set as any object's are, and `replace` copies what it keeps.

A frozen dataclass sets each field by a call of its own, and `dataclasses.replace` asks each field for its name, which
took a sixth of a schedule. That nobody assigns to such a value the type checker says, and every test that plays no
schedule runs with the guard.
"""

import dataclasses
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from types import ModuleType
from typing import Any

_PACKAGES = ("tallystick", "tests.simulator")
_GUARDED = ("__init__", "__setattr__", "__delattr__")


@contextmanager
def quick_values() -> Iterator[None]:
    """For the length of a block; of the modules that are loaded when it begins."""
    classes = [(one, {name: vars(one)[name] for name in _GUARDED}) for one in _frozen_classes()]
    modules = [(module, name) for module in _modules() for name in _names_of_replace(module)]
    for one, _ in classes:
        _take_guard(one)
    for module, name in modules:
        setattr(module, name, quick_replace)
    try:
        yield
    finally:
        for module, name in modules:
            setattr(module, name, dataclasses.replace)
        for one, guard in classes:
            for name, function in guard.items():
                setattr(one, name, function)


def quick_replace(one: Any, /, **changes: Any) -> Any:
    """As `dataclasses.replace`. What a value has worked out since it was made is left behind."""
    kind = one.__class__
    names = _plain_fields(kind)
    if names is None or not changes.keys() <= names:
        return dataclasses.replace(one, **changes)
    new = object.__new__(kind)
    values = new.__dict__
    values.update(one.__dict__)
    if len(values) != len(names):
        for name in values.keys() - names:
            del values[name]
    values.update(changes)
    if _looks_at_itself(kind):
        new.__post_init__()
    return new


@cache
def _plain_fields(kind: type) -> frozenset[str] | None:
    """Names of its fields, where making one does nothing but set them, and look at them."""
    fields = dataclasses.fields(kind)
    plain = "__slots__" not in vars(kind) and all(one.init for one in fields)
    return frozenset(one.name for one in fields) if plain else None


@cache
def _looks_at_itself(kind: type) -> bool:
    return hasattr(kind, "__post_init__")


def _modules() -> list[ModuleType]:
    return [module for name, module in list(sys.modules.items()) if name.startswith(_PACKAGES)]


def _names_of_replace(module: ModuleType) -> list[str]:
    return [name for name, value in vars(module).items() if value is dataclasses.replace]


def _frozen_classes() -> list[type]:
    found = {value for module in _modules() for value in vars(module).values() if isinstance(value, type)}
    return [one for one in found if vars(one).keys() >= {"__dataclass_params__", *_GUARDED} and _is_plainly_made(one)]


def _is_plainly_made(kind: type) -> bool:
    """Is each argument of its making a field?"""
    return len(dataclasses.fields(kind)) == len(vars(kind)["__dataclass_fields__"])


def _take_guard(kind: type) -> None:
    kind.__init__ = _ordinary_init(kind)  # type: ignore[misc]
    del kind.__setattr__, kind.__delattr__


@cache
def _ordinary_init(kind: type) -> Callable[..., None]:
    """What makes it where it is not frozen: that of another class with the same fields."""
    fields = [
        (
            one.name,
            one.type,
            dataclasses.field(
                default=one.default, default_factory=one.default_factory, init=one.init, kw_only=one.kw_only
            )
            if one.default is dataclasses.MISSING
            else dataclasses.field(default=one.default, init=one.init, kw_only=one.kw_only),
        )
        for one in dataclasses.fields(kind)
    ]
    behind = {"__post_init__": kind.__post_init__} if hasattr(kind, "__post_init__") else {}
    twin = dataclasses.make_dataclass(kind.__name__, fields, namespace=behind, eq=False, repr=False)
    made: Callable[..., None] = vars(twin)["__init__"]
    return made
