"""The soak's score can fail: what is lost, told twice, invented, or not counted once is told, and nothing else is."""

from dataclasses import replace
from typing import Any

import pytest

from lab.soak.soak_score import BookTruth, SoakScore, account_faults, expected_verdict, score_findings
from lab.truth.score import Finding, FindingKind
from lab.truth.stored_books import StoredBooks

MISSING = Finding(contract="payouts/3", kind=FindingKind.BREAK, name="missing_in_topic_never_produced", subject="pay-7")
CLEARED = Finding(contract="payouts/4", kind=FindingKind.CLEARED, name="cleared", subject="pay-7")
UNREADABLE = Finding(contract="payouts/5", kind=FindingKind.DOUBT, name="unreadable_payload")
PLANTED = (MISSING, CLEARED, UNREADABLE)

BOOKS = StoredBooks(
    contract="payouts",
    verdicts={3: "BROKEN", 4: "MATCHED", 5: "INCONCLUSIVE"},
    findings=(MISSING, CLEARED, replace(UNREADABLE, subject="payouts.payouts[1]")),
    states={"ledger:7": ("open", "broken", "cleared"), "ledger:8": ("open", "cleared")},
    slices={"topic:payouts:0": ((0, 0), (0, 6), (6, 10)), "ledger": ((700, 700), (700, 720), (720, 741))},
    offsets={("payouts", 0): 10},
    records={("payouts", 0): 7},
    unexplained=0,
    ledger_rows=7,
)
TRUTH = BookTruth(contract="payouts", ends={("payouts", 0): 10}, records={("payouts", 0): 7}, ledger_rows=7)


def score(*more: Finding, planted: tuple[Finding, ...] = PLANTED, **fields: Any) -> SoakScore:
    books = replace(BOOKS, **{"findings": (*BOOKS.findings, *more), **fields})
    return score_findings(planted, [books], legal_notices=("late_partner",))


def test_what_was_planted_each_in_its_window_and_nothing_else_agrees() -> None:
    assert score() == SoakScore(planted=3, found=3, by_class=score().by_class)


def test_what_is_not_reported_is_lost() -> None:
    scored = score(findings=(CLEARED, UNREADABLE))
    assert (scored.planted, scored.found, scored.lost) == (3, 2, 1)
    assert scored.differs == ("payouts/3: missing_in_topic_never_produced of pay-7 was planted and not found",)


@pytest.mark.parametrize("again", [MISSING, CLEARED])
def test_what_is_reported_in_a_second_window_too_is_double(again: Finding) -> None:
    scored = score(replace(again, contract="payouts/5"))
    assert (scored.found, scored.double, scored.false) == (3, 1, 0)
    assert scored.differs == (f"payouts/5: {again.name} of pay-7 was found and not planted",)


def test_a_second_copy_in_the_same_window_is_double() -> None:
    scored = score(findings=(replace(MISSING, copies=2), CLEARED, UNREADABLE))
    assert (scored.found, scored.double, scored.false) == (3, 1, 0)
    assert scored.differs


def test_what_nobody_planted_is_false() -> None:
    scored = score(replace(MISSING, subject="pay-9"))
    assert (scored.found, scored.double, scored.false) == (3, 0, 1)


def test_a_fault_reported_a_window_late_is_lost_and_false() -> None:
    scored = score(findings=(replace(MISSING, contract="payouts/4"), CLEARED, UNREADABLE))
    assert (scored.found, scored.lost, scored.false) == (2, 1, 1)


def test_a_partner_that_cleared_nothing_is_lost() -> None:
    scored = score(findings=(MISSING, UNREADABLE))
    assert scored.by_class["cleared"]["lost"] == 1


def test_an_item_cleared_twice_is_double() -> None:
    scored = score(states={"ledger:8": ("open", "cleared", "cleared")})
    assert scored.double == 1
    assert scored.differs == ("payouts: item ledger:8 was cleared twice",)


def test_ordinary_traffic_that_a_cut_goes_through_clears_and_is_not_false() -> None:
    assert score(replace(CLEARED, subject="ordinary")).differs == ()


def test_a_legal_notice_is_no_finding_and_another_one_is() -> None:
    notice = Finding(contract="payouts/4", kind=FindingKind.NOTICE, name="late_partner")
    assert score(notice).differs == ()
    assert score(replace(notice, name="timestamp_skew")).false == 1


def test_a_doubt_in_a_window_of_its_own_is_no_other_windows_doubt() -> None:
    assert score(replace(UNREADABLE, contract="payouts/4")).false == 1


@pytest.mark.parametrize(("window", "verdict"), [(3, "INCONCLUSIVE"), (4, "BROKEN"), (5, "MATCHED")])
def test_a_window_that_ended_otherwise_is_told(window: int, verdict: str) -> None:
    (claim,) = score(verdicts={**BOOKS.verdicts, window: verdict}).differs
    assert claim.startswith(f"payouts/{window}: {verdict}; expected ")


def test_a_break_outweighs_a_doubt_and_a_clearing_reddens_nothing() -> None:
    assert expected_verdict({FindingKind.BREAK, FindingKind.DOUBT}) == "BROKEN"
    assert expected_verdict({FindingKind.DOUBT, FindingKind.CLEARED}) == "INCONCLUSIVE"
    assert expected_verdict({FindingKind.CLEARED, FindingKind.NOTICE}) == "MATCHED"


def test_books_that_count_each_offset_and_row_once_have_no_fault() -> None:
    assert list(account_faults(TRUTH, BOOKS)) == []


@pytest.mark.parametrize(
    ("fields", "claim"),
    [
        (
            {"slices": {"topic:payouts:0": ((0, 0), (0, 6), (7, 10))}},
            "payouts: the cuts of topic:payouts:0 do not tile: one ends at 6, the next begins at 7",
        ),
        (
            {"slices": {"topic:payouts:0": ((0, 0), (0, 6))}},
            "payouts: payouts[0] was cut from 0 to 6; it has 10 offsets",
        ),
        ({"offsets": {("payouts", 0): 11}}, "payouts: offsets counted in payouts[0]: 11; expected 10"),
        ({"offsets": {}}, "payouts: offsets counted in payouts[0]: 0; expected 10"),
        ({"records": {("payouts", 0): 6}}, "payouts: records counted in payouts[0]: 6; expected 7"),
        ({"unexplained": 2}, "payouts: 2 offsets are unexplained"),
        ({"ledger_rows": 8}, "payouts: 8 ledger rows were counted; the table has 7"),
        ({"states": {"ledger:9": ("open",)}}, "payouts: item ledger:9 is still open"),
    ],
)
def test_what_is_not_counted_once_is_told(fields: dict[str, Any], claim: str) -> None:
    assert list(account_faults(TRUTH, replace(BOOKS, **fields))) == [claim]
