"""Three brokers start soon, serve on while one is dead, take it back, and leave nothing behind."""

import uuid
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import ConfigResource, NewTopic, ResourceType  # type: ignore[attr-defined]

from lab.servers.kafka_cluster import new_cluster
from lab.servers.process import port_answers
from lab.servers.stack import LabStack
from lab.services.delivery_mode import DeliveryMode
from lab.services.kafka_clients import new_admin, new_producer

pytestmark = [pytest.mark.stack, pytest.mark.lab]


@pytest.fixture
def place(lab_cluster: LabStack) -> Iterator[tuple[str, int]]:
    """A partition that all three nodes keep."""
    topic = f"cluster-{uuid.uuid4().hex[:8]}"
    admin = new_admin(lab_cluster.bootstrap_servers)
    admin.create_topics([NewTopic(topic, num_partitions=1)])[topic].result(30)
    lab_cluster.cluster.wait_in_sync((topic, 0))
    yield topic, 0
    lab_cluster.cluster.wait_in_sync((topic, 0))


def test_each_partition_has_three_copies_and_needs_two(lab_cluster: LabStack, place: tuple[str, int]) -> None:
    assert sorted(lab_cluster.cluster.replicas(place)) == [1, 2, 3]
    assert _setting(lab_cluster, place[0], "min.insync.replicas") == "2"


def test_transactions_go_on_while_a_leader_is_dead_and_it_comes_back(
    lab_cluster: LabStack, place: tuple[str, int]
) -> None:
    cluster = lab_cluster.cluster
    producer = new_producer(
        lab_cluster.bootstrap_servers, DeliveryMode.EXACTLY_ONCE, client_id=place[0], transactional_id=place[0]
    )
    producer.init_transactions(30)
    _commit_one(producer, place)
    killed = cluster.leader(place)
    killed.kill()
    _commit_one(producer, place)
    assert cluster.leader(place) is not killed
    killed.start()
    cluster.wait_in_sync(place)
    _commit_one(producer, place)


def test_leadership_and_copies_move_when_told_to(lab_cluster: LabStack, place: tuple[str, int]) -> None:
    first, second, _ = lab_cluster.cluster.replicas(place)
    lab_cluster.cluster.assign(place, [second, first])
    assert lab_cluster.cluster.leader(place).node_id == second
    assert lab_cluster.cluster.replicas(place) == [second, first]


def test_three_brokers_start_and_leave_nothing(lab_folder: Path) -> None:
    cluster = new_cluster(lab_folder, brokers=3)
    try:
        cluster.start()
        nodes = [psutil.Process(broker.child.pid) for broker in cluster.brokers if broker.child is not None]
        assert len(nodes) == 3
    finally:
        cluster.stop()
    assert not [node for node in nodes if node.is_running()]
    assert not [broker for broker in cluster.brokers if port_answers(broker.port)]


def test_two_brokers_are_refused(lab_folder: Path) -> None:
    with pytest.raises(ValueError, match="expected 1 or 3, got 2"):
        new_cluster(lab_folder, brokers=2)


def _commit_one(producer: Producer, place: tuple[str, int]) -> None:
    producer.begin_transaction()
    producer.produce(place[0], b"x", partition=place[1])
    producer.commit_transaction()


def _setting(stack: LabStack, topic: str, name: str) -> str:
    admin, resource = new_admin(stack.bootstrap_servers), ConfigResource(ResourceType.TOPIC, topic)
    described = admin.describe_configs([resource])[resource].result(30)
    return str(described[name].value)
