"""An alert as a run stores it."""

from tallystick.alerting.alert import Alert, AlertAction
from tallystick.contract.alerts import Severity

PAGER = "webhook:pager"


def alert(
    n: int, action: str = "trigger", *, name: str = "phantom_in_topic", sinks: tuple[str, ...] = (PAGER,)
) -> Alert:
    """Of cut n, told to these sinks."""
    return Alert(
        contract="payouts",
        cut_n=n,
        name=name,
        action=AlertAction(action),
        severity=Severity.ERROR,
        summary=f"cut {n}",
        details={"new": n, "money_minor": {"EUR": 2**53 + 1}},
        sinks=sinks,
    )
