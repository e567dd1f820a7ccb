"""The commands that read the verdict store, on a real one."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import yaml
from sqlalchemy import Engine, text
from typer.testing import CliRunner, Result

from lab.servers.stack import LabStack
from tallystick.cli.app import app
from tallystick.contract.contract import Contract
from tallystick.model.finding_names import Doubt
from tallystick.model.open_item import ItemState
from tallystick.model.verdict import Verdict
from tallystick.store.runs.contract_store import read_contract
from tallystick.store.schema import REVISION

from .aged_books import date_back
from .store_owner import owner_dsn


@pytest.fixture(autouse=True)
def environment(store_dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TALLYSTICK_STORE_DSN", store_dsn)
    monkeypatch.setenv("TALLYSTICK_ARTIFACTS_DIR", str(tmp_path))
    for name in ("FORCE_COLOR", "PY_COLORS", "GITHUB_ACTIONS"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def three_runs(store: Engine, books: Any) -> None:
    """Cut 0 is matched, 1 broken, 2 inconclusive."""
    found = books.missing("ev-7", amount_minor=1250, currency="EUR")
    books.commit(store, books.result(0))
    books.commit(store, books.result(1, verdict=Verdict.BROKEN, breaks=(found,), items=(books.item(found, n=1),)))
    books.commit(store, books.result(2, verdict=Verdict.INCONCLUSIVE, doubts=(Doubt.VACUOUS_RUN,)))


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def test_a_store_is_migrated_once_and_quietly_again(empty_store_dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TALLYSTICK_STORE_DSN", empty_store_dsn)
    refused = run("runs")
    assert refused.exit_code == 2
    assert "run: tallystick store migrate" in refused.stderr
    for _ in range(2):
        assert run("store", "migrate").exit_code == 0
    assert run("runs").exit_code == 0


def test_no_run_yet_is_no_error() -> None:
    result = run("runs")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "no run is stored yet\n")
    assert json.loads(run("runs", "--json").stdout) == []


@pytest.mark.usefixtures("three_runs")
def test_a_name_that_the_store_does_not_have_is_refused_with_those_it_has() -> None:
    result = run("runs", "--contract", "payout")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == "payout: the store has no books of it; expected one of: payouts\n"
    assert run("runs", "--contract", "payouts").exit_code == 0


@pytest.mark.usefixtures("three_runs")
def test_runs_are_listed_newest_first() -> None:
    lines = run("runs").stdout.splitlines()
    assert [line.split()[:2] for line in lines[1:]] == [
        ["payouts/2", "INCONCLUSIVE"],
        ["payouts/1", "BROKEN"],
        ["payouts/0", "MATCHED"],
    ]
    assert "12.50 EUR" in lines[2]
    assert "\x1b" not in "".join(lines)


@pytest.mark.usefixtures("three_runs")
def test_runs_are_listed_for_machines_with_stable_keys() -> None:
    newest, broken = json.loads(run("runs", "--json", "--contract", "payouts", "--limit", "2").stdout)
    assert (newest["run"], broken["run"]) == ("payouts/2", "payouts/1")
    assert set(broken) == {
        "run",
        "contract",
        "cut",
        "verdict",
        "window_start_utc",
        "window_end_utc",
        "breaks",
        "money_at_stake_minor",
        "doubts",
        "read_whole_by_cut",
        "scheduler_run_id",
        "recorded_at",
    }
    assert (broken["breaks"], broken["money_at_stake_minor"]) == (1, {"EUR": 1250})
    assert broken["window_end_utc"] == "2026-03-01T13:00:00Z"
    assert json.loads(run("runs", "--json", "--contract", "another").stdout) == []


@pytest.mark.usefixtures("three_runs")
@pytest.mark.parametrize(("n", "code", "verdict"), [(0, 0, "MATCHED"), (1, 1, "BROKEN"), (2, 3, "INCONCLUSIVE")])
def test_showing_a_run_ends_with_its_verdicts_code(n: int, code: int, verdict: str) -> None:
    shown, machine = run("show", f"payouts/{n}"), run("show", f"payouts/{n}", "--json")
    assert (shown.exit_code, machine.exit_code) == (code, code)
    assert shown.stdout.startswith(f"{verdict}  payouts/{n}")
    assert json.loads(machine.stdout)["verdict"] == verdict


@pytest.mark.usefixtures("three_runs")
def test_a_run_is_shown_for_machines_with_its_breaks_and_census() -> None:
    document = json.loads(run("show", "payouts/1", "--json").stdout)
    (found,) = document["breaks"]
    assert (found["class"], found["match_key"]) == ("missing_in_topic_never_produced", "ev-7")
    assert (found["amount_minor"], found["currency"]) == (1250, "EUR")
    assert found["evidence"] == {"row_id": 7, "offsets": [1, 2**53 + 1]}
    assert document["matched_money_minor"] == {"EUR": 2**53 + 1, "JPY": 3}
    assert document["census"][0]["committed"] == 7
    assert document["ledger_guarantee"] == "by horizon (written_xid): strong, but for what is changed once paired"
    assert "look_ups" not in document


@pytest.mark.usefixtures("three_runs")
def test_a_run_that_is_not_there_is_refused_by_name() -> None:
    for command in ("show", "report"):
        result = run(command, "payouts/9")
        assert result.exit_code == 2
        assert result.stderr == "payouts/9: no verdict is stored; see: tallystick runs --contract payouts\n"


@pytest.mark.usefixtures("three_runs")
def test_a_report_is_written_again_with_the_same_bytes(tmp_path: Path) -> None:
    path = Path(run("report", "payouts/1").stdout.strip())
    assert path.is_relative_to(tmp_path)
    again = Path(run("report", "payouts/1", "--folder", str(tmp_path / "other")).stdout.strip())
    assert again != path
    assert again.read_bytes() == path.read_bytes()
    assert "BROKEN" in path.read_text()


@pytest.mark.usefixtures("three_runs")
def test_a_report_is_written_under_the_contract_of_its_cut(store: Engine, books: Any) -> None:
    contract = read_contract(store, "payouts", 1)
    assert contract == books.contract
    assert contract is not None
    assert contract.fingerprint == books.contract.fingerprint
    assert contract.fingerprint in Path(run("report", "payouts/1").stdout.strip()).read_text()
    assert read_contract(store, "payouts", 9) is None


@pytest.fixture
def changed_file(books: Any, tmp_path: Path) -> Callable[..., str]:
    """The contract's file with keys replaced."""

    def write(**changes: Any) -> str:
        path = tmp_path / "changed.yaml"
        path.write_text(yaml.safe_dump(books.contract.model_dump(mode="json") | changes))
        return str(path)

    return write


def test_a_contract_without_cuts_has_nothing_to_change(changed_file: Callable[..., str]) -> None:
    result = run("contract", "diff", changed_file(owner="others"))
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith("payouts: no cut is stored yet, so there is nothing to change")
    document = json.loads(run("contract", "diff", "--json", changed_file()).stdout)
    assert (document["cut"], document["version_before"], document["changes"]) == (None, None, [])


@pytest.mark.usefixtures("three_runs")
def test_a_changed_contract_is_held_against_the_newest_cut(books: Any, changed_file: Callable[..., str]) -> None:
    same = run("contract", "diff", changed_file())
    assert same.exit_code == 0
    assert same.stdout.splitlines()[0].startswith("payouts: cut 2 was made with version 1 (")
    assert same.stdout.splitlines()[1:] == ["Nothing differs."]
    anew = run("contract", "diff", "--json", changed_file(partner_grace_seconds=90, owner="others"))
    document = json.loads(anew.stdout)
    assert anew.exit_code == 0
    assert (document["cut"], document["cut_judged"], document["open_items"]) == (2, True, 0)
    assert document["fingerprint_before"] == books.contract.fingerprint != document["fingerprint"]
    assert [(one["field"], one["before"], one["after"], one["effect"]) for one in document["changes"]] == [
        ("owner", "payouts-team", "others", "kept"),
        ("partner_grace_seconds", 60, 90, "re-evaluated"),
    ]


@pytest.mark.usefixtures("three_runs")
def test_a_change_that_no_cut_is_made_with_ends_with_2(changed_file: Callable[..., str]) -> None:
    for as_json in ((), ("--json",)):
        result = run("contract", "diff", changed_file(direction="topic_to_ledger"), *as_json)
        assert (result.exit_code, result.stderr) == (2, "")
        assert "refused" in result.stdout


@pytest.mark.usefixtures("three_runs")
def test_a_break_is_explained_by_its_id_or_by_the_beginning_of_it() -> None:
    (found,) = json.loads(run("show", "payouts/1", "--json").stdout)["breaks"]
    assert f"\n{found['break_id'][:8]}  " in run("show", "payouts/1").stdout
    whole = run("explain", found["break_id"])
    assert whole.exit_code == 0
    assert whole.stdout == run("explain", found["break_id"][:8].upper()).stdout
    for expected in ("Missing in topic: never produced", "payouts/1", "12.50 EUR", "match key ev-7", "found it broken"):
        assert expected in whole.stdout
    document = json.loads(run("explain", found["break_id"], "--json").stdout)
    assert (document["break_id"], document["run"]) == (found["break_id"], "payouts/1")
    assert [step["state"] for step in document["life"]] == ["broken"]


@pytest.mark.parametrize("shown", [[], ["match_key", "transaction_key"]], ids=["hidden", "shown"])
def test_a_key_is_told_only_where_the_contract_shows_it(
    store: Engine, books: Any, new_contract: Callable[..., Contract], shown: list[str]
) -> None:
    own = type(books)(new_contract(shown_keys=shown))
    found = own.missing("ev-7")
    own.commit(store, own.result(0))
    own.commit(store, own.result(1, verdict=Verdict.BROKEN, breaks=(found,), items=(own.item(found, n=1),)))
    for command in (("show", "payouts/1"), ("explain", str(found.break_id))):
        for as_json in ((), ("--json",)):
            assert ("ev-7" in run(*command, *as_json).stdout) == bool(shown), (command, as_json)


@pytest.mark.usefixtures("three_runs")
def test_a_break_that_is_not_there_is_refused_by_name() -> None:
    unknown = run("explain", "00000000")
    assert (unknown.exit_code, unknown.stderr) == (
        2,
        "00000000: no stored break has an id that begins so; see: tallystick show RUN\n",
    )
    for wrong in ("1234567", "not-an-id-at-all"):
        refused = run("explain", wrong)
        assert refused.exit_code == 2
        assert refused.stderr.startswith(f"'{wrong}' is no break id: expected it whole, or its first 8")


def test_a_beginning_that_two_breaks_share_lists_them(store: Engine, books: Any) -> None:
    breaks = [
        replace(books.missing(f"ev-{n}"), break_id=UUID(f"abcdef12-0000-0000-0000-00000000000{n}")) for n in (1, 2)
    ]
    books.commit(store, books.result(0))
    books.commit(store, books.result(1, verdict=Verdict.BROKEN, breaks=tuple(breaks)))
    refused = run("explain", "abcdef12")
    assert refused.exit_code == 2
    first, *rest = refused.stderr.splitlines()
    assert first == "abcdef12: more than one break begins so; expected more digits of one of them:"
    assert [line.split() for line in rest] == [
        [str(one.break_id), "missing_in_topic_never_produced", "payouts/1"] for one in breaks
    ]
    assert run("explain", "abcdef12-0000-0000-0000-000000000002").exit_code == 0


@pytest.fixture
def old_runs(three_runs: None, store: Engine, owned_store: Engine, books: Any) -> None:
    """Three runs of months ago, the break of the second cleared by the third of four."""
    cleared = books.item(books.missing("ev-7", amount_minor=1250, currency="EUR"), n=3, state=ItemState.CLEARED)
    books.commit(store, books.result(3, items=(cleared,)))
    books.commit(store, books.result(4))
    date_back(owned_store)


@pytest.mark.usefixtures("old_runs")
def test_pruning_is_tried_by_anybody_and_done_by_the_owner(
    store: Engine, stack: LabStack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [tmp_path / name for name in ("reports/payouts/1.html", "reports/payouts/4.html", "reports/other/1.html")]
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    would = run("store", "prune", "--older-than", "90d", "--dry-run")
    assert (would.exit_code, would.stdout.splitlines()) == (
        0,
        [
            "payouts: would prune 4 runs (cuts 0 to 3)",
            "  would be deleted: 1 items, 1 breaks, 0 alerts, 0 outcomes of expectations, 0 samples, 1 files",
            "  stays: all verdicts, slices, sums, plans and the audit trail",
        ],
    )
    refused = run("store", "prune", "--older-than", "90d")
    assert (refused.exit_code, "expected the role that owns it" in refused.stderr) == (2, True)
    assert run("explain", books_break(store)).exit_code == 0
    monkeypatch.setenv("TALLYSTICK_STORE_DSN", owner_dsn(stack, store))
    done = run("store", "prune", "--older-than", "90d", "--contract", "payouts")
    assert done.stdout == would.stdout.replace("would prune", "pruned").replace("would be deleted", "deleted")
    assert [line for line in done.stderr.splitlines() if "deleted" in line] == [
        "payouts: deleted 1 items",
        "payouts: deleted 1 breaks",
    ]
    assert [file.exists() for file in files] == [False, True, True]
    assert run("store", "prune", "--older-than", "90d").stdout == "payouts: nothing to prune\n"
    assert run("runs").stdout.count("payouts/") == 5
    shown = run("show", "payouts/1")
    assert (shown.exit_code, "its breaks and items were pruned" in shown.stderr) == (2, True)
    assert run("show", "payouts/4").exit_code == 0


def books_break(store: Engine) -> str:
    with store.connect() as connection:
        return str(connection.scalar(text("select break_id from tallystick.item_break")))


@pytest.mark.usefixtures("old_runs")
def test_young_runs_and_kept_files_stay(
    store: Engine, stack: LabStack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TALLYSTICK_STORE_DSN", owner_dsn(stack, store))
    file = tmp_path / "breaks" / "payouts" / "cut=1" / "breaks.parquet"
    file.parent.mkdir(parents=True)
    file.touch()
    assert run("store", "prune", "--older-than", "9000d").stdout == "payouts: nothing to prune\n"
    assert "0 files" in run("store", "prune", "--older-than", "90d", "--keep-files").stdout
    assert file.exists()
    assert "1 files" in run("store", "prune", "--older-than", "90d").stdout
    assert not file.parent.exists()


@pytest.mark.parametrize("age", ["90", "0d", "-1d", "3h", "90 d", "d", "100000d"])
def test_an_age_is_given_in_days(age: str) -> None:
    refused = run("store", "prune", f"--older-than={age}", "--dry-run")
    assert (refused.exit_code, "expected days, 1d or more" in refused.stderr) == (2, True)


def test_a_migration_is_taken_back_and_done_again(
    store: Engine, stack: LabStack, store_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TALLYSTICK_STORE_DSN", owner_dsn(stack, store))
    assert f"has revision {int(REVISION) - 1:04d} again" in run("store", "downgrade").stdout
    assert "run: tallystick store migrate" in run("runs").stderr
    assert run("store", "migrate").exit_code == 0
    monkeypatch.setenv("TALLYSTICK_STORE_DSN", store_dsn)
    assert run("runs").exit_code == 0
