"""What the simulated world has found, each shrunk to its fewest steps: none of it is violated any more."""

from collections.abc import Iterator

import pytest

from tests.simulator.schedule.play import Play, Schedule, steps_of
from tests.simulator.standins.run_functions import outstanding_breaks
from tests.simulator.standins.seams import stand_ins
from tests.simulator.world.config import Config


@pytest.fixture(autouse=True)
def _outside() -> Iterator[None]:
    with stand_ins():
        yield


def play(config: Config, *steps: object) -> Play:
    """Plays a schedule, in which nothing may be violated."""
    played = Play(Schedule(config, tuple(steps_of(*steps))))  # type: ignore[arg-type]
    assert played.all() == []
    return played


def outstanding(played: Play) -> list[str]:
    return [str(one.item_break.break_class) for one in outstanding_breaks(played.world.store, "books")]


def test_a_torn_transaction_is_whole_once_its_leg_came_beside_a_repeat_of_the_other() -> None:
    played = play(
        Config(direction="ledger_to_topic", legs=2, key_is_unique=True, producer_mode="plain", carrier_mode="at_most"),
        *("window", ("half_trade", 2, 7), "window", "window"),
        *(("by_hand", 2, 6), "window", "window"),
    )
    assert outstanding(played) == ["duplicate_in_topic_reprocessed"]


def test_no_transaction_is_torn_whose_forgotten_leg_waits_for_its_row() -> None:
    played = play(
        Config(direction="ledger_to_topic", legs=2, producer_mode="plain", carrier_mode="at_most", contracts=2),
        *(("pay", 2, 7), "window", ("trade", 1, 5), "window", ("retain_all", 1), ("both_again", 0, 8), "window"),
    )
    assert outstanding(played) == ["duplicate_in_ledger", "duplicate_in_topic_cause_unknown"]


def test_no_transaction_is_torn_by_what_repeats_a_repeat() -> None:
    played = play(
        Config(direction="ledger_to_topic", legs=2, producer_mode="plain", carrier_mode="at_most", contracts=2),
        *("window", ("trade", 1, 5), "window", ("retain_all", 1), ("both_again", 0, 8)),
    )
    assert outstanding(played) == ["duplicate_in_ledger", "duplicate_in_topic_no_idempotence"]
