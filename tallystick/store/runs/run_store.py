"""Runs: the one commit of a verdict with all that belongs to it, and what later runs, reports and repairs read."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from operator import itemgetter
from typing import Any, NamedTuple
from uuid import UUID

import msgspec
from psycopg import sql
from pydantic import TypeAdapter
from sqlalchemy import (
    ARRAY,
    ColumnElement,
    Connection,
    Engine,
    FromClause,
    Row,
    Select,
    Table,
    Text,
    Uuid,
    any_,
    func,
    insert,
    literal,
    or_,
    select,
    true,
    update,
)
from sqlalchemy.dialects.postgresql import distinct_on

from tallystick.alerting.alert import Alert, Outstanding
from tallystick.contract.contract import Contract
from tallystick.host.gc_tuning import seldom_collected
from tallystick.ledger.earlier_rows import EarlierRows, ReadSlice
from tallystick.model.finding_names import BreakClass
from tallystick.model.findings import Break, DoubtFound, NoticeFound, negative_at_stake, total_at_stake, total_money
from tallystick.model.open_item import ItemSide, ItemState, OpenItem, StandingItems
from tallystick.model.partner_lag import CLEAN_CUTS, RunLag, TopicLag
from tallystick.model.run_result import KeyIndex, RunFigures, RunResult
from tallystick.model.stored_run import OutstandingBreak, RunSummary, StoredRun
from tallystick.model.verdict import Verdict
from tallystick.store.alerts.alert_store import insert_alerts
from tallystick.store.break_lock import hold_breaks
from tallystick.store.runs.cut_store import LEDGER, CutNotFound, cut_of_row
from tallystick.store.runs.late_coverage_store import held_cuts_read_whole_by, read_whole_by
from tallystick.store.schema import (
    SCHEMA,
    audit,
    big_integer,
    contract_version,
    cut_slice,
    item_break,
    item_life,
    open_item,
    without_sign,
)
from tallystick.store.schema import cut as cut_table
from tallystick.store.schema import verdict as verdict_table

_DOUBTS, _FIGURES = TypeAdapter(tuple[DoubtFound, ...]), TypeAdapter(RunFigures)
_NOTICES = TypeAdapter(tuple[NoticeFound, ...])
_LAG, _KEY_INDEX = TypeAdapter(RunLag), TypeAdapter(KeyIndex)
_AS_JSON = msgspec.json.Encoder()


class AttemptFenced(RuntimeError):
    """A newer attempt has claimed the cut, or the cut was closed by another one: this result is not stored."""


class VerdictDiffers(AttemptFenced):
    """The cut has a stored verdict with another digest: the same cut was judged twice with two outcomes."""


def commit_run(
    engine: Engine,
    result: RunResult,
    *,
    attempt: int,
    alerts: Sequence[Alert],
    audited: Sequence[Mapping[str, Any]] = (),
) -> Verdict:
    """Store verdict, breaks, items and alerts, and close the cut: all or nothing. audited: rows of who asked for it.

    Give back the verdict that stands. When it stands already with the same digest, nothing is written. A break that an
    earlier run found and stored stays the one that it found.
    Raises AttemptFenced, VerdictDiffers, CutNotFound.
    """
    with engine.begin() as connection:
        cut = _locked_cut(connection, result)
        stored = _stored_digest(connection, result)
        if stored is not None:
            if stored != result.digest:
                raise VerdictDiffers(f"{_name(result)}: the stored digest is {stored}, this run's is {result.digest}")
            return result.verdict
        if cut.attempt != attempt or not cut.open:
            raise AttemptFenced(f"{_name(result)}: this is attempt {attempt}, the newest is {cut.attempt}")
        hold_breaks(connection, result.contract)
        connection.execute(insert(verdict_table), _verdict_row(result, attempt))
        _copy(connection, item_break, (_break_row(result, found) for found in _first_found(connection, result)))
        _copy(connection, open_item, (_item_row(result, item) for item in result.items))
        insert_alerts(connection, alerts)
        if audited:
            connection.execute(insert(audit), list(audited))
        connection.execute(update(cut_table).where(*_is_cut(result.contract, result.cut_n)).values(open=False))
    return result.verdict


@seldom_collected()
def read_run(engine: Engine, contract_name: str, n: int) -> StoredRun | None:
    """The committed run of cut n, whole."""
    verdict_of_cut = select(verdict_table).where(verdict_table.c.contract == contract_name, verdict_table.c.cut_n == n)
    with engine.connect() as connection:
        verdict = connection.execute(verdict_of_cut).first()
        if verdict is None:
            return None
        cut = connection.execute(select(cut_table).where(*_is_cut(contract_name, n))).one()
        return _stored_run(connection, cut, verdict)


def read_run_head(engine: Engine, contract_name: str, n: int) -> StoredRun | None:
    """The committed run of cut n without its breaks and items, and of its look-ups the surroundings only.

    So it costs the same whatever the run found; the breaks are counted by break_total.
    """
    columns = [column for column in verdict_table.columns if column.name != "look_ups"]
    around = verdict_table.c.look_ups["surroundings"].label("surroundings")
    of_cut: Select[Any] = select(*columns, around).where(
        verdict_table.c.contract == contract_name, verdict_table.c.cut_n == n
    )
    with engine.connect() as connection:
        verdict = connection.execute(of_cut).first()
        if verdict is None:
            return None
        cut = connection.execute(select(cut_table).where(*_is_cut(contract_name, n))).one()
        look_ups = {"surroundings": verdict.surroundings or {}}
        return _stored(connection, cut, verdict, breaks=(), items=(), look_ups=look_ups, standing=())


def list_runs(engine: Engine, contract_name: str | None = None, *, limit: int) -> tuple[RunSummary, ...]:
    """The newest runs first, of one contract or of all."""
    runs = (
        _summaries()
        .order_by(verdict_table.c.recorded_at.desc(), verdict_table.c.contract, verdict_table.c.cut_n.desc())
        .limit(limit)
    )
    if contract_name is not None:
        runs = runs.where(verdict_table.c.contract == contract_name)
    with engine.connect() as connection:
        return tuple(_summary(connection, row) for row in connection.execute(runs).all())


def runs_after(engine: Engine, contract_name: str, n: int) -> tuple[RunSummary, ...]:
    """Runs of the cuts after cut n, in order."""
    runs = (
        _summaries()
        .where(verdict_table.c.contract == contract_name, verdict_table.c.cut_n > n)
        .order_by(verdict_table.c.cut_n)
    )
    with engine.connect() as connection:
        return tuple(_summary(connection, row) for row in connection.execute(runs).all())


def judged_until(engine: Engine, contract_name: str) -> datetime | None:
    """End of the newest window that has a verdict; of one that was cut before it ended, when it was cut."""
    statement = (
        select(func.max(func.least(cut_table.c.window_end_utc, cut_table.c.now_utc)))
        .join(
            verdict_table, (verdict_table.c.contract == cut_table.c.contract) & (verdict_table.c.cut_n == cut_table.c.n)
        )
        .where(cut_table.c.contract == contract_name)
    )
    with engine.connect() as connection:
        found: datetime | None = connection.scalar(statement)
    return found


def open_items_as_of(engine: Engine, contract_name: str, n: int) -> tuple[OpenItem, ...]:
    """Items that cut n carries, as the cuts before it left them: open, or broken or written off and still pairable."""
    newest = _newest_items(contract_name, standing_at=n, known=open_item.c.cut_n < n).subquery()
    carried = (newest.c.state == ItemState.OPEN) | (newest.c.pairable & (newest.c.state != ItemState.CLEARED))
    statement = items_with_class(newest).where(carried).order_by(newest.c.item_id.collate("C"))
    with engine.connect() as connection:
        return tuple(item_of_row(row) for row in connection.execute(statement))


def items_too_many_as_of(engine: Engine, contract_name: str, n: int) -> tuple[OpenItem, ...]:
    """Events and rows that no cut before n could pair any more, broken still: copies one too many. Only what takes them
    back ends them.
    """
    newest = _newest_items(contract_name, standing_at=n, known=open_item.c.cut_n < n).subquery()
    statement = (
        items_with_class(newest)
        .where(newest.c.state == ItemState.BROKEN, ~newest.c.pairable)
        .order_by(newest.c.item_id.collate("C"))
    )
    with engine.connect() as connection:
        return tuple(item_of_row(row) for row in connection.execute(statement))


def judged_items_as_of(engine: Engine, contract_name: str, n: int, item_ids: Collection[str]) -> tuple[OpenItem, ...]:
    """Which of these items the cuts before n left broken or written off, pairable or not."""
    if not item_ids:
        return ()
    newest = (
        select(open_item)
        .where(open_item.c.contract == contract_name, open_item.c.cut_n < n)
        .where(open_item.c.item_id == any_(literal(sorted(item_ids), ARRAY(Text))))
        .order_by(open_item.c.item_id, open_item.c.cut_n.desc(), open_item.c.step.desc())
        .ext(distinct_on(open_item.c.item_id))
        .subquery()
    )
    judged = items_with_class(newest).where(newest.c.state.in_([ItemState.BROKEN, ItemState.WRITTEN_OFF]))
    with engine.connect() as connection:
        return tuple(item_of_row(row) for row in connection.execute(judged.order_by(newest.c.item_id.collate("C"))))


def count_open_items(engine: Engine, contract_name: str) -> int:
    """How many items are open now; broken ones and those given up are not."""
    newest = _newest_items(contract_name).subquery()
    statement = select(func.count()).select_from(newest).where(newest.c.state == ItemState.OPEN)
    with engine.connect() as connection:
        return int(connection.scalar(statement) or 0)


def ledger_rows_before(engine: Engine, contract_name: str, n: int) -> int | None:
    """Rows the ledger must still show below cut n: those older than the cut before it, as counted then, and its slice.

    So a rewritten row is doubted by the cut that finds it, not by every later one. None where they were not counted.
    """
    figures = verdict_table.c.figures
    statement = select(big_integer(figures["ledger_rows"]) + big_integer(figures["ledger_older_rows"])).where(
        verdict_table.c.contract == contract_name, verdict_table.c.cut_n == n - 1
    )
    with engine.connect() as connection:
        counted: int | None = connection.scalar(statement)
    return counted


def ledger_rows_by_slice(engine: Engine, contract_name: str, before: int | None = None) -> tuple[ReadSlice, ...]:
    """What judged cuts, or those before one, have read of the ledger, in order, without slices that are empty."""
    statement = (
        select(cut_slice.c.starts_at, cut_slice.c.ends_at, big_integer(verdict_table.c.figures["ledger_rows"]))
        .join(
            verdict_table,
            (verdict_table.c.contract == cut_slice.c.contract) & (verdict_table.c.cut_n == cut_slice.c.cut_n),
        )
        .where(
            cut_slice.c.contract == contract_name,
            cut_slice.c.side == LEDGER,
            cut_slice.c.starts_at < cut_slice.c.ends_at,
            true() if before is None else cut_slice.c.cut_n < before,
        )
        .order_by(cut_slice.c.slice_n)
    )
    with engine.connect() as connection:
        return tuple(ReadSlice(start=start, end=end, rows=rows) for start, end, rows in connection.execute(statement))


def earlier_rows_before(engine: Engine, contract_name: str, n: int) -> EarlierRows | None:
    """What the run before cut n counted of the rows that carry their transactions' ids; None where it did not count."""
    statement = (
        select(verdict_table.c.look_ups["earlier_rows"])
        .where(verdict_table.c.contract == contract_name, verdict_table.c.cut_n < n)
        .order_by(verdict_table.c.cut_n.desc())
        .limit(1)
    )
    with engine.connect() as connection:
        document = connection.scalar(statement)
    return EarlierRows.from_json(document) if document else None


def lags_of_clean_runs(engine: Engine, contract_name: str, n: int) -> tuple[tuple[TopicLag, ...], ...]:
    """What the MATCHED runs among the CLEAN_CUTS cuts before cut n measured; none of those that measured nothing."""
    statement = select(verdict_table.c.lag).where(
        verdict_table.c.contract == contract_name,
        verdict_table.c.cut_n.between(n - CLEAN_CUTS, n - 1),
        verdict_table.c.verdict == Verdict.MATCHED,
    )
    with engine.connect() as connection:
        stored = connection.scalars(statement).all()
    return tuple(lag.topics for lag in (_LAG.validate_python(one) for one in stored if one) if lag.topics)


def key_indexes_before(engine: Engine, contract_name: str, n: int, *, windows: int) -> dict[int, KeyIndex]:
    """What the verdicts of so many cuts before cut n name, by cut, in order. A baseline has none."""
    statement = (
        select(verdict_table.c.cut_n, verdict_table.c.key_index)
        .where(
            verdict_table.c.contract == contract_name,
            verdict_table.c.cut_n.between(n - windows, n - 1),
        )
        .order_by(verdict_table.c.cut_n)
    )
    with engine.connect() as connection:
        rows = connection.execute(statement).all()
    return {row.cut_n: _KEY_INDEX.validate_python(row.key_index) for row in rows if row.key_index}


def key_index_seed_before(engine: Engine, contract_name: str, n: int) -> int | None:
    """Of the hashes of the newest index below cut n that has one; None where there is none yet."""
    seed = big_integer(verdict_table.c.key_index["seed"])
    statement = (
        select(seed)
        .where(verdict_table.c.contract == contract_name, verdict_table.c.cut_n < n, seed.is_not(None))
        .order_by(verdict_table.c.cut_n.desc())
        .limit(1)
    )
    with engine.connect() as connection:
        found: int | None = connection.scalar(statement)
    return found


def surroundings_document(engine: Engine, contract_name: str, n: int) -> dict[str, Any]:
    """What the run of cut n kept of what stood around it, as tallystick.kafka_cluster.state writes it; else empty."""
    statement = select(verdict_table.c.look_ups["surroundings"]).where(
        verdict_table.c.contract == contract_name, verdict_table.c.cut_n == n
    )
    with engine.connect() as connection:
        return connection.scalar(statement) or {}


def outstanding_breaks(engine: Engine, contract_name: str) -> tuple[OutstandingBreak, ...]:
    """Breaks with an item whose newest state is broken, in order of class, match key and id."""
    with engine.connect() as connection:
        rows = connection.execute(_in_order(_broken_items(contract_name))).all()
    items: dict[UUID, list[Row[Any]]] = {}
    for row in rows:
        items.setdefault(row.break_id, []).append(row)
    return tuple(
        OutstandingBreak(
            item_break=break_of_row(found[-1]),
            cut_n=found[-1].cut_n,
            first_seen_utc=min(row.first_seen_utc for row in found),
            first_seen_cut=min(row.first_seen_cut for row in found),
        )
        for found in items.values()
    )


def outstanding_classes(
    engine: Engine, contract_name: str, *, after: RunResult | None = None
) -> dict[BreakClass, Outstanding]:
    """Count, money and age of the outstanding breaks per class; with `after`, as they will be once it is committed."""
    with engine.connect() as connection:
        return outstanding_seen_by(connection, contract_name, after=after)


def outstanding_seen_by(
    connection: Connection, contract_name: str, *, after: RunResult | None = None
) -> dict[BreakClass, Outstanding]:
    """The same, with what this connection's transaction has written."""
    rows = connection.execute(_broken_items(contract_name)).all()
    broken = {row.item_id: (row.break_id, row.first_seen_utc) for row in rows}
    stakes = {row.break_id: _Stake(BreakClass(row.break_class), row.currency, row.amount_minor) for row in rows}
    if after is not None:
        stakes |= {
            found.break_id: _Stake(found.break_class, found.currency, found.amount_minor) for found in after.breaks
        }
        for item in after.items:
            broken.pop(item.item_id, None)
            if item.state is ItemState.BROKEN and item.break_id is not None:
                broken[item.item_id] = (item.break_id, item.first_seen_utc)
    return _by_class(broken.values(), stakes)


class _Stake(NamedTuple):
    break_class: BreakClass
    currency: str
    amount_minor: int


def _by_class(broken: Iterable[tuple[UUID, datetime]], stakes: Mapping[UUID, _Stake]) -> dict[BreakClass, Outstanding]:
    since: dict[BreakClass, datetime] = {}
    ids: dict[BreakClass, set[UUID]] = {}
    for found_id, first_seen_utc in broken:
        break_class = stakes[found_id].break_class
        ids.setdefault(break_class, set()).add(found_id)
        since[break_class] = min(first_seen_utc, since.get(break_class, first_seen_utc))
    money = {name: [(stakes[one].currency, stakes[one].amount_minor) for one in found] for name, found in ids.items()}
    return {
        break_class: Outstanding(
            count=len(ids[break_class]),
            money=total_at_stake(money[break_class]),
            first_seen_utc=since[break_class],
            negative=negative_at_stake(money[break_class]),
        )
        for break_class in sorted(ids)
    }


def _newest_items(
    contract_name: str, *, standing_at: int | None = None, known: ColumnElement[bool] | None = None
) -> Select[Any]:
    """The newest row of each item that cut `standing_at` may carry or that its run ended; None: that stands now.

    known: which rows count. Looked up item by item, so that its cost grows with what stands, not with what ever stood,
    whatever the planner knows of tables that have just been written.
    """
    ended = item_life.c.ended_cut_n
    stands = ended.is_(None) if standing_at is None else or_(ended.is_(None), ended >= standing_at)
    newest = (
        select(open_item)
        .where(open_item.c.contract == item_life.c.contract, open_item.c.item_id == item_life.c.item_id)
        .where(true() if known is None else known)
        .order_by(open_item.c.cut_n.desc(), open_item.c.step.desc())
        .limit(1)
        .correlate(item_life)
        .lateral("newest")
    )
    return (
        select(newest).select_from(item_life.join(newest, true())).where(item_life.c.contract == contract_name, stands)
    )


def items_with_class(items: FromClause) -> Select[Any]:
    """Rows of open_item as `item_of_row` takes them: with the class of the break that each answers for."""
    of_break = select(item_break.c.break_class).where(item_break.c.break_id == items.c.break_id).correlate(items)
    return select(items, of_break.scalar_subquery().label("found_as"))


def _broken_items(contract_name: str) -> Select[Any]:
    """Break columns, item_id and when and by which cut it was first seen, of each item whose newest state is broken."""
    newest = _newest_items(contract_name).subquery()
    return (
        select(item_break, newest.c.item_id, newest.c.first_seen_utc, newest.c.first_seen_cut)
        .join(newest, newest.c.break_id == item_break.c.break_id)
        .where(newest.c.state == ItemState.BROKEN)
    )


def _in_order(statement: Select[Any]) -> Select[Any]:
    """Byte order, whatever the database's collation: reports must not change with it."""
    c = item_break.c
    return statement.order_by(c.break_class.collate("C"), c.match_key.collate("C"), c.break_id)


def _locked_cut(connection: Connection, result: RunResult) -> Row[Any]:
    statement = select(cut_table).where(*_is_cut(result.contract, result.cut_n)).with_for_update()
    row = connection.execute(statement).first()
    if row is None:
        raise CutNotFound(f"{_name(result)}: no such cut was stored")
    return row


def _stored_digest(connection: Connection, result: RunResult) -> str | None:
    statement = select(verdict_table.c.digest).where(
        verdict_table.c.contract == result.contract, verdict_table.c.cut_n == result.cut_n
    )
    digest: str | None = connection.scalar(statement)
    return digest


def _is_cut(contract_name: str, n: int) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return cut_table.c.contract == contract_name, cut_table.c.n == n


def _name(result: RunResult) -> str:
    return f"{result.contract}: cut {result.cut_n}"


def _copy(connection: Connection, table: Table, rows: Iterable[dict[str, Any]]) -> None:
    """Write rows by COPY: 200,000 breaks cost seconds, where INSERT costs minutes."""
    names = [column.name for column in table.columns]
    statement = sql.SQL("copy {} ({}) from stdin").format(
        sql.Identifier(SCHEMA, table.name), sql.SQL(", ").join(map(sql.Identifier, names))
    )
    in_order = itemgetter(*names)
    cursor = connection.connection.cursor()
    with cursor.copy(statement) as copy:
        for row in rows:
            copy.write_row(in_order(row))


def _first_found(connection: Connection, result: RunResult) -> list[Break]:
    """The breaks whose ids are not stored yet."""
    found = {one.break_id: one for one in result.breaks}
    stored = select(item_break.c.break_id).where(item_break.c.break_id == any_(literal(list(found), ARRAY(Uuid))))
    for break_id in connection.scalars(stored) if found else ():
        del found[break_id]
    return list(found.values())


def _verdict_row(result: RunResult, attempt: int) -> dict[str, Any]:
    return {
        "contract": result.contract,
        "cut_n": result.cut_n,
        "verdict": result.verdict,
        "doubts": _DOUBTS.dump_python(result.doubts, mode="json"),
        "notices": _NOTICES.dump_python(result.notices, mode="json"),
        "figures": _FIGURES.dump_python(result.figures, mode="json"),
        "digest": result.digest,
        "look_ups": dict(result.look_ups),
        "attempt": attempt,
        "lag": _LAG.dump_python(result.lag, mode="json") if result.lag else None,
        "key_index": _KEY_INDEX.dump_python(result.key_index, mode="json") if result.key_index else None,
    }


def _break_row(result: RunResult, found: Break) -> dict[str, Any]:
    return vars(found) | {
        "contract": result.contract,
        "cut_n": result.cut_n,
        "break_class": str(found.break_class),
        "evidence": _AS_JSON.encode(found.evidence).decode(),
    }


def item_columns(item: OpenItem) -> dict[str, Any]:
    """What open_item keeps of an item: all but the class of its break, which is the break's own."""
    return {name: value for name, value in vars(item).items() if name != "found_as"}


def _item_row(result: RunResult, item: OpenItem) -> dict[str, Any]:
    return item_columns(item) | {
        "contract": result.contract,
        "cut_n": result.cut_n,
        "side": str(item.side),
        "state": str(item.state),
        "step": 0,
        "written_off_by": "",
        "written_off_because": "",
        "written_off_at": None,
    }


def _stored_run(connection: Connection, cut: Row[Any], verdict: Row[Any]) -> StoredRun:
    breaks = _in_order(select(item_break).where(item_break.c.contract == cut.contract, item_break.c.cut_n == cut.n))
    items = (
        items_with_class(open_item)
        .where(open_item.c.contract == cut.contract, open_item.c.cut_n == cut.n, open_item.c.step == 0)
        .order_by(open_item.c.item_id.collate("C"))
    )
    return _stored(
        connection,
        cut,
        verdict,
        breaks=tuple(break_of_row(row) for row in connection.execute(breaks)),
        items=tuple(item_of_row(row) for row in connection.execute(items)),
        look_ups=verdict.look_ups,
        standing=_standing_items(connection, cut.contract, cut.n),
    )


def _stored(
    connection: Connection,
    cut: Row[Any],
    verdict: Row[Any],
    *,
    breaks: tuple[Break, ...],
    items: tuple[OpenItem, ...],
    look_ups: Mapping[str, Any],
    standing: tuple[StandingItems, ...],
) -> StoredRun:
    contract = connection.scalar(
        select(contract_version.c.body).where(
            contract_version.c.contract == cut.contract, contract_version.c.fingerprint == cut.contract_fingerprint
        )
    )
    return StoredRun(
        result=RunResult(
            contract=cut.contract,
            cut_n=cut.n,
            verdict=Verdict(verdict.verdict),
            doubts=_DOUBTS.validate_python(verdict.doubts),
            breaks=breaks,
            items=items,
            figures=_FIGURES.validate_python(verdict.figures),
            digest=verdict.digest,
            notices=_NOTICES.validate_python(verdict.notices),
            look_ups=look_ups,
            lag=_LAG.validate_python(verdict.lag) if verdict.lag else None,
            key_index=_KEY_INDEX.validate_python(verdict.key_index) if verdict.key_index else None,
        ),
        window_start_utc=cut.window_start_utc,
        window_end_utc=cut.window_end_utc,
        now_utc=cut.now_utc,
        scheduler_run_id=cut.scheduler_run_id,
        attempt=verdict.attempt,
        recorded_at=verdict.recorded_at,
        cut=cut_of_row(connection, cut),
        standing=standing,
        settles=held_cuts_read_whole_by(connection, cut.contract, cut.n),
        ledger_guarantee=Contract.model_validate(contract).ledger.guarantee,
    )


def _standing_items(connection: Connection, contract_name: str, n: int) -> tuple[StandingItems, ...]:
    """What stands after the run of cut n; a later write-off is not its doing."""
    by_then = or_(open_item.c.cut_n < n, (open_item.c.cut_n == n) & (open_item.c.step == 0))
    newest = _newest_items(contract_name, standing_at=n, known=by_then).subquery()
    key = (newest.c.state, newest.c.first_seen_utc, newest.c.currency)
    statement = (
        select(*key, func.count().label("items"), func.sum(without_sign(newest.c.amount_minor)).label("amount_minor"))
        .where(newest.c.state.in_([ItemState.OPEN, ItemState.BROKEN]))
        .group_by(*key)
        .order_by(newest.c.state.collate("C"), newest.c.first_seen_utc, newest.c.currency.collate("C"))
    )
    return tuple(
        StandingItems(
            state=ItemState(row.state),
            first_seen_utc=row.first_seen_utc,
            currency=row.currency,
            count=row.items,
            amount_minor=int(row.amount_minor),
        )
        for row in connection.execute(statement)
    )


def _money_by_run(connection: Connection, row: Row[Any]) -> tuple[int, dict[str, int]]:
    statement = (
        select(item_break.c.currency, func.count(), func.sum(without_sign(item_break.c.amount_minor)))
        .where(item_break.c.contract == row.contract, item_break.c.cut_n == row.cut_n)
        .group_by(item_break.c.currency)
    )
    sums = connection.execute(statement).all()
    money = total_money((currency, int(amount)) for currency, _, amount in sums if currency)
    return sum(count for _, count, _ in sums), money


def _summaries() -> Select[Any]:
    return select(
        verdict_table,
        cut_table.c.window_start_utc,
        cut_table.c.window_end_utc,
        cut_table.c.scheduler_run_id,
    ).join(cut_table, (verdict_table.c.contract == cut_table.c.contract) & (verdict_table.c.cut_n == cut_table.c.n))


def _summary(connection: Connection, row: Row[Any]) -> RunSummary:
    breaks, money = _money_by_run(connection, row)
    return RunSummary(
        contract=row.contract,
        cut_n=row.cut_n,
        verdict=Verdict(row.verdict),
        doubts=_DOUBTS.validate_python(row.doubts),
        breaks=breaks,
        money_minor=money,
        window_start_utc=row.window_start_utc,
        window_end_utc=row.window_end_utc,
        scheduler_run_id=row.scheduler_run_id,
        recorded_at=row.recorded_at,
        read_whole_by=read_whole_by(connection, row.contract, row.cut_n),
    )


def break_of_row(row: Row[Any]) -> Break:
    """A row of item_break as it was found."""
    return Break(
        break_id=row.break_id,
        break_class=BreakClass(row.break_class),
        match_key=row.match_key,
        transaction_key=row.transaction_key,
        leg=row.leg,
        amount_minor=row.amount_minor,
        currency=row.currency,
        copies=row.copies,
        story=row.story,
        evidence=row.evidence,
    )


def item_of_row(row: Row[Any]) -> OpenItem:
    """A row of `items_with_class`."""
    return OpenItem(
        item_id=row.item_id,
        side=ItemSide(row.side),
        match_key=row.match_key,
        transaction_key=row.transaction_key,
        leg=row.leg,
        amount_minor=row.amount_minor,
        currency=row.currency,
        first_seen_cut=row.first_seen_cut,
        first_seen_utc=row.first_seen_utc,
        due_utc=row.due_utc,
        state=ItemState(row.state),
        reason=row.reason,
        pairable=row.pairable,
        break_id=row.break_id,
        found_as=BreakClass(row.found_as) if row.found_as else None,
        cleared_by=row.cleared_by,
        written_ms=row.written_ms,
    )
