"""Counts how often each event was ever committed: through kafka-python, from what was read last time on.

Shares no code with whoever published: another client library, another protocol implementation.
"""

import json
from collections import Counter
from collections.abc import Sequence

from kafka import KafkaConsumer, TopicPartition

from lab.log_ends import Partition

_POLL_MILLISECONDS = 200


class EffectReader:
    """What it has counted once stays counted, also when retention takes it."""

    def __init__(self, bootstrap_servers: str, partitions: Sequence[Partition]) -> None:
        self.bootstrap_servers = bootstrap_servers
        self.reached = dict.fromkeys(partitions, 0)
        self.copies: Counter[str] = Counter()

    def read(self) -> Counter[str]:
        """Read on to the last stable offset; give the copies of each event id so far."""
        consumer = KafkaConsumer(
            bootstrap_servers=self.bootstrap_servers, isolation_level="read_committed", enable_auto_commit=False
        )
        try:
            parts = {TopicPartition(*place): kafka_offset for place, kafka_offset in self.reached.items()}
            ends = consumer.end_offsets(list(parts))
            consumer.assign(list(parts))
            for part, kafka_offset in parts.items():
                consumer.seek(part, kafka_offset)
            while any(consumer.position(part) < ends[part] for part in parts):
                for records in consumer.poll(_POLL_MILLISECONDS).values():
                    self.copies.update(json.loads(record.value)["event_id"] for record in records)
            self.reached = {(part.topic, part.partition): consumer.position(part) for part in parts}
        finally:
            consumer.close()
        return self.copies
