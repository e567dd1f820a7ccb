"""Planted faults that every run sends through its own scan and its own rules, so that its silence means something.

Canary events and rows join what is read of the slices before it is matched, events on partition -1 of the contract's
own topics. They are marked beside what they hold, and told by nothing in it: their keys begin with CANARY for whoever
debugs, and a real copy may have such a key too. They are left out of every figure, digest and open item. A run that
does not catch each of them is INCONCLUSIVE. Decides what is planted and what must come of it; reads nothing.
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from tallystick.anomalies.registry import RULES, AnomalyRule
from tallystick.contract.compare import ComparedColumns
from tallystick.contract.contract import Contract
from tallystick.contract.field_path import document_of
from tallystick.contract.field_types import Place
from tallystick.formats.placed_payload import placed_of
from tallystick.judging.canary_cases import NO_KEY, missed_cases, planted_key
from tallystick.judging.canary_evidence import calm_evidence, with_plant
from tallystick.matching.evidence import Evidence, ScanOddities
from tallystick.matching.grouping import group_by_transaction
from tallystick.matching.scan_result import CANARY, CanaryScan
from tallystick.model.direction import Direction
from tallystick.model.finding_names import BreakClass, Doubt
from tallystick.model.findings import Break, DoubtFound
from tallystick.model.open_item import ItemSide
from tallystick.text.money import minor_unit_digits

_WHOLE, _TORN = f"{CANARY}whole", f"{CANARY}torn"
_BIG = 2**53
"""From here on a double cannot tell two neighbours apart."""


@dataclass(frozen=True, kw_only=True)
class CanaryEvent:
    """One planted event. The offset is its number among the canaries."""

    topic: str
    kafka_offset: int
    value: bytes


@dataclass(frozen=True, kw_only=True)
class CanaryRow:
    """One planted ledger row, as the scan sees it."""

    row_id: str
    match_key: str
    transaction_key: str
    leg: str
    amount_minor: int
    currency: str
    compared_text: str = ""


@dataclass(frozen=True, kw_only=True)
class _Plant:
    """The copies planted under one key: amounts of its events and rows, in minor units with their currency.

    says_nothing: its rows have no value in the columns that are compared besides, which all others have. is_simple: a
    scan matches them by itself.
    """

    name: str
    events: tuple[tuple[int, str], ...] = ()
    rows: tuple[tuple[int, str], ...] = ()
    transaction_key: str = _WHOLE
    says_nothing: bool = False
    is_simple: bool = False

    @property
    def match_key(self) -> str:
        return planted_key(self.name)


def _one(contract: Contract) -> tuple[int, str]:
    """Return the money of nearly all plants: what the contract states for all events, if it does."""
    stated = contract.event.constants
    return stated.get("amount_minor", 100), stated.get("currency", "EUR")


def _plants(contract: Contract) -> tuple[_Plant, ...]:
    one = amount, currency = _one(contract)
    much = _BIG if amount else amount
    plants: tuple[_Plant, ...] = (
        _Plant(name="equal", events=(one,), rows=(one,), is_simple=True),
        _Plant(name="event-alone", events=(one,)),
        _Plant(name="row-alone", rows=(one,)),
        _Plant(name="event-twice", events=(one, one), rows=(one,)),
        _Plant(name=NO_KEY, rows=(one,)),
        _Plant(name="row-twice", events=(one,), rows=(one, one)),
        _Plant(name="amount", events=((much, currency),), rows=((much + 1, currency),)),
        _Plant(name="currency", events=(one,), rows=((amount, "EUR" if currency == "USD" else "USD"),)),
    )
    if contract.event.compared:
        plants += (_Plant(name="column", events=(one,), rows=(one,), says_nothing=True),)
    plants += _parts(contract, one)
    torn = _Plant(name="torn", events=(one,), rows=(one,), transaction_key=_TORN, is_simple=True)
    return (*plants, torn) if len(contract.legs) > 1 else plants


def _parts(contract: Contract, one: tuple[int, str]) -> tuple[_Plant, ...]:
    """Return parts that add up to what the other side says, and parts that do not, if the contract has such."""
    if contract.parts_side is None:
        return ()
    amount, currency = one
    parts, whole, more = (one, one), ((2 * amount, currency),), ((2 * amount + 1, currency),)
    if contract.parts_side is ItemSide.TOPIC:
        return (
            _Plant(name="parts", events=parts, rows=whole, is_simple=True),
            _Plant(name="part-missing", events=parts, rows=more),
        )
    return (
        _Plant(name="parts", events=whole, rows=parts, is_simple=True),
        _Plant(name="part-missing", events=more, rows=parts),
    )


_COMPARED = {"text": "canary", "number": "1", "time": "2026-01-01T00:00:00Z"}
"""What a plant says in a column that is compared besides its money, by kind."""


def _said_in(compared: ComparedColumns) -> dict[str | Place, str]:
    """Return what a plant says where each column stands: one text, where several columns read the same."""
    return {field: _COMPARED[rule.kind] for field, rule in zip(compared.fields, compared.rules, strict=True)}


def _compared_text(contract: Contract, *, says_nothing: bool) -> str:
    compared = contract.event.compared
    said = _said_in(compared)
    return compared.text_of([None if says_nothing else said[field] for field in compared.fields]) if compared else ""


def canary_events(contract: Contract) -> tuple[CanaryEvent, ...]:
    """Return the planted events as bytes: one per copy, one that cannot be read, and the other legs of whole
    transactions.
    """
    first, *others = sorted(contract.legs)
    one = _one(contract)
    planted = [
        (contract.legs[first], _value(contract, first, plant.match_key, plant.transaction_key, *money))
        for plant in _plants(contract)
        for money in plant.events
    ]
    planted += [(contract.legs[leg], _value(contract, leg, f"{CANARY}equal-{leg}", _WHOLE, *one)) for leg in others]
    planted.append((contract.legs[first], b"canary: no JSON"))
    return tuple(
        CanaryEvent(topic=topic, kafka_offset=number, value=value) for number, (topic, value) in enumerate(planted)
    )


def canary_rows(contract: Contract) -> tuple[CanaryRow, ...]:
    """Return the planted ledger rows."""
    first, *others = sorted(contract.legs)
    planted = [
        (plant.match_key, plant.transaction_key, first, money, plant.says_nothing)
        for plant in _plants(contract)
        for money in plant.rows
    ]
    planted += [(f"{CANARY}equal-{leg}", _WHOLE, leg, _one(contract), False) for leg in others]
    return tuple(
        CanaryRow(
            row_id=f"{CANARY}{number}",
            match_key=match_key,
            transaction_key=transaction_key,
            leg=leg,
            amount_minor=amount_minor,
            currency=currency,
            compared_text=_compared_text(contract, says_nothing=says_nothing),
        )
        for number, (match_key, transaction_key, leg, (amount_minor, currency), says_nothing) in enumerate(planted)
    )


def missed_canaries(evidence: Evidence, scan: CanaryScan, *, classes: Sequence[AnomalyRule] = RULES) -> tuple[str, ...]:
    """Return the names of planted faults that did not come out as they must, in the scan or under the rules."""
    contract = evidence.contract
    return (*_missed_by_the_scan(contract, scan), *_missed_by_the_rules(evidence, scan, classes))


def _missed_by_the_scan(contract: Contract, scan: CanaryScan) -> Iterator[str]:
    home = Counter((copy.match_key, copy.side, copy.amount_minor, copy.currency) for copy in scan.copies)
    for plant in _plants(contract):
        wanted = Counter(
            (plant.match_key, side, *money)
            for side, copies in ((ItemSide.TOPIC, plant.events), (ItemSide.LEDGER, plant.rows))
            for money in copies
        )
        if plant.is_simple:
            wanted = Counter()
        if {key: count for key, count in home.items() if key[0] == plant.match_key} != wanted:
            yield f"{plant.name} (scan)"
    if scan.unreadable != 1:
        yield "unreadable (scan)"
    torn = {copy.transaction_key for copy in scan.incomplete}
    if torn != ({_TORN} if len(contract.legs) > 1 else set()):
        yield "torn (scan)"


def _missed_by_the_rules(evidence: Evidence, scan: CanaryScan, classes: Sequence[AnomalyRule]) -> Iterator[str]:
    calm = calm_evidence(evidence)
    planted = replace(
        with_plant(calm, scan.copies),
        incomplete=group_by_transaction(scan.incomplete, ()),
        oddities=ScanOddities(unreadable_count=scan.unreadable),
    )
    found: dict[str, set[str]] = {}
    for rule in classes:
        for finding in rule.judge(planted):
            if isinstance(finding, Break):
                found.setdefault(finding.match_key, set()).add(finding.break_class)
            elif isinstance(finding, DoubtFound):
                found.setdefault(finding.doubt, set()).add(finding.doubt)
    for key, wanted in _wanted(evidence.contract).items():
        if found.get(key, set()) != wanted:
            yield f"{key.removeprefix(CANARY) or NO_KEY} (rules)"
    yield from (f"{name} (class)" for name in missed_cases(calm, scan.copies, classes))


def _wanted(contract: Contract) -> dict[str, set[BreakClass | Doubt]]:
    """Return, for each planted key, the classes that must be found under it; no other class may be."""
    from_topic = contract.direction is Direction.TOPIC_TO_LEDGER
    wanted: dict[str, set[Any]] = {
        f"{CANARY}equal": set(),
        f"{CANARY}event-alone": {BreakClass.MISSING_IN_LEDGER if from_topic else BreakClass.PHANTOM_IN_TOPIC},
        f"{CANARY}row-alone": {
            BreakClass.PHANTOM_IN_LEDGER if from_topic else BreakClass.MISSING_IN_TOPIC_NEVER_PRODUCED
        },
        f"{CANARY}event-twice": {BreakClass.DUPLICATE_IN_TOPIC_CAUSE_UNKNOWN},
        f"{CANARY}row-twice": {BreakClass.DUPLICATE_IN_LEDGER},
        planted_key(NO_KEY): {BreakClass.ROW_WITHOUT_KEY},
        f"{CANARY}amount": {BreakClass.AMOUNT_MISMATCH},
        f"{CANARY}currency": {BreakClass.CURRENCY_MISMATCH},
        Doubt.UNREADABLE_PAYLOAD: {Doubt.UNREADABLE_PAYLOAD},
    }
    if contract.event.compared:
        wanted[f"{CANARY}column"] = {BreakClass.COLUMN_MISMATCH}
    if len(contract.legs) > 1:
        wanted[_TORN] = {BreakClass.TORN_TRANSACTION}
    return wanted


def _value(
    contract: Contract, leg: str, match_key: str, transaction_key: str, amount_minor: int, currency: str
) -> bytes:
    """Return what a decoder of the contract's events reads: with headers and key in it, if the contract reads them."""
    placed = placed_of(contract.event)
    fields = placed.fields if placed else contract.event
    is_major = fields.amount_unit == "major" and isinstance(fields.amount_minor, str)
    said: tuple[tuple[Any, str | int], ...] = (
        (fields.ordering_key, match_key),
        (fields.sequence, 1),
        (fields.transaction_key, transaction_key),
        (fields.match_key, match_key),  # behind it: where one key of the payload is both, it says which event it is
        (fields.leg, leg),
        (fields.amount_minor, _as_written(amount_minor, currency) if is_major else amount_minor),
        (fields.currency, currency),
        *_said_in(fields.compared).items(),
    )
    return json.dumps(document_of({path: value for path, value in said if isinstance(path, str)})).encode()


def _as_written(amount_minor: int, currency: str) -> str:
    """Return the amount in major units."""
    return format(Decimal(amount_minor).scaleb(-minor_unit_digits(currency)), "f")
