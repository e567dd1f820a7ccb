"""R2: a topic made anew, or a log cut back, after its cut: not expired, and said how much is gone."""

from dataclasses import replace

from tallystick.model.finding_names import Doubt
from tests.unit.anomalies.builders import around
from tests.unit.anomalies.log_doubts import log_doubts_of, seen_around
from tests.unit.anomalies.planted import Pair, PlantedCases
from tests.unit.builders import cut_of, evidence_of, partition_at, slice_of


class TestPlanted(PlantedCases):
    pairs = (
        Pair(
            name=Doubt.TOPIC_RECREATED,
            fires=around(partition_at(topic_id="another")),
            twin=around(partition_at(high_watermark=30)),
        ),
        Pair(
            name=Doubt.LOG_TRUNCATED,
            fires=around(partition_at(lso=19, high_watermark=19)),
            twin=around(partition_at(lso=20, high_watermark=20)),
        ),
    )


MADE_ANEW = partition_at(topic_id="another", lso=50, high_watermark=50)
CUT_BACK = partition_at(lso=17, high_watermark=17)


def test_a_topic_that_was_made_anew_after_its_cut_did_not_expire() -> None:
    (found,) = log_doubts_of(seen_around(MADE_ANEW))
    assert found.sentence == (
        "billing.payouts: it was deleted and created again: these books read topic id 9J2xGk3yTf6Q1w, the cluster has "
        "another. Nothing of it is read; a new contract, under a new name, begins on it."
    )


def test_a_topic_is_made_anew_once_however_many_partitions_it_has() -> None:
    second = replace(slice_of(0, 5), offsets=replace(slice_of(0, 5).offsets, partition=1))
    cut = cut_of(slice_of(10, 20), second)
    (found,) = log_doubts_of(seen_around(MADE_ANEW, replace(MADE_ANEW, partition=1), cut=cut))
    assert (found.doubt, found.details["partitions"]) == (Doubt.TOPIC_RECREATED, 2)


def test_one_topic_under_two_ids_was_made_anew_though_nobody_could_look_at_it_again() -> None:
    second = replace(slice_of(0, 5), offsets=replace(slice_of(0, 5).offsets, partition=1))
    anew = replace(second, snapshot=replace(MADE_ANEW, partition=1))
    (found,) = log_doubts_of(evidence_of(cut=cut_of(slice_of(10, 20), anew)))
    assert (found.doubt, found.details["topic_id_now"]) == (Doubt.TOPIC_RECREATED, "")
    assert log_doubts_of(evidence_of(cut=cut_of(slice_of(10, 20), second))) == []


def test_a_log_that_was_truncated_after_its_cut_did_not_expire_and_says_how_much_is_gone() -> None:
    (found,) = log_doubts_of(seen_around(CUT_BACK))
    assert found.sentence == (
        "billing.payouts[0]: the log ends at 17, and these books reach up to 20: 3 offsets are gone from its end. "
        "Nothing of it is read until it has passed 20."
    )
