"""The outcomes of contracts' own expectations, and the alerts that are stored with each: both or neither."""

from dataclasses import replace

from pydantic import TypeAdapter
from sqlalchemy import Connection, Engine, func, insert, select

from tallystick.alerting.alert import AlertAction
from tallystick.alerting.expectation_alerts import expectation_alerts, tells_more
from tallystick.contract.contract import Contract
from tallystick.model.stored_run import ExpectationsOutcome, StoredRun
from tallystick.store.alerts.alert_store import firing_seen_by, insert_alerts
from tallystick.store.schema import alert, expectations_outcome

_OUTCOME = TypeAdapter(ExpectationsOutcome)


def newest_outcome(connection: Connection, contract_name: str, n: int) -> ExpectationsOutcome | None:
    """The newest outcome of cut n; None where nothing was evaluated."""
    c = expectations_outcome.c
    statement = select(c.body).where(c.contract == contract_name, c.cut_n == n).order_by(c.outcome_id.desc()).limit(1)
    body = connection.scalar(statement)
    return None if body is None else _OUTCOME.validate_python(body)


def read_outcome(engine: Engine, contract_name: str, n: int) -> ExpectationsOutcome | None:
    """The same, in a transaction of its own."""
    with engine.connect() as connection:
        return newest_outcome(connection, contract_name, n)


def store_outcome(
    engine: Engine, contract: Contract, run: StoredRun, outcome: ExpectationsOutcome
) -> ExpectationsOutcome:
    """Store what came of a run's expectations, and put into the outbox what on-call hears of it.

    Give back the outcome that stands. One in which everything was evaluated stands for good, so that a report that is
    written again has the same bytes. An outcome of a window before the newest evaluated one alerts nobody,
    and one that a window has once more only of what is worse.
    """
    n = run.result.cut_n
    with engine.begin() as connection:
        lock = func.hashtextextended(f"tallystick/expectations/{contract.name}", 0)
        connection.execute(select(func.pg_advisory_xact_lock(lock)))
        stands = newest_outcome(connection, contract.name, n)
        if stands is not None and (stands.is_complete or stands == outcome):
            return stands
        connection.execute(
            insert(expectations_outcome),
            {"contract": contract.name, "cut_n": n, "body": _OUTCOME.dump_python(outcome, mode="json")},
        )
        if _newest_cut(connection, contract.name) == n:
            firing = firing_seen_by(connection, contract.name)
            told = _told_by(connection, contract.name, n)
            alerts = expectation_alerts(contract, run, outcome, firing=firing)
            insert_alerts(connection, [one for one in alerts if (one.name, one.action) not in told])
            again = [one for one in alerts if (one.name, one.action) in told and one.action is AlertAction.TRIGGER]
            worse = [one for one in again if one.name in firing and tells_more(one, firing[one.name])]
            insert_alerts(connection, [replace(one, cut_n=None) for one in worse])  # a cut has one row for each trigger
    return outcome


def _newest_cut(connection: Connection, contract_name: str) -> int | None:
    c = expectations_outcome.c
    newest: int | None = connection.scalar(select(func.max(c.cut_n)).where(c.contract == contract_name))
    return newest


def _told_by(connection: Connection, contract_name: str, n: int) -> set[tuple[str, str]]:
    """Names and actions of the alerts that a cut has put into the outbox: each once, where it is tried again."""
    statement = select(alert.c.topic, alert.c.action).where(alert.c.contract == contract_name, alert.c.cut_n == n)
    return {(row.topic, row.action) for row in connection.execute(statement)}
