"""Acknowledges an incident: a further row of the outbox and the audit line, both or neither."""

from sqlalchemy import Engine, func, insert, select

from tallystick.alerting.acknowledgement import acknowledgement
from tallystick.alerting.alert import Alert
from tallystick.host.terminal_user import Terminal, at_terminal
from tallystick.store.alerts.alert_store import firing_seen_by, insert_alerts
from tallystick.store.schema import audit


def acknowledge(
    engine: Engine, contract_name: str, alert_name: str, *, by: str, terminal: Terminal | None = None
) -> Alert:
    """Put into the outbox that a person has taken an incident on. Raises AcknowledgementRefused.

    Not held up by a run: what that finds is told all the same. Of two persons at once, the second is refused.
    """
    with engine.begin() as connection:
        lock = func.hashtextextended(f"tallystick/acknowledge/{contract_name}", 0)
        connection.execute(select(func.pg_advisory_xact_lock(lock)))
        alert = acknowledgement(contract_name, alert_name, by=by, firing=firing_seen_by(connection, contract_name))
        insert_alerts(connection, [alert])
        detail: dict[str, object] = {"topic": alert_name, "after_cut": alert.cut_n, "severity": alert.severity}
        detail |= at_terminal(terminal)
        connection.execute(
            insert(audit),
            {
                "contract": contract_name,
                "plan_id": None,
                "actor": alert.details["acknowledged_by"],
                "event": "acknowledged",
                "detail": detail,
            },
        )
    return alert
