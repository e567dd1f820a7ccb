"""O1: two events in another order than their sequence, and not an event that was sent again."""

from tallystick.anomalies.breaks.out_of_order_in_topic import out_of_order_in_topic
from tallystick.anomalies.registry import findings_of
from tallystick.matching.evidence import Evidence, OutOfOrderEvent
from tallystick.matching.match_case import Entry, RecordLocation
from tallystick.model.finding_names import BreakClass
from tests.unit.anomalies.planted import Pair, PlantedCases
from tests.unit.builders import IN_TOPIC, T2L, TOPIC, event, evidence_of, record_of, row, seen, with_facts


def with_late_sequence(*copies: Entry) -> Evidence:
    """Sequence 4 at offset 12, and 5 before it, under one ordering key."""
    late = OutOfOrderEvent(
        topic=TOPIC,
        partition=0,
        kafka_offset=12,
        match_key="ev-1",
        transaction_key="pay-of-ev-1",
        leg="payout",
        ordering_key="account-1",
        sequence=4,
        highest_before=5,
        highest_offset=10,
    )
    return evidence_of(
        *copies,
        out_of_order=(late,),
        out_of_order_count=1,
        record_origins={one.item_id: record_of(one) for one in copies if one.side is IN_TOPIC},
    )


class TestPlanted(PlantedCases):
    pairs = (
        Pair(
            name=BreakClass.OUT_OF_ORDER_IN_TOPIC,
            fires=with_late_sequence(),
            twin=with_late_sequence(row(1), event(11), event(12)),  # the event again: a retry repeats its sequence
            twin_is=frozenset({BreakClass.DUPLICATE_IN_TOPIC_NO_IDEMPOTENCE}),
        ),
    )


def late_event(offset: int, key: str = "ev-1") -> OutOfOrderEvent:
    return OutOfOrderEvent(
        topic=TOPIC,
        partition=0,
        kafka_offset=offset,
        match_key=key,
        transaction_key=f"pay-of-{key}",
        leg="payout",
        ordering_key="account-1",
        sequence=4,
        highest_before=5,
        highest_offset=10,
    )


def disordered(*events: OutOfOrderEvent, **changes: object) -> Evidence:
    return evidence_of(out_of_order=events, out_of_order_count=len(events), **changes)


def test_an_event_out_of_order_is_a_break_without_money() -> None:
    (found,) = findings_of(out_of_order_in_topic, disordered(late_event(12)))
    assert (found.break_class, found.match_key) == (BreakClass.OUT_OF_ORDER_IN_TOPIC, "ev-1")
    assert (found.transaction_key, found.leg) == ("pay-of-ev-1", "payout")
    assert (found.amount_minor, found.currency, found.copies) == (0, "", 1)
    assert found.story == (
        "topic:billing.payouts:0:12 has sequence 4, and topic:billing.payouts:0:10 before it has 5 "
        "under the same ordering key."
    )
    assert "at" not in found.evidence
    assert found.evidence["identity"] is None


def test_where_not_all_events_out_of_order_are_named_each_says_how_many_there_are() -> None:
    (found,) = findings_of(out_of_order_in_topic, with_facts(disordered(late_event(12)), out_of_order_count=10_001))
    assert found.story.endswith(" The slice has 10,001 such events, of which the first 1 are named.")


def test_it_says_who_wrote_the_event() -> None:
    late = event(12)
    (found,) = findings_of(
        out_of_order_in_topic, disordered(late_event(12), record_origins={late.item_id: record_of(late)})
    )
    assert found.evidence["identity"]["producer_id"] == -1


def test_each_place_out_of_order_is_a_break_of_its_own_and_the_same_in_every_run() -> None:
    first, second = findings_of(out_of_order_in_topic, disordered(late_event(12), late_event(13)))
    assert first.break_id != second.break_id
    assert [first, second] == list(findings_of(out_of_order_in_topic, disordered(late_event(12), late_event(13))))


def test_a_copy_that_came_later_is_a_duplicate_and_no_reordering() -> None:
    evidence = evidence_of(row(1), event(11), event(12), out_of_order=(late_event(12),), out_of_order_count=1)
    assert list(findings_of(out_of_order_in_topic, evidence)) == []
    again = evidence_of(row(1), event(11), event(12), out_of_order=(late_event(11),), out_of_order_count=1)
    assert len(list(findings_of(out_of_order_in_topic, again))) == 1


def test_a_copy_of_an_event_of_an_earlier_cut_is_a_duplicate_too() -> None:
    again = evidence_of(
        event(12),
        direction=T2L,
        lookup_hits=[seen(IN_TOPIC, RecordLocation.EARLIER_SLICE, 3)],
        out_of_order=(late_event(12),),
        out_of_order_count=1,
    )
    assert list(findings_of(out_of_order_in_topic, again)) == []
