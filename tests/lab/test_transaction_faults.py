"""Each faulty transaction is on the log as it is said to be, and brokers verify again afterwards."""

import uuid
from collections.abc import Iterator
from random import Random

import pytest
from kafka.admin import KafkaAdminClient
from kafka.errors import TransactionAbortableError
from kafka.structs import TopicPartition

from lab.faults.break_writer import new_payment
from lab.faults.transaction_faults import (
    bleed_into_transaction,
    commit_nothing,
    end_hanging_transactions,
    hang_transaction,
    tear_by_protocol,
)
from lab.rounds.delivery_mode_round import prepare
from lab.servers.log_ends import Partition
from lab.servers.process import wait_until
from lab.servers.stack import LabStack
from lab.services.delivery_mode import DeliveryMode
from lab.services.event import Leg
from lab.services.namespace import Namespace
from lab.services.raw_producer import RawProducer, open_raw_admin
from lab.truth.independent_reader import read_topic
from tallystick.kafka_log.fetch import fetcher
from tallystick.kafka_log.log_walk import walk_batches
from tallystick.model.offsets import OffsetRange

pytestmark = [pytest.mark.stack, pytest.mark.lab]


@pytest.fixture
def admin(lab_stack: LabStack) -> Iterator[KafkaAdminClient]:
    with open_raw_admin(lab_stack.bootstrap_servers) as admin:
        yield admin


@pytest.fixture
def names(lab_stack: LabStack) -> Namespace:
    round_ = prepare(lab_stack, DeliveryMode.EXACTLY_ONCE, seed=1, namespace=f"faults_{uuid.uuid4().hex[:8]}")
    return round_.names


def test_a_hanging_transaction_is_open_on_its_partition_and_unknown_to_the_coordinator(
    lab_stack: LabStack, admin: KafkaAdminClient, names: Namespace
) -> None:
    (truth,) = hang_transaction(lab_stack, names.name, Random(1))
    assert (truth.break_class, truth.contract) == ("hanging_transaction", "payouts")
    (held,) = _open_places(admin, names)
    assert _ends(admin, held) == (0, 1)
    known = admin.describe_transactions([names.group("hanging")])[names.group("hanging")]
    assert (known.state, known.topic_partitions) == ("Empty", set())

    assert end_hanging_transactions(lab_stack, names.name) == 1
    assert _open_places(admin, names) == []


def test_brokers_verify_transactions_again_afterwards(
    lab_stack: LabStack, admin: KafkaAdminClient, names: Namespace
) -> None:
    hang_transaction(lab_stack, names.name, Random(2))
    stranger = RawProducer(admin, names.group("stranger"))
    stranger.open()
    with pytest.raises(TransactionAbortableError):
        stranger.produce(*names.places[0], new_payment(Random(2)).event(Leg.PAYMENT), {})


def test_a_transaction_torn_by_protocol_is_committed_here_and_aborted_there(
    lab_stack: LabStack, admin: KafkaAdminClient, names: Namespace
) -> None:
    (truth,) = tear_by_protocol(lab_stack, names.name, Random(3))
    assert (truth.break_class, truth.leg) == ("torn_by_protocol", "invoice")
    _wait_decided(admin, names)
    assert _log(admin, names, Leg.PAYMENT) == ["committed at epoch 0", "commit"]
    assert _log(admin, names, Leg.INVOICE) == ["aborted at epoch 0", "abort", "commit"]


def test_a_bleed_is_two_epochs_before_one_marker_and_both_are_committed(
    lab_stack: LabStack, admin: KafkaAdminClient, names: Namespace
) -> None:
    (truth,) = bleed_into_transaction(lab_stack, names.name, Random(4))
    _wait_decided(admin, names)
    assert _log(admin, names, Leg.PAYOUT) == ["committed at epoch 0", "committed at epoch 1", "commit"]
    first = read_topic(lab_stack.bootstrap_servers, names.topic(Leg.PAYOUT))[0]
    assert (truth.break_class, first.event["event_id"]) == ("bled_into_transaction", truth.event_id)


def test_an_empty_transaction_leaves_a_marker_alone(
    lab_stack: LabStack, admin: KafkaAdminClient, names: Namespace
) -> None:
    (truth,) = commit_nothing(lab_stack, names.name, Random(5))
    (place,) = [TopicPartition(*place) for place in names.places if truth.place == f"{place[0]}[{place[1]}]"]
    wait_until(lambda: _ends(admin, place) == (1, 1), what="the marker")
    assert _log(admin, names, Leg.PAYOUT) == ["commit"]


def _log(admin: KafkaAdminClient, names: Namespace, leg: Leg) -> list[str]:
    """What each batch of a leg's topic is; markers by their type."""
    return [
        str(batch.header.marker or f"{batch.outcome} at epoch {batch.header.producer_epoch}")
        for place in names.places
        if place[0] == names.topic(leg)
        for batch in walk_batches(fetcher(admin), _whole(admin, place))
    ]


def _whole(admin: KafkaAdminClient, place: Partition) -> OffsetRange:
    lso, _ = _ends(admin, TopicPartition(*place))
    return OffsetRange(topic=place[0], partition=place[1], kafka_offset_start=0, kafka_offset_end=lso)


def _ends(admin: KafkaAdminClient, place: TopicPartition) -> tuple[int, int]:
    """The LSO and the high watermark."""
    lso, high_watermark = (admin.list_partition_offsets({place: -1}, isolation_level=level) for level in (1, 0))
    return lso[place].offset, high_watermark[place].offset


def _wait_decided(admin: KafkaAdminClient, names: Namespace) -> None:
    places = [TopicPartition(*place) for place in names.places]
    wait_until(lambda: all(lso == end for lso, end in (_ends(admin, place) for place in places)), what="the markers")


def _open_places(admin: KafkaAdminClient, names: Namespace) -> list[TopicPartition]:
    described = admin.describe_producers([TopicPartition(*place) for place in names.places])
    return [
        place
        for place, state in described.items()
        if any(producer.current_transaction_start_offset >= 0 for producer in state.active_producers)
    ]
