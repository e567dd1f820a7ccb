"""The rounds of a crash matrix, drawn from a seed. Pure. Every cell, a step with a fault, comes round in turn."""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice

EVENTS_PER_PLAN = 3


class PlanKind(StrEnum):
    """What a plan does about each of its EVENTS_PER_PLAN events.

    republish: publish the event that the topic lacks. reverse: take a copy back, by an event that names it. post: write
    the rows that the ledger lacks. abort: end a hanging transaction, by one marker.
    """

    REPUBLISH = "republish"
    REVERSE = "reverse"
    POST = "post"
    ABORT = "abort"


class Step(StrEnum):
    """Where the executor stands when the fault comes: what the name says is done, and nothing after it.

    committing is inside the commit, or inside the request for a marker: broker or ledger has it, and the executor has
    no answer. begun: a producer transaction, or one in the ledger. inserted, posted: rows in the ledger, before and
    after their commit. evidence_kept, marked: before and after a marker is written.
    """

    APPROVED = "approved"
    EXECUTING = "executing"
    FENCED = "fenced"
    PROGRESS_READ = "progress_read"
    PROVED = "proved"
    EVIDENCE_KEPT = "evidence_kept"
    BEGUN = "begun"
    EVENT_PRODUCED = "event_produced"
    PROGRESS_PRODUCED = "progress_produced"
    FLUSHED = "flushed"
    INSERTED = "inserted"
    COMMITTING = "committing"
    PUBLISHED = "published"
    POSTED = "posted"
    MARKED = "marked"
    RECORDED = "recorded"
    FINISHED = "finished"


class CrashFault(StrEnum):
    """What happens to the executor at its step, or to what it talks to. Afterwards it is started until it has finished.

    frozen: a second executor does the plan meanwhile, then the first one wakes up; the servers have ended its sessions
    by then, as their time-outs would.
    overtaken: it wakes up, and runs to its end, while the second one has a transaction open; that one goes on, and dies
    right after its commit. Where the second one waits for the first one's lock instead, it goes on behind it.
    planned_again: it is frozen, another plan is made and executed, then it wakes up.
    log_expired: it is killed, a run reads the topic, retention takes its records and all offsets of groups, and another
    plan is made and executed before its own goes on.
    records_refused: for a while the topic takes no record as large as an event.
    returned: the producer of a hanging transaction comes back, commits it, and has the next one open until the executor
    is done.

    Of the rest, each happens between a kill and the next start, as when somebody clears the task days later. Where the
    executor had committed by then, nobody repairs its event again.
    cleared: the struck event's own producer writes it late, a run judges it, and retention or the archive takes it.
    by_hand: a person writes it, and a run judges it.
    written_off: a person gives it up, as soon as the store lets them; in a round that is `held`, while no executor can
    prove anything.
    other_contract: another contract over the same topic and table executes a plan of the same events.
    contracts_race: the same, and the executor is frozen meanwhile, and wakes up.
    """

    KILLED = "killed"
    FROZEN = "frozen"
    OVERTAKEN = "overtaken"
    PLANNED_AGAIN = "planned_again"
    BROKER_KILLED = "broker_killed"
    STORE_KILLED = "store_killed"
    LEDGER_KILLED = "ledger_killed"
    ANSWER_LOST = "answer_lost"
    LOG_EXPIRED = "log_expired"
    RECORDS_REFUSED = "records_refused"
    RETURNED = "returned"
    CLEARED = "cleared"
    BY_HAND = "by_hand"
    WRITTEN_OFF = "written_off"
    OTHER_CONTRACT = "other_contract"
    CONTRACTS_RACE = "contracts_race"


_PUBLISHING = (
    Step.APPROVED,
    Step.EXECUTING,
    Step.FENCED,
    Step.PROGRESS_READ,
    Step.PROVED,
    Step.BEGUN,
    Step.EVENT_PRODUCED,
    Step.PROGRESS_PRODUCED,
    Step.FLUSHED,
    Step.COMMITTING,
    Step.PUBLISHED,
    Step.RECORDED,
    Step.FINISHED,
)

_REVERSING = (
    Step.APPROVED,
    Step.FENCED,
    Step.PROVED,
    Step.BEGUN,
    Step.PROGRESS_PRODUCED,
    Step.COMMITTING,
    Step.PUBLISHED,
    Step.RECORDED,
)
"""Of these steps, those at which a process of a reversal is struck."""

STEPS: Mapping[PlanKind, tuple[Step, ...]] = {
    PlanKind.REPUBLISH: _PUBLISHING,
    PlanKind.REVERSE: _PUBLISHING,
    PlanKind.POST: (
        Step.APPROVED,
        Step.EXECUTING,
        Step.PROVED,
        Step.BEGUN,
        Step.INSERTED,
        Step.COMMITTING,
        Step.POSTED,
        Step.RECORDED,
        Step.FINISHED,
    ),
    PlanKind.ABORT: (
        Step.APPROVED,
        Step.EXECUTING,
        Step.EVIDENCE_KEPT,
        Step.COMMITTING,
        Step.MARKED,
        Step.RECORDED,
        Step.FINISHED,
    ),
}

_FAULTS: Mapping[PlanKind, Mapping[CrashFault, tuple[Step, ...]]] = {
    PlanKind.REPUBLISH: {
        CrashFault.KILLED: _PUBLISHING,
        CrashFault.FROZEN: _PUBLISHING,
        CrashFault.OVERTAKEN: (Step.EXECUTING, Step.FENCED, Step.PROGRESS_READ, Step.PROVED, Step.BEGUN),
        CrashFault.BROKER_KILLED: (
            Step.APPROVED,
            Step.FENCED,
            Step.PROVED,
            Step.EVENT_PRODUCED,
            Step.FLUSHED,
            Step.COMMITTING,
            Step.PUBLISHED,
            Step.RECORDED,
        ),
        CrashFault.STORE_KILLED: (
            Step.EXECUTING,
            Step.FENCED,
            Step.PROVED,
            Step.BEGUN,
            Step.FLUSHED,
            Step.COMMITTING,
            Step.PUBLISHED,
            Step.RECORDED,
        ),
        CrashFault.LEDGER_KILLED: (Step.EXECUTING, Step.FENCED, Step.PROGRESS_READ),  # it is read no more
        CrashFault.ANSWER_LOST: (
            Step.EXECUTING,
            Step.BEGUN,
            Step.COMMITTING,
        ),  # to what is asked next, or in committing
        CrashFault.LOG_EXPIRED: (
            Step.EXECUTING,
            Step.PROVED,
            Step.FLUSHED,
            Step.COMMITTING,
            Step.PUBLISHED,
            Step.FINISHED,
        ),
        CrashFault.RECORDS_REFUSED: (Step.PROVED, Step.BEGUN),
        CrashFault.CLEARED: (
            Step.APPROVED,
            Step.EXECUTING,
            Step.PROVED,
            Step.EVENT_PRODUCED,
            Step.FLUSHED,
            Step.COMMITTING,
            Step.PUBLISHED,
            Step.FINISHED,
        ),
        CrashFault.BY_HAND: (Step.APPROVED, Step.EXECUTING, Step.FLUSHED, Step.RECORDED),
        CrashFault.WRITTEN_OFF: (
            Step.APPROVED,
            Step.EXECUTING,
            Step.PROVED,
            Step.RECORDED,
            Step.FINISHED,
            Step.FLUSHED,
            Step.COMMITTING,
            Step.PUBLISHED,
        ),
        CrashFault.OTHER_CONTRACT: (Step.APPROVED, Step.EXECUTING, Step.FLUSHED, Step.COMMITTING, Step.RECORDED),
        CrashFault.CONTRACTS_RACE: (Step.APPROVED, Step.PROVED, Step.BEGUN),
    },
    # By the same protocol, so not every fault is dealt again at each of its steps. The log may not expire here and
    # below: what later rounds repair stands on it.
    PlanKind.REVERSE: {
        CrashFault.KILLED: _REVERSING,
        CrashFault.FROZEN: _REVERSING,
        CrashFault.OVERTAKEN: (Step.PROVED, Step.BEGUN),
        CrashFault.BROKER_KILLED: (Step.BEGUN, Step.COMMITTING, Step.PUBLISHED),
        CrashFault.STORE_KILLED: (Step.PUBLISHED,),
        CrashFault.LEDGER_KILLED: (Step.PROGRESS_READ,),
        CrashFault.ANSWER_LOST: (Step.BEGUN, Step.COMMITTING),
        CrashFault.RECORDS_REFUSED: (Step.BEGUN,),
        CrashFault.WRITTEN_OFF: (Step.APPROVED, Step.FLUSHED),
        CrashFault.OTHER_CONTRACT: (Step.APPROVED, Step.FLUSHED),
    },
    PlanKind.POST: {
        CrashFault.KILLED: STEPS[PlanKind.POST],
        CrashFault.FROZEN: STEPS[PlanKind.POST],
        CrashFault.OVERTAKEN: (Step.BEGUN, Step.INSERTED),
        CrashFault.PLANNED_AGAIN: (Step.BEGUN, Step.INSERTED, Step.POSTED),
        CrashFault.BROKER_KILLED: (Step.APPROVED, Step.EXECUTING),  # it is read no more
        CrashFault.STORE_KILLED: (Step.EXECUTING, Step.INSERTED, Step.POSTED, Step.RECORDED),
        CrashFault.LEDGER_KILLED: (
            Step.EXECUTING,
            Step.BEGUN,
            Step.INSERTED,
            Step.COMMITTING,
            Step.POSTED,
            Step.RECORDED,
        ),
        CrashFault.ANSWER_LOST: (Step.COMMITTING,),
        CrashFault.CLEARED: (
            Step.APPROVED,
            Step.EXECUTING,
            Step.INSERTED,
            Step.COMMITTING,
            Step.POSTED,
            Step.FINISHED,
        ),
        CrashFault.BY_HAND: (Step.APPROVED, Step.INSERTED, Step.RECORDED),
        CrashFault.WRITTEN_OFF: (Step.APPROVED, Step.INSERTED, Step.POSTED),
        CrashFault.OTHER_CONTRACT: (Step.APPROVED, Step.INSERTED),
        CrashFault.CONTRACTS_RACE: (Step.APPROVED, Step.INSERTED),
    },
    PlanKind.ABORT: {
        CrashFault.KILLED: STEPS[PlanKind.ABORT],
        CrashFault.FROZEN: STEPS[PlanKind.ABORT],
        CrashFault.OVERTAKEN: (Step.EVIDENCE_KEPT, Step.MARKED),
        CrashFault.BROKER_KILLED: (Step.EXECUTING, Step.EVIDENCE_KEPT, Step.COMMITTING, Step.MARKED, Step.RECORDED),
        CrashFault.STORE_KILLED: (Step.EXECUTING, Step.EVIDENCE_KEPT, Step.MARKED, Step.RECORDED),
        CrashFault.ANSWER_LOST: (Step.COMMITTING,),
        CrashFault.RETURNED: (Step.APPROVED, Step.EXECUTING, Step.EVIDENCE_KEPT),  # before the marker
    },
}

_COMMITTED = (Step.COMMITTING, Step.PUBLISHED, Step.POSTED, Step.RECORDED, Step.FINISHED)
"""Steps at which the struck event's effect stands."""
_UNPROVEN = (Step.EXECUTING, Step.FENCED, Step.PROGRESS_READ, Step.PROVED, Step.RECORDED, Step.FINISHED)
"""Steps that an executor comes to which proves nothing, once it has claimed its actions."""
_BETWEEN_STARTS = (CrashFault.CLEARED, CrashFault.BY_HAND, CrashFault.WRITTEN_OFF)
_TWO_CONTRACTS = (CrashFault.OTHER_CONTRACT, CrashFault.CONTRACTS_RACE)

Cell = tuple[PlanKind, Step, CrashFault]

CELLS: tuple[Cell, ...] = tuple(
    (kind, step, fault) for kind, faults in _FAULTS.items() for fault, steps in faults.items() for step in steps
)


@dataclass(frozen=True, kw_only=True)
class CrashRound:
    """One plan of EVENTS_PER_PLAN events. record: which of them, from 1, where the step comes once for each.

    second_at: where a second executor stands while the first one is overtaken.
    """

    name: str
    kind: PlanKind
    step: Step
    fault: CrashFault
    record: int
    second_at: Step

    @property
    def books(self) -> str:
        """Name of the books that it is played on: those of its kind, or those that two contracts read."""
        return f"{self.kind}_twice" if self.has_two_contracts else str(self.kind)

    @property
    def has_two_contracts(self) -> bool:
        """Does another contract over the same topic and table repair the same?"""
        return self.fault in _TWO_CONTRACTS

    @property
    def may_be_stale(self) -> bool:
        """May its plan change while nothing of it is begun, so that it is refused as a whole, and made again?"""
        return self.fault in _BETWEEN_STARTS and (self.step is Step.APPROVED or self.is_held)

    @property
    def plans(self) -> int:
        """So many plans it makes, at most."""
        return 2 if self.fault in (CrashFault.LOG_EXPIRED, CrashFault.PLANNED_AGAIN) or self.may_be_stale else 1

    @property
    def is_held(self) -> bool:
        """Does the struck event's own producer have it in an open transaction while the executor runs, and abort it?"""
        publishes = self.kind in (PlanKind.REPUBLISH, PlanKind.REVERSE)
        return self.fault is CrashFault.WRITTEN_OFF and publishes and self.step in _UNPROVEN

    @property
    def may_refuse(self) -> int:
        """Of so many of its events it is right to say that nothing was done: they are no more what was approved."""
        return 1 if self.fault is CrashFault.RETURNED or self.is_written_off else 0

    @property
    def is_written_off(self) -> bool:
        """May a person write the struck event off? Not while an executor may have done it, or has."""
        return self.fault is CrashFault.WRITTEN_OFF and self.may_be_stale

    @property
    def by_another(self) -> int:
        """So many of its events somebody else does, so that it is right to refuse them."""
        if self.has_two_contracts:
            return EVENTS_PER_PLAN if self.step is Step.APPROVED else 0  # from then on the store has its claim
        return 1 if self.fault in (CrashFault.CLEARED, CrashFault.BY_HAND) and self.step not in _COMMITTED else 0


def plan_crashes(seed: int, rounds: int, *, first: int = 1) -> tuple[CrashRound, ...]:
    """Rounds first, first + 1, ... of a seed; all cells are dealt, then all again in another order."""
    return tuple(islice(_all_rounds(seed), first - 1, first - 1 + rounds))


def _all_rounds(seed: int) -> Iterator[CrashRound]:
    dice, number = random.Random(f"crash:{seed}"), 0
    while True:
        for kind, step, fault in dice.sample(CELLS, len(CELLS)):
            number += 1
            yield CrashRound(
                name=f"{seed}.{number}",
                kind=kind,
                step=step,
                fault=fault,
                record=dice.randint(1, EVENTS_PER_PLAN),
                second_at=dice.choice((Step.EVENT_PRODUCED, Step.FLUSHED)),
            )
