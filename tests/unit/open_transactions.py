"""Open producer transactions: hanging, live, what they hold, and when they were first seen."""

from dataclasses import replace

from tallystick.kafka_cluster.open_transactions import OpenTransaction
from tallystick.kafka_cluster.state import BlockedEvents, BrokerSettings, FirstSight
from tests.unit.builders import HOUR, NOON, PART

HANGING = OpenTransaction(
    topic_partition=PART,
    producer_id=4001,
    producer_epoch=3,
    kafka_offset_start=20,
    transactional_id="",
    started_ms=None,
    timeout_ms=None,
    confirmed=True,
)
LIVE = replace(
    HANGING,
    producer_id=4002,
    transactional_id="relay-2",
    started_ms=int(NOON.timestamp() * 1000),
    timeout_ms=7_200_000,
    coordinator_state="Ongoing",
    lists_partition=True,
)

SETTINGS = BrokerSettings(
    transaction_max_timeout_ms=7_200_000,
    transactional_id_expiration_ms=604_800_000,
    producer_id_expiration_ms=86_400_000,
    transaction_version=2,
)
SIGHT = FirstSight(topic_partition=PART, producer_id=4001, kafka_offset_start=20, first_seen_utc=NOON - HOUR)
OWN = BlockedEvents(
    topic_partition=PART,
    producer_id=4001,
    producer_epoch=3,
    kafka_offset_start=20,
    events=1,
    money={"EUR": 1_000},
    holds=True,
)
BEHIND = replace(OWN, producer_id=4002, kafka_offset_start=21, events=2, money={"EUR": 2_050}, holds=False)
