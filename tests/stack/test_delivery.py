"""Alerts reach real receivers at least once, in order per key, whatever fails in between."""

import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, text

from lab.ports import free_port
from tallystick.alert import Alert, AlertAction
from tallystick.alert_message import SinkFailed
from tallystick.contract import Severity
from tallystick.delivery import DeliveryFailed, DeliverySummary, deliver_pending, sinks_for
from tallystick.file_sink import FileSink
from tallystick.webhook_sink import WebhookSink

PAGER = "webhook:pager"


@dataclass
class Receiver:
    """A pager that answers as it is told and keeps what it took."""

    answer: int | str = 200
    asked: int = 0
    taken: list[dict[str, Any]] = field(default_factory=list)
    port: int = 0

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook?token=s3cret"

    @property
    def story(self) -> list[tuple[str, str]]:
        return [(message["action"], message["dedup_key"].rsplit("/", 1)[1]) for message in self.taken]

    def sink(self, name: str = PAGER) -> WebhookSink:
        return WebhookSink(name=name, address=self.address, timeout_seconds=0.3)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    told = Receiver()
    ended = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            told.asked += 1
            if told.answer == "reset":
                self.connection.close()
            elif told.answer == "silence":
                ended.wait(5)
            else:
                assert isinstance(told.answer, int)
                if told.answer < 300:
                    told.taken.append(body)
                self.send_response(told.answer)
                self.end_headers()

        def log_message(self, *_: object) -> None:
            """Keep the test's output quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    told.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield told
    ended.set()
    server.shutdown()
    thread.join()
    server.server_close()


def alert(
    n: int, topic: str = "phantom_in_topic", *, action: str = "trigger", sinks: tuple[str, ...] = (PAGER,)
) -> Alert:
    return Alert(
        contract="payouts",
        cut_n=n,
        topic=topic,
        action=AlertAction(action),
        severity=Severity.ERROR,
        summary=f"cut {n}",
        details={"new": n, "money_minor": {"EUR": 2**53 + 1}},
        sinks=sinks,
    )


def attempts(store: Engine) -> list[tuple[int, str, bool, str]]:
    statement = "select a.cut_n, d.sink, d.delivered, d.detail from tallystick.alert_delivery d"
    statement += " join tallystick.alert a using (alert_id) order by d.delivery_id"
    with store.connect() as connection:
        return [tuple(row) for row in connection.execute(text(statement))]


def test_an_alert_is_posted_once(store: Engine, books: Any, receiver: Receiver) -> None:
    books.commit(store, books.result(0), alerts=(alert(0),))
    assert deliver_pending(store, "payouts", [receiver.sink()]) == DeliverySummary(delivered=1, failed=0, held_back=0)
    assert deliver_pending(store, "payouts", [receiver.sink()]) == DeliverySummary(delivered=0, failed=0, held_back=0)
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
    links = {"report": "https://reports.example.org/{contract}/{cut_n}.html"}
    deliver_pending(store, "payouts", [receiver.sink()], links=links)
    assert receiver.taken[0]["details"]["links"] == {"report": "https://reports.example.org/payouts/0.html"}


@pytest.mark.parametrize(
    ("answer", "detail"),
    [
        (500, "the receiver answered 500"),
        (302, "the receiver answered 302"),
        ("reset", "no answer: RemoteProtocolError"),
        ("silence", "no answer: ReadTimeout"),
    ],
)
def test_what_a_receiver_did_not_take_is_sent_again(
    store: Engine, books: Any, receiver: Receiver, answer: int | str, detail: str
) -> None:
    books.commit(store, books.result(0), alerts=(alert(0),))
    receiver.answer = answer
    with pytest.raises(DeliveryFailed, match=detail) as raised:
        deliver_pending(store, "payouts", [receiver.sink()])
    assert raised.value.summary == DeliverySummary(delivered=0, failed=1, held_back=0)
    assert "s3cret" not in str(raised.value)
    receiver.answer = 202
    deliver_pending(store, "payouts", [receiver.sink()])
    assert receiver.story == [("trigger", "phantom_in_topic")]
    assert attempts(store) == [(0, PAGER, False, detail), (0, PAGER, True, "202")]


def test_a_receiver_that_is_down_is_told_later(store: Engine, books: Any) -> None:
    books.commit(store, books.result(0), alerts=(alert(0),))
    nobody = WebhookSink(name=PAGER, address=f"http://127.0.0.1:{free_port()}/?token=s3cret")
    with pytest.raises(DeliveryFailed, match="no answer: ConnectError"):
        deliver_pending(store, "payouts", [nobody])


def test_a_later_alert_of_a_key_waits_for_the_earlier_one(store: Engine, books: Any, receiver: Receiver) -> None:
    books.commit(store, books.result(0), alerts=(alert(0),))
    books.commit(store, books.result(1), alerts=(alert(1, action="resolve"), alert(1, "inconclusive")))
    receiver.answer = 500
    with pytest.raises(DeliveryFailed) as raised:
        deliver_pending(store, "payouts", [receiver.sink()])
    assert raised.value.summary == DeliverySummary(delivered=0, failed=2, held_back=1)
    assert receiver.asked == 2
    receiver.answer = 200
    deliver_pending(store, "payouts", [receiver.sink()])
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
        deliver_pending(store, "payouts", [receiver.sink(), file])
    assert raised.value.summary == DeliverySummary(delivered=2, failed=1, held_back=1)
    receiver.answer = 200
    deliver_pending(store, "payouts", [receiver.sink(), file])
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
        deliver_pending(store, "payouts", [Faulty(), receiver.sink()])
    assert attempts(store) == [(0, "file:faulty", False, "KeyError"), (0, PAGER, True, "200")]


def test_a_sink_added_later_hears_no_history(store: Engine, books: Any, receiver: Receiver) -> None:
    books.commit(store, books.result(0), alerts=(alert(0),))
    deliver_pending(store, "payouts", [receiver.sink("webhook:new")])
    assert receiver.taken == []


def test_two_deliverers_at_once_keep_the_order(store: Engine, books: Any, receiver: Receiver) -> None:
    for n in range(6):
        books.commit(store, books.result(n), alerts=(alert(n, action="resolve" if n % 2 else "trigger"),))
    with ThreadPoolExecutor(3) as pool:
        done = list(pool.map(lambda _: deliver_pending(store, "payouts", [receiver.sink()]), range(3)))
    assert [message["summary"] for message in receiver.taken] == [f"cut {n}" for n in range(6)]
    assert sum(summary.delivered for summary in done) == 6


def test_the_sinks_are_the_contracts_own(new_contract: Any, receiver: Receiver, tmp_path: Path) -> None:
    sinks = [{"kind": "webhook", "connection": "pager"}, {"kind": "file", "path": "on-call/alerts.jsonl"}]
    contract = new_contract(alert={"sinks": sinks})
    pager, file = sinks_for(contract, webhook_addresses={"pager": receiver.address}, artifacts_folder=tmp_path)
    assert pager == WebhookSink(name="webhook:pager", address=receiver.address)
    assert file == FileSink(name="file:on-call/alerts.jsonl", path=tmp_path / "on-call" / "alerts.jsonl")
    assert "s3cret" not in repr(pager)


def test_a_sink_without_an_address_fails_when_it_is_sent_to(new_contract: Any, tmp_path: Path) -> None:
    contract = new_contract(alert={"sinks": [{"kind": "webhook", "connection": "pager"}]})
    (pager,) = sinks_for(contract, webhook_addresses={}, artifacts_folder=tmp_path)
    with pytest.raises(SinkFailed, match="no address was given"):
        pager.deliver(alert(0))


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


def test_a_slow_receiver_does_not_hold_a_task_for_long(receiver: Receiver) -> None:
    receiver.answer = "silence"
    started = time.monotonic()
    with pytest.raises(SinkFailed):
        receiver.sink().deliver(alert(0))
    assert time.monotonic() - started < 2
