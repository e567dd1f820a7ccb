"""Producer transactions that went wrong, each for real on a real broker; each function gives the truth about it.

For an idle namespace: prepared, drained, no services at work. Independent of each other, save that a hanging
transaction hides what is written behind it. A hanging transaction and a bleed need a broker that does not verify
transactional writes; it is told so for a moment (KIP-890).
"""

import random

from kafka.admin import AbortTransactionSpec, KafkaAdminClient
from kafka.structs import TopicPartition

from lab.faults.break_writer import Planter, new_headers
from lab.servers.log_ends import Partition
from lab.servers.stack import LabAddresses
from lab.services.event import Leg
from lab.services.namespace import Namespace
from lab.services.raw_producer import RawProducer, open_raw_admin, unverified_transactions
from lab.truth.truth import Anomaly, Fault


def hang_transaction(addresses: LabAddresses, namespace: str, dice: random.Random) -> tuple[Anomaly, ...]:
    """A payout's event in a transaction that the coordinator knows nothing of: no time-out and no client ends it."""
    with Planter.open(addresses, namespace, dice) as planter, open_raw_admin(addresses.bootstrap_servers) as admin:
        row = planter.add_payout(planter.payment)
        producer = RawProducer(admin, planter.names.group("hanging"))
        producer.open()
        with unverified_transactions(admin):
            producer.produce(*planter.place(row.event), row.event, new_headers(source=row.source))
        planter.move_relay_past(row)
        return planter.truth("hanging_transaction", row.event)


def end_hanging_transactions(addresses: LabAddresses, namespace: str) -> int:
    """Abort by an administrator's hand what is open on this namespace's partitions; give how many there were."""
    with open_raw_admin(addresses.bootstrap_servers) as admin:
        places = Namespace(namespace).places
        return sum(_abort_open(admin, place) for place in places)


def tear_by_protocol(addresses: LabAddresses, namespace: str, dice: random.Random) -> tuple[Anomaly, ...]:
    """Both legs of a payment in one transaction; an administrator aborts it on the invoice's partition alone.

    The client commits and is told that all went well: the payment's partition says COMMIT, the invoice's ABORT and then
    a COMMIT with nothing to commit.
    """
    with Planter.open(addresses, namespace, dice) as planter, open_raw_admin(addresses.bootstrap_servers) as admin:
        kept, torn = (planter.payment.event(leg) for leg in (Leg.PAYMENT, Leg.INVOICE))
        producer = RawProducer(admin, planter.names.group("torn"))
        producer.open()
        for event in (kept, torn):
            place = planter.place(event)
            producer.add_partition(*place)
            producer.produce(*place, event, new_headers(source="plant"))
        _abort_open(admin, planter.place(torn), producer_id=producer.producer_id)
        producer.end(commit=True)
        planter.post(kept)
        planter.move_poster_to_end()
        return planter.truth("torn_by_protocol", torn)


def bleed_into_transaction(addresses: LabAddresses, namespace: str, dice: random.Random) -> tuple[Anomaly, ...]:
    """A late record of a dead transaction: the next transaction of the same id commits it along with its own."""
    with Planter.open(addresses, namespace, dice) as planter, open_raw_admin(addresses.bootstrap_servers) as admin:
        late = planter.add_payout(planter.payment)
        place = planter.place(late.event)
        own = planter.add_payout(planter.payment_at(Leg.PAYOUT, place))
        dead = RawProducer(admin, planter.transactional_id)
        dead.open()
        with unverified_transactions(admin):
            dead.produce(*place, late.event, new_headers(source=late.source))
        planter.publish_in_transaction([own.event], source=own.source, commit=True)
        for row in (late, own):
            planter.move_relay_past(row)
        return planter.truth("bled_into_transaction", late.event)


def commit_nothing(addresses: LabAddresses, namespace: str, dice: random.Random) -> tuple[Anomaly, ...]:
    """A transaction that named a partition, wrote nothing there, and committed: a marker alone."""
    place = dice.choice([place for place in Namespace(namespace).places if place[0].endswith("payouts")])
    with open_raw_admin(addresses.bootstrap_servers) as admin:
        producer = RawProducer(admin, Namespace(namespace).group("empty"))
        producer.open()
        producer.add_partition(*place)
        producer.end(commit=True)
    return (Anomaly.of_log(Leg.PAYOUT, place, "empty_transaction", Fault.PLANTED),)


def _abort_open(admin: KafkaAdminClient, place: Partition, *, producer_id: int | None = None) -> int:
    """Write an ABORT marker for each transaction that is open on this partition; give how many there were."""
    where = TopicPartition(*place)
    found = [
        producer
        for producer in admin.describe_producers([where])[where].active_producers
        if producer.current_transaction_start_offset >= 0 and producer_id in (None, producer.producer_id)
    ]
    for producer in found:
        admin.abort_transaction(AbortTransactionSpec(where, producer.producer_id, producer.producer_epoch))
    return len(found)
