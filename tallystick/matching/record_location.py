"""The location of a record or row, seen from the cut, and the keys that have to be looked up. Pure.

Of a row, ledger_horizon.py says it.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from itertools import chain

from tallystick.kafka_cluster.open_transactions import OpenTransaction
from tallystick.kafka_log.log_walk import Outcome
from tallystick.kafka_log.record import LogRecord
from tallystick.kafka_log.search import Wanted
from tallystick.matching.match_case import (
    TAKES_BACK,
    Entry,
    LookupHit,
    MatchGroup,
    MatchResult,
    MatchStatus,
    RecordLocation,
    UnmatchedItem,
)
from tallystick.matching.pairing import is_judged, origin_side
from tallystick.matching.scan_result import SliceScan, input_row_id, ledger_item_id, topic_item_id, topic_place
from tallystick.model.cut import Cut, PartitionSnapshot, TopicSlice
from tallystick.model.direction import Direction
from tallystick.model.item_reason import ReasonCode, reason_of
from tallystick.model.offsets import TopicPartition
from tallystick.model.open_item import ItemSide


def add_unseen(found: list[LookupHit], more: Iterable[LookupHit]) -> None:
    """Add hits that the log did not show; those that it shows come with their writer."""
    known = {seen.item_id for seen in found}
    found.extend(seen for seen in more if seen.item_id not in known)


def not_yet_fetched(
    wanted: Wanted, slices: Iterable[TopicSlice], scan: SliceScan
) -> tuple[Wanted, tuple[LogRecord, ...]]:
    """Return what is left to search for, and the wanted records that the scan has read: no slice is searched twice.

    The scan brings home all copies of a key that anybody may ask for, and of a transaction all events as long as it
    lacks a leg; those of which it brought no record are asked for by their places. slices: those of the topics that it
    read. Where it came across what it could not read, or where no event of a wanted transaction came home, they are
    searched like the rest of the log.
    """
    if scan.unreadable_count or not wanted.transaction_keys <= {copy.transaction_key for copy in scan.incomplete}:
        return wanted, ()
    fetched = {
        copy.item_id: scan.log_records.get(copy.item_id)
        for copy in (*scan.copies, *scan.incomplete)
        if copy.side is ItemSide.TOPIC
        if copy.match_key in wanted.match_keys or copy.transaction_key in wanted.transaction_keys
    }
    records = tuple(record for record in fetched.values() if record is not None)
    places = wanted.places | {topic_place(item_id) for item_id, record in fetched.items() if record is None}
    places -= {(record.topic_partition, record.kafka_offset) for record in records}
    return replace(wanted, places=places, known=tuple(part.readable for part in slices)), records


def in_log_order(records: Iterable[LogRecord], partitions: Iterable[PartitionSnapshot]) -> list[LogRecord]:
    """Return the records of these partitions, one partition after the other, each by offset."""
    order = {TopicPartition(topic=part.topic, partition=part.partition): n for n, part in enumerate(partitions)}
    here = [record for record in records if record.topic_partition in order]
    return sorted(here, key=lambda record: (order[record.topic_partition], record.kafka_offset))


def needs_topic(
    case: MatchGroup,
    rows: Iterable[LookupHit],
    *,
    direction: Direction,
    now_utc: datetime,
    new_copies_due_utc: datetime,
) -> bool:
    """Return whether the log must be asked about this key. It is long, so not for what is merely in flight.

    - A copy alone within its grace waits, whatever the log holds.
    - A row without an event here may have its event elsewhere.
    - An event whose row lies in an earlier slice, or the books do not reach, may double one that stands elsewhere.
    - So may a follower whose row stands nowhere: its owner may have archived it.
    """
    events, in_ledger = case.side(ItemSide.TOPIC), case.side(ItemSide.LEDGER)
    known = {copy.item_id for copy in case.copies}
    others = [row for row in rows if row.item_id not in known]
    if len(case.copies) == 1 and not others:
        (copy,) = case.copies
        if (copy.carried.due_utc if copy.carried else new_copies_due_utc) > now_utc:
            return False
    if len(in_ledger) > len(events):
        return True
    if events and not in_ledger and not others:
        return origin_side(direction) is ItemSide.LEDGER
    return any(
        row.place in (RecordLocation.EARLIER_SLICE, RecordLocation.UNREAD, RecordLocation.BEFORE_BASELINE)
        for row in others
    )


def pairs_with_older_row(case: MatchGroup, older: Collection[int], *, moved_here: bool) -> bool:
    """Return whether a copy that waited has a partner, and the row of the two may be an older one, written anew: then
    its event may be older as well, than the books too, and this one repeats it.

    older: cuts whose rows may be older. moved_here: may new ones of this cut?
    """
    if not case.side(ItemSide.TOPIC) or all(copy.carried is None for copy in case.copies):
        return False
    return any(
        moved_here if row.carried is None or row.is_new_version else row.carried.first_seen_cut in older
        for row in case.side(ItemSide.LEDGER)
    )


def needs_input(
    case: MatchGroup, indexed: Iterable[LookupHit], *, now_utc: datetime, new_copies_due_utc: datetime
) -> bool:
    """Return whether the input's log must be asked about this key: where outputs outnumber inputs, unless one alone may
    still wait.
    """
    outputs, inputs = case.side(ItemSide.TOPIC), case.side(ItemSide.LEDGER)
    known = {copy.item_id for copy in case.copies}
    if len(case.copies) == 1 and all(seen.item_id in known for seen in indexed):
        (copy,) = case.copies
        if (copy.carried.due_utc if copy.carried else new_copies_due_utc) > now_utc:
            return False
    return len(outputs) > len(inputs)


def without_reversals_cut_away(
    case: MatchGroup, ends: Mapping[TopicPartition, int]
) -> tuple[MatchGroup, tuple[UnmatchedItem, ...]]:
    """Return the same without the events that take another one back and that an election has taken since: what they
    took back stands. Beside it what becomes of them. ends: where each partition's log ends by now.
    """
    gone = [copy for copy in case.copies if copy.reverses and _is_cut_away(copy, ends)]
    if not gone:
        return case, ()
    left = tuple(copy for copy in case.copies if copy not in gone)
    reason = reason_of(ReasonCode.CUT_AWAY)
    undecided = (UnmatchedItem(copy=copy, fate=MatchStatus.UNDECIDABLE, reason=reason) for copy in gone)
    return replace(case, copies=left), tuple(undecided)


def without_those_gone(
    outcome: MatchResult, ends: Mapping[TopicPartition, int], unread: Collection[str] = frozenset()
) -> MatchResult:
    """Return the same, and of events that were one too many and that the log holds no more nothing is decided: what
    says whether they take another one back went with them.

    An election took them once they were read: what followed one of these has no event by now; it waits, and the next
    run judges it by what stands then. ends: where each partition's log ends by now. unread: those of which retention or
    a cleaner was quicker than the run; nobody can tell any more what a row of one of these is.
    """
    if all(residue.fate is not MatchStatus.EXTRA for residue in outcome.residues):
        return outcome
    residues = chain.from_iterable(_unless_gone(one, ends, unread) for one in outcome.residues)
    return replace(outcome, residues=tuple(residues))


def _unless_gone(
    residue: UnmatchedItem, ends: Mapping[TopicPartition, int], unread: Collection[str]
) -> Iterator[UnmatchedItem]:
    partner = residue.partner
    if residue.fate is MatchStatus.EXTRA and _is_cut_away(residue.copy, ends):
        gone, fate, left = ReasonCode.CUT_AWAY, MatchStatus.UNSETTLED, ReasonCode.PARTNER_CUT_AWAY
    elif residue.fate is MatchStatus.EXTRA and residue.copy.item_id in unread:
        gone, fate, left = ReasonCode.GONE_UNREAD, MatchStatus.PARTNER_EXPIRED, ReasonCode.OFFSETS_EXPIRED
    else:
        yield residue
        return
    yield replace(residue, fate=MatchStatus.UNDECIDABLE, reason=reason_of(gone), partner=None)
    if partner is not None and not is_judged(partner):
        yield replace(residue, copy=partner, fate=fate, reason=reason_of(left), partner=None, original=None)


def _is_cut_away(copy: Entry, ends: Mapping[TopicPartition, int]) -> bool:
    if copy.side is not ItemSide.TOPIC or copy.carried is not None:
        return False
    partition, offset = topic_place(copy.item_id)
    return offset >= ends.get(partition, offset + 1)


def locate_input(record: LogRecord, cut: Cut, baseline: Cut) -> LookupHit:
    """Locate an input by its offset. One whose transaction is open may still be committed: beyond the cut."""
    seen = locate_record(record, cut, baseline)
    part = record.topic_partition
    return replace(
        seen,
        side=ItemSide.LEDGER,
        item_id=ledger_item_id(input_row_id(part.topic, part.partition, record.kafka_offset)),
    )


def locate_record(
    record: LogRecord,
    cut: Cut,
    baseline: Cut,
    *,
    legs: Collection[str] | None = None,
    open_transactions: Iterable[OpenTransaction] = (),
) -> LookupHit:
    """Locate a record by its offset; an aborted one has no other location than that.

    legs: the topics of the contract's legs; what is committed on another one strays. open_transactions: those that
    were open when the record was found undecided; one that merely lies behind such a transaction is not open.
    """
    part, offset = record.topic_partition, record.kafka_offset
    begins = _slice_bounds(baseline, part)[1]
    start, end = _slice_bounds(cut, part)
    if record.outcome is Outcome.ABORTED:
        place = RecordLocation.ABORTED
    elif record.outcome is Outcome.OPEN:
        place = RecordLocation.OPEN if any(_wrote(one, record) for one in open_transactions) else RecordLocation.PENDING
    elif legs is not None and part.topic not in legs:
        place = RecordLocation.STRAY
    elif offset < begins:
        place = RecordLocation.BEFORE_BASELINE
    elif offset < start:
        place = RecordLocation.EARLIER_SLICE
    elif offset < end:
        place = RecordLocation.SLICE
    else:
        place = RecordLocation.PENDING
    said = {} if record.amount_minor is None else {"amount_minor": record.amount_minor, "currency": record.currency}
    if record.reverses:
        said[TAKES_BACK] = record.reverses
    return LookupHit(
        side=ItemSide.TOPIC,
        place=place,
        item_id=topic_item_id(part.topic, part.partition, offset),
        detail={
            "outcome": str(record.outcome),
            "producer_id": record.producer_id,
            "producer_epoch": record.producer_epoch,
            **(said if place is RecordLocation.EARLIER_SLICE else {}),
        },
    )


def _wrote(transaction: OpenTransaction, record: LogRecord) -> bool:
    return (
        transaction.topic_partition == record.topic_partition
        and transaction.producer_id == record.producer_id
        and transaction.kafka_offset_start <= record.kafka_offset
    )


def _slice_bounds(cut: Cut, part: TopicPartition) -> tuple[int, int]:
    """Return [start, end) of one partition in a cut; (0, 0) for one that the cut did not know."""
    known = cut.slice_of(part)
    return (known.offsets.kafka_offset_start, known.offsets.kafka_offset_end) if known else (0, 0)
