"""A leader's log that reaches beyond the high watermark holds records back that a producer was told are there."""

import itertools
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.errors import (
    ClusterAuthorizationFailedError,
    InvalidRequestError,
    KafkaError,
    TopicAuthorizationFailedError,
    UnsupportedVersionError,
)
from kafka.protocol.consumer.offsets import OffsetSpec

from tallystick.anomalies.doubts.held import held_by_open_transaction
from tallystick.anomalies.doubts.held_by_replication import held_by_replication
from tallystick.anomalies.notices.cursor_stopped import cursor_stopped
from tallystick.kafka_cluster.state import ClusterState, TopicSettings
from tallystick.kafka_log import topic_snapshot
from tallystick.kafka_log.topic_snapshot import read_log_ends
from tallystick.model.cut import TopicSlice, next_topic_slice
from tallystick.model.finding_names import Doubt
from tallystick.pipeline.readiness import assess_settlement, topic_settled_until
from tallystick.pipeline.sources import sample_of
from tests.unit.builders import (
    NOON,
    PART,
    TOPIC,
    cut_of,
    evidence_of,
    ledger_at,
    partition_at,
    positions_of,
    sample_at,
    slice_of,
)

SETTINGS = TopicSettings(
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


def held_at(**changes: Any) -> TopicSlice:
    """A slice [10, 20) whose leader had 23, seen when two of three replicas were out of sync."""
    seen = {"lso": 20, "high_watermark": 20, "log_end": 23, "replicas": (1, 2, 3), "in_sync": (1,)}
    return replace(slice_of(10, 20, mark=23), snapshot=partition_at(**(seen | changes)))


def sentences(topic_slice: TopicSlice, *settings: TopicSettings) -> list[str]:
    evidence = evidence_of(cut=cut_of(topic_slice), surroundings=ClusterState(topic_settings=settings))
    return [found.sentence for found in held_by_replication(evidence)]


def test_it_names_the_partition_the_replicas_that_are_out_and_how_many_are_asked_for() -> None:
    assert sentences(held_at(), SETTINGS) == [
        "billing.payouts[0]: 3 offsets could not be read: the high watermark stands at 20, the mark is 23. In sync are "
        "1 of 3 replicas, and min.insync.replicas is 2. Out of sync: 2, 3."
    ]
    (found,) = held_by_replication(evidence_of(cut=cut_of(held_at())))
    assert (found.details["out_of_sync_replicas"], found.details["min_insync_replicas"]) == ([2, 3], None)


def test_replicas_that_merely_lag_are_not_called_out_of_sync() -> None:
    (sentence,) = sentences(held_at(in_sync=(1, 2, 3)), SETTINGS)
    assert sentence.endswith(
        "All replicas count as in sync, and min.insync.replicas is 2; not all of them have confirmed it."
    )


def test_where_no_broker_says_how_far_a_log_reaches_too_few_replicas_are_doubt_enough() -> None:
    whole = slice_of(10, 20)
    for in_sync, told in (((1,), True), ((1, 2), False)):
        seen = partition_at(lso=20, high_watermark=20, replicas=(1, 2, 3), in_sync=in_sync)
        assert bool(sentences(replace(whole, snapshot=seen), SETTINGS)) is told
        assert sentences(replace(whole, snapshot=replace(seen, log_end=20)), SETTINGS) == []
    (sentence,) = sentences(replace(whole, snapshot=replace(seen, in_sync=(1,))), SETTINGS)
    assert sentence == (
        "billing.payouts[0]: nobody says how many offsets could not be read: the high watermark stands at 20, the mark "
        "is 20. In sync are 1 of 3 replicas, and min.insync.replicas is 2. Out of sync: 2, 3."
    )


def test_what_only_a_lost_leader_had_is_gone() -> None:
    (sentence,) = sentences(held_at(log_end=20), SETTINGS)
    assert sentence.endswith("The leader of then had so much; now the log ends at 20, and the rest is gone.")


def test_behind_an_open_transaction_too_both_are_told() -> None:
    evidence = evidence_of(cut=cut_of(held_at(high_watermark=22)))
    (replication,), (transaction,) = held_by_replication(evidence), held_by_open_transaction(evidence)
    assert replication.details["held_offsets"] == 1
    assert transaction.doubt is Doubt.HELD_BY_OPEN_TRANSACTION


def test_a_cursor_that_replicas_hold_is_no_transactions_fault() -> None:
    before = ClusterState(cursor_positions=positions_of((20, 20), (20, 23), (20, 23)))
    (found,) = cursor_stopped(evidence_of(cut=cut_of(held_at()), surroundings=before))
    assert found.sentence.endswith("a log that too few replicas have holds it.")


@pytest.mark.parametrize(("log_end", "mark"), [(23, 23), (None, 20)])
def test_a_mark_is_where_the_leaders_log_ends_and_of_an_older_cut_the_high_watermark(
    log_end: int | None, mark: int
) -> None:
    now = partition_at(lso=20, high_watermark=20, log_end=log_end)
    assert sample_of((now,), ledger_at(300), at_utc=NOON).high_watermark(PART) == mark
    assert next_topic_slice(now, previous=None, mark=None).mark == mark


@given(lso=st.integers(0, 30), above=st.integers(0, 5), unseen=st.integers(0, 5))
def test_a_window_is_settled_only_once_all_that_the_leader_had_can_be_read(lso: int, above: int, unseen: int) -> None:
    now = partition_at(lso=lso, high_watermark=lso + above, log_end=lso + above + unseen)
    sample = sample_of((now,), ledger_at(300), at_utc=NOON)
    settlement = assess_settlement([sample], window_end_utc=NOON, partitions=(now,), ledger_xmin=300)
    assert settlement.settled == (above + unseen == 0)
    assert (topic_settled_until([sample], (now,)) is None) == (above + unseen > 0)
    taken = next_topic_slice(now, previous=None, mark=sample.high_watermark(PART))
    assert taken.held == (taken.held_by_transaction or taken.held_by_replication)
    assert (taken.held_by_transaction, taken.held_by_replication) == (above > 0, unseen > 0)


def test_one_partition_that_is_not_whole_leaves_all_of_them_unsettled() -> None:
    whole = partition_at(partition=1, lso=20, high_watermark=20, log_end=20)
    short = partition_at(lso=20, high_watermark=20, log_end=21)
    sample = sample_of((short, whole), ledger_at(300), at_utc=NOON)
    assert topic_settled_until([sample], (short, whole)) is None
    assert topic_settled_until([sample], (replace(short, lso=21, high_watermark=21), whole)) == NOON
    assert topic_settled_until([sample_at(NOON, 20, 300)], (short, whole)) == NOON


class RefusesDebuggers:
    """A cluster of which no client learns where a log ends."""

    def __init__(self, error: type[KafkaError]) -> None:
        self.error = error

    def describe_topics(self, topics: list[str]) -> list[dict[str, Any]]:
        raise self.error("list offsets")


@pytest.mark.parametrize("error", [InvalidRequestError, UnsupportedVersionError, ClusterAuthorizationFailedError])
def test_a_cluster_that_tells_no_client_where_a_log_ends_is_read_by_its_high_watermark(error: type[KafkaError]) -> None:
    assert read_log_ends(RefusesDebuggers(error), [TOPIC]) == {}  # type: ignore[arg-type]


def test_what_a_broker_merely_fails_at_is_no_answer() -> None:
    with pytest.raises(TopicAuthorizationFailedError):
        read_log_ends(RefusesDebuggers(TopicAuthorizationFailedError), [TOPIC])  # type: ignore[arg-type]


def test_what_is_written_while_a_snapshot_is_taken_holds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each question finds one record more than the one before it."""
    written = itertools.count(20)

    class Busy:
        def describe_topics(self, topics: list[str]) -> list[dict[str, Any]]:
            part = {"partition_index": 0, "leader_epoch": 4, "replica_nodes": [1, 2], "isr_nodes": [2, 1]}
            return [{"name": TOPIC, "error_code": 0, "topic_id": "id", "partitions": [part]}]

        def list_partition_offsets(self, asked: dict[Any, OffsetSpec], *_: object) -> dict[Any, Any]:
            return {part: SimpleNamespace(offset=0 if spec < -1 else next(written)) for part, spec in asked.items()}

    monkeypatch.setattr(topic_snapshot, "read_log_ends", lambda *_: {PART: next(written)})
    (now,) = topic_snapshot.read_topic_snapshot(Busy(), [TOPIC])  # type: ignore[arg-type]
    taken = sample_of((now,), ledger_at(300), at_utc=NOON)
    assert not next_topic_slice(now, previous=None, mark=taken.high_watermark(PART)).held
    assert (now.replicas, now.in_sync) == ((1, 2), (1, 2))
