"""The proof for each action before it begins: by the log, the ledger and the progress topic."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeGuard
from uuid import UUID

from sqlalchemy import Engine

from tallystick.compensation.plan import INTO_LEDGER, CurrentRow, OffsetsUnread, Plan, PlanItem, RepairKind
from tallystick.compensation.planning import why_correction_may_have_come, why_event_may_have_come
from tallystick.compensation.repair_effect import why_not_taken_back
from tallystick.compensation.republished_event import (
    CurrentEvent,
    CurrentEvents,
    find_events,
    is_as_planned,
    unread_ranges,
    why_not_postable,
    why_not_read_whole,
    why_not_reversible,
)
from tallystick.contract.contract import Contract
from tallystick.contract.event import EventFields
from tallystick.executor.draw_plan import unreadable_since
from tallystick.executor.effects.action_log import (
    SETTLE_SECONDS,
    ActionResult,
    ExecutionContext,
    ItemOutcome,
    refused,
    waits,
)
from tallystick.executor.effects.post_to_ledger import writers_end
from tallystick.executor.effects.source_rows import read_source_rows
from tallystick.executor.effects.step import ExecutorStep
from tallystick.executor.progress_proof import ProgressProof, prove_progress
from tallystick.kafka_log.committed_records import SettledTopics, cleaned_partitions, read_committed, settle_topics
from tallystick.ledger.postgres_connection import open_ledger
from tallystick.model.cut import JudgedPart
from tallystick.model.offsets import TopicPartition
from tallystick.store.plans.claim_store import judged_parts
from tallystick.store.plans.plan_store import (
    ActionState,
    StoredAction,
)
from tallystick.store.runs.contract_store import contract_begun_under, contract_of_fingerprint
from tallystick.store.runs.unread_store import last_cuts_with_offsets_unread


def contract_to_look_by(engine: Engine, contract: Contract, plan: Plan) -> Contract:
    """Return the contract; if it has changed since the plan began, with the plan's own word on how a copy is taken
    back and where rows are posted, and where it no longer says how the plan's actions are done, with the plan's rules,
    or those of its cut.

    They say where to look what a plan that has begun has done. What may be done, the contract says as it is now.
    Events of ours are read as JSON, as every contract has them that lets some be written: another one would see none.
    """
    if contract.fingerprint == plan.contract_fingerprint:
        return contract
    rules, kinds = contract.compensation, {item.kind for item in plan.items}
    if kinds - {RepairKind.TRIGGER} and contract.event.format != "json":
        as_json = contract.event.model_copy(update={"format": "json"}).asking(None)
        contract = contract.model_copy(update={"event": as_json})
    posts, triggers = not kinds.isdisjoint(INTO_LEDGER), RepairKind.TRIGGER in kinds
    if rules is None or (posts and not rules.post) or (triggers and not rules.trigger):
        then = contract_begun_under(engine, contract.name, plan.contract_fingerprint, cut_n=plan.cut_n)
        return contract.model_copy(update={"compensation": then.compensation}) if then else contract
    then = contract_of_fingerprint(engine, contract.name, plan.contract_fingerprint)
    if then is None or then.compensation is None:
        return contract
    as_then: dict[str, Any] = {"reversal": then.compensation.reversal}
    if posts and then.compensation.post:
        as_then["post"] = then.compensation.post
    return contract.model_copy(update={"compensation": rules.model_copy(update=as_then)})


def why_done_otherwise(engine: Engine, contract: Contract, plan: Plan) -> dict[UUID, str]:
    """Return the actions of a begun plan that the contract lets be done in another way than was approved, and why.

    contract: as it is now. Of a plan that an earlier release began under a contract of no cut, nobody knows that way.
    """
    if contract.fingerprint == plan.contract_fingerprint:
        return {}
    then = contract_of_fingerprint(engine, contract.name, plan.contract_fingerprint)
    reasons = {kind: _why_otherwise(kind, then, contract) for kind in RepairKind}
    return {item.action_id: reason for item in plan.items if (reason := reasons[item.kind])}


def _why_otherwise(kind: RepairKind, contract_then: Contract | None, contract_now: Contract) -> str | None:
    """What else an item says of how it is done is part of the item, and held against today's plan. A missing event is
    JSON, and the names of its fields cannot change while the books go on.
    """
    then, now = contract_then.compensation if contract_then else None, contract_now.compensation
    if kind is RepairKind.REPUBLISH:
        return None
    if kind is RepairKind.TRIGGER:
        changed = changed_connection(contract_then, contract_now)
        return changed and (
            f"its plan began under compensation.trigger.connection {changed[0]}, and the contract has {changed[1]}"
        )
    if contract_then is None or then is None or now is None:
        return "the contract has changed, and how its plan was to be done is not stored, readable or in it any more"
    if kind is not RepairKind.POST and then.reversal != now.reversal:
        return f"its plan was approved under compensation.reversal {then.reversal}, and the contract has {now.reversal}"
    if kind in INTO_LEDGER and _rows_written(kind, contract_then) != _rows_written(kind, contract_now):
        return "the contract writes other columns, rows or actions_table into the ledger than its plan's did"
    return None


def changed_connection(then: Contract | None, now: Contract) -> tuple[str, str] | None:
    """Return the connections of compensation.trigger of then and now; None: it is the same, or one of them has none."""
    both = (one.compensation.trigger if one and one.compensation else None for one in (then, now))
    was, has = (trigger.connection if trigger else None for trigger in both)
    return None if was is None or has is None or was == has else (was, has)


def _rows_written(kind: RepairKind, contract: Contract) -> tuple[Any, ...] | None:
    if contract.compensation is None or contract.compensation.post is None:
        return None
    post, columns = contract.compensation.post, contract.ledger.columns
    taken_back_in = columns.reverses if kind is RepairKind.COUNTERPOST else None
    return post.columns, post.rows, post.actions_table, columns.action_id, taken_back_in


@dataclass(frozen=True, kw_only=True)
class LogProof:
    """The facts about the topics of items: what they have, and what of them runs have read."""

    events: CurrentEvents
    settled: SettledTopics
    judged: Mapping[TopicPartition, JudgedPart]
    offsets_unread: OffsetsUnread
    unreadable_since: Mapping[UUID, int]
    """Breaks that may be about what the log has lost since they were planned, and the cut that could not read that."""
    cleaned: frozenset[TopicPartition]
    """Partitions of which a cleaner has taken something that no run has read."""

    @property
    def held(self) -> frozenset[str]:
        return self.settled.held


@dataclass(frozen=True, kw_only=True)
class Proof(LogProof):
    """The facts about the plan's items, all read after the publisher had fenced its predecessors."""

    actions: Mapping[UUID, StoredAction]
    progress: ProgressProof
    rows: Mapping[str, tuple[CurrentRow, ...]]
    names: EventFields
    taken_back: Mapping[UUID, frozenset[str]]
    negated: bool
    writers_open: bool


def is_done(action: StoredAction | None) -> TypeGuard[StoredAction]:
    return action is not None and action.state is ActionState.DONE


def repaired_here(plan: Plan) -> tuple[PlanItem, ...]:
    return tuple(item for item in plan.items if item.kind is not RepairKind.TRIGGER)


def prove_actions(
    work: ExecutionContext,
    items: Sequence[PlanItem],
    *,
    actions: Mapping[UUID, StoredAction],
    progress_topics: Sequence[str],
) -> Proof:
    """Read progress, log and ledger, in this order: each up to its end at that moment."""
    kafka, contract, topics = work.connections.kafka, work.contract, topics_of(items)
    settled = settle_topics(kafka, {*progress_topics, *topics}, wait_seconds=SETTLE_SECONDS)
    progress, rules = ProgressProof(), contract.compensation
    if progress_topics:
        progress = prove_progress(work, items, actions, settled)
        work.on_progress(ExecutorStep.PROGRESS_READ, {"published": len(progress.published)})
    partitions = [part for topic in topics for part in settled.of(topic)]
    events = find_events(read_committed(kafka, partitions), items, contract.event)
    with open_ledger(work.connections.ledger_dsn) as ledger:
        posts = any(item.kind in INTO_LEDGER for item in items)
        writers_open = posts and not writers_end(ledger, contract.ledger.table, wait_seconds=SETTLE_SECONDS)
        rows = read_source_rows(ledger, contract.ledger, {item.match_key for item in items})
    log = prove_log(work, items, settled, events)
    work.on_progress(ExecutorStep.PROVED, {})
    return Proof(
        **vars(log),
        actions=actions,
        progress=progress,
        rows=rows,
        names=contract.event,
        taken_back=work.taken_back,
        negated=rules is not None and rules.reversal == "negated",
        writers_open=writers_open,
    )


def prove_log(
    work: ExecutionContext, items: Sequence[PlanItem], settled: SettledTopics, events: CurrentEvents
) -> LogProof:
    """Ask what runs have read of the items' topics: after the log was read, before the breaks are asked for."""
    contract = work.contract
    partitions = [part for topic in topics_of(items) for part in settled.of(topic)]
    judged = judged_parts(work.engine, contract.name, planned_at=work.plan.cut_n)
    cleaned = cleaned_partitions(work.connections.kafka, unread_ranges(partitions, judged))
    # behind that: a cut that counts as judged may have lost what it was to read
    offsets_unread = last_cuts_with_offsets_unread(
        work.engine,
        contract.name,
        contract.topics,
        log_starts={part.topic_partition: part.log_start for part in partitions},
        planned_at=work.plan.cut_n,
    )
    return LogProof(
        events=events,
        settled=settled,
        judged=judged,
        offsets_unread=offsets_unread,
        unreadable_since=unreadable_since(work.engine, contract, items, offsets_unread),
        cleaned=cleaned,
    )


def fate_of_action(item: PlanItem, proof: Proof) -> ItemOutcome | None:
    """Return the result of an action that must not be published now; None: it may be."""
    action, standing = proof.actions.get(item.action_id), proof.events.of(item)
    if item.kind in INTO_LEDGER:
        return _post_fate(item, action, proof)
    named = [event for event in standing if event.action_id == str(item.action_id)]
    ours = [event for event in named if is_as_planned(event, item, proof.names, negated=proof.negated)]
    if ours:
        return already_done(item, ours[0].place)
    if item.action_id in proof.progress.published:
        return _published_once(item, proof, named)
    if is_done(action):
        return already_done(item, action.outcome)
    if named:
        return waits(item, _says_otherwise(named[0]), seen=proof.progress.seen)
    if doubt := proof.progress.doubts.get(item.action_id, ""):
        return waits(item, doubt, seen=proof.progress.seen)
    if action is not None and action.state is ActionState.WAITING:
        return _still_waits(item, action)
    if item.kind is RepairKind.REPUBLISH and standing:
        return refused(item, f"the event stands: {_where(standing[0])}")
    if item.topic in proof.held:
        return refused(item, why_held(item))
    if hidden := why_hidden(item, proof):
        return refused(item, hidden)
    elsewhere = proof.taken_back.get(item.action_id, frozenset())
    if item.kind is RepairKind.REVERSE and (
        reason := why_not_reversible(item, standing, proof.names, elsewhere=elsewhere, negated=proof.negated)
    ):
        return refused(item, reason)
    if [row.source for row in proof.rows.get(item.match_key, ())] != [item.row]:
        return refused(item, "the ledger row is gone, doubled or changed")
    return None


def why_hidden(item: PlanItem, proof: LogProof) -> str | None:
    """Return why an event of the item may have come and not be seen; None: it may not."""
    if hidden := proof.events.why_hidden(item):
        return hidden
    cleaned = [part.topic_partition for part in proof.settled.of(item.topic) if part.topic_partition in proof.cleaned]
    if not cleaned:
        return None
    return f"not provable: a cleaner has taken records of {cleaned[0]} that no run has read; the next run says which"


def why_unproven(work: ExecutionContext, item: PlanItem, proof: Proof) -> ItemOutcome | None:
    """Return why an action that neither side forbids is not proven, or not allowed any more; None: neither."""
    reason = work.stopped.get(item.action_id)
    if reason is None and item.kind is not RepairKind.COUNTERPOST:
        reason = why_unread(item, proof, planned_at=work.plan.cut_n)
    return refused(item, reason) if reason else None


def why_unread(item: PlanItem, proof: LogProof, *, planned_at: int) -> str | None:
    """Return why the item's event, or another one of its key, may have come and gone since it was planned, with no run
    that could read it; None: it may not.
    """
    if reason := why_not_read_whole(proof.settled.of(item.topic), proof.judged):
        return reason
    missing, unread = item.kind is RepairKind.REPUBLISH, proof.offsets_unread
    unread_at = unread.at if missing else unread.of_topic(item.topic)
    if unread_at > planned_at:
        return (why_event_may_have_come if missing else why_correction_may_have_come)(unread_at)
    gone = proof.unreadable_since.get(item.break_id)
    if gone is None:
        return None
    return (
        f"not provable: since this was planned the log may have lost what cut {gone} could not read, or what a later "
        "leader wrote; let the next window be judged, then plan anew"
    )


def why_overtaken(work: ExecutionContext, item: PlanItem, proof: Proof) -> str | None:
    """Return why the proof of a post does not hold any more: what came since may amend or cancel it. None: it holds.

    Of many posts each is written a while after all were proven. Raises BrokerUnreachable.
    """
    if judged_parts(work.engine, work.contract.name, planned_at=work.plan.cut_n) != proof.judged:
        return "a run has judged since this was proven; start the plan again"
    if item.kind is not RepairKind.POST:
        return None
    then = {part.topic_partition: part for part in proof.settled.of(item.topic)}
    settled = settle_topics(work.connections.kafka, [item.topic], wait_seconds=SETTLE_SECONDS)
    if item.topic in settled.held:
        return why_held(item)
    since = []
    for part in settled.of(item.topic):
        before = then.get(part.topic_partition)
        if before and (part.topic_id, part.leader_epoch) != (before.topic_id, before.leader_epoch):
            return f"{part.topic_partition} has another leader since this was proven; start the plan again"
        if before and part.lso < before.lso:
            return f"{part.topic_partition} was cut back since this was proven; start the plan again"
        proven_up_to = before.lso if before else 0
        if part.log_start > proven_up_to:
            return f"{part.topic_partition} has lost records that came since this was proven; start the plan again"
        since.append(replace(part, log_start=proven_up_to))
    came = find_events(read_committed(work.connections.kafka, since), [item], proof.names)
    if came.of(item):
        return "an event of its key has come since this was proven; start the plan again"
    return came.why_hidden(item, proof.events.of(item))


def _post_fate(item: PlanItem, action: StoredAction | None, proof: Proof) -> ItemOutcome | None:
    """Return the result of an action that has not posted yet; the transaction that posts asks once more."""
    if is_done(action):
        return already_done(item, action.outcome)
    if action is not None and action.state is ActionState.WAITING:
        return _still_waits(item, action)
    if item.kind is RepairKind.COUNTERPOST:
        reason = why_not_taken_back(item, proof.rows.get(item.match_key, ()))
    else:
        reason = why_hidden(item, proof) or why_not_postable(item, proof.events.of(item), proof.names)
        if reason is None and item.topic in proof.held:  # what amends or cancels the event may stand behind it
            reason = why_held(item)
    if reason is None and proof.writers_open:
        reason = "not provable now: a database transaction that is open in the ledger may hold a row of it"
    return refused(item, reason) if reason else None


def _published_once(item: PlanItem, proof: Proof, named: Sequence[CurrentEvent]) -> ItemOutcome:
    """Judge an action whose sealed record says published and whose event is gone: retention has taken that, or the
    record is a copy of an aborted one. named: events of the action that do not say what the plan says.

    Who may read the topic can copy it while its transaction is open. The log tells while it has all that came since.
    """
    ends = proof.progress.behind.get(item.action_id, {}).get(item.topic)
    parts = proof.settled.of(item.topic)
    has_all = ends is not None and all(part.log_start <= ends.get(str(part.partition), 0) for part in parts)
    if has_all and item.topic not in proof.held:
        seen = proof.events.why_hidden(item) or f"{item.topic} has all events since and none of it"
        gone = f"its progress says that it was published, and {seen}"
        return waits(item, _says_otherwise(named[0]) if named else gone, seen=proof.progress.seen)
    return already_done(item, {"topic": item.topic})


def _still_waits(item: PlanItem, action: StoredAction) -> ItemOutcome:
    """Keep an action waiting. Its cause may be gone from the topic or the ledger; that does not prove that it was not
    done.
    """
    reason = str(action.outcome.get("reason", ""))
    seen = {name: value for name, value in action.outcome.items() if name != "reason"}
    return replace(refused(item, reason), waits=True, seen=seen)


def already_done(item: PlanItem, place: Mapping[str, Any]) -> ItemOutcome:
    return ItemOutcome(
        action_id=item.action_id, match_key=item.match_key, fate=ActionResult.ALREADY_PUBLISHED, place=place
    )


def outcome_figures(outcome: ItemOutcome) -> dict[str, str]:
    return {
        "action_id": str(outcome.action_id),
        "match_key": outcome.match_key,
        "fate": outcome.fate,
        "reason": outcome.reason,
    }


def topics_of(items: Sequence[PlanItem]) -> tuple[str, ...]:
    """Return the topics that have these items' events; for a row to take back, the ledger alone is read."""
    return tuple(sorted({item.topic for item in items if item.kind is not RepairKind.COUNTERPOST}))


def why_held(item: PlanItem) -> str:
    """Return the reason not to act on an item while a transaction holds its topic."""
    return f"not provable now: an open producer transaction holds {item.topic}"


def _says_otherwise(event: CurrentEvent) -> str:
    return f"{_where(event)} has the action's header and does not say what the plan says"


def _where(event: CurrentEvent) -> str:
    return f"{event.topic}[{event.partition}] at {event.kafka_offset}"
