"""The words and numbers that a contract is written in, each with its rule; and what all its parts have in common."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal

from croniter import CroniterBadDateError, croniter
from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidationInfo,
    WithJsonSchema,
)

from tallystick.contract.field_path import LENGTH_MAX, PATH_MEANING, PATH_PATTERN, checked_path
from tallystick.contract.sql_names import NAME_PATTERN, TABLE_PATTERN
from tallystick.text.money import has_minor_unit, is_known_currency

PATTERNS = {
    r"^[a-z][a-z0-9_]{0,62}$": "a name in lower case letters, digits and _, beginning with a letter",
    r"^[a-zA-Z0-9._-]{1,249}$": "a Kafka topic name: letters, digits, '.', '_' and '-'",
    NAME_PATTERN: "a column name in lower case letters, digits and _, or any other in double quotes inside of YAML's "
    "own, as in '\"orderId\"'",
    PATH_PATTERN: PATH_MEANING,
    TABLE_PATTERN: "schema.table, such as ledger.posting; a name with other characters in double quotes",
    r"^[a-zA-Z0-9._-]{1,250}$": "a DAG's id: letters, digits, '.', '_' and '-'",
    r"^[A-Za-z0-9_.@+-][A-Za-z0-9_.@+ -]{0,249}$": "a user's name: letters, digits, '.', '_', '@', '+', '-' and spaces",
    r"^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*$": "a Python module, such as my_package.suites",
    r"^[A-Za-z0-9_.-]{1,100}$": "a header's name: letters, digits, '_', '.' and '-'",
    r"^[a-z_][a-z0-9_]{0,62}$": "a column's name in lower case letters, digits and _, without quotes",
    r"^[a-z_][a-z0-9_]*\.[a-z_][a-z0-9_]*$": "schema.table without quotes, such as ledger.action",
    r"^\d{1,9}(ms|s|m|h|d)$": "a duration, such as 500ms, 2s, 5m, 1h or 1d",
}
"""Each regular expression with its meaning, for the reference and for whoever breaks it."""

_NAME, _TOPIC, _COLUMN, _PATH, _TABLE, _DAG, _PERSON, _MODULE, _HEADER, _PLAIN_COLUMN, _PLAIN_TABLE, _DURATION = (
    PATTERNS
)


def _is_currency(code: str) -> str:
    if not is_known_currency(code):
        raise ValueError("expected an ISO 4217 code, such as 'EUR'")
    return code


FROM_A_FILE = {"from_a_file": True}
"""Context of validating a contract that somebody writes. What is refused in it alone may stand in one that was stored
before: that one must be read, or its books could never go on under a better one."""

_TEN_YEARS_SECONDS = 315_360_000


def _within_ten_years(seconds: int, info: ValidationInfo) -> int:
    if info.context and seconds > _TEN_YEARS_SECONDS:
        raise ValueError(f"expected {_TEN_YEARS_SECONDS:,} or less, which is ten years")
    return seconds


_CRON_FIELDS = ("minute", "hour", "day of the month", "month", "day of the week")


def refuse_no_cron(expression: str, *, such_as: str) -> None:
    """Raise ValueError where the text is no cron expression of five fields, with the fields that are at fault."""
    fields = expression.split()
    if len(fields) == len(_CRON_FIELDS) and croniter.is_valid(expression):
        return
    faults = [
        f"{field} is no {what}"
        for n, (field, what) in enumerate(zip(fields, _CRON_FIELDS, strict=False))
        if len(fields) == len(_CRON_FIELDS) and not croniter.is_valid(" ".join(["*"] * n + [field] + ["*"] * (4 - n)))
    ]
    expected = f"expected a cron expression of five fields, in UTC, such as '{such_as}'"
    raise ValueError("; ".join([expected, *faults]))


_ANY_MOMENT, _BETWEEN_FIRINGS_MAX = datetime(2000, 1, 1, tzinfo=UTC), timedelta(days=9 * 365)
"""29 February has eight years between two where a century has none."""


def refuse_no_firing(expression: str) -> None:
    """Raise ValueError where a cron expression fires at random, never, or less than once in nine years."""
    if any(field[0] in "rRhH" for field in expression.split()):
        raise ValueError("expected the same firings whenever they are asked for: R and H stand for a random number")
    walk = croniter(expression, _ANY_MOMENT)
    try:
        first, second = walk.get_next(datetime), walk.get_next(datetime)
    except CroniterBadDateError:
        raise ValueError("expected a date that there is: this one never comes") from None
    if second - first > _BETWEEN_FIRINGS_MAX:
        raise ValueError(f"expected a firing every few years: got {first:%Y-%m-%d} and then {second:%Y-%m-%d}")


def _is_zero(amount: int) -> int:
    if amount:
        raise ValueError("expected 0: of money a contract states no other amount")
    return amount


def _is_written_out(moment: Any) -> Any:
    if isinstance(moment, int | float):
        raise ValueError("expected a time with its zone, such as 2026-01-31T00:00:00Z")
    return moment


def _in_utc(moment: datetime) -> datetime:
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise ValueError("expected a time that also UTC has, from the years 1 to 9999") from None


Name = Annotated[str, Field(pattern=_NAME)]
TopicName = Annotated[str, Field(pattern=_TOPIC)]
ColumnName = Annotated[str, Field(pattern=_COLUMN)]
PlainColumnName = Annotated[str, Field(pattern=_PLAIN_COLUMN)]
PayloadField = Annotated[
    str, AfterValidator(checked_path), WithJsonSchema({"type": "string", "pattern": _PATH, "maxLength": LENGTH_MAX})
]
TableName = Annotated[str, Field(pattern=_TABLE)]
PlainTableName = Annotated[str, Field(pattern=_PLAIN_TABLE)]
Duration = Annotated[str, Field(pattern=_DURATION)]
HeaderName = Annotated[str, Field(pattern=_HEADER)]
DagId = Annotated[str, Field(pattern=_DAG)]
PersonName = Annotated[str, Field(pattern=_PERSON)]
ModuleName = Annotated[str, Field(pattern=_MODULE, max_length=250)]
CurrencyCode = Annotated[
    str, AfterValidator(_is_currency), WithJsonSchema({"type": "string", "format": "an ISO 4217 code"})
]
MinorUnits = Annotated[int, Field(ge=0, strict=True)]
_MAXIMUM: dict[str, Any] = {"maximum": _TEN_YEARS_SECONDS}
Seconds = Annotated[int, Field(ge=0, strict=True, json_schema_extra=_MAXIMUM), AfterValidator(_within_ten_years)]
SomeSeconds = Annotated[int, Field(gt=0, strict=True, json_schema_extra=_MAXIMUM), AfterValidator(_within_ten_years)]
AmountUnit = Literal["minor", "major"]
CronExpression = Annotated[str, WithJsonSchema({"type": "string", "format": "a cron expression of five fields"})]
Moment = Annotated[AwareDatetime, BeforeValidator(_is_written_out), AfterValidator(_in_utc)]


class ContractPart(BaseModel):
    """A mapping of the file: it has no other keys than its fields, and their docstrings are the reference."""

    model_config = ConfigDict(extra="forbid", frozen=True, serialize_by_alias=True)


class CurrencyConstant(ContractPart):
    """One currency that all events, or all rows, are in."""

    constant: CurrencyCode
    """Its ISO 4217 code."""


class LegConstant(ContractPart):
    """The leg that all events, or all rows, are of."""

    constant: Name
    """Its name, the only one of the contract's legs."""


class NoMoney(ContractPart):
    """Events and rows carry no money: each is of the amount 0."""

    constant: Annotated[int, Field(strict=True), AfterValidator(_is_zero)]
    """0, and no other amount."""


class HeaderPlace(ContractPart):
    """A header of the record. Of several of one name the last counts."""

    header: HeaderName
    """Its name."""


class KeyPlace(ContractPart):
    """The record's own key, which is text."""

    record: Literal["key"]
    """key."""


class RecordPart(ContractPart):
    """The record's own key, which is text, or its timestamp."""

    record: Literal["key", "timestamp"]
    """key, or timestamp: a time to the millisecond, by whose clock the topic's message.timestamp.type says."""


Constant = CurrencyConstant | LegConstant | NoMoney
Place = HeaderPlace | KeyPlace | RecordPart


def spelled(place: Place) -> str:
    """Return a place as a contract spells it."""
    ((name, said),) = place.model_dump().items()
    return f"{{{name}: {said}}}"


def constants_of(part: ContractPart) -> dict[str, Any]:
    """Return the fields of an event, or of a row, that the contract states, each with what all have for it."""
    stated = {name: getattr(part, name) for name in ("leg", "currency", "amount_minor")}
    return {name: one.constant for name, one in stated.items() if isinstance(one, Constant)}


def refuse_unit_without_digits(unit: AmountUnit, constants: Mapping[str, Any]) -> None:
    """Raise ValueError where amounts in major units have no minor ones: there are none, or the currency has none."""
    code = constants.get("currency")
    if unit == "major" and "amount_minor" in constants:
        raise ValueError("expected amount_unit minor with amount_minor {constant: 0}")
    if unit == "major" and code and not has_minor_unit(code):
        raise ValueError(f"expected amount_unit minor with the currency {code}: it has no minor units (ISO 4217)")


def _spelling(value: Any) -> str:
    if isinstance(value, dict):
        return next((f"[{key}]" for key in ("header", "record") if key in value), "[constant]")
    tags = ((HeaderPlace, "[header]"), (KeyPlace | RecordPart, "[record]"), (ContractPart, "[constant]"))
    return next((tag for kind, tag in tags if isinstance(value, kind)), "[name]")


_ByKind = Discriminator(_spelling)
_Path = Annotated[PayloadField, Tag("[name]")]
_Column = Annotated[ColumnName, Tag("[name]")]
_OneCurrency = Annotated[CurrencyConstant, Tag("[constant]")]
_OneLeg = Annotated[LegConstant, Tag("[constant]")]
_NoMoney = Annotated[NoMoney, Tag("[constant]")]
_Header = Annotated[HeaderPlace, Tag("[header]")]
_Key = Annotated[KeyPlace, Tag("[record]")]
_Part = Annotated[RecordPart, Tag("[record]")]
ComparedField = Annotated[_Path | _Header | _Part, _ByKind]
KeyField = Annotated[_Path | _Header | _Key, _ByKind]
LegField = Annotated[_Path | _OneLeg | _Header | _Key, _ByKind]
CurrencyField = Annotated[_Path | _OneCurrency | _Header, _ByKind]
AmountField = Annotated[_Path | _NoMoney, _ByKind]
LegColumn = Annotated[_Column | _OneLeg, _ByKind]
CurrencyColumn = Annotated[_Column | _OneCurrency, _ByKind]
AmountColumn = Annotated[_Column | _NoMoney, _ByKind]
"""A field or a column; or in place of one `{header: name}`, `{record: key}` or `{constant: value}`. What is compared
besides money may also be `{record: timestamp}`."""
