"""A service's reading side: a fixed set of partitions, read one message at a time, that knows how far it has come."""

from dataclasses import dataclass, field

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, TopicPartition

from lab.servers import log_ends, process
from lab.services.delivery_mode import DeliveryMode
from lab.services.kafka_clients import new_consumer
from lab.services.service_protocol import Control

Partition = tuple[str, int]

_TIMEOUT_SECONDS = 20.0
# A broker that has just made its offsets topic says so for a moment, and librdkafka passes it on.
_COORDINATOR_NOT_READY = (
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
)


@dataclass
class PartitionReader:
    """Reads partitions that were assigned by hand, from where the group or the caller says."""

    control: Control
    group: str
    partitions: tuple[Partition, ...]
    reached: dict[Partition, int] = field(default_factory=dict)  # next offset to read, markers included
    _targets: dict[int, dict[Partition, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        settings = self.control.settings
        self.consumer: Consumer = new_consumer(
            settings.bootstrap_servers,
            client_id=settings.client_id,
            group=self.group,
            read_committed=settings.mode is DeliveryMode.EXACTLY_ONCE,
        )

    def assign(self, starts: dict[Partition, int]) -> None:
        """Begin at these offsets; a partition that is not named begins at its first."""
        self.consumer.assign(
            [TopicPartition(*partition, starts.get(partition, OFFSET_BEGINNING)) for partition in self.partitions]
        )

    def next_message(self, timeout_seconds: float = 0.02) -> Message | None:
        """Read one message, or None where none has come. Raises KafkaException."""
        message = self.consumer.poll(timeout_seconds)
        if message is None:
            return None
        error = message.error()
        if error is None:
            return message
        if error.code() != KafkaError._PARTITION_EOF:
            if error.retriable():
                return None
            raise KafkaException(error)
        self.reached[_partition(message)] = _offset(message)
        return None

    def finished(self, message: Message) -> None:
        """Count a message as handled."""
        self.reached[_partition(message)] = _offset(message) + 1

    def progress(self, message: Message) -> list[TopicPartition]:
        """Give the offsets to save once this message is handled."""
        return [TopicPartition(*_partition(message), _offset(message) + 1)]

    def commit(self, message: Message) -> None:
        """Save the progress in the consumer group, and return once the broker has it."""
        for entry in self.consumer.commit(offsets=self.progress(message), asynchronous=False) or ():
            if entry.error is not None:
                raise KafkaException(entry.error)

    def committed(self) -> dict[Partition, int]:
        """Read the group's progress. Under a pending transaction the error stands in the entry only: ask again."""
        found: list[TopicPartition] = []

        def is_stable() -> bool:
            asked = [TopicPartition(*partition) for partition in self.partitions]
            try:
                found[:] = self.consumer.committed(asked, timeout=_TIMEOUT_SECONDS)
            except KafkaException as exception:
                if exception.args[0].code() in _COORDINATOR_NOT_READY:
                    return False
                raise
            return all(entry.error is None for entry in found)

        process.wait_until(is_stable, what=f"stable offsets of {self.group}", deadline_seconds=_TIMEOUT_SECONDS)
        return {(entry.topic, entry.partition): entry.offset for entry in found if entry.offset >= 0}

    def answer_syncs(self) -> None:
        """Answer each sync once everything that stood in the partitions when it came was handled."""
        for command in self.control.take("sync"):
            self._targets[command["number"]] = {partition: self._end(partition) for partition in self.partitions}
        for number, ends in list(self._targets.items()):
            if all(self.reached.get(partition, 0) >= end for partition, end in ends.items()):
                del self._targets[number]
                self.control.report("synced", number=number)

    def close(self) -> None:
        self.consumer.close()

    def _end(self, partition: Partition) -> int:
        """Give the end this reader can see: the LSO under read_committed, else the high watermark."""
        ends: list[int] = []

        def is_known() -> bool:
            try:
                ends[:] = self.consumer.get_watermark_offsets(TopicPartition(*partition), timeout=_TIMEOUT_SECONDS)
            except KafkaException as exception:
                if exception.args[0].code() not in log_ends.NOT_YET:
                    raise
            return bool(ends)

        process.wait_until(is_known, what=f"the end of {partition}", deadline_seconds=_TIMEOUT_SECONDS)
        return ends[1]


def save_progress(consumer: Consumer, offsets: list[TopicPartition]) -> None:
    """Commit a group's offsets, and return once the broker has them; its coordinator may still be coming up."""

    def is_saved() -> bool:
        try:
            consumer.commit(offsets=offsets, asynchronous=False)
        except KafkaException as exception:
            error = exception.args[0]
            if not error.retriable() and error.code() not in _COORDINATOR_NOT_READY:
                raise
            return False
        return True

    process.wait_until(is_saved, what=f"the progress in {offsets[0].topic}")


def source_of(message: Message) -> str:
    """Name where a message stands: topic:partition:offset."""
    return f"{message.topic()}:{message.partition()}:{message.offset()}"


def _partition(message: Message) -> Partition:
    topic, partition = message.topic(), message.partition()
    assert topic is not None and partition is not None
    return topic, partition


def _offset(message: Message) -> int:
    kafka_offset = message.offset()
    assert kafka_offset is not None
    return kafka_offset
