"""Each fault of the log is really on the log, and the nodes it took down are up again."""

import uuid
from random import Random

import pytest
from confluent_kafka.admin import ConfigResource, ResourceType  # type: ignore[attr-defined]

from lab.faults.log_faults import (
    compact_unread,
    expire_unread,
    lose_acknowledged_write,
    lose_read_records,
    overtake_by_retention,
    read_offsets,
    recreate_topic,
    send_out_of_order,
)
from lab.rounds.delivery_mode_round import prepare
from lab.servers.log_ends import Partition
from lab.servers.stack import LabStack
from lab.services.delivery_mode import DeliveryMode
from lab.services.event import Leg
from lab.services.kafka_clients import new_admin
from lab.services.namespace import Namespace
from lab.services.raw_producer import open_raw_admin
from lab.truth.independent_reader import read_topic
from lab.truth.truth import Anomaly

pytestmark = [pytest.mark.stack, pytest.mark.lab]


def test_an_unread_event_expires(lab_stack: LabStack) -> None:
    names = _prepare(lab_stack)
    truth, unread = expire_unread(lab_stack, names.name, Random(1))
    assert (truth.break_class, truth.event_id) == ("log_expired", "")
    assert unread.break_class == "undecidable"
    assert read_offsets(lab_stack, _place(names, truth)) == []


def test_compaction_takes_the_older_of_two_records_of_a_key(lab_stack: LabStack) -> None:
    names = _prepare(lab_stack)
    truth, _ = compact_unread(lab_stack, names.name, Random(2))
    found = read_offsets(lab_stack, _place(names, truth))
    assert found[0] == 1 and found == sorted(found)


def test_retention_is_short_while_an_event_is_held(lab_stack: LabStack) -> None:
    names = _prepare(lab_stack)
    topic = names.topic(Leg.PAYOUT)
    held, commit = overtake_by_retention(lab_stack, names.name, Random(3))
    assert read_topic(lab_stack.bootstrap_servers, topic) == []
    assert _setting(lab_stack, topic, "retention.ms") == "3600000"
    assert {truth.break_class for truth in held} == {"retention_overtakes", "held_by_open_transaction"}
    commit()
    assert _setting(lab_stack, topic, "retention.ms") == "-1"


def test_a_recreated_topic_has_another_id_and_the_later_payout_alone(lab_stack: LabStack) -> None:
    names = _prepare(lab_stack)
    topic = names.topic(Leg.PAYOUT)
    recreate = recreate_topic(lab_stack, names.name, Random(4))
    before, (first,) = _topic_id(lab_stack, topic), read_topic(lab_stack.bootstrap_servers, topic)
    truth, _ = recreate()
    assert truth.break_class == "topic_recreated"
    (second,) = read_topic(lab_stack.bootstrap_servers, topic)
    assert _topic_id(lab_stack, topic) != before
    assert second.event["event_id"] != first.event["event_id"]


def test_what_was_sent_first_stands_second(lab_stack: LabStack) -> None:
    names = _prepare(lab_stack)
    (truth,) = send_out_of_order(lab_stack, names.name, Random(5))
    late, early = read_topic(lab_stack.bootstrap_servers, names.topic(Leg.PAYOUT))
    assert (late.partition, late.event["account"]) == (early.partition, early.event["account"])
    assert (late.event["sequence"], early.event["sequence"]) == (2, 1)
    assert early.event["event_id"] == truth.event_id


def test_acknowledged_writes_are_lost_with_their_leader(lab_cluster: LabStack) -> None:
    names = _prepare(lab_cluster)
    truths = lose_acknowledged_write(lab_cluster, names.name, Random(6))
    assert [truth.break_class for truth in truths] == ["lost_acknowledged_write"] * 2
    assert read_offsets(lab_cluster, _place(names, truths[0])) == [0, 1]
    left = {record.event["event_id"] for record in read_topic(lab_cluster.bootstrap_servers, names.topic(Leg.PAYOUT))}
    assert len(left) == 2 and not left & {truth.event_id for truth in truths}
    assert all(broker.is_running for broker in lab_cluster.cluster.brokers)


def test_records_that_were_read_are_lost_and_other_ones_take_their_place(lab_cluster: LabStack) -> None:
    names = _prepare(lab_cluster)
    lose = lose_read_records(lab_cluster, names.name, Random(7))
    places = [place for place in names.places if place[0] == names.topic(Leg.PAYOUT)]
    assert [read_offsets(lab_cluster, place) for place in places] == [[0, 1, 2]] * 2
    before = _event_ids(lab_cluster, names)
    truths = lose()
    assert [truth.break_class for truth in truths] == ["log_truncated", "log_rewritten", "undecidable", "undecidable"]
    assert [read_offsets(lab_cluster, _place(names, truth)) for truth in truths[:2]] == [[0], [0, 1, 2, 3]]
    assert len(_event_ids(lab_cluster, names) & before) == 2
    assert all(broker.is_running for broker in lab_cluster.cluster.brokers)


def _prepare(stack: LabStack) -> Namespace:
    name = f"log_{uuid.uuid4().hex[:8]}"
    return prepare(stack, DeliveryMode.EXACTLY_ONCE, seed=1, namespace=name).names


def _place(names: Namespace, truth: Anomaly) -> Partition:
    return next(place for place in names.places if truth.place == f"{place[0]}[{place[1]}]")


def _event_ids(stack: LabStack, names: Namespace) -> set[str]:
    return {record.event["event_id"] for record in read_topic(stack.bootstrap_servers, names.topic(Leg.PAYOUT))}


def _topic_id(stack: LabStack, topic: str) -> str:
    with open_raw_admin(stack.bootstrap_servers) as admin:
        (described,) = admin.describe_topics([topic])
        return str(described["topic_id"])


def _setting(stack: LabStack, topic: str, name: str) -> str:
    admin, resource = new_admin(stack.bootstrap_servers), ConfigResource(ResourceType.TOPIC, topic)
    return str(admin.describe_configs([resource])[resource].result(30)[name].value)
