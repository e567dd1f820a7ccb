"""M5: the event is there, and not where it belongs."""

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from tallystick.matching.evidence import Evidence, LegsCase
from tallystick.matching.match_case import RecordLocation
from tallystick.model.direction import Direction
from tallystick.model.finding_names import BreakClass
from tallystick.model.open_item import ItemState
from tests.unit.anomalies.findings import BEYOND, ELSEWHERE, FEES, STRAYS, TWO_LEGS, classes, items_of, the_break
from tests.unit.anomalies.planted import Pair, PlantedCases, found_breaks
from tests.unit.builders import (
    IN_TOPIC,
    L2T,
    MINUTE,
    NOON,
    T2L,
    TOPIC,
    contract_of,
    deadlines_of,
    event,
    evidence_of,
    item_of,
    row,
    seen,
)

STRAY_TOPIC = "billing.refunds"
"""A topic of no leg."""


class TestPlanted(PlantedCases):
    pairs = (
        Pair(
            name=BreakClass.MISROUTED_IN_TOPIC,
            fires=evidence_of(row(1), lookup_hits=[seen(IN_TOPIC, RecordLocation.STRAY, 4, topic=STRAY_TOPIC)]),
            twin=evidence_of(row(1), lookup_hits=[seen(IN_TOPIC, RecordLocation.ABORTED, 4, topic=STRAY_TOPIC)]),
            twin_is=frozenset({BreakClass.MISSING_IN_TOPIC_ABORTED_ONLY}),
        ),
    )


@pytest.mark.parametrize("direction", [L2T, T2L], ids=str)
def test_a_row_whose_event_is_on_a_stray_topic_is_misrouted_and_says_where(direction: Direction) -> None:
    found = the_break(evidence_of(row(1), direction=direction, lookup_hits=[STRAYS]))
    assert (found.break_class, found.evidence["found_at"]) == (
        BreakClass.MISROUTED_IN_TOPIC,
        ["topic:billing.refunds:0:4"],
    )
    assert found.evidence["expected_topic"] == TOPIC


@pytest.mark.parametrize(
    ("evidence", "instead"),
    [
        pytest.param(evidence_of(row(1), event(11), lookup_hits=[STRAYS]), set(), id="the right one is there too"),
        pytest.param(evidence_of(row(1), lookup_hits=[STRAYS, BEYOND]), set(), id="the right one lies beyond the cut"),
        pytest.param(
            evidence_of(row(1), lookup_hits=[STRAYS], deadlines=deadlines_of(now_utc=NOON + MINUTE / 2)),
            set(),
            id="within its grace",
        ),
        pytest.param(evidence_of(row(1)), {BreakClass.MISSING_IN_TOPIC_NEVER_PRODUCED}, id="it is nowhere"),
    ],
)
def test_a_row_is_not_called_misrouted_when(evidence: Evidence, instead: set[object]) -> None:
    assert classes(evidence) == instead


def of_two_legs(*copies: Any, direction: Direction, **about: Any) -> Evidence:
    return evidence_of(*copies, direction=direction, contract=contract_of(direction, legs=TWO_LEGS), **about)


@pytest.mark.parametrize("direction", [L2T, T2L], ids=str)
def test_an_event_under_the_wrong_leg_is_misrouted_though_its_row_pairs_with_it(direction: Direction) -> None:
    evidence = of_two_legs(event(11, leg="fee"), row(1), direction=direction)
    found = the_break(evidence)
    assert classes(evidence) == {BreakClass.MISROUTED_IN_TOPIC}
    assert (found.evidence["expected_topic"], found.evidence["partner"]) == (FEES, "ledger:1")
    assert found.evidence["found_at"] == ["topic:billing.payouts:0:11"]
    assert found.story == f"The event at topic:billing.payouts:0:11 is of the leg 'fee', whose topic is {FEES}."
    item = items_of(evidence)["topic:billing.payouts:0:11"]
    assert (item.state, item.pairable, item.cleared_by) == (ItemState.BROKEN, False, "ledger:1")


@pytest.mark.parametrize(
    ("evidence", "instead"),
    [
        pytest.param(of_two_legs(event(11, leg="payout"), row(1), direction=L2T), set(), id="it is the right leg"),
        pytest.param(
            of_two_legs(event(11, leg="tip"), row(1), direction=L2T), set(), id="it names no leg of the contract"
        ),
        pytest.param(
            of_two_legs(event(11, leg="fee", topic=FEES), row(1), direction=L2T), set(), id="its topic is that leg's"
        ),
        pytest.param(
            of_two_legs(event(11, leg="fee"), direction=L2T), {BreakClass.PHANTOM_IN_TOPIC}, id="it has no row at all"
        ),
        pytest.param(
            of_two_legs(event(11, leg="fee", amount_minor=1), row(1), direction=L2T),
            {BreakClass.AMOUNT_MISMATCH},
            id="its amount differs",
        ),
        pytest.param(
            of_two_legs(event(11), event(12, leg="fee"), row(1), direction=T2L),
            {BreakClass.DUPLICATE_IN_TOPIC_CAUSE_UNKNOWN},
            id="it is a second copy",
        ),
        pytest.param(
            of_two_legs(event(11, leg="fee"), direction=T2L, deadlines=deadlines_of(now_utc=NOON + MINUTE / 2)),
            set(),
            id="its row may still come",
        ),
    ],
)
def test_an_event_is_not_called_misrouted_when(evidence: Evidence, instead: set[object]) -> None:
    assert classes(evidence) == instead


def test_that_no_consumer_posted_it_is_explained_by_the_wrong_topic() -> None:
    evidence = of_two_legs(event(11, leg="fee"), direction=T2L)
    assert classes(evidence) == {BreakClass.MISROUTED_IN_TOPIC}
    assert items_of(evidence)["topic:billing.payouts:0:11"].pairable


def test_a_row_that_comes_late_for_a_misrouted_event_clears_it_and_breaks_nothing_twice() -> None:
    broken = item_of(event(11, leg="fee"), ItemState.BROKEN, reason="misrouted_in_topic", break_id=UUID(int=1))
    evidence = of_two_legs(row(1), direction=T2L, carried=[broken])
    assert classes(evidence) == set()
    assert items_of(evidence)["topic:billing.payouts:0:11"].state is ItemState.CLEARED


def test_a_misrouted_event_whose_row_came_a_window_later_is_told_then() -> None:
    waiting = item_of(event(11, leg="fee"))
    evidence = of_two_legs(row(1), direction=T2L, carried=[waiting])
    assert classes(evidence) == {BreakClass.MISROUTED_IN_TOPIC}


def strayed_leg(**stands: RecordLocation) -> Evidence:
    """A payment whose payout leg is committed, and where its fee leg stands."""
    lookup_hits = {"fee": tuple(seen(IN_TOPIC, place, 4, topic=ELSEWHERE) for place in stands.values())}
    case = LegsCase(
        transaction_key="pay-1", seen={"payout": (1_000, "EUR", "topic:billing.payouts:0:11")}, lookup_hits=lookup_hits
    )
    return evidence_of(direction=T2L, contract=contract_of(T2L, legs=TWO_LEGS), incomplete=(case,))


def test_a_leg_on_a_stray_topic_is_misrouted_and_its_payment_not_torn() -> None:
    evidence = strayed_leg(there=RecordLocation.STRAY)
    found = the_break(evidence)
    assert (found.break_class, found.leg) == (BreakClass.MISROUTED_IN_TOPIC, "fee")
    assert "topic:billing.refunds:0:4" in found.story
    item = items_of(evidence)["legs:pay-1"]
    assert (item.state, item.reason.stored, item.break_id) == (ItemState.BROKEN, "misrouted_in_topic", found.break_id)


def test_a_leg_that_was_aborted_on_a_stray_topic_is_torn() -> None:
    assert classes(strayed_leg(there=RecordLocation.ABORTED)) == {BreakClass.TORN_TRANSACTION}


def test_a_transaction_that_is_torn_hides_no_later_one_whose_leg_strays() -> None:
    strayed, torn = strayed_leg(there=RecordLocation.STRAY), strayed_leg(there=RecordLocation.ABORTED)
    (first,) = (replace(case, transaction_key="pay-0") for case in torn.incomplete)
    both = replace(strayed, incomplete=(first, *strayed.incomplete))
    assert {(one.break_class, one.match_key) for one in found_breaks(both)} == {
        (BreakClass.TORN_TRANSACTION, "pay-0"),
        (BreakClass.MISROUTED_IN_TOPIC, "pay-1"),
    }
