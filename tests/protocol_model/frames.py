"""Where a start stands: each frame of the product's code on its stack, and what it may still read there. Two that stand
alike go on alike, whatever each has been through.
"""

import dis
import types
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import is_dataclass
from datetime import date, timedelta
from enum import Enum
from functools import cache, partial
from typing import Any
from uuid import UUID

import msgspec
from confluent_kafka import KafkaError
from pydantic import BaseModel
from tenacity import BaseRetrying, RetryCallState


class UnknownValue(TypeError):
    """A frame holds something of which nobody has said when two of it are equal."""


class Constants:
    """Values that are the same in every start, by name: they are not looked into."""

    def __init__(self, named: Mapping[str, object]) -> None:
        self._kept = named
        self._names = {id(value): ("constant", name) for name, value in named.items()}

    def name_of(self, value: object) -> tuple[str, str] | None:
        return self._names.get(id(value))


def standing(frame: types.FrameType | None, last: types.CodeType, ours: Iterable[str], constants: Constants) -> Any:
    """From the frame that asks up to that of `last`. ours: files of the walls, which hold nothing of their own."""
    skipped, found = set(ours), []
    while frame is not None:
        code = frame.f_code
        if code.co_filename not in skipped:
            values = tuple((name, canonical(value, constants)) for name, value in sorted(_held_by(frame).items()))
            found.append((code.co_qualname, frame.f_lasti, values))
        if code is last:
            return tuple(found)
        frame = frame.f_back
    raise LookupError(f"{last.co_qualname} is not on the stack")


def _held_by(frame: types.FrameType) -> dict[str, Any]:
    """What the frame may still read. Of a loop of tries: what is tried, and which try it is."""
    values = frame.f_locals
    if "tenacity" in frame.f_code.co_filename:
        state = values.get("retry_state")
        tried = {name: values[name] for name in ("fn", "args", "kwargs") if name in values}
        return tried | {"attempt": state.attempt_number} if isinstance(state, RetryCallState) else tried
    return {name: values[name] for name in read_behind(frame.f_code, frame.f_lasti) if name in values}


@cache
def read_behind(code: types.CodeType, last: int) -> frozenset[str]:
    """Names that the code may read once the instruction at `last` is through, before it writes them anew."""
    steps = list(dis.get_instructions(code))
    place = {one.offset: n for n, one in enumerate(steps)}
    table = dis._parse_exception_table(code)  # type: ignore[attr-defined]
    handlers = [(one.start, one.end, place[one.target]) for one in table]
    follow = [_following(steps, n, place) for n in range(len(steps))]
    caught = [[to for start, end, to in handlers if start <= one.offset < end] for one in steps]
    live: list[frozenset[str]] = [frozenset()] * len(steps)
    while True:
        before = list(live)
        for n in reversed(range(len(steps))):
            live[n] = _live_at(steps[n], [live[m] for m in (*follow[n], *caught[n])])
        if live == before:
            break
    n = max(n for n, one in enumerate(steps) if one.offset <= last)  # behind the call its caches may stand
    return _of_loops(steps).union(*(live[m] for m in (*follow[n], *caught[n])))


def _of_loops(steps: list[dis.Instruction]) -> frozenset[str]:
    """Which round of a loop it is says an iterator that no variable holds, but what it has given last."""
    found: set[str] = set()
    for n, one in enumerate(steps):
        if one.opname == "FOR_ITER":
            given = steps[n + 1 : n + 2 + (steps[n + 1].arg or 0)]
            found |= {each.argval for each in given if each.opname == "STORE_FAST"}
    return frozenset(found)


def _following(steps: list[dis.Instruction], n: int, place: Mapping[int, int]) -> list[int]:
    one = steps[n]
    to = [place[one.argval]] if one.opcode in dis.hasjrel or one.opcode in dis.hasjabs else []
    goes_on = one.opname not in ("RETURN_VALUE", "RAISE_VARARGS", "RERAISE") and not one.opname.startswith("JUMP_")
    goes_on = goes_on or one.opname.startswith("JUMP_IF")
    return [*to, n + 1] if goes_on and n + 1 < len(steps) else to


def _live_at(one: dis.Instruction, behind: list[frozenset[str]]) -> frozenset[str]:
    """A name in a cell may be read by whoever closes over it, so it is never written away."""
    live = frozenset[str]().union(*behind)
    if one.opname in ("STORE_FAST", "DELETE_FAST"):
        return live - {one.argval}
    if one.opname in ("LOAD_FAST", "LOAD_DEREF", "LOAD_CLOSURE", "LOAD_CLASSDEREF"):
        return live | {one.argval}
    return live


def canonical(value: Any, constants: Constants) -> Any:
    """Equal and hashable for values that are equal to whoever holds them. Raises UnknownValue."""
    name = constants.name_of(value)
    return _way_of(type(value))(value, constants) if name is None else name


Way = Callable[[Any, Constants], Any]


def _plain(value: Any, _constants: Constants) -> Any:
    return value


def _by_type_and_value(value: Any, _constants: Constants) -> Any:
    return type(value), value


def _mapping(value: Mapping[Any, Any], constants: Constants) -> Any:
    return frozenset((canonical(key, constants), canonical(held, constants)) for key, held in value.items())


def _set(value: Set[Any], constants: Constants) -> Any:
    return Set, frozenset([canonical(one, constants) for one in value])


def _sequence(value: Sequence[Any], constants: Constants) -> Any:
    return tuple([canonical(one, constants) for one in value])


def _fields(value: Any, constants: Constants) -> Any:
    return type(value), tuple([canonical(getattr(value, one), constants) for one in value.__dataclass_fields__])


def _struct(value: msgspec.Struct, constants: Constants) -> Any:
    return type(value), canonical(msgspec.structs.asdict(value), constants)


def _variables(value: Any, constants: Constants) -> Any:
    return type(value), canonical(vars(value), constants)


def _error(value: BaseException, _constants: Constants) -> Any:
    return type(value), tuple([str(one) for one in value.args])


def _kafka_error(value: KafkaError, _constants: Constants) -> Any:
    return value.code(), value.retriable(), value.txn_requires_abort()


def _function(value: types.FunctionType, constants: Constants) -> Any:
    cells = value.__closure__ or ()
    return value.__qualname__, tuple([canonical(cell.cell_contents, constants) for cell in cells])


def _method(value: types.MethodType, constants: Constants) -> Any:
    return value.__func__.__qualname__, canonical(value.__self__, constants)


def _partial(value: partial[Any], constants: Constants) -> Any:
    return canonical((value.func, value.args, value.keywords), constants)


def _tries(_value: BaseRetrying, _constants: Constants) -> Any:
    return "a loop of tries"  # which one it is at says its own frame


def _says_itself(value: Any, _constants: Constants) -> Any:
    """Equal where it says that it stands for the same."""
    return type(value), value.stands_for


_WAYS: Sequence[tuple[type | tuple[type, ...], Way]] = (
    (Enum, _by_type_and_value),
    ((bool, int, float, UUID, date), _by_type_and_value),
    ((str, bytes, type(None), timedelta), _plain),
    ((type, types.ModuleType, types.BuiltinFunctionType), _plain),
    (Mapping, _mapping),
    (Set, _set),
    ((tuple, list), _sequence),
    (BaseException, _error),
    (types.FunctionType, _function),
    (types.MethodType, _method),
    (partial, _partial),
    (BaseRetrying, _tries),
    (KafkaError, _kafka_error),
    (msgspec.Struct, _struct),
    (BaseModel, _variables),
)
"""The first that fits."""


@cache
def _way_of(kind: type) -> Way:
    way = next((way for kinds, way in _WAYS if issubclass(kind, kinds)), None)
    if way is None and is_dataclass(kind):
        return _fields
    if way is None and hasattr(kind, "stands_for"):
        return _says_itself
    if way is None:
        raise UnknownValue(f"{kind.__module__}.{kind.__qualname__}")
    return way
