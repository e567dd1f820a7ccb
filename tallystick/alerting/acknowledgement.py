"""A person takes an incident on: it neither escalates nor pages again until it is worse. Pure; `alert` says what is."""

from collections.abc import Mapping
from dataclasses import replace

from tallystick.alerting.alert import Alert, AlertAction
from tallystick.model.errors import TallystickError
from tallystick.text.plain import escape_untrusted, given_text


class AcknowledgementRefused(TallystickError):
    """There is nothing to acknowledge, or nobody who does. The message says what was expected and what fires."""


def acknowledgement(contract_name: str, alert_name: str, *, by: str, firing: Mapping[str, Alert]) -> Alert:
    """Return the alert that says who has taken the incident on; as severe as the last one.

    firing: name to its newest alert, where that is no resolve. Raises AcknowledgementRefused.
    """
    who = escape_untrusted(
        given_text("--by", by, expected="the name of who acknowledges it", refused=AcknowledgementRefused)
    )
    before = firing.get(alert_name)
    if before is None:
        listed = ", ".join(sorted(firing)) or "nothing does under this contract's name"
        raise AcknowledgementRefused(
            f"{contract_name}: {escape_untrusted(alert_name)} does not fire; expected one that does: {listed}"
        )
    if before.action is AlertAction.ACKNOWLEDGE:
        raise AcknowledgementRefused(
            f"{contract_name}: {alert_name} is acknowledged already, by {before.details['acknowledged_by']}; expected "
            "one that nobody has acknowledged"
        )
    return replace(
        before,
        action=AlertAction.ACKNOWLEDGE,
        summary=f"{contract_name}: {alert_name.replace('_', ' ')}: acknowledged by {who}",
        details={**before.details, "acknowledged_by": who},
    )
