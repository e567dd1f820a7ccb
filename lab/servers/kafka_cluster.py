"""One broker, or three that keep a copy of everything each and serve on while any one of them is down.

Three: replication factor 3, min.insync.replicas 2, also for Kafka's own topics; each node is broker and controller, or
the first alone is a controller too. Controllers need a majority, so of three with two nodes down nothing is decided: no
leader moves, no replica leaves. While the first is the only one, the others may both go.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from confluent_kafka.admin import AdminClient, PartitionMetadata  # type: ignore[attr-defined]
from kafka.structs import TopicPartition

from lab.doors.door import Door
from lab.servers import process
from lab.servers.broker import DEFAULT_JARS, Broker, replication
from lab.servers.log_ends import Partition
from lab.servers.ports import free_port
from lab.services.kafka_clients import new_admin
from lab.services.raw_producer import open_raw_admin

BROKERS_MAX = 3
NO_SETTINGS: Mapping[str, str] = {}

_TIMEOUT_SECONDS = 30.0
_PREFERRED = 0  # of two kinds of leader election: the first of the replicas leads
_HEAP_MEGABYTES = 320

_THREE_NODES = {
    **replication(3, in_sync_min=2),
    # A killed node is noticed soon; not so soon that a busy machine's pause looks like a death.
    "broker.session.timeout.ms": "5000",
    "broker.heartbeat.interval.ms": "1000",
    # Leaders move when a node dies, or when they are told to.
    "auto.leader.rebalance.enable": "false",
    # Three nodes share two cores.
    "num.network.threads": "2",
    "num.io.threads": "3",
    "background.threads": "2",
}


@dataclass(frozen=True)
class Cluster:
    """The brokers of one stack."""

    brokers: tuple[Broker, ...]

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(broker.bootstrap_servers for broker in self.brokers)

    @property
    def proxied_bootstrap_servers(self) -> str:
        return ",".join(broker.proxied_bootstrap_servers for broker in self.brokers)

    def start(self) -> None:
        """Format and start all nodes at once; return once each serves. Raises BrokerJarsMissing, BrokerDidNotStart."""
        process.in_parallel(*(broker.initialise for broker in self.brokers))
        for broker in self.brokers:
            broker.launch()
        for broker in self.brokers:
            broker.wait_ready()

    def stop(self) -> None:
        """Shut all nodes down; safe to call again, and when they never started.

        One by one, since a node leaves in order only while a majority is there; so the last of three is killed.
        """
        for broker in self.brokers[: BROKERS_MAX - 1]:
            broker.stop()
        for broker in self.brokers[BROKERS_MAX - 1 :]:
            broker.kill()

    def broker(self, node_id: int) -> Broker:
        return next(broker for broker in self.brokers if broker.node_id == node_id)

    def leader(self, place: Partition) -> Broker:
        """Give the node that leads a partition; wait for one."""
        admin = new_admin(self.bootstrap_servers)
        process.wait_until(lambda: _described(admin, place).leader >= 0, what=f"a leader of {place}")
        return self.broker(_described(admin, place).leader)

    def replicas(self, place: Partition) -> list[int]:
        """List the nodes that keep a partition, the preferred leader first."""
        return list(_described(new_admin(self.bootstrap_servers), place).replicas)

    def assign(self, place: Partition, node_ids: Sequence[int]) -> None:
        """Let these nodes keep a partition, and the first of them lead it; return once all do. Needs all nodes up."""
        with open_raw_admin(self.bootstrap_servers) as admin:
            admin.alter_partition_reassignments({TopicPartition(*place): node_ids})
            self._wait_for(place, lambda at: list(at.replicas) == list(node_ids) and set(at.isrs) == set(at.replicas))
            admin.elect_leaders(_PREFERRED, {place[0]: [place[1]]}, timeout_ms=10_000)
        self._wait_for(place, lambda at: at.leader == node_ids[0])

    def wait_in_sync(self, *places: Partition) -> None:
        """Return once every node that keeps one of these partitions has all of it."""
        for place in places:
            self._wait_for(place, lambda at: set(at.isrs) == set(at.replicas))

    def wait_led_by_another(self, place: Partition, node_id: int) -> None:
        """Return once a node other than this one leads the partition."""
        self._wait_for(place, lambda at: at.leader not in (-1, node_id))

    def wait_left_with(self, place: Partition, *node_ids: int) -> None:
        """Return once these nodes and no others count as having all of the partition."""
        self._wait_for(place, lambda at: set(at.isrs) == set(node_ids))

    def _wait_for(self, place: Partition, condition: Callable[[PartitionMetadata], bool]) -> None:
        admin = new_admin(self.bootstrap_servers)
        process.wait_until(lambda: condition(_described(admin, place)), what=f"leader and replicas of {place}")


def new_cluster(
    folder: Path,
    *,
    brokers: int,
    jars: Path = DEFAULT_JARS,
    controllers: int = BROKERS_MAX,
    settings: Mapping[str, str] = NO_SETTINGS,
    door: Door | None = None,
) -> Cluster:
    """Give one node, or three that know each other, on data below `folder`. Nothing is started.

    controllers: so many of three are controllers too, the first ones. settings: beside the lab's own. door: one more
    listener of each.
    """
    if brokers == 1:
        alone = {**replication(1, in_sync_min=1), **settings}
        only = Broker(folder / broker_name(1), proxied_port=free_port(), jars=jars, settings=alone)
        return Cluster((_behind(door, only),))
    if brokers != BROKERS_MAX:
        raise ValueError(f"brokers: expected 1 or {BROKERS_MAX}, got {brokers}")
    nodes = [
        Broker(
            folder / broker_name(node_id),
            proxied_port=free_port(),
            jars=jars,
            node_id=node_id,
            heap_megabytes=_HEAP_MEGABYTES,
            settings={**_THREE_NODES, **settings},
            is_controller=node_id <= controllers,
        )
        for node_id in range(1, brokers + 1)
    ]
    voters = tuple(node.voter for node in nodes if node.is_controller)
    return Cluster(tuple(_behind(door, replace(node, voters=voters)) for node in nodes))


def _behind(door: Door | None, node: Broker) -> Broker:
    """Give a node one more listener."""
    if door is None:
        return node
    return replace(
        node,
        settings={**node.settings, **door.broker_settings()},
        listeners={door.listener: (door.protocol, door.ports[node.node_id - 1])},
        java_options=door.java_options,
    )


def broker_name(node_id: int) -> str:
    """Name a node's data folder, and its log."""
    return "broker" if node_id == 1 else f"broker-{node_id}"


def _described(admin: AdminClient, place: Partition) -> PartitionMetadata:
    """What a broker says of a partition; one that has not heard of it yet is asked again."""
    topic, partition = place
    found: list[PartitionMetadata] = []

    def is_known() -> bool:
        partitions = admin.list_topics(topic, timeout=_TIMEOUT_SECONDS).topics[topic].partitions
        found.extend(described for number, described in partitions.items() if number == partition)
        return bool(found)

    process.wait_until(is_known, what=f"metadata of {place}")
    return found[0]
