"""A page that nothing is wrong with, sent to learn whether pages arrive. It stands in no outbox."""

from datetime import datetime

from tallystick.alerting.alert import TEST, Alert, AlertAction
from tallystick.alerting.policy import sink_name
from tallystick.contract.alerts import Severity
from tallystick.contract.contract import Contract
from tallystick.model.errors import TallystickError
from tallystick.text.plain import format_time


class NoSinks(TallystickError):
    """The contract names nobody who could be told."""


def page_of_test(contract: Contract, *, now_utc: datetime) -> Alert:
    """Return a test alert: as severe as a break, and marked. Raises NoSinks."""
    if not contract.alert.sinks:
        raise NoSinks(f"{contract.name}: expected a sink under alert.sinks; got none, so no break would be told")
    return Alert(
        contract=contract.name,
        cut_n=None,
        name=TEST,
        action=AlertAction.TRIGGER,
        severity=Severity.ERROR,
        summary=f"TEST of {contract.name} at {format_time(now_utc)}: nothing is wrong",
        details={"contract": contract.name, "owner": contract.owner, "test": True},
        sinks=tuple(sink_name(sink) for sink in contract.alert.sinks),
        at_utc=now_utc,
        began_utc=now_utc,
    )
