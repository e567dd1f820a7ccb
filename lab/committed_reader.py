"""Counts what a committed reader gets of whole partitions: a third reader, which is neither Spark nor the census."""

from collections.abc import Sequence

from confluent_kafka import OFFSET_BEGINNING, KafkaError, KafkaException, TopicPartition

from lab.clients import new_consumer
from lab.log_ends import Partition

_TIMEOUT_SECONDS = 30.0


def committed_records(
    bootstrap_servers: str, partitions: Sequence[Partition]
) -> tuple[dict[Partition, int], dict[Partition, int]]:
    """The log end of each partition, and how many records are committed or plain. Call it where the log is decided."""
    consumer = new_consumer(bootstrap_servers, client_id="count", group="count", read_committed=True)
    try:
        ends = {place: _end(consumer.get_watermark_offsets(TopicPartition(*place))) for place in partitions}
        records = dict.fromkeys(partitions, 0)
        unread = set(partitions)
        consumer.assign([TopicPartition(*place, OFFSET_BEGINNING) for place in partitions])
        while unread:
            message = consumer.poll(_TIMEOUT_SECONDS)
            if message is None:
                raise TimeoutError(f"{sorted(unread)}: nothing to read for {_TIMEOUT_SECONDS:.0f} s, and no end")
            place = (str(message.topic()), int(message.partition() or 0))
            error = message.error()
            if error is None:
                records[place] += 1
            elif error.code() == KafkaError._PARTITION_EOF:
                unread.discard(place)
            elif not error.retriable():
                raise KafkaException(error)
        return ends, records
    finally:
        consumer.close()


def _end(watermarks: tuple[int, int] | None) -> int:
    if watermarks is None:
        raise TimeoutError("a partition's end is not known")
    return watermarks[1]
