"""Proposes which key of the payload pairs with which column, each with why: by equal values first, by names second.

One file, since all roles are proposed from the same pairs of events and rows.

Nothing here is certain, so each proposal says what it rests on. A value of an event or a row is in no proposal, but for
the one word of a column of few words that tells postings apart.

One file, since names are asked only for what no value has paired.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, Literal
from uuid import UUID

from tallystick.contract.event import EventFields
from tallystick.contract.field_path import PATH_PATTERN, names_of
from tallystick.contract.ledger import LedgerColumns
from tallystick.contract.sql_names import NAME_PATTERN, spelled
from tallystick.model.direction import Direction
from tallystick.proposal.catalogue_choices import (
    Choice,
    propose_direction,
    propose_order_by,
    propose_row_id,
    propose_slice_by,
    propose_written_at,
)
from tallystick.proposal.samples import Column, ColumnKind, Event, Row, TableSample, TopicSample
from tallystick.text.money import is_known_currency, minor_unit_digits
from tallystick.text.verdict_sentence import counted

_LOOKED_UP_MAX = 200
"""Values of one key that are looked up in the table."""
_NEARLY_ALL = Decimal("0.9")
_FEW_WORDS = 8
ROLES = ("match_key", "transaction_key", "leg", "amount_minor", "currency")
ROLE_NAMES = {
    "match_key": re.compile(r"(event|message|idempotency|request)_?(id|key|uuid)$"),
    "transaction_key": re.compile(r"(payment|order|transaction|txn|transfer|invoice)_?(id|key|uuid|no|number)$"),
    "leg": re.compile(r"(leg|type|kind)$"),
    "amount_minor": re.compile(r"(amount|cents|minor|price|total|value|sum)"),
    "currency": re.compile(r"(currency|ccy|iso)"),
}
"""Names that speak of a role, of a payload's key or a column, in snake case."""
_PATH = re.compile(PATH_PATTERN)

Unit = Literal["minor", "major"]


@dataclass(frozen=True, kw_only=True)
class Pairing:
    """One field of a contract: the payload's key or path of keys, the table's column, and what that rests on.

    constant: what all events and rows have alike, in place of both.
    """

    role: str
    key: str
    column: str
    why: str
    constant: str = ""


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """All that a first contract says of two sides."""

    direction: Choice
    pairings: tuple[Pairing, ...]
    event_unit: Choice
    ledger_unit: Choice
    row_id: Choice | None
    written_at: Choice | None
    order_by: Choice | None
    slice_by: Choice | None
    where: Choice | None
    missing: tuple[str, ...]
    """Sentences about what no proposal was found for; with one of them there is no contract."""
    remarks: tuple[str, ...]
    """Sentences about what was seen and is in no contract."""


@dataclass(frozen=True)
class _Pair:
    event: Event
    row: Row


def propose(
    topics: Sequence[TopicSample], table: TableSample, *, direction: Direction | None, currency: str | None = None
) -> Proposal:
    """Propose the fields of a contract on these topics and this table. direction: None proposes that too.

    currency: of all events and rows, where they do not say it.
    """
    events = [event for topic in topics for event in topic.events]
    keys = _keys_of(events)
    columns = [column for column in table.columns if _can_be_named(column)]
    match = _match_key(events, keys, columns, table)
    pairs = _pairs(events, match, table) if match else []
    where = _where(pairs, columns, match, kind=table.kind)
    if where:
        pairs = [pair for pair in pairs if _is_word(where[0], str(pair.row[where[0]])) == where[1].value]
    found: dict[str, Pairing] = {"match_key": match} if match else {}
    if match:
        for role in ROLES[1:]:
            pairing = _pairing(role, pairs, events, keys, columns, found=found, topics=topics)
            if pairing:
                found[role] = pairing
        found.setdefault("transaction_key", _own_transaction(match))
        for stated in _constants(topics, events, keys, currency):
            found.setdefault(stated.role, stated)
    event_unit, ledger_unit = _units(found.get("amount_minor"), pairs, columns, currency=found.get("currency"))
    return Proposal(
        direction=propose_direction(direction, columns),
        pairings=tuple(found[role] for role in ROLES if role in found),
        event_unit=event_unit,
        ledger_unit=ledger_unit,
        row_id=propose_row_id(columns),
        written_at=propose_written_at(columns),
        order_by=propose_order_by(columns) if table.kind == "jdbc" else None,
        slice_by=propose_slice_by(columns) if table.kind == "postgres" else None,
        where=where[1] if where else None,
        missing=tuple(_missing(topics, table, events, keys, columns, found)),
        remarks=tuple(_remarks(topics, table)),
    )


def _keys_of(events: Sequence[Event]) -> list[str]:
    """The keys that nearly every event has, with one value each, by names that a contract can say."""
    counts = Counter(
        key for event in events for key, value in event.items() if _is_value(value) and _PATH.fullmatch(key)
    )
    return sorted(key for key, count in counts.items() if count >= _NEARLY_ALL * len(events))


def _is_value(value: Any) -> bool:
    return isinstance(value, str | int | Decimal) and not isinstance(value, bool)


def _match_key(
    events: Sequence[Event], keys: Sequence[str], columns: Sequence[Column], table: TableSample
) -> Pairing | None:
    """The key and the column that have the most values in common, of keys whose values differ in each event."""
    best: tuple[tuple[int, int, int], Pairing] | None = None
    for key in keys:
        values = list(dict.fromkeys(_text(event[key]) for event in events if key in event))
        if len(values) < _NEARLY_ALL * len(events):
            continue
        values = values[:_LOOKED_UP_MAX]
        for column in _id_columns(columns):
            found = len(set(values) & _values_in(table, column, values))
            near = _nearness("match_key", key, column.name)
            if not found and not (near and _snake(column.name) in (_spoken(key), _snake(names_of(key)[-1]))):
                continue
            why = (
                f"{found} of {counted(len(values), 'value')} found in the column"
                if found
                else f"the same name; none of {counted(len(values), 'value')} found in the column, so look again"
            )
            rank = (found, near, int(column.leads_index))
            if best is None or rank > best[0]:
                best = rank, Pairing(role="match_key", key=key, column=column.name, why=why)
    return best[1] if best else None


def _id_columns(columns: Iterable[Column]) -> list[Column]:
    return [column for column in columns if column.kind in (ColumnKind.TEXT, ColumnKind.INTEGER)]


def _values_in(table: TableSample, column: Column, values: Sequence[str]) -> set[str]:
    rows = [*table.rows, *(table.find_rows(column.name, values) if column.leads_index else ())]
    return {_text(row[column.name]) for row in rows if row[column.name] is not None}


def _pairs(events: Sequence[Event], match: Pairing, table: TableSample) -> list[_Pair]:
    """Each event with each row of its match key, as far as rows were seen."""
    column = next(column for column in table.columns if column.name == match.column)
    values = [_text(event[match.key]) for event in events if match.key in event]
    found = table.find_rows(column.name, values[:_LOOKED_UP_MAX]) if column.leads_index else ()
    rows: dict[str, list[Row]] = {}
    for row in found or table.rows:
        if row[column.name] is not None:
            rows.setdefault(_text(row[column.name]), []).append(row)
    return [
        _Pair(event, row) for event in events if match.key in event for row in rows.get(_text(event[match.key]), ())
    ]


def _where(
    pairs: Sequence[_Pair], columns: Sequence[Column], match: Pairing | None, *, kind: str
) -> tuple[str, Choice] | None:
    """The column of few words by one of which each key has one row, where keys have several rows."""
    if match is None:
        return None
    rows = Counter(_text(pair.event[match.key]) for pair in pairs)
    if not rows or max(rows.values()) < 2:
        return None
    for column in columns:
        if column.kind is not ColumnKind.TEXT:
            continue  # an array's values are lists, which no set takes
        words = {word for pair in pairs if isinstance(word := pair.row[column.name], str | None)}
        if not 2 <= len(words) <= _FEW_WORDS:
            continue
        for word in sorted(str(word) for word in words if isinstance(word, str) and word.isalnum()):
            picked = Counter(_text(pair.event[match.key]) for pair in pairs if pair.row[column.name] == word)
            if picked.keys() == rows.keys() and max(picked.values()) == 1:
                why = f"up to {max(rows.values())} rows of one {match.column}; this picks one of each"
                if kind == "jdbc" and spelled(column.name) != column.name:
                    continue  # MySQL and MariaDB take a name in double quotes for a text
                return column.name, Choice(value=_is_word(column.name, word), why=why)
    return None


def _is_word(column: str, word: str) -> str:
    return f"{spelled(column)} = '{word}'"


def _can_be_named(column: Column) -> bool:
    return re.fullmatch(NAME_PATTERN, spelled(column.name)) is not None


def _constants(
    topics: Sequence[TopicSample], events: Sequence[Event], keys: Sequence[str], currency: str | None
) -> Iterator[Pairing]:
    """What may be stated for all events and rows, where no key and no column says it."""
    if len(topics) == 1:
        leg = re.sub(r"[^a-z0-9_]", "_", topics[0].topic.rpartition(".")[2].lower())
        leg = leg if leg[:1].isalpha() else f"leg_{leg}"
        yield Pairing(role="leg", key="", column="", why="one topic, so one leg", constant=leg[:63])
    if currency and not _say_another(events, keys, currency):
        yield Pairing(role="currency", key="", column="", why="as you said, of all", constant=currency)


def _say_another(events: Sequence[Event], keys: Sequence[str], currency: str) -> bool:
    """Whether the events have a key of currencies, and not all are this one."""
    of_currency = [key for key in keys if ROLE_NAMES["currency"].search(_spoken(key))]
    said = [{str(event[key]).upper() for event in events if key in event} for key in of_currency]
    return any(codes != {currency} for codes in said if all(map(is_known_currency, codes)))


def _pairing(
    role: str,
    pairs: Sequence[_Pair],
    events: Sequence[Event],
    keys: Sequence[str],
    columns: Sequence[Column],
    *,
    found: dict[str, Pairing],
    topics: Sequence[TopicSample],
) -> Pairing | None:
    """The key and the column of a role: equal in nearly all pairs, and of the role's kind."""
    taken_keys = {pairing.key for pairing in found.values()}
    taken_columns = {pairing.column for pairing in found.values()}
    best: tuple[tuple[int, int, int], Pairing] | None = None
    for key in keys:
        values = [event[key] for event in events if key in event]
        if key in taken_keys or (role in _FITS and not _FITS[role](values, topics, key)):
            continue
        for column in columns:
            if column.name in taken_columns or column.kind not in _KINDS[role]:
                continue
            near = _nearness(role, key, column.name)
            equal = sum(_equal(role, pair.event.get(key), pair.row[column.name]) for pair in pairs)
            if pairs and equal < _NEARLY_ALL * len(pairs):
                continue
            if not near and (not pairs or len({_text(value) for value in values}) < 2):
                continue  # a constant that happens to be equal says nothing
            if role in ("leg", "transaction_key") and not near:
                continue
            why = f"equal in {equal} of {counted(len(pairs), 'pair')}" if pairs else "by its name; no pair was seen"
            rank = (equal, near, len({_text(value) for value in values}))
            if best is None or rank > best[0]:
                best = rank, Pairing(role=role, key=key, column=column.name, why=why)
    return best[1] if best else None


def _own_transaction(match: Pairing) -> Pairing:
    return Pairing(
        role="transaction_key",
        key=match.key,
        column=match.column,
        why="no key of a larger transaction was seen, so each event is one of its own",
    )


def _is_money(values: Sequence[Any], topics: Sequence[TopicSample], key: str) -> bool:
    return all(_number(value) is not None for value in values)


def _is_currency(values: Sequence[Any], topics: Sequence[TopicSample], key: str) -> bool:
    return all(isinstance(value, str) and is_known_currency(value.upper()) for value in values)


def _is_leg(values: Sequence[Any], topics: Sequence[TopicSample], key: str) -> bool:
    """One word on each topic, another on each."""
    words = [{_text(event[key]) for event in topic.events if key in event} for topic in topics if topic.events]
    return all(len(said) == 1 for said in words) and len(set().union(*words)) == len(words)


_FITS: dict[str, Callable[[Sequence[Any], Sequence[TopicSample], str], bool]] = {
    "leg": _is_leg,
    "amount_minor": _is_money,
    "currency": _is_currency,
}
_KINDS: dict[str, Collection[ColumnKind]] = {
    "transaction_key": (ColumnKind.TEXT, ColumnKind.INTEGER),
    "leg": (ColumnKind.TEXT,),
    "amount_minor": (ColumnKind.INTEGER, ColumnKind.DECIMAL),
    "currency": (ColumnKind.TEXT,),
}


def _equal(role: str, said: Any, stored: Any) -> bool:
    if said is None or stored is None:
        return False
    if role != "amount_minor":
        return _text(said).upper() == _text(stored).upper() if role == "currency" else _text(said) == _text(stored)
    one, other = _number(said), _number(stored)
    return one is not None and other is not None and any(one.scaleb(shift) == other for shift in (0, 2, -2, 3, -3))


def _units(
    amount: Pairing | None, pairs: Sequence[_Pair], columns: Sequence[Column], *, currency: Pairing | None
) -> tuple[Choice, Choice]:
    """The units of the event's money and of the row's."""
    if amount is None:
        return Choice(value="minor", why=""), Choice(value="minor", why="")
    said = [number for pair in pairs if (number := _number(pair.event.get(amount.key))) is not None]
    column = next(column for column in columns if column.name == amount.column)
    has_fractions = any(number != number.to_integral_value() for number in said)
    event = (
        Choice(value="major", why="amounts have fractions")
        if has_fractions
        else Choice(value="minor", why="amounts are whole numbers")
    )
    shifts = Counter(_shift(pair, amount, currency) for pair in pairs)
    (shift, _), *_ = shifts.most_common(1) or [(0, 0)]
    if shift > 0:
        return Choice(value="major", why="the column has the same in smaller units"), Choice(value="minor", why="")
    if shift < 0:
        return event, Choice(value="major", why="the event has the same in smaller units")
    if column.kind is ColumnKind.DECIMAL and event.value == "minor" and not pairs:
        return event, Choice(value="major", why="the column has fractions")
    return event, Choice(value=event.value, why="the same number as the event's")


def _shift(pair: _Pair, amount: Pairing, currency: Pairing | None) -> int:
    """By how many decimal digits the column's number is larger; 0 where it is the same."""
    one, other = _number(pair.event.get(amount.key)), _number(pair.row[amount.column])
    code = (currency.constant or str(pair.event.get(currency.key, "")).upper()) if currency else ""
    digits = minor_unit_digits(code) if is_known_currency(code) else 2
    if one is None or other is None or one == other or not digits:
        return 0
    return digits if one.scaleb(digits) == other else -digits if one.scaleb(-digits) == other else 0


def _missing(
    topics: Sequence[TopicSample],
    table: TableSample,
    events: Sequence[Event],
    keys: Sequence[str],
    columns: Sequence[Column],
    found: dict[str, Pairing],
) -> list[str]:
    empty = [topic.topic for topic in topics if not topic.events and not topic.unreadable]
    unread = [topic for topic in topics if not topic.events and topic.unreadable]
    if empty or unread:
        return [
            *(f"topic {name}: no committed event in it yet; expected some to look at" for name in empty),
            *(
                f"topic {topic.topic}: {counted(topic.unreadable, 'record')} looked at, and none is a JSON object; "
                "expected JSON"
                for topic in unread
            ),
        ]
    if "match_key" not in found:
        said = ", ".join(keys) or "none is in every event"
        stored = ", ".join(column.name for column in _id_columns(columns)) or "none of text or whole numbers"
        return [
            f"match_key: no key of the payload ({said}) has its values in a column of {table.table} ({stored}); "
            "expected a key that differs in each event, and that the ledger stores"
        ]
    sentences = [f"{role}: {_EXPECTED[role]}; expected one in both sides" for role in ROLES if role not in found]
    if propose_row_id(columns) is None:
        sentences.append(f"row_id: no column of {table.table} is unique by itself; expected a key of one column")
    if table.kind == "jdbc" and propose_order_by(columns) is None:
        sentences.append(f"order_by: no column of {table.table} grows that we can see; expected an integer key")
    return sentences


_EXPECTED = {
    "leg": "no key of the payload has one word on each topic and stands in a column too",
    "amount_minor": "no key of the payload has numbers that equal a column of whole or decimal numbers",
    "currency": "no key of the payload has ISO 4217 codes that stand in a column too; --currency CODE says it of all",
}


def _remarks(topics: Sequence[TopicSample], table: TableSample) -> list[str]:
    remarks = [
        f"topic {topic.topic}: {topic.unreadable} of {counted(topic.unreadable + len(topic.events), 'record')} looked "
        "at are no JSON object"
        for topic in topics
        if topic.unreadable and topic.events
    ]
    unnamed = sorted(column.name for column in table.columns if not _can_be_named(column))
    if unnamed:
        remarks.append(f"columns that a contract cannot name, even in quotes: {', '.join(unnamed)}")
    return remarks


def _nearness(role: str, key: str, column: str) -> int:
    """How well two names fit a role: the defaults most, then names that speak of it."""
    defaults = (EventFields.model_fields[role].default, LedgerColumns.model_fields[role].default)
    said: int = 2 * ((key == defaults[0]) + (column == defaults[1])) + sum(
        bool(ROLE_NAMES[role].search(name)) for name in (_spoken(key), _snake(column))
    )
    return said


def _spoken(path: str) -> str:
    """Return the keys of a path as one name: order.id speaks of an order_id."""
    return _snake("_".join(names_of(path)).replace("-", "_"))


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def _text(value: Any) -> str:
    if isinstance(value, UUID):
        return str(value)
    return value.lower() if isinstance(value, str) and _UUID.fullmatch(value) else str(value)


_UUID = re.compile(r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")


def _number(value: Any) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, int | Decimal | str):
        return None
    try:
        number = Decimal(value)
    except InvalidOperation:
        return None
    return number if number.is_finite() else None
