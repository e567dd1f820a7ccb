"""Who may take an incident on, and what is told of it."""

from dataclasses import replace

import pytest

from tallystick.alerting.acknowledgement import AcknowledgementRefused, acknowledgement
from tallystick.alerting.alert import Alert, AlertAction
from tallystick.contract.alerts import Severity

FIRED = Alert(
    contract="payouts",
    cut_n=4,
    name="missing_in_ledger",
    action=AlertAction.TRIGGER,
    severity=Severity.CRITICAL,
    summary="payouts: missing in ledger: 1 new",
    details={"outstanding": 3},
    sinks=("webhook:pager",),
    outbox_id=9,
)
FIRING = {"missing_in_ledger": FIRED, "hanging_transaction": replace(FIRED, name="hanging_transaction")}


def test_an_acknowledgement_keeps_key_severity_and_figures_and_says_who() -> None:
    told = acknowledgement("payouts", "missing_in_ledger", by=" Ada ", firing=FIRING)
    assert (told.action, told.dedup_key, told.severity) == (AlertAction.ACKNOWLEDGE, FIRED.dedup_key, FIRED.severity)
    assert told.details == {"outstanding": 3, "acknowledged_by": "Ada"}
    assert told.summary == "payouts: missing in ledger: acknowledged by Ada"
    assert told.sinks == FIRED.sinks


def test_what_does_not_fire_is_refused_with_what_does() -> None:
    with pytest.raises(
        AcknowledgementRefused,
        match=r"^payouts: torn_cut does not fire; expected one that does: hanging_transaction, missing_in_ledger$",
    ):
        acknowledgement("payouts", "torn_cut", by="Ada", firing=FIRING)


def test_where_nothing_fires_the_contracts_name_may_be_wrong() -> None:
    with pytest.raises(
        AcknowledgementRefused, match=r"^payout: torn_cut does not .* does: nothing does under this contract's name$"
    ):
        acknowledgement("payout", "torn_cut", by="Ada", firing={})


def test_what_somebody_has_taken_on_is_refused_with_who() -> None:
    taken = acknowledgement("payouts", "missing_in_ledger", by="Ada", firing=FIRING)
    with pytest.raises(AcknowledgementRefused, match="acknowledged already, by Ada"):
        acknowledgement("payouts", "missing_in_ledger", by="Bob", firing=FIRING | {"missing_in_ledger": taken})


@pytest.mark.parametrize("by", ["", "  ", "Ad\udce9"])
def test_nobody_cannot_take_it_on(by: str) -> None:
    with pytest.raises(AcknowledgementRefused, match=r"^--by: got "):
        acknowledgement("payouts", "missing_in_ledger", by=by, firing=FIRING)


def test_a_name_that_drives_a_terminal_is_written_out() -> None:
    told = acknowledgement("payouts", "missing_in_ledger", by="Ada\x1b[2J", firing=FIRING)
    assert "\x1b" not in told.summary + told.details["acknowledged_by"]
