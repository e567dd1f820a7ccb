"""The executor posts into the simulated ledger, and takes back, each once, wherever it is killed."""

import pytest
from psycopg import sql

from tests.simulator.oracle.effects_in_ledger import effects_in_ledger
from tests.simulator.schedule.play import Play, Schedule, steps_of
from tests.simulator.standins.poster import PosterConnection
from tests.simulator.standins.run_functions import outstanding_breaks
from tests.simulator.world.config import Config

MISSING = ("window", "half_trade", "lose", "window", "window")
TWICE = ("window", "trade", ("redeliver", 1, 0), "window", "window")
REPAIRED = pytest.mark.parametrize(
    ("config", "steps", "found"),
    [
        (Config(carrier_mode="at_most", posts="negated"), MISSING, "missing_in_ledger"),
        (Config(carrier_mode="at_least", posts="negated"), TWICE, "duplicate_in_ledger"),
        (Config(carrier_mode="at_least", posts="column", slice_by="written_xid"), TWICE, "duplicate_in_ledger"),
    ],
)


pytestmark = pytest.mark.usefixtures("in_the_world")


def played(config: Config, *steps: object) -> Play:
    play = Play(Schedule(config, tuple(steps_of(*steps))))  # type: ignore[arg-type]
    assert play.all() == []
    return play


def classes(play: Play) -> list[str]:
    return [str(one.item_break.break_class) for one in outstanding_breaks(play.world.store, "books")]


def repairs(play: Play) -> list[str]:
    return [row.by for row in play.world.truth.rows.values() if row.by == "repair"]


@REPAIRED
def test_what_is_broken_in_the_ledger_is_repaired_by_one_row(
    config: Config, steps: tuple[object, ...], found: str
) -> None:
    assert (classes(played(config, *steps)), repairs(played(config, *steps))) == ([found], [])
    repaired = played(config, *steps, "plan_and_act", "act")
    assert (classes(repaired), repairs(repaired)) == ([], ["repair"])


@REPAIRED
def test_an_executor_that_is_killed_anywhere_leaves_one_row_when_it_is_started_again(
    config: Config, steps: tuple[object, ...], found: str
) -> None:
    """kill takes a number of its own; a person's step with an odd one is the process that is killed."""
    killed = 0
    for at in range(1, 24, 3):
        play = played(config, *steps, ("kill", at), ("plan_and_act", 1, 0), "plan_and_act", "act")
        killed += any(one.startswith("Killed at poster") for one in play.product.failed)
        assert (classes(play), repairs(play)) == ([], ["repair"]), at
    assert killed


def test_a_statement_that_is_new_to_the_simulated_session_is_not_passed_over() -> None:
    session = PosterConnection(Play(Schedule(Config(), ())).world)
    with pytest.raises(AssertionError, match="no answer to: DELETE"):
        session.execute(sql.SQL("DELETE FROM {}").format(sql.Identifier("payout")))


def test_a_row_that_takes_back_what_was_right_is_one_too_many_and_is_not_taken_back_itself() -> None:
    play = played(Config(posts="column"), "window", "trade", "window", "reverse_for_nothing", "window", "plan_and_act")
    assert (classes(play), repairs(play)) == (["duplicate_in_ledger"], [])
    assert play.reached["reason IDLE_REVERSAL"] == 1


def test_an_oracle_sees_what_is_posted_beside_a_row_twice_or_taken_back_twice() -> None:
    play = played(Config(carrier_mode="at_least", posts="negated"), *TWICE, "plan_and_act")
    truth = play.world.truth
    assert list(effects_in_ledger(truth)) == []
    (reversal,) = truth.reversals
    truth.reversals.append(reversal)
    assert list(effects_in_ledger(truth)) == [f"row {reversal.reverses} was taken back 2 times"]
    first, second, _ = truth.rows.values()
    second.by, second.action_id, first.action_id, second.taken_back_at = "repair", "a", "a", None
    told = list(effects_in_ledger(truth))
    assert (
        "action a posted 2 rows" in told
        and f"{second.money.match_key} was posted by us beside a row that stood" in told
    )
