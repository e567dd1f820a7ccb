"""Reopens an action: a person has looked, and the next plan may take its break up again.

Records that say that the action was published may stand on the progress topic for ever, whoever wrote them. So a
reopened action remembers up to where they are void, and executors seal it otherwise from then on: a record of before
that comes after this proves nothing any more, but a person has to look again. What stands on the topic or in the ledger
is proven absent as ever before anything is written.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Engine, func, insert, null, select, update

from tallystick.model.errors import TallystickError
from tallystick.store.break_lock import hold_breaks
from tallystick.store.plans.claim_store import hold_claims, outstanding_among
from tallystick.store.plans.plan_store import PROGRESS_END, PROGRESS_TOPIC_ID, REOPENED, ActionState, action_of
from tallystick.store.schema import audit, compensation_action, compensation_plan

_NO_PROOF: Mapping[str, Any] = {}


class ReopenRefused(TallystickError):
    """This action cannot be reopened. The message says what was found, what was expected and what to do."""


@dataclass(frozen=True, kw_only=True)
class ActionReopened:
    """The changes of a reopening. was: the action's state before. times: how often it has been reopened by now."""

    action_id: UUID
    break_id: UUID
    plan_id: UUID
    was: ActionState
    times: int


def reopen_action(
    engine: Engine,
    contract_name: str,
    action_id: UUID,
    *,
    by: str,
    reason: str,
    proof: Mapping[str, Any] = _NO_PROOF,
    before: int | None = None,
) -> ActionReopened:
    """Let another plan take the action's break. by, reason: of the person who has looked, not empty. proof: who agreed,
    and how that is known, for the trail. before: how often it had been reopened when they agreed; None: not asked.

    Only of one that is done, or that waits for a person: while an executor holds it nobody can say what it does. And
    only while its break is outstanding: else no plan takes it up. Raises ReopenRefused.
    """
    with engine.begin() as connection:
        hold_claims(connection)
        hold_breaks(connection, contract_name)
        c = compensation_action.c
        asked = (
            select(compensation_action)
            .join(compensation_plan, compensation_plan.c.plan_id == c.plan_id)
            .where(c.action_id == action_id, compensation_plan.c.contract == contract_name)
        )
        row = connection.execute(asked).one_or_none()
        if row is None:
            raise ReopenRefused(f"{contract_name}: no plan of it has begun action {action_id}; expected one that has")
        action = action_of(row)
        if reason_against := why_not_reopened(action.state, action.break_id) or _why_again(action.reopened, before):
            raise ReopenRefused(f"{contract_name}: action {action_id} {reason_against}")
        assert action.break_id is not None
        if not outstanding_among(engine, contract_name, [action.break_id]):
            raise ReopenRefused(
                f"{contract_name}: action {action_id}: break {action.break_id} is not outstanding any more: it was "
                "cleared or written off, or its item answers for another break by now; expected one that a plan can "
                f"take up; look at it: tallystick explain {action.break_id}"
            )
        connection.execute(
            update(compensation_action)
            .where(c.action_id == action_id)
            .values(
                state=ActionState.REFUSED,
                outcome={"reason": f"reopened by {by}: {reason}"},
                reopened=c.reopened + 1,
                void_progress=_void(action.outcome),
                recorded_at=func.clock_timestamp(),
            )
        )
        done = ActionReopened(
            action_id=action_id,
            break_id=action.break_id,
            plan_id=action.plan_id,
            was=action.state,
            times=action.reopened + 1,
        )
        _audit(connection, contract_name, done, dict(action.outcome), by=by, reason=reason, proof=proof)
        return done


def why_not_reopened(state: ActionState, break_id: UUID | None) -> str | None:
    """Return why an action may not be reopened, as the rest of a sentence; None: it may."""
    if break_id is None:
        return "ends a hanging transaction; its marker cannot be taken back, and the next run says what hangs"
    if state is ActionState.EXECUTING:
        return "was begun and has not ended; expected one that is done or waits for a person; act on its plan again"
    if state is ActionState.REFUSED:
        return "was refused, so the next plan may take its break already; expected one that is done or waits"
    return None


def _why_again(reopened: int, before: int | None) -> str | None:
    """No sheet counts twice, also where it was read before somebody else reopened the action by it."""
    if before is None or reopened == before:
        return None
    return f"was reopened {reopened} times by now; expected {before}, as whoever signed has seen it; sign it anew"


def _void(outcome: Any) -> Any:
    """What the start that found it doubtful had read of the progress topic. NULL where none did: then the next claim
    says where the topic ends.
    """
    if PROGRESS_END not in outcome:
        return null()
    return {PROGRESS_TOPIC_ID: outcome[PROGRESS_TOPIC_ID], "before": outcome[PROGRESS_END]}


def _audit(
    connection: Connection,
    contract_name: str,
    done: ActionReopened,
    outcome: Any,
    *,
    by: str,
    reason: str,
    proof: Mapping[str, Any],
) -> None:
    detail = dict(proof) | {
        "action_id": str(done.action_id),
        "break_id": str(done.break_id),
        "was": done.was,
        "outcome": outcome,
        "times": done.times,
        "reason": reason,
    }
    row = {"contract": contract_name, "plan_id": done.plan_id, "actor": by, "event": REOPENED, "detail": detail}
    connection.execute(insert(audit), row)
