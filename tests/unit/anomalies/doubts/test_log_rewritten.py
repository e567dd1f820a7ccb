"""R1: other records where a run has read, and not the same ones sent again to the next leader."""

from dataclasses import replace
from typing import Any

from tallystick.kafka_cluster.batch_fingerprints import compare_anchors
from tallystick.kafka_cluster.rewritten_since import without_rewritten
from tallystick.kafka_cluster.state import BatchFingerprint, ClusterState, RewrittenBatch
from tallystick.matching.evidence import Evidence
from tallystick.model.finding_names import Doubt
from tests.unit.anomalies.log_doubts import log_doubts_of
from tests.unit.anomalies.planted import Pair, PlantedCases
from tests.unit.builders import PART, cut_of, evidence_of, slice_of

ANCHOR = BatchFingerprint(
    topic_partition=PART, kafka_offset_start=4, kafka_offset_end=9, crc32c=0xC0FFEE, leader_epoch=3, read_by_cut=1
)


def reread_as(**changes: Any) -> Evidence:
    """What the log shows where an earlier run read a batch."""
    found = compare_anchors([ANCHOR], [replace(ANCHOR, **changes)])
    return evidence_of(cluster=ClusterState(rewritten=found))


class TestPlanted(PlantedCases):
    pairs = (
        Pair(
            name=Doubt.LOG_REWRITTEN,
            fires=reread_as(crc32c=0xDECAF),
            twin=reread_as(leader_epoch=4),  # the same records, sent again to the next leader
        ),
    )


def test_a_log_that_grew_again_is_rewritten_once_per_partition_from_its_first_odd_batch() -> None:
    odd = RewrittenBatch(topic_partition=PART, kafka_offset=17, read_by_cut=1, before="one", now="another")
    batches = (replace(odd, kafka_offset=19), odd)
    (found,) = log_doubts_of(evidence_of(cluster=ClusterState(rewritten=batches)))
    assert found.sentence == (
        "billing.payouts[0]: 2 of the last batches that were read are not what they were, from offset 17 on (read by "
        "run 1): one before, another now."
    )


def test_a_slice_whose_end_was_written_anew_is_told_as_rewritten_and_not_as_expired() -> None:
    anew = RewrittenBatch(
        topic_partition=PART, kafka_offset=18, read_by_cut=2, before="one", now="another", unread_offsets=10
    )
    of_earlier_run = replace(anew, kafka_offset=9, read_by_cut=1, unread_offsets=0)
    cut = without_rewritten(cut_of(slice_of(10, 20)), [anew])
    (found,) = log_doubts_of(evidence_of(cut=cut, cluster=ClusterState(rewritten=(anew, of_earlier_run))))
    assert (found.doubt, found.details["unread_offsets"]) == (Doubt.LOG_REWRITTEN, 10)
    assert found.sentence == (
        "billing.payouts[0]: the log was cut back and grew again since cut 2 was made: one before, another now. "
        "Nothing of the slice's 10 offsets is read."
    )


def test_a_slice_that_expired_beside_another_partition_that_was_rewritten_is_told_as_expired() -> None:
    elsewhere = RewrittenBatch(
        topic_partition=replace(PART, partition=1),
        kafka_offset=18,
        read_by_cut=2,
        before="a",
        now="b",
        unread_offsets=1,
    )
    found = log_doubts_of(
        evidence_of(cut=cut_of(slice_of(10, 20, expired=3)), cluster=ClusterState(rewritten=(elsewhere,)))
    )
    assert [one.doubt for one in found] == [Doubt.LOG_EXPIRED, Doubt.LOG_REWRITTEN]


def test_a_batch_that_no_run_has_read_is_said_to_have_stood_below_the_baseline() -> None:
    odd = RewrittenBatch(topic_partition=PART, kafka_offset=7, read_by_cut=0, before="one", now="another")
    (found,) = log_doubts_of(evidence_of(cluster=ClusterState(rewritten=(odd,))))
    assert "from offset 7 on (which stood below the baseline): one before, another now." in found.sentence


def test_a_log_that_was_cut_back_grew_again_and_expired_is_told_by_where_it_ended() -> None:
    gone = RewrittenBatch(
        topic_partition=PART,
        kafka_offset=4,
        read_by_cut=3,
        before="it ended at offset 4",
        now="it begins at offset 9",
        is_gone=True,
    )
    (found,) = log_doubts_of(evidence_of(cluster=ClusterState(rewritten=(gone,))))
    assert (found.doubt, found.details["kafka_offset"]) == (Doubt.LOG_REWRITTEN, 4)
    assert found.sentence == (
        "billing.payouts[0]: the log was cut back and grew again (it ended at offset 4 when cut 3 was made, it begins "
        "at offset 9 now), and retention took what came in the place of what was read before anybody could read it."
    )


def test_a_log_that_was_cut_back_above_what_was_read_is_told_with_what_may_have_gone() -> None:
    above = RewrittenBatch(
        topic_partition=PART, kafka_offset=17, read_by_cut=1, before="one", now="another", is_above=True
    )
    (found,) = log_doubts_of(evidence_of(cluster=ClusterState(rewritten=(above,))))
    assert found.sentence.startswith(
        "billing.payouts[0]: above what cut 1 could read, the log was cut back: one before, another now. What had "
        "stood there is gone, and with it perhaps the markers"
    )
    read = replace(above, kafka_offset=18, is_above=False)
    (worse,) = log_doubts_of(evidence_of(cluster=ClusterState(rewritten=(above, read))))
    assert "are not what they were, from offset 18 on" in worse.sentence
