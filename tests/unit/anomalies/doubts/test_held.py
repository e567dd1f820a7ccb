"""A side that is held back says who holds it, since when and how much; and when nobody can be named, says that."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from tallystick.anomalies.doubts.held import held_by_ledger_horizon, held_by_open_transaction, partner_not_settled
from tallystick.anomalies.registry import findings_of
from tallystick.kafka_cluster.open_transactions import OpenTransaction
from tallystick.kafka_cluster.state import ClusterState
from tallystick.ledger.protocol import HorizonHolder
from tallystick.matching.evidence import LegsCase
from tallystick.matching.match_case import RecordLocation
from tallystick.model.finding_names import BreakClass, Doubt
from tallystick.model.item_reason import ReasonCode, reason_of
from tallystick.model.offsets import TopicPartition
from tests.unit.anomalies.builders import cut_with
from tests.unit.anomalies.planted import Pair, PlantedCases
from tests.unit.builders import (
    LEDGER,
    MINUTE,
    NOON,
    PART,
    T2L,
    T2T,
    TOPIC,
    contract_of,
    cut_of,
    deadlines_of,
    event,
    evidence_of,
    item_of,
    ledger_slice_of,
    row,
    seen,
    slice_of,
)


class TestPlanted(PlantedCases):
    pairs = (
        Pair(
            name=Doubt.HELD_BY_OPEN_TRANSACTION,
            fires=cut_with(slice_of(10, 20, mark=21)),
            twin=cut_with(slice_of(10, 20, mark=20)),
        ),
        Pair(
            name=Doubt.HELD_BY_LEDGER_HORIZON,
            fires=evidence_of(cut=cut_of(ledger_slice=ledger_slice_of(200, 300, mark=301))),
            twin=evidence_of(cut=cut_of(ledger_slice=ledger_slice_of(200, 300, mark=300))),
        ),
        Pair(
            name=Doubt.PARTNER_NOT_SETTLED,
            fires=evidence_of(row(1), deadlines=deadlines_of(topic_settled_until_utc=NOON)),
            twin=evidence_of(
                row(1), deadlines=deadlines_of(topic_settled_until_utc=NOON + MINUTE)
            ),  # just at its deadline
            twin_is=frozenset({BreakClass.MISSING_IN_TOPIC_NEVER_PRODUCED}),
        ),
    )


RELAY = OpenTransaction(
    topic_partition=PART,
    producer_id=4001,
    producer_epoch=3,
    kafka_offset_start=20,
    transactional_id="relay-1",
    started_ms=int(datetime(2026, 3, 1, 11, 40, tzinfo=UTC).timestamp() * 1000),
    timeout_ms=60_000,
)
HELD = evidence_of(cut=cut_of(slice_of(10, 20, mark=27)))


def test_a_held_partition_names_the_producer_the_moment_and_the_offsets() -> None:
    (doubt,) = findings_of(held_by_open_transaction, replace(HELD, cluster=ClusterState(open_transactions=(RELAY,))))
    assert doubt.sentence == (
        "billing.payouts[0]: 7 offsets could not be read: the open transaction of relay-1 (producer 4001, "
        "since 2026-03-01 11:40:00 UTC, time-out 60 s) holds the LSO at 20, the mark is 27."
    )
    assert (doubt.details["held_offsets"], doubt.details["producer_epoch"]) == (7, 3)
    assert doubt.details["since_utc"] == "2026-03-01 11:40:00 UTC"


def test_of_several_open_transactions_the_first_on_the_log_holds_the_lso() -> None:
    later = replace(RELAY, transactional_id="relay-2", kafka_offset_start=24)
    (doubt,) = findings_of(
        held_by_open_transaction, replace(HELD, cluster=ClusterState(open_transactions=(later, RELAY)))
    )
    assert doubt.details["transactional_id"] == "relay-1"


def test_a_transaction_of_another_partition_holds_nothing_here() -> None:
    elsewhere = replace(RELAY, topic_partition=TopicPartition(topic=TOPIC, partition=1))
    (doubt,) = findings_of(
        held_by_open_transaction, replace(HELD, cluster=ClusterState(open_transactions=(elsewhere,)))
    )
    assert doubt.details["transactional_id"] == ""
    assert "a producer transaction that has ended meanwhile holds the LSO" in doubt.sentence


def test_a_holder_that_the_broker_cannot_name_is_not_said_to_have_ended() -> None:
    untold = ClusterState(transactions_are_told=False)
    (doubt,) = findings_of(held_by_open_transaction, replace(HELD, cluster=untold))
    assert "a producer transaction that this broker does not name (KIP-664, Kafka 3.0) holds the LSO" in doubt.sentence


@pytest.mark.parametrize("started_ms", [None, -1])
def test_a_transaction_that_no_coordinator_knows_has_no_moment(started_ms: int | None) -> None:
    hanging = replace(RELAY, transactional_id="", started_ms=started_ms, timeout_ms=None)
    (doubt,) = findings_of(held_by_open_transaction, replace(HELD, cluster=ClusterState(open_transactions=(hanging,))))
    assert "the open transaction of unknown to every coordinator (producer 4001) holds" in doubt.sentence
    assert doubt.details["since_utc"] is None


def test_every_held_partition_is_a_doubt_of_its_own() -> None:
    cut = cut_of(slice_of(10, 20, mark=27), slice_of(0, 5, mark=6, topic="billing.fees"), slice_of(0, 5, topic="b.c"))
    found = list(findings_of(held_by_open_transaction, evidence_of(cut=cut)))
    assert [(one.details["topic"], one.details["held_offsets"]) for one in found] == [(TOPIC, 7), ("billing.fees", 1)]


def test_a_held_horizon_names_the_session_the_moment_and_the_ids() -> None:
    cut = cut_of(ledger_slice=ledger_slice_of(200, 300, mark=312))
    holder = HorizonHolder(position=300, holder="session 7 of relay", since=NOON)
    (doubt,) = findings_of(held_by_ledger_horizon, evidence_of(cut=cut, horizon_holder=holder))
    assert doubt.sentence == (
        "ledger: 12 transaction ids could not be read: session 7 of relay, open since 2026-03-01 12:00:00 UTC holds "
        "the horizon at 300, the mark is 312."
    )
    assert doubt.details == {
        "held_transaction_ids": 12,
        "horizon": 300,
        "mark": 312,
        "holder": "session 7 of relay",
        "since_utc": "2026-03-01 12:00:00 UTC",
    }


def test_a_holder_that_nobody_may_see_or_that_is_gone_is_said_to_be_so() -> None:
    cut = cut_of(ledger_slice=ledger_slice_of(200, 300, mark=312))
    (gone,) = findings_of(held_by_ledger_horizon, evidence_of(cut=cut))
    assert "a transaction that has ended meanwhile holds the horizon" in gone.sentence
    unseen = HorizonHolder(position=300, holder="session 7", since=None)
    (doubt,) = findings_of(held_by_ledger_horizon, evidence_of(cut=cut, horizon_holder=unseen))
    assert "session 7 holds the horizon" in doubt.sentence
    assert (gone.details["since_utc"], doubt.details["since_utc"]) == (None, None)


def test_what_could_not_be_judged_is_counted_with_its_money() -> None:
    """A lone row that the topic is held back from, and one that waits for no held side."""
    evidence = evidence_of(
        row(1, "ev-1", 700),
        row(2, "ev-2", 300),
        event(11, "ev-2", 300),
        carried=[item_of(row(3, "ev-3", 50))],
        deadlines=deadlines_of(topic_settled_until_utc=None),
    )
    (doubt,) = findings_of(partner_not_settled, evidence)
    assert (doubt.details["items"], doubt.details["money"]) == (2, {"EUR": 750})


def test_items_and_business_transactions_that_could_not_be_judged_add_up() -> None:
    lacks_a_leg = LegsCase(transaction_key="pay-1", seen={"payout": (1_000, "EUR", "topic:billing.payouts:0:11")})
    evidence = evidence_of(
        row(1, amount_minor=700),
        contract=contract_of(legs={"payout": TOPIC, "fee": "billing.fees"}),
        incomplete=(lacks_a_leg,),
        deadlines=deadlines_of(topic_settled_until_utc=None),
    )
    (both,) = findings_of(partner_not_settled, evidence)
    assert both.sentence == "2 items are due, but their other side could not be read up to their deadline."
    assert (both.details["items"], both.details["money"]) == (2, {"EUR": 700})
    (one,) = findings_of(partner_not_settled, replace(evidence, incomplete=()))
    assert one.details["items"] == 1


def test_an_output_whose_input_may_be_out_of_sight_is_told_from_an_input_that_waits() -> None:
    unseen = deadlines_of(inputs_out_of_sight=True, topic_settled_until_utc=None)
    (output,) = findings_of(partner_not_settled, evidence_of(event(11), direction=T2T, deadlines=unseen))
    assert "Of 1 output no input is known; it may have stood where neither" in output.sentence
    (input_alone,) = findings_of(partner_not_settled, evidence_of(row(1), direction=T2T, deadlines=unseen))
    assert input_alone.sentence == "1 item is due, but its other side could not be read up to its deadline."


def test_an_event_whose_row_was_taken_back_and_is_gone_is_told_so_and_lacks_no_input() -> None:
    reversal = seen(LEDGER, RecordLocation.EARLIER_SLICE, 2, reverses="ledger:1")
    (found,) = findings_of(partner_not_settled, evidence_of(event(11), direction=T2L, lookup_hits=[reversal]))
    assert "Of 1 event a row was posted: another one takes it back" in found.sentence
    assert "input" not in found.sentence


def test_a_row_whose_event_an_election_took_is_told_from_one_that_the_topic_is_held_back_from() -> None:
    held = evidence_of(row(1), deadlines=deadlines_of(topic_settled_until_utc=None))
    (outcome,) = held.outcomes
    gone = replace(outcome.residues[0], reason=reason_of(ReasonCode.PARTNER_CUT_AWAY))
    (found,) = findings_of(partner_not_settled, replace(held, outcomes=(replace(outcome, residues=(gone,)),)))
    assert "Of 1 row an election took the event while this run read it." in found.sentence
    (other,) = findings_of(partner_not_settled, held)
    assert "election" not in other.sentence
