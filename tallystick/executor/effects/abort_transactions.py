"""The aborts of a plan: carried out, rehearsed, and checked afterwards, by abort_marker.py.

A marker is its own progress: the next start finds it, or proves again that the transaction hangs.
"""

from dataclasses import replace
from typing import Any

from kafka.admin import KafkaAdminClient
from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception_type,
    retry_if_result,
    stop_after_delay,
    wait_exponential,
)

from tallystick.compensation.abort_plan import AbortItem
from tallystick.compensation.plan import Plan
from tallystick.compensation.repair_effect import RepairEffect
from tallystick.connections.connections import Connections
from tallystick.executor.effects.abort_marker import (
    State,
    TransactionState,
    look_at,
    read_evidence,
    wait_ended,
    write_abort,
)
from tallystick.executor.effects.action_log import (
    SETTLE_SECONDS,
    ActionResult,
    ExecutionContext,
    ItemCheck,
    ItemOutcome,
    run_actions,
)
from tallystick.executor.effects.step import ExecutorStep
from tallystick.kafka_log.fetch import BrokerUnreachable, open_admin
from tallystick.store.plans.plan_store import ActionState, StoredAction, ending_alone

_ANSWER_SECONDS = 30
"""How long we look for an answer of all coordinators. Another broker takes a dead one's over within 9 s (Kafka's
broker.session.timeout.ms) and loads them. Twice this and SETTLE_SECONDS are less than the next executor waits for us.
"""


def execute_aborts(work: ExecutionContext) -> tuple[ItemOutcome, ...]:
    """Each by itself, and by one executor at a time."""
    if not work.plan.aborts:
        return ()
    actions = work.claim(work.plan.aborts)
    work.audit("executing", transactions=[item.place for item in work.plan.aborts])
    work.on_progress(ExecutorStep.EXECUTING, {"transactions": len(work.plan.aborts)})
    return run_actions(
        work,
        work.plan.aborts,
        lambda item: _abort(work, item, actions.get(item.action_id)),
        alone=lambda: ending_alone(work.engine, work.contract.name),
    )


def rehearse_aborts(work: ExecutionContext) -> tuple[ItemOutcome, ...]:
    """Prove each, and write nothing."""
    if not work.plan.aborts:
        return ()
    with open_admin(work.connections.kafka) as admin:
        return tuple(_outcome(item, look_at(admin, item), ActionResult.WOULD_DO) for item in work.plan.aborts)


def check_aborts(plan: Plan, connections: Connections) -> tuple[ItemCheck, ...]:
    """Check that each transaction is ended by our marker, and that the LSO has passed its beginning."""
    if not plan.aborts:
        return ()
    with open_admin(connections.kafka) as admin:
        found = [(item, look_at(admin, item)) for item in plan.aborts]
    return tuple(
        ItemCheck(match_key=item.place, effect=_effect(standing), places=(standing.place,) if standing.place else ())
        for item, standing in found
    )


def _abort(work: ExecutionContext, item: AbortItem, action: StoredAction | None) -> ItemOutcome:
    if action is not None and action.state is ActionState.DONE:
        return ItemOutcome(
            action_id=item.action_id, match_key=item.place, fate=ActionResult.ALREADY_DONE, place=action.outcome
        )
    with open_admin(work.connections.kafka) as admin:
        return _end(work, admin, item)


def _end(work: ExecutionContext, admin: KafkaAdminClient, item: AbortItem) -> ItemOutcome:
    """Evidence, proof, marker, and a look at what stands; in this order, and nothing between proof and marker."""
    standing = _prove(work, admin, item)
    if standing.state is not State.HANGS:
        return _outcome(item, standing, ActionResult.ALREADY_DONE)
    if reason := work.stopped.get(item.action_id) or work.why_too_old():
        return ItemOutcome(action_id=item.action_id, match_key=item.place, fate=ActionResult.REFUSED, reason=reason)
    work.audit("evidence", action_id=str(item.action_id), **read_evidence(admin, item))
    work.audit("ending", action_id=str(item.action_id), place=item.place)
    work.on_progress(ExecutorStep.EVIDENCE_KEPT, {})
    standing = _prove(work, admin, item)
    if standing.state is not State.HANGS:
        return _outcome(item, standing, ActionResult.ALREADY_DONE)
    write_abort(admin, item)
    work.on_progress(ExecutorStep.MARKED, {})
    standing = wait_ended(admin, item, wait_seconds=SETTLE_SECONDS)
    if standing.state is not State.ABORTED:
        raise BrokerUnreachable(
            f"{work.contract.name}: {item.place}: the marker was written, and within {SETTLE_SECONDS} s it is not "
            f"seen to have ended the transaction{f': {standing.reason}' if standing.reason else ''}"
        )
    return _outcome(item, standing, ActionResult.DONE)


def _prove(work: ExecutionContext, admin: KafkaAdminClient, item: AbortItem) -> TransactionState:
    """Return the first state that the cluster answers fully; unanswered where it answers none in time.

    The switch and the minutes are asked before each look. Raises ActingStopped, OutsideActingHours; BrokerUnreachable,
    where the last look found no broker.
    """

    def give_up(looked: RetryCallState) -> TransactionState:
        assert looked.outcome is not None
        standing: TransactionState = looked.outcome.result()
        return replace(standing, reason=f"{standing.reason}; looked for {_ANSWER_SECONDS} s")

    until_answered = Retrying(
        stop=stop_after_delay(_ANSWER_SECONDS),
        wait=wait_exponential(multiplier=0.1, max=2),
        retry=retry_if_result(_is_unanswered) | retry_if_exception_type(BrokerUnreachable),
        before=lambda _: work.refuse_for_now(),
        before_sleep=lambda looked: work.on_progress(
            ExecutorStep.UNANSWERED, {"place": item.place, "looks": looked.attempt_number}
        ),
        retry_error_callback=give_up,
    )
    return until_answered(look_at, admin, item)


def _is_unanswered(standing: TransactionState) -> bool:
    return standing.state is State.UNANSWERED


def _outcome(item: AbortItem, standing: TransactionState, fate: ActionResult) -> ItemOutcome:
    """fate: where it hangs or our marker has ended it; else it is refused."""
    about: dict[str, Any] = {"action_id": item.action_id, "match_key": item.place, "place": standing.place}
    if standing.state in (State.HANGS, State.ABORTED):
        return ItemOutcome(fate=fate, **about)
    return ItemOutcome(fate=ActionResult.REFUSED, reason=standing.reason, **about)


def _effect(standing: TransactionState) -> RepairEffect:
    if standing.state is State.ABORTED and standing.stable:
        return RepairEffect.CLEARED
    return {State.HANGS: RepairEffect.NOT_CLEARED, State.ENDED: RepairEffect.CHANGED}.get(
        standing.state, RepairEffect.HIDDEN
    )
