"""A run that ended without a verdict pages, and so does a window that has none though it should; verdicts end both."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Engine

from tallystick.alerting.alert import Alert
from tallystick.alerting.alert_json import Attempt, SinkFailed
from tallystick.contract.contract import Contract
from tallystick.pipeline.deliver_alerts import DeliveryFailed, deliver_pending, send_unrecorded
from tallystick.pipeline.missing_verdict_alert import (
    due_utc,
    overdue_alert,
    page_no_verdict,
    page_overdue_verdict,
    resolve_silences,
)
from tallystick.store.alerts.acknowledgement_store import acknowledge
from tallystick.store.alerts.alert_store import newest_alert
from tallystick.store.alerts.incident_store import read_incidents

from .conftest import NOON, Books

HOUR = timedelta(hours=1)


@dataclass
class Phone:
    """Takes alerts while it is on."""

    name: str
    is_on: bool = True
    heard: list[tuple[str, str]] = field(default_factory=list)

    def deliver(self, alert: Alert) -> str:
        if not self.is_on:
            raise SinkFailed("it is off")
        self.heard.append((alert.action, alert.dedup_key))
        return "202"


SILENT = ("trigger", "tallystick/payouts/no_verdict"), ("resolve", "tallystick/payouts/no_verdict")
OVERDUE = ("trigger", "tallystick/payouts/verdict_overdue"), ("resolve", "tallystick/payouts/verdict_overdue")


@pytest.fixture
def contract(new_contract: Callable[..., Contract]) -> Contract:
    sinks = [{"kind": "file", "path": name} for name in ("first", "second")]
    return new_contract(alert={"sinks": sinks}, settle_timeout_seconds=600, verdict_within_seconds=1200)


@pytest.fixture
def phone() -> Phone:
    return Phone("file:first")


@pytest.fixture
def books(contract: Contract) -> Books:
    """Window n of these ends at noon plus n hours; a verdict is due half an hour later."""
    return Books(contract)


def page(store: Engine, contract: Contract, *, run_id: str = "scheduled__1") -> None:
    page_no_verdict(store, contract, scheduler_run_id=run_id, cut_n=None)


def page_overdue(store: Engine, contract: Contract, *, n: int, run_id: str = "") -> bool:
    """As the deadline of the run of window n does."""
    end = NOON + n * HOUR
    overdue = overdue_alert(
        contract, scheduler_run_id=run_id or f"scheduled__{n}", window=(end - HOUR, end), due_utc=end + HOUR / 2
    )
    return page_overdue_verdict(store, contract, overdue, window_end_utc=end)


def resolve(store: Engine, contract: Contract, *, now_utc: Any = NOON) -> tuple[str, ...]:
    return resolve_silences(store, contract, now_utc=now_utc)


def deliver(store: Engine, *phones: Phone) -> None:
    deliver_pending(store, "payouts", phones)


def test_a_page_is_resolved_once_when_verdicts_are_back(
    store: Engine, contract: Contract, books: Books, phone: Phone
) -> None:
    page(store, contract)
    books.commit(store, books.result(0))
    assert [resolve(store, contract) for _ in range(2)] == [("no_verdict",), ()]
    deliver(store, phone)
    assert phone.heard == list(SILENT)


def test_a_page_does_not_end_by_a_verdict_that_was_there_before_it(
    store: Engine, contract: Contract, books: Books, phone: Phone
) -> None:
    """Somebody clears the alert task of an older run, so that it delivers once more."""
    books.commit(store, books.result(0))
    page(store, contract)
    assert resolve(store, contract) == ()
    books.commit(store, books.result(1))
    assert resolve(store, contract) == ("no_verdict",)
    deliver(store, phone)
    assert phone.heard == list(SILENT)


def test_where_nothing_was_paged_nothing_is_resolved(store: Engine, contract: Contract, phone: Phone) -> None:
    assert resolve(store, contract) == ()
    deliver(store, phone)
    assert phone.heard == []


def test_a_second_silence_pages_again_and_a_second_try_of_the_first_does_not(
    store: Engine, contract: Contract, books: Books, phone: Phone
) -> None:
    for run_id in ("scheduled__1", "scheduled__1", "scheduled__2"):
        page(store, contract, run_id=run_id)
    books.commit(store, books.result(0))
    resolve(store, contract)
    page(store, contract, run_id="scheduled__2")
    deliver(store, phone)
    assert phone.heard == [SILENT[0], *SILENT, SILENT[0]]


def test_a_phone_that_is_off_keeps_nobody_else_from_hearing_and_hears_it_later(
    store: Engine, contract: Contract, books: Books, phone: Phone
) -> None:
    off = Phone("file:second", is_on=False)
    page(store, contract)
    with pytest.raises(DeliveryFailed, match="file:second: trigger tallystick/payouts/no_verdict: it is off"):
        deliver(store, off, phone)
    books.commit(store, books.result(0))
    resolve(store, contract)
    off.is_on = True
    deliver(store, off, phone)
    assert (off.heard, phone.heard) == (list(SILENT), list(SILENT))


def test_a_window_without_a_verdict_pages_and_its_verdict_resolves_that(
    store: Engine, contract: Contract, books: Books, phone: Phone
) -> None:
    books.commit(store, books.result(0))
    assert page_overdue(store, contract, n=1) is True
    books.commit(store, books.result(1))
    assert resolve(store, contract, now_utc=NOON + 2 * HOUR) == ("verdict_overdue",)
    deliver(store, phone)
    assert phone.heard == list(OVERDUE)


@pytest.mark.parametrize("judged", [1, 2])
def test_a_window_that_is_judged_itself_or_by_a_later_one_does_not_page(
    store: Engine, contract: Contract, books: Books, phone: Phone, judged: int
) -> None:
    for n in range(judged + 1):
        books.commit(store, books.result(n))
    assert page_overdue(store, contract, n=1) is False
    deliver(store, phone)
    assert phone.heard == []


def test_an_old_run_that_is_cleared_pages_nobody_where_its_window_or_a_later_one_is_judged(
    store: Engine, contract: Contract, books: Books
) -> None:
    for n in (0, 1):
        books.commit(store, books.result(n))
    ended = {n: NOON + n * HOUR for n in (0, 1, 2)}
    paged = [
        page_no_verdict(store, contract, scheduler_run_id=f"r{n}", cut_n=None, window_end_utc=end)
        for n, end in ended.items()
    ]
    assert paged == [False, False, True]
    told = newest_alert(store, "payouts", "no_verdict")
    assert told is not None and told.details["scheduler_run_id"] == "r2"


def test_who_has_taken_an_outage_on_is_not_told_of_its_further_windows_and_is_not_forgotten(
    store: Engine, contract: Contract, books: Books, phone: Phone
) -> None:
    books.commit(store, books.result(0))
    page_overdue(store, contract, n=1)
    page(store, contract, run_id="scheduled__1")
    for name in ("verdict_overdue", "no_verdict"):
        acknowledge(store, "payouts", name, by="Ada")
    page_overdue(store, contract, n=2)
    page(store, contract, run_id="scheduled__2")
    assert {one.name: one.taken_on_by for one in read_incidents(store, "payouts")} == {
        "verdict_overdue": "Ada",
        "no_verdict": "Ada",
    }
    books.commit(store, books.result(1))
    page(store, contract, run_id="scheduled__2")
    assert {one.name for one in read_incidents(store, "payouts") if not one.taken_on_by} == {"no_verdict"}
    page_overdue(store, contract, n=2)
    assert {one.name for one in read_incidents(store, "payouts") if one.taken_on_by} == {"verdict_overdue"}


def test_who_has_taken_nothing_on_is_told_of_a_further_window(store: Engine, contract: Contract, books: Books) -> None:
    books.commit(store, books.result(0))
    for n in (1, 2):
        page_overdue(store, contract, n=n)
    told = newest_alert(store, "payouts", "verdict_overdue")
    assert told is not None and told.details["scheduler_run_id"] == "scheduled__2"


def test_an_end_names_the_owner_that_the_page_named(store: Engine, contract: Contract, books: Books) -> None:
    page(store, contract)
    books.commit(store, books.result(0))
    resolve(store, contract.model_copy(update={"owner": "another-team"}))
    over = newest_alert(store, "payouts", "no_verdict")
    assert over is not None and (over.action, over.details["owner"]) == ("resolve", "payouts-team")


def test_a_cut_without_a_verdict_is_overdue_all_the_same(store: Engine, contract: Contract, books: Books) -> None:
    books.commit(store, books.result(0))
    books.save(store, books.cut(1))
    assert page_overdue(store, contract, n=1) is True


def test_an_outage_is_over_when_all_that_was_missed_is_caught_up(
    store: Engine, contract: Contract, books: Books, phone: Phone
) -> None:
    books.commit(store, books.result(0))
    back_utc = NOON + 3 * HOUR + HOUR / 2
    assert page_overdue(store, contract, n=1) is True
    for n in (1, 2):
        books.commit(store, books.result(n))
        assert resolve(store, contract, now_utc=back_utc) == ()
    books.commit(store, books.result(3))
    assert resolve(store, contract, now_utc=back_utc) == ("verdict_overdue",)


def test_a_verdict_is_due_from_the_run_on_until_there_are_books_and_from_their_begin_then(
    store: Engine, contract: Contract, books: Books
) -> None:
    asked = {"window_end_utc": NOON - HOUR, "queued_utc": NOON + 5 * HOUR}
    assert due_utc(store, contract, **asked) == NOON + 5 * HOUR + HOUR / 2
    books.save(store, books.cut(0))
    assert due_utc(store, contract, **asked) == books.cut(0).marked_at_utc + HOUR / 2


def test_the_page_says_which_window_since_when_and_names_no_payload(contract: Contract) -> None:
    alert = overdue_alert(contract, scheduler_run_id="r", window=(NOON, NOON + HOUR), due_utc=NOON + 2 * HOUR)
    assert alert.summary == (
        "payouts: the window 2026-03-01 12:00:00 to 13:00:00 UTC has no verdict, and one was due at "
        "2026-03-01 14:00:00 UTC"
    )
    assert (alert.severity, alert.cut_n, alert.details["owner"]) == ("error", None, "payouts-team")


def test_without_an_outbox_a_page_is_sent_as_it_is(contract: Contract, phone: Phone) -> None:
    alert = overdue_alert(contract, scheduler_run_id="r", window=(NOON, NOON + HOUR), due_utc=NOON + 2 * HOUR)
    off = Phone("file:second", is_on=False)
    assert send_unrecorded(alert, (off, phone)) == (
        ("file:second", Attempt(delivered=False, detail="it is off")),
        ("file:first", Attempt(delivered=True, detail="202")),
    )
    assert phone.heard == [OVERDUE[0]]


def test_a_link_to_a_cut_is_left_out_where_there_is_none(store: Engine, contract: Contract) -> None:
    heard: list[Alert] = []

    class Listener:
        name = "file:first"

        def deliver(self, alert: Alert) -> str:
            heard.append(alert)
            return ""

    page(store, contract)
    links = {"runs": "https://airflow/{contract}", "report": "https://reports/{contract}/{cut_n}"}
    deliver_pending(store, "payouts", [Listener()], links=links)
    assert heard[0].details["links"] == {"runs": "https://airflow/payouts"}
