"""Alerts reach real receivers at least once, in order per key, whatever fails in between."""

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, text

from lab.servers.ports import free_port
from tallystick.alerting.acknowledgement import AcknowledgementRefused
from tallystick.alerting.alert import Alert
from tallystick.alerting.alert_json import SinkFailed, SinkRefused
from tallystick.alerting.sinks.alertmanager import AlertmanagerSink
from tallystick.alerting.sinks.connection import SinkConnection
from tallystick.alerting.sinks.file import FileSink
from tallystick.alerting.sinks.pagerduty import PagerDutySink
from tallystick.alerting.sinks.registry import sinks_for
from tallystick.alerting.sinks.webhook import WebhookSink
from tallystick.pipeline.deliver_alerts import DeliveryFailed, DeliverySummary, deliver_pending
from tallystick.store.alerts.acknowledgement_store import acknowledge
from tallystick.store.alerts.alert_store import firing_alerts
from tallystick.store.plans.plan_store import read_audit
from tests.alert_receiver import Receiver, receiving

from .alerts import PAGER, alert


def sink(receiver: Receiver, name: str = PAGER, *, timeout_seconds: float = 60) -> WebhookSink:
    return WebhookSink(name=name, address=receiver.address, timeout_seconds=timeout_seconds)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as told:
        yield told


def attempts(store: Engine) -> list[tuple[int, str, bool, str]]:
    statement = "select a.cut_n, d.sink, d.delivered, d.detail from tallystick.alert_delivery d"
    statement += " join tallystick.alert a using (alert_id) order by d.delivery_id"
    with store.connect() as connection:
        return [tuple(row) for row in connection.execute(text(statement))]


def test_an_alert_is_posted_once(store: Engine, books: Any, receiver: Receiver) -> None:
    books.commit(store, books.result(0), alerts=(alert(0),))
    assert deliver_pending(store, "payouts", [sink(receiver)]) == DeliverySummary(delivered=1, failed=0, held_back=0)
    assert deliver_pending(store, "payouts", [sink(receiver)]) == DeliverySummary(delivered=0, failed=0, held_back=0)
    assert receiver.taken == [
        {
            "schema_version": 1,
            "action": "trigger",
            "dedup_key": "tallystick/payouts/phantom_in_topic",
            "severity": "error",
            "summary": "cut 0",
            "details": {"new": 0, "money_minor": {"EUR": 2**53 + 1}, "links": {}},
        }
    ]
    assert attempts(store) == [(0, PAGER, True, "200")]


def test_links_are_filled_in_for_each_alert(store: Engine, books: Any, receiver: Receiver) -> None:
    books.commit(store, books.result(0), alerts=(alert(0),))
    links = {"report": "https://reports.example.org/{team}/{contract}/{cut_n}.html"}
    deliver_pending(store, "payouts", [sink(receiver)], links=links)
    assert receiver.taken[0]["details"]["links"] == {"report": "https://reports.example.org/{team}/payouts/0.html"}


@pytest.mark.parametrize(
    ("answer", "detail"),
    [
        (500, "the receiver answered 500"),
        (302, "the receiver answered 302"),
        ("reset", "no answer: RemoteProtocolError"),
        ("silence", "no answer within 0.3 s"),
        ("dribble", "no answer within 0.3 s"),
    ],
)
def test_what_a_receiver_did_not_take_is_sent_again(
    store: Engine, books: Any, receiver: Receiver, answer: int | str, detail: str
) -> None:
    books.commit(store, books.result(0), alerts=(alert(0),))
    receiver.answer = answer
    limit = 0.3 if "within" in detail else 60
    with pytest.raises(DeliveryFailed, match=detail) as raised:
        deliver_pending(store, "payouts", [sink(receiver, timeout_seconds=limit)])
    assert raised.value.summary == DeliverySummary(delivered=0, failed=1, held_back=0)
    assert "s3cret" not in str(raised.value)
    receiver.answer = 202
    deliver_pending(store, "payouts", [sink(receiver)])
    assert receiver.story == [("trigger", "phantom_in_topic")]
    assert attempts(store) == [(0, PAGER, False, detail), (0, PAGER, True, "202")]


def test_a_receiver_that_is_down_is_told_later(store: Engine, books: Any) -> None:
    books.commit(store, books.result(0), alerts=(alert(0),))
    nobody = WebhookSink(name=PAGER, address=f"http://127.0.0.1:{free_port()}/?token=s3cret")
    with pytest.raises(DeliveryFailed, match="no answer: ConnectError"):
        deliver_pending(store, "payouts", [nobody])


def test_a_later_alert_of_a_key_waits_for_the_earlier_one(store: Engine, books: Any, receiver: Receiver) -> None:
    books.commit(store, books.result(0), alerts=(alert(0),))
    books.commit(store, books.result(1), alerts=(alert(1, action="resolve"), alert(1, name="inconclusive")))
    receiver.answer = 500
    with pytest.raises(DeliveryFailed) as raised:
        deliver_pending(store, "payouts", [sink(receiver)])
    assert raised.value.summary == DeliverySummary(delivered=0, failed=2, held_back=1)
    assert receiver.asked == 2
    receiver.answer = 200
    deliver_pending(store, "payouts", [sink(receiver)])
    assert receiver.story == [
        ("trigger", "phantom_in_topic"),
        ("resolve", "phantom_in_topic"),
        ("trigger", "inconclusive"),
    ]


def test_a_sink_that_fails_stops_no_other_sink(store: Engine, books: Any, receiver: Receiver, tmp_path: Path) -> None:
    both = (PAGER, "file:alerts.jsonl")
    books.commit(store, books.result(0), alerts=(alert(0, sinks=both),))
    books.commit(store, books.result(1), alerts=(alert(1, action="resolve", sinks=both),))
    receiver.answer = 500
    file = FileSink(name="file:alerts.jsonl", path=tmp_path / "new" / "alerts.jsonl")
    with pytest.raises(DeliveryFailed) as raised:
        deliver_pending(store, "payouts", [sink(receiver), file])
    assert raised.value.summary == DeliverySummary(delivered=2, failed=1, held_back=1)
    receiver.answer = 200
    deliver_pending(store, "payouts", [sink(receiver), file])
    lines = [json.loads(line) for line in file.path.read_text().splitlines()]
    assert lines == receiver.taken


@dataclass(frozen=True)
class Faulty:
    """A sink with a bug in it."""

    name: str = "file:faulty"

    def deliver(self, alert: Alert) -> str:
        raise KeyError("https://hook.example.org/s3cret")


def test_a_bug_in_a_sink_stops_no_other_sink_and_its_text_is_not_kept(
    store: Engine, books: Any, receiver: Receiver
) -> None:
    books.commit(store, books.result(0), alerts=(alert(0, sinks=("file:faulty", PAGER)),))
    with pytest.raises(DeliveryFailed, match="file:faulty: trigger tallystick/payouts/phantom_in_topic: KeyError"):
        deliver_pending(store, "payouts", [Faulty(), sink(receiver)])
    assert attempts(store) == [(0, "file:faulty", False, "KeyError"), (0, PAGER, True, "200")]


def test_a_sink_that_is_added_later_hears_once_what_fires_and_no_history(
    store: Engine, books: Any, receiver: Receiver
) -> None:
    old = alert(0, name="amount_mismatch"), alert(0)
    books.commit(store, books.result(0), alerts=old)
    books.commit(store, books.result(1), alerts=(alert(1, name="amount_mismatch", action="resolve"),))
    with receiving() as before:
        for _ in range(2):
            deliver_pending(store, "payouts", [sink(before)])
        for _ in range(2):
            deliver_pending(store, "payouts", [sink(before), sink(receiver, "webhook:new")])
        assert before.story == [
            *(("trigger", "amount_mismatch"), ("trigger", "phantom_in_topic"), ("resolve", "amount_mismatch"))
        ]
    assert receiver.story == [("trigger", "phantom_in_topic")]


def test_a_sink_that_is_added_while_it_is_down_hears_what_fires_once_it_is_back(
    store: Engine, books: Any, receiver: Receiver
) -> None:
    books.commit(store, books.result(0), alerts=(alert(0),))
    receiver.first_answers = [503]
    with pytest.raises(DeliveryFailed):
        deliver_pending(store, "payouts", [sink(receiver, "webhook:new")])
    for _ in range(2):
        deliver_pending(store, "payouts", [sink(receiver, "webhook:new")])
    assert receiver.story == [("trigger", "phantom_in_topic")]


def test_a_sink_that_is_added_hears_the_trigger_of_what_is_acknowledged_before_it_hears_by_whom(
    store: Engine, books: Any, receiver: Receiver
) -> None:
    told = [("trigger", "phantom_in_topic"), ("acknowledge", "phantom_in_topic")]
    books.commit(store, books.result(0), alerts=(alert(0),))
    with receiving() as since_the_trigger:
        deliver_pending(store, "payouts", [sink(since_the_trigger, "webhook:before")])
        acknowledge(store, "payouts", "phantom_in_topic", by="Ada")
        receiver.first_answers = [503]
        with pytest.raises(DeliveryFailed):
            deliver_pending(store, "payouts", [sink(receiver, "webhook:new")])
        both = [sink(since_the_trigger, "webhook:before"), sink(receiver, "webhook:new")]
        for _ in range(2):
            deliver_pending(store, "payouts", both)
        assert (receiver.story, since_the_trigger.story) == (told, told)


def test_a_sink_that_refuses_a_trigger_is_not_told_who_has_taken_it_on(
    store: Engine, books: Any, receiver: Receiver
) -> None:
    books.commit(store, books.result(0), alerts=(alert(0),))
    acknowledge(store, "payouts", "phantom_in_topic", by="Ada")
    with pytest.raises(DeliveryFailed, match="refused"):
        deliver_pending(store, "payouts", [Choosy("cut 0", sink(receiver), name="webhook:new")])
    assert receiver.story == []


def test_a_message_that_a_sink_refuses_is_overtaken_by_the_next_and_never_sent_after_it(
    store: Engine, books: Any, receiver: Receiver
) -> None:
    books.commit(store, books.result(0), alerts=(alert(0),))
    receiver.answer = 400
    with pytest.raises(DeliveryFailed) as raised:
        deliver_pending(store, "payouts", [sink(receiver)])
    assert raised.value.retryable is False
    books.commit(store, books.result(1), alerts=(alert(1, action="resolve"),))
    with pytest.raises(DeliveryFailed):
        deliver_pending(store, "payouts", [sink(receiver)])
    assert receiver.asked == 3  # the refused one holds nothing back
    receiver.answer = 200
    deliver_pending(store, "payouts", [sink(receiver)])
    assert receiver.story == [("trigger", "phantom_in_topic"), ("resolve", "phantom_in_topic")]


def test_a_message_that_is_refused_once_more_after_its_resolve_was_taken_is_owed_no_longer(
    store: Engine, books: Any, receiver: Receiver
) -> None:
    books.commit(store, books.result(0), alerts=(alert(0),))
    books.commit(store, books.result(1), alerts=(alert(1, action="resolve"), alert(1, name="inconclusive")))
    refusing = Choosy("cut 0", sink(receiver))
    with pytest.raises(DeliveryFailed, match="refused"):
        deliver_pending(store, "payouts", [refusing])
    assert deliver_pending(store, "payouts", [sink(receiver)]).delivered == 0
    assert receiver.story == [("resolve", "phantom_in_topic"), ("trigger", "inconclusive")]


@dataclass(frozen=True)
class Choosy:
    """Refuses one message, and hands the others on."""

    summary: str
    behind: WebhookSink
    name: str = PAGER

    def deliver(self, alert: Alert) -> str:
        if alert.summary == self.summary:
            raise SinkRefused("refused")
        return self.behind.deliver(alert)


def test_a_failure_that_time_may_cure_is_curable_also_beside_a_refusal(
    store: Engine, books: Any, receiver: Receiver
) -> None:
    books.commit(store, books.result(0), alerts=(alert(0, sinks=("webhook:other", PAGER)),))
    receiver.answer = 503
    refusing = Choosy("cut 0", sink(receiver), name="webhook:other")
    with pytest.raises(DeliveryFailed) as raised:
        deliver_pending(store, "payouts", [refusing, sink(receiver)])
    assert raised.value.retryable is True


def test_a_sink_that_asks_to_be_left_alone_is_not_asked_until_then(
    store: Engine, books: Any, receiver: Receiver
) -> None:
    books.commit(store, books.result(0), alerts=(alert(0), alert(0, name="inconclusive")))
    receiver.answer, receiver.answer_headers = 429, {"Retry-After": "3000"}
    for held_back, failed in ((1, 1), (2, 0)):
        with pytest.raises(DeliveryFailed, match="webhook:pager: it asked to be left alone for") as raised:
            deliver_pending(store, "payouts", [sink(receiver)])
        assert raised.value.summary == DeliverySummary(delivered=0, failed=failed, held_back=held_back)
        assert raised.value.retryable
    assert receiver.asked == 1


def test_a_sink_that_asked_for_a_second_is_asked_again_after_it(store: Engine, books: Any, receiver: Receiver) -> None:
    books.commit(store, books.result(0), alerts=(alert(0),))
    receiver.answer, receiver.answer_headers = 503, {"Retry-After": "1"}
    begun = time.monotonic()
    with pytest.raises(DeliveryFailed):
        deliver_pending(store, "payouts", [sink(receiver)])
    receiver.answer = 200
    while not receiver.taken and time.monotonic() < begun + 60:
        with suppress(DeliveryFailed):
            deliver_pending(store, "payouts", [sink(receiver)])
    assert receiver.asked == 2
    assert time.monotonic() - begun > 0.9


def test_what_still_fires_is_sent_again_to_a_sink_that_forgets_and_to_no_other(
    store: Engine, books: Any, receiver: Receiver
) -> None:
    both = ("alertmanager:am", PAGER)
    books.commit(store, books.result(0), alerts=(alert(0, sinks=both),))
    with receiving() as manager:
        forgetful = AlertmanagerSink(
            name="alertmanager:am", address=manager.base, fires_until=lambda now_utc: now_utc + timedelta(hours=1)
        )
        for _ in range(3):
            deliver_pending(store, "payouts", [forgetful, sink(receiver)])
        books.commit(store, books.result(1), alerts=(alert(1, action="resolve", sinks=both),))
        for _ in range(2):
            deliver_pending(store, "payouts", [forgetful, sink(receiver)])
        ends = [max(one["endsAt"] for one in documents) > one_hour_hence() for documents in manager.taken]
        begins = {one["startsAt"] for documents in manager.taken for one in documents}
    assert ends == [True, True, True, False]
    assert len(begins) == 1
    assert receiver.story == [("trigger", "phantom_in_topic"), ("resolve", "phantom_in_topic")]


def one_hour_hence() -> str:
    """A little less: some time has passed since it was sent."""
    return (datetime.now(UTC) + timedelta(minutes=30)).isoformat()


def test_an_acknowledged_incident_is_told_to_its_sinks_and_resolves_as_the_same_one(
    store: Engine, books: Any, receiver: Receiver
) -> None:
    pager = PagerDutySink(name="pagerduty:pd", address=receiver.base, routing_key="key", timeout_seconds=60)
    books.commit(store, books.result(0), alerts=(alert(0, sinks=(pager.name,)),))
    deliver_pending(store, "payouts", [pager])
    acknowledge(store, "payouts", "phantom_in_topic", by="Ada")
    deliver_pending(store, "payouts", [pager])
    assert firing_alerts(store, "payouts")["phantom_in_topic"].details["acknowledged_by"] == "Ada"
    books.commit(store, books.result(1), alerts=(alert(1, action="resolve", sinks=(pager.name,)),))
    deliver_pending(store, "payouts", [pager])
    assert [event["event_action"] for event in receiver.taken] == ["trigger", "acknowledge", "resolve"]
    assert {event["dedup_key"] for event in receiver.taken} == {"tallystick/payouts/phantom_in_topic"}
    with pytest.raises(AcknowledgementRefused, match="does not fire; expected one that does: nothing"):
        acknowledge(store, "payouts", "phantom_in_topic", by="Ada")
    assert [(entry.actor, entry.event) for entry in read_audit(store, "payouts")] == [("Ada", "acknowledged")]


def test_of_two_who_take_an_incident_on_at_once_one_has_it(store: Engine, books: Any) -> None:
    books.commit(store, books.result(0), alerts=(alert(0),))

    def try_to(by: str) -> bool:
        try:
            acknowledge(store, "payouts", "phantom_in_topic", by=by)
        except AcknowledgementRefused:
            return False
        return True

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(try_to, "ABCD")) == [False, False, False, True]
    assert len(read_audit(store, "payouts")) == 1


def test_two_deliverers_at_once_keep_the_order(store: Engine, books: Any, receiver: Receiver) -> None:
    for n in range(6):
        books.commit(store, books.result(n), alerts=(alert(n, action="resolve" if n % 2 else "trigger"),))
    with ThreadPoolExecutor(3) as pool:
        done = list(pool.map(lambda _: deliver_pending(store, "payouts", [sink(receiver)]), range(3)))
    assert [message["summary"] for message in receiver.taken] == [f"cut {n}" for n in range(6)]
    assert sum(summary.delivered for summary in done) == 6


def test_the_sinks_are_the_contracts_own(new_contract: Any, receiver: Receiver, tmp_path: Path) -> None:
    sinks = [{"kind": "webhook", "connection": "pager"}, {"kind": "file", "path": "on-call/alerts.jsonl"}]
    contract = new_contract(alert={"sinks": sinks})
    connections = {"pager": SinkConnection(address=receiver.address)}
    pager, file = sinks_for(contract, connections=connections, artifacts=tmp_path)
    assert pager == WebhookSink(name="webhook:pager", address=receiver.address)
    assert file == FileSink(name="file:on-call/alerts.jsonl", path=tmp_path / "on-call" / "alerts.jsonl")
    assert "s3cret" not in repr(pager)


def test_a_line_that_a_full_disk_cut_does_not_spoil_the_next(tmp_path: Path) -> None:
    sink = FileSink(name="file:alerts.jsonl", path=tmp_path / "alerts.jsonl")
    sink.path.write_text('{"cut short')
    sink.deliver(alert(0))
    sink.deliver(replace(alert(1), summary="Ünïcode"))
    lines = sink.path.read_text().splitlines()
    assert lines[0] == '{"cut short'
    assert [json.loads(line)["summary"] for line in lines[1:]] == ["cut 0", "Ünïcode"]


def test_a_file_that_cannot_be_written_is_a_failed_sink(tmp_path: Path) -> None:
    (tmp_path / "alerts.jsonl").mkdir()
    with pytest.raises(SinkFailed, match="the file cannot be written"):
        FileSink(name="file:alerts.jsonl", path=tmp_path / "alerts.jsonl").deliver(alert(0))
