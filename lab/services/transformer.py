"""A service that consumes, transforms and produces under transactions: each input becomes one output, with its offset.

Runs in the caller's process, an input at a time, so that a test says what it skips and what it handles again.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from lab.servers.process import wait_until
from lab.services.delivery_mode import DeliveryMode
from lab.services.kafka_clients import new_consumer, new_producer

_TIMEOUT_SECONDS = 30.0


@dataclass
class Transformer:
    """Reads all partitions of one topic from their beginning and writes to another one, on the same partition."""

    bootstrap_servers: str
    name: str
    input_topic: str
    output_topic: str
    partition_count: int
    handled: list[Message] = field(default_factory=list)
    _waiting: list[Message] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.consumer: Consumer = new_consumer(
            self.bootstrap_servers, client_id=self.name, group=self.name, read_committed=True
        )
        self.consumer.assign([TopicPartition(self.input_topic, number, 0) for number in range(self.partition_count)])
        self.producer: Producer = new_producer(
            self.bootstrap_servers, DeliveryMode.EXACTLY_ONCE, client_id=self.name, transactional_id=self.name
        )
        self.producer.init_transactions(_TIMEOUT_SECONDS)

    def handle(self, count: int, *, skipped: Callable[[bytes], bool] = lambda value: False) -> None:
        """Read so many inputs more, whatever their order; of a skipped one only the offset is saved, so it is lost."""
        wait_until(lambda: len(self._read()) >= count, what=f"{count} inputs of {self.input_topic}")
        now, self._waiting = self._waiting[:count], self._waiting[count:]
        for message in now:
            self._transform(message, and_write=not skipped(_value(message)))
            self.handled.append(message)

    def handle_again(self, *, wanted: Callable[[bytes], bool]) -> None:
        """Handle what was handled before once more, as a group does that was set back."""
        for message in [message for message in self.handled if wanted(_value(message))]:
            self._transform(message, and_write=True)

    def close(self) -> None:
        self.consumer.close()

    def _transform(self, message: Message, *, and_write: bool) -> None:
        source, partition, offset = message.topic(), message.partition(), message.offset()
        assert source is not None and partition is not None and offset is not None
        self.producer.begin_transaction()
        if and_write:
            self.producer.produce(
                self.output_topic,
                key=message.key(),
                value=_value(message),
                partition=partition,
                headers={"session": self.name, "source": f"{source}:{partition}:{offset}"},
            )
        self.producer.send_offsets_to_transaction(
            [TopicPartition(source, partition, offset + 1)], self.consumer.consumer_group_metadata(), _TIMEOUT_SECONDS
        )
        self.producer.commit_transaction(_TIMEOUT_SECONDS)

    def _read(self) -> list[Message]:
        message = self.consumer.poll(0.05)
        error = message.error() if message is not None else None
        if error is not None and error.code() != KafkaError._PARTITION_EOF and not error.retriable():
            raise KafkaException(error)
        if message is not None and error is None:
            self._waiting.append(message)
        return self._waiting


def _value(message: Message) -> bytes:
    value = message.value()
    assert isinstance(value, bytes)
    return value
