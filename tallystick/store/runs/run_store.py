"""Runs: the one commit of a verdict with all that belongs to it, and what later runs, reports and repairs read."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from operator import attrgetter
from typing import Any

from psycopg import sql
from pydantic import TypeAdapter
from sqlalchemy import (
    ARRAY,
    ColumnElement,
    Connection,
    Engine,
    Row,
    Select,
    Table,
    Text,
    Uuid,
    any_,
    cast,
    func,
    insert,
    literal,
    or_,
    select,
    update,
)

from tallystick.alerting.alert import Alert
from tallystick.host.gc_tuning import relaxed_gc
from tallystick.host.packed_json import json_text
from tallystick.model.errors import TallystickError
from tallystick.model.findings import Break, DoubtFound, NoticeFound, total_money
from tallystick.model.open_item import ItemState, ItemTotal, OpenItem
from tallystick.model.partner_lag import RunLag
from tallystick.model.run_result import KeyIndex, RunFigures, RunResult, WindowSummary
from tallystick.model.stored_run import RunSummary, StoredRun
from tallystick.model.verdict import Verdict
from tallystick.store.alerts.alert_store import insert_alerts
from tallystick.store.break_lock import hold_breaks
from tallystick.store.runs.contract_store import contract_of_body
from tallystick.store.runs.cut_store import CutNotFound, cut_of_row
from tallystick.store.runs.expectations_store import newest_outcome
from tallystick.store.runs.late_coverage_store import completed_by_cut, held_cuts_completed_by
from tallystick.store.runs.open_item_store import (
    break_of_row,
    in_report_order,
    item_of_row,
    items_with_class,
    newest_items,
)
from tallystick.store.runs.prune_mark import refuse_pruned
from tallystick.store.schema import (
    SCHEMA,
    audit,
    break_total,
    contract_version,
    item_break,
    open_item,
    without_sign,
)
from tallystick.store.schema import cut as cut_table
from tallystick.store.schema import verdict as verdict_table

_DOUBTS, _FIGURES = TypeAdapter(tuple[DoubtFound, ...]), TypeAdapter(RunFigures)
_NOTICES = TypeAdapter(tuple[NoticeFound, ...])
LAG_JSON, KEY_INDEX_JSON = TypeAdapter(RunLag), TypeAdapter(KeyIndex)
_SUMMARY = TypeAdapter(WindowSummary)


class AttemptFenced(TallystickError):
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
        _copy(connection, item_break, _BREAK_COLUMNS, _break_rows(result, _first_found(connection, result)))
        _copy(connection, open_item, _ITEM_COLUMNS, _item_rows(result))
        insert_alerts(connection, alerts)
        if audited:
            connection.execute(insert(audit), list(audited))
        connection.execute(update(cut_table).where(*_is_cut(result.contract, result.cut_n)).values(open=False))
    return result.verdict


@relaxed_gc()
def read_run(engine: Engine, contract_name: str, n: int) -> StoredRun | None:
    """The committed run of cut n, whole. Raises RunPruned."""
    verdict_of_cut = select(verdict_table).where(verdict_table.c.contract == contract_name, verdict_table.c.cut_n == n)
    with engine.connect() as connection:
        verdict = connection.execute(verdict_of_cut).first()
        if verdict is None:
            return None
        cut = connection.execute(select(cut_table).where(*_is_cut(contract_name, n))).one()
        run = _stored_run(connection, cut, verdict)
        refuse_pruned(connection, contract_name, n)  # last: a mark stands before the first row goes
        return run


def read_run_head(engine: Engine, contract_name: str, n: int) -> StoredRun | None:
    """The committed run of cut n without its breaks and items, and of its look-ups the cluster state only.

    So it costs the same whatever the run found; the breaks are counted by break_total.
    """
    columns = [column for column in verdict_table.columns if column.name != "look_ups"]
    around = verdict_table.c.look_ups["surroundings"].label("cluster_state")
    of_cut: Select[Any] = select(*columns, around).where(
        verdict_table.c.contract == contract_name, verdict_table.c.cut_n == n
    )
    with engine.connect() as connection:
        verdict = connection.execute(of_cut).first()
        if verdict is None:
            return None
        cut = connection.execute(select(cut_table).where(*_is_cut(contract_name, n))).one()
        look_ups = {"surroundings": verdict.cluster_state or {}}
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


def _copy(connection: Connection, table: Table, names: Sequence[str], rows: Iterable[tuple[Any, ...]]) -> None:
    """Write rows by COPY: 200,000 breaks cost seconds, where INSERT costs minutes. names: of the columns, in order."""
    statement = sql.SQL("copy {} ({}) from stdin").format(
        sql.Identifier(SCHEMA, table.name), sql.SQL(", ").join(map(sql.Identifier, names))
    )
    cursor = connection.connection.cursor()
    with cursor.copy(statement) as copy:
        for row in rows:
            copy.write_row(row)


def _first_found(connection: Connection, result: RunResult) -> list[Break]:
    """The breaks whose ids are not stored yet."""
    if not result.breaks:
        return []
    asked = literal("{" + ",".join(one.break_id.hex for one in result.breaks) + "}", Text)  # one text is bound at once
    stored = select(item_break.c.break_id).where(item_break.c.break_id == any_(cast(asked, ARRAY(Uuid))))
    found = {one.break_id: one for one in result.breaks}
    for break_id in connection.scalars(stored):
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
        "lag": LAG_JSON.dump_python(result.lag, mode="json") if result.lag else None,
        "key_index": KEY_INDEX_JSON.dump_python(result.key_index, mode="json") if result.key_index else None,
        "summary": _SUMMARY.dump_python(result.summary, mode="json") if result.summary else None,
    }


_OF_BREAK = {
    name: name
    for name in ("break_id", "match_key", "transaction_key", "leg", "amount_minor", "currency", "copies", "story")
} | {"break_class": "break_class.value"}
"""Column to attribute."""
_BREAK_COLUMNS = ("contract", "cut_n", *_OF_BREAK, "evidence")
_OF_ITEM = {
    name: name
    for name in (
        *("item_id", "match_key", "transaction_key", "leg", "amount_minor", "currency", "written_ms", "compared_text"),
        *("first_seen_cut", "first_seen_utc", "due_utc", "pairable", "break_id", "cleared_by"),
    )
} | {"side": "side.value", "state": "state.value", "reason": "reason.stored"}
_ITEM_COLUMNS = ("contract", "cut_n", *_OF_ITEM, "step", "written_off_by", "written_off_because")
"""All but the time of a write-off, which a run leaves empty."""


def _break_rows(result: RunResult, breaks: Iterable[Break]) -> Iterator[tuple[Any, ...]]:
    values = attrgetter(*_OF_BREAK.values())
    for found in breaks:
        yield (result.contract, result.cut_n, *values(found), json_text(found.evidence).decode())


def _item_rows(result: RunResult) -> Iterator[tuple[Any, ...]]:
    values = attrgetter(*_OF_ITEM.values())
    for item in result.items:
        yield (result.contract, result.cut_n, *values(item), 0, "", "")


def _stored_run(connection: Connection, cut: Row[Any], verdict: Row[Any]) -> StoredRun:
    breaks = in_report_order(
        select(item_break).where(item_break.c.contract == cut.contract, item_break.c.cut_n == cut.n)
    )
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
    standing: tuple[ItemTotal, ...],
) -> StoredRun:
    contract = connection.execute(
        select(contract_version.c.body).where(
            contract_version.c.contract == cut.contract, contract_version.c.fingerprint == cut.contract_fingerprint
        )
    ).scalar_one()
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
            lag=LAG_JSON.validate_python(verdict.lag) if verdict.lag else None,
            key_index=KEY_INDEX_JSON.validate_python(verdict.key_index) if verdict.key_index else None,
            summary=_SUMMARY.validate_python(verdict.summary) if verdict.summary else None,
        ),
        window_start_utc=cut.window_start_utc,
        window_end_utc=cut.window_end_utc,
        now_utc=cut.now_utc,
        scheduler_run_id=cut.scheduler_run_id,
        attempt=verdict.attempt,
        recorded_at=verdict.recorded_at,
        cut=cut_of_row(connection, cut),
        standing=standing,
        completes=held_cuts_completed_by(connection, cut.contract, cut.n),
        ledger_guarantee=contract_of_body(contract).ledger.guarantee,
        expectations=newest_outcome(connection, cut.contract, cut.n),
    )


def _standing_items(connection: Connection, contract_name: str, n: int) -> tuple[ItemTotal, ...]:
    """What stands after the run of cut n; a later write-off is not its doing."""
    by_then = or_(open_item.c.cut_n < n, (open_item.c.cut_n == n) & (open_item.c.step == 0))
    newest = newest_items(contract_name, standing_at=n, known=by_then).subquery()
    key = (newest.c.state, newest.c.first_seen_utc, newest.c.currency)
    statement = (
        select(*key, func.count().label("items"), func.sum(without_sign(newest.c.amount_minor)).label("amount_minor"))
        .where(newest.c.state.in_([ItemState.OPEN, ItemState.BROKEN]))
        .group_by(*key)
        .order_by(newest.c.state.collate("C"), newest.c.first_seen_utc, newest.c.currency.collate("C"))
    )
    return tuple(
        ItemTotal(
            state=ItemState(row.state),
            first_seen_utc=row.first_seen_utc,
            currency=row.currency,
            count=row.items,
            amount_minor=int(row.amount_minor),
        )
        for row in connection.execute(statement)
    )


def _money_by_run(connection: Connection, row: Row[Any]) -> tuple[int, dict[str, int]]:
    """Count what the run found, by the sums that are left once its breaks are pruned."""
    found = select(break_total).where(break_total.c.contract == row.contract, break_total.c.cut_n == row.cut_n)
    sums = connection.execute(found).all()
    money = total_money((one.currency, int(one.amount_minor)) for one in sums if one.currency)
    return sum(one.breaks for one in sums), money


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
        completed_by_cut=completed_by_cut(connection, row.contract, row.cut_n),
    )
