"""Build a break from a residue: the same fields for every class."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from tallystick.contract.contract import Contract
from tallystick.host.packed_json import PackedJson
from tallystick.kafka_log.record import LogRecord
from tallystick.matching.match_case import Entry, LookupHit, UnmatchedItem
from tallystick.model.finding_names import BreakClass
from tallystick.model.findings import Break, break_id
from tallystick.model.open_item import ItemSide

NAMED_OF_A_SIDE_MAX = 20
"""A break's evidence names so many copies of each side that a look-up found; of the others it has the number."""


def break_of(
    contract: Contract,
    residue: UnmatchedItem,
    break_class: BreakClass,
    story: str,
    *,
    amount_minor: int | None = None,
    currency: str | None = None,
    evidence: Mapping[str, Any] | None = None,
) -> Break:
    """A break about one copy. amount_minor, currency: the money at stake where it is not the copy's own."""
    copy = residue.copy
    return Break(
        break_id=break_id(
            contract=contract.name, break_class=break_class, match_key=copy.match_key, position=copy.item_id
        ),
        break_class=break_class,
        match_key=copy.match_key,
        transaction_key=copy.transaction_key,
        leg=copy.leg,
        amount_minor=copy.amount_minor if amount_minor is None else amount_minor,
        currency=copy.currency if currency is None else currency,
        copies=1,
        story=story,
        evidence={
            "at": copy.item_id,
            "reason": residue.reason.stored,
            **_found_elsewhere(residue.lookup_hits),
            **(evidence or {}),
        },
    )


def _found_elsewhere(lookup_hits: Sequence[LookupHit]) -> dict[str, Any]:
    """All of them, or the first few of each side: each copy of a key that stands a thousand times names the others."""
    named: Sequence[LookupHit] = lookup_hits
    if len(lookup_hits) > NAMED_OF_A_SIDE_MAX:
        sides = ((seen for seen in lookup_hits if seen.side is side) for side in (ItemSide.TOPIC, ItemSide.LEDGER))
        named = [seen for of_side in sides for seen in islice(of_side, NAMED_OF_A_SIDE_MAX)]
    found: dict[str, Any] = {"found_elsewhere": [seen_as_json(seen) for seen in named]}
    unnamed = len(lookup_hits) - len(named)
    return found | {"found_elsewhere_unnamed": unnamed} if unnamed else found


def seen_as_json(seen: LookupHit) -> dict[str, Any]:
    return {"at": seen.item_id, "place": str(seen.place), **seen.detail}


def money_json(copy: Entry) -> dict[str, Any]:
    """Return where a copy stands and what money it says, in the one shape that all evidence has."""
    return {"at": copy.item_id, "amount_minor": copy.amount_minor, "currency": copy.currency}


def origin_json(record: LogRecord | None) -> dict[str, Any] | None:
    """Return the writer of a record, in the one shape that all evidence has; None where it is not known."""
    return None if record is None else record.as_json()


def packed_with_origin(found: Break, record_origins: Mapping[str, LogRecord], *, story: str) -> Break:
    """Join the producer identity of the copy that a break is about; where that is a row, of the record it followed.

    Its evidence is packed: the dictionaries of many breaks are the most that a broken window holds.
    """
    record = next((record_origins[item_id] for item_id in _about(found) if item_id in record_origins), None)
    evidence = found.evidence if record is None else {**found.evidence, "identity": record.as_json()}
    return Break(
        break_id=found.break_id,
        break_class=found.break_class,
        match_key=found.match_key,
        transaction_key=found.transaction_key,
        leg=found.leg,
        amount_minor=found.amount_minor,
        currency=found.currency,
        copies=found.copies,
        story=story,
        evidence=PackedJson(evidence),
    )


def _about(found: Break) -> Iterator[Any]:
    """Yield the item ids of a break's copy and of what a look-up found beside it."""
    yield found.evidence.get("at")
    for seen in found.evidence.get("found_elsewhere", ()):
        yield seen["at"]
