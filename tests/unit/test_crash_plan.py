"""What a crash matrix draws: every step meets every fault that can come there, and a seed draws the same again."""

from collections import Counter

import pytest

from lab.crash import _seed
from lab.crash_books import events_needed
from lab.crash_plan import CELLS, EVENTS_PER_PLAN, Fault, Step, plan_crashes

ROUNDS = plan_crashes(7, 3 * len(CELLS))


def test_a_seed_draws_the_same_again_and_another_seed_something_else() -> None:
    assert plan_crashes(7, len(ROUNDS)) == ROUNDS
    assert [crash.step for crash in plan_crashes(8, 50)] != [crash.step for crash in ROUNDS[:50]]


def test_more_rounds_begin_with_the_same_ones() -> None:
    assert plan_crashes(7, 20) == ROUNDS[:20]


@pytest.mark.parametrize("number", [1, 113])
def test_a_round_is_played_alone_by_its_name(number: int) -> None:
    crash = ROUNDS[number - 1]
    seed, first = _seed(crash.name)
    assert plan_crashes(seed, 1, first=first) == (crash,)


def test_a_seed_without_a_round_begins_with_the_first() -> None:
    assert _seed("7") == (7, 1)


def test_each_cell_is_dealt_once_before_any_comes_again() -> None:
    for first in range(0, len(ROUNDS), len(CELLS)):
        dealt = ROUNDS[first : first + len(CELLS)]
        assert Counter((crash.step, crash.fault) for crash in dealt) == Counter(CELLS)


def test_two_hundred_rounds_have_every_step_and_every_fault() -> None:
    drawn = plan_crashes(1, 200)
    assert {crash.step for crash in drawn} == set(Step)
    assert {crash.fault for crash in drawn} == set(Fault)


def test_a_process_is_killed_and_frozen_at_every_step_and_so_are_broker_and_store_killed() -> None:
    for fault in (Fault.KILLED, Fault.FROZEN, Fault.BROKER_KILLED, Fault.STORE_KILLED, Fault.LOG_EXPIRED):
        assert {step for step, of in CELLS if of is fault} == set(Step)


def test_a_fault_that_needs_something_still_to_come_is_dealt_only_before_it() -> None:
    ledger = {step for step, fault in CELLS if fault is Fault.LEDGER_KILLED}
    refused = {step for step, fault in CELLS if fault is Fault.RECORDS_REFUSED}
    assert Step.PROGRESS_READ in ledger
    assert Step.PROVED not in ledger
    assert Step.BEGUN in refused
    assert Step.FLUSHED not in refused


def test_each_event_of_a_plan_is_struck_at_in_some_round() -> None:
    assert {crash.record for crash in ROUNDS} == set(range(1, EVENTS_PER_PLAN + 1))


def test_a_round_with_a_second_plan_needs_events_for_both() -> None:
    (expired,) = [
        crash for crash in ROUNDS[: len(CELLS)] if (crash.step, crash.fault) == (Step.BEGUN, Fault.LOG_EXPIRED)
    ]
    (killed,) = [crash for crash in ROUNDS[: len(CELLS)] if (crash.step, crash.fault) == (Step.BEGUN, Fault.KILLED)]
    assert events_needed((killed,)) == EVENTS_PER_PLAN
    assert events_needed((killed, expired)) == 3 * EVENTS_PER_PLAN
