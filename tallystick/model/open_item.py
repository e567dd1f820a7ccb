"""Open items: what has no partner yet, or never will."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from uuid import UUID

from tallystick.model.finding_names import BreakClass
from tallystick.model.item_reason import Reason


class ItemState(StrEnum):
    """The life of an open item; append-only, one row per change. Runs write every state, a person WRITTEN_OFF only."""

    OPEN = "open"
    CLEARED = "cleared"
    BROKEN = "broken"
    WRITTEN_OFF = "written_off"
    UNDECIDABLE = "undecidable"


class ItemSide(StrEnum):
    """The kind of what waits: an event, a ledger row, or a business transaction with a leg missing."""

    TOPIC = "topic"
    LEDGER = "ledger"
    LEGS = "legs"


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenItem:
    """One copy that found no partner, as of one cut.

    item_id names side and place ("topic:billing.payments:0:17", "ledger:815", "legs:<transaction key>"), so that a copy
    is one item for ever.
    reason: why it stands so. found_as: the class of the break that it answers for, break_id; None where there is none.
    pairable: may a later arrival still be its partner? Broken items stay pairable until one is found.
    written_ms: when the copy was written, in milliseconds since 1970, where anybody says. compared_text: its values of
    the contract's compared columns; "" where none were compared when it was read.
    """

    item_id: str
    side: ItemSide
    match_key: str
    transaction_key: str
    leg: str
    amount_minor: int
    currency: str
    first_seen_cut: int
    first_seen_utc: datetime
    due_utc: datetime
    state: ItemState
    reason: Reason
    pairable: bool = True
    break_id: UUID | None = None
    found_as: BreakClass | None = None
    cleared_by: str = ""
    written_ms: int | None = None
    compared_text: str = ""


def legs_item_id(transaction_key: str) -> str:
    """Return the id of the item of a business transaction with a leg missing."""
    return f"legs:{transaction_key}"


@dataclass(frozen=True, kw_only=True)
class ItemTotal:
    """Items of one state and currency that were first seen together. amount_minor: of them all, without signs."""

    state: ItemState
    first_seen_utc: datetime
    currency: str
    count: int
    amount_minor: int


@dataclass(frozen=True, kw_only=True)
class WriteOff:
    """The person who wrote a break off, the reason and the time."""

    by: str
    reason: str
    at_utc: datetime


BUCKETS = (
    ("under 1 hour", timedelta(hours=1)),
    ("1 hour to 1 day", timedelta(days=1)),
    ("1 to 7 days", timedelta(days=7)),
    ("7 days and over", timedelta.max),
)
"""Words and the end of each bucket. Half-open: an item that is exactly 1 hour old is in the second."""
