"""What a run, a config check and a diff show on a screen, and what they end with."""

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from tallystick.cli import output as cli_output
from tallystick.contract.change import contract_changes
from tallystick.contract.contract import Contract
from tallystick.documents.run import run_document
from tallystick.model.finding_names import Notice
from tallystick.model.findings import NoticeFound
from tallystick.model.stored_run import ExpectationsOutcome, NotEvaluated, StoredRun
from tallystick.store.breaks.break_store import PREFIX_MIN
from tallystick.store.runs.contract_store import NewestContract
from tests.expectation_outcomes import MODULE, not_met


@pytest.fixture
def shown(capsys: pytest.CaptureFixture[str]) -> Any:
    def show(run: StoredRun) -> str:
        cli_output.print_run(run)
        return capsys.readouterr().out

    return show


def test_a_run_is_shown_with_money_stories_and_census_and_no_colour_codes(shown: Any, broken_run: StoredRun) -> None:
    output = shown(replace(broken_run, ledger_guarantee="by horizon (xmin): strong"))
    assert "The ledger is read by horizon (xmin): strong." in output
    assert output.splitlines()[0] == "BROKEN  billing_payouts/7  2026-03-01 12:00:00 to 13:00:00 UTC"
    for expected in (
        "Missing in topic: never produced: 1 break, 400.00 EUR",
        "Check first:",
        "pay-4 committed its payout only.",
        "Held by an open producer transaction",
        "billing.payouts[0]",
    ):
        assert expected in output
    assert "\x1b" not in output


def test_each_break_is_shown_with_the_digits_of_its_id_that_name_it(shown: Any, broken_run: StoredRun) -> None:
    of_one, other = UUID("5a1d6f0e-0000-4000-8000-000000000001"), UUID("5a1d6f0f-0000-4000-8000-000000000001")
    first = broken_run.result.breaks[0]
    breaks = (replace(first, break_id=of_one), replace(first, break_id=other))
    rows = shown(replace(broken_run, result=replace(broken_run.result, breaks=breaks))).splitlines()
    ids = [row.split()[0] for row in rows if "ledger:1 says 10000" in row]
    assert ids == ["5a1d6f0e", "5a1d6f0f"]
    assert all(len(one) == PREFIX_MIN for one in ids)


def test_a_run_without_breaks_shows_no_id(shown: Any, matched_run: StoredRun) -> None:
    assert "match key" not in shown(matched_run)


def test_a_notice_is_shown_and_said_to_change_no_verdict(shown: Any, matched_run: StoredRun) -> None:
    found = NoticeFound(notice=Notice.UNFILTERED_READER, sentence="The consumer reads uncommitted.")
    result = replace(matched_run.result, notices=(found,))
    output = shown(replace(matched_run, result=result))
    assert "Unfiltered reader (changes no verdict)" in output
    assert "The consumer reads uncommitted." in output
    assert run_document(replace(matched_run, result=result))["notices"] == [
        {
            "notice": "unfiltered_reader",
            "sentence": "The consumer reads uncommitted.",
            "count": 1,
            "pages": False,
            "details": {},
        }
    ]


def test_each_sentence_of_a_run_is_shown_to_its_end(shown: Any, broken_run: StoredRun) -> None:
    names = ", ".join(f"offset {n}" for n in range(60))
    doubt, *others = broken_run.result.doubts
    result = replace(
        broken_run.result,
        breaks=(replace(broken_run.result.breaks[0], story=f"Found at {names} and nowhere else."),),
        doubts=(replace(doubt, sentence=f"It waits behind {names} and more."), *others),
        notices=(NoticeFound(notice=Notice.UNFILTERED_READER, sentence=f"The consumer reads {names} as well."),),
    )
    output = shown(replace(broken_run, result=result))
    for end in ("and nowhere else.", "and more.", "as well."):
        assert f"offset 59 {end}" in output
    assert "characters)" not in output


def test_compacted_offsets_are_shown_where_there_are_any(shown: Any, matched_run: StoredRun) -> None:
    one, two = matched_run.result.figures.census
    assert "compacted" not in shown(matched_run)
    figures = replace(matched_run.result.figures, census=(replace(one, compacted=1_234), two))
    output = shown(replace(matched_run, result=replace(matched_run.result, figures=figures)))
    assert "compacted" in output
    assert "1,234" in output


@pytest.fixture
def diff(contract: Contract, capsys: pytest.CaptureFixture[str]) -> Any:
    """The contract's diff as it is shown, against a stored cut 7 of version 3."""

    def show(*, judged: bool = True, **changes: Any) -> str:
        after = Contract.model_validate(contract.model_dump(mode="json") | changes)
        stored = NewestContract(contract=contract, cut_n=7, judged=judged)
        cli_output.print_contract_changes(after, stored, contract_changes(contract, after), open_items=12)
        return capsys.readouterr().out

    return show


def test_a_diff_says_what_stands_in_the_store_and_what_each_field_does(diff: Any) -> None:
    output = diff(version=4, partner_grace_seconds=90, owner="others")
    first = output.splitlines()[0]
    assert first.startswith("billing_payouts: cut 7 was made with version 3 (")
    assert first.endswith("; 12 items open.")
    for expected in ("partner_grace_seconds", "re-evaluated", "owner", "kept", '"others"', "run --reread"):
        assert expected in output
    assert "No cut would be made" not in output
    assert "still" not in output.splitlines()[-1]


def test_a_diff_asks_for_a_new_version_where_the_meaning_changes_and_only_there(diff: Any) -> None:
    assert "The version is still 3: raise it" in diff(partner_grace_seconds=90)
    assert "The version is still 3" not in diff(owner="others")


def test_a_diff_tells_of_a_cut_that_waits_for_its_verdict(diff: Any) -> None:
    assert "Cut 7 has no verdict yet" in diff(owner="others", judged=False)
    assert "no verdict yet" not in diff(owner="others")


def test_a_refused_diff_says_what_to_do_and_the_same_file_that_nothing_differs(diff: Any) -> None:
    assert "No cut would be made with this file" in diff(legs={"payout": "billing.payouts"})
    assert diff().splitlines()[1:] == ["Nothing differs."]


def test_a_match_key_cannot_drive_the_terminal(shown: Any, broken_run: StoredRun) -> None:
    first = broken_run.result.breaks[0]
    hostile = replace(first, match_key="\x1b]0;owned\x07[red]x", story="a\rb")
    result = type(broken_run.result)(**{**vars(broken_run.result), "breaks": (hostile,)})
    output = shown(type(broken_run)(**{**vars(broken_run), "result": result}))
    assert "\x1b" not in output
    assert "\r" not in output
    assert "\\u001b]0;owned\\u0007[red]x" in output


def test_many_breaks_are_cut_on_a_screen_and_say_so(shown: Any, many_breaks_run: StoredRun) -> None:
    output = shown(many_breaks_run)
    assert "more; --json and the report have them" in output
    assert len(output.splitlines()) < 500


def test_a_run_is_shown_with_what_its_own_expectations_found_and_without_any_where_there_are_none(
    shown: Any, matched_run: StoredRun
) -> None:
    silent = NotEvaluated(what="partitions", why="no row of the table was looked at")
    outcome = ExpectationsOutcome(module=MODULE, met=2, not_met=(not_met(),), not_evaluated=(silent,))
    output = " ".join(shown(replace(matched_run, expectations=outcome)).split())
    assert output.startswith("MATCHED")
    for expected in (
        "Expectations of my_package.suites: 2 expectations met, 1 not met, not everything was evaluated (they",
        "window: A window has at least a hundred events: topic_rows values must be greater than or equal to 100; found",
        "partitions: not evaluated: no row of the table was looked at.",
    ):
        assert expected in output
    assert "xpectations" not in shown(matched_run)
