"""Tells on-call that a run ended without a verdict, and that verdicts are back.

Such a run committed nothing, so its alert cannot stand in the outbox: it is sent as it is, and the audit trail
remembers that it was. Decides nothing about runs that have a verdict: `alert` does.
"""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Engine

from tallystick.alert import Alert, AlertAction, sink_name
from tallystick.alert_message import SinkFailed
from tallystick.contract import Contract, Severity
from tallystick.delivery import AlertSink
from tallystick.store.plan_store import append_audit, read_audit

NO_VERDICT = "no_verdict"
"""Topic of the alert that says a run proved nothing because it did not end."""

_PAGED, _OVER = "no_verdict_paged", "no_verdict_over"
_ACTOR = "alert task"


def page_no_verdict(
    engine: Engine, contract: Contract, sinks: Sequence[AlertSink], *, scheduler_run_id: str, cut_n: int | None
) -> None:
    """Page all sinks, every time: receivers deduplicate. Raises SinkFailed; then call again."""
    sentence = f"{contract.contract}: a run ended without a verdict, so its window is not proven"
    details = {"contract": contract.contract, "owner": contract.owner, "scheduler_run_id": scheduler_run_id}
    # Remembered before it is sent, so that what only some sinks got is resolved as well.
    append_audit(engine, contract.contract, plan_id=None, actor=_ACTOR, event=_PAGED, detail=details)
    _send(contract, sinks, AlertAction.TRIGGER, sentence, details | {"cut_n": cut_n})


def resolve_no_verdict(engine: Engine, contract: Contract, sinks: Sequence[AlertSink]) -> bool:
    """Resolve the page if one stands; say whether one did. Raises SinkFailed; then call again."""
    events = [entry.event for entry in read_audit(engine, contract.contract) if entry.event in (_PAGED, _OVER)]
    if not events or events[-1] == _OVER:
        return False
    details = {"contract": contract.contract, "owner": contract.owner}
    _send(contract, sinks, AlertAction.RESOLVE, f"{contract.contract}: runs end with a verdict again", details)
    append_audit(engine, contract.contract, plan_id=None, actor=_ACTOR, event=_OVER, detail={})
    return True


def _send(
    contract: Contract, sinks: Sequence[AlertSink], action: AlertAction, summary: str, details: dict[str, Any]
) -> None:
    alert = Alert(
        contract=contract.contract,
        cut_n=-1,  # it belongs to none
        topic=NO_VERDICT,
        action=action,
        severity=Severity.ERROR if action is AlertAction.TRIGGER else Severity.INFO,
        summary=summary,
        details=details,
        sinks=tuple(sink_name(sink) for sink in contract.alert.sinks),
    )
    failures = []
    for sink in sinks:
        try:
            sink.deliver(alert)
        except SinkFailed as failure:  # one that is down must not keep the page from the others
            failures.append(f"{sink.name}: {failure}")
    if failures:
        raise SinkFailed("; ".join(failures))
