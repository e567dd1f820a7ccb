"""Books as if their verdicts had been stored when their windows ended: pruning asks how old they are.

The store dates what it is given by its own clock. So its owner dates it back, by hand.
"""

from datetime import timedelta

from sqlalchemy import Engine, text

from tallystick.alerting.alert import Alert, AlertAction
from tallystick.contract.alerts import Severity
from tallystick.host.terminal_user import Terminal
from tallystick.model.cut import Sample
from tallystick.model.finding_names import BreakClass
from tallystick.model.offsets import TopicPartition
from tallystick.store.alerts.alert_store import pending_alerts, record_delivery

from .conftest import NOON

ADA = Terminal(os_user="ada", host="ops-1")

_DATED_BACK = {
    "verdict": "set recorded_at = c.window_end_utc from tallystick.cut as c "
    "where c.contract = t.contract and c.n = t.cut_n",
    "alert": "set recorded_at = c.window_end_utc from tallystick.cut as c "
    "where c.contract = t.contract and c.n = t.cut_n",
    "compensation_plan": "set recorded_at = c.window_end_utc from tallystick.cut as c "
    "where c.contract = t.contract and c.n = t.cut_n",
    "audit": "set recorded_at = p.recorded_at from tallystick.compensation_plan as p where p.plan_id = t.plan_id",
}


def date_back(owned: Engine, *, but_plans: bool = False) -> None:
    """Date what is stored by the window that it belongs to. but_plans: plans and their trail are of today."""
    with owned.begin() as connection:
        for table, change in _DATED_BACK.items():
            if but_plans and table in ("compensation_plan", "audit"):
                continue
            connection.execute(text(f"alter table tallystick.{table} disable trigger append_only"))
            connection.execute(text(f"update tallystick.{table} as t {change}"))
            connection.execute(text(f"alter table tallystick.{table} enable trigger append_only"))


def alert(n: int, action: AlertAction, *, name: str = BreakClass.MISSING_IN_LEDGER) -> Alert:
    return Alert(
        contract="payouts",
        cut_n=n,
        name=name,
        action=action,
        severity=Severity.ERROR,
        summary=f"{name} {n}",
        details={},
        sinks=("desk",),
    )


def deliver_all(store: Engine, *, fail_first: bool = False) -> None:
    for pending in pending_alerts(store, "payouts"):
        if fail_first:
            record_delivery(store, pending.alert, sink="desk", delivered=False, detail="down")
        record_delivery(store, pending.alert, sink="desk", delivered=True, detail="")


def sample(hours: float) -> Sample:
    part = TopicPartition(topic="billing.payouts", partition=0)
    at = NOON + timedelta(hours=hours)
    return Sample(at_utc=at, high_watermarks=((part, 7),), ledger_low_mark=1, ledger_high_mark=2)
