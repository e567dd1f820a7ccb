"""Copies whose partner may be where no run could read it, and none can any more. Pure.

Decides by the cut that first saw a copy; what is true of that cut's slice is true of all its rows.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated

from pydantic import Field

from tallystick.model.cut import Cut, PartitionSnapshot, TopicSlice
from tallystick.model.direction import Direction


@dataclass(frozen=True, kw_only=True)
class Loss:
    """A cut that closed with offsets of its topics lost before they were read.

    ledger_high_mark: above every id that had been given out when the cut was made.
    """

    cut_n: int
    marked_at_utc: datetime
    ledger_high_mark: Annotated[int, Field(alias="ledger_xmax")]


@dataclass(frozen=True, kw_only=True)
class OutOfSight:
    """Numbers of the cuts of which each of these is true, among those that first saw what is judged.

    events_lost: an event of their rows may have expired unread. legs_lost: a leg of their transactions may have.
    rows_may_be_older: their rows may have been written anew, and have had their events before.
    have_older_rows: rows of theirs below `older_below` were written before the books began, and their events may have
    expired by then. older_below 0: of rows that an UPDATE gives another position, none is known to be younger.
    legs_of_before_lost: of all cuts: may a leg have stood on the log before the books began, and have left it since?
    """

    events_lost: frozenset[int] = frozenset()
    legs_lost: frozenset[int] = frozenset()
    rows_may_be_older: frozenset[int] = frozenset()
    have_older_rows: frozenset[int] = frozenset()
    older_below: int = 0
    legs_of_before_lost: bool = False


NOTHING = OutOfSight()


@dataclass(frozen=True, kw_only=True)
class LedgerStarts:
    """The positions where the ledger's slices of some cuts begin, and which of these cuts read rows that
    may be older.

    rows_move: does an UPDATE give a row another position? One between a cut and its scan takes it above that cut's high
    mark: to the slice behind, or to a later one where a transaction that stays open holds the horizon below it.
    moved_from: by cut: where the slice begins of the newest cut that had seen no position of its slice given out.
    rows_stay: does none, whatever it changes? Where nobody knows, neither is so.
    left_from: where a ledger is files, by cut: where rows that it saw and left to the next may have been written first.
    older_below: rows below that position may be older than the books, and their events had expired before these began.
    seen_first: where a ledger is topics, by cut: the first of the cuts that lost offsets that had seen an input of its
    slices on the log, where that is an earlier one.
    """

    position_start: Mapping[int, int] = field(default_factory=dict)
    rows_move: bool = False
    moved_from: Mapping[int, int] = field(default_factory=dict)
    rows_stay: bool = False
    rows_may_be_older: frozenset[int] = frozenset()
    left_from: Mapping[int, int] = field(default_factory=dict)
    older_below: int = 0
    seen_first: Mapping[int, int] = field(default_factory=dict)

    def holds_older(self, n: int) -> bool:
        """Return whether the cut's slice may have rows that were written before the books began: the baseline's horizon
        was held below them, or below the slice that they have moved out of.
        """
        return n in self.position_start and self.first_write_of(n) < self.older_below

    def first_write_of(self, n: int) -> int:
        """Return a position that no row of the cut's slice was first written below, unless it is an older one."""
        if n - 1 in self.left_from:
            return self.left_from[n - 1]
        if self.rows_move and n in self.moved_from:
            return self.moved_from[n]
        if self.rows_move and n - 1 in self.position_start:
            return self.position_start[n - 1]
        return self.position_start.get(n, 0)


def out_of_sight(
    direction: Direction,
    first_seen: Collection[int],
    losses: Collection[Loss],
    starts: LedgerStarts,
    *,
    log_is_whole: bool,
    legs_lost_within: int | None,
    legs_of_before_lost: bool = False,
) -> OutOfSight:
    """Return what no run could read of the partners of copies that these cuts saw first. losses: up to now, in any
    order.

    log_is_whole: do the topics still hold the event of every row that the ledger has ever had? legs_lost_within: so
    many cuts later a leg may be part of what was lost; None: a run of old, which looked one cut back.
    """
    return OutOfSight(
        events_lost=frozenset(n for n in first_seen if _event_may_be_lost(direction, n, losses, starts)),
        legs_lost=frozenset(n for n in first_seen if _leg_may_be_lost(n, losses, within=legs_lost_within)),
        rows_may_be_older=frozenset() if log_is_whole else starts.rows_may_be_older & frozenset(first_seen),
        have_older_rows=frozenset(n for n in first_seen if starts.holds_older(n))
        if direction is Direction.LEDGER_TO_TOPIC
        else frozenset(),
        older_below=starts.older_below if starts.rows_stay else 0,
        legs_of_before_lost=legs_of_before_lost,
    )


def _event_may_be_lost(direction: Direction, n: int, losses: Iterable[Loss], starts: LedgerStarts) -> bool:
    """Return whether the event may have expired. Where the topic comes first, a consumer may post an event however
    late.

    Where the ledger does, an event comes behind its row: what was lost before the row's first possible write is none of
    its. A row of the slice was written behind a cut that had seen no id of it given out, or moved out of that cut's.
    """
    if direction is Direction.TOPIC_TO_LEDGER:
        return any(True for _ in losses)
    if direction is Direction.TOPIC_TO_TOPIC:
        return _is_lost_beside(starts.seen_first.get(n, n), losses)
    begins = starts.first_write_of(n)
    return any(loss.cut_n >= n or loss.ledger_high_mark > begins for loss in losses)


def _is_lost_beside(n: int, losses: Iterable[Loss]) -> bool:
    """Return whether the cut itself, the one before, or a later one lost offsets."""
    return any(loss.cut_n >= n - 1 for loss in losses)


def _leg_may_be_lost(n: int, losses: Iterable[Loss], *, within: int | None) -> bool:
    """Return whether a cut of these books, so many before or a later one, lost offsets.

    Legs of one transaction come together, and are read apart: one partition is held, or somebody sends a leg by hand.
    Nothing but the memory of the books says how much later. What was gone before the books began counts for the first
    cut alone: retention has always taken something from a log, and no transaction of young books would ever be torn.
    """
    if _is_lost_beside(n, losses):
        return True
    return within is not None and any(loss.cut_n > 0 and n - within <= loss.cut_n for loss in losses)


def first_to_see(cut: Cut, earlier: Iterable[Cut], topics: Collection[str]) -> int:
    """Return the number of the first of these cuts that had seen an input of this one's slices on the log: a
    transaction that stayed open has held it since, while its output was made. earlier: newest first; its own number
    where the newest had seen none.
    """
    first = cut.n
    for one in earlier:
        if not any(_had_seen(one, part) for part in cut.topic_slices if part.offsets.topic in topics):
            break
        first = one.n
    return first


def _had_seen(earlier: Cut, part: TopicSlice) -> bool:
    before = earlier.slice_of(part.offsets.topic_partition)
    if before is None or not len(part.offsets) or before.snapshot.topic_id != part.snapshot.topic_id:
        return False
    return before.snapshot.written_end > part.offsets.kafka_offset_start


def older_rows_below(baseline: Cut) -> int:
    """Return a position that every row from before the baseline is below, where its topics had lost anything by then:
    rows that its horizon left to the next cut may have had their events. 0 where the log was whole.
    """
    lost = any(part.snapshot.log_start > 0 for part in baseline.topic_slices)
    return baseline.ledger_slice.snapshot.high_mark if lost else 0


def loss_before_the_books(
    baseline: Cut, partitions: Iterable[PartitionSnapshot], *, cut_n: int, windows: int
) -> tuple[Loss, ...]:
    """Return the loss before the baseline, where retention has taken since what stood there: no cut has read it.

    A late row is taken for one of those events for so many windows, as far as the memory of the books reaches.
    """
    gone = False
    for part in partitions:
        then = baseline.slice_of(part.topic_partition)
        if then is not None:
            end = then.offsets.kafka_offset_end
            gone = gone or min(part.log_start, end) > min(then.snapshot.log_start, end)
    return _before_the_books(baseline) if gone and cut_n <= windows else ()


def cleaned_before_the_books(
    baseline: Cut, compacting: Collection[str], *, cut_n: int, windows: int
) -> tuple[Loss, ...]:
    """Return the same loss where a topic compacts that held anything then: its cleaner leaves no sign below the books.

    compacting: names of topics.
    """
    held = any(
        part.snapshot.topic in compacting and part.snapshot.log_start < part.offsets.kafka_offset_end
        for part in baseline.topic_slices
    )
    return _before_the_books(baseline) if held and cut_n <= windows else ()


def _before_the_books(baseline: Cut) -> tuple[Loss, ...]:
    high_mark = baseline.ledger_slice.snapshot.high_mark
    return (Loss(cut_n=0, marked_at_utc=baseline.marked_at_utc, ledger_high_mark=high_mark),)
