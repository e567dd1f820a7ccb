"""Tells on-call of verdicts that are not there, and when they are back: a run that ended without one, and a window that
has none though it should by now.

Such an alert is no part of a run's commit, and belongs to no cut; it stands in the same outbox, so it is delivered like
every other. Decides nothing about runs that have a verdict: `alert` does.
"""

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any

from sqlalchemy import Engine

from tallystick.alerting.alert import NO_VERDICT, SILENCES, VERDICT_OVERDUE, Alert, AlertAction
from tallystick.alerting.policy import owner_told, sink_name
from tallystick.contract.alerts import Severity
from tallystick.contract.contract import Contract
from tallystick.contract.verdict_deadline import is_overdue, verdict_due_utc
from tallystick.store.alerts.alert_store import append_alerts, firing_alerts, newest_alert, one_deliverer
from tallystick.store.runs.cut_store import read_cut
from tallystick.store.runs.run_store import judged_until, list_runs
from tallystick.text.plain import format_time, format_window


def page_no_verdict(
    engine: Engine,
    contract: Contract,
    *,
    scheduler_run_id: str,
    cut_n: int | None,
    window_end_utc: datetime | None = None,
) -> bool:
    """Put the page of a run that ended without a verdict into the outbox; once per run, however often it is asked.

    Say whether its window is unproven: where it or a later one is judged, as when an old run is cleared, nobody is
    paged. window_end_utc: None where the run has none.
    """
    with one_deliverer(engine, contract.name):
        if window_end_utc is not None and _is_judged(engine, contract.name, window_end_utc):
            return False
        _page_once(engine, no_verdict_alert(contract, scheduler_run_id=scheduler_run_id, cut_n=cut_n))
    return True


def no_verdict_alert(contract: Contract, *, scheduler_run_id: str, cut_n: int | None) -> Alert:
    """The page that says that a run ended without a verdict."""
    sentence = f"{contract.name}: a run ended without a verdict, so its window is not proven"
    details = {"scheduler_run_id": scheduler_run_id, "cut_n": cut_n}
    return _silence_alert(contract, NO_VERDICT, AlertAction.TRIGGER, sentence, details)


def due_utc(engine: Engine, contract: Contract, *, window_end_utc: datetime, queued_utc: datetime) -> datetime:
    """Return when this window's verdict is due. queued_utc: of its run; of a contract without books,
    they begin then.
    """
    baseline = read_cut(engine, contract.name, 0)
    begun_utc = baseline.marked_at_utc if baseline else queued_utc
    return verdict_due_utc(contract, window_end_utc=window_end_utc, begun_utc=begun_utc)


def page_overdue_verdict(engine: Engine, contract: Contract, overdue: Alert, *, window_end_utc: datetime) -> bool:
    """Put an `overdue_alert` into the outbox, unless this window or a later one is judged; say whether it is not.

    A later one will do: windows tile, so its verdict stands for all before it. Neither a verdict that is stored
    meanwhile nor its resolve can come between the look and the page: both wait for the same lock.
    """
    with one_deliverer(engine, contract.name):
        if _is_judged(engine, contract.name, window_end_utc):
            return False
        _page_once(engine, overdue)
    return True


def overdue_alert(
    contract: Contract, *, scheduler_run_id: str, window: tuple[datetime, datetime], due_utc: datetime
) -> Alert:
    """The page that says that a window has no verdict. window: half-open."""
    start_utc, end_utc = window
    sentence = (
        f"{contract.name}: the window {format_window(start_utc, end_utc)} has no verdict, and one was due at "
        f"{format_time(due_utc)}"
    )
    details = {
        "scheduler_run_id": scheduler_run_id,
        "window_start_utc": start_utc.isoformat(),
        "window_end_utc": end_utc.isoformat(),
        "due_utc": due_utc.isoformat(),
    }
    return _silence_alert(contract, VERDICT_OVERDUE, AlertAction.TRIGGER, sentence, details)


def resolve_silences(engine: Engine, contract: Contract, *, now_utc: datetime) -> tuple[str, ...]:
    """Put into the outbox that verdicts are back, once one is stored; gives the names of the alerts that this resolves.

    What is overdue stays so while a further window should have its verdict by now: one page for one outage. A page of a
    run without a verdict stays until one is stored after that: to deliver an older one anew ends nothing.
    """
    with one_deliverer(engine, contract.name):
        firing = firing_alerts(engine, contract.name)
        over = SILENCES & set(firing)
        if VERDICT_OVERDUE in over and _still_overdue(engine, contract, now_utc):
            over -= {VERDICT_OVERDUE}
        if NO_VERDICT in over and not _judged_since(engine, contract.name):
            over -= {NO_VERDICT}
        append_alerts(engine, [_resolve(contract, name, owner_told(firing[name])) for name in sorted(over)])
    return tuple(sorted(over))


def none_is_overdue(contract: Contract) -> Alert:
    """The end of such a page."""
    return _resolve(contract, VERDICT_OVERDUE)


def _silence_alert(
    contract: Contract, alert_name: str, action: AlertAction, summary: str, details: Mapping[str, Any]
) -> Alert:
    """One alert of SILENCES."""
    return Alert(
        contract=contract.name,
        cut_n=None,
        name=alert_name,
        action=action,
        severity=Severity.ERROR if action is AlertAction.TRIGGER else Severity.INFO,
        summary=summary,
        details={"contract": contract.name, "owner": contract.owner} | dict(details),
        sinks=tuple(sink_name(sink) for sink in contract.alert.sinks),
    )


def _resolve(contract: Contract, alert_name: str, details: Mapping[str, Any] = MappingProxyType({})) -> Alert:
    sentence = f"{contract.name}: runs end with a verdict again"
    if alert_name == VERDICT_OVERDUE:
        sentence = f"{contract.name}: no verdict is overdue any more"
    return _silence_alert(contract, alert_name, AlertAction.RESOLVE, sentence, details)


def _page_once(engine: Engine, page: Alert) -> None:
    """Every run that is silent pages: receivers deduplicate. But a task that is tried again does not page again, and
    whom somebody has taken on is not told of another window of the same outage.
    """
    newest = newest_alert(engine, page.contract, page.name)
    run_id = page.details["scheduler_run_id"]
    if newest and newest.action is not AlertAction.RESOLVE and newest.details["scheduler_run_id"] == run_id:
        return
    if newest and newest.action is AlertAction.ACKNOWLEDGE and not _is_another_outage(engine, page):
        return
    append_alerts(engine, [page])


def _is_another_outage(engine: Engine, page: Alert) -> bool:
    """A verdict ends an incident of runs without one, though nobody may have told of that yet; of what is overdue only
    the newest one does.
    """
    return page.name == NO_VERDICT and _judged_since(engine, page.contract)


def _judged_since(engine: Engine, contract_name: str) -> bool:
    """Was a verdict stored after the newest message of runs without one?"""
    page = newest_alert(engine, contract_name, NO_VERDICT)
    judged = list_runs(engine, contract_name, limit=1)
    return page is not None and page.at_utc is not None and any(one.recorded_at > page.at_utc for one in judged)


def _is_judged(engine: Engine, contract_name: str, window_end_utc: datetime) -> bool:
    judged_until_utc = judged_until(engine, contract_name)
    return judged_until_utc is not None and judged_until_utc >= window_end_utc


def _still_overdue(engine: Engine, contract: Contract, now_utc: datetime) -> bool:
    baseline, judged_until_utc = read_cut(engine, contract.name, 0), judged_until(engine, contract.name)
    if baseline is None or judged_until_utc is None:
        return True
    return is_overdue(contract, judged_until_utc=judged_until_utc, begun_utc=baseline.marked_at_utc, now_utc=now_utc)
