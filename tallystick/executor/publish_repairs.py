"""Repairs that publish events, in producer transactions with their progress."""

import uuid
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from confluent_kafka import Producer
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential

from tallystick.compensation.plan import (
    PlanItem,
    PlanRefused,
    RepairKind,
)
from tallystick.compensation.progress_record import progress_record
from tallystick.compensation.republished_event import (
    event_at,
    event_headers,
    event_value,
    reversal_value,
)
from tallystick.executor.effects.action_log import (
    ActionResult,
    ExecutionContext,
    ItemOutcome,
    record,
    record_each,
    refused,
)
from tallystick.executor.effects.publish_events import (
    OutgoingRecord,
    TransactionAborted,
    open_publisher,
    publish_together,
)
from tallystick.executor.effects.step import ExecutorStep
from tallystick.executor.progress_topic import ensure_progress_topic, progress_topic_name
from tallystick.executor.prove_repairs import (
    Proof,
    fate_of_action,
    prove_actions,
    topics_of,
    why_unproven,
)
from tallystick.store.plans.executor_key_store import read_executor_key
from tallystick.store.plans.plan_store import (
    PUBLISHING,
    ActionState,
    StoredAction,
)

_ATTEMPTS = 5


_TOGETHER = 500
"""Events of one producer transaction: a long plan can be stopped between two, and each is done long before Kafka's
time-out for it."""


def execute_publishing(work: ExecutionContext, items: Sequence[PlanItem]) -> tuple[ItemOutcome, ...]:
    progress = ensure_progress_topic(work.connections.kafka, work.contract.name)
    actions = work.claim(
        items,
        progress_topic_id=progress.topic_id,
        progress_from=progress.written_end,
        transactional_id=work.transactional_id,
    )
    _refuse_unfenced(work, actions)
    work.audit("executing", progress_topic_id=progress.topic_id, transactional_id=work.transactional_id)
    work.on_progress(ExecutorStep.EXECUTING, {"transactional_id": work.transactional_id})
    attempts = Retrying(
        stop=stop_after_attempt(_ATTEMPTS),
        wait=wait_exponential(multiplier=0.2, max=5),
        retry=retry_if_exception_type(TransactionAborted),
        before_sleep=lambda state: work.audit("aborted", attempt=state.attempt_number),
        reraise=True,
    )
    outcomes = attempts(_attempt, work, items, actions)
    record_each(work, outcomes)
    return outcomes


def _refuse_unfenced(work: ExecutionContext, actions: Mapping[UUID, StoredAction]) -> None:
    """Refuse where an executor under another transactional id may be at work: ours would not fence it."""
    begun = [action for action in actions.values() if action.state is ActionState.EXECUTING]
    under = {str(action.outcome.get("transactional_id", work.transactional_id)) for action in begun}
    if others := sorted(under - {work.transactional_id}):
        raise PlanRefused(
            f"{work.contract.name}: the plan was begun under transactional.id {others[0]}, got "
            f"{work.transactional_id}; expected the same TALLYSTICK_ENVIRONMENT to finish it"
        )


def _attempt(
    work: ExecutionContext, items: Sequence[PlanItem], actions: Mapping[UUID, StoredAction]
) -> tuple[ItemOutcome, ...]:
    """Fence, read, prove, publish; in this order, or a predecessor's work goes unseen."""
    publisher = open_publisher(work.connections.kafka, transactional_id=work.transactional_id)
    work.on_progress(ExecutorStep.FENCED, {})
    proof = prove_actions(work, items, actions=actions, progress_topics=(progress_topic_name(work.contract.name),))
    fates: dict[UUID, ItemOutcome | None] = {
        item.action_id: fate_of_action(item, proof) or why_unproven(work, item, proof) for item in items
    }
    publish = [item for item in items if fates[item.action_id] is None]
    for first in range(0, len(publish), _TOGETHER):
        batch = publish[first : first + _TOGETHER]
        try:
            work.refuse_for_now()
        except PlanRefused:
            for outcome in filter(None, fates.values()):
                record(work, outcome)
            raise
        reasons = work.why_not_now(batch)
        fates |= {item.action_id: refused(item, reasons[item.action_id]) for item in batch if item.action_id in reasons}
        if still := [item for item in batch if item.action_id not in reasons]:
            work.refuse_overtaken(still)
            fates.update(_publish_batch(work, publisher, still, proof))
    return tuple(fate for item in items if (fate := fates[item.action_id]) is not None)


def _publish_batch(
    work: ExecutionContext, publisher: Producer, items: Sequence[PlanItem], proof: Proof
) -> dict[UUID, ItemOutcome]:
    """Publish one producer transaction, and report before and after."""
    ends = {
        topic: {str(part.partition): part.written_end for part in proof.settled.of(topic)} for topic in topics_of(items)
    }
    work.audit(PUBLISHING, actions=[str(item.action_id) for item in items], ends=ends)
    places = _publish(work, publisher, items, proof)
    work.begun.difference_update(places)
    work.audit("published", places={str(action_id): place for action_id, place in places.items()})
    return {
        item.action_id: ItemOutcome(
            action_id=item.action_id,
            match_key=item.match_key,
            fate=ActionResult.PUBLISHED,
            place=places[item.action_id],
        )
        for item in items
    }


def _publish(
    work: ExecutionContext, publisher: Producer, items: Sequence[PlanItem], proof: Proof
) -> dict[UUID, Mapping[str, Any]]:
    """Publish events and progress in one producer transaction; return the place of each event."""
    session = f"tallystick-{uuid.uuid4()}"
    events = [_event_of(work, item, proof, session=session) for item in items]
    progress_topic, key = progress_topic_name(work.contract.name), read_executor_key(work.engine)
    progress = [
        OutgoingRecord(topic=progress_topic, key=action, value=value)
        for action, value in (
            progress_record(key, work.plan, item, reopened=work.reopened.get(item.action_id, 0)) for item in items
        )
    ]
    records = [*events, *progress]
    places = publish_together(
        publisher, records, on_progress=work.on_progress, why_not_commit=lambda: _why_not_commit(work, items)
    )
    return {item.action_id: place for item, place in zip(items, places, strict=False)}


def _why_not_commit(work: ExecutionContext, items: Sequence[PlanItem]) -> str | None:
    """Return why not to commit; the next attempt says so of each item, or stops. The records hold the log's stable end
    by now, so that no run can clear their breaks behind this answer.
    """
    try:
        work.refuse_for_now()
    except PlanRefused as error:
        return str(error)
    reasons = work.why_not_now(items)
    return next(iter(reasons.values()), None)


def _event_of(work: ExecutionContext, item: PlanItem, proof: Proof, *, session: str) -> OutgoingRecord:
    headers, rules = event_headers(item, session=session), work.contract.compensation
    if item.kind is RepairKind.REPUBLISH or rules is None:
        key, value = item.transaction_key.encode(), event_value(item, work.contract.event)
    else:
        copy = event_at(item.reverses, proof.events.of(item))
        key = copy.message_key
        value = reversal_value(copy, work.contract.event, negated=rules.reversal == "negated")
    return OutgoingRecord(topic=item.topic, key=key, value=value, headers=headers)
