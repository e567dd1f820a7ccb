"""What a committed reader gets of whole partitions: a third reader, which is neither Spark nor the census."""

from collections.abc import Iterator, Sequence

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, TopicPartition

from lab.servers.log_ends import Partition
from lab.services.kafka_clients import new_consumer

_TIMEOUT_SECONDS = 30.0


def committed_records(
    bootstrap_servers: str, partitions: Sequence[Partition]
) -> tuple[dict[Partition, int], dict[Partition, int]]:
    """The log end of each partition, and how many records are committed or plain. Call it where the log is decided."""
    consumer = _open(bootstrap_servers)
    try:
        ends = {place: _end(consumer.get_watermark_offsets(TopicPartition(*place))) for place in partitions}
        records = dict.fromkeys(partitions, 0)
        for message in records_to_the_end(consumer, partitions):
            records[_place(message)] += 1
        return ends, records
    finally:
        consumer.close()


def is_committed(bootstrap_servers: str, partitions: Sequence[Partition], value: bytes) -> bool:
    """Does one of the committed or plain records hold this value? Call it where the log is decided."""
    consumer = _open(bootstrap_servers)
    try:
        return any(message.value() == value for message in records_to_the_end(consumer, partitions))
    finally:
        consumer.close()


def _open(bootstrap_servers: str) -> Consumer:
    return new_consumer(bootstrap_servers, client_id="count", group="count", read_committed=True)


def records_to_the_end(consumer: Consumer, partitions: Sequence[Partition]) -> Iterator[Message]:
    """Each record from the partitions' beginning to their end."""
    consumer.assign([TopicPartition(*place, OFFSET_BEGINNING) for place in partitions])
    unread = set(partitions)
    while unread:
        message = consumer.poll(_TIMEOUT_SECONDS)
        if message is None:
            raise TimeoutError(f"{sorted(unread)}: nothing to read for {_TIMEOUT_SECONDS:.0f} s, and no end")
        error = message.error()
        if error is None:
            yield message
        elif error.code() == KafkaError._PARTITION_EOF:
            unread.discard(_place(message))
        elif not error.retriable():
            raise KafkaException(error)


def _place(message: Message) -> Partition:
    return str(message.topic()), int(message.partition() or 0)


def _end(watermarks: tuple[int, int] | None) -> int:
    if watermarks is None:
        raise TimeoutError("a partition's end is not known")
    return watermarks[1]
