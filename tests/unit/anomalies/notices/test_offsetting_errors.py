"""X3: errors that cancel out to the last unit, and not what merely waits or leaves one unit."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.anomalies.notices.offsetting_errors import offsetting_errors
from tallystick.anomalies.registry import findings_of
from tallystick.matching.evidence import Evidence
from tallystick.matching.match_case import Entry, RecordLocation
from tallystick.model.finding_names import BreakClass, Notice
from tallystick.model.findings import NoticeFound
from tallystick.text.finding_guide import NOTICE_TEXTS
from tests.unit.anomalies.findings import TWO_LEGS
from tests.unit.anomalies.planted import Pair, PlantedCases
from tests.unit.builders import (
    IN_TOPIC,
    LAW,
    MINUTE,
    NOON,
    T2L,
    contract_of,
    deadlines_of,
    event,
    evidence_of,
    item_of,
    row,
    seen,
)


def amounts(*pairs: tuple[int, int]) -> Evidence:
    """Keys of their own, each with an event and a row of these amounts."""
    copies = [
        copy
        for number, (in_topic, in_ledger) in enumerate(pairs)
        for copy in (event(11 + number, f"ev-{number}", in_topic), row(1 + number, f"ev-{number}", in_ledger))
    ]
    in_topic, in_ledger = map(sum, zip(*pairs, strict=True))
    return evidence_of(*copies, topic_money={"EUR": in_topic}, ledger_money={"EUR": in_ledger})


class TestPlanted(PlantedCases):
    pairs = (
        Pair(
            name=Notice.OFFSETTING_ERRORS,
            fires=amounts((1_000, 1_010), (2_000, 1_990)),
            about=frozenset({BreakClass.AMOUNT_MISMATCH}),
            twin=amounts((1_000, 1_010), (2_000, 1_989)),
            twin_is=frozenset({BreakClass.AMOUNT_MISMATCH}),
        ),
    )


def errors_of(*copies: Entry, **changes: object) -> list[NoticeFound]:
    return list(findings_of(offsetting_errors, evidence_of(*copies, **changes)))


def test_two_mismatches_that_cancel_out_are_told_with_what_they_moved() -> None:
    (found,) = errors_of(
        *(event(11, "ev-1", 1_010), row(1, "ev-1", 1_000), event(12, "ev-2", 1_990), row(2, "ev-2", 2_000)),
        topic_money={"EUR": 3_000},
        ledger_money={"EUR": 3_000},
    )
    assert (found.count, found.pages, found.details["moved_minor"]) == (2, False, {"EUR": 10})
    assert (found.details["topic_total_minor"], found.details["ledger_total_minor"]) == ({"EUR": 3_000}, {"EUR": 3_000})
    assert found.sentence.startswith("2 errors cancel out to the last unit (0.10 EUR too much and as much too little")


CANCELS_OUT = "2 errors cancel out to the last unit (10.00 EUR too much and as much too little on the topic)"


@pytest.mark.parametrize(
    ("in_topic", "in_ledger", "says"),
    [
        ({"EUR": 9_000}, {"EUR": 9_000}, ": totals agree and items do not."),
        ({"EUR": 9_000, "USD": 1}, {"EUR": 9_000, "USD": 2}, ": totals agree and items do not."),
        ({"EUR": 9_000}, {"EUR": 500}, "."),
        ({"EUR": 9_000}, {}, "."),
        ({}, {}, "."),
    ],
    ids=["equal", "equal in this currency", "not equal", "of one side", "nothing of it was read by this window"],
)
def test_totals_are_said_to_agree_only_where_those_of_the_window_are_equal(
    in_topic: dict[str, int], in_ledger: dict[str, int], says: str
) -> None:
    carried = [item_of(event(3, "ev-1")), item_of(row(1, "ev-2"))]
    (found,) = errors_of(carried=carried, topic_money=in_topic, ledger_money=in_ledger)
    assert found.sentence == CANCELS_OUT + says


def test_a_missing_and_a_phantom_of_one_amount_cancel_out() -> None:
    """Equal totals, equal counts, and not one item in common."""
    assert [found.count for found in errors_of(event(11, "ev-1"), row(1, "ev-2"))] == [2]


def test_one_large_error_may_be_hidden_by_many_small_ones() -> None:
    small = [event(20 + number, f"small-{number}", 100) for number in range(10)]
    assert [found.count for found in errors_of(*small, row(1, "large", 1_000))] == [11]


def test_above_two_to_the_53_one_unit_is_seen() -> None:
    big = 2**53
    assert errors_of(event(11, "ev-1", big + 1), row(1, "ev-2", big)) == []
    assert len(errors_of(event(11, "ev-1", big + 1), row(1, "ev-2", big + 1))) == 1


@pytest.mark.parametrize(
    "copies",
    [
        pytest.param((), id="clean books, whose totals are equal too"),
        pytest.param((event(11), row(1)), id="an event and its row"),
        pytest.param((event(11, "ev-1"),), id="one error"),
        pytest.param((event(11, "ev-1"), row(1, "ev-2", 999)), id="one unit is left"),
        pytest.param((event(11, "ev-1"), row(1, "ev-2", currency="USD")), id="two currencies"),
        pytest.param((event(11, "ev-1"), event(12, "ev-2")), id="two errors of one sign"),
        pytest.param((event(11), event(12), row(1), row(2)), id="a copy that the other side followed"),
        pytest.param((event(11, "ev-1", 0), row(1, "ev-2", 0)), id="of nothing"),
    ],
)
def test_nothing_cancels_out(copies: tuple[Entry, ...]) -> None:
    assert errors_of(*copies) == []


def test_one_currency_may_cancel_out_and_another_not() -> None:
    (found,) = errors_of(
        *(event(11, "a", 100), row(1, "b", 100), event(12, "c", 7, "JPY")),
    )
    assert (found.count, found.details["moved_minor"]) == (2, {"EUR": 100})


def test_the_guide_holds_also_where_totals_differ_and_where_another_currency_does_not_cancel_out() -> None:
    """What is said of totals stands in the sentence alone, which knows them."""
    means = NOTICE_TEXTS[Notice.OFFSETTING_ERRORS].means
    of_an_earlier_window = errors_of(row(1, "ev-2"), carried=[item_of(event(3, "ev-1"))], ledger_money={"EUR": 1_000})
    of_two_currencies = errors_of(event(11, "a", 1_000), row(1, "b", 1_000), event(12, "c", 7, "JPY"))
    assert [found.sentence for found in (*of_an_earlier_window, *of_two_currencies)] == [f"{CANCELS_OUT}."] * 2
    assert "total" not in means
    assert "in one currency or more" in means


def test_what_merely_waits_cancels_nothing_out() -> None:
    in_grace = deadlines_of(now_utc=NOON + MINUTE / 2)
    assert errors_of(event(11, "ev-1"), row(1, "ev-2"), deadlines=in_grace) == []


def test_errors_of_earlier_rows_count_in_the_run_that_proves_them() -> None:
    carried = [item_of(event(3, "ev-1")), item_of(row(1, "ev-2"))]
    assert [found.count for found in errors_of(carried=carried)] == [2]


def test_one_unit_that_moved_is_told() -> None:
    (found,) = errors_of(event(11, "ev-1", 1), row(1, "ev-2", 1))
    assert (found.count, found.details["moved_minor"]) == (2, {"EUR": 1})


def test_a_missing_event_may_be_hidden_by_one_too_many() -> None:
    twice = [event(11, "ev-1", 100), event(12, "ev-1", 100), row(1, "ev-1", 100)]
    assert [found.count for found in errors_of(*twice, row(2, "ev-2", 100))] == [2]
    assert errors_of(*twice, row(2, "ev-2", 99)) == []


def test_a_row_that_was_posted_from_an_open_transaction_may_hide_a_missing_one() -> None:
    still_open = [seen(IN_TOPIC, RecordLocation.OPEN, 25)]
    (found,) = errors_of(event(11, "ev-1"), row(1, "ev-2"), direction=T2L, lookup_hits=still_open)
    assert (found.count, found.details["moved_minor"]) == (2, {"EUR": 1_000})
    assert errors_of(event(11, "ev-1", 999), row(1, "ev-2"), direction=T2L, lookup_hits=still_open) == []


def test_an_event_under_the_wrong_leg_that_nobody_posted_may_hide_a_phantom() -> None:
    of_two_legs = {"direction": T2L, "contract": contract_of(T2L, legs=TWO_LEGS)}
    assert [found.count for found in errors_of(event(11, "ev-1", leg="fee"), row(1, "ev-2"), **of_two_legs)] == [2]
    assert errors_of(event(11, "ev-1", leg="fee"), event(12, "ev-2"), row(1, "ev-2"), **of_two_legs) == []


@LAW
@given(st.lists(st.integers(-(2**62), 2**62).filter(bool), min_size=1, max_size=6), st.randoms())
def test_errors_cancel_out_exactly_when_they_add_up_to_nothing(differences: list[int], dice: object) -> None:
    copies = [event(10 + number, f"ev-{number}", amount) for number, amount in enumerate(differences)]
    dice.shuffle(copies)  # type: ignore[attr-defined]
    assert bool(errors_of(*copies)) == (sum(differences) == 0)
    assert errors_of(*copies, row(1, "all", sum(differences)))
