"""The rounds of a crash matrix, drawn from a seed. Pure. Every cell, a step with a fault, comes round in turn."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice

EVENTS_PER_PLAN = 3


class Step(StrEnum):
    """Where the executor stands when the fault comes: what the name says is done, and nothing after it.

    committing is inside the commit: the broker has it, and the executor has no answer.
    """

    APPROVED = "approved"
    EXECUTING = "executing"
    FENCED = "fenced"
    PROGRESS_READ = "progress_read"
    PROVED = "proved"
    BEGUN = "begun"
    EVENT_PRODUCED = "event_produced"
    PROGRESS_PRODUCED = "progress_produced"
    FLUSHED = "flushed"
    COMMITTING = "committing"
    PUBLISHED = "published"
    RECORDED = "recorded"
    FINISHED = "finished"


class Fault(StrEnum):
    """What happens to the executor at its step, or to what it talks to. Afterwards it is started until it has finished.

    frozen: a second executor does the plan meanwhile, then the first one wakes up.
    overtaken: it wakes up, and runs to its end, while the second one has a transaction open; that one goes on, and dies
    right after its commit.
    log_expired: it is killed, retention takes the topic's records and all offsets of groups, and another plan is made
    and executed before its own goes on.
    records_refused: for a while the topic takes no record as large as an event.
    """

    KILLED = "killed"
    FROZEN = "frozen"
    OVERTAKEN = "overtaken"
    BROKER_KILLED = "broker_killed"
    STORE_KILLED = "store_killed"
    LEDGER_KILLED = "ledger_killed"
    ANSWER_LOST = "answer_lost"
    LOG_EXPIRED = "log_expired"
    RECORDS_REFUSED = "records_refused"


_AT_SOME_STEPS = {
    Fault.OVERTAKEN: (Step.EXECUTING, Step.FENCED, Step.PROGRESS_READ, Step.PROVED, Step.BEGUN),
    Fault.LEDGER_KILLED: (Step.APPROVED, Step.EXECUTING, Step.FENCED, Step.PROGRESS_READ),  # it is read no more
    Fault.ANSWER_LOST: (Step.EXECUTING, Step.BEGUN, Step.COMMITTING),  # to what is asked next, or in committing
    Fault.RECORDS_REFUSED: (Step.PROVED, Step.BEGUN),
}

CELLS = tuple((step, fault) for fault in Fault for step in _AT_SOME_STEPS.get(fault, tuple(Step)))


@dataclass(frozen=True, kw_only=True)
class CrashRound:
    """One plan of EVENTS_PER_PLAN events. record: which of them, from 1, where the step comes once for each.

    second_at: where a second executor stands while the first one is overtaken.
    """

    name: str
    step: Step
    fault: Fault
    record: int
    second_at: Step


def plan_crashes(seed: int, rounds: int, *, first: int = 1) -> tuple[CrashRound, ...]:
    """Rounds first, first + 1, ... of a seed; all cells are dealt, then all again in another order."""
    return tuple(islice(_all_rounds(seed), first - 1, first - 1 + rounds))


def _all_rounds(seed: int) -> Iterator[CrashRound]:
    dice, number = random.Random(f"crash:{seed}"), 0
    while True:
        for step, fault in dice.sample(CELLS, len(CELLS)):
            number += 1
            record, second_at = dice.randint(1, EVENTS_PER_PLAN), dice.choice((Step.EVENT_PRODUCED, Step.FLUSHED))
            yield CrashRound(name=f"{seed}.{number}", step=step, fault=fault, record=record, second_at=second_at)
