"""What goes wrong with the log itself, each for real on real brokers; each function gives the truth about it.

For an idle namespace: prepared, drained, no services at work. Independent of each other, as long as each has a
namespace of its own. A fault that shows only against what an earlier run has read has two halves: the function does the
first and gives the second, to be called once a cut has read. Those that need three brokers take nodes down, so nothing
else should be written meanwhile.

Not here, because it cannot be had: a prepared two-phase transaction (KIP-939 is not in released clients). It exists in
unit tests only, as an imitation.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import chain

from confluent_kafka import TopicPartition
from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined]

from lab.faults.break_writer import Planter, new_payment
from lab.faults.topic_configs import configure_topic
from lab.servers import process
from lab.servers.broker import Broker
from lab.servers.kafka_cluster import Cluster
from lab.servers.log_ends import LogEnds, Partition
from lab.servers.proxy import Loss
from lab.servers.stack import LabAddresses, LabStack
from lab.services.delivery_mode import DeliveryMode
from lab.services.event import Leg, Payment
from lab.services.kafka_clients import new_admin, new_consumer, new_producer
from lab.services.ledger import Ledger
from lab.services.namespace import Namespace
from lab.truth.truth import Anomaly, Fault

Truths = tuple[Anomaly, ...]
SecondHalf = Callable[[], Truths]

_TIMEOUT_SECONDS = 30.0
_IN_FLIGHT = 5
_RETENTION_MS = 3_600_000  # below the time to the next run, and above a whole round on a slow machine
_ACCOUNT = b"account"
# A segment closes as soon as it is older than this and something is appended; only closed ones are compacted.
_COMPACTING = {"cleanup.policy": "compact", "segment.ms": "50", "min.cleanable.dirty.ratio": "0.001"}
_UNCLEAN = {"unclean.leader.election.enable": "true", "min.insync.replicas": "1"}


def expire_unread(addresses: LabAddresses, namespace: str, dice: random.Random) -> Truths:
    """A payout's event that the broker deletes before anybody has read it."""
    with Planter.open(addresses, namespace, dice) as planter:
        place = planter.place(planter.payment.event(Leg.PAYOUT))
        _, kafka_offset = planter.send_payout(planter.payment, place)
        before = TopicPartition(*place, kafka_offset + 1)
        admin = new_admin(addresses.bootstrap_servers)
        admin.delete_records([before])[before].result(_TIMEOUT_SECONDS)
        return _of_log(place, "log_expired") + planter.truth("undecidable", planter.payment.event(Leg.PAYOUT))


def compact_unread(addresses: LabAddresses, namespace: str, dice: random.Random) -> Truths:
    """Two payouts under one message key on a compacted topic: the cleaner takes the first before anybody reads it."""
    with Planter.open(addresses, namespace, dice) as planter:
        place = planter.place(planter.payment.event(Leg.PAYOUT))
        configure_topic(new_admin(addresses.bootstrap_servers), place[0], _COMPACTING)
        _, kafka_offset = planter.send_payout(planter.payment, place, key=_ACCOUNT)
        planter.send_payout(new_payment(dice), place, key=_ACCOUNT)

        def is_gone() -> bool:
            planter.send_payout(new_payment(dice), place)  # closes the segment before it
            return kafka_offset not in read_offsets(addresses, place)

        process.wait_until(is_gone, what=f"the cleaner of {place}", every_seconds=0.5)
        return _of_log(place, "log_compacted") + planter.truth("undecidable", planter.payment.event(Leg.PAYOUT))


def overtake_by_retention(
    addresses: LabAddresses, namespace: str, dice: random.Random
) -> tuple[Truths, Callable[[], None]]:
    """An open transaction keeps a payout's event unread, and retention is shorter than the time to the next run.

    The truth about it, and its end: the transaction commits, and retention has no limit again.
    """
    planter = Planter.open(addresses, namespace, dice)
    admin = new_admin(addresses.bootstrap_servers)
    row = planter.add_payout(planter.payment)
    place = planter.place(row.event)
    producer = planter.producer(transactional=True)
    producer.init_transactions(_TIMEOUT_SECONDS)
    producer.begin_transaction()
    planter.send(producer, row.event, place, source=row.source)
    configure_topic(admin, place[0], {"retention.ms": str(_RETENTION_MS)})

    def commit() -> None:
        with planter:
            configure_topic(admin, place[0], {"retention.ms": "-1"})
            producer.commit_transaction()
            planter.move_relay_past(row)

    return _of_log(place, "retention_overtakes") + _of_log(place, "held_by_open_transaction"), commit


def recreate_topic(addresses: LabAddresses, namespace: str, dice: random.Random) -> SecondHalf:
    """A payout that agrees. The second half: somebody deletes the topic and makes it again, and a payout follows."""
    names = Namespace(namespace)
    topic = names.topic(Leg.PAYOUT)
    places = [place for place in names.places if place[0] == topic]
    with Planter.open(addresses, namespace, dice) as planter:
        planter.send_payout(planter.payment, planter.place(planter.payment.event(Leg.PAYOUT)))

    def recreate() -> Truths:
        admin = new_admin(addresses.bootstrap_servers)
        admin.delete_topics([topic])[topic].result(_TIMEOUT_SECONDS)
        process.wait_until(lambda: topic not in admin.list_topics(timeout=_TIMEOUT_SECONDS).topics, what="no topic")
        admin.create_topics([NewTopic(topic, num_partitions=len(places))])[topic].result(_TIMEOUT_SECONDS)
        LogEnds(admin).wait_until_served(places)
        with Planter.open(addresses, namespace, dice) as planter:
            planter.send_payout(planter.payment, planter.place(planter.payment.event(Leg.PAYOUT)))
            unread = planter.truth("undecidable", planter.payment.event(Leg.PAYOUT))
        return _of_log(places[0], "topic_recreated") + unread

    return recreate


def send_out_of_order(addresses: LabAddresses, namespace: str, dice: random.Random) -> Truths:
    """Two payouts of one account in flight at once, without idempotence: the first is lost on the way, and sent again.

    Both stand in the topic, once each; the later one of the account before the earlier one.
    """
    with Planter.open(addresses, namespace, dice) as planter:
        place = planter.place(planter.payment.event(Leg.PAYOUT))
        account = f"account-{dice.getrandbits(32):08x}"
        payments = [replace(new_payment(dice), account=account, sequence=number) for number in (1, 2)]
        rows = [planter.add_payout(payment) for payment in payments]
        client_id = planter.names.group(f"unordered-{dice.getrandbits(32):08x}")
        producer = new_producer(
            addresses.proxied_bootstrap_servers,
            DeliveryMode.AT_LEAST_ONCE,
            client_id=client_id,
            in_flight_max=_IN_FLIGHT,
        )
        addresses.proxy.arm(client_id, loss=Loss.REQUEST)
        planter.hand_over(producer, rows[0].event, place, source=rows[0].source)
        addresses.proxy.wait_fired(client_id, 1, loss=Loss.REQUEST)
        planter.send(producer, rows[1].event, place, source=rows[1].source)
        for row in rows:
            planter.move_relay_past(row)
        return planter.truth("out_of_order_in_topic", rows[0].event)


def lose_acknowledged_write(stack: LabStack, namespace: str, dice: random.Random) -> Truths:
    """Payouts with receipts, acknowledged by a leader that is alone and dies: its successor never had them.

    A third payout takes the first one's offset; the second one's offset is past the end.
    """
    with Planter.open(stack, namespace, dice) as planter:
        place = planter.place(planter.payment.event(Leg.PAYOUT))
        planter.send_payout(planter.payment, place)
        with LeaderAlone.of(stack.cluster, place) as alone:
            lost = [_send_with_receipt(planter, place) for _ in range(2)]
            alone.die()
            _send_with_receipt(planter, place)
        return tuple(
            Anomaly.of(event, "lost_acknowledged_write", Fault.PLANTED, place=place)
            for event in (payment.event(Leg.PAYOUT) for payment in lost)
        )


def lose_read_records(stack: LabStack, namespace: str, dice: random.Random) -> SecondHalf:
    """Payouts that agree, on both partitions, acknowledged by a leader that is alone; a cut reads them.

    The second half: the leader dies, and its successor never had them. The first partition stays shorter than what was
    read; the second grows past that with other payouts, two of them at offsets that were read already.
    """
    names = Namespace(namespace)
    truncated, rewritten = [place for place in names.places if place[0] == names.topic(Leg.PAYOUT)]
    with Planter.open(stack, namespace, dice) as planter:
        for place in (truncated, rewritten):
            planter.send_payout(new_payment(dice), place)
        alone = LeaderAlone.of(stack.cluster, truncated, rewritten)
        for place in (truncated, rewritten):
            for _ in range(2):
                planter.send_payout(new_payment(dice), place)

    def lose() -> Truths:
        with alone, Planter.open(stack, namespace, dice) as planter:
            alone.die()
            later = [new_payment(dice) for _ in range(3)]
            for payment in later:
                planter.send_payout(payment, rewritten)
            unread = [planter.truth("undecidable", payment.event(Leg.PAYOUT)) for payment in later[:2]]
        return (*_of_log(truncated, "log_truncated"), *_of_log(rewritten, "log_rewritten"), *chain(*unread))

    return lose


@dataclass(frozen=True)
class LeaderAlone:
    """Partitions whose leader alone is left to acknowledge writes, and may lose them: an election may be unclean.

    At the end of a `with` all nodes are up again and have the same. Source: unclean.leader.election.enable.
    """

    cluster: Cluster
    places: tuple[Partition, ...]
    leader: Broker
    follower: Broker

    @classmethod
    def of(cls, cluster: Cluster, *places: Partition) -> "LeaderAlone":
        """Leave two nodes to the partitions, and take the follower down."""
        leader, follower, _ = cluster.brokers
        admin = new_admin(cluster.bootstrap_servers)
        for topic in {topic for topic, _ in places}:
            configure_topic(admin, topic, _UNCLEAN)
        for place in places:
            cluster.assign(place, [leader.node_id, follower.node_id])
        follower.stop()
        for place in places:
            cluster.wait_left_with(place, leader.node_id)
        return cls(cluster, places, leader, follower)

    def die(self) -> None:
        """Kill the leader, bring the follower back, and wait until it leads."""
        self.leader.kill()
        self.follower.start()
        for place in self.places:
            self.cluster.wait_led_by_another(place, self.leader.node_id)

    def __enter__(self) -> "LeaderAlone":
        return self

    def __exit__(self, *_: object) -> None:
        for broker in (self.leader, self.follower):
            if not broker.is_running:
                broker.start()
        self.cluster.wait_in_sync(*self.places)


def read_offsets(addresses: LabAddresses, place: Partition) -> list[int]:
    """List the offsets of all records that any reader finds on a partition, markers left out."""
    consumer = new_consumer(
        addresses.bootstrap_servers, client_id="read-offsets", group="read-offsets", read_committed=False
    )
    try:
        start, end = consumer.get_watermark_offsets(TopicPartition(*place), timeout=_TIMEOUT_SECONDS)
        consumer.assign([TopicPartition(*place, start)])
        found: list[int] = []
        while start < end and (message := consumer.poll(_TIMEOUT_SECONDS)) is not None and message.error() is None:
            found.append(message.offset() or 0)
        return found
    finally:
        consumer.close()


def _send_with_receipt(planter: Planter, place: Partition) -> Payment:
    payment = new_payment(planter.dice)
    row, kafka_offset = planter.send_payout(payment, place)
    Ledger(planter.names).save_receipt(planter.connection, row, partition=place[1], kafka_offset=kafka_offset)
    return payment


def _of_log(place: Partition, break_class: str) -> Truths:
    return (Anomaly.of_log(Leg.PAYOUT, place, break_class, Fault.PLANTED),)
