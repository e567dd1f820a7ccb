"""The values that the pairing takes and returns. Pure."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from tallystick.contract.equality import Compared, Money, compared
from tallystick.matching.unreadable_ranges import NOTHING, OutOfSight
from tallystick.model.item_reason import Reason
from tallystick.model.open_item import ItemSide, OpenItem


class RecordLocation(StrEnum):
    """The location of a looked-up copy, seen from the cut."""

    BEFORE_BASELINE = "before_baseline"
    EARLIER_SLICE = "earlier_slice"
    UNREAD = "unread"
    """In an earlier slice, and nobody can say that a cut has read it there: it may have come late."""
    SLICE = "slice"
    PENDING = "pending"
    """Beyond the cut: behind the ledger's horizon, or after the partition's slice."""
    OPEN = "open"
    """Beyond the cut, in a producer transaction that had not ended when it was looked up."""
    ABORTED = "aborted"
    STRAY = "stray"
    """Committed on a topic of no leg."""
    LOST = "lost"
    """An acknowledged offset that the log still covers, and that does not hold the event."""
    EXPIRED = "expired"
    """An acknowledged offset of which nobody can say any more what it held."""


BEYOND_THE_CUT = frozenset({RecordLocation.PENDING, RecordLocation.OPEN})
_NOWHERE: frozenset[RecordLocation] = frozenset()

TAKES_BACK = "takes_back"
"""In the detail of an event that a look-up found: the item that it says it takes back, as a repair does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupHit:
    """One copy found by a look-up outside the pairing, with what proves it."""

    side: ItemSide
    place: RecordLocation
    item_id: str
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One event or ledger row that takes part in the pairing. carried: what earlier cuts said of it, None if new.

    match_key: empty where a row has none; an event without one is unreadable, and no copy.
    written_ms: when it was written, by its record's timestamp or its row's column; None where nobody says.
    is_new_version: of the carried row, which was written anew and read again by this cut. reverses: of a reversal, the
    item id of the copy it takes back. action_id: the action of ours that wrote this copy; of events only of reversals.
    compared_text: as `ComparedColumns.text_of` makes it; "" where money alone is compared.
    """

    side: ItemSide
    item_id: str
    match_key: str
    transaction_key: str
    leg: str
    amount_minor: int
    currency: str
    order: int
    carried: OpenItem | None = None
    written_ms: int | None = None
    is_new_version: bool = False
    reverses: str = ""
    action_id: str = ""
    compared_text: str = ""

    @property
    def compared(self) -> Compared:
        """Return the values it is compared by; a currency whose case is ignored is written in capitals already."""
        return compared(self.amount_minor, self.currency, compared_text=self.compared_text)

    @property
    def money(self) -> Money:
        """Return the amount with its currency."""
        return self.compared.money


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchGroup:
    """All known copies of one key that is not simply one event and one equal row of this cut.

    parts: the side whose copies add up to the one of the other side; None: one copy of each side is a pair.

    surplus_rows: rows that earlier runs judged a surplus, where a row that is written anew comes again: it may be what
    they repeat, so they are not what it repeats.

    one_too_many: rows that earlier runs judged a surplus, and that nothing has ended since. beside_unread: those judged
    so beside a row that no cut has read, written off since or not.
    undecided: of a group, copies that earlier runs could not judge: no group was closed with them.
    """

    match_key: str
    copies: tuple[Entry, ...]
    lookup_hits: tuple[LookupHit, ...] = ()
    surplus_rows: frozenset[str] = frozenset()
    one_too_many: frozenset[str] = frozenset()
    beside_unread: frozenset[str] = frozenset()
    undecided: frozenset[str] = frozenset()
    parts: ItemSide | None = None

    def side(self, side: ItemSide) -> tuple[Entry, ...]:
        """Return the copies of one side, as the cuts saw them: carried ones first, the oldest cut's first, in log or
        row order.
        """
        if len(self.copies) == 1:
            return self.copies if self.copies[0].side is side else ()
        found = [copy for copy in self.copies if copy.side is side]
        return tuple(sorted(found, key=_first_seen) if len(found) > 1 else found)

    def places(self, side: ItemSide, *, without: Collection[str] = ()) -> frozenset[RecordLocation]:
        """Return the places seen on one side, without copies that take part in the pairing and rows that take others
        back.
        """
        there = [seen for seen in self.lookup_hits if seen.side is side] if self.lookup_hits else None
        if not there:
            return _NOWHERE
        known = {copy.item_id for copy in self.copies}.union(without)
        return frozenset(
            [seen.place for seen in there if seen.item_id not in known and not seen.detail.get("reverses")]
        )


def _first_seen(copy: Entry) -> tuple[bool, int, int, str]:
    return (copy.carried is None, copy.carried.first_seen_cut if copy.carried else 0, copy.order, copy.item_id)


class MatchStatus(StrEnum):
    """The state of a copy without an equal partner."""

    FOLLOWER_ABSENT = "follower_absent"
    """An origin's only copy; the follower has nothing. Missing."""
    ORIGIN_ABSENT = "origin_absent"
    """A follower's copy; the origin has nothing. Phantom."""
    EXTRA = "extra"
    """One copy more than the books allow. Duplicate."""
    UNEQUAL = "unequal"
    """Paired, but a compared field differs."""
    SUM_DIFFERS = "sum_differs"
    """Of many to one: its parts are there, add up to another sum, and no other part is to come."""
    WITHOUT_KEY = "without_key"
    """A ledger row whose key is null or empty: nothing can be its partner."""
    MISROUTED = "misrouted"
    """An event on a topic that another leg has; paired, or proven to be without follower."""
    ORIGIN_OPEN = "origin_open"
    """A follower's copy, committed while its only origin was in an open producer transaction."""
    WAITING = "waiting"
    UNSETTLED = "unsettled"
    """Due, but the other side is held back: cannot be judged now."""
    UNDECIDABLE = "undecidable"
    PAIRED_BEFORE = "paired_before"
    """Undecidable too: its partner was read before, and nothing shows that an UPDATE wrote the row of then anew."""
    PARTNER_EXPIRED = "partner_expired"
    """Undecidable too, but a partner that comes late is still its partner."""
    PARTNER_UNREAD = "partner_unread"
    """A copy of its key stands on the other side, and is no part of the pairing: it could not be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeAndParts:
    """One copy, and the copies of the other side that are to add up to it."""

    whole: Entry
    parts: tuple[Entry, ...]

    @property
    def copies(self) -> tuple[Entry, ...]:
        return (self.whole, *self.parts)

    @property
    def sum_minor(self) -> int | None:
        """Return what the parts add up to; None where one is not of the whole's currency, as a row without amount."""
        if any(part.currency != self.whole.currency for part in self.parts):
            return None
        return sum(part.amount_minor for part in self.parts)

    @property
    def adds_up(self) -> bool:
        return self.sum_minor == self.whole.amount_minor


@dataclass(frozen=True, slots=True, kw_only=True)
class UnmatchedItem:
    """One copy that is not simply matched.

    partner: the copy it is paired with, if any. original: the sibling that an extra one doubles; None where that one
    stands in an earlier slice. group: what does not add up; its copies that no run has judged share this one's fate.
    """

    copy: Entry
    fate: MatchStatus
    reason: Reason
    partner: Entry | None = None
    original: Entry | None = None
    lookup_hits: tuple[LookupHit, ...] = ()
    group: WholeAndParts | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchResult:
    """The result of pairing one key's copies."""

    case: MatchGroup
    matched: tuple[tuple[Entry, Entry], ...]
    """(topic copy, ledger copy), compared fields equal."""
    residues: tuple[UnmatchedItem, ...]
    netted: tuple[tuple[Entry, Entry], ...] = ()
    """(copy that was one too many, the reversal that takes it back): neither is one any more."""
    added_up: tuple[WholeAndParts, ...] = ()
    """Of many to one: what adds up."""

    @property
    def agreeing(self) -> tuple[tuple[Entry, Entry], ...]:
        """(topic copy, ledger copy) of all that agree: each part with its whole."""
        if not self.added_up:
            return self.matched
        return self.matched + tuple(
            (group.whole, part) if group.whole.side is ItemSide.TOPIC else (part, group.whole)
            for group in self.added_up
            for part in group.parts
        )


@dataclass(frozen=True, kw_only=True)
class Deadlines:
    """The times from which an absence may be judged. new_copies_due_utc: the deadline of copies that this cut saw
    first.
    """

    now_utc: datetime
    new_copies_due_utc: datetime
    topic_settled_until_utc: datetime | None
    ledger_settled_until_utc: datetime | None
    topic_lost_offsets: bool = False
    """Did retention take offsets unread that may have held a partner of these copies?"""
    cut_n: int = 0
    out_of_sight: OutOfSight = NOTHING
    inputs_out_of_sight: bool = False
    """topic_to_topic: may an input have stood where neither the retained log nor the key index reaches?"""
    rows_may_be_older: bool = False
    """May rows of this cut's slice have been written anew, by what the guard of older rows has found?"""

    def due(self, copy: Entry) -> datetime:
        return copy.carried.due_utc if copy.carried else self.new_copies_due_utc

    def first_seen_by(self, item: OpenItem | None) -> int:
        """Return the cut that saw it first; None is new."""
        return item.first_seen_cut if item else self.cut_n

    def settled_until(self, side: ItemSide) -> datetime | None:
        return self.topic_settled_until_utc if side is ItemSide.TOPIC else self.ledger_settled_until_utc


def id_of_copy(copy: Entry) -> str:
    return copy.item_id
