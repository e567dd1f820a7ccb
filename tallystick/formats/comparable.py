"""Values of Avro and Protobuf in columns that are compared besides money: more types than a key or an amount may have.

A float or a double is the number that its bits are, with the fewest digits that tell it from its neighbours of its own
width; what is no number is named as PostgreSQL and Spark name it. Columns of files are written so, too: Java's own text
of a float is not always the shortest before JDK 19. True and false stand as in JSON. A moment is its instant in ISO
8601, in UTC. What has no one text (bytes, lists, whole records) makes the record unreadable, with the reason: told as
absent, it would differ from every row.
"""

import math
import struct
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from tallystick.formats.prefix import Undecodable

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_KEPT_BY_A_SINGLE, _DIGITS_OF_A_SINGLE = 6, 9
_SMALL_SINGLE = 1e-37
EXPECTED = "expected a text, a number, a moment or a truth value, which can be compared"


def number_of(value: float, *, is_single: bool = False) -> Any:
    """Return a floating point number as JSON; as a text what JSON has no number for. is_single: of 32 bits."""
    text = text_of_float(value, is_single=is_single)
    return msgspec.Raw(text.encode()) if math.isfinite(value) else text


def text_of_float(value: float, *, is_single: bool) -> str:
    """Return a floating point number as text."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return _fewest_digits(value) if is_single else repr(value)


def _fewest_digits(value: float) -> str:
    """Return a number of 32 bits with the fewest digits that are no other one of 32 bits; nine tell all apart.

    Each text of six digits or less is told from its neighbours, unless it is as small as 1e-38.
    """
    fewest = _KEPT_BY_A_SINGLE if abs(value) > _SMALL_SINGLE else 1
    texts = (f"{value:.{digits}g}" for digits in range(fewest, _DIGITS_OF_A_SINGLE + 1))
    return repr(next((float(text) for text in texts if _as_single(float(text)) == value), value))


def _as_single(value: float) -> float:
    try:
        (narrowed,) = struct.unpack("f", struct.pack("f", value))
    except OverflowError:  # rounded up beyond the largest
        return math.inf
    return float(narrowed)


def moment_of(value: int, *, a_second: int) -> Any:
    """Return a count since 1970 as an instant, `a_second` of them a second, rounded to the microsecond as a time in
    text is; the number itself beyond the calendar.
    """
    try:
        moment = _EPOCH + timedelta(seconds=value // a_second, microseconds=_rounded(value % a_second, a_second))
    except OverflowError:
        return value
    return moment.isoformat().replace("+00:00", "Z")


def _rounded(part: int, a_second: int) -> int:
    microseconds, rest = divmod(part * 1_000_000, a_second)
    return microseconds + (2 * rest > a_second or (2 * rest == a_second and microseconds % 2))


def not_comparable(path: str, kind: str, schema_id: int) -> Undecodable:
    """Return why a value cannot be compared."""
    return Undecodable(f"{path} is {kind} in its schema {schema_id}; {EXPECTED}")
