"""Values of Avro and Protobuf in columns that are compared besides money: more types than a key or an amount may have.

A float or a double is the number that its bits are, with the fewest digits that tell it from its neighbours; true and
false stand as in JSON. A moment is its instant in ISO 8601, in UTC. What has no one text (bytes, lists, whole records)
makes the record unreadable, with the reason: told as absent, it would differ from every row.
"""

import math
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from tallystick.formats.prefix import Undecodable

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
EXPECTED = "expected a text, a number, a moment or a truth value, which can be compared"


def number_of(value: float) -> Any:
    """Return a floating point number as JSON; as a text what JSON has no number for."""
    return msgspec.Raw(repr(value).encode()) if math.isfinite(value) else str(value)


def moment_of(value: int, *, a_second: int) -> Any:
    """Return a count since 1970 as an instant, `a_second` of them a second; the number itself beyond the calendar."""
    try:
        moment = _EPOCH + timedelta(seconds=value // a_second, microseconds=value % a_second * 1_000_000 // a_second)
    except OverflowError:
        return value
    return moment.isoformat().replace("+00:00", "Z")


def not_comparable(path: str, kind: str, schema_id: int) -> Undecodable:
    """Return why a value cannot be compared."""
    return Undecodable(f"{path} is {kind} in its schema {schema_id}; {EXPECTED}")
