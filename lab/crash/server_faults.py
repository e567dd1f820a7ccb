"""What a crash matrix does to the servers that its executors talk to, and what it waits for on them."""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from lab.faults.topic_configs import configure_topic
from lab.servers import process
from lab.servers.log_ends import LogEnds, Partition
from lab.servers.postgres import PostgresServer
from lab.servers.postgres_sessions import Sessions
from lab.servers.proxy import Loss, Request
from lab.servers.stack import LabStack
from lab.services.delivery_mode import DeliveryMode
from lab.services.kafka_clients import new_admin, new_producer
from lab.truth.effect_reader import EventReader

PUBLISHER, READER = "tallystick-compensation", "tallystick"
"""Client ids of the executor: of what publishes, and of what reads and ends transactions."""

_GROUP_OFFSETS = "__consumer_offsets"
_CONDITION_SECONDS_MAX = 120.0
_TIMEOUT_SECONDS = 30.0
_TOO_SMALL_BYTES = 150
_LARGEST_BYTES = 1_000_000


@dataclass(frozen=True)
class StruckServers:
    """The servers of one stack."""

    stack: LabStack

    @property
    def ledger(self) -> Sessions:
        return Sessions(self.stack.ledger_server)

    @contextmanager
    def losing(self, request: Request, loss: Loss = Loss.ANSWER, *, client_id: str = PUBLISHER) -> Iterator[None]:
        """What is asked in the block is lost when the block ends."""
        proxy = self.stack.proxy
        count = proxy.fired(client_id, loss=loss, request=request)
        proxy.arm(client_id, loss=loss, request=request)
        yield
        proxy.wait_fired(client_id, count + 1, loss=loss, request=request, deadline_seconds=_CONDITION_SECONDS_MAX)

    def are_locking(self, ports: Collection[int]) -> bool:
        """Does a database's lock hold whoever has these ports?"""
        return any(sessions.wait_for_lock(ports) for sessions in self._databases())

    def end_idle_sessions(self, ports: Collection[int]) -> None:
        """Those that are open in a transaction: else who comes next waits as long as the servers' time-outs are."""
        for sessions in self._databases():
            sessions.end_idle(ports)

    def kill_database(self, server: PostgresServer) -> None:
        """SIGKILL, and start it again."""
        server.kill()
        server.start()

    def kill_broker(self, partitions: Sequence[Partition], *, after_commit: bool) -> None:
        """SIGKILL, and start it again.

        Not between the coordinator's decision and its markers: an only broker comes back without them, and leaves a
        transaction that hangs. after_commit: they are on their way, and waited for.
        """
        if after_commit:
            self._wait_for_markers(partitions)
        self.stack.broker.kill()
        self.stack.broker.start()

    def end_open(self, transactional_id: str) -> None:
        """What a killed process left open under this id is aborted, as its time-out would."""
        producer = new_producer(
            self.stack.bootstrap_servers,
            DeliveryMode.EXACTLY_ONCE,
            client_id="time-out",
            transactional_id=transactional_id,
        )
        producer.init_transactions(_CONDITION_SECONDS_MAX)

    def wait_decided(self, partitions: Sequence[Partition]) -> None:
        """Return once no transaction is open there."""
        self._log_ends().wait_until_decided(partitions)

    def wait_for_open_records(self, partitions: Sequence[Partition]) -> None:
        """Return once the broker has a record of a transaction that is still open."""
        ends = self._log_ends()
        process.wait_until(
            lambda: not ends.are_decided(partitions),
            what="records of an open transaction",
            deadline_seconds=_CONDITION_SECONDS_MAX,
        )

    def expire_log(
        self,
        reader: EventReader,
        partitions: Sequence[Partition],
        *,
        after_commit: bool,
        judge: Callable[[], None],
    ) -> None:
        """What retention does in time, at once: all records that can be read are gone, and so are groups' offsets.

        judge: has them read by a run first, as runs do long before retention.
        """
        if after_commit:
            self._wait_for_markers(partitions)
        reader.read()
        admin = self._admin()
        ends = [TopicPartition(*place, end) for place, end in reader.reached.items()]
        judge()
        for deleted in admin.delete_records(ends).values():
            deleted.result(_TIMEOUT_SECONDS)
        _delete_groups(admin)

    @contextmanager
    def refusing_events(self, partitions: Sequence[Partition]) -> Iterator[None]:
        """In the block their topics take no record as large as an event."""
        topics, admin = {topic for topic, _ in partitions}, self._admin()

        def take_up_to(number_of_bytes: int) -> None:
            largest = {"max.message.bytes": str(number_of_bytes)}
            for topic in topics:
                configure_topic(admin, topic, largest, deadline_seconds=_CONDITION_SECONDS_MAX)

        take_up_to(_TOO_SMALL_BYTES)
        yield
        take_up_to(_LARGEST_BYTES)

    def _wait_for_markers(self, partitions: Sequence[Partition]) -> None:
        """Of the topics, and of groups' offsets where there are any."""
        topics = self._admin().list_topics(timeout=_TIMEOUT_SECONDS).topics
        offsets = [(name, n) for name in topics if name == _GROUP_OFFSETS for n in topics[name].partitions]
        self.wait_decided([*partitions, *offsets])

    def _databases(self) -> tuple[Sessions, Sessions]:
        return self.ledger, Sessions(self.stack.store_server)

    def _admin(self) -> AdminClient:
        return new_admin(self.stack.bootstrap_servers)

    def _log_ends(self) -> LogEnds:
        return LogEnds(self._admin())


def _delete_groups(admin: AdminClient) -> None:
    """Once each knows of the transactions that its offsets were sent in: a marker that the coordinator takes up behind
    the deletion would bring a group back.
    """
    groups = [group.group_id for group in admin.list_consumer_groups().result(_TIMEOUT_SECONDS).valid]
    for group in groups:
        asked = [ConsumerGroupTopicPartitions(group)]
        for stable in admin.list_consumer_group_offsets(asked, require_stable=True).values():
            stable.result(_TIMEOUT_SECONDS)
    for deleted in admin.delete_consumer_groups(groups).values() if groups else ():
        try:
            deleted.result(_TIMEOUT_SECONDS)
        except KafkaException as exception:
            if exception.args[0].code() != KafkaError.GROUP_ID_NOT_FOUND:
                raise
