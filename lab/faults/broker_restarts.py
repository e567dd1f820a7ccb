"""Brokers that die and come back under traffic, which must change nothing: the other two serve on."""

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from lab.servers.kafka_cluster import Cluster
from lab.servers.log_ends import Partition
from lab.services.kafka_clients import new_admin


@dataclass
class Bounces:
    """What has happened so far."""

    killed: list[int] = field(default_factory=list)  # node ids
    moved: int = 0  # leaderships handed on without a kill


@contextmanager
def bounced(cluster: Cluster, places: list[Partition], dice: random.Random, *, times: int) -> Iterator[Bounces]:
    """Beside the block: kill -9 a partition's leader, start it again, hand a leadership on; so many times.

    One node at a time: the next is taken once the last has everything again, Kafka's own topics included. At the end
    all are up. Raises what failed.
    """
    bounces = Bounces()
    failures: list[Exception] = []

    def work() -> None:
        try:
            for _ in range(times):
                _bounce(cluster, places, dice, bounces)
        except Exception as failure:  # handed to the block's end
            failures.append(failure)

    worker = threading.Thread(target=work, name="bounces", daemon=True)
    worker.start()
    try:
        yield bounces
    finally:
        worker.join()
        for broker in cluster.brokers:
            if not broker.is_running:
                broker.start()
    if failures:
        raise failures[0]


def _bounce(cluster: Cluster, places: list[Partition], dice: random.Random, bounces: Bounces) -> None:
    place = dice.choice(places)
    leader = cluster.leader(place)
    leader.kill()
    bounces.killed.append(leader.node_id)
    cluster.wait_led_by_another(place, leader.node_id)
    leader.start()
    cluster.wait_in_sync(*places, *_internal_places(cluster))
    first, *others = cluster.replicas(place)
    cluster.assign(place, [*others, first])
    bounces.moved += 1


def _internal_places(cluster: Cluster) -> list[Partition]:
    topics = new_admin(cluster.bootstrap_servers).list_topics(timeout=30).topics
    return [(name, number) for name, topic in topics.items() if name.startswith("__") for number in topic.partitions]
