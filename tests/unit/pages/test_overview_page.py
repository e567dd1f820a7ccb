"""The overview begins with what is broken, and never calls the unjudged agreed."""

from dataclasses import replace
from datetime import timedelta

import pytest

from tallystick.model.finding_names import Doubt
from tallystick.model.findings import DoubtFound
from tallystick.model.open_item import ItemState
from tallystick.model.verdict import Verdict
from tallystick.pages.overview_page import overview_page, overview_row
from tests.stored_books import payouts
from tests.unit.pages.books_shown import book, standing
from tests.unit.pages.plans_told import HOUR, NOON


def test_open_money_is_what_is_broken_per_currency_and_not_what_waits_or_was_given_up() -> None:
    row = overview_row(
        book(
            standing(ItemState.BROKEN, 1_000),
            standing(ItemState.BROKEN, 5, "JPY"),
            standing(ItemState.BROKEN, 0, ""),
            standing(ItemState.OPEN, 70, count=3, age=9 * HOUR),
            standing(ItemState.WRITTEN_OFF, 900, age=99 * HOUR),
        ),
        now_utc=NOON,
    )
    assert row.open_money == ("10.00 EUR", "5 JPY")
    assert (row.broken, row.waiting, row.oldest_utc) == (3, 3, NOON - 9 * HOUR)


def test_who_holds_a_side_is_named_with_since_when_and_how_much() -> None:
    row = overview_row(book(held=True), now_utc=NOON)
    assert [(held.holder, held.since) for held in row.held] == [("relay-1", "2026-03-01 11:40:00 UTC")]
    assert (row.held_back, row.unread) == (3, 6)
    assert overview_row(book(), now_utc=NOON).held == ()


def test_headroom_and_next_run_are_counted_from_now() -> None:
    row = overview_row(book(), now_utc=NOON + timedelta(minutes=50))
    assert (row.headroom, row.next_run_utc) == ("4 h 10 min", NOON + HOUR)
    assert overview_row(book(), now_utc=NOON + 6 * HOUR).headroom == "0 s"


def test_the_overview_begins_with_what_is_broken_and_never_calls_the_unjudged_agreed() -> None:
    matched = replace(book(verdicts=(Verdict.MATCHED,)), contract=payouts().model_copy(update={"name": "a"}))
    broken = book(standing(ItemState.BROKEN, 1), verdicts=(Verdict.BROKEN,))
    page = overview_page([matched, broken], now_utc=NOON)
    assert [row.contract for row in page.rows] == ["billing_payouts", "a"]
    assert page.sentence == "1 broken item in 1 contract of 2."
    assert overview_page([matched], now_utc=NOON).sentence == "The newest windows agree."
    assert "agree" not in overview_page([book(verdicts=(None,))], now_utc=NOON).sentence
    assert "agree" not in overview_page([], now_utc=NOON).sentence
    assert "agree" not in overview_page([book(verdicts=(Verdict.INCONCLUSIVE,))], now_utc=NOON).sentence


def test_a_window_without_a_verdict_after_a_match_is_not_called_agreed() -> None:
    silent = book(verdicts=(Verdict.MATCHED,))
    assert "agree" not in overview_page([silent], now_utc=NOON + 3 * HOUR).sentence


def test_a_contract_whose_newest_window_broke_without_an_item_is_not_called_agreed() -> None:
    loose = book(verdicts=(Verdict.MATCHED, Verdict.BROKEN))
    calm = replace(book(verdicts=(Verdict.MATCHED,)), contract=payouts().model_copy(update={"name": "a"}))
    page = overview_page([calm, loose], now_utc=NOON)
    assert page.sentence == "1 contract of 2 broke in the newest window, and no item follows that."
    assert [row.contract for row in page.rows] == ["billing_payouts", "a"]


@pytest.mark.parametrize(
    ("given_up", "loose", "end"),
    [
        (3, 0, "; the breaks were written off."),
        (2, 1, "; the breaks were written off, or no item follows them."),
        (0, 3, ", and no item follows that."),
    ],
)
def test_what_broke_and_was_written_off_is_told_so(given_up: int, loose: int, end: str) -> None:
    broke = replace(book(verdicts=(Verdict.BROKEN,)), given_up=given_up, loose=loose)
    calm = replace(book(verdicts=(Verdict.MATCHED,)), contract=payouts().model_copy(update={"name": "a"}))
    page = overview_page([calm, broke], now_utc=NOON)
    assert page.sentence == f"1 contract of 2 broke in the newest window{end}"


def test_an_outage_longer_than_the_strip_hides_no_verdict_and_is_shown_up_to_now() -> None:
    verdicts = (Verdict.BROKEN, Verdict.MATCHED)
    row = overview_row(book(verdicts=verdicts), now_utc=NOON + 100 * HOUR)
    assert row.newest is not None and row.newest.kind == "MATCHED"
    assert row.last_broken is not None
    assert (row.judged_until_utc, row.without_verdict, row.are_all_without) == (row.newest.window_end_utc, 48, True)
    soon = overview_row(book(verdicts=verdicts), now_utc=NOON + 3 * HOUR)
    assert (soon.without_verdict, soon.are_all_without) == (3, False)


def test_what_nobody_asked_is_not_known() -> None:
    closed = DoubtFound(doubt=Doubt.CUT_CLOSED, sentence="It was closed.", details={})
    assert overview_row(replace(book(), doubts=(closed,)), now_utc=NOON).looked is False
    assert overview_row(book(), now_utc=NOON).looked is True
