"""Recreated, truncated, rewritten, torn, compacted, expired: what a log that is not as it was may be, told apart."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from tallystick.anomalies.doubts.log_compacted import log_compacted
from tallystick.anomalies.doubts.log_expired import log_expired
from tallystick.anomalies.doubts.log_rewritten import log_rewritten
from tallystick.anomalies.doubts.topic_recreated import log_truncated, topic_recreated
from tallystick.anomalies.doubts.torn_cut import torn_cut
from tallystick.anomalies.notices.retention_overtakes import retention_overtakes
from tallystick.kafka_cluster.state import ClusterState, RewrittenBatch, UnreadExpiry
from tallystick.matching.evidence import Evidence
from tallystick.model.cut import Cut, PartitionSnapshot, without_expired
from tallystick.model.finding_names import Doubt
from tallystick.model.findings import DoubtFound, NoticeFound
from tests.unit.builders import HOUR, NOON, PART, contract_of, cut_of, evidence_of, partition_at, slice_of

MADE_ANEW = partition_at(topic_id="another", lso=50, high_watermark=50)
CUT_BACK = partition_at(lso=17, high_watermark=17)
RULES = (log_expired, log_compacted, log_rewritten, topic_recreated, log_truncated, torn_cut)


def seen_around(
    *before: PartitionSnapshot, after: tuple[PartitionSnapshot, ...] | None = None, cut: Cut | None = None
) -> Evidence:
    """The cut as it was judged: between these two looks at the topics."""
    stood = ClusterState(partitions_before=before, partitions_after=before if after is None else after)
    return evidence_of(cut=without_expired(cut or cut_of(), before), surroundings=stood)


def doubts_of(evidence: Evidence) -> list[DoubtFound]:
    return [found for rule in RULES for found in rule(evidence)]


def test_a_topic_that_was_made_anew_after_its_cut_did_not_expire() -> None:
    (found,) = doubts_of(seen_around(MADE_ANEW))
    assert found.sentence == (
        "billing.payouts: it was deleted and created again: these books read topic id 9J2xGk3yTf6Q1w, the cluster has "
        "another. Nothing of it is read; a new contract, under a new name, begins on it."
    )


def test_a_topic_is_made_anew_once_however_many_partitions_it_has() -> None:
    second = replace(slice_of(0, 5), offsets=replace(slice_of(0, 5).offsets, partition=1))
    cut = cut_of(slice_of(10, 20), second)
    (found,) = doubts_of(seen_around(MADE_ANEW, replace(MADE_ANEW, partition=1), cut=cut))
    assert (found.doubt, found.details["partitions"]) == (Doubt.TOPIC_RECREATED, 2)


def test_a_log_that_was_truncated_after_its_cut_did_not_expire_and_says_how_much_is_gone() -> None:
    (found,) = doubts_of(seen_around(CUT_BACK))
    assert found.sentence == (
        "billing.payouts[0]: the log ends at 17, and these books reach up to 20: 3 offsets are gone from its end. "
        "Nothing of it is read until it has passed 20."
    )


def test_a_log_that_lost_its_beginning_expired_and_was_neither_truncated_nor_made_anew() -> None:
    (found,) = doubts_of(seen_around(partition_at(log_start=13, lso=40, high_watermark=40)))
    assert (found.doubt, found.details["expired_offsets"]) == (Doubt.LOG_EXPIRED, 3)


def test_a_log_that_grew_again_is_rewritten_once_per_partition_from_its_first_odd_batch() -> None:
    odd = RewrittenBatch(topic_partition=PART, kafka_offset=17, read_by_cut=1, before="one", now="another")
    batches = (replace(odd, kafka_offset=19), odd)
    (found,) = doubts_of(evidence_of(surroundings=ClusterState(rewritten=batches)))
    assert found.sentence == (
        "billing.payouts[0]: 2 of the last batches that were read are not what they were, from offset 17 on (read by "
        "run 1): one before, another now."
    )


@pytest.mark.parametrize(
    ("after", "says"),
    [
        ((partition_at(), partition_at(partition=1)), "billing.payouts[1]: while the run read, it was added."),
        ((), None),
        ((partition_at(topic_id="another"),), "its topic was deleted and created again"),
        ((partition_at(log_start=11),), "its log start moved to 11, and the slice begins at 10"),
        ((partition_at(lso=19, high_watermark=19),), "its log was cut back to 19, and the slice ends at 20"),
        ((partition_at(log_start=10),), None),
        ((partition_at(lso=90, high_watermark=99),), None),
        ((partition_at(leader_epoch=9),), None),
    ],
    ids=["added", "nobody looked", "made anew", "expired", "cut back", "expired below", "grew", "another leader"],
)
def test_a_cut_is_torn_by_what_changes_what_is_read_and_by_nothing_else(
    after: tuple[PartitionSnapshot, ...], says: str | None
) -> None:
    found = doubts_of(seen_around(partition_at(), after=after))
    assert [one.doubt for one in found] == ([Doubt.TORN_CUT] if says else [])
    assert all(str(says) in one.sentence for one in found)


def test_a_partition_that_is_deleted_while_the_run_reads_tears_the_cut() -> None:
    (found,) = doubts_of(seen_around(partition_at(), partition_at(partition=1), after=(partition_at(),)))
    assert found.sentence == "billing.payouts[1]: while the run read, it was deleted."


def test_a_partition_that_nothing_is_read_of_may_expire_meanwhile() -> None:
    idle = cut_of(slice_of(20, 20))
    assert doubts_of(seen_around(partition_at(), after=(partition_at(log_start=20),), cut=idle)) == []


def forecast(*, now_utc: datetime, expires_utc: datetime, schedule: str) -> NoticeFound | None:
    """Of one partition with unread offsets."""
    evidence = evidence_of(
        cut=cut_of(now_utc=now_utc),
        contract=contract_of(schedule=schedule),
        surroundings=ClusterState(
            expiries=(UnreadExpiry(topic_partition=PART, kafka_offset=20, expires_utc=expires_utc),)
        ),
    )
    return next(retention_overtakes(evidence), None)


def test_the_next_run_is_when_the_schedule_fires_also_after_a_weekend() -> None:
    friday = datetime(2026, 9, 18, 6, tzinfo=UTC)
    assert forecast(now_utc=friday, expires_utc=friday + 48 * HOUR, schedule="0 6 * * 1-5") is not None
    assert forecast(now_utc=friday, expires_utc=friday + 48 * HOUR, schedule="0 6 * * *") is None


@pytest.mark.parametrize(
    ("left", "says"),
    [
        (5 * HOUR, "in 5 h"),
        (90 * HOUR / 60, "in 90 min"),
        (timedelta(seconds=70), "in 70 s"),
        (timedelta(0), "from now on"),
        (-HOUR, "from now on"),
    ],
)
def test_the_forecast_says_when_and_when_the_next_run_is(left: timedelta, says: str) -> None:
    found = forecast(now_utc=NOON, expires_utc=NOON + left, schedule="0 */6 * * *")
    assert found is not None and found.pages
    assert found.sentence == (f"billing.payouts[0]: unread offsets, from 20 on, expire {says}, the next run is in 6 h.")
