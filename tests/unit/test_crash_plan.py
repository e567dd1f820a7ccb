"""What a crash matrix draws: every step meets every fault that can come there, and a seed draws the same again."""

from collections import Counter

import pytest

from lab.crash import _seed
from lab.crash_books import events_needed
from lab.crash_plan import CELLS, EVENTS_PER_PLAN, STEPS, CrashRound, Fault, Kind, Step, plan_crashes

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
        assert Counter((crash.kind, crash.step, crash.fault) for crash in dealt) == Counter(CELLS)


def test_two_hundred_rounds_have_every_cell() -> None:
    assert {(crash.kind, crash.step, crash.fault) for crash in plan_crashes(1, 200)} == set(CELLS)
    assert {kind for kind, *_ in CELLS} == set(Kind)
    assert {step for _, step, _ in CELLS} == set(Step)
    assert {fault for *_, fault in CELLS} == set(Fault)


def steps_of(kind: Kind, fault: Fault) -> set[Step]:
    return {step for of_kind, step, of_fault in CELLS if (of_kind, of_fault) == (kind, fault)}


@pytest.mark.parametrize("kind", Kind)
def test_a_process_of_each_kind_is_killed_and_frozen_at_every_step(kind: Kind) -> None:
    assert steps_of(kind, Fault.KILLED) == steps_of(kind, Fault.FROZEN) == set(STEPS[kind])


def test_broker_and_store_are_killed_at_every_step_of_the_publishing_protocol() -> None:
    for fault in (Fault.BROKER_KILLED, Fault.STORE_KILLED, Fault.LOG_EXPIRED):
        assert steps_of(Kind.REPUBLISH, fault) == set(STEPS[Kind.REPUBLISH])


def test_the_ledger_is_killed_wherever_a_post_stands_and_the_broker_on_both_sides_of_a_marker() -> None:
    assert steps_of(Kind.POST, Fault.LEDGER_KILLED) == set(STEPS[Kind.POST])
    assert steps_of(Kind.ABORT, Fault.BROKER_KILLED) >= {Step.EVIDENCE_KEPT, Step.COMMITTING, Step.MARKED}


@pytest.mark.parametrize("kind", [Kind.REVERSE, Kind.POST, Kind.ABORT])
def test_the_log_does_not_expire_where_later_rounds_repair_what_stands_on_it(kind: Kind) -> None:
    assert steps_of(kind, Fault.LOG_EXPIRED) == set()


def test_a_fault_that_needs_something_still_to_come_is_dealt_only_before_it() -> None:
    ledger = steps_of(Kind.REPUBLISH, Fault.LEDGER_KILLED)
    refused = steps_of(Kind.REPUBLISH, Fault.RECORDS_REFUSED)
    assert Step.PROGRESS_READ in ledger
    assert Step.PROVED not in ledger
    assert Step.BEGUN in refused
    assert Step.FLUSHED not in refused
    assert Step.EVIDENCE_KEPT in steps_of(Kind.ABORT, Fault.RETURNED)
    assert Step.MARKED not in steps_of(Kind.ABORT, Fault.RETURNED)


def test_only_a_transaction_that_its_producer_has_ended_is_rightly_refused() -> None:
    assert {crash.fault for crash in ROUNDS if crash.may_refuse} == {Fault.RETURNED}
    assert {crash.may_refuse for crash in ROUNDS} == {0, 1}


def test_each_event_of_a_plan_is_struck_at_in_some_round() -> None:
    assert {crash.record for crash in ROUNDS} == set(range(1, EVENTS_PER_PLAN + 1))


def test_a_round_with_a_second_plan_needs_events_for_both_and_only_of_its_kind() -> None:
    expired = cell(Kind.REPUBLISH, Step.BEGUN, Fault.LOG_EXPIRED)
    killed = cell(Kind.REPUBLISH, Step.BEGUN, Fault.KILLED)
    posted = cell(Kind.POST, Step.BEGUN, Fault.PLANNED_AGAIN)
    assert events_needed((killed,), Kind.REPUBLISH) == EVENTS_PER_PLAN
    assert events_needed((killed, expired, posted), Kind.REPUBLISH) == 3 * EVENTS_PER_PLAN
    assert events_needed((killed, expired, posted), Kind.POST) == 2 * EVENTS_PER_PLAN
    assert events_needed((killed, expired, posted), Kind.ABORT) == 0


def cell(*one: object) -> CrashRound:
    return next(crash for crash in ROUNDS if (crash.kind, crash.step, crash.fault) == one)
