"""The way from a scan to evidence: group the exceptional copies by key, look up those without partner, find their
writers.

Asks both sides about exceptions only, so its cost grows with breaks and open items, not with rows.

One file, since the five steps and the values between them are read one after the other.
"""

from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy import Engine

from tallystick.anomalies.breaks.torn_transaction import absent_legs
from tallystick.anomalies.doubts.torn_cut import partitions_changed
from tallystick.contract.contract import Contract
from tallystick.judging.record_origins import origins_needed, read_record_origins
from tallystick.kafka_cluster.batch_fingerprints import fingerprints
from tallystick.kafka_cluster.snapshot import LastBatches
from tallystick.kafka_cluster.state import ClusterState, RewrittenBatch
from tallystick.kafka_log.event_decoder import EventDecoder
from tallystick.kafka_log.fetch import OffsetNotInLog
from tallystick.kafka_log.header_cache import LAST_BATCHES, KeptHeads
from tallystick.kafka_log.log_walk import DecidedBatch
from tallystick.kafka_log.offset_census import OffsetProgress, OnProgress, take_census, with_compaction
from tallystick.kafka_log.record import LogRecord, why_unreadable
from tallystick.ledger.key_index import ReadableIndexes
from tallystick.ledger.protocol import HorizonHolder
from tallystick.matching.closed_cut import HitsByKey, cleaned_of_closed
from tallystick.matching.evidence import (
    EarlierRun,
    Evidence,
    LegsCase,
    LookedUp,
    ScanOddities,
    SideTotals,
    UnreadableRecord,
)
from tallystick.matching.grace import grace_in_force
from tallystick.matching.group_sums import pair_group
from tallystick.matching.grouping import (
    group_by_key,
    group_by_transaction,
    not_judged_before,
    of_broken_transactions,
    with_legs_read_before,
    with_rows_of_before,
    with_undecided_rows,
    without_repeats,
)
from tallystick.matching.known_repairs import Believed, action_ids_of, believed_records, believed_rows, repairs_by_id
from tallystick.matching.ledger_horizon import unread_where_reused
from tallystick.matching.match_case import Deadlines, Entry, MatchGroup, MatchResult, RecordLocation
from tallystick.matching.pairing import pair_key, topic_of
from tallystick.matching.producer_acks import without_compacted
from tallystick.matching.record_location import without_reversals_cut_away, without_those_gone
from tallystick.matching.reversals import may_be_taken_back, possible_reversals, with_reversals, with_row_reversals
from tallystick.matching.row_identity import RowNames, items_of_rows, standing_beside, with_ids_of_their_own
from tallystick.matching.scan_result import SliceScan, topic_item_id, topic_place
from tallystick.matching.unreadable_ranges import (
    LedgerStarts,
    OutOfSight,
    cleaned_before_the_books,
    older_rows_below,
    out_of_sight,
)
from tallystick.model.break_history import Repairs
from tallystick.model.census_values import PartitionCensus
from tallystick.model.cut import Cut, PartitionSnapshot, is_recreated, with_lost
from tallystick.model.offsets import TopicPartition
from tallystick.model.open_item import ItemSide, ItemState, OpenItem
from tallystick.model.partner_lag import Grace
from tallystick.pipeline.lookups import AtHand, LookUps, Questions, look_up
from tallystick.pipeline.read_cluster_state import read_cluster_state
from tallystick.pipeline.run_history import RunHistory, inputs_of_before
from tallystick.pipeline.sources import Sources
from tallystick.store.plans.plan_store import known_repairs
from tallystick.store.runs.loss_store import transactions_judged_before
from tallystick.store.runs.open_item_store import (
    judged_items_as_of,
    left_rows_as_of,
    rows_beside_unread_as_of,
    undecided_items_as_of,
)
from tallystick.store.runs.sample_store import read_samples


def take_cut_census(
    sides: Sources, cut: Cut, on_progress: OnProgress
) -> tuple[tuple[PartitionCensus, ...], LastBatches]:
    """Census of every slice of the cut, and its last batches. on_progress: told how far it is.

    Raises OffsetNotInLog where the log no longer holds it.
    """
    fetch = sides.fetcher(ahead=[part.readable for part in cut.topic_slices])
    told = OffsetProgress(sum(len(part.readable) for part in cut.topic_slices), on_progress)
    counted, last_batches = [], {}
    for part in cut.topic_slices:
        last: deque[DecidedBatch] = deque(maxlen=LAST_BATCHES)
        census = take_census(
            fetch,
            part.readable,
            log_start=part.snapshot.log_start,
            lso=part.snapshot.lso,
            high_watermark=part.snapshot.high_watermark,
            told=told,
            last=last,
        )
        counted.append(census)
        last_batches[part.offsets.topic_partition] = fingerprints(part.offsets.topic_partition, last)
    return tuple(counted), last_batches


@dataclass(frozen=True, kw_only=True)
class _Rows:
    """copies: of both sides, each row under its item's id. items: those that take part. beside: as LookUps has it."""

    copies: tuple[Entry, ...]
    items: tuple[OpenItem, ...]
    beside: tuple[str, ...] | None
    names: RowNames


@dataclass(frozen=True, kw_only=True)
class ScannedCut:
    """The start of an investigation: a cut, what was scanned of it, and where more can be asked.

    partitions_before: the topics as they stood before the scan. rewritten: the slices that it left out.
    stored_look_ups: the first answers, when a cut is judged again. indexes: of keys; not asked then.
    """

    engine: Engine
    sides: Sources
    cut: Cut
    past: RunHistory
    scan: SliceScan
    census: tuple[PartitionCensus, ...]
    partitions_before: tuple[PartitionSnapshot, ...]
    rewritten: tuple[RewrittenBatch, ...]
    stored_look_ups: LookUps | None
    indexes: ReadableIndexes | None

    @property
    def contract(self) -> Contract:
        return self.sides.contract

    def known_repairs(self, action_ids: Collection[str]) -> Repairs:
        """Repairs that the store knows of these; of a cut that is judged again, those that its first run knew."""
        if self.stored_look_ups is None:
            return repairs_by_id(known_repairs(self.engine, action_ids))
        repairs = self.stored_look_ups.cluster_state.repairs
        return None if repairs is None else repairs_by_id(repairs)


@dataclass(frozen=True, kw_only=True)
class GroupedItems:
    """Step 1: new and carried items by key and by business transaction, reversals beside what they take back."""

    scanned: ScannedCut
    groups: tuple[MatchGroup, ...]
    legs: tuple[LegsCase, ...]
    rows: _Rows
    surplus_items: Mapping[str, OpenItem]
    """By item id: copies that earlier runs judged a surplus."""
    heads: KeptHeads
    reversing: Believed
    known: Repairs
    gone_unread: frozenset[str]
    """Of the events that may take another one back: those that left the log before that could be read."""


@dataclass(frozen=True, kw_only=True)
class LocatedItems:
    """Step 2: where else each key without a partner is, and the cluster around the cut."""

    grouped: GroupedItems
    groups: tuple[MatchGroup, ...]
    look_ups: LookUps
    believed: Believed
    known: Repairs
    grace: Grace
    new_copies_due_utc: datetime
    census: tuple[PartitionCensus, ...]


@dataclass(frozen=True, kw_only=True)
class DatedItems:
    """Step 3: by when a partner must have come, and how far each side has been read whole."""

    located: LocatedItems
    deadlines: Deadlines


@dataclass(frozen=True, kw_only=True)
class PairedItems:
    """Step 4: what each item of each group is, and which business transactions lack a leg."""

    dated: DatedItems
    outcomes: tuple[MatchResult, ...]
    legs: tuple[LegsCase, ...]


def investigate(scanned: ScannedCut) -> tuple[Evidence, LookUps]:
    """Prepare all that the rules judge by, in five steps. Give the look-ups too, which are stored with the verdict."""
    grouped = group(scanned)
    located = locate(grouped)
    dated = set_deadlines(located)
    paired = pair(dated)
    return attribute(paired)


def group(scanned: ScannedCut) -> GroupedItems:
    """Group new and carried items by key and by business transaction, and say which of them take another one back."""
    contract, cut, past, scan = scanned.contract, scanned.cut, scanned.past, scanned.scan
    rows = _tell_rows_apart(scanned.engine, scanned.sides, cut, past, scan, scanned.stored_look_ups)
    ignore_case = contract.currency_case == "ignored"
    groups = group_by_key(rows.copies, rows.items, ignore_case=ignore_case, parts=contract.parts_side)
    surplus_items = {item.item_id: item for item in (*past.carried, *past.surplus_items) if may_be_taken_back(item)}
    asked = possible_reversals(groups, surplus_items.values(), beside_closed=bool(past.closed))
    heads = KeptHeads(of=scan.heads, fetch_one=scanned.sides.fetcher(fetch_bytes=1))
    records = read_record_origins(scanned.sides.fetcher(), asked, contract.event_on, scan.log_records, heads)
    known = scanned.known_repairs(action_ids_of(records, {}))
    reversing = believed_records(records, known)
    incomplete = (*scan.incomplete, *of_broken_transactions(scan.copies, past.carried))
    legs = group_by_transaction(incomplete, past.carried) if len(contract.legs) > 1 else ()
    keys = {case.transaction_key for case in legs}
    return GroupedItems(
        scanned=scanned,
        groups=with_reversals(groups, reversing.records, surplus_items),
        legs=not_judged_before(legs, transactions_judged_before(scanned.engine, cut.contract, cut.n, keys)),
        rows=rows,
        surplus_items=surplus_items,
        heads=heads,
        reversing=reversing,
        known=known,
        gone_unread=frozenset(item_id for item_id in asked - records.keys() if topic_place(item_id)[0].partition >= 0),
    )


def locate(grouped: GroupedItems) -> LocatedItems:
    """Look up both sides for what has no partner yet, and read the cluster's state; a judged cut has both stored."""
    scanned, cut, past = grouped.scanned, grouped.scanned.cut, grouped.scanned.past
    grace = grace_in_force(scanned.contract, past.clean_lags)
    look_ups = scanned.stored_look_ups or _first_look_ups(grouped, cut.marked_at_utc + grace.duration)
    around = look_ups.cluster_state
    # What came where an election had cut others away may be younger than the sample that ends the window.
    written_by_utc = cut.now_utc if around.rewritten else cut.marked_at_utc
    known = _and_known(grouped.known, scanned.known_repairs(action_ids_of({}, look_ups.by_key)))
    believed = believed_rows(look_ups.by_key, known)
    return LocatedItems(
        grouped=grouped,
        groups=with_row_reversals(grouped.groups, believed.lookup_hits, grouped.surplus_items.values()),
        look_ups=look_ups,
        believed=believed,
        known=known,
        grace=grace,
        new_copies_due_utc=written_by_utc + grace.duration,
        census=tuple(with_compaction(one, compacts=around.compacts(one.topic)) for one in scanned.census),
    )


def _first_look_ups(grouped: GroupedItems, new_copies_due_utc: datetime) -> LookUps:
    scanned, cut, past, contract = grouped.scanned, grouped.scanned.cut, grouped.scanned.past, grouped.scanned.contract
    since_utc = _oldest_deadline(cut, contract, past.carried)
    asked = Questions(
        cases=grouped.groups,
        transaction_keys={
            case.transaction_key
            for case in grouped.legs
            if (case.carried.due_utc if case.carried else new_copies_due_utc) <= cut.now_utc
        },
        new_copies_due_utc=new_copies_due_utc,
        row_names=grouped.rows.names,
    )
    at_hand = AtHand(
        scan=scanned.scan,
        samples=read_samples(scanned.engine, contract.name, since_utc=since_utc),
        heads=grouped.heads,
        indexes=scanned.indexes,
    )
    look_ups = look_up(scanned.sides, cut, past, asked, at_hand)
    around = read_cluster_state(
        scanned.engine,
        scanned.sides,
        cut,
        past,
        partitions_before=scanned.partitions_before,
        scanned=scanned.scan.last_batches,
        rewritten=scanned.rewritten,
    )
    look_ups = replace(
        look_ups,
        cluster_state=around,
        rows_beside=grouped.rows.beside,
        by_key=_as_the_ledger_stands(look_ups.by_key, cut, around),
    )
    if compacting := [topic for topic in contract.topics if around.compacts(topic)]:
        windows = contract.ledger.index_windows
        lost = look_ups.lost_before_the_books or cleaned_before_the_books(
            past.baseline, compacting, cut_n=cut.n, windows=windows
        )
        lost = (*lost, *cleaned_of_closed(past.closed, compacting, cut_n=cut.n, windows=windows))
        look_ups = replace(look_ups, log_is_whole=False, lost_before_the_books=lost)
    return look_ups


def _as_the_ledger_stands(by_key: HitsByKey, cut: Cut, around: ClusterState) -> HitsByKey:
    """Return the hits by what is known of the ledger once it was read: it may have been put back since the cut."""
    ledger_slice = with_lost(cut.ledger_slice, cut.ledger_slice, around.ledger_lost)
    if around.ledger is not None:
        ledger_slice = replace(ledger_slice, reused_from=0, reused_below=ledger_slice.position_start)
    return by_key if ledger_slice is cut.ledger_slice else unread_where_reused(by_key, ledger_slice)


def set_deadlines(located: LocatedItems) -> DatedItems:
    """Say by when a partner must have come, and up to when each side has been read whole."""
    scanned, look_ups = located.grouped.scanned, located.look_ups
    contract, cut, past = scanned.contract, scanned.cut, scanned.past
    around = look_ups.cluster_state
    lost_offsets = bool(located.grouped.gone_unread) or _lost_offsets(cut, past, located.grace, around, located.census)
    hiding = {part.offsets.topic for part in cut.topic_slices if around.may_hide_records(part.snapshot)}
    deadlines = Deadlines(
        now_utc=cut.now_utc,
        new_copies_due_utc=located.new_copies_due_utc,
        topic_settled_until_utc=None if hiding & set(contract.topics) else look_ups.topic_settled_until_utc,
        ledger_settled_until_utc=None if hiding & set(contract.input_topics) else look_ups.ledger_settled_until_utc,
        topic_lost_offsets=lost_offsets,
        cut_n=cut.n,
        out_of_sight=_out_of_sight(contract, cut, past, look_ups),
        inputs_out_of_sight=look_ups.inputs_out_of_sight or (bool(contract.input_topics) and lost_offsets),
        rows_may_be_older=look_ups.rows_may_be_older,
    )
    return DatedItems(located=located, deadlines=deadlines)


def pair(dated: DatedItems) -> PairedItems:
    """Pair each group, and find the business transactions that lack a leg."""
    located, scanned = dated.located, dated.located.grouped.scanned
    contract, look_ups = scanned.contract, located.look_ups
    surplus_rows = _surplus_rows(scanned.engine, scanned.cut, look_ups) if contract.ledger.by_xmin else frozenset[str]()
    one_too_many = frozenset(located.grouped.surplus_items)
    beside_unread = _beside_unread(scanned.engine, scanned.cut, located.groups, look_ups)
    undecided = _undecided(scanned.engine, scanned.cut, look_ups) if contract.parts_side else frozenset[str]()
    hits, around = located.believed.lookup_hits, look_ups.cluster_state
    cases = (
        case
        if not surplus_rows and case.match_key not in hits
        else replace(
            case,
            lookup_hits=without_compacted(hits.get(case.match_key, ()), around),
            surplus_rows=surplus_rows,
            one_too_many=one_too_many,
            beside_unread=beside_unread,
            undecided=undecided,
        )
        for case in located.groups
    )
    ends = {part.topic_partition: part.written_end for part in around.partitions_after}
    unread = located.grouped.gone_unread
    outcomes = tuple(_paired_as_the_log_stands(case, contract, dated.deadlines, ends, unread) for case in cases)
    legs = with_rows_of_before(
        without_repeats(located.grouped.legs, outcomes),
        outcomes,
        may_be_older=scanned.past.may_be_older_than_the_books,
        inputs_of_before=inputs_of_before(scanned.cut, scanned.past.baseline, contract.input_topics),
    )
    legs = tuple(replace(case, lookup_hits=look_ups.by_transaction.get(case.transaction_key, {})) for case in legs)
    left = _left_rows(scanned, legs, dated.deadlines)
    legs = with_legs_read_before(legs, (*located.grouped.surplus_items.values(), *left))
    legs = with_undecided_rows(legs, outcomes, (*scanned.past.carried, *left))
    return PairedItems(dated=dated, outcomes=outcomes, legs=legs)


def _left_rows(scanned: ScannedCut, legs: Iterable[LegsCase], deadlines: Deadlines) -> tuple[OpenItem, ...]:
    """Rows of these transactions that no cut carries any more, left undecidable or written off: they count where a leg
    may be gone.
    """
    if not deadlines.out_of_sight.legs_of_before_lost:
        return ()
    keys = {case.transaction_key for case in legs if absent_legs(case, scanned.contract.legs)}
    return left_rows_as_of(scanned.engine, scanned.cut.contract, scanned.cut.n, keys)


def _paired_as_the_log_stands(
    case: MatchGroup,
    contract: Contract,
    deadlines: Deadlines,
    ends: Mapping[TopicPartition, int],
    unread: Collection[str],
) -> MatchResult:
    left, gone = without_reversals_cut_away(case, ends)
    if not left.copies:
        return MatchResult(case=case, matched=(), residues=gone)
    outcome = without_those_gone(_paired(left, contract, deadlines), ends, unread)
    return replace(outcome, residues=(*outcome.residues, *gone)) if gone else outcome


def _paired(case: MatchGroup, contract: Contract, deadlines: Deadlines) -> MatchResult:
    if case.parts is not None:
        return pair_group(case, direction=contract.direction, deadlines=deadlines)
    return pair_key(
        case,
        direction=contract.direction,
        deadlines=deadlines,
        legs=contract.legs,
        rows_keep_sign=contract.rows_keep_sign,
        columns=contract.event.compared,
    )


def attribute(paired: PairedItems) -> tuple[Evidence, LookUps]:
    """Read who wrote what is not simply matched, and put the evidence together."""
    located, deadlines = paired.dated.located, paired.dated.deadlines
    grouped, scanned = located.grouped, located.grouped.scanned
    sides, cut, past, scan = scanned.sides, scanned.cut, scanned.past, scanned.scan
    look_ups, around = located.look_ups, located.look_ups.cluster_state
    spark_rows = {**scan.rows_by_partition, **scan.input_rows_by_partition}
    record_origins = _record_origins(paired)
    known = _and_known(located.known, scanned.known_repairs(action_ids_of(record_origins, {})))
    written = believed_records(record_origins, known)
    if scanned.stored_look_ups is None:
        around = replace(around, repairs=tuple(known[one] for one in sorted(known)) if known is not None else None)
        look_ups = replace(look_ups, cluster_state=around)
    evidence = Evidence(
        contract=scanned.contract,
        cut=cut,
        earlier=EarlierRun(
            cut=past.previous,
            ledger=past.last_read.ledger_slice.snapshot,
            older_rows_expected=past.older_rows_expected,
            unread=tuple(one for one in past.closed if one.n > past.last_read.n),
        ),
        census=tuple(_with_spark_rows(one, spark_rows) for one in located.census),
        totals=_totals(scan),
        oddities=_oddities(sides, scan),
        outcomes=paired.outcomes,
        incomplete=paired.legs,
        record_origins=written.records,
        looked_up=LookedUp(
            older_rows=look_ups.older_rows,
            horizon_holder=_horizon_holder(sides, cut),
            rows_out_of_place=look_ups.earlier_rows.changed if look_ups.earlier_rows else (),
            forged_repairs=tuple(sorted({*grouped.reversing.forged, *located.believed.forged, *written.forged})),
            lost_indexes=look_ups.lost_indexes,
            gone_unread=tuple(sorted(grouped.gone_unread)),
        ),
        cluster=around,
        deadlines=deadlines,
        measured_grace=located.grace,
    )
    return evidence, look_ups


def _record_origins(paired: PairedItems) -> Mapping[str, LogRecord]:
    """Who wrote what is not simply matched, by item id; nobody knows of a topic that was created anew."""
    located, scanned = paired.dated.located, paired.dated.located.grouped.scanned
    before = located.look_ups.cluster_state.partitions_before
    recreated = {one.topic for one in before if is_recreated(scanned.cut, one)}
    deadlines = paired.dated.deadlines
    repaired = {one.item.item_id for one in located.look_ups.cluster_state.actions}
    wanted = origins_needed(
        scanned.contract, paired.outcomes, paired.legs, located.census, deadlines, repaired=repaired
    )
    wanted |= {topic_item_id(one.topic, one.partition, one.kafka_offset) for one in scanned.scan.out_of_order}
    return read_record_origins(
        scanned.sides.fetcher(),
        frozenset(item_id for item_id in wanted if topic_of(item_id) not in recreated),
        scanned.contract.event_on,
        scanned.scan.log_records,
        located.grouped.heads,
    )


def _totals(scan: SliceScan) -> SideTotals:
    return SideTotals(
        topic_rows=scan.topic_rows,
        ledger_rows=scan.ledger_rows,
        topic_money=scan.topic_money,
        ledger_money=scan.ledger_money,
        lags=scan.lags,
    )


def _oddities(sides: Sources, scan: SliceScan) -> ScanOddities:
    return ScanOddities(
        unreadable_count=scan.unreadable_count + scan.input_unreadable_count,
        unreadable_sample=tuple(_with_its_problem(sides, one) for one in scan.unreadable_sample),
        differently_written=scan.differently_written,
        out_of_order=scan.out_of_order,
        out_of_order_count=scan.out_of_order_count,
        record_times=scan.record_times,
        second_readings=scan.second_readings,
        repeated_row_ids=scan.repeated_row_ids,
    )


def _and_known(before: Repairs, more: Repairs) -> Repairs:
    return None if before is None or more is None else {**before, **more}


def _with_its_problem(sides: Sources, record: UnreadableRecord) -> UnreadableRecord:
    part = TopicPartition(topic=record.topic, partition=record.partition)
    decoder = EventDecoder(sides.contract.event_on(record.topic), several_legs=len(sides.contract.legs) > 1)
    try:
        problem = why_unreadable(sides.fetcher(fetch_bytes=1), part, record.kafka_offset, decoder)
    except OffsetNotInLog:
        problem = ""
    return replace(record, problem=problem)


def _lost_offsets(
    cut: Cut, past: RunHistory, grace: Grace, around: ClusterState, census: Iterable[PartitionCensus]
) -> bool:
    """This cut's topics, behind it too, or an earlier cut's so late that a partner within its grace may be in this."""
    ends = {part.offsets.topic_partition: part.offsets.kafka_offset_end for part in cut.topic_slices}
    if any(part.log_start > ends.get(part.topic_partition, part.log_start) for part in around.partitions_after):
        return True
    if cut.has_expired or around.rewritten or any(one.compacted for one in census):
        return True
    if any(around.discontinuity_of(cut, topic_slice) for topic_slice in cut.topic_slices):
        return True
    if any(True for _ in partitions_changed(cut, around)):
        return True
    return any(past.previous.marked_at_utc <= loss.marked_at_utc + grace.duration for loss in past.losses)


def _out_of_sight(contract: Contract, cut: Cut, past: RunHistory, look_ups: LookUps) -> OutOfSight:
    starts, left_from = past.ledger_starts, past.previous.ledger_slice.left_from
    older = starts.rows_may_be_older | ({cut.n} if look_ups.rows_may_be_older else set())
    return out_of_sight(
        contract.direction,
        {cut.n, *(item.first_seen_cut for item in past.carried)},
        (*past.losses, *look_ups.lost_before_the_books),
        LedgerStarts(
            position_start={
                **starts.position_start,
                past.previous.n: past.previous.ledger_slice.position_start,
                cut.n: cut.ledger_slice.position_start,
            },
            rows_move=contract.ledger.rows_move,
            moved_from=starts.moved_from,
            rows_stay=contract.ledger.slice_by == "written_xid" or contract.ledger.kind == "iceberg",
            rows_may_be_older=older,
            left_from={**starts.left_from, **({past.previous.n: left_from} if left_from is not None else {})},
            older_below=older_rows_below(past.baseline),
            seen_first=past.inputs_seen_first,
        ),
        log_is_whole=look_ups.log_is_whole,
        legs_lost_within=look_ups.legs_lost_within,
        legs_of_before_lost=_has_lost_anything(contract, cut, past, look_ups.cluster_state),
    )


def _has_lost_anything(contract: Contract, cut: Cut, past: RunHistory, around: ClusterState) -> bool:
    """Return whether anything that the topics ever held may have left the log by now."""
    now = (*(part.snapshot for part in cut.topic_slices), *around.partitions_before, *around.partitions_after)
    return any(
        part.log_start > 0 or around.compacts(part.topic) or is_recreated(past.baseline, part)
        for part in now
        if part.topic in contract.topics
    )


def _horizon_holder(sides: Sources, cut: Cut) -> HorizonHolder | None:
    held = cut.ledger_slice.held
    return sides.ledger.holder(horizon=cut.ledger_slice.position_end) if held else None


def _tell_rows_apart(
    engine: Engine, sides: Sources, cut: Cut, past: RunHistory, scan: SliceScan, stored: LookUps | None
) -> _Rows:
    """Which rows that were read are rows of items, and which are rows of their own.

    Broken and written-off items that are no longer pairable, and so not carried, take part where their rows are read
    once more.
    """
    came_again = cut.ledger_slice.row_ids_came_again
    ids_repeat = (scan.row_ids_repeat or came_again) if stored is None else stored.rows_beside is not None
    known = {item.item_id for item in past.carried}
    rows = {copy.item_id for copy in scan.copies if copy.side is ItemSide.LEDGER} - known
    judged = {item.item_id: item for item in judged_items_as_of(engine, cut.contract, cut.n, rows)}
    if ids_repeat:
        judged |= {item.item_id: item for item in past.surplus_items if item.side is ItemSide.LEDGER}
    items = (*past.carried, *judged.values())
    of_rows = items_of_rows(items, scan.copies, ids_repeat=ids_repeat)
    beside = stored.rows_beside if stored else None
    if ids_repeat and stored is None:
        beside = _rows_beside(sides, cut, scan, of_rows)
    rows_change = sides.contract.ledger.rows_change and not came_again
    copies = tuple(
        with_ids_of_their_own(scan.copies, items, of_rows, beside or (), rows_change=rows_change, cut_n=cut.n)
    )
    read_again = {copy.item_id for copy in copies} & judged.keys()
    names: dict[str, list[str]] = {}
    for item_id in sorted(judged.keys() - read_again):
        names.setdefault(judged[item_id].match_key, []).append(item_id)
    return _Rows(
        copies=copies,
        items=(*past.carried, *(judged[item_id] for item_id in sorted(read_again))),
        beside=beside,
        names=RowNames(ids_repeat=ids_repeat, judged=names),
    )


def _rows_beside(
    sides: Sources, cut: Cut, scan: SliceScan, of_rows: Mapping[str, Sequence[OpenItem]]
) -> tuple[str, ...]:
    """Asks the ledger about the keys of items alone whose row id a row of the slice has too."""
    items = [item for found in of_rows.values() for item in found]
    keys = {item.match_key for item in items} - {""}
    rows = sides.ledger.look_up_rows(keys, cut.ledger_slice) if keys else {}
    return tuple(sorted(standing_beside(of_rows, scan.copies, rows)))


def _surplus_rows(engine: Engine, cut: Cut, look_ups: LookUps) -> frozenset[str]:
    """Return those of the looked-up rows that earlier runs judged a surplus, written off since or not."""
    rows = {seen.item_id for found in look_ups.by_key.values() for seen in found if seen.side is ItemSide.LEDGER}
    judged = judged_items_as_of(engine, cut.contract, cut.n, rows)
    return frozenset(item.item_id for item in judged if may_be_taken_back(item))


def _beside_unread(engine: Engine, cut: Cut, groups: Iterable[MatchGroup], look_ups: LookUps) -> frozenset[str]:
    """Return those of the rows that look-ups show of events without a row of their own which earlier runs called one
    too many beside one that nobody has read.
    """
    rowless = (one.match_key for one in groups if not one.side(ItemSide.LEDGER))
    seen_of = (seen for key in rowless for seen in look_ups.by_key.get(key, ()))
    rows = {seen.item_id for seen in seen_of if seen.place is RecordLocation.EARLIER_SLICE}
    return rows_beside_unread_as_of(engine, cut.contract, cut.n, rows)


def _undecided(engine: Engine, cut: Cut, look_ups: LookUps) -> frozenset[str]:
    """Return those of the looked-up copies that earlier runs could not judge."""
    copies = {seen.item_id for found in look_ups.by_key.values() for seen in found}
    return undecided_items_as_of(engine, cut.contract, cut.n, copies)


def _oldest_deadline(cut: Cut, contract: Contract, carried: Iterable[OpenItem]) -> datetime:
    return min([cut.marked_at_utc, *(item.due_utc for item in carried if item.state is ItemState.OPEN)])


def _with_spark_rows(census: PartitionCensus, rows: Mapping[tuple[str, int], int]) -> PartitionCensus:
    found = rows.get((census.topic, census.partition), 0)
    return census if census.spark_rows == found else replace(census, spark_rows=found)
