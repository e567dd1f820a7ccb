"""A stored acknowledgement is held against what the log says now: proof of a loss, or of nothing."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from tallystick.kafka_cluster.state import ClusterState, TopicSettings
from tallystick.kafka_log.log_walk import Outcome
from tallystick.kafka_log.record import LogRecord
from tallystick.ledger.protocol import LedgerRow
from tallystick.matching.match_case import LookupHit, RecordLocation
from tallystick.matching.producer_acks import AckedOffset, acks_of, locate_acked, without_compacted
from tallystick.model.cut import PartitionSnapshot
from tests.unit.builders import IN_TOPIC, PART, TOPIC, event, partition_at, record_of, seen

LEGS = {"payout": TOPIC}
BORN = {TOPIC: partition_at().topic_id}
RECEIPT = AckedOffset(match_key="ev-1", topic_partition=PART, kafka_offset=12)


def row(**changes: Any) -> LedgerRow:
    plain = LedgerRow(
        row_id="815",
        match_key="ev-1",
        transaction_key="pay-1",
        leg="payout",
        amount_minor=1,
        currency="EUR",
        position=250,
        receipt_partition=0,
        receipt_offset=12,
    )
    return replace(plain, **changes)


def test_a_row_holds_a_receipt_on_its_legs_topic() -> None:
    assert acks_of([row()], LEGS) == (RECEIPT,)


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"receipt_partition": None, "receipt_offset": None}, id="none was stored"),
        pytest.param({"receipt_offset": None}, id="half of one was stored"),
        pytest.param({"receipt_offset": -1001}, id="the producer asked for no acknowledgement"),
        pytest.param({"leg": "tip"}, id="its leg is none of the contract's"),
    ],
)
def test_a_row_holds_none_when(changes: Mapping[str, Any]) -> None:
    assert acks_of([row(**changes)], LEGS) == ()


def lookup_hit(
    standing: LogRecord | None = None,
    *,
    partitions: tuple[PartitionSnapshot, ...] = (partition_at(log_start=5, high_watermark=20),),
    receipt: AckedOffset = RECEIPT,
    first_topic_ids: Mapping[str, str] = BORN,
) -> LookupHit | None:
    return locate_acked(receipt, standing, partitions=partitions, first_topic_ids=first_topic_ids)


@pytest.mark.parametrize(
    ("standing", "kafka_offset", "there"),
    [
        pytest.param(record_of(event(12, "ev-2"), producer_id=7), 12, "another event (committed)", id="another event"),
        pytest.param(
            replace(record_of(event(12, "ev-2"), producer_id=7), outcome=Outcome.ABORTED),
            12,
            "another event (aborted)",
            id="another one's aborted event",
        ),
        pytest.param(None, 12, "no record", id="a marker, or a hole"),
        pytest.param(None, 5, "no record", id="at the very start of the log"),
        pytest.param(None, 19, "no record", id="at the very end of the log"),
        pytest.param(None, 20, "nothing: the log ends at 20", id="the log was cut back below it"),
    ],
)
def test_an_acknowledged_offset_that_the_log_covers_and_that_lacks_the_event_is_lost(
    standing: LogRecord | None, kafka_offset: int, there: str
) -> None:
    found = lookup_hit(standing, receipt=replace(RECEIPT, kafka_offset=kafka_offset))
    assert found is not None
    assert (found.side, found.place, found.item_id) == (
        IN_TOPIC,
        RecordLocation.LOST,
        f"topic:{TOPIC}:0:{kafka_offset}",
    )
    assert found.detail == {"stands_there": there, "leader_epoch": 4, "log_start": 5, "high_watermark": 20}


@pytest.mark.parametrize("outcome", [Outcome.COMMITTED, Outcome.PLAIN, Outcome.OPEN, Outcome.ABORTED])
def test_the_event_itself_at_its_receipt_is_not_lost_whatever_became_of_it(outcome: Outcome) -> None:
    assert lookup_hit(replace(record_of(event(12)), outcome=outcome)) is None


@pytest.mark.parametrize(
    "about",
    [
        pytest.param({"receipt": replace(RECEIPT, kafka_offset=4)}, id="retention has passed it"),
        pytest.param({"partitions": ()}, id="there is no such partition"),
        pytest.param({"first_topic_ids": {TOPIC: "another id"}}, id="the topic was deleted and created again"),
    ],
)
def test_a_receipt_proves_nothing_when(about: Mapping[str, Any]) -> None:
    found = lookup_hit(**about)
    assert found is not None
    assert found.place is RecordLocation.EXPIRED


def configured(cleanup_policy: str) -> ClusterState:
    settings = TopicSettings(
        topic=TOPIC,
        replication_factor=3,
        in_sync_replicas=3,
        min_insync_replicas=2,
        unclean_leader_election=False,
        cleanup_policy=tuple(cleanup_policy.split(",")),
        retention_ms=-1,
        retention_bytes=-1,
        message_timestamp_type="CreateTime",
    )
    return ClusterState(topic_settings=(settings,))


@pytest.mark.parametrize(
    ("cluster_state", "place"),
    [
        (ClusterState(), RecordLocation.LOST),
        (configured("delete"), RecordLocation.LOST),
        (configured("compact"), RecordLocation.EXPIRED),
        (configured("compact,delete"), RecordLocation.EXPIRED),
    ],
)
def test_on_a_topic_that_compacts_no_receipt_proves_a_loss(cluster_state: ClusterState, place: RecordLocation) -> None:
    beside = seen(IN_TOPIC, RecordLocation.ABORTED, 13)
    lost, other = without_compacted([seen(IN_TOPIC, RecordLocation.LOST, 12), beside], cluster_state)
    assert (lost.place, other) == (place, beside)


def test_what_a_topic_may_have_compacted_says_so_beside_all_that_was_seen() -> None:
    (told,) = without_compacted(
        [seen(IN_TOPIC, RecordLocation.LOST, 12, leader_epoch=4, stands_there="no record")], configured("compact")
    )
    assert told.detail == {"leader_epoch": 4, "stands_there": "the topic compacts"}


def test_of_a_topic_that_was_no_part_of_the_books_when_they_began_a_loss_is_proven_all_the_same() -> None:
    hit = locate_acked(RECEIPT, None, partitions=[partition_at()], first_topic_ids={})
    assert hit is not None
    assert hit.place is RecordLocation.LOST


@pytest.mark.parametrize(("kafka_offset", "is_lost"), [(19, True), (20, False), (21, False), (22, True)])
def test_what_is_written_and_may_not_be_read_yet_is_not_lost(kafka_offset: int, is_lost: bool) -> None:
    """Too few replicas have it: with acks=1 a producer was told of it already."""
    here = partition_at(log_start=5, high_watermark=20, log_end=22)
    found = lookup_hit(partitions=(here,), receipt=replace(RECEIPT, kafka_offset=kafka_offset))
    assert (found is not None) is is_lost
