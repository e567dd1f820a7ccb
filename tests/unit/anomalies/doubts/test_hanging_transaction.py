"""Hanging, long but live, and prepared on purpose: three doubts that need three different hands."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tallystick.anomalies.doubts.hanging_transaction import (
    hanging_transaction,
    hanging_unseen,
    held_by_prepared_transaction,
)
from tallystick.anomalies.doubts.held import held_by_open_transaction
from tallystick.anomalies.registry import findings_of
from tallystick.kafka_cluster.open_transactions import OpenTransaction
from tallystick.kafka_cluster.state import ClusterState
from tallystick.matching.evidence import Evidence
from tallystick.model.finding_names import Doubt
from tallystick.model.findings import DoubtFound
from tests.unit.anomalies.planted import Pair, PlantedCases
from tests.unit.builders import HOUR, NOON, PART, cut_of, evidence_of, partition_at, slice_of
from tests.unit.cluster_settings import BROKER, KEPT
from tests.unit.open_transactions import BEHIND, HANGING, LIVE, OWN, SETTINGS, SIGHT


def held_by_transaction(**changes: Any) -> Evidence:
    """A slice that is one offset short, and the transaction that holds it: Ongoing, with a minute of time-out."""
    holder = OpenTransaction(
        topic_partition=PART,
        producer_id=4001,
        producer_epoch=3,
        kafka_offset_start=20,
        transactional_id="relay-1",
        started_ms=0,
        timeout_ms=60_000,
        coordinator_state="Ongoing",
        lists_partition=True,
        confirmed=True,
    )
    known = ClusterState(topic_settings=(KEPT,), broker_settings=BROKER)
    open_now = replace(known, open_transactions=(replace(holder, **changes),))
    return evidence_of(cut=cut_of(slice_of(10, 20, mark=21)), cluster=open_now)


class TestPlanted(PlantedCases):
    pairs = (
        Pair(
            name=Doubt.HANGING_TRANSACTION,
            fires=held_by_transaction(lists_partition=False),
            twin=held_by_transaction(lists_partition=True),  # long but live
            twin_is=frozenset({Doubt.HELD_BY_OPEN_TRANSACTION}),
        ),
        Pair(
            name=Doubt.HELD_BY_PREPARED_TRANSACTION,
            fires=held_by_transaction(timeout_ms=2_147_483_647),
            twin=held_by_transaction(timeout_ms=600_000),  # as long as an ordinary one may be
            twin_is=frozenset({Doubt.HELD_BY_OPEN_TRANSACTION}),
        ),
    )


PREPARED = replace(LIVE, timeout_ms=2**31 - 1)


def held(*open_transactions: OpenTransaction, mark: int = 27, **around: object) -> Evidence:
    cluster = ClusterState(broker_settings=SETTINGS, open_transactions=open_transactions)
    return evidence_of(
        cut=cut_of(slice_of(10, 20, mark=mark)),
        cluster=replace(cluster, **around),  # type: ignore[arg-type]
    )


def doubts_of(evidence: Evidence) -> list[DoubtFound]:
    rules = (held_by_open_transaction, hanging_transaction, held_by_prepared_transaction)
    return [found for rule in rules for found in findings_of(rule, evidence)]


def names_of(evidence: Evidence) -> list[Doubt]:
    return [found.doubt for found in doubts_of(evidence)]


def test_a_hanging_transaction_says_who_from_where_since_when_and_what_it_holds() -> None:
    (found,) = doubts_of(held(HANGING, first_sights=(SIGHT,), held_events=(OWN, BEHIND)))
    assert found.doubt is Doubt.HANGING_TRANSACTION
    assert found.sentence == (
        "billing.payouts[0]: the transaction of producer 4001 (epoch 3) is open from offset 20 on, and nobody will end "
        "it: no coordinator lists its producer id. First seen 2026-03-01 11:00:00 UTC; 7 offsets could not be read. "
        "3 events, 30.50 EUR, are held: 1 of its own, 2 that merely stand behind it."
    )
    assert (found.details["age_seconds"], found.details["holds"]) == (7_200, True)
    assert (found.details["held_events"], found.details["held_money"]) == (3, {"EUR": 3_050})
    assert (found.details["held_events_of_holder"], found.details["held_money_of_holder"]) == (1, {"EUR": 1_000})


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"transactional_id": "relay-1"}, "the coordinator's transaction of relay-1 does not list this partition"),
        (
            {"transactional_id": "relay-1", "coordinator_state": "CompleteCommit", "lists_partition": True},
            "the coordinator's transaction of relay-1 has ended (CompleteCommit)",
        ),
    ],
)
def test_a_coordinator_that_knows_the_id_and_not_this_transaction_does_not_help(
    changes: dict[str, object], why: str
) -> None:
    (found,) = doubts_of(held(replace(HANGING, **changes)))  # type: ignore[arg-type]
    assert found.doubt is Doubt.HANGING_TRANSACTION
    assert why in found.sentence


def test_its_age_begins_with_our_first_sight_of_this_transaction_and_no_other() -> None:
    (first,) = doubts_of(held(HANGING))
    assert first.details["age_seconds"] == 0
    other = replace(SIGHT, kafka_offset_start=15)
    (found,) = doubts_of(held(HANGING, first_sights=(other,)))
    assert found.details["age_seconds"] == 0


@pytest.mark.parametrize("state", ["Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence"])
def test_one_that_a_coordinator_will_end_is_long_but_live(state: str) -> None:
    (found,) = doubts_of(held(replace(LIVE, coordinator_state=state)))
    assert found.doubt is Doubt.HELD_BY_OPEN_TRANSACTION
    assert (found.details["age_seconds"], found.details["timeout_seconds"]) == (3_600, 7_200)
    assert "since 2026-03-01 12:00:00 UTC, time-out 7200 s" in found.sentence


def test_one_answer_alone_does_not_make_it_hang() -> None:
    assert names_of(held(replace(HANGING, confirmed=False))) == [Doubt.HELD_BY_OPEN_TRANSACTION]


def test_a_hanging_one_behind_a_live_holder_is_a_doubt_of_its_own() -> None:
    assert names_of(held(LIVE, replace(HANGING, kafka_offset_start=23))) == [
        Doubt.HELD_BY_OPEN_TRANSACTION,
        Doubt.HANGING_TRANSACTION,
    ]
    _, hanging = doubts_of(held(LIVE, replace(HANGING, kafka_offset_start=23)))
    assert hanging.details["holds"] is False
    assert "; something else holds this cut, and this transaction will hold the next ones." in hanging.sentence


def test_a_live_one_behind_a_hanging_holder_holds_nothing_by_itself() -> None:
    assert names_of(held(HANGING, replace(LIVE, kafka_offset_start=23))) == [Doubt.HANGING_TRANSACTION]


def test_one_that_hangs_above_the_mark_is_told_before_it_holds_a_window() -> None:
    (found,) = doubts_of(held(replace(HANGING, kafka_offset_start=23), mark=20))
    assert (found.doubt, found.details["holds"]) == (Doubt.HANGING_TRANSACTION, False)
    assert found.details["held_offsets"] == 0
    assert "this cut was read up to its mark, the next ones will not be" in found.sentence
    assert doubts_of(held(replace(LIVE, kafka_offset_start=23), mark=20)) == []


def test_a_holder_that_began_after_the_slice_is_not_who_held_it() -> None:
    (found,) = doubts_of(held(replace(LIVE, kafka_offset_start=21)))
    assert (found.doubt, found.details["transactional_id"]) == (Doubt.HELD_BY_OPEN_TRANSACTION, "")


def test_a_two_phase_transaction_has_no_time_out_and_is_nobodys_to_end() -> None:
    (found,) = doubts_of(held(PREPARED, held_events=(replace(OWN, producer_id=4002),)))
    assert found.doubt is Doubt.HELD_BY_PREPARED_TRANSACTION
    assert found.sentence == (
        "billing.payouts[0]: 7 offsets could not be read: the two-phase transaction of relay-2 (producer 4002, since "
        "2026-03-01 12:00:00 UTC), which no time-out ends, holds the LSO at 20. 1 events, 10.00 EUR, are held: 1 of "
        "its own, 0 that merely stand behind it."
    )


def test_without_the_brokers_cap_nobody_can_tell_that_it_is_prepared() -> None:
    assert names_of(held(PREPARED, broker_settings=None)) == [Doubt.HELD_BY_OPEN_TRANSACTION]


def test_a_prepared_one_that_no_coordinator_lists_any_more_hangs() -> None:
    assert names_of(held(replace(PREPARED, lists_partition=False))) == [Doubt.HANGING_TRANSACTION]


def test_a_backlog_that_was_not_counted_to_its_end_says_so() -> None:
    (found,) = doubts_of(held(HANGING, held_events=(replace(OWN, complete=False),)))
    assert "At least 1 events, 10.00 EUR, are held" in found.sentence


def test_a_clock_behind_the_coordinators_gives_no_negative_age() -> None:
    ahead = int((NOON + HOUR + timedelta(minutes=5)).timestamp() * 1000)
    (found,) = doubts_of(held(replace(LIVE, started_ms=ahead)))
    assert found.details["age_seconds"] == 0


@pytest.mark.parametrize(
    ("around", "unseen"),
    [
        pytest.param({}, [], id="told, and nothing is open"),
        pytest.param({"transactions_are_told": False}, [str(PART)], id="not told"),
        pytest.param({"transactions_are_told": False, "partitions_after": (partition_at(),)}, [], id="nothing is open"),
        pytest.param({"open_transactions": (HANGING,)}, [], id="it hangs"),
        pytest.param({"open_transactions": (replace(HANGING, confirmed=False),)}, [str(PART)], id="not confirmed"),
        pytest.param({"open_transactions": (replace(LIVE, confirmed=False),)}, [], id="a coordinator will end it"),
    ],
)
def test_where_nobody_can_say_whether_a_transaction_hangs_its_partition_is_unseen(
    around: dict[str, Any], unseen: list[str]
) -> None:
    after = ClusterState(partitions_after=(partition_at(high_watermark=21),))
    assert list(findings_of(hanging_unseen, evidence_of(cluster=replace(after, **around)))) == unseen
