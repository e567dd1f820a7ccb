"""A schedule plays the same again, whatever is left out of it and wherever its runs are killed."""

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.simulator.oracle.clauses import Violation
from tests.simulator.oracle.unread import rows_in_closed_cuts
from tests.simulator.schedule.draw import draw
from tests.simulator.schedule.play import Do, Play, Schedule, steps_of
from tests.simulator.schedule.shrink import Failure, play, shrink, story_of
from tests.simulator.standins.kept_state import KeptClusterState
from tests.simulator.standins.run_functions import outstanding_breaks
from tests.simulator.world.config import Config

DAY = ("window", "trade", ("trade", 1, 3), ("half_trade", 1, 7), "window", "window")
BOTH = pytest.mark.parametrize("direction", ["topic_to_ledger", "ledger_to_topic"])


pytestmark = pytest.mark.usefixtures("in_the_world")


def played(config: Config, *steps: object) -> Play:
    play = Play(Schedule(config, tuple(steps_of(*steps))))  # type: ignore[arg-type]
    play.violations = play.all()  # type: ignore[attr-defined]
    return play


def verdicts(play: Play) -> list[str]:
    return [str(row.result.verdict) for row in play.world.store.of("books").verdicts.values()]


def classes(play: Play) -> list[str]:
    return [str(one.item_break.break_class) for one in outstanding_breaks(play.world.store, "books")]


@BOTH
def test_a_day_without_faults_is_matched_and_violates_nothing(direction: str) -> None:
    play = played(Config(direction=direction), "window", "trade", ("trade", 1, 3), "window", "window")
    assert verdicts(play)[1:3] == ["MATCHED", "MATCHED"]
    assert play.oracle.violations == []


@BOTH
def test_what_is_carried_to_nobody_is_told_within_its_grace_and_cleared_when_it_comes(direction: str) -> None:
    play = played(Config(direction=direction), *DAY)
    missing = [row.result.breaks for row in play.world.store.of("books").verdicts.values() if row.result.breaks]
    assert [one.break_class.partition("_in_")[0] for (one,) in missing] == ["missing"]
    assert (classes(play), play.oracle.violations) == ([], [])


REPAIRED = Schedule(
    Config(direction="ledger_to_topic"),
    tuple(steps_of("window", "half_trade", "window", "wait", "window", "plan_and_act", "window")),
)


@pytest.mark.parametrize("schedule", [draw(11), REPAIRED], ids=["drawn", "an executor publishes"])
def test_two_plays_agree_in_everything(schedule: Schedule, monkeypatch: pytest.MonkeyPatch) -> None:
    plays = []
    for _ in range(2):
        monkeypatch.setattr(KeptClusterState, "dumped", 0)  # which of a process's states go through JSON
        plays.append(Play(schedule))
        plays[-1].all()
    first, second = plays
    assert first.world.told == second.world.told
    assert vars(first.world.broker) == vars(second.world.broker)
    assert stored(first) == stored(second)
    assert first.reached == second.reached
    assert bool(first.reached["action published"]) is (schedule is REPAIRED)


def stored(play: Play) -> dict[str, object]:
    """All that stands in the verdict store, but for the clock that it has."""
    return {name: value for name, value in vars(play.world.store).items() if name not in ("clock", "point")}


@BOTH
def test_a_run_that_is_killed_at_any_question_ends_in_the_verdicts_of_one_that_was_not(direction: str) -> None:
    calm = played(Config(direction=direction), *DAY, ("phantom", 1, 2), "window", "window")
    asked = calm.world.point.at
    assert asked > 20
    for at in range(0, 2 * asked, 7):
        killed = played(Config(direction=direction), *DAY, ("phantom", 1, 2), ("kill", at), "window", "window")
        assert (verdicts(killed), classes(killed)) == (verdicts(calm), classes(calm)), at
        assert killed.oracle.violations == []


def test_steps_that_cannot_be_done_do_nothing() -> None:
    play = played(Config(), "commit_second", "carry", ("touch", 1, 2), "act", "window", "write_off", "window")
    assert play.oracle.violations == []


def test_an_oracle_that_is_told_of_what_is_not_so_says_so() -> None:
    play = played(Config(carrier_mode="at_most"), "window", "trade", "half_trade", "lose", "window", "window")
    run = next(row.result for row in play.world.store.of("books").verdicts.values() if row.result.breaks)
    (found,) = run.breaks
    play.oracle.judged(play.world.contract, run)
    assert (found.match_key, play.oracle.violations) == ("ev-2-payout", [])
    play.oracle.judged(play.world.contract, replace(run, breaks=(replace(found, match_key="ev-1-payout"),)))
    assert [one.clause for one in play.oracle.violations] == ["nothing is reported that is not so"]


def test_an_oracle_takes_a_transaction_for_torn_by_what_stood_before_the_run() -> None:
    """Its other leg may come while the run is under way, and stands when the run has ended."""
    carried = ("carry", "commit_second", "window")
    play = played(Config(direction="ledger_to_topic", legs=2), "window", "half_trade", *carried, "window", *carried)
    runs = play.world.store.of("books").verdicts
    (n,) = (n for n, row in runs.items() if "torn_transaction" in {str(one.break_class) for one in row.result.breaks})
    play.oracle.judged(play.world.contract, runs[n].result)
    assert play.oracle.violations == []
    play.oracle.judged(play.world.contract, replace(runs[n].result, cut_n=n + 2))
    assert "nothing is reported that is not so" in {one.clause for one in play.oracle.violations}


def test_an_oracle_misses_what_nobody_tells() -> None:
    play = Play(Schedule(Config(carrier_mode="at_most"), tuple(steps_of("window", "half_trade", "lose", "window"))))
    play.oracle.judged = lambda contract, result: None  # type: ignore[method-assign]
    assert "each wrong is told" in {one.clause for one in play.all()}


def test_an_oracle_misses_a_row_that_is_gone_and_that_nobody_tells() -> None:
    play = played(Config(slice_by="written_xid"), "window", "trade", "window", "delete", "window")
    books, gone = play.world.contract, "books: row 1 of ev-1-payout was read and is gone, and nobody said so"
    assert play.oracle.violations == [*play.oracle._gone_and_not_told(books)] == []
    play.oracle.doubted["books"] = []
    assert [*play.oracle._gone_and_not_told(books)] == [gone]


def test_an_oracle_misses_a_row_too_many_for_which_no_break_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that stands is told of the one that is gone, and stands for the newest."""
    play = played(
        Config(direction="ledger_to_topic", legs=2, carrier_mode="exactly"),
        *("window", ("pay", 4, 9), ("trade", 2, 11), ("first_again", 0, 5), "window", ("archive", 5, 4), "window"),
        ("first_again", 2, 9),
    )
    books = play.world.contract
    assert play.oracle.violations == [*play.oracle._wrong_and_not_told(books)] == []
    monkeypatch.setattr("tests.simulator.oracle.clauses.outstanding_breaks", lambda store, name: ())
    (said,) = play.oracle._wrong_and_not_told(books)
    assert "origin twice, and nobody said so" in said


def test_an_oracle_takes_no_event_for_missing_that_no_reader_saw() -> None:
    """One whose marker was cut away was seen before, and is due from then."""
    play = played(
        Config(legs=2, carrier_mode="at_most", posts="column"),
        *("window", ("half_trade", 5, 3), ("trade", 0, 5), ("rewrite_tail", 1, 2, 42), "window"),
        *(("trade", 3, 6, 38), "window"),
    )
    run = play.world.store.of("books").verdicts[2].result
    play.oracle.judged(play.world.contract, run)
    assert play.oracle.violations == []
    for one in play.world.truth.events:
        one.first_visible_at = None
    play.oracle.judged(play.world.contract, run)
    assert {one.clause for one in play.oracle.violations} == {"nothing is reported that is not so"}


@pytest.mark.parametrize(("seconds", "violated"), [(-1, ["no effect for what was given up"]), (1, [])])
def test_an_oracle_tells_of_a_repair_of_what_was_written_off_before(seconds: int, violated: list[str]) -> None:
    play = Play(REPAIRED)
    assert play.all() == []
    (action,) = play.world.store.actions.values()
    (repair,) = (one for one in play.world.truth.events if one.by == "repair")
    assert repair.visible_at is not None
    play.world.truth.given_up[action.stored.break_id] = repair.visible_at + timedelta(seconds=seconds)
    play.oracle.over(play.product)
    assert [one.clause for one in play.oracle.violations] == violated


@BOTH
def test_a_host_whose_clock_is_off_is_told_and_changes_no_verdict(direction: str) -> None:
    young = ("window", "trade", ("wait", 0, 3), "half_trade", "window", "window")
    right = played(Config(direction=direction), *young)
    for b, told in ((0, True), (1, False), (2, True)):
        off = played(Config(direction=direction), ("host_clock", 0, b), *young)
        assert (verdicts(off), off.oracle.violations) == (verdicts(right), [])
        assert bool(off.reached["notice host_clock_off"]) is told


@pytest.mark.parametrize("slice_by", ["written_xid", "jdbc"])
def test_a_row_that_a_relay_updates_while_it_is_read_is_read_once(slice_by: str) -> None:
    relay = [("touch", 4, n % 3, n) for n in range(1, 40)]
    play = played(Config(slice_by=slice_by), "window", *(6 * ["trade"]), *relay, "window", "window")
    assert play.oracle.violations == []
    assert [row for row in play.world.truth.rows.values() if row.touched]
    assert sum(row.result.figures.ledger_rows for row in play.world.store.of("books").verdicts.values()) == len(
        play.world.truth.rows
    ) - (3 if slice_by == "jdbc" else 0)


def test_a_failure_is_shrunk_to_the_steps_that_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    def two_phantoms(self: Play) -> list[Violation]:
        names = [step.name for step in self.schedule.steps]
        return [Violation("none", "two phantoms")] if names.count("phantom") > 1 else []

    monkeypatch.setattr(Play, "all", two_phantoms)
    steps = (Do("trade"), Do("phantom"), Do("window"), Do("phantom", 1), Do("wait"), Do("phantom", 2), Do("window"))
    found = play(Schedule(Config(), steps), 5)
    assert isinstance(found, Failure)
    shrunk = shrink(found)
    assert [step.name for step in shrunk.schedule.steps] == ["phantom", "phantom"]
    assert "seed 5, 2 steps: none" in story_of(shrunk)


TRADED = ("window", ("trade", 4, 5), "window")


@pytest.mark.parametrize(("step", "doubts"), [("rewrite_tail", ["log_rewritten"]), ("lead", [])])
def test_a_run_knows_what_the_run_before_it_saw_of_the_log(step: str, doubts: list[str]) -> None:
    play = played(Config(direction="ledger_to_topic", legs=2), *TRADED, (step, 1, 7), "window")
    assert [str(one.doubt) for one in play.world.store.of("books").verdicts[2].result.doubts] == doubts
    assert play.oracle.violations == []


@pytest.mark.parametrize("closed", [True, False])
@pytest.mark.parametrize(
    ("slice_by", "trades", "unread"),
    [("parquet", 1, [2]), ("jdbc", 5, [1, 2, 3]), ("xmin", 1, [2]), ("written_xid", 1, [2])],
)
def test_an_oracle_knows_which_rows_lie_in_a_cut_that_was_closed(
    slice_by: str, trades: int, unread: list[int], closed: bool
) -> None:
    """A jdbc ledger's newest rows are left to the next cut."""
    ends = (("cluster_down", 0, 0, 20), "window", "close_cut", "cluster_down") if closed else ("window",)
    play = played(Config(slice_by=slice_by), "window", "trade", "window", *trades * ["trade"], *ends, "trade", "window")
    rows = rows_in_closed_cuts(play.world, "books", list(play.world.truth.rows.values()))
    assert [row.row_id for row in rows] == (unread if closed else [])
