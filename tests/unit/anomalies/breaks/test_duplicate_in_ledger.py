"""D5, K2: a row too many, and not one that followed a doubled event or whose own event is still to come."""

from tallystick.matching.match_case import RecordLocation
from tallystick.model.finding_names import BreakClass, Notice
from tests.unit.anomalies.planted import Pair, PlantedCases, found_breaks, found_in
from tests.unit.builders import HOUR, IN_TOPIC, NOON, T2L, event, evidence_of, item_of, row, seen


class TestPlanted(PlantedCases):
    pairs = (
        Pair(
            name=BreakClass.DUPLICATE_IN_LEDGER,
            fires=evidence_of(event(11), row(1), row(2), direction=T2L),
            twin=evidence_of(event(11), event(12), row(1), row(2), direction=T2L),  # it follows a doubled event
            twin_is=frozenset({BreakClass.DUPLICATE_IN_TOPIC_CAUSE_UNKNOWN}),
        ),
    )


def test_a_second_row_whose_event_lies_beyond_the_cut_is_no_duplicate_yet() -> None:
    carried = item_of(row(2), due_utc=NOON - HOUR)
    evidence = evidence_of(
        event(11), row(1), direction=T2L, carried=[carried], lookup_hits=[seen(IN_TOPIC, RecordLocation.PENDING, 25)]
    )
    assert found_in(evidence) == {Notice.PAIRED_ACROSS_WINDOWS}


def test_equal_copies_find_each_other_whatever_the_order() -> None:
    """The ledger doubled the key with another amount: the copy that disagrees is the extra one."""
    (found,) = found_breaks(
        evidence_of(event(11, amount_minor=200), row(1, amount_minor=100), row(2, amount_minor=200), direction=T2L)
    )
    assert (found.break_class, found.evidence["at"]) == (BreakClass.DUPLICATE_IN_LEDGER, "ledger:1")


def test_a_row_too_many_names_the_event_that_followed_it_if_one_did() -> None:
    alone, followed = (
        {one.break_class: one.evidence["partner"] for one in found_breaks(evidence_of(*copies))}
        for copies in (
            (row(1), row(2), event(11)),
            (row(1), row(2), event(11), event(12)),
        )
    )
    assert alone[BreakClass.DUPLICATE_IN_LEDGER] is None
    assert followed[BreakClass.DUPLICATE_IN_LEDGER] == "topic:billing.payouts:0:12"
