"""What the alert task makes of a delivery that failed: a retry where that may cure it, and none where it cannot."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException

from tallystick.pipeline import deliver_alerts, missing_verdict_alert
from tallystick.pipeline.deliver_alerts import DeliveryFailed, DeliverySummary
from tallystick.store import clock
from tallystick.store.runs import run_store
from tallystick_airflow import alert_sinks
from tallystick_airflow.operators import alert_operator
from tallystick_airflow.operators.alert_operator import AlertOperator

CONTRACT_FILE = str(Path(__file__).parents[2] / "dags" / "contracts" / "billing_payouts.yaml")


def deliver(monkeypatch: pytest.MonkeyPatch, *, retryable: bool) -> None:
    """Run the task of a judged cut whose alerts nobody takes."""

    @contextmanager
    def no_store(_: str) -> Iterator[None]:
        yield None

    def fails(*_: Any, **__: Any) -> None:
        summary = DeliverySummary(delivered=0, failed=1, held_back=0)
        raise DeliveryFailed(summary, ["webhook:pager: it said no"], retryable=retryable)

    monkeypatch.setattr(alert_operator, "open_verdict_store", no_store)
    monkeypatch.setattr(alert_sinks, "read_sinks", lambda _: ())
    monkeypatch.setattr(clock, "store_now", lambda _: datetime(2026, 3, 1, tzinfo=UTC))
    monkeypatch.setattr(run_store, "read_run", lambda *_: object())
    monkeypatch.setattr(missing_verdict_alert, "resolve_silences", lambda *_, **__: ())
    monkeypatch.setattr(deliver_alerts, "deliver_pending", fails)
    AlertOperator(task_id="alert", contract_file=CONTRACT_FILE, cut_n="7").execute({"run_id": "r"})


def test_a_delivery_that_a_later_try_may_cure_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DeliveryFailed, match="webhook:pager: it said no"):
        deliver(monkeypatch, retryable=True)


def test_a_delivery_that_was_refused_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AirflowFailException, match="webhook:pager: it said no"):
        deliver(monkeypatch, retryable=False)


@pytest.mark.parametrize("window_end_utc", [datetime(2026, 3, 1, tzinfo=UTC), None])
def test_a_run_without_a_verdict_is_told_of_with_the_end_of_its_window(
    monkeypatch: pytest.MonkeyPatch, window_end_utc: datetime | None
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(missing_verdict_alert, "page_no_verdict", lambda *_, **told: asked.append(told))
    monkeypatch.setattr(alert_operator, "open_verdict_store", nullcontext)
    monkeypatch.setattr(alert_operator, "deliver", lambda *_, **__: DeliverySummary(delivered=0, failed=0, held_back=0))
    context: Any = {"run_id": "r"} | ({"data_interval_end": window_end_utc} if window_end_utc else {})
    AlertOperator(task_id="alert", contract_file=CONTRACT_FILE, cut_n="").execute(context)
    assert asked == [{"scheduler_run_id": "r", "cut_n": None, "window_end_utc": window_end_utc}]
