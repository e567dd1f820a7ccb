"""M4, as a forecast: when unread offsets expire, and when the next run is."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from tallystick.anomalies.notices.retention_overtakes import expiry_unseen, retention_overtakes
from tallystick.anomalies.registry import findings_of
from tallystick.kafka_cluster.state import ClusterState, TopicSettings, UnreadExpiry
from tallystick.matching.evidence import Evidence
from tallystick.model.cut import PartitionSnapshot
from tallystick.model.finding_names import Notice
from tallystick.model.findings import NoticeFound
from tests.unit.anomalies.planted import Pair, PlantedCases
from tests.unit.builders import HOUR, MINUTE, NOON, PART, contract_of, cut_of, evidence_of, partition_at, slice_of
from tests.unit.cluster_settings import KEPT


def expiring(expires_utc: datetime) -> Evidence:
    """When the first offset that no run has read may expire; the next run is through by 14:10."""
    expiry = UnreadExpiry(topic_partition=PART, kafka_offset=20, expires_utc=expires_utc)
    return evidence_of(cluster=ClusterState(expiries=(expiry,)))


class TestPlanted(PlantedCases):
    pairs = (
        Pair(
            name=Notice.RETENTION_OVERTAKES,
            fires=expiring(NOON + 2 * HOUR + 9 * MINUTE),
            twin=expiring(NOON + 2 * HOUR + 10 * MINUTE),
        ),
    )


def forecast(*, now_utc: datetime, expires_utc: datetime, schedule: str) -> NoticeFound | None:
    """Of one partition with unread offsets."""
    evidence = evidence_of(
        cut=cut_of(now_utc=now_utc),
        contract=contract_of(schedule=schedule),
        cluster=ClusterState(expiries=(UnreadExpiry(topic_partition=PART, kafka_offset=20, expires_utc=expires_utc),)),
    )
    return next(findings_of(retention_overtakes, evidence), None)


def test_the_next_run_is_when_the_schedule_fires_also_after_a_weekend() -> None:
    friday = datetime(2026, 9, 18, 6, tzinfo=UTC)
    assert forecast(now_utc=friday, expires_utc=friday + 48 * HOUR, schedule="0 6 * * 1-5") is not None
    assert forecast(now_utc=friday, expires_utc=friday + 48 * HOUR, schedule="0 6 * * *") is None


@pytest.mark.parametrize(
    ("left", "says"),
    [
        (5 * HOUR, "in 5 h"),
        (2 * HOUR, "in 2 h"),
        (2 * HOUR - timedelta(seconds=1), "in 119 min"),
        (timedelta(seconds=120), "in 2 min"),
        (timedelta(seconds=119), "in 119 s"),
        (timedelta(0), "from now on"),
        (-HOUR, "from now on"),
    ],
)
def test_the_forecast_says_when_and_when_the_next_run_is(left: timedelta, says: str) -> None:
    found = forecast(now_utc=NOON, expires_utc=NOON + left, schedule="0 */6 * * *")
    assert found is not None and found.pages
    assert found.sentence == (f"billing.payouts[0]: unread offsets, from 20 on, expire {says}, the next run is in 6 h.")


FORESEEN = (UnreadExpiry(topic_partition=PART, kafka_offset=20, expires_utc=NOON + 9 * HOUR),)
UNREAD = (partition_at(high_watermark=21),)


@pytest.mark.parametrize(
    ("settings", "partitions", "expiries", "unseen"),
    [
        pytest.param((KEPT,), UNREAD, FORESEEN, [], id="looked at"),
        pytest.param((), UNREAD, (), [str(PART)], id="of unknown settings"),
        pytest.param((), (partition_at(),), (), [], id="nothing is unread"),
        pytest.param((KEPT,), UNREAD, (), [str(PART)], id="has just expired, or names no time"),
        pytest.param((KEPT,), (partition_at(),), (), [], id="no time, and nothing is unread"),
        pytest.param((replace(KEPT, retention_ms=-1),), UNREAD, (), [], id="kept for ever"),
        pytest.param((replace(KEPT, retention_ms=2**63 - 1),), UNREAD, (), [], id="kept as good as for ever"),
        pytest.param((replace(KEPT, cleanup_policy=("compact",)),), UNREAD, (), [], id="only compacts"),
        pytest.param((KEPT,), (partition_at(high_watermark=19),), (), [str(PART)], id="cut back"),
        pytest.param((KEPT,), (partition_at(topic_id="another"),), (), [], id="made anew"),
        pytest.param((), (partition_at(topic_id="another", high_watermark=21),), (), [], id="made anew, and written"),
        pytest.param((KEPT,), (), (), [str(PART)], id="gone"),
    ],
)
def test_a_partition_of_which_nobody_knows_when_it_expires_is_unseen(
    settings: tuple[TopicSettings, ...],
    partitions: tuple[PartitionSnapshot, ...],
    expiries: tuple[UnreadExpiry, ...],
    unseen: list[str],
) -> None:
    cluster = ClusterState(topic_settings=settings, partitions_after=partitions, expiries=expiries)
    assert list(findings_of(expiry_unseen, evidence_of(cluster=cluster))) == unseen


def test_of_two_partitions_only_the_one_that_was_not_looked_at_is_unseen() -> None:
    cut = cut_of(slice_of(10, 20), slice_of(10, 20, topic="billing.fees"))
    after = (UNREAD[0], replace(UNREAD[0], topic="billing.fees"))
    cluster = ClusterState(
        topic_settings=(KEPT, replace(KEPT, topic="billing.fees")), partitions_after=after, expiries=FORESEEN
    )
    assert list(findings_of(expiry_unseen, evidence_of(cut=cut, cluster=cluster))) == ["billing.fees[0]"]
