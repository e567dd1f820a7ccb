"""What a missed deadline does: looks into the store, pages once it is time, and does not give up at once."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tallystick.alerting.alert import Alert
from tallystick.contract.contract import load_contract
from tallystick.pipeline import deliver_alerts, missing_verdict_alert
from tallystick.store import clock
from tallystick.store.alerts import alert_store
from tallystick.store.engine import StoreUnreachable
from tallystick_airflow import overdue_verdict
from tallystick_airflow.overdue_verdict import page_if_overdue

CONTRACT = load_contract(Path(__file__).parents[2] / "dags" / "contracts" / "billing_payouts.yaml")
ELEVEN = datetime(2026, 3, 1, 11, tzinfo=UTC)
NOON = ELEVEN + timedelta(hours=1)
"""What the verdict store's clock says."""
RUN = {
    "dag_id": "reconcile_billing_payouts",
    "dag_run_id": "scheduled__1",
    "data_interval_start": "2026-03-01T10:00:00Z",
    "data_interval_end": "2026-03-01T11:00:00Z",
    "queued_at": "2026-03-01T11:00:01.5Z",
}


class Store:
    """What the verdict store and the sinks will do, and what was asked of them."""

    def __init__(self) -> None:
        self.due_utc = [ELEVEN]
        self.fails: list[Exception] = []
        self.is_judged = False
        self.paged: list[Alert] = []
        self.sent_without: list[Alert] = []
        self.waited: list[float] = []
        self.delivered = 0
        self.firing: set[str] = set()
        self.held: list[str] = []

    @contextmanager
    def open(self, _: str) -> Iterator["Store"]:
        if self.fails:
            raise self.fails.pop(0)
        yield self

    def when_due(self, *_: Any, **asked: Any) -> datetime:
        assert asked["window_end_utc"] == ELEVEN
        return self.due_utc.pop(0) if len(self.due_utc) > 1 else self.due_utc[0]

    def page(self, _: Any, __: Any, alert: Alert, *, window_end_utc: datetime) -> bool:
        if not self.is_judged:
            self.paged.append(alert)
        return not self.is_judged

    def deliver(self, *_: Any, **__: Any) -> None:
        self.delivered += 1

    @contextmanager
    def lock(self, _: Any, name: str) -> Iterator[None]:
        self.held.append(name)
        try:
            yield
        finally:
            self.held.remove(name)

    def send(self, alert: Alert, _: Any) -> tuple[()]:
        assert self.held == (["billing_payouts"] if alert.action == "resolve" else [])
        self.sent_without.append(alert)
        return ()

    async def wait(self, seconds: float) -> None:
        self.waited.append(seconds)


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Store:
    store = Store()
    monkeypatch.setattr(overdue_verdict, "open_verdict_store", store.open)
    monkeypatch.setattr(overdue_verdict, "read_sinks", lambda _: ())
    monkeypatch.setattr(clock, "store_now", lambda _: NOON)
    monkeypatch.setattr(missing_verdict_alert, "due_utc", store.when_due)
    monkeypatch.setattr(missing_verdict_alert, "page_overdue_verdict", store.page)
    monkeypatch.setattr(deliver_alerts, "deliver_pending", store.deliver)
    monkeypatch.setattr(deliver_alerts, "send_unrecorded", store.send)
    monkeypatch.setattr(alert_store, "one_deliverer", store.lock)
    monkeypatch.setattr(alert_store, "firing_names", lambda *_: store.firing if store.held else {"verdict_overdue"})
    monkeypatch.setattr(overdue_verdict.asyncio, "sleep", store.wait)
    return store


def miss() -> None:
    """As the triggerer calls it."""
    asyncio.run(
        page_if_overdue(contract_json=CONTRACT.model_dump_json(), context={"dag_run": RUN, "deadline": {"id": "1"}})
    )


def test_a_window_without_a_verdict_pages_for_its_run(store: Store) -> None:
    miss()
    (alert,) = store.paged
    assert (alert.dedup_key, alert.details["scheduler_run_id"]) == (
        "tallystick/billing_payouts/verdict_overdue",
        "scheduled__1",
    )
    assert alert.details["window_end_utc"] == "2026-03-01T11:00:00+00:00"
    assert (store.delivered, store.waited, store.sent_without) == (1, [], [])


def test_a_run_that_ended_in_time_with_a_broken_verdict_pages_nobody(store: Store) -> None:
    store.is_judged = True
    miss()
    assert (store.paged, store.delivered, store.waited) == ([], 0, [])


def test_a_window_from_before_the_books_waits_until_its_verdict_is_due(store: Store) -> None:
    store.due_utc = [NOON + timedelta(hours=1), ELEVEN]
    miss()
    assert store.waited == [3600]
    assert len(store.paged) == 1


def test_a_store_that_does_not_answer_is_told_of_once_and_the_page_is_recorded_later(store: Store) -> None:
    store.fails = [StoreUnreachable("no answer"), StoreUnreachable("no answer")]
    miss()
    assert [alert.dedup_key for alert in store.sent_without] == ["tallystick/billing_payouts/verdict_overdue"]
    assert (len(store.paged), store.delivered, store.waited) == (1, 1, [15, 30])


def test_what_was_told_without_the_store_ends_where_the_window_was_judged_in_time(store: Store) -> None:
    store.fails, store.is_judged = [StoreUnreachable("no answer")], True
    miss()
    assert [str(alert.action) for alert in store.sent_without] == ["trigger", "resolve"]
    assert len({alert.dedup_key for alert in store.sent_without}) == 1
    assert (store.paged, store.waited) == ([], [15])


def test_what_was_told_without_the_store_goes_on_while_a_later_window_is_overdue(store: Store) -> None:
    store.fails, store.is_judged, store.firing = [StoreUnreachable("no answer")], True, {"verdict_overdue"}
    miss()
    assert [str(alert.action) for alert in store.sent_without] == ["trigger"]


def test_what_was_told_without_the_store_ends_though_that_fails_at_first(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    fails = [StoreUnreachable("no answer")]

    def firing(*_: Any) -> set[str]:
        if fails:
            raise fails.pop()
        return set()

    store.fails, store.is_judged = [StoreUnreachable("no answer")], True
    monkeypatch.setattr(alert_store, "firing_names", firing)
    miss()
    assert [str(alert.action) for alert in store.sent_without] == ["trigger", "resolve"]


def test_what_was_told_without_the_store_is_recorded_however_late_the_store_answers(store: Store) -> None:
    store.fails = [StoreUnreachable("no answer") for _ in range(20)]
    miss()
    assert (len(store.sent_without), len(store.paged), len(store.waited)) == (1, 1, 20)
    assert store.waited[6:] == 14 * [600]


def test_another_failure_is_tried_again_and_not_told_around_the_store(store: Store) -> None:
    store.fails = [ValueError("a sink is down")]
    miss()
    assert (store.sent_without, len(store.paged), store.waited) == ([], 1, [15])


def test_what_never_succeeds_is_shown_as_a_failed_callback(store: Store) -> None:
    store.fails = [ValueError(f"try {n}") for n in range(1, 9)]
    with pytest.raises(ValueError, match="try 7"):
        miss()
    assert store.waited == [15, 30, 60, 120, 300, 600]
