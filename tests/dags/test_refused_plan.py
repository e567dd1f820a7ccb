"""A compensation's task is tried again where that may help, and fails at once where it cannot."""

import pytest
from airflow.sdk.exceptions import AirflowFailException

from tallystick.compensation.kill_switch import OutsideActingHours
from tallystick.compensation.plan import PlanRefused
from tallystick.contract.change import ContractChangeRefused
from tallystick.executor.effects.airflow_api import AirflowUnreachable
from tallystick.executor.progress_topic import ProgressHeld, ProgressLost
from tallystick.kafka_log.fetch import BrokerUnreachable
from tallystick.ledger.protocol import LedgerRefused, LedgerUnreachable
from tallystick_airflow.refused_plan import no_retry_for_a_refused_plan


@pytest.mark.parametrize(
    "kind", [PlanRefused, OutsideActingHours, ProgressLost, LedgerRefused, ContractChangeRefused], ids=str
)
def test_what_no_retry_cures_fails_at_once_under_its_own_name(kind: type[Exception]) -> None:
    with pytest.raises(AirflowFailException, match=f"^{kind.__name__}: what was found$"), no_retry_for_a_refused_plan():
        raise kind("what was found")


@pytest.mark.parametrize(
    "kind",
    [ProgressHeld, BrokerUnreachable, LedgerUnreachable, AirflowUnreachable, ZeroDivisionError],
    ids=str,
)
def test_what_a_retry_may_cure_and_a_bug_pass_unchanged(kind: type[Exception]) -> None:
    with pytest.raises(kind, match=r"^what was found$"), no_retry_for_a_refused_plan():
        raise kind("what was found")
