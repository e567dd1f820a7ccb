"""The proof in the progress topic about a plan's actions: which were published, and which a person has to look at.

Never stops for one action: a record that proves nothing, or that may have been deleted, holds up its own alone. Asks
the topic, and the store for its executors' key and for the plans that records name.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from tallystick.compensation.plan import PlanItem
from tallystick.compensation.progress_record import ExecutorKey, Planned, judge_progress, sealed_plans, topics_of
from tallystick.executor.effects.action_log import ExecutionContext
from tallystick.executor.progress_topic import ProgressLog, read_progress
from tallystick.kafka_log.committed_records import SettledTopics
from tallystick.store.plans.executor_key_store import read_executor_key
from tallystick.store.plans.plan_store import (
    PROGRESS_END,
    PROGRESS_FROM,
    PROGRESS_TOPIC_ID,
    ActionState,
    StoredAction,
    published_behind,
    read_plan,
)


@dataclass(frozen=True, kw_only=True)
class ProgressProof:
    """doubts: why a person has to look, by action. seen: kept with those, so that a person can void what stood there.

    behind: of those that were published, where their topics ended before, by topic and partition, as far as that is
    known. By default nothing was asked.
    """

    published: frozenset[UUID] = frozenset()
    doubts: Mapping[UUID, str] = field(default_factory=dict)
    behind: Mapping[UUID, Mapping[str, Any]] = field(default_factory=dict)
    seen: Mapping[str, Any] = field(default_factory=dict)


def prove_progress(
    work: ExecutionContext, items: Sequence[PlanItem], actions: Mapping[UUID, StoredAction], settled: SettledTopics
) -> ProgressProof:
    """Prove the progress of these items. Audits records that are about no action. Raises ProgressHeld, ProgressLost."""
    log = read_progress(work.connections.kafka, work.contract.name, settled, {item.action_id for item in items})
    if log.stray_count:
        work.audit("progress_not_ours", place=log.place, records=log.stray_count, first_offsets=list(log.strays))
    key = read_executor_key(work.engine)
    planned = _planned(work, log, key, actions)
    published, doubts = set(), {}
    for item in items:
        action = actions.get(item.action_id)
        found = judge_progress(
            item,
            log.records.get(item.action_id, ()),
            key=key,
            planned=planned,
            reopened=action.reopened if action else 0,
            void_before=action.void_before(log.topic_id) if action else 0,
        )
        if found.published:
            published.add(item.action_id)
        elif doubt := found.doubt or ("" if item.action_id in work.begun else _why_lost(action, log)):
            doubts[item.action_id] = doubt
    seen = {PROGRESS_TOPIC_ID: log.topic_id, PROGRESS_END: log.kafka_offset_end}
    behind = published_behind(work.engine, planned) if published else {}
    return ProgressProof(published=frozenset(published), doubts=doubts, behind=behind, seen=seen)


def _planned(
    work: ExecutionContext, log: ProgressLog, key: ExecutorKey, actions: Mapping[UUID, StoredAction]
) -> Planned:
    """Return the plans that sealed records name, as far as the store knows them."""
    named: set[UUID] = set()
    for action_id, records in log.records.items():
        action = actions.get(action_id)
        named |= sealed_plans(records, key, action_id, reopened=action.reopened if action else 0)
    others = [read_plan(work.engine, plan_id) for plan_id in sorted(named - {work.plan.plan_id})]
    return topics_of([work.plan, *filter(None, others)])


def _why_lost(action: StoredAction | None, log: ProgressLog) -> str:
    """Return why the record of an action that an earlier start has begun may have been there and be gone; "": it was
    not.

    Where it was begun says from where on its record would stand. What this start was the first to begin has none.
    A batch that nobody gets to read may have its key: compaction then leaves that one, and takes the record.
    """
    if action is None or action.state is not ActionState.EXECUTING:
        return ""
    if action.outcome.get(PROGRESS_TOPIC_ID) != log.topic_id:
        return f"an earlier start has begun it, and {log.place} was made anew since: its record may be gone"
    if log.log_start > int(action.outcome.get(PROGRESS_FROM, 0)):
        return (
            f"an earlier start has begun it, and records of {log.place} below {log.log_start} were deleted since: its "
            "own may be gone"
        )
    if log.unread_at >= int(action.outcome.get(PROGRESS_FROM, 0)):
        return (
            f"an earlier start has begun it, and its record may be hidden: nobody gets to read the batch of "
            f"{log.place} at {log.unread_at}, which may have its key"
        )
    return ""
