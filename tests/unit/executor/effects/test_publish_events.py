"""Records are put into Kafka together or not at all, by a producer whose answers the test writes.

A producer of the real client cannot be made to answer so; tests/stack asks a broker what it can be made to.
"""

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from tallystick.executor.effects import publish_events
from tallystick.executor.effects.publish_events import (
    ExecutorFenced,
    OutgoingRecord,
    TransactionAborted,
    open_publisher,
    publish_together,
    transactional_id_of,
)
from tallystick.executor.effects.step import ExecutorStep

ONE = OutgoingRecord(topic="billing.payouts", key=b"k1", value=b"v1", headers=(("session", b"s"),))
OTHER = OutgoingRecord(topic="billing.fees", key=b"k2", value=b"v2")


def failure(code: int, text: str = "it says why", **flags: bool) -> KafkaException:
    return KafkaException(KafkaError(code, text, **flags))


RETRIABLE = failure(KafkaError._TIMED_OUT, retriable=True)
ABORTABLE = failure(KafkaError._TIMED_OUT, "must be aborted", txn_requires_abort=True)
FATAL = failure(KafkaError._FATAL, "no more of this producer")
PERMANENT = failure(KafkaError.CLUSTER_AUTHORIZATION_FAILED)


class Message:
    """What a delivery report tells of a record."""

    def partition(self) -> int:
        return 3

    def offset(self) -> int:
        return 70


class Producer:
    """Notes what is asked of it. answers: by call, what is raised the next times. refuses: why a report says no."""

    def __init__(self, **answers: list[BaseException]) -> None:
        self.answers, self.asked, self.produced = answers, list[str](), list[dict[str, Any]]()
        self.refuses: list[KafkaError | None] = []
        self.reports: list[Callable[[], None]] = []

    def _ask(self, call: str) -> None:
        self.asked.append(call)
        if self.answers.get(call):
            raise self.answers[call].pop(0)

    def init_transactions(self, seconds: float) -> None:
        self._ask(f"init {seconds}")

    def begin_transaction(self) -> None:
        self._ask("begin")

    def produce(self, topic: str, *, on_delivery: Callable[[Any, Any], None], **record: Any) -> None:
        self._ask("produce")
        self.produced.append({"topic": topic, **record})
        refused = self.refuses.pop(0) if self.refuses else None
        self.reports.append(lambda: on_delivery(refused, Message()))

    def poll(self, seconds: float) -> None:
        self._ask(f"poll {seconds}")

    def flush(self) -> None:
        self.asked.append("flush")
        while self.reports:
            self.reports.pop(0)()
        if self.answers.get("flush"):
            raise self.answers["flush"].pop(0)

    def commit_transaction(self, seconds: float) -> None:
        self._ask(f"commit {seconds}")

    def abort_transaction(self, seconds: float) -> None:
        self._ask(f"abort {seconds}")


def published(producer: Producer, **asked: Any) -> tuple[tuple[Mapping[str, Any], ...], list[tuple[str, Any]]]:
    """Of two records: where they are, and the steps that were told."""
    steps: list[tuple[str, Any]] = []
    told = publish_together(
        producer,  # type: ignore[arg-type]
        [ONE, OTHER],
        on_progress=lambda step, figures: steps.append((step, figures)),
        **asked,
    )
    return told, steps


WHOLE = ["begin", "produce", "produce", "flush", "commit -1"]


def test_records_are_published_in_one_transaction_and_each_ones_place_is_told() -> None:
    producer = Producer()
    told, steps = published(producer)
    assert producer.asked == WHOLE
    assert producer.produced == [
        {"topic": "billing.payouts", "key": b"k1", "value": b"v1", "headers": [("session", b"s")]},
        {"topic": "billing.fees", "key": b"k2", "value": b"v2", "headers": []},
    ]
    assert told == (
        {"topic": "billing.payouts", "partition": 3, "offset": 70},
        {"topic": "billing.fees", "partition": 3, "offset": 70},
    )
    assert steps == [
        (ExecutorStep.BEGUN, {}),
        (ExecutorStep.PRODUCED, {"record": 1, "of": 2, "topic": "billing.payouts"}),
        (ExecutorStep.PRODUCED, {"record": 2, "of": 2, "topic": "billing.fees"}),
        (ExecutorStep.FLUSHED, {}),
        (ExecutorStep.PUBLISHED, {}),
    ]


def test_the_steps_need_nobody_who_hears_them() -> None:
    assert len(publish_together(Producer(), [ONE])) == 1  # type: ignore[arg-type]


def test_whoever_says_why_not_is_asked_once_the_broker_has_all_and_the_transaction_is_aborted() -> None:
    producer, asked = Producer(), list[list[str]]()

    def why_not() -> str:
        asked.append(list(producer.asked))
        return "the break is outstanding no more"

    steps: list[tuple[str, Any]] = []
    with pytest.raises(TransactionAborted, match="the break is outstanding no more"):
        publish_together(
            producer,  # type: ignore[arg-type]
            [ONE],
            on_progress=lambda step, figures: steps.append((step, figures)),
            why_not_commit=why_not,
        )
    assert asked == [["begin", "produce", "flush"]]
    assert producer.asked == ["begin", "produce", "flush", "flush", "abort -1"]
    assert steps[-1] == (ExecutorStep.ABORTED, {"error": "the break is outstanding no more"})
    assert ExecutorStep.PUBLISHED not in [step for step, _ in steps]
    assert published(Producer(), why_not_commit=lambda: None)[0]


@pytest.mark.parametrize("call", ["begin", "produce", "flush", "commit -1"])
def test_what_kafka_says_may_help_is_asked_again_up_to_ten_times(call: str) -> None:
    producer = Producer(**{call: [RETRIABLE] * 9})
    published(producer)
    assert producer.asked.count(call) == WHOLE.count(call) + 9
    with pytest.raises(KafkaException):
        published(given_up := Producer(**{call: [RETRIABLE] * 10}))
    assert (given_up.asked.count(call), "abort -1" in given_up.asked) == (10, False)


@pytest.mark.parametrize("call", ["begin", "produce", "flush", "commit -1"])
def test_what_nothing_helps_is_raised_at_once_and_nothing_more_is_asked(call: str) -> None:
    producer = Producer(**{call: [PERMANENT]})
    with pytest.raises(KafkaException) as raised:
        published(producer)
    assert raised.value is PERMANENT
    assert producer.asked[-1] == call


@pytest.mark.parametrize("code", [KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH])
@pytest.mark.parametrize("call", ["begin", "produce", "flush", "commit -1"])
def test_one_that_another_has_fenced_says_so_and_may_start_again(call: str, code: int) -> None:
    producer = Producer(**{call: [failure(code, "fenced", retriable=True)]})
    with pytest.raises(ExecutorFenced, match="fenced") as raised:
        published(producer)
    assert raised.value.retryable
    assert producer.asked[-1] == call


@pytest.mark.parametrize("error", [ABORTABLE, FATAL], ids=["abortable", "fatal"])
@pytest.mark.parametrize("call", ["produce", "flush", "commit -1"])
def test_a_transaction_that_has_failed_is_aborted_and_a_new_one_may_be_tried(call: str, error: KafkaException) -> None:
    producer = Producer(**{call: [error]})
    with pytest.raises(TransactionAborted, match=error.args[0].str()) as raised:
        published(producer)
    assert raised.value.retryable
    assert producer.asked[-2:] == ["flush", "abort -1"]
    assert TransactionAborted.retryable and ExecutorFenced.retryable


def test_one_that_has_failed_is_aborted_though_its_last_flush_fails_too() -> None:
    producer = Producer(**{"commit -1": [ABORTABLE], "flush": [RETRIABLE, ABORTABLE]})
    with pytest.raises(TransactionAborted):
        published(producer)
    assert producer.asked[-1] == "abort -1"


def test_the_reason_of_an_abort_is_the_record_that_was_refused_and_not_those_that_went_with_it() -> None:
    producer = Producer(flush=[ABORTABLE])
    refused = KafkaError(KafkaError.MSG_SIZE_TOO_LARGE, "too large")
    producer.refuses = [KafkaError(KafkaError._PURGE_QUEUE, "purged"), refused]
    with pytest.raises(TransactionAborted, match=r"^billing.fees \[3\]: too large$"):
        published(producer)
    given_up = Producer(flush=[ABORTABLE])
    given_up.refuses = [KafkaError(code, "purged") for code in (KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT)]
    with pytest.raises(TransactionAborted, match=r"^must be aborted$"):
        published(given_up)


def test_a_full_queue_is_waited_for_and_the_record_is_handed_over_once() -> None:
    producer = Producer(produce=[BufferError(), BufferError()])
    published(producer)
    assert producer.asked[:6] == ["begin", "produce", "poll 0.1", "produce", "poll 0.1", "produce"]
    assert [record["key"] for record in producer.produced] == [b"k1", b"k2"]


def test_a_record_behind_one_that_was_refused_aborts_the_transaction() -> None:
    producer = Producer(produce=[failure(KafkaError._STATE, "wrong state")])
    producer.answers["flush"] = []
    with pytest.raises(TransactionAborted, match="a record before it was refused"):
        published(producer)
    assert producer.asked == ["begin", "produce", "flush", "abort -1"]


def test_a_record_that_is_too_large_for_the_connection_aborts_the_transaction() -> None:
    producer = Producer(produce=[failure(KafkaError.MSG_SIZE_TOO_LARGE, "Broker: Message size too large")])
    with pytest.raises(TransactionAborted, match=r"^billing\.\w+: Broker: Message size too large$"):
        published(producer)
    assert producer.asked[-1] == "abort -1"


def test_an_exception_that_a_report_ran_over_is_found_under_it_and_any_other_one_is_raised() -> None:
    covered = SystemError("a result with an exception set")
    covered.__cause__ = ABORTABLE
    with pytest.raises(TransactionAborted, match="must be aborted"):
        published(Producer(flush=[covered]))
    other = SystemError("no exception of Kafka's")
    other.__cause__ = ValueError()
    with pytest.raises(SystemError, match="no exception of Kafka's"):
        published(Producer(flush=[other]))


class Kafka:
    """A connection's settings."""

    def for_confluent(self) -> dict[str, Any]:
        return {"bootstrap.servers": "broker:9092", "client.id": "somebody"}


def test_a_publisher_is_idempotent_fences_its_predecessors_and_sends_keys_where_javas_clients_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[dict[str, Any]] = []
    producer = Producer(**{"init 30": [RETRIABLE]})
    monkeypatch.setattr(publish_events, "Producer", lambda settings: made.append(settings) or producer)
    assert open_publisher(Kafka(), transactional_id="tallystick-1") is producer  # type: ignore[arg-type, comparison-overlap]
    assert made == [
        {
            "message.max.bytes": 1_000_000_000,
            "bootstrap.servers": "broker:9092",
            "client.id": "tallystick-compensation",
            "enable.idempotence": True,
            "acks": "all",
            "transaction.timeout.ms": 60_000,
            "partitioner": "murmur2_random",
            "transactional.id": "tallystick-1",
        }
    ]
    assert producer.asked == ["init 30", "init 30"]


def test_executors_of_one_contract_and_environment_have_one_name_and_others_another() -> None:
    assert transactional_id_of("books", "live") == "tallystick-compensation-live-books"
