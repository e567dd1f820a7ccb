"""Fix what a run reads, and store it before anything is read.

New cuts are made in order; a stored one is found by its window and read again as it was.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import Engine

from tallystick.connections.connections import Connections
from tallystick.contract.contract import Contract
from tallystick.contract.ledger import LedgerSection
from tallystick.contract.verdict_deadline import next_firing
from tallystick.kafka_cluster.snapshot import read_below_baseline
from tallystick.kafka_cluster.state import CLUSTER_STATE, ClusterState
from tallystick.kafka_log.topic_snapshot import read_offsets_at, read_topic_snapshot
from tallystick.ledger.postgres_sql import XMIN_WIDTH_MAX, written_xid_statements
from tallystick.model.cut import (
    Cut,
    Discontinuity,
    LedgerSlice,
    LedgerSnapshot,
    PartitionSnapshot,
    PartitionsVanished,
    Sample,
    TopicSlice,
    choose_sample,
    continues_history,
    discontinued_slice,
    discontinuity,
    is_late,
    mark_by_time,
    next_topic_slice,
    with_lost,
)
from tallystick.model.errors import TallystickError
from tallystick.model.finding_names import Doubt
from tallystick.model.findings import DoubtFound
from tallystick.model.offsets import OffsetRange
from tallystick.model.run_result import unread_result
from tallystick.pipeline.sources import Sources, open_both_sides, sample_of
from tallystick.pipeline.window_order import refuse_not_over, refuse_out_of_order
from tallystick.store.runs.contract_store import require_same_books
from tallystick.store.runs.cut_store import claim_attempt, find_cut, last_cut, open_cut, save_cut
from tallystick.store.runs.run_store import commit_run
from tallystick.store.runs.sample_store import append_sample, read_samples


class LedgerTooFarAhead(TallystickError):
    """More ids were given out since the last cut than the 32 bits of a row tell apart. A retry cures nothing."""


def resolve_cut(
    engine: Engine,
    contract: Contract,
    connections: Connections,
    *,
    window_start_utc: datetime,
    window_end_utc: datetime,
    now_utc: datetime,
    scheduler_run_id: str,
    host_ahead: timedelta | None = None,
) -> Cut:
    """The stored cut of this window; else a new one, stored. An unfinished cut of another window must be judged first.

    A contract's first cut is its baseline: empty slices where the books begin, with their own verdict at once.
    now_utc: by the verdict store's clock. host_ahead: how far this host's clock is ahead of that, to be told.
    Raises BrokerUnreachable, LedgerUnreachable, LedgerRefused, LedgerTooFarAhead, TopicNotFound, PartitionsVanished,
    CutAlreadyOpen, WindowOutOfOrder, WindowNotOver, and ContractChangeRefused where the contract has another meaning
    than the one that the newest cut was made with.
    """
    require_same_books(engine, contract)
    unfinished = open_cut(engine, contract.name)
    if unfinished is not None and unfinished.is_baseline:
        _close_left_baseline(engine, contract, connections, unfinished)
    stored = find_cut(engine, contract.name, window_start_utc=window_start_utc, window_end_utc=window_end_utc)
    if stored is not None:
        return stored
    previous = last_cut(engine, contract.name)
    refuse_out_of_order(contract.name, window_end_utc=window_end_utc, newest=previous)
    refuse_not_over(contract.name, window_end_utc=window_end_utc, now_utc=now_utc)
    with open_both_sides(engine, contract, connections) as sides:
        sides.ledger.describe()
        if contract.kafka.stray_topics:
            read_topic_snapshot(sides.admin, contract.kafka.stray_topics)  # one that is not there is refused here
        if previous is None:
            partitions, (ledger, older_rows) = sides.read_beginning()
        else:
            (partitions, ledger), older_rows = sides.read_marks(), None
            refuse_too_wide(contract.ledger, previous, ledger)
        taken = sample_of(partitions, ledger, at_utc=now_utc)
        append_sample(engine, contract.name, taken)
        samples = read_samples(engine, contract.name, since_utc=min(window_end_utc, now_utc))
        mark = choose_sample(samples, window_end_utc=window_end_utc) if previous else taken
        next_end_utc = next_firing(contract.schedule, window_end_utc)
        by_time = previous is not None and is_late(mark, window_end_utc=window_end_utc, next_end_utc=next_end_utc)
        if previous is not None and by_time:
            mark = _mark_by_time(sides, mark, previous, window_end_utc=window_end_utc)
        following = next_ledger_slice(previous.ledger_slice, ledger, mark) if previous else _baseline_ledger(ledger)
        ledger_slice = sides.ledger.fix(following)
        if previous is not None:
            lost = sides.ledger.lost_anchors(previous.ledger_slice)
            ledger_slice = with_lost(ledger_slice, previous.ledger_slice, lost)
    cut = Cut(
        contract=contract.name,
        n=previous.n + 1 if previous else 0,
        window_start_utc=window_start_utc,
        window_end_utc=window_end_utc,
        marked_at_utc=mark.at_utc,
        now_utc=now_utc,
        by_time=by_time,
        host_ahead_ms=None if host_ahead is None else host_ahead // timedelta(milliseconds=1),
        topic_slices=next_topic_slices(previous, partitions, mark) if previous else _baseline_topics(partitions),
        ledger_slice=ledger_slice,
    )
    save_cut(engine, contract, cut, scheduler_run_id=scheduler_run_id)
    if cut.is_baseline:
        _close_baseline(engine, contract, connections, cut, older_rows=older_rows)
    return cut


def _mark_by_time(sides: Sources, late: Sample, previous: Cut, *, window_end_utc: datetime) -> Sample:
    """Ask both sides where the window's end lies by timestamp."""
    start = previous.ledger_slice.position_end
    end = max(start, late.ledger_high_mark)
    return mark_by_time(
        late,
        offsets={
            part: offset
            for admin, topics in sides.clusters()
            for part, offset in read_offsets_at(
                admin, [part for part, _ in late.high_watermarks if part.topic in topics], at_utc=window_end_utc
            ).items()
        },
        position=sides.ledger.first_position_at(window_end_utc, start=start, end=end),
    )


def _baseline_topics(partitions: Sequence[PartitionSnapshot]) -> tuple[TopicSlice, ...]:
    return tuple(
        TopicSlice(
            offsets=OffsetRange(
                topic=part.topic, partition=part.partition, kafka_offset_start=part.lso, kafka_offset_end=part.lso
            ),
            snapshot=part,
            mark=part.lso,
        )
        for part in partitions
    )


def _baseline_ledger(ledger: LedgerSnapshot) -> LedgerSlice:
    return LedgerSlice(
        position_start=ledger.low_mark,
        position_end=ledger.low_mark,
        snapshot=ledger,
        mark=ledger.low_mark,
        baseline_position=ledger.low_mark,
    )


def next_topic_slices(previous: Cut, partitions: Sequence[PartitionSnapshot], mark: Sample) -> tuple[TopicSlice, ...]:
    """Tile each partition onto the previous cut. Raises PartitionsVanished.

    Where a log does not go on there, the slice is empty: the run doubts it (topic_recreated, log_truncated). A topic
    that was created again has the partitions of the old one, whatever it has now.
    """
    before = {topic_slice.offsets.topic_partition: topic_slice for topic_slice in previous.topic_slices}
    broken_off = {part.topic_partition: discontinuity(previous, part) for part in partitions}
    recreated = {part.topic for part, why in broken_off.items() if why is Discontinuity.RECREATED}
    now = {part.topic_partition: part for part in partitions if part.topic not in recreated}
    vanished = sorted(part for part in before if part not in now and part.topic not in recreated)
    if vanished:
        raise PartitionsVanished(
            f"{vanished[0]}: cut {previous.n} read it, and the broker has it no more; expected each partition "
            "of earlier cuts. If the cluster is the right one, begin new books, by a contract of another name"
        )
    lost = [discontinued_slice(part, part.snapshot) for name, part in before.items() if name.topic in recreated]
    tiled = [
        discontinued_slice(before[name], part)
        if broken_off[name]
        else next_topic_slice(
            part,
            previous=before.get(name),
            mark=mark.high_watermark(name),
            topic_was_read=bool(previous.topic_ids(part.topic)),
        )
        for name, part in now.items()
    ]
    return tuple(sorted((*lost, *tiled), key=lambda topic_slice: topic_slice.offsets.topic_partition))


def next_ledger_slice(previous: LedgerSlice, ledger: LedgerSnapshot, mark: Sample) -> LedgerSlice:
    """Tile onto the previous slice: up to the sample's high mark, never above the horizon, never backwards.

    Where the ids do not go on there, a row below the slice may never have been read: ids may have been given out again.
    """
    same_history = continues_history(previous.snapshot, ledger, read_up_to=previous.position_end)
    return LedgerSlice(
        position_start=previous.position_end,
        position_end=max(previous.position_end, min(mark.ledger_high_mark, ledger.low_mark)),
        snapshot=ledger,
        mark=max(previous.position_end, mark.ledger_high_mark),
        baseline_position=previous.baseline_position,
        reused_below=previous.reused_below if same_history else previous.position_end,
        reused_from=previous.reused_from if same_history else 0,
        row_ids_reused=previous.row_ids_reused if same_history else True,
    )


def refuse_too_wide(ledger: LedgerSection, previous: Cut, now: LedgerSnapshot) -> None:
    """Refuse a slice by xmin that is wider than half of 32 bits. Raises LedgerTooFarAhead."""
    behind = now.high_mark - previous.ledger_slice.position_end
    if ledger.by_xmin and behind > XMIN_WIDTH_MAX:
        add, default = written_xid_statements(ledger.table)
        raise LedgerTooFarAhead(
            f"ledger table {ledger.table}: {behind:,} transaction ids were given out since cut {previous.n} ended; "
            f"expected at most {XMIN_WIDTH_MAX:,}: a row holds 32 bits of its id, so rows that far apart look alike. "
            f"What to do: begin a contract under a new name; with slice_by: written_xid it has no such limit: {add} "
            f"{default}"
        )


def _close_left_baseline(engine: Engine, contract: Contract, connections: Connections, cut: Cut) -> None:
    """Close a baseline that was stored by an attempt that ended there. What it counted of older rows is gone, and a row
    may have been updated since: those of the next slices may be older than the books.
    """
    with open_both_sides(engine, contract, connections) as sides:
        older_rows = sides.ledger.count_older_rows(cut.ledger_slice)
        moved_below = 0 if older_rows is None else sides.ledger.read_snapshot().high_mark
    _close_baseline(engine, contract, connections, cut, older_rows=older_rows, rows_moved_below=moved_below)


def _close_baseline(
    engine: Engine,
    contract: Contract,
    connections: Connections,
    cut: Cut,
    *,
    older_rows: int | None,
    rows_moved_below: int = 0,
) -> None:
    """Store the baseline's own verdict. Quietly the same when it is there already."""
    with open_both_sides(engine, contract, connections) as sides:
        earlier = sides.ledger.count_by_place(cut.ledger_slice, cut_n=cut.n)
        around = ClusterState(anchors=read_below_baseline(sides.clusters(), cut))
    sentence = "This is the contract's first cut: the books begin here; what lies before it is not decidable."
    result = unread_result(
        contract.name,
        cut.n,
        DoubtFound(doubt=Doubt.BASELINE, sentence=sentence),
        digest="baseline",
        look_ups={
            "surroundings": CLUSTER_STATE.dump_python(around, mode="json", by_alias=True),
            **({"earlier_rows": earlier.to_json()} if earlier else {}),
            **({"rows_moved_below": rows_moved_below} if rows_moved_below else {}),
        },
        ledger_older_rows=older_rows,
    )
    attempt = claim_attempt(engine, contract.name, cut.n)
    commit_run(engine, result, attempt=attempt, alerts=())
