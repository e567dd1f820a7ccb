"""Puts records into Kafka together or not at all: one producer transaction, whose id fences its predecessors."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer

from tallystick.connections.connections import KafkaSettings
from tallystick.executor.effects.step import ExecutorStep, OnProgress, no_progress
from tallystick.model.errors import TallystickError

_INIT_SECONDS = 30
_TRIES = 10
"""Retriable answers to one call before we give up and leave the rest to a new process."""

_FENCED = (KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH)

_GIVEN_UP = (KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT)
"""What the client itself says of records whose transaction failed by another one."""

_LARGEST_RECORD = {"message.max.bytes": 1_000_000_000}
"""As large as librdkafka takes: the topic says how large a record may be, unless the connection does."""

_SETTINGS = {
    "client.id": "tallystick-compensation",
    "enable.idempotence": True,
    "acks": "all",
    "transaction.timeout.ms": 60_000,
    # Java's default; librdkafka's own sends keys to other partitions.
    "partitioner": "murmur2_random",
}


class ExecutorFenced(TallystickError, RuntimeError):
    """Another executor with this transactional id has begun since. Nothing of this one's open transaction stands."""

    retryable = True


class TransactionAborted(TallystickError, RuntimeError):
    """Kafka could not take the producer transaction; nothing of it stands."""

    retryable = True


@dataclass(frozen=True, kw_only=True)
class OutgoingRecord:
    """One record to publish. Kafka picks the partition by the key, as Java's clients do."""

    topic: str
    key: bytes
    value: bytes
    headers: tuple[tuple[str, bytes], ...] = ()


@dataclass(kw_only=True)
class _Ack:
    """Filled in by the delivery report. refusal: why Kafka has not taken the record."""

    topic: str
    partition: int = -1
    kafka_offset: int = -1
    refusal: str = ""

    def note(self, error: KafkaError | None, message: Any) -> None:
        if error is None:
            self.partition, self.kafka_offset = message.partition(), message.offset()
        elif error.code() not in _GIVEN_UP:
            self.refusal = f"{self.topic} [{message.partition()}]: {error.str()}"


def transactional_id_of(contract_name: str, environment: str) -> str:
    """One per contract and environment, so that executors of one fence each other, and of two never."""
    return f"tallystick-compensation-{environment}-{contract_name}"


def open_publisher(kafka: KafkaSettings, *, transactional_id: str) -> Producer:
    """Fence every predecessor and end its transaction. Only what is read after this is up to date."""
    producer = Producer(_LARGEST_RECORD | kafka.for_confluent() | _SETTINGS | {"transactional.id": transactional_id})
    _step(lambda: producer.init_transactions(_INIT_SECONDS))
    return producer


def publish_together(
    producer: Producer,
    records: Sequence[OutgoingRecord],
    *,
    on_progress: OnProgress = no_progress,
    why_not_commit: Callable[[], str | None] = lambda: None,
) -> tuple[Mapping[str, str | int], ...]:
    """Publish all records in one transaction; give topic, partition and offset of each. on_progress: told of each
    step.

    why_not_commit: asked once the broker has all records. From then on it gives the transaction up after a minute,
    however long we sleep; before that we may have slept for days.
    Raises ExecutorFenced; TransactionAborted after which a new publisher may try again; KafkaException where only a new
    process can find out what stands.
    """
    _step(producer.begin_transaction)
    on_progress(ExecutorStep.BEGUN, {})
    acks = []
    try:
        for n, record in enumerate(records, start=1):
            acks.append(_produce(producer, record))
            on_progress(ExecutorStep.PRODUCED, {"record": n, "of": len(records), "topic": record.topic})
        _step(producer.flush)
        on_progress(ExecutorStep.FLUSHED, {})
        if reason := why_not_commit():
            raise _MustAbort(reason)
        _step(lambda: producer.commit_transaction(-1))
    except _MustAbort as error:
        with suppress(_MustAbort):
            _step(producer.flush)
        reason = next((ack.refusal for ack in acks if ack.refusal), str(error))
        _step(lambda: producer.abort_transaction(-1))
        on_progress(ExecutorStep.ABORTED, {"error": reason})
        raise TransactionAborted(reason) from error
    on_progress(ExecutorStep.PUBLISHED, {})
    return tuple({"topic": ack.topic, "partition": ack.partition, "offset": ack.kafka_offset} for ack in acks)


class _MustAbort(Exception):
    """The transaction has failed; it must be aborted before anything else."""


def _produce(producer: Producer, record: OutgoingRecord) -> _Ack:
    """Hand one record over. Once another one was refused, librdkafka calls it a wrong state to produce in."""
    ack = _Ack(topic=record.topic)
    while True:
        try:
            _step(
                lambda: producer.produce(
                    record.topic,
                    key=record.key,
                    value=record.value,
                    headers=list(record.headers),
                    on_delivery=ack.note,
                )
            )
        except BufferError:
            producer.poll(0.1)
        except KafkaException as raised:
            error: KafkaError = raised.args[0]
            if error.code() == KafkaError._STATE:
                raise _MustAbort("a record before it was refused") from raised
            if error.code() == KafkaError.MSG_SIZE_TOO_LARGE:  # of the connection's own message.max.bytes
                raise _MustAbort(f"{record.topic}: {error.str()}") from raised
            raise
        else:
            return ack


def _step(call: Callable[[], object]) -> None:
    """Make one call of the protocol; the same again while Kafka says that may help. Source: librdkafka, rdkafka.h."""
    for tries_left in reversed(range(_TRIES)):
        try:
            call()
            return
        except (KafkaException, SystemError) as raised:
            error = _kafka_error(raised)
            if error.code() in _FENCED:
                raise ExecutorFenced(error.str()) from raised
            if error.txn_requires_abort() or error.code() == KafkaError._FATAL:  # to abort says which
                raise _MustAbort(error.str()) from raised
            if not error.retriable() or not tries_left:
                raise


def _kafka_error(raised: KafkaException | SystemError) -> KafkaError:
    """Return Kafka's error. Where a flush fails for good and reports are due, the client runs them over its own
    exception, and Python makes a SystemError of that, with the exception as its cause.
    """
    source = raised.__cause__ if isinstance(raised, SystemError) else raised
    if not isinstance(source, KafkaException):
        raise raised
    error: KafkaError = source.args[0]
    return error
