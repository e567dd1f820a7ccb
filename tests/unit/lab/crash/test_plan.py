"""What a crash matrix draws: every step meets every fault that can come there, and a seed draws the same again."""

from collections import Counter

import pytest

from lab.crash.books import events_needed, rounds_of
from lab.crash.main import _seed
from lab.crash.plan import CELLS, EVENTS_PER_PLAN, STEPS, CrashFault, CrashRound, PlanKind, Step, plan_crashes

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
    assert {kind for kind, *_ in CELLS} == set(PlanKind)
    assert {step for _, step, _ in CELLS} == set(Step)
    assert {fault for *_, fault in CELLS} == set(CrashFault)


def steps_of(kind: PlanKind, fault: CrashFault) -> set[Step]:
    return {step for of_kind, step, of_fault in CELLS if (of_kind, of_fault) == (kind, fault)}


@pytest.mark.parametrize("kind", [PlanKind.REPUBLISH, PlanKind.POST, PlanKind.ABORT])
def test_a_process_of_each_protocol_is_killed_and_frozen_at_every_step(kind: PlanKind) -> None:
    assert steps_of(kind, CrashFault.KILLED) == steps_of(kind, CrashFault.FROZEN) == set(STEPS[kind])


@pytest.mark.parametrize("fault", [CrashFault.BROKER_KILLED, CrashFault.STORE_KILLED, CrashFault.LOG_EXPIRED])
def test_servers_are_killed_and_the_log_expires_before_in_and_after_the_commit_of_what_is_published(
    fault: CrashFault,
) -> None:
    assert steps_of(PlanKind.REPUBLISH, fault) >= {Step.PROVED, Step.FLUSHED, Step.COMMITTING, Step.PUBLISHED}


def test_the_ledger_is_killed_before_in_and_after_a_post_and_the_broker_on_both_sides_of_a_marker() -> None:
    assert steps_of(PlanKind.POST, CrashFault.LEDGER_KILLED) >= {Step.INSERTED, Step.COMMITTING, Step.POSTED}
    assert steps_of(PlanKind.ABORT, CrashFault.BROKER_KILLED) >= {Step.EVIDENCE_KEPT, Step.COMMITTING, Step.MARKED}


@pytest.mark.parametrize("kind", [PlanKind.REVERSE, PlanKind.POST, PlanKind.ABORT])
def test_the_log_does_not_expire_where_later_rounds_repair_what_stands_on_it(kind: PlanKind) -> None:
    assert steps_of(kind, CrashFault.LOG_EXPIRED) == set()


def test_a_fault_that_needs_something_still_to_come_is_dealt_only_before_it() -> None:
    ledger = steps_of(PlanKind.REPUBLISH, CrashFault.LEDGER_KILLED)
    refused = steps_of(PlanKind.REPUBLISH, CrashFault.RECORDS_REFUSED)
    assert Step.PROGRESS_READ in ledger
    assert Step.PROVED not in ledger
    assert Step.BEGUN in refused
    assert Step.FLUSHED not in refused
    assert Step.EVIDENCE_KEPT in steps_of(PlanKind.ABORT, CrashFault.RETURNED)
    assert Step.MARKED not in steps_of(PlanKind.ABORT, CrashFault.RETURNED)


@pytest.mark.parametrize("kind", [PlanKind.REPUBLISH, PlanKind.POST])
@pytest.mark.parametrize(
    "fault", [CrashFault.CLEARED, CrashFault.BY_HAND, CrashFault.WRITTEN_OFF, CrashFault.OTHER_CONTRACT]
)
def test_what_others_settle_is_settled_before_anything_is_begun_before_the_commit_and_after_it(
    kind: PlanKind, fault: CrashFault
) -> None:
    before, after = {Step.FLUSHED, Step.INSERTED}, {Step.PUBLISHED, Step.POSTED, Step.RECORDED}
    steps = steps_of(kind, fault)
    assert Step.APPROVED in steps
    assert steps & before
    assert steps & after or (kind, fault) == (PlanKind.POST, CrashFault.OTHER_CONTRACT)  # no later than the claim


def test_nothing_is_rightly_refused_that_its_producer_has_not_ended_and_no_person_has_given_up() -> None:
    assert {crash.fault for crash in ROUNDS if crash.may_refuse} == {CrashFault.RETURNED, CrashFault.WRITTEN_OFF}
    assert {crash.may_refuse for crash in ROUNDS} == {0, 1}


@pytest.mark.parametrize(
    ("step", "given_up"),
    [(Step.APPROVED, 1), (Step.PROVED, 1), (Step.FLUSHED, 0), (Step.COMMITTING, 0), (Step.PUBLISHED, 0)],
)
def test_a_break_is_given_up_only_while_no_executor_may_have_repaired_it(step: Step, given_up: int) -> None:
    assert cell(PlanKind.REPUBLISH, step, CrashFault.WRITTEN_OFF).may_refuse == given_up


@pytest.mark.parametrize("fault", [CrashFault.CLEARED, CrashFault.BY_HAND])
@pytest.mark.parametrize(
    ("kind", "step", "others"),
    [
        (PlanKind.REPUBLISH, Step.APPROVED, 1),
        (PlanKind.REPUBLISH, Step.FLUSHED, 1),
        (PlanKind.POST, Step.INSERTED, 1),
    ],
)
def test_one_event_is_done_by_another_hand_before_the_commit(
    kind: PlanKind, step: Step, others: int, fault: CrashFault
) -> None:
    assert cell(kind, step, fault).by_another == others


@pytest.mark.parametrize(
    ("kind", "step", "fault"),
    [
        (PlanKind.REPUBLISH, Step.COMMITTING, CrashFault.CLEARED),
        (PlanKind.REPUBLISH, Step.RECORDED, CrashFault.BY_HAND),
        (PlanKind.POST, Step.COMMITTING, CrashFault.CLEARED),
        (PlanKind.POST, Step.RECORDED, CrashFault.BY_HAND),
        (PlanKind.REPUBLISH, Step.EXECUTING, CrashFault.OTHER_CONTRACT),
    ],
)
def test_nobody_else_does_what_is_committed_or_claimed(kind: PlanKind, step: Step, fault: CrashFault) -> None:
    assert cell(kind, step, fault).by_another == 0


def test_another_contract_does_all_of_a_plan_of_which_nothing_is_claimed() -> None:
    assert cell(PlanKind.REPUBLISH, Step.APPROVED, CrashFault.CONTRACTS_RACE).by_another == EVENTS_PER_PLAN


def test_rounds_of_two_contracts_have_books_of_their_own() -> None:
    alone = cell(PlanKind.POST, Step.APPROVED, CrashFault.BY_HAND)
    shared = cell(PlanKind.POST, Step.APPROVED, CrashFault.CONTRACTS_RACE)
    assert rounds_of((alone, shared)) == {"post": [alone], "post_twice": [shared]}


def test_each_event_of_a_plan_is_struck_at_in_some_round() -> None:
    assert {crash.record for crash in ROUNDS} == set(range(1, EVENTS_PER_PLAN + 1))


def test_a_round_with_a_second_plan_needs_events_for_both() -> None:
    expired = cell(PlanKind.REPUBLISH, Step.PROVED, CrashFault.LOG_EXPIRED)
    killed = cell(PlanKind.REPUBLISH, Step.BEGUN, CrashFault.KILLED)
    given_up = cell(PlanKind.REPUBLISH, Step.APPROVED, CrashFault.WRITTEN_OFF)
    assert events_needed((killed,)) == EVENTS_PER_PLAN
    assert events_needed((killed, expired)) == 3 * EVENTS_PER_PLAN
    assert events_needed((given_up,)) == 2 * EVENTS_PER_PLAN
    assert events_needed(()) == 0


def cell(*one: object) -> CrashRound:
    return next(crash for crash in ROUNDS if (crash.kind, crash.step, crash.fault) == one)
