"""The parts that all kinds of repair share: the plan that is carried out, and how each outcome is kept, audited and
reported.
"""

import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, TypeVar
from uuid import UUID

from sqlalchemy import Engine

from tallystick.compensation.abort_plan import AbortItem
from tallystick.compensation.approval_rules import why_too_old
from tallystick.compensation.caps import refuse_over_caps
from tallystick.compensation.kill_switch import refuse_outside_hours, refuse_stopped
from tallystick.compensation.plan import DailyUsage, Plan, PlanItem
from tallystick.compensation.repair_effect import RepairEffect
from tallystick.connections.connections import Connections
from tallystick.contract.contract import Contract
from tallystick.executor.effects.publish_events import ExecutorFenced, transactional_id_of
from tallystick.executor.effects.step import ExecutorStep, OnProgress
from tallystick.model.verdict import Verdict
from tallystick.store.plans.claim_store import NOT_OUTSTANDING, claim_actions, held_among, outstanding_among
from tallystick.store.plans.plan_store import (
    ActionState,
    StoredAction,
    append_audit,
    record_done,
    record_refusal,
    record_waiting,
)
from tallystick.store.plans.switch_store import read_switch

SETTLE_SECONDS = 10
"""How long an open transaction may keep us from proving an absence before its topic's items are refused for now."""


LOOK = "a person has to look"
"""How the reason of what waits for one begins."""


class ActionResult(StrEnum):
    """The result of one action of the plan. done, already_done, would_do: of one that neither publishes nor posts."""

    PUBLISHED = "published"
    ALREADY_PUBLISHED = "already_published"
    REFUSED = "refused"
    WOULD_PUBLISH = "would_publish"
    DONE = "done"
    ALREADY_DONE = "already_done"
    WOULD_DO = "would_do"


@dataclass(frozen=True, kw_only=True)
class ItemOutcome:
    """place: topic, partition and offset of the event or the marker, where known. reason: why it was refused.

    waits: refused until a person has looked; seen: what the store keeps with that.
    """

    action_id: UUID
    match_key: str
    fate: ActionResult
    place: Mapping[str, Any] | None = None
    reason: str = ""
    waits: bool = False
    seen: Mapping[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        return {
            "action_id": str(self.action_id),
            "match_key": self.match_key,
            "fate": str(self.fate),
            "place": dict(self.place) if self.place else None,
            "reason": self.reason,
        }


@dataclass(frozen=True, kw_only=True)
class ItemCheck:
    """The place of one event of the plan after the fact. run_ended: of what a DAG repairs, that its run is over.

    reason: why that DAG's run cannot be seen.
    """

    match_key: str
    effect: RepairEffect
    places: tuple[Mapping[str, Any], ...]
    run_ended: bool = False
    reason: str = ""

    @property
    def verdict(self) -> Verdict:
        if self.effect in (RepairEffect.HIDDEN, RepairEffect.HANDED_OVER):
            return Verdict.INCONCLUSIVE
        return Verdict.MATCHED if self.effect is RepairEffect.CLEARED else Verdict.BROKEN


_Action = TypeVar("_Action", AbortItem, PlanItem)


@dataclass(frozen=True, kw_only=True)
class ExecutionContext:
    """One start of an executor.

    begun: actions that it was the first to begin, and of which it has recorded nothing. stopped: actions of a plan that
    has begun which may not be done any more, and why. unclaimed: actions that it has not begun, so that it has nothing
    to refuse. taken_back: of a reversal, the other copies of its key that other actions take back. reopened: how often
    persons had reopened each action when it was claimed. approved_in: the scheduler's run in which a person agreed; ""
    where this start is the approval. asked, agreed_at: who asked for the plan; who agreed, and when.
    """

    engine: Engine
    contract: Contract
    connections: Connections
    plan: Plan
    approver: str
    environment: str
    on_progress: OnProgress
    now: Callable[[], datetime]
    executor: str = field(default_factory=lambda: str(uuid.uuid4()))
    begun: set[UUID] = field(default_factory=set)
    stopped: dict[UUID, str] = field(default_factory=dict)
    unclaimed: set[UUID] = field(default_factory=set)
    taken_back: dict[UUID, frozenset[str]] = field(default_factory=dict)
    reopened: dict[UUID, int] = field(default_factory=dict)
    approved_in: str = ""
    asked: set[str] = field(default_factory=set)
    agreed_at: dict[str, datetime] = field(default_factory=dict)

    @property
    def transactional_id(self) -> str:
        return transactional_id_of(self.contract.name, self.environment)

    def audit(self, event: str, **detail: Any) -> None:
        append_audit(
            self.engine,
            self.contract.name,
            plan_id=self.plan.plan_id,
            actor=self.approver,
            event=event,
            detail={"plan_hash": self.plan.plan_hash} | detail,
        )

    def refuse_for_now(self) -> None:
        """Raises ActingStopped, OutsideActingHours."""
        refuse_stopped(self.contract, *read_switch(self.engine, self.contract.name))
        refuse_outside_hours(self.contract, now_utc=self.now())

    def note_approval(self, asked: Collection[str], agreed: Mapping[str, timedelta]) -> None:
        """Keep who asked and who agreed, how long ago, to ask again before each step whether that still holds."""
        now = self.now()
        self.asked.update(asked)
        self.agreed_at.update({name: now - age for name, age in agreed.items()})

    def why_too_old(self) -> str | None:
        """Return why the approval does not hold any more; None: it does. Raises CompensationOff."""
        now = self.now()
        agreed = {name: now - at for name, at in self.agreed_at.items()}
        return why_too_old(self.contract, self.plan, asked=self.asked, agreed=agreed, approved_in=self.approved_in)

    def why_not_now(self, items: Collection[PlanItem]) -> dict[UUID, str]:
        """Ask the clock and the store which of these items may not be done any more, and why."""
        if reason := self.why_too_old():
            return {item.action_id: reason for item in items}
        outstanding = outstanding_among(self.engine, self.contract.name, {item.break_id for item in items})
        return {
            item.action_id: self.stopped.get(item.action_id, NOT_OUTSTANDING)
            for item in items
            if item.action_id in self.stopped or item.break_id not in outstanding
        }

    def refuse_overtaken(self, items: Collection[PlanItem]) -> None:
        """Raise ExecutorFenced where a later start has claimed one of these: it may have refused it, so that another
        contract, another environment or a write-off has what ours would do.
        """
        wanted = {item.action_id for item in items}
        if lost := sorted(wanted - held_among(self.engine, wanted, self.executor)):
            raise ExecutorFenced(f"{self.contract.name}: another executor has claimed {lost[0]} since")

    def claim(
        self, actions: Sequence[AbortItem | PlanItem], *, ledger: str = "", **outcome: Any
    ) -> Mapping[UUID, StoredAction]:
        """Mark as executing what may be; the rest is stopped. Raises PlanStale, CapsExceeded."""
        claims = claim_actions(
            self.engine,
            self.plan,
            actions,
            executor=self.executor,
            outcome=outcome,
            allow=self._allow,
            ledger=ledger,
            table=f"{self.contract.ledger.connection}/{self.contract.ledger.table}",
            stopped=self.stopped,
        )
        self.begun.update(claims.begun)
        self.stopped.update(claims.unclaimed)
        self.taken_back.update(claims.taken_back)
        self.reopened.update({action_id: action.reopened for action_id, action in claims.actions.items()})
        self.unclaimed.update(
            action.action_id
            for action in actions
            if not _is_ours(claims.actions.get(action.action_id), self.plan.plan_id)
        )
        return claims.actions

    def _allow(self, actions: Sequence[AbortItem | PlanItem], spent: DailyUsage) -> None:
        part = replace(
            self.plan,
            aborts=tuple(action for action in actions if isinstance(action, AbortItem)),
            items=tuple(action for action in actions if isinstance(action, PlanItem)),
        )
        refuse_over_caps(self.contract, part, spent=spent)


def _is_ours(stored: StoredAction | None, plan_id: UUID) -> bool:
    """Return whether this plan holds it."""
    return stored is not None and stored.plan_id == plan_id and stored.state is not ActionState.REFUSED


def run_actions(
    work: ExecutionContext,
    actions: Sequence[_Action],
    act: Callable[[_Action], ItemOutcome],
    *,
    alone: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> tuple[ItemOutcome, ...]:
    """One after the other: may it be done now, do it, keep what came of it, and tell. alone: held around all but that.

    The switch and the minutes are asked before each.
    """
    outcomes = []
    for n, action in enumerate(actions, start=1):
        with alone():
            work.refuse_for_now()
            outcome = act(action)
            record(work, outcome)
        _tell_recorded(work, n, outcome)
        outcomes.append(outcome)
    return tuple(outcomes)


def record_each(work: ExecutionContext, outcomes: Sequence[ItemOutcome]) -> None:
    """Keep what came of actions that were done together."""
    for n, outcome in enumerate(outcomes, start=1):
        record(work, outcome)
        _tell_recorded(work, n, outcome)


def record(work: ExecutionContext, outcome: ItemOutcome) -> None:
    """Raises ExecutorFenced instead of a refusal that a later start may be making untrue."""
    if outcome.fate is ActionResult.REFUSED:
        detail: dict[str, Any] = {"reason": outcome.reason}
        keep, kept = (record_waiting, {**detail, **outcome.seen}) if outcome.waits else (record_refusal, detail)
        ours = outcome.action_id not in work.unclaimed
        if ours and not keep(work.engine, outcome.action_id, executor=work.executor, outcome=kept):
            raise ExecutorFenced(f"{work.contract.name}: another executor has claimed {outcome.action_id} since")
    else:
        detail = dict(outcome.place or {})
        by_us, reopened = (
            outcome.fate in (ActionResult.PUBLISHED, ActionResult.DONE),
            work.reopened.get(outcome.action_id, 0),
        )
        record_done(work.engine, outcome.action_id, outcome=detail, by_us=by_us, reopened=reopened)
    work.begun.discard(outcome.action_id)
    work.audit(str(outcome.fate), action_id=str(outcome.action_id), **detail)


def refuse_begun(work: ExecutionContext, reason: str) -> None:
    """Say of what this start alone has begun that it was not done, so that the next start or plan may take it up.

    An action that an earlier start had begun stays as it is: that one may have done it. So does one that a later start
    has claimed since.
    """
    for action_id in sorted(work.begun):
        if record_refusal(work.engine, action_id, executor=work.executor, outcome={"reason": reason}):
            work.audit(ActionResult.REFUSED, action_id=str(action_id), reason=reason)
    work.begun.clear()


def refused(item: PlanItem, reason: str) -> ItemOutcome:
    """Report what was not done, and why."""
    return ItemOutcome(action_id=item.action_id, match_key=item.match_key, fate=ActionResult.REFUSED, reason=reason)


def waits(item: PlanItem, doubt: str, *, seen: Mapping[str, Any] | None = None) -> ItemOutcome:
    """Report actions of which it is not known whether they were done. A person ends that, or a proof that they were."""
    reason = (
        f"{LOOK}: {doubt}. Look whether it was done; only if not: tallystick compensation reopen CONTRACT_FILE "
        f"{item.action_id} --by NAME --reason TEXT"
    )
    return replace(refused(item, reason), waits=True, seen=seen or {})


def _tell_recorded(work: ExecutionContext, n: int, outcome: ItemOutcome) -> None:
    work.on_progress(ExecutorStep.RECORDED, {"item": n, "fate": outcome.fate})
