"""Columns that event and row are compared by besides their money: what a contract says of them, and when two agree.

Each column is a value of the payload, or of its record, and a column of the ledger. Both sides write what they hold as
text, by one rule for each kind, and the texts of all columns as one (`ComparedColumns.text_of`). Where these are the
same, all agree; so whole sides are matched by them. Where they are not, `differing` says which columns differ,
tolerances asked.

The rules, of both sides:
- nothing (JSON's null, an absent key, SQL's NULL) equals nothing else, and an empty text is a text;
- a value that is not of its column's kind is compared as the text that it is;
- text: by code points, so that é as one character differs from e and an accent; true and false are those words, and an
  object or a list is the JSON that stands there. A text of more than TEXT_LENGTH_MAX characters, or with a NUL, which
  no store takes, is its SHA-256;
- number: by its value, so that 1.50 is 1.5 and 15e-1, of at most _PLACES_MAX places on each side of the point;
- time: an instant, rounded to the microsecond. RFC 3339 or ISO 8601 with all their separators,
  with a zone, or in UTC where there is none; a date is its midnight. Digits without separators are no time, and
  neither are 24:00 and a leap second.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Context, Decimal
from hashlib import sha256
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Discriminator, Field, Tag, WithJsonSchema, model_validator

from tallystick.contract.equality import NUMBER, TEXT_LENGTH_MAX, Compared
from tallystick.contract.field_types import ColumnName, ComparedField, ContractPart, Duration, Name, Place, RecordPart

Kind = Literal["text", "number", "time"]

_PLACES_MAX = 400
"""More than a double has: its largest has 309 before the point, its smallest 324 behind it."""
_NUMBER_LENGTH_MAX = 2 * _PLACES_MAX + 3
_EXACT = Context(prec=4 * _PLACES_MAX)
"""No number that is compared has more digits, nor has the product of two."""
_TIME = re.compile(
    r"(?P<day>\d{4}-\d{2}-\d{2})"
    r"(?:[Tt ](?P<minute>(?:[01]\d|2[0-3]):\d{2})(?::(?P<second>\d{2})(?:[.,](?P<fraction>\d{1,50}))?)?"
    r"(?: ?(?P<zone>[Zz]|[+-]\d{2}(?::?\d{2}(?::\d{2})?)?))?)?",
    re.ASCII,
)
_SECONDS = {"ms": Decimal("0.001"), "s": Decimal(1), "m": Decimal(60), "h": Decimal(3600), "d": Decimal(86_400)}


_TOLERANCE_MAX = Decimal(10) ** 30
"""Beyond it nobody means anything, and the sums of a larger one would not fit."""


def _number_as_written(stated: Any) -> Any:
    """A float of YAML is the number that stands there, and no sum of powers of two."""
    return Decimal(repr(stated)) if isinstance(stated, float) else stated


Tolerance = Annotated[
    Decimal,
    Field(ge=0, le=_TOLERANCE_MAX, allow_inf_nan=False),
    BeforeValidator(_number_as_written),
    WithJsonSchema({"type": "number", "minimum": 0, "maximum": float(_TOLERANCE_MAX)}),
]


class CompareRule(ContractPart):
    """Rule by which one column is compared: exactly one of exact, abs, rel and within."""

    exact: Kind | None = None
    """text: character by character. number: 1.50 is 1.5. time: the same instant, in whatever zone it is written,
    rounded to the microsecond; where one side writes nanoseconds and the other cuts them off, say within: 1ms."""
    abs: Tolerance | None = None
    """Numbers may differ by so much."""
    rel: Tolerance | None = None
    """Numbers may differ by this share of the larger one, without signs: 0.001 is one in a thousand."""
    within: Duration | None = None
    """Times may lie so far apart: 500ms, 2s, 5m, 1h or 1d."""
    event: ComparedField | None = None
    """The payload's key or path, where it is not the column's name; or {header: name}, {record: key} or, of a time,
    {record: timestamp}. A key or header that is no UTF-8 is compared by its SHA-256."""
    column: ColumnName | None = None
    """The ledger's column, where it is not the name."""
    shown: bool = True
    """false: people see that it differs, and never what either side says."""

    @model_validator(mode="after")
    def _by_one_rule(self) -> Self:
        if sum(one is not None for one in (self.exact, self.abs, self.rel, self.within)) != 1:
            raise ValueError("expected exactly one of exact, abs, rel and within")
        if isinstance(self.event, RecordPart) and self.event.record == "timestamp" and self.kind != "time":
            raise ValueError("expected exact: time or within, since a record's timestamp is a time")
        return self

    @property
    def kind(self) -> Kind:
        """Return what both sides hold."""
        return self.exact or ("time" if self.within else "number")

    @property
    def words(self) -> str:
        """Return the rule in words."""
        if self.within:
            return f"within {self.within}"
        named = {"exact": self.exact, "abs": self.abs, "rel": self.rel}
        return next(f"{name} {one}" for name, one in named.items() if one is not None)

    def allows(self, one: str, other: str) -> bool:
        """Return whether two different texts, as `written` makes them, are near enough."""
        if self.within:
            first, second = _instant(one), _instant(other)
            return first is not None and second is not None and abs(first - second) <= _span(self.within)
        first_number, second_number = _number(one), _number(other)
        if first_number is None or second_number is None:
            return False
        apart = _EXACT.subtract(first_number, second_number).copy_abs()
        if self.abs is not None:
            return apart <= self.abs
        larger = max(first_number.copy_abs(), second_number.copy_abs())
        return self.rel is not None and apart <= _EXACT.multiply(self.rel, larger)


def _spelling(stated: Any) -> str:
    return "[rule]" if isinstance(stated, dict | CompareRule) else "[word]"


Stated = Annotated[
    Annotated[Literal["exact", "ignore"], Tag("[word]")] | Annotated[CompareRule, Tag("[rule]")],
    Discriminator(_spelling),
]
Compare = dict[Name, Stated]
"""Column to rule. exact: {exact: text}. ignore: it is not compared, and whoever reads the contract need not ask."""


@dataclass(frozen=True)
class Difference:
    """One column that differs. topic, ledger: what each side says; None: nothing. shown: may people see it?"""

    column: str
    rule: str
    topic: str | None
    ledger: str | None
    shown: bool


@dataclass(frozen=True)
class ComparedColumns:
    """The compared columns of one contract, by name; of most contracts none. names, rules: of each."""

    names: tuple[str, ...] = ()
    rules: tuple[CompareRule, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.names)

    @property
    def fields(self) -> tuple[str | Place, ...]:
        """Return where each stands: its path in the value, or its place beside that."""
        return tuple(rule.event or name for name, rule in zip(self.names, self.rules, strict=True))

    @property
    def paths(self) -> tuple[str, ...]:
        """Return the paths of those that stand in the value."""
        return tuple(one for one in self.fields if isinstance(one, str))

    @property
    def places(self) -> tuple[Place, ...]:
        """Return where others stand outside of it."""
        return tuple(one for one in self.fields if not isinstance(one, str))

    def moved(self, path_of: Callable[[str | Place], str]) -> "ComparedColumns":
        """Return the same, read from one object that has value and places in it."""
        paths = map(path_of, self.fields)
        moved = (rule.model_copy(update={"event": path}) for rule, path in zip(self.rules, paths, strict=True))
        return ComparedColumns(self.names, tuple(moved))

    @property
    def labels(self) -> tuple[str, ...]:
        """Return what a reader of the ledger calls each column, beside those that every contract has."""
        return tuple(f"compared_{number}" for number in range(len(self.names)))

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the ledger's column for each, as the contract spells it."""
        return tuple(rule.column or name for name, rule in zip(self.names, self.rules, strict=True))

    def text_of(self, values: Sequence[str | None]) -> str:
        """Return one text for the values of all columns, each as `text_of_json` or a database gives it."""
        sides = zip(self.names, self.rules, values, strict=True)
        said = {name: None if value is None else written(rule.kind, value) for name, rule, value in sides}
        return json.dumps(said, separators=(",", ":"))

    def differing(self, topic: str, ledger: str) -> tuple[Difference, ...]:
        """Return the columns by which two such texts differ. One that either lacks was not read for it."""
        if topic == ledger or not topic or not ledger:
            return ()
        here, there = json.loads(topic), json.loads(ledger)
        return tuple(
            Difference(column=name, rule=rule.words, topic=here[name], ledger=there[name], shown=rule.shown)
            for name, rule in zip(self.names, self.rules, strict=True)
            if name in here and name in there and not _agree(rule, here[name], there[name])
        )

    def agree(self, one: Compared, other: Compared) -> bool:
        """Return whether two copies are equal, by their money and by all that is compared besides."""
        if one == other:
            return True
        return one.money == other.money and not self.differing(one.compared_text, other.compared_text)


NO_COLUMNS = ComparedColumns()


def rule_of(stated: Stated) -> CompareRule | None:
    """Return the rule that a contract states for a column; None where it is not compared."""
    if isinstance(stated, CompareRule):
        return stated
    return CompareRule(exact="text") if stated == "exact" else None


def compared_columns(stated: Mapping[str, Stated]) -> ComparedColumns:
    """Return the columns that a contract compares. By name: a stored contract does not keep its file's order."""
    rules = {name: rule for name, one in sorted(stated.items()) if (rule := rule_of(one))}
    return ComparedColumns(tuple(rules), tuple(rules.values()))


def text_of_json(raw: bytes) -> str | None:
    """Return a JSON value's text; None of null, and where there is none.

    A text that is none, such as half a surrogate pair, is what stands there, and so is an object or a list.
    """
    if raw in (b"", b"null"):
        return None
    if raw[:1] == b'"':
        try:
            text = str(json.loads(raw))
            text.encode()
        except ValueError:
            pass
        else:
            return text
    return raw.decode(errors="backslashreplace")


def _agree(rule: CompareRule, one: str | None, other: str | None) -> bool:
    if one is None or other is None:
        return one is other
    one, other = written(rule.kind, one), written(rule.kind, other)
    return one == other or rule.allows(one, other)


def written(kind: Kind, text: str) -> str:
    """Return a value as it is compared."""
    if kind == "number":
        number = _number(text)
        if number is not None:
            return format(number, "f") if number else "0"
    elif kind == "time":
        instant = _instant(text)
        if instant is not None:
            return instant.isoformat().replace("+00:00", "Z")
    if len(text) > TEXT_LENGTH_MAX or "\0" in text:
        return f"SHA-256 {sha256(text.encode(errors='surrogatepass')).hexdigest()} of {len(text)} characters"
    return text


def _number(text: str) -> Decimal | None:
    if len(text) > _NUMBER_LENGTH_MAX or not NUMBER.fullmatch(text):
        return None
    number = Decimal(text.strip())
    if len(number.as_tuple().digits) > _EXACT.prec or (number and not -_PLACES_MAX <= number.adjusted() < _PLACES_MAX):
        return None
    plain = number.normalize(_EXACT)
    last = plain.as_tuple().exponent
    return plain if isinstance(last, int) and last >= -_PLACES_MAX else None


def _instant(text: str) -> datetime | None:
    found = _TIME.fullmatch(text)
    if found is None:
        return None
    part, microsecond = Decimal("0." + (found["fraction"] or "0")), Decimal("0.000001")
    zone = (found["zone"] or "Z").upper()
    try:
        moment = datetime.fromisoformat(f"{found['day']}T{found['minute'] or '00:00'}:{found['second'] or '00'}{zone}")
        return (moment + timedelta(microseconds=int(part.quantize(microsecond) / microsecond))).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _span(duration: str) -> timedelta:
    number = duration.rstrip("mshd")
    return timedelta(seconds=float(int(number) * _SECONDS[duration.removeprefix(number)]))
