"""The store's functions about cuts, runs, items and samples, on the store in memory, under the real ones' names.

One file, since they are the real functions' twins, one after the other in the order of the modules that these stand in.
"""

from collections.abc import Collection, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from tallystick.alerting.alert import Alert, Outstanding
from tallystick.compensation.plan import OffsetsUnread
from tallystick.contract.change import refuse_other_books
from tallystick.contract.contract import Contract
from tallystick.kafka_cluster.state import CursorPosition
from tallystick.ledger.earlier_rows import EarlierRows, ReadSlice
from tallystick.ledger.unread_rows import UnreadRows
from tallystick.matching.unreadable_ranges import LedgerStarts, Loss
from tallystick.model.cut import Cut, LedgerSlice, Sample, TopicSlice
from tallystick.model.finding_names import COPIES_DIFFER, SURPLUS_CLASSES, WITHOUT_PARTNER, BreakClass, Doubt
from tallystick.model.findings import Break, DoubtFound, negative_at_stake, total_at_stake
from tallystick.model.offsets import TopicPartition
from tallystick.model.open_item import ItemSide, ItemState, OpenItem, legs_item_id
from tallystick.model.partner_lag import CLEAN_CUTS, TopicLag
from tallystick.model.run_result import KeyIndex, RunResult
from tallystick.model.stored_run import OutstandingBreak, RunSummary, StoredRun
from tallystick.model.verdict import Verdict
from tallystick.store.runs import unread_store
from tallystick.store.runs.cut_store import CutAlreadyOpen, CutNotFound, CutOutOfOrder
from tallystick.store.runs.run_store import AttemptFenced, VerdictDiffers
from tests.simulator.standins.kept_state import KeptClusterState
from tests.simulator.standins.store import Books, ConstraintViolated, CutRow, Store, VerdictRow

_NO_DOCUMENTS: Mapping[str, Any] = {}


def require_same_books(engine: Store, contract: Contract) -> None:
    rows = engine.of(contract.name).cuts
    if rows and rows[-1].contract is contract:
        return  # no field differs
    posted = [row.contract.actions_table for row in rows if row.contract.actions_table]
    posted_in = posted[-1] if posted and contract.actions_table else None
    refuse_other_books(rows[-1].contract if rows else None, contract, posted_in=posted_in)


def read_contract(engine: Store, contract_name: str, n: int) -> Contract | None:
    row = engine.cut_row(contract_name, n)
    return row.contract if row else None


def contract_of_fingerprint(engine: Store, contract_name: str, fingerprint: str) -> Contract | None:
    of_cuts = (row.contract for row in engine.of(contract_name).cuts if row.contract.fingerprint == fingerprint)
    return engine.contracts.get((contract_name, fingerprint)) or next(of_cuts, None)


def contract_begun_under(engine: Store, contract_name: str, fingerprint: str, *, cut_n: int) -> Contract | None:
    return contract_of_fingerprint(engine, contract_name, fingerprint) or read_contract(engine, contract_name, cut_n)


def keep_contract(engine: Store, contract: Contract) -> None:
    if contract_of_fingerprint(engine, contract.name, contract.fingerprint) is None:
        with engine.writing("keep_contract"):
            engine.contracts[contract.name, contract.fingerprint] = contract


def save_cut(engine: Store, contract: Contract, cut: Cut, *, scheduler_run_id: str) -> None:
    with engine.writing("save_cut"):
        rows = engine.of(contract.name).cuts
        if any(row.open for row in rows) or cut.n < len(rows):
            raise CutAlreadyOpen(f"{contract.name}: cut {cut.n} was not stored: another one is unfinished")
        if cut.n != len(rows):
            raise CutOutOfOrder(f"{contract.name}: expected cut {len(rows)}, got {cut.n}")
        _refuse_untiled(rows[-1].cut if rows else None, cut)
        rows.append(CutRow(cut=cut, contract=contract, scheduler_run_id=scheduler_run_id))


def _refuse_untiled(before: Cut | None, cut: Cut) -> None:
    """cut_slice_follows, and window."""
    if cut.window_start_utc > cut.window_end_utc:
        raise ConstraintViolated(f"window: {cut.window_start_utc} {cut.window_end_utc}")
    if before is None:
        return
    if before.ledger_slice.position_end != cut.ledger_slice.position_start:
        raise ConstraintViolated(f"cut_slice_follows: ledger of cut {cut.n}")
    for part in cut.topic_slices:
        last = before.slice_of(part.offsets.topic_partition)
        if last is not None and last.offsets.kafka_offset_end != part.offsets.kafka_offset_start:
            raise ConstraintViolated(f"cut_slice_follows: {part.offsets.topic_partition} of cut {cut.n}")


def read_cut(engine: Store, contract_name: str, n: int) -> Cut | None:
    row = engine.cut_row(contract_name, n)
    return row.cut if row else None


def last_cut(engine: Store, contract_name: str) -> Cut | None:
    rows = engine.of(contract_name).cuts
    return rows[-1].cut if rows else None


def open_cut(engine: Store, contract_name: str) -> Cut | None:
    return next((row.cut for row in engine.of(contract_name).cuts if row.open), None)


def find_cut(engine: Store, contract_name: str, *, window_start_utc: datetime, window_end_utc: datetime) -> Cut | None:
    cuts = [row.cut for row in engine.of(contract_name).cuts]
    of_window = (cut for cut in reversed(cuts) if cut.window_end_utc == window_end_utc)
    return next((cut for cut in of_window if cut.window_start_utc == window_start_utc), None)


def read_cursor_positions(
    engine: Store, contract_name: str, sides: Collection[TopicPartition | None], *, before: int, cuts: int
) -> tuple[CursorPosition, ...]:
    ordered = sorted(sides, key=lambda one: "ledger" if one is None else f"topic:{one.topic}:{one.partition}")
    rows = engine.of(contract_name).cuts[max(0, before - cuts) : before]
    found = (_cursor_position(row, side) for row in rows for side in ordered)
    return tuple(one for one in found if one is not None)


def _cursor_position(row: CutRow, side: TopicPartition | None) -> CursorPosition | None:
    """Asked by each of the cuts behind it, of a side that is held for long."""
    if side not in row.cursors:
        part = row.cut.ledger_slice if side is None else row.cut.slice_of(side)
        row.cursors[side] = part and CursorPosition(
            topic_partition=side,
            cut_n=row.cut.n,
            window_start_utc=row.cut.window_start_utc,
            cursor=part.position_end if isinstance(part, LedgerSlice) else part.offsets.kafka_offset_end,
            mark=part.mark,
        )
    return row.cursors[side]


def read_ledger_slices(engine: Store, contract_name: str) -> tuple[LedgerSlice, ...]:
    return tuple(row.cut.ledger_slice for row in engine.of(contract_name).cuts)


def claim_attempt(engine: Store, contract_name: str, n: int) -> int:
    row = engine.cut_row(contract_name, n)
    if row is None:
        raise CutNotFound(f"{contract_name}: there is no cut {n}")
    with engine.writing("claim_attempt"):
        row.attempt += 1
        claimed = row.attempt
    return claimed


def attempts_at(engine: Store, contract_name: str, n: int) -> int | None:
    row = engine.cut_row(contract_name, n)
    return row.attempt if row and row.open else None


def commit_run(
    engine: Store,
    result: RunResult,
    *,
    attempt: int,
    alerts: Sequence[Alert],
    audited: Sequence[Mapping[str, Any]] = (),
) -> Verdict:
    with engine.writing("commit_run"):
        name = f"{result.contract}: cut {result.cut_n}"
        books, row = engine.of(result.contract), engine.cut_row(result.contract, result.cut_n)
        if row is None:
            raise CutNotFound(f"{name}: no such cut was stored")
        stored = books.verdicts.get(result.cut_n)
        if stored is not None:
            if stored.result.digest != result.digest:
                raise VerdictDiffers(f"{name}: the stored digest is {stored.result.digest}, this is {result.digest}")
            return result.verdict
        if row.attempt != attempt or not row.open:
            raise AttemptFenced(f"{name}: this is attempt {attempt}, the newest is {row.attempt}")
        ids = [one.break_id for one in result.breaks]
        for found in result.breaks:
            engine.breaks.setdefault(found.break_id, (result.contract, result.cut_n, found))
        if len({one.item_id for one in result.items}) != len(result.items):
            raise ConstraintViolated(f"open_item_pk: {name} has an item twice")
        if len(set(ids)) != len(ids):
            raise ConstraintViolated(f"{name} has a break twice")
        engine.insert_items(result.contract, result.cut_n, 0, result.items)
        engine.insert_alerts(alerts)
        for line in audited:
            engine.append_audit(line["contract"], line["plan_id"], line["actor"], line["event"], line["detail"])
        books.verdicts[result.cut_n] = VerdictRow(result=result, attempt=attempt, recorded_at=engine.clock.now)
        row.open = False
    return result.verdict


def read_run(engine: Store, contract_name: str, n: int) -> StoredRun | None:
    verdict, row = engine.of(contract_name).verdicts.get(n), engine.cut_row(contract_name, n)
    if verdict is None or row is None:
        return None
    if verdict.run is None:
        verdict.run = _stored_run(verdict, row)
    return verdict.run


def _stored_run(verdict: VerdictRow, row: CutRow) -> StoredRun:
    return StoredRun(
        result=verdict.result,
        window_start_utc=row.cut.window_start_utc,
        window_end_utc=row.cut.window_end_utc,
        now_utc=row.cut.now_utc,
        scheduler_run_id=row.scheduler_run_id,
        attempt=verdict.attempt,
        recorded_at=verdict.recorded_at,
        cut=row.cut,
        ledger_guarantee=row.contract.ledger.guarantee,
    )


def read_run_head(engine: Store, contract_name: str, n: int) -> StoredRun | None:
    return read_run(engine, contract_name, n)


def list_runs(engine: Store, contract_name: str | None = None, *, limit: int) -> tuple[RunSummary, ...]:
    found = []
    for name, books in engine.books.items():
        if contract_name in (None, name):
            for n in sorted(books.verdicts, reverse=True)[:limit]:
                found.append(_summary(engine, name, n))
    return tuple(found[:limit])


def _summary(engine: Store, contract_name: str, n: int) -> RunSummary:
    run = read_run(engine, contract_name, n)
    assert run is not None
    return RunSummary(
        contract=contract_name,
        cut_n=n,
        verdict=run.result.verdict,
        doubts=run.result.doubts,
        breaks=len(run.result.breaks),
        money_minor={},
        window_start_utc=run.window_start_utc,
        window_end_utc=run.window_end_utc,
        scheduler_run_id=run.scheduler_run_id,
        recorded_at=run.recorded_at,
        completed_by_cut=None,
    )


def judged_until(engine: Store, contract_name: str) -> datetime | None:
    books = engine.of(contract_name)
    judged = (row.cut for row in books.cuts if row.cut.n in books.verdicts)
    return max((min(cut.window_end_utc, cut.now_utc) for cut in judged), default=None)


def append_sample(engine: Store, contract_name: str, sample: Sample) -> None:
    with engine.writing("append_sample"):
        engine.of(contract_name).samples.setdefault(sample.at_utc, sample)


def read_samples(engine: Store, contract_name: str, *, since_utc: datetime) -> tuple[Sample, ...]:
    samples = engine.of(contract_name).samples
    return tuple(samples[at] for at in sorted(samples) if at >= since_utc)


def open_items_as_of(engine: Store, contract_name: str, n: int) -> tuple[OpenItem, ...]:
    return tuple(
        item
        for item in engine.of(contract_name).newest_before(n)
        if item.state is ItemState.OPEN or (item.pairable and item.state is not ItemState.CLEARED)
    )


def surplus_items_as_of(engine: Store, contract_name: str, n: int) -> tuple[OpenItem, ...]:
    newest = engine.of(contract_name).newest_before(n)
    return tuple(item for item in newest if item.state is ItemState.BROKEN and not item.pairable)


def judged_items_as_of(engine: Store, contract_name: str, n: int, item_ids: Collection[str]) -> tuple[OpenItem, ...]:
    judged = (ItemState.BROKEN, ItemState.WRITTEN_OFF)
    newest = engine.of(contract_name).newest_before(n) if item_ids else ()
    return tuple(item for item in newest if item.item_id in item_ids and item.state in judged)


def rows_beside_unread_as_of(engine: Store, contract_name: str, n: int, item_ids: Collection[str]) -> frozenset[str]:
    newest = engine.of(contract_name).newest_before(n) if item_ids else ()
    return frozenset(
        item.item_id
        for item in newest
        if item.item_id in item_ids
        and item.found_as in SURPLUS_CLASSES
        and item.break_id is not None
        and any(
            seen["at"].startswith("ledger:") and seen["place"] in ("unread", "before_baseline")
            for seen in engine.breaks[item.break_id][2].evidence.get("found_elsewhere", ())
        )
    )


def undecided_items_as_of(engine: Store, contract_name: str, n: int, item_ids: Collection[str]) -> frozenset[str]:
    newest = engine.of(contract_name).newest_before(n) if item_ids else ()
    return frozenset(one.item_id for one in newest if one.item_id in item_ids and one.state is ItemState.UNDECIDABLE)


def left_rows_as_of(
    engine: Store, contract_name: str, n: int, transaction_keys: Collection[str]
) -> tuple[OpenItem, ...]:
    newest = engine.of(contract_name).newest_before(n) if transaction_keys else ()
    return tuple(
        one
        for one in newest
        if one.transaction_key in transaction_keys
        and one.side is ItemSide.LEDGER
        and one.state in (ItemState.UNDECIDABLE, ItemState.WRITTEN_OFF)
    )


def count_open_items(engine: Store, contract_name: str) -> int:
    return sum(item.state is ItemState.OPEN for item in engine.of(contract_name).newest())


def ledger_rows_before(engine: Store, contract_name: str, n: int) -> int | None:
    before = engine.of(contract_name).verdicts.get(n - 1)
    if before is None or before.result.figures.ledger_older_rows is None:
        return None
    return before.result.figures.ledger_rows + before.result.figures.ledger_older_rows


def ledger_rows_by_slice(engine: Store, contract_name: str, before: int | None = None) -> tuple[ReadSlice, ...]:
    books = engine.of(contract_name)
    return tuple(
        ReadSlice(
            start=bounds.position_start,
            end=bounds.position_end,
            rows=None if books.verdicts[n].result.read_nothing else books.verdicts[n].result.figures.ledger_rows,
        )
        for n, bounds in ((row.cut.n, row.cut.ledger_slice) for row in books.cuts)
        if n in books.verdicts and bounds.position_start < bounds.position_end and (before is None or n < before)
    )


def ledger_sum_of_slice(engine: Store, contract_name: str, read: ReadSlice, *, prefix: str = "") -> int | None:
    books = engine.of(contract_name)
    for row in books.cuts:
        bounds = row.cut.ledger_slice
        if (bounds.position_start, bounds.position_end) == (read.start, read.end):
            kept = KeptClusterState.validate_python(cluster_state_document(engine, contract_name, row.cut.n))
            at_end, now = (getattr(kept.ledger_sums, f"{prefix}{place}", None) for place in ("at_end", "now"))
            return at_end - now if at_end is not None and now is not None else None
    return None


def earlier_rows_before(engine: Store, contract_name: str, n: int) -> EarlierRows | None:
    verdicts = engine.of(contract_name).verdicts
    newest = max((one for one in verdicts if one < n), default=None)
    document = None if newest is None else verdicts[newest].result.look_ups.get("earlier_rows")
    return EarlierRows.from_json(document) if document else None


def lags_of_clean_runs(engine: Store, contract_name: str, n: int) -> tuple[tuple[TopicLag, ...], ...]:
    verdicts = engine.of(contract_name).verdicts
    clean = (
        verdicts[one].result.lag
        for one in sorted(verdicts)
        if n - CLEAN_CUTS <= one <= n - 1 and verdicts[one].result.verdict is Verdict.MATCHED
    )
    return tuple(lag.topics for lag in clean if lag and lag.topics)


def key_indexes_before(engine: Store, contract_name: str, n: int, *, windows: int) -> dict[int, KeyIndex]:
    verdicts = engine.of(contract_name).verdicts
    named = ((one, verdicts[one].result.key_index) for one in sorted(verdicts) if n - windows <= one <= n - 1)
    return {one: index for one, index in named if index is not None}


def key_index_seed_before(engine: Store, contract_name: str, n: int) -> int | None:
    verdicts = engine.of(contract_name).verdicts
    named = (verdicts[one].result.key_index for one in sorted(verdicts, reverse=True) if one < n)
    return next((index.seed for index in named if index is not None and index.seed is not None), None)


def cluster_state_document(engine: Store, contract_name: str, n: int) -> dict[str, Any]:
    verdict = engine.of(contract_name).verdicts.get(n)
    return verdict.result.look_ups.get("surroundings") or {} if verdict else {}


def losses_before(engine: Store, contract_name: str, n: int) -> tuple[Loss, ...]:
    books = engine.of(contract_name)
    return tuple(
        Loss(
            cut_n=row.cut.n,
            marked_at_utc=row.cut.marked_at_utc,
            ledger_high_mark=row.cut.ledger_slice.snapshot.high_mark,
        )
        for row in books.cuts[:n]
        if row.cut.n in books.verdicts and not books.verdicts[row.cut.n].doubts.isdisjoint(unread_store.OFFSETS_LOST)
    )


def last_torn_cut(engine: Store, contract_name: str, before: int) -> int:
    told = engine.of(contract_name).verdicts.items()
    return max((n for n, one in told if n < before and Doubt.TORN_CUT in one.doubts), default=-1)


def ledger_starts_of(
    engine: Store, contract_name: str, cuts: Collection[int], *, rows_move: bool = False
) -> LedgerStarts:
    books = engine.of(contract_name)
    wanted = [row.cut for row in books.cuts if row.cut.n in cuts]
    judged = [cut for cut in wanted if cut.n in books.verdicts]
    older = {cut.n for cut in judged if books.verdicts[cut.n].result.look_ups.get("rows_may_be_older", False)}
    slices = [row.cut.ledger_slice for row in books.cuts]
    moved_from = {
        cut.n: behind[-1].position_start
        for cut in (wanted if rows_move else ())
        if (behind := [one for one in slices[: cut.n] if one.snapshot.high_mark <= cut.ledger_slice.position_start])
    }
    return LedgerStarts(
        position_start={cut.n: cut.ledger_slice.position_start for cut in wanted},
        rows_move=rows_move,
        moved_from=moved_from,
        rows_may_be_older=frozenset(older),
        left_from={cut.n: cut.ledger_slice.left_from for cut in wanted if cut.ledger_slice.left_from is not None},
    )


def moved_below(engine: Store, contract_name: str, n: int) -> int:
    verdict = engine.of(contract_name).verdicts.get(n)
    return int(verdict.result.look_ups.get("rows_moved_below") or 0) if verdict else 0


def unread_rows_of(engine: Store, contract_name: str, n: int) -> UnreadRows | None:
    verdict = engine.of(contract_name).verdicts.get(n)
    found = verdict.result.look_ups.get("unread_rows") if verdict else None
    return UnreadRows(**found) if found else None


def last_cuts_with_offsets_unread(
    engine: Store,
    contract_name: str,
    topics: Collection[str],
    *,
    log_starts: Mapping[TopicPartition, int] | None = None,
    planned_at: int | None = None,
) -> OffsetsUnread:
    books = engine.of(contract_name)
    then = max(books.verdicts, default=0) if planned_at is None else planned_at
    begins = {part.offsets.topic_partition: part.snapshot.log_start for part in books.cuts[then].cut.topic_slices}
    by_now, by_then = (begins, {}) if log_starts is None else (log_starts, begins)
    gone = {
        (part.offsets.topic, n)
        for n, row in books.verdicts.items()
        if any(found.doubt is Doubt.UNREADABLE_PAYLOAD for found in row.result.doubts)
        for part in books.cuts[n].cut.topic_slices
        if len(part.offsets)
        and by_then.get(part.offsets.topic_partition, 0)
        <= part.offsets.kafka_offset_start
        < by_now.get(part.offsets.topic_partition, 0)
    }
    after = -1 if planned_at is None else planned_at
    unseen = {
        (part.topic, n)
        for n, row in books.verdicts.items()
        if n > after
        for part in KeptClusterState.validate_python(row.result.look_ups.get("surroundings", {})).gone_unseen
    }
    of_cut = {n: _topics_left_unread(books.cuts[n].cut, row.result.doubts) for n, row in books.verdicts.items()}
    return OffsetsUnread(
        at=max((n for n, left in of_cut.items() if left), default=-1),
        at_topic={topic: max((n for n, left in of_cut.items() if topic in left), default=-1) for topic in topics},
        unreadable_at={topic: max((n for of, n in gone | unseen if of == topic), default=-1) for topic in topics},
    )


def last_cuts_before_rows(engine: Store, contract: Contract, cuts: Collection[int]) -> dict[int, int]:
    starts = ledger_starts_of(
        engine,
        contract.name,
        {n for cut_n in cuts for n in (cut_n, cut_n - 1)},
        rows_move=contract.ledger.rows_move,
    )
    marks = {row.cut.n: row.cut.ledger_slice.snapshot.high_mark for row in engine.of(contract.name).cuts}
    return {
        n: max((k for k, mark in marks.items() if k < n and mark <= starts.first_write_of(n)), default=-1) for n in cuts
    }


def _topics_left_unread(cut: Cut, doubts: Collection[DoubtFound]) -> set[str]:
    left = {str(found.details["topic"]) for found in doubts if found.doubt in unread_store.OFFSETS_LOST}
    if any(found.doubt is Doubt.CUT_CLOSED for found in doubts):
        left |= {part.offsets.topic for part in cut.topic_slices if len(part.offsets)}
    return left


def last_cuts_read_whole(
    engine: Store, contract_name: str, asked: Collection[tuple[TopicPartition, int]]
) -> dict[tuple[TopicPartition, int], int]:
    cuts = [row.cut for row in engine.of(contract_name).cuts]

    def before_the_first(part: TopicPartition) -> int:
        return min((cut.n for cut in cuts if _slice_of(cut, part) is not None), default=0) - 1

    whole = {(part, n): [cut.n for cut in cuts[:n] if _has_read_whole(cut, part)] for part, n in asked}
    return {(part, n): max(found, default=before_the_first(part)) for (part, n), found in whole.items()}


def _slice_of(cut: Cut, part: TopicPartition | None) -> TopicSlice | LedgerSlice | None:
    return cut.ledger_slice if part is None else cut.slice_of(part)


def _has_read_whole(cut: Cut, part: TopicPartition | None) -> bool:
    found = _slice_of(cut, part)
    return found is not None and not found.held and not cut.by_time


def sides_read_up_to(engine: Store, contract_name: str, sides: Collection[TopicPartition | None]) -> datetime:
    return min(_side_read_up_to(engine.of(contract_name), side) for side in sides)


def _side_read_up_to(books: Books, side: TopicPartition | None) -> datetime:
    slices = [(row.cut, found) for row in books.cuts if (found := _slice_of(row.cut, side)) is not None]
    read = [(cut, found) for cut, found in slices if _has_read(books, cut, side)]
    newest_cut, newest = read[-1] if read else slices[-1]
    passed = [
        cut.marked_at_utc
        for cut, found in read
        if cut.n > 0
        and not cut.by_time
        and found.mark <= _end_of(newest)
        and _server_of(found) == _server_of(newest)
        and not _waits_for_files(found, [row.cut.ledger_slice for row in books.cuts[cut.n + 1 : newest_cut.n + 1]])
    ]
    if passed:
        return passed[-1]
    before = books.cuts[slices[0][0].n - 1].cut if slices[0][0].n else None
    known = side is not None and before is not None and before.topic_ids(side.topic)
    return before.marked_at_utc if before is not None and known else datetime.min.replace(tzinfo=UTC)


def _has_read(books: Books, cut: Cut, side: TopicPartition | None) -> bool:
    return not any(
        one.doubt is Doubt.CUT_CLOSED
        or (
            one.doubt in (Doubt.TOPIC_RECREATED, Doubt.LOG_TRUNCATED)
            and side is not None
            and one.details.get("topic") == side.topic
        )
        for one in books.verdicts[cut.n].result.doubts
    )


def _end_of(found: TopicSlice | LedgerSlice) -> int:
    return found.position_end if isinstance(found, LedgerSlice) else found.offsets.kafka_offset_end


def _server_of(found: TopicSlice | LedgerSlice) -> tuple[str, int] | None:
    return (found.snapshot.system_identifier, found.snapshot.timeline) if isinstance(found, LedgerSlice) else None


def _waits_for_files(found: TopicSlice | LedgerSlice, later: Sequence[LedgerSlice]) -> bool:
    """Also where the mark is no sample, since it lies above what the server has given out."""
    if isinstance(found, TopicSlice):
        return False
    behind = found.snapshot.keeps_history and found.snapshot.high_mark < found.mark
    return behind or not set(found.left) <= {file for one in later for file in one.files}


def last_cut_with_rows_unread(engine: Store, contract_name: str) -> int:
    books = engine.of(contract_name)
    return max((n for n in books.verdicts if _left_rows_unread(engine, contract_name, n)), default=-1)


def _left_rows_unread(engine: Store, contract_name: str, n: int) -> bool:
    books = engine.of(contract_name)
    bounds = books.cuts[n].cut.ledger_slice
    for found in books.verdicts[n].result.doubts:
        details = found.details
        if found.doubt is Doubt.CUT_CLOSED and bounds.position_start < bounds.position_end:
            return True
        if found.doubt is Doubt.LEDGER_IDS_REUSED:
            return True
        if found.doubt is Doubt.LEDGER_REWRITTEN and (
            (details.get("older_rows") or 0) > (details.get("expected") or 0)
            or any(place["now"] > place["expected"] for place in details.get("places", ()))
        ):
            return True
    return False


def transactions_judged_before(
    engine: Store, contract_name: str, n: int, transaction_keys: Collection[str]
) -> frozenset[str]:
    items = engine.of(contract_name).items
    return frozenset(key for key in transaction_keys if any(one.cut_n < n for one in items.get(legs_item_id(key), ())))


def closed_cuts_before(engine: Store, contract_name: str, n: int) -> tuple[Cut, ...]:
    books = engine.of(contract_name)
    closed = (row.cut for row in books.cuts[:n] if row.cut.n in books.verdicts)
    return tuple(cut for cut in closed if Doubt.CUT_CLOSED in books.verdicts[cut.n].doubts)


def first_cuts_read_whole(
    engine: Store, contract_name: str, asked: Collection[TopicPartition | None], *, behind: int
) -> dict[TopicPartition | None, int]:
    cuts = [row.cut for row in engine.of(contract_name).cuts if row.cut.n > behind]
    whole = {part: [cut.n for cut in cuts if _has_read_some_and_all(cut, part)] for part in asked}
    return {part: found[0] for part, found in whole.items() if found}


def _has_read_some_and_all(cut: Cut, part: TopicPartition | None) -> bool:
    if part is None:
        ledger = cut.ledger_slice
        return not ledger.held and ledger.position_start < ledger.position_end
    found = cut.slice_of(part)
    return found is not None and not found.held and len(found.readable) > 0


def outstanding_breaks(engine: Store, contract_name: str) -> tuple[OutstandingBreak, ...]:
    by_break: dict[Any, list[OpenItem]] = {}
    for item in engine.of(contract_name).newest():
        if item.state is ItemState.BROKEN:
            by_break.setdefault(item.break_id, []).append(item)
    found = [
        OutstandingBreak(
            item_break=engine.breaks[break_id][2],
            cut_n=engine.breaks[break_id][1],
            first_seen_utc=min(item.first_seen_utc for item in items),
            seen_by=tuple((item.item_id, item.first_seen_cut) for item in items),
        )
        for break_id, items in by_break.items()
    ]
    found.sort(key=lambda one: (one.item_break.break_class, one.item_break.match_key, one.item_break.break_id))
    return tuple(found)


def keys_whose_copies_differ(engine: Store, contract_name: str, match_keys: Collection[str]) -> dict[str, BreakClass]:
    of_key: dict[str, list[Break]] = {}
    for of_contract, _, found in engine.breaks.values():
        if of_contract == contract_name and found.match_key in match_keys:
            of_key.setdefault(found.match_key, []).append(found)
    named = {}
    for key, some in of_key.items():
        differing = [one.break_class for one in some if one.break_class in COPIES_DIFFER]
        if differing or len({(one.amount_minor, one.currency) for one in some}) > 1:
            named[key] = min(differing or [one.break_class for one in some])
    return named


def transactions_with_lonely_copies(
    engine: Store, contract_name: str, transaction_keys: Collection[str]
) -> dict[str, BreakClass]:
    standing = {
        item.break_id
        for item in engine.of(contract_name).newest()
        if item.state in (ItemState.BROKEN, ItemState.WRITTEN_OFF)
    }
    lonely = (
        (found.transaction_key, found.break_class)
        for of_contract, _, found in engine.breaks.values()
        if of_contract == contract_name and found.break_class in WITHOUT_PARTNER and found.break_id in standing
    )
    return dict(sorted((one for one in lonely if one[0] in transaction_keys), reverse=True))


def outstanding_classes(
    engine: Store, contract_name: str, *, after: RunResult | None = None
) -> dict[BreakClass, Outstanding]:
    broken = {item.item_id: item for item in engine.of(contract_name).newest() if item.state is ItemState.BROKEN}
    stakes = {item.break_id: engine.breaks[item.break_id][2] for item in broken.values()}
    if after is not None:
        stakes |= {found.break_id: found for found in after.breaks}
        for item in after.items:
            broken.pop(item.item_id, None)
            if item.state is ItemState.BROKEN and item.break_id is not None:
                broken[item.item_id] = item
    by_class: dict[BreakClass, dict[Any, datetime]] = {}
    for item in broken.values():
        ids = by_class.setdefault(stakes[item.break_id].break_class, {})
        ids[item.break_id] = min(item.first_seen_utc, ids.get(item.break_id, item.first_seen_utc))
    return {
        name: Outstanding(
            count=len(ids),
            money=total_at_stake([(stakes[one].currency, stakes[one].amount_minor) for one in ids]),
            first_seen_utc=min(ids.values()),
            negative=negative_at_stake([(stakes[one].currency, stakes[one].amount_minor) for one in ids]),
        )
        for name, ids in sorted(by_class.items())
    }


@contextmanager
def one_run_at_rest(engine: Store, contract_name: str) -> Any:
    """What `no_run_under_way` holds: the newest cut, which is closed. Raises CutAlreadyOpen."""
    rows = engine.of(contract_name).cuts
    if not rows or any(row.open for row in rows):
        raise CutAlreadyOpen(f"{contract_name}: nothing was stored: a run is judging its newest cut")
    yield rows[-1].cut
