"""From a scan to evidence: group the exceptional copies by key, look up what has no partner, find who produced what.

Asks both sides about exceptions only, so its cost grows with breaks and open items, not with rows.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from sqlalchemy import Engine

from tallystick.contract.contract import Contract
from tallystick.judging.record_origins import origins_needed, read_identities
from tallystick.kafka_cluster.cursor_progress import LOOK_BACK_CUTS, held_positions
from tallystick.kafka_cluster.snapshot import read_clusters
from tallystick.kafka_cluster.state import SURROUNDINGS, ClusterState, ExecutedAction, PositionSums
from tallystick.kafka_log.event_decoder import EventReader
from tallystick.kafka_log.fetch import OffsetNotInLog
from tallystick.kafka_log.header_cache import KeptHeads
from tallystick.kafka_log.offset_census import OffsetProgress, OnProgress, take_census, with_compaction
from tallystick.kafka_log.record import why_unreadable
from tallystick.ledger.key_index import ReadableIndexes, readable_indexes
from tallystick.ledger.protocol import HorizonHolder
from tallystick.matching.evidence import Evidence, UnreadableRecord
from tallystick.matching.grace import grace_in_force
from tallystick.matching.grouping import (
    group_by_key,
    group_by_transaction,
    not_judged_before,
    without_repeats,
)
from tallystick.matching.known_repairs import action_ids_of, believed_records, believed_rows, repairs_by_id
from tallystick.matching.match_case import Deadlines, Entry
from tallystick.matching.pairing import pair_key, topic_of
from tallystick.matching.producer_acks import without_compacted
from tallystick.matching.reversals import may_be_taken_back, possible_reversals, with_reversals, with_row_reversals
from tallystick.matching.row_identity import RowNames, items_of_rows, standing_beside, with_ids_of_their_own
from tallystick.matching.scan_result import SliceScan, topic_item_id
from tallystick.matching.unreadable_ranges import LedgerStarts, Loss, OutOfSight, out_of_sight
from tallystick.model.census_values import PartitionCensus
from tallystick.model.cut import Cut, LedgerSnapshot, PartitionSnapshot, continues_history, is_recreated
from tallystick.model.known_repair import Repairs
from tallystick.model.offsets import TopicPartition
from tallystick.model.open_item import ItemSide, ItemState, OpenItem
from tallystick.model.partner_lag import Grace, TopicLag
from tallystick.pipeline.lookups import LookUps, look_up
from tallystick.pipeline.sources import Sources
from tallystick.store.plans.plan_store import executed_actions, known_repairs
from tallystick.store.runs.close_store import closed_cuts_before
from tallystick.store.runs.cut_store import read_cursor_positions, read_cut
from tallystick.store.runs.loss_store import ledger_starts_of, losses_before, moved_below, transactions_judged_before
from tallystick.store.runs.open_item_store import judged_items_as_of, surplus_items_as_of
from tallystick.store.runs.run_history_store import (
    key_indexes_before,
    lags_of_clean_runs,
    ledger_rows_before,
    surroundings_document,
)
from tallystick.store.runs.sample_store import read_samples


@dataclass(frozen=True, kw_only=True)
class RunHistory:
    """What earlier cuts left behind, as of this one."""

    baseline: Cut
    previous: Cut
    carried: tuple[OpenItem, ...]
    older_rows_expected: int | None
    losses: tuple[Loss, ...] = ()
    """Earlier cuts of which retention took something before it was read."""
    ledger_starts: LedgerStarts = field(default_factory=LedgerStarts)
    """Of the cuts that first saw what is carried."""
    rows_moved_below: int = 0
    clean_lags: tuple[tuple[TopicLag, ...], ...] = ()
    """What MATCHED runs just before this one measured."""
    closed: tuple[Cut, ...] = ()
    """Earlier cuts that a person closed, so that nobody has read them."""
    too_many: tuple[OpenItem, ...] = ()
    """Copies that are one too many, and that nothing but a reversal ends: no part of the pairing."""


def read_history(engine: Engine, contract: Contract, cut: Cut, carried: tuple[OpenItem, ...]) -> RunHistory:
    """Read the baseline, the previous cut and the guard's expected count. Only a baseline has no past."""
    baseline = read_cut(engine, contract.contract, 0)
    previous = read_cut(engine, contract.contract, cut.n - 1)
    assert baseline is not None and previous is not None
    return RunHistory(
        baseline=baseline,
        previous=previous,
        carried=carried,
        older_rows_expected=ledger_rows_before(engine, contract.contract, cut.n),
        losses=losses_before(engine, contract.contract, cut.n),
        ledger_starts=ledger_starts_of(engine, contract.contract, {item.first_seen_cut for item in carried}),
        rows_moved_below=moved_below(engine, contract.contract, cut.n - 1),
        clean_lags=lags_of_clean_runs(engine, contract.contract, cut.n),
        closed=closed_cuts_before(engine, contract.contract, cut.n),
        too_many=surplus_items_as_of(engine, contract.contract, cut.n),
    )


def open_indexes(engine: Engine, contract: Contract, cut: Cut, artifacts: Path) -> ReadableIndexes:
    """The indexes of keys that a run of this cut may ask."""
    stored = key_indexes_before(engine, contract.contract, cut.n, windows=contract.ledger.index_windows)
    indexes = readable_indexes(artifacts, stored)
    if not contract.input_topics:
        return indexes
    oldest = read_cut(engine, contract.contract, indexes.unbroken_from or cut.n)
    if oldest is None or losses_before(engine, contract.contract, cut.n):
        return indexes
    starts = {part.offsets.topic_partition: part.offsets.kafka_offset_start for part in oldest.topic_slices}
    return replace(indexes, reach=starts)


def take_cut_census(sides: Sources, cut: Cut, on_progress: OnProgress) -> tuple[PartitionCensus, ...]:
    """Census of every slice of the cut. tell: how far it is. Raises OffsetNotInLog where the log no longer holds it."""
    fetch = sides.fetcher(ahead=[part.readable for part in cut.topic_slices])
    told = OffsetProgress(sum(len(part.readable) for part in cut.topic_slices), on_progress)
    return tuple(
        take_census(
            fetch,
            part.readable,
            log_start=part.snapshot.log_start,
            lso=part.snapshot.lso,
            high_watermark=part.snapshot.high_watermark,
            told=told,
        )
        for part in cut.topic_slices
    )


def investigate(
    engine: Engine,
    sides: Sources,
    cut: Cut,
    past: RunHistory,
    scan: SliceScan,
    census: Sequence[PartitionCensus],
    *,
    partitions_before: tuple[PartitionSnapshot, ...],
    stored_look_ups: LookUps | None,
    indexes: ReadableIndexes | None = None,
) -> tuple[Evidence, LookUps]:
    """Prepare all that the classes judge by.

    partitions_before: the topics as they stood before the scan. stored_look_ups: the first answers, when a cut is
    judged again. indexes: of keys; not asked then.
    """
    contract = sides.contract
    rows = _tell_rows_apart(engine, sides, cut, past, scan, stored_look_ups)
    cases = group_by_key(rows.copies, rows.items, ignore_case=contract.currency_case == "ignored")
    too_many = {item.item_id: item for item in (*past.carried, *past.too_many) if may_be_taken_back(item)}
    asked = possible_reversals(cases, too_many.values())
    heads = KeptHeads(of=scan.heads, fetch_one=sides.fetcher(fetch_bytes=1))
    records = read_identities(sides.fetcher(), asked, contract.event_on, scan.log_records, heads)
    known = _known_repairs(engine, stored_look_ups, action_ids_of(records, {}))
    reversing = believed_records(records, known)
    cases = with_reversals(cases, reversing.records, too_many)
    legs = group_by_transaction(scan.incomplete, past.carried) if len(contract.legs) > 1 else ()
    legs = not_judged_before(
        legs, transactions_judged_before(engine, cut.contract, cut.n, {case.transaction_key for case in legs})
    )
    grace = grace_in_force(contract, past.clean_lags)
    new_copies_due_utc = cut.marked_at_utc + grace.duration
    look_ups = stored_look_ups or look_up(
        sides,
        cut,
        baseline=past.baseline,
        older_rows_expected=past.older_rows_expected,
        rows_moved_below=past.rows_moved_below,
        samples=read_samples(engine, contract.contract, since_utc=_oldest_deadline(cut, contract, past.carried)),
        cases=cases,
        transaction_keys={
            case.transaction_key
            for case in legs
            if (case.carried.due_utc if case.carried else new_copies_due_utc) <= cut.now_utc
        },
        new_copies_due_utc=new_copies_due_utc,
        scan=scan,
        heads=heads,
        indexes=indexes,
        closed=past.closed,
        row_names=rows.names,
    )
    if stored_look_ups is None:
        around = read_surroundings(engine, sides, cut, past, partitions_before=partitions_before)
        look_ups = replace(look_ups, surroundings=around, rows_beside=rows.beside)
    around = look_ups.surroundings
    known = _and_known(known, _known_repairs(engine, stored_look_ups, action_ids_of({}, look_ups.by_key)))
    seen = believed_rows(look_ups.by_key, known)
    cases = with_row_reversals(cases, seen.sightings, too_many.values())
    census = [with_compaction(one, compacts=around.compacts(one.topic)) for one in census]
    lost_offsets = _lost_offsets(cut, past, grace, around, census)
    hiding = {part.offsets.topic for part in cut.topic_slices if around.may_hide_records(part.snapshot)}
    deadlines = Deadlines(
        now_utc=cut.now_utc,
        new_copies_due_utc=new_copies_due_utc,
        topic_settled_until_utc=None if hiding & set(contract.topics) else look_ups.topic_settled_until_utc,
        ledger_settled_until_utc=None if hiding & set(contract.input_topics) else look_ups.ledger_settled_until_utc,
        topic_lost_offsets=lost_offsets,
        cut_n=cut.n,
        out_of_sight=_out_of_sight(contract, cut, past, look_ups),
        inputs_out_of_sight=look_ups.inputs_out_of_sight or (bool(contract.input_topics) and lost_offsets),
        rows_may_be_older=look_ups.rows_may_be_older,
    )
    rows_too_many = _rows_too_many(engine, cut, look_ups) if contract.ledger.by_xmin else frozenset()
    outcomes = tuple(
        pair_key(
            replace(
                case,
                sightings=without_compacted(seen.sightings.get(case.match_key, ()), look_ups.surroundings),
                too_many=rows_too_many,
            ),
            direction=contract.direction,
            deadlines=deadlines,
            legs=contract.legs,
            rows_keep_sign=contract.rows_keep_sign,
        )
        for case in cases
    )
    legs_cases = tuple(
        replace(case, sightings=look_ups.by_transaction.get(case.transaction_key, {}))
        for case in without_repeats(legs, outcomes)
    )
    recreated = {one.topic for one in around.partitions_before if is_recreated(cut, one)}
    wanted = origins_needed(contract, outcomes, legs_cases, census, deadlines)
    wanted |= {topic_item_id(one.topic, one.partition, one.kafka_offset) for one in scan.out_of_order}
    wanted = frozenset(item_id for item_id in wanted if topic_of(item_id) not in recreated)
    spark_rows = {**scan.rows_by_partition, **scan.input_rows_by_partition}
    identities = read_identities(sides.fetcher(), wanted, contract.event_on, scan.log_records, heads)
    known = _and_known(known, _known_repairs(engine, stored_look_ups, action_ids_of(identities, {})))
    written = believed_records(identities, known)
    if stored_look_ups is None:
        around = replace(around, repairs=tuple(known[one] for one in sorted(known)) if known is not None else None)
        look_ups = replace(look_ups, surroundings=around)
    evidence = Evidence(
        contract=contract,
        cut=cut,
        previous_ledger=past.previous.ledger_slice.snapshot,
        census=tuple(_with_spark_rows(one, spark_rows) for one in census),
        topic_rows=scan.topic_rows,
        ledger_rows=scan.ledger_rows,
        older_rows=look_ups.older_rows,
        older_rows_expected=past.older_rows_expected,
        unreadable_count=scan.unreadable_count + scan.input_unreadable_count,
        unreadable_sample=tuple(_with_its_problem(sides, one) for one in scan.unreadable_sample),
        outcomes=outcomes,
        incomplete=legs_cases,
        identities=written.records,
        forged_repairs=tuple(sorted({*reversing.forged, *seen.forged, *written.forged})),
        horizon_holder=_horizon_holder(sides, cut),
        deadlines=deadlines,
        surroundings=around,
        previous_cut=past.previous,
        topic_money=scan.topic_money,
        ledger_money=scan.ledger_money,
        differently_written=scan.differently_written,
        out_of_order=scan.out_of_order,
        out_of_order_count=scan.out_of_order_count,
        record_times=scan.record_times,
        second_readings=scan.second_readings,
        lags=scan.lags,
        measured_grace=grace,
        rows_out_of_place=look_ups.earlier_rows.changed if look_ups.earlier_rows else (),
        lost_indexes=look_ups.lost_indexes,
        repeated_row_ids=scan.repeated_row_ids,
    )
    return evidence, look_ups


def _known_repairs(engine: Engine, stored: LookUps | None, action_ids: Collection[str]) -> Repairs:
    """Of a cut that is judged again, those that were known then."""
    if stored is None:
        return repairs_by_id(known_repairs(engine, action_ids))
    return None if stored.surroundings.repairs is None else repairs_by_id(stored.surroundings.repairs)


def _and_known(before: Repairs, more: Repairs) -> Repairs:
    return None if before is None or more is None else {**before, **more}


def _with_its_problem(sides: Sources, record: UnreadableRecord) -> UnreadableRecord:
    part = TopicPartition(topic=record.topic, partition=record.partition)
    reader = EventReader(sides.contract.event_on(record.topic), several_legs=len(sides.contract.legs) > 1)
    try:
        problem = why_unreadable(sides.fetcher(fetch_bytes=1), part, record.kafka_offset, reader)
    except OffsetNotInLog:
        problem = ""
    return replace(record, problem=problem)


def read_surroundings(
    engine: Engine, sides: Sources, cut: Cut, past: RunHistory, *, partitions_before: tuple[PartitionSnapshot, ...]
) -> ClusterState:
    """Ask the cluster and the store what stands around the cut, once; each answer has a module of its own."""
    earlier = SURROUNDINGS.validate_python(surroundings_document(engine, sides.contract.contract, cut.n - 1))
    around = read_clusters(sides.clusters(), sides.contract, cut, partitions_before=partitions_before, earlier=earlier)
    held = [one.topic_partition for one in held_positions(cut)]
    return replace(
        around,
        server_proofs=sides.server_proofs,
        actions=_actions(engine, sides.contract, (*past.carried, *past.too_many)),
        cursor_positions=read_cursor_positions(engine, sides.contract.contract, held, before=cut.n, cuts=LOOK_BACK_CUTS)
        if held
        else (),
        ledger=_another_history(cut, sides.ledger.read_snapshot()),
        ledger_files=sides.ledger.changed_files(cut.ledger_slice),
        ledger_sums=_position_sums(sides, cut, earlier),
    )


def _position_sums(sides: Sources, cut: Cut, earlier: ClusterState) -> PositionSums | None:
    """Asked after the scan, so that the next run expects no row that this one has not read."""
    now = sides.ledger.sum_of_positions(below=cut.ledger_slice.position_start)
    at_end = sides.ledger.sum_of_positions(below=cut.ledger_slice.position_end)
    if now is None or at_end is None:
        return None
    return PositionSums(expected=earlier.ledger_sums.at_end if earlier.ledger_sums else None, now=now, at_end=at_end)


def _another_history(cut: Cut, read: LedgerSnapshot) -> LedgerSnapshot | None:
    """The server that was read, where it does not go on from the one that the cut was made on."""
    same_history = continues_history(cut.ledger_slice.snapshot, read, read_up_to=cut.ledger_slice.position_end)
    return None if same_history else read


def _actions(engine: Engine, contract: Contract, carried: Iterable[OpenItem]) -> tuple[ExecutedAction, ...]:
    """Compensations that were published and whose item was broken still when the cut was made."""
    broken = [item for item in carried if item.state is ItemState.BROKEN and item.break_id]
    executed = executed_actions(engine, contract.contract) if broken else {}
    return tuple(
        ExecutedAction(action_id=executed[item.break_id][0], executed_utc=executed[item.break_id][1], item=item)
        for item in broken
        if item.break_id in executed
    )


def _lost_offsets(
    cut: Cut, past: RunHistory, grace: Grace, around: ClusterState, census: Iterable[PartitionCensus]
) -> bool:
    """This cut's topics, or an earlier cut's so late that a partner within its grace may be in this one."""
    if cut.has_expired or around.rewritten or any(one.compacted for one in census):
        return True
    if any(around.discontinuity_of(cut, topic_slice) for topic_slice in cut.topic_slices):
        return True
    return any(past.previous.marked_at_utc <= loss.marked_at_utc + grace.duration for loss in past.losses)


def _out_of_sight(contract: Contract, cut: Cut, past: RunHistory, look_ups: LookUps) -> OutOfSight:
    starts = past.ledger_starts
    older = starts.rows_may_be_older | ({cut.n} if look_ups.rows_may_be_older else set())
    return out_of_sight(
        contract.direction,
        {cut.n, *(item.first_seen_cut for item in past.carried)},
        (*past.losses, *look_ups.lost_before_the_books),
        LedgerStarts(
            position_start={**starts.position_start, cut.n: cut.ledger_slice.position_start}, rows_may_be_older=older
        ),
        log_is_whole=look_ups.log_is_whole,
    )


def _horizon_holder(sides: Sources, cut: Cut) -> HorizonHolder | None:
    held = cut.ledger_slice.held
    return sides.ledger.holder(horizon=cut.ledger_slice.position_end) if held else None


@dataclass(frozen=True, kw_only=True)
class _Rows:
    """copies: of both sides, each row under its item's id. items: those that take part. beside: as LookUps has it."""

    copies: tuple[Entry, ...]
    items: tuple[OpenItem, ...]
    beside: tuple[str, ...] | None
    names: RowNames


def _tell_rows_apart(
    engine: Engine, sides: Sources, cut: Cut, past: RunHistory, scan: SliceScan, stored: LookUps | None
) -> _Rows:
    """Which rows that were read are rows of items, and which are rows of their own.

    Broken and written-off items that are no longer pairable, and so not carried, take part where their rows are read
    once more.
    """
    ids_repeat = scan.row_ids_repeat if stored is None else stored.rows_beside is not None
    known = {item.item_id for item in past.carried}
    rows = {copy.item_id for copy in scan.copies if copy.side is ItemSide.LEDGER} - known
    judged = {item.item_id: item for item in judged_items_as_of(engine, cut.contract, cut.n, rows)}
    if ids_repeat:
        judged |= {item.item_id: item for item in past.too_many if item.side is ItemSide.LEDGER}
    items = (*past.carried, *judged.values())
    of_rows = items_of_rows(items, scan.copies, ids_repeat=ids_repeat)
    beside = stored.rows_beside if stored else _rows_beside(sides, cut, scan, of_rows)
    rows_change = sides.contract.ledger.rows_change
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
) -> tuple[str, ...] | None:
    """Asks the ledger about the keys of items alone whose row id a row of the slice has too."""
    if not scan.row_ids_repeat:
        return None
    items = [item for found in of_rows.values() for item in found]
    keys = {item.match_key for item in items} - {""}
    rows = sides.ledger.look_up_rows(keys, cut.ledger_slice) if keys else {}
    return tuple(sorted(standing_beside(of_rows, scan.copies, rows)))


def _rows_too_many(engine: Engine, cut: Cut, look_ups: LookUps) -> frozenset[str]:
    """Which of the rows that were looked up earlier runs judged one too many, written off since or not."""
    rows = {seen.item_id for found in look_ups.by_key.values() for seen in found if seen.side is ItemSide.LEDGER}
    judged = judged_items_as_of(engine, cut.contract, cut.n, rows)
    return frozenset(item.item_id for item in judged if may_be_taken_back(item))


def _oldest_deadline(cut: Cut, contract: Contract, carried: Iterable[OpenItem]) -> datetime:
    return min([cut.marked_at_utc, *(item.due_utc for item in carried if item.state is ItemState.OPEN)])


def _with_spark_rows(census: PartitionCensus, rows: Mapping[tuple[str, int], int]) -> PartitionCensus:
    return replace(census, spark_rows=rows.get((census.topic, census.partition), 0))
