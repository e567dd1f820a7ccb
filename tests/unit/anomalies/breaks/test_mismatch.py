"""X1: money is compared as whole minor units with its currency: to the last one, at any size, with its sign."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.anomalies.breaks.mismatch import amount_mismatch, currency_mismatch
from tallystick.anomalies.registry import findings_of
from tallystick.matching.match_case import Entry
from tallystick.model.direction import Direction
from tallystick.model.finding_names import BreakClass, Doubt
from tallystick.model.item_reason import ReasonCode
from tallystick.model.open_item import ItemState
from tallystick.report.masking import MASKED, Mask
from tests.unit.anomalies.planted import Pair, PlantedCases, found_breaks
from tests.unit.builders import IN_TOPIC, L2T, LAW, T2L, contract_of, event, evidence_of, row
from tests.unit.in_memory_books import Books, classes_of, doubts_of

COMPARING = contract_of(
    compare={"status": "exact", "fee": {"abs": 1}, "iban": {"exact": "text", "shown": False}, "note": "ignore"}
)


def pair_saying(in_topic: str | None, in_ledger: str | None, *, column: str = "status") -> tuple[Entry, Entry]:
    """An event and a row of the same money, which say these values in a column."""
    columns = COMPARING.event.compared
    plain = dict.fromkeys(columns.names)
    topic, ledger = (
        columns.text_of([{**plain, column: said}[name] for name in columns.names]) for said in (in_topic, in_ledger)
    )
    return replace(event(11), compared_text=topic), replace(row(1), compared_text=ledger)


class TestPlanted(PlantedCases):
    pairs = (
        Pair(
            name=BreakClass.AMOUNT_MISMATCH,
            fires=evidence_of(event(11, amount_minor=10_000_000_000), row(1, amount_minor=10_000_000_399)),
            twin=evidence_of(event(11, amount_minor=10_000_000_399), row(1, amount_minor=10_000_000_399)),
        ),
        Pair(
            name=BreakClass.CURRENCY_MISMATCH,
            fires=evidence_of(event(11, currency="EUR"), row(1, currency="USD")),
            twin=evidence_of(event(11, currency="USD"), row(1, currency="USD")),
        ),
        Pair(
            name=BreakClass.COLUMN_MISMATCH,
            fires=evidence_of(*pair_saying("paid", "open"), contract=COMPARING),
            twin=evidence_of(*pair_saying("paid", "paid"), contract=COMPARING),
        ),
    )


BIGINT = st.integers(-(2**63), 2**63 - 1)


@pytest.mark.parametrize("direction", [L2T, T2L], ids=str)
@pytest.mark.parametrize(
    ("in_topic", "in_ledger", "at_stake"),
    [
        pytest.param(10_000_000_000, 10_000_000_399, 399, id="100,000,000.00 against 100,000,003.99"),
        pytest.param(2**53 + 1, 2**53, 1, id="above 2^53, by one"),
        pytest.param(2**63 - 1, 2**63 - 2, 1, id="the largest bigint, by one"),
        pytest.param(-500, 500, 1_000, id="a lost sign"),
        pytest.param(-500, -501, 1, id="negative, by one"),
        pytest.param(0, 1, 1, id="nothing against one cent"),
    ],
)
def test_amounts_that_differ_are_a_mismatch_of_the_difference(
    direction: object, in_topic: int, in_ledger: int, at_stake: int
) -> None:
    evidence = evidence_of(event(11, amount_minor=in_topic), row(1, amount_minor=in_ledger), direction=direction)
    (found,) = found_breaks(evidence)
    assert (found.break_class, found.amount_minor, found.currency) == (BreakClass.AMOUNT_MISMATCH, at_stake, "EUR")
    assert found.evidence["topic"]["amount_minor"] == in_topic
    assert found.evidence["ledger"]["amount_minor"] == in_ledger
    assert f"topic:billing.payouts:0:11 says {in_topic}, ledger:1 says {in_ledger} EUR" in found.story


@LAW
@given(BIGINT, BIGINT)
def test_two_amounts_match_exactly_when_they_are_the_same_integer(in_topic: int, in_ledger: int) -> None:
    evidence = evidence_of(event(11, amount_minor=in_topic), row(1, amount_minor=in_ledger))
    assert bool(found_breaks(evidence)) == (in_topic != in_ledger)


@LAW
@given(BIGINT)
def test_the_same_amount_of_either_sign_is_no_break(amount_minor: int) -> None:
    assert found_breaks(evidence_of(event(11, amount_minor=amount_minor), row(1, amount_minor=amount_minor))) == []


@pytest.mark.parametrize(("in_topic", "in_ledger"), [("EUR", "USD"), ("EUR", "eur"), ("EUR", "")])
def test_another_currency_is_a_mismatch_of_the_whole_amount_though_the_figures_agree(
    in_topic: str, in_ledger: str
) -> None:
    (found,) = found_breaks(evidence_of(event(11, currency=in_topic), row(1, currency=in_ledger)))
    assert (found.break_class, found.amount_minor) == (BreakClass.CURRENCY_MISMATCH, 1_000)


def test_another_currency_and_another_amount_are_one_break() -> None:
    (found,) = found_breaks(evidence_of(event(11, "ev-1", 100, "EUR"), row(1, "ev-1", 16_000, "JPY")))
    assert found.break_class is BreakClass.CURRENCY_MISMATCH


def test_equal_totals_of_different_items_are_two_mismatches() -> None:
    """10 + 20 on one side, 20 + 10 on the other: a total would agree."""
    evidence = evidence_of(
        event(11, "ev-1", 1_000), row(1, "ev-1", 2_000), event(12, "ev-2", 2_000), row(2, "ev-2", 1_000)
    )
    assert [(found.match_key, found.amount_minor) for found in found_breaks(evidence)] == [
        ("ev-1", 1_000),
        ("ev-2", 1_000),
    ]


def test_a_mismatch_is_not_paired_again_and_its_correction_is_a_second_copy() -> None:
    books = Books(L2T)
    books.begin()
    books.post(amount_minor=100)
    books.write(amount_minor=10)
    assert classes_of(books.run()) == ["amount_mismatch"]
    books.post("other")
    books.write("other")
    books.write(amount_minor=100)
    assert classes_of(books.run()) == ["duplicate_in_topic_new_session"]
    assert sum(books.outstanding().values()) == 2


@pytest.mark.parametrize("direction", [L2T, T2L])
@pytest.mark.parametrize(("said", "told"), [(150, []), (151, ["amount_mismatch"])])
def test_a_row_that_was_changed_beyond_the_cut_is_compared_once_it_can_be_read(
    direction: Direction, said: int, told: list[str]
) -> None:
    """Found by the simulated world: the event was held against what the row had said before."""
    books = Books(direction)
    books.begin()
    changed = books.post(amount_minor=100)
    books.run(in_grace=True)
    books.update(changed, amount_minor=150)
    books.write(amount_minor=said)
    assert classes_of(books.run(held_xids=1)) == []
    (event_item,) = (item for item in books.items.values() if item.side is IN_TOPIC)
    assert (event_item.state, event_item.reason.code) == (ItemState.OPEN, ReasonCode.BEYOND_CUT)
    assert classes_of(books.run()) == told
    assert sum(books.outstanding().values()) == len(told)
    assert not any(item.state is ItemState.OPEN for item in books.items.values())


def test_a_row_that_is_changed_beyond_one_cut_after_another_is_a_doubt() -> None:
    books = Books(L2T)
    books.begin()
    changed = books.post(amount_minor=100)
    books.run(in_grace=True)
    books.write(amount_minor=150)
    for amount_minor, doubted in ((150, False), (151, True)):
        books.update(changed, amount_minor=amount_minor)
        result = books.run(held_xids=1)
        assert classes_of(result) == []
        assert (Doubt.PARTNER_NOT_SETTLED in doubts_of(result)) is doubted


def test_a_row_without_a_comparable_amount_says_so() -> None:
    evidence = evidence_of(event(11), row(1, amount_minor=0, currency=""))
    (found,) = findings_of(amount_mismatch, evidence)
    assert not list(findings_of(currency_mismatch, evidence))
    assert "ledger:1 says no whole amount of a currency" in found.story


def test_a_column_that_differs_is_named_with_its_rule_and_what_both_sides_say() -> None:
    (found,) = found_breaks(evidence_of(*pair_saying("1.5", "2.6", column="fee"), contract=COMPARING))
    assert (found.break_class, found.amount_minor, found.currency) == (BreakClass.COLUMN_MISMATCH, 0, "EUR")
    assert found.evidence["columns"] == [{"column": "fee", "rule": "abs 1", "topic": "1.5", "ledger": "2.6"}]
    assert found.story == "topic:billing.payouts:0:11 and ledger:1 say the same money, and differ in fee (abs 1)."


def test_a_value_within_its_tolerance_differs_in_nothing_and_nothing_is_no_value() -> None:
    assert found_breaks(evidence_of(*pair_saying("1.5", "2.5", column="fee"), contract=COMPARING)) == []
    (found,) = found_breaks(evidence_of(*pair_saying("1.5", None, column="fee"), contract=COMPARING))
    assert found.evidence["columns"][0]["ledger"] is None


def test_of_a_pair_whose_money_differs_that_alone_is_told() -> None:
    one, other = pair_saying("paid", "open")
    (found,) = found_breaks(evidence_of(one, replace(other, amount_minor=999), contract=COMPARING))
    assert found.break_class is BreakClass.AMOUNT_MISMATCH
    assert "columns" not in found.evidence


def test_what_a_contract_hides_is_masked_and_its_column_is_named() -> None:
    (hidden,) = found_breaks(evidence_of(*pair_saying("DE1", "DE2", column="iban"), contract=COMPARING))
    (shown,) = found_breaks(evidence_of(*pair_saying("paid", "open"), contract=COMPARING))
    masked = Mask(COMPARING).item_break(hidden)
    assert masked.evidence["columns"] == [{"column": "iban", "rule": "exact text", "topic": MASKED, "ledger": MASKED}]
    assert "DE1" not in str(masked)
    assert Mask(COMPARING).item_break(shown).evidence["columns"] == shown.evidence["columns"]
