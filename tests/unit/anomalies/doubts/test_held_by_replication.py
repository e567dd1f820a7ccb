"""A leader's log that reaches beyond the high watermark holds records back that a producer was told are there."""

from dataclasses import replace

from tallystick.anomalies.doubts.held import held_by_open_transaction
from tallystick.anomalies.doubts.held_by_replication import held_by_replication
from tallystick.anomalies.registry import findings_of
from tallystick.kafka_cluster.state import ClusterState, TopicSettings
from tallystick.model.cut import TopicSlice
from tallystick.model.finding_names import Doubt
from tests.unit.anomalies.builders import cut_with, held_at
from tests.unit.anomalies.planted import Pair, PlantedCases
from tests.unit.builders import TOPIC, cut_of, evidence_of, partition_at, slice_of


def short_of(*, high_watermark: int) -> TopicSlice:
    """A slice that ends one offset below its mark, where the leader's log ends."""
    snapshot = partition_at(lso=20, high_watermark=high_watermark, log_end=21, replicas=(1, 2, 3), in_sync=(1,))
    return replace(slice_of(10, 20, mark=21), snapshot=snapshot)


class TestPlanted(PlantedCases):
    pairs = (
        Pair(
            name=Doubt.HELD_BY_REPLICATION,
            fires=cut_with(short_of(high_watermark=20)),
            twin=cut_with(short_of(high_watermark=21)),  # all replicas have it; a transaction is open
            twin_is=frozenset({Doubt.HELD_BY_OPEN_TRANSACTION}),
        ),
    )


SHORT_OF_REPLICAS = TopicSettings(
    topic=TOPIC,
    replication_factor=3,
    in_sync_replicas=1,
    min_insync_replicas=2,
    unclean_leader_election=False,
    cleanup_policy=("delete",),
    retention_ms=-1,
    retention_bytes=-1,
    message_timestamp_type="CreateTime",
)


def sentences(topic_slice: TopicSlice, *settings: TopicSettings) -> list[str]:
    evidence = evidence_of(cut=cut_of(topic_slice), cluster=ClusterState(topic_settings=settings))
    return [found.sentence for found in findings_of(held_by_replication, evidence)]


def test_it_names_the_partition_the_replicas_that_are_out_and_how_many_are_asked_for() -> None:
    assert sentences(held_at(), SHORT_OF_REPLICAS) == [
        "billing.payouts[0]: 3 offsets could not be read: the high watermark stands at 20, the mark is 23. In sync are "
        "1 of 3 replicas, and min.insync.replicas is 2. Out of sync: 2, 3."
    ]
    (found,) = findings_of(held_by_replication, evidence_of(cut=cut_of(held_at())))
    assert (found.details["out_of_sync_replicas"], found.details["min_insync_replicas"]) == ([2, 3], None)


def test_replicas_that_merely_lag_are_not_called_out_of_sync() -> None:
    (sentence,) = sentences(held_at(in_sync=(1, 2, 3)), SHORT_OF_REPLICAS)
    assert sentence.endswith(
        "All replicas count as in sync, and min.insync.replicas is 2; not all of them have confirmed it."
    )


def test_where_no_broker_says_how_far_a_log_reaches_too_few_replicas_are_doubt_enough() -> None:
    whole = slice_of(10, 20)
    for in_sync, told in (((1,), True), ((1, 2), False)):
        seen = partition_at(lso=20, high_watermark=20, replicas=(1, 2, 3), in_sync=in_sync)
        assert bool(sentences(replace(whole, snapshot=seen), SHORT_OF_REPLICAS)) is told
        assert sentences(replace(whole, snapshot=replace(seen, log_end=20)), SHORT_OF_REPLICAS) == []
    (sentence,) = sentences(replace(whole, snapshot=replace(seen, in_sync=(1,))), SHORT_OF_REPLICAS)
    assert sentence == (
        "billing.payouts[0]: nobody says how many offsets could not be read: the high watermark stands at 20, the mark "
        "is 20. In sync are 1 of 3 replicas, and min.insync.replicas is 2. Out of sync: 2, 3."
    )


def test_what_a_mark_shows_to_be_there_is_counted_though_no_broker_says_how_far_the_log_reaches() -> None:
    (sentence,) = sentences(held_at(log_end=None), SHORT_OF_REPLICAS)
    assert sentence.startswith("billing.payouts[0]: 3 offsets could not be read: ")


def test_what_only_a_lost_leader_had_is_gone() -> None:
    (sentence,) = sentences(held_at(log_end=20), SHORT_OF_REPLICAS)
    assert sentence.endswith("The leader of then had so much; now the log ends at 20, and the rest is gone.")


def test_behind_an_open_transaction_too_both_are_told() -> None:
    evidence = evidence_of(cut=cut_of(held_at(high_watermark=22)))
    (replication,), (transaction,) = (
        findings_of(held_by_replication, evidence),
        findings_of(held_by_open_transaction, evidence),
    )
    assert replication.details["held_offsets"] == 1
    assert transaction.doubt is Doubt.HELD_BY_OPEN_TRANSACTION
