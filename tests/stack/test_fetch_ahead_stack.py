"""A real broker asked for many partitions at once: each is counted as if it were asked alone, by far fewer requests."""

from collections.abc import Iterator, Mapping, Sequence
from uuid import uuid4

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from lab.servers.process import wait_until
from lab.servers.stack import LabStack
from tallystick.connections.connections import KafkaSettings
from tallystick.kafka_log.fetch import FETCH_BYTES, Asked, FetchedLog, fetchers, open_admin
from tallystick.kafka_log.offset_census import take_census
from tallystick.kafka_log.prefetch import fetch_ahead
from tallystick.kafka_log.topic_snapshot import read_topic_snapshot
from tallystick.model.offsets import OffsetRange, TopicPartition

PARTITIONS = 60


@pytest.fixture(scope="module")
def topic(stack: LabStack) -> Iterator[str]:
    """Of each partition: one aborted record, as many committed ones as its number says, and their markers."""
    name = f"many-{uuid4().hex[:10]}"
    admin = AdminClient({"bootstrap.servers": stack.bootstrap_servers})
    admin.create_topics([NewTopic(name, num_partitions=PARTITIONS)])[name].result(30)
    producer = Producer(
        {
            "bootstrap.servers": stack.bootstrap_servers,
            "transactional.id": name,
            "enable.metrics.push": False,
            "log_level": 0,
        }
    )
    producer.init_transactions(30)
    for committed in (False, True):
        producer.begin_transaction()
        for partition in range(PARTITIONS):
            for _ in range(partition if committed else 1):
                producer.produce(name, value=b"x" * 100, partition=partition)
        assert producer.flush(30) == 0  # an abort drops what was not sent
        (producer.commit_transaction if committed else producer.abort_transaction)()
    yield name
    admin.delete_topics([name])[name].result(30)


@pytest.mark.parametrize("fetch_bytes", [FETCH_BYTES, 5_000])
def test_each_partition_is_counted_as_if_it_were_asked_alone(stack: LabStack, topic: str, fetch_bytes: int) -> None:
    """Of 5,000 bytes most answers cut a batch short."""
    with open_admin(KafkaSettings({"bootstrap.servers": stack.bootstrap_servers})) as admin:
        wait_until(
            lambda: all(one.lso == one.high_watermark for one in read_topic_snapshot(admin, [topic])),
            what="all markers to be written",
        )
        ranges = [
            OffsetRange(topic=topic, partition=one.partition, kafka_offset_start=0, kafka_offset_end=one.lso)
            for one in read_topic_snapshot(admin, [topic])
        ]
        fetch, together = fetchers(admin, fetch_bytes=fetch_bytes)
        requests = 0

        def alone(topic_partition: TopicPartition, offset: int, read_committed: bool) -> FetchedLog:
            nonlocal requests
            requests += 1
            return fetch(topic_partition, offset, read_committed)

        def counted(group: Sequence[Asked]) -> Mapping[Asked, FetchedLog]:
            nonlocal requests
            requests += 1
            return together(group)

        ahead = fetch_ahead(alone, counted, ranges)
        censuses = [take_census(ahead, part) for part in ranges]
        assert censuses == [take_census(fetch, part) for part in ranges]
    assert [(one.aborted, one.committed, one.unexplained) for one in censuses] == [
        (1, number, 0) for number in range(PARTITIONS)
    ]
    if fetch_bytes == FETCH_BYTES:
        assert requests == 1
