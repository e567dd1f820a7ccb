"""The values of the metrics, read from the store in one moment: sums that triggers keep, and the rows of the newest
verdicts.
"""

import logging
from collections import Counter
from datetime import datetime
from typing import Any

from pydantic import TypeAdapter
from sqlalchemy import Connection, Engine, Row, and_, func, select
from sqlalchemy.exc import SQLAlchemyError

from tallystick.alerting.policy import sink_name
from tallystick.contract.contract import Contract
from tallystick.contract.verdict_deadline import next_verdict_due_utc
from tallystick.model.metric_figures import ContractFigures, JudgedWindow, SinkFigures
from tallystick.model.verdict import Verdict
from tallystick.store.alerts.alert_store import firing_seen_by, pending_alerts_seen_by, sinks_that_took_seen_by
from tallystick.store.schema import alert, alert_delivery, prune_mark, standing_total
from tallystick.store.schema import cut as cut_table
from tallystick.store.schema import verdict as verdict_table
from tallystick.store.views.overview_store import contract_of, newest_look, totals_of_rows

_log = logging.getLogger(__name__)

_MOMENT = TypeAdapter(datetime | None)


def read_figures(engine: Engine) -> tuple[ContractFigures, ...]:
    """The figures of every contract that has books, by name; all as of one moment. One that has none is left out."""
    newest = select(cut_table.c.contract, func.max(cut_table.c.n).label("n")).group_by(cut_table.c.contract).subquery()
    cuts = (
        select(cut_table)
        .join(newest, and_(cut_table.c.contract == newest.c.contract, cut_table.c.n == newest.c.n))
        .order_by(cut_table.c.contract)
    )
    with engine.connect().execution_options(isolation_level="REPEATABLE READ") as connection:
        found = [_figures_if_any(connection, cut) for cut in connection.execute(cuts).all()]
    return tuple(one for one in found if one is not None)


def _figures_if_any(connection: Connection, cut: Row[Any]) -> ContractFigures | None:
    """None, and a line in the log, where what is stored of this contract makes no figures: the others have theirs."""
    try:
        return _figures(connection, cut)
    except SQLAlchemyError:
        raise
    except Exception:
        _log.exception("%s: its metrics are missing", cut.contract)
        return None


def _figures(connection: Connection, cut: Row[Any]) -> ContractFigures:
    name = cut.contract
    contract = contract_of(connection, name, cut.contract_fingerprint)
    begun_utc = connection.scalar(
        select(cut_table.c.marked_at_utc).where(cut_table.c.contract == name, cut_table.c.n == 0)
    )
    judged = _judged(connection, name)
    until_utc = judged.window_end_utc if judged else begun_utc
    assert begun_utc is not None and until_utc is not None  # the newest cut follows cut 0
    standing = connection.execute(select(standing_total).where(standing_total.c.contract == name)).all()
    return ContractFigures(
        contract=name,
        due_utc=next_verdict_due_utc(contract, judged_until_utc=until_utc, begun_utc=begun_utc),
        judged=judged,
        standing=totals_of_rows(standing),
        sinks=_sinks(connection, contract),
    )


def _judged(connection: Connection, contract_name: str) -> JudgedWindow | None:
    statement = (
        select(
            verdict_table.c.verdict,
            func.least(cut_table.c.window_end_utc, cut_table.c.now_utc).label("window_end_utc"),
            func.extract("epoch", verdict_table.c.recorded_at - cut_table.c.recorded_at).label("run_seconds"),
        )
        .join(cut_table, and_(cut_table.c.contract == verdict_table.c.contract, cut_table.c.n == verdict_table.c.cut_n))
        .where(verdict_table.c.contract == contract_name)
        .order_by(verdict_table.c.cut_n.desc())
        .limit(1)
    )
    row = connection.execute(statement).first()
    if row is None:
        return None
    return JudgedWindow(
        verdict=Verdict(row.verdict),
        window_end_utc=row.window_end_utc,
        run_seconds=float(row.run_seconds),
        topic_settled_until_utc=_settled_until(connection, contract_name, "topic_settled_until_utc"),
        ledger_settled_until_utc=_settled_until(connection, contract_name, "ledger_settled_until_utc"),
        expires_utc=newest_look(connection, contract_name)[1],
    )


def _settled_until(connection: Connection, contract_name: str, side: str) -> datetime | None:
    """As the newest run knew it that did: one whose side is held reaches none of its own samples."""
    until = verdict_table.c.look_ups[side].as_string()
    statement = (
        select(until)
        .where(verdict_table.c.contract == contract_name, until.is_not(None))
        .order_by(verdict_table.c.cut_n.desc())
        .limit(1)
    )
    return _MOMENT.validate_python(connection.scalar(statement))


def _sinks(connection: Connection, contract: Contract) -> tuple[SinkFigures, ...]:
    """Owed is what the contract's sinks have not taken; one that it does not name any more is sent nothing."""
    contract_name, named = contract.name, sorted(sink_name(sink) for sink in contract.alert.sinks)
    failures = (
        select(alert_delivery.c.sink, func.count().filter(~alert_delivery.c.delivered).label("failures"))
        .join(alert, alert.c.alert_id == alert_delivery.c.alert_id)
        .where(alert.c.contract == contract_name)
        .group_by(alert_delivery.c.sink)
    )
    pruned = connection.scalar(select(prune_mark.c.delivery_failures).where(prune_mark.c.contract == contract_name))
    failed = Counter(pruned or {})
    failed.update({row.sink: row.failures for row in connection.execute(failures)})
    pending = pending_alerts_seen_by(connection, contract_name)
    owed = Counter(sink for one in pending for sink in one.owed_to if sink in named)
    firing = list(firing_seen_by(connection, contract_name).values())
    taken = sinks_that_took_seen_by(connection, [one.outbox_id for one in firing if one.outbox_id is not None])
    owed.update(
        sink for one in firing for sink in named if sink not in one.sinks and (one.outbox_id, sink) not in taken
    )
    return tuple(SinkFigures(sink=sink, failures=failed[sink], owed=owed[sink]) for sink in sorted({*failed, *owed}))
