"""Q2: a cut is torn by what changes what is read, and by nothing else."""

from dataclasses import replace

import pytest

from tallystick.model.cut import PartitionSnapshot
from tallystick.model.finding_names import Doubt
from tests.unit.anomalies.builders import around
from tests.unit.anomalies.log_doubts import log_doubts_of, seen_around
from tests.unit.anomalies.planted import Pair, PlantedCases
from tests.unit.builders import TOPIC, cut_of, partition_at, slice_of


class TestPlanted(PlantedCases):
    pairs = (
        Pair(
            name=Doubt.TORN_CUT,
            fires=around(partition_at(), partition_at(log_start=11)),
            twin=around(partition_at(), partition_at(log_start=10, lso=25, high_watermark=30, leader_epoch=5)),
        ),
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
    found = log_doubts_of(seen_around(partition_at(), after=after))
    assert [one.doubt for one in found] == ([Doubt.TORN_CUT] if says else [])
    assert all(str(says) in one.sentence for one in found)


def test_a_partition_that_is_deleted_while_the_run_reads_tears_the_cut() -> None:
    (found,) = log_doubts_of(seen_around(partition_at(), partition_at(partition=1), after=(partition_at(),)))
    assert found.sentence == "billing.payouts[1]: while the run read, it was deleted."


def test_a_partition_that_nothing_is_read_of_may_expire_meanwhile() -> None:
    idle = cut_of(slice_of(20, 20))
    for log_start in (20, 21):
        assert log_doubts_of(seen_around(partition_at(), after=(partition_at(log_start=log_start),), cut=idle)) == []


def test_a_partition_that_the_cut_did_not_know_may_expire_meanwhile_too() -> None:
    new = partition_at(partition=1)
    later = (partition_at(), replace(new, log_start=20))
    assert log_doubts_of(seen_around(partition_at(), new, after=later)) == []


def test_a_log_that_began_with_the_slice_and_lost_its_first_offset_tears_the_cut() -> None:
    (found,) = log_doubts_of(seen_around(partition_at(log_start=10), after=(partition_at(log_start=11),)))
    assert "its log start moved to 11, and the slice begins at 10" in found.sentence


@pytest.mark.parametrize(
    ("after", "said"),
    [
        (partition_at(), "billing.payouts[0]: while the run read, what stood at offset 12 left the log."),
        (partition_at(log_start=11), "its log start moved to 11"),
    ],
    ids=["nothing else", "told by the log's start"],
)
def test_an_event_that_left_the_log_once_it_was_read_tears_the_cut_once(after: PartitionSnapshot, said: str) -> None:
    stood = seen_around(partition_at(), after=(after,))
    gone = replace(
        stood, looked_up=replace(stood.looked_up, gone_unread=(f"topic:{TOPIC}:0:12", f"topic:{TOPIC}:0:13"))
    )
    (found,) = log_doubts_of(gone)
    assert found.doubt is Doubt.TORN_CUT
    assert said in found.sentence
