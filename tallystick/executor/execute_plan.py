"""Carries out a plan: each repair at most once over all plans, whatever crashes, retries or runs twice.

How it works. A break has one action id, for ever. The store says "executing" before Kafka is touched, and says so only
while the break is outstanding: store/claim_store.py. One transactional id per contract and environment fences every
other executor. After init_transactions, and only then, the progress topic tells what was published already; each event
is proven absent from the log once more, or its copy one too many, and its break is asked for once more, and again right
before the commit. What the log retains no more must have been judged: the retained log has to begin no later than the
newest verdict's cut ends. A start that a later one has claimed from since publishes nothing: its actions may be refused
by now. Events and progress records then stand in one producer transaction. The store's outcome is written last and may
be lost: progress decides. What is posted into the ledger has its progress there: ledger_post.py. A hanging
transaction's marker is its own progress, and so is the run of a DAG: hanging_abort.py, dag_trigger.py.

A plan that has begun is held against the newest run as a new one is. What it did is found and recorded first; what it
did not do, and may not do any more, is refused, and another plan may take it.

What it cannot do. A producer of the contract's own that publishes a missing event between our last look and our commit
makes a second copy; the next run finds it.
"""

import json
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, TypeGuard
from uuid import UUID

from confluent_kafka import KafkaException, Producer
from sqlalchemy import Engine
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential

from tallystick.compensation.approval_rules import NotAnApprover, refuse_too_few_people
from tallystick.compensation.plan import (
    INTO_LEDGER,
    ApprovalTooOld,
    CapsExceeded,
    CompensationOff,
    Kind,
    OnePersonOnly,
    Plan,
    PlanItem,
    PlanRefused,
    PlanStale,
    StandingRow,
    plan_id_of,
    refuse_over_caps,
    rules_of,
    why_row_may_have_come,
)
from tallystick.compensation.progress_record import progress_record
from tallystick.compensation.repair_effect import Effect, effect_of, why_not_taken_back
from tallystick.compensation.republished_event import (
    StandingEvent,
    StandingEvents,
    event_at,
    event_headers,
    event_value,
    find_events,
    is_as_planned,
    reversal_value,
    why_not_postable,
    why_not_read_whole,
    why_not_reversible,
)
from tallystick.connections.connections import Connections
from tallystick.contract.change import ContractChangeRefused
from tallystick.contract.contract import Contract
from tallystick.contract.event import EventFields
from tallystick.executor.action_log import (
    SETTLE_SECONDS,
    ItemCheck,
    ItemFate,
    ItemOutcome,
    Work,
    do_each,
    record,
    record_each,
    refuse_begun,
    refused,
    waits,
)
from tallystick.executor.draw_plan import draw_plan, read_source_rows, why_not_any_more
from tallystick.executor.effects.abort_transactions import check_aborts, execute_aborts, rehearse_aborts
from tallystick.executor.effects.post_to_ledger import counterpost_once, post_once, posted_for, read_posted, writers_end
from tallystick.executor.effects.publish_events import (
    OutgoingRecord,
    TransactionAborted,
    open_publisher,
    publish_together,
)
from tallystick.executor.effects.trigger_dags import check_handed_over, hand_over, rehearse_handing_over
from tallystick.executor.progress_proof import ProgressProof, prove_progress
from tallystick.executor.progress_topic import ensure_progress_topic, progress_topic_name
from tallystick.executor.step import ExecutorStep, Tell, tell_nobody
from tallystick.host.terminal_user import Terminal, at_terminal
from tallystick.kafka_log.committed_records import SettledTopics, read_committed, settle_topics
from tallystick.ledger.postgres import open_ledger, read_database_identity
from tallystick.ledger.protocol import LedgerRefused
from tallystick.model.cut import JudgedPart
from tallystick.model.offsets import TopicPartition
from tallystick.model.verdict import Verdict, merge_verdicts
from tallystick.store.clock import store_now
from tallystick.store.plans.approval_store import agreements, requesters
from tallystick.store.plans.claim_store import held_among, judged_parts
from tallystick.store.plans.executor_key_store import read_executor_key
from tallystick.store.plans.plan_store import (
    PUBLISHING,
    ActionState,
    StoredAction,
    append_audit,
    open_actions,
    read_plan,
    spent_today,
)
from tallystick.store.runs.contract_store import read_contract, require_same_books
from tallystick.store.runs.loss_store import last_cut_with_rows_unread
from tallystick.text.plain import foreign_text

_ATTEMPTS = 5
_TOGETHER = 500
"""Events of one producer transaction: a long plan can be stopped between two, and each is done long before Kafka's
time-out for it."""


@dataclass(frozen=True, kw_only=True)
class Execution:
    """What one call of execute_plan did, in the plan's order."""

    plan_id: UUID
    plan_hash: str
    dry_run: bool
    outcomes: tuple[ItemOutcome, ...]

    def count(self, fate: ItemFate) -> int:
        return sum(outcome.fate is fate for outcome in self.outcomes)


@dataclass(frozen=True, kw_only=True)
class VerifyResult:
    """MATCHED: each break of the plan is cleared. INCONCLUSIVE: a transaction hides it, or a DAG has it."""

    verdict: Verdict
    checks: tuple[ItemCheck, ...]


def execute_plan(
    engine: Engine,
    contract: Contract,
    connections: Connections,
    plan: Plan,
    *,
    approved_hash: str,
    approver: str,
    environment: str,
    approved_in: str = "",
    terminal: Terminal | None = None,
    tell: Tell = tell_nobody,
    now: Callable[[], datetime] | None = None,
) -> Execution:
    """Do what was approved, or say why not. Safe to call again with the same arguments after any failure.

    approver: who answers for this start. approved_in: the scheduler's run in which people agreed, whose yes has an age;
    "": whoever has agreed to this plan counts, and where nobody needs to, this call is the approval.
    terminal: where approver sits, on the command line. tell: called with each step once it is done. now: the verdict
    store's clock, unless another is given.
    A new plan must still be what the store would plan now. Of one that has begun, what would not be planned so any more
    is refused by itself, once it is known not to be done.
    A dry run proves every item, publishes nothing and writes only the audit trail.
    The kill switch and the acting hours are asked before each producer transaction: what was committed by then stays
    and is told, the rest is refused for now.
    Raises PlanRefused (PlanStale, ApprovalTooOld, CompensationOff, CapsExceeded, NotAnApprover, OnePersonOnly,
    ActingStopped, OutsideActingHours),
    ContractChangeRefused, ProgressLost; what another start can cure: ProgressHeld, ExecutorFenced, TransactionAborted.
    """
    now = now or partial(store_now, engine)
    rules = contract_to_look_by(engine, contract, plan)
    work = Work(engine, rules, connections, plan, approver, environment, tell, now, approved_in=approved_in)
    begun = {"approved_hash": approved_hash, "dry_run": plan.dry_run, "items": len(plan.actions)}
    work.audit("approved", **begun, **at_terminal(terminal))
    try:
        _refuse_unapproved(work, approved_hash, allowed=contract)
        tell(ExecutorStep.APPROVED, {})
        outcomes = _rehearse(work) if plan.dry_run else _execute(work)
    except (RuntimeError, ConnectionError, KafkaException, ContractChangeRefused, LedgerRefused) as error:
        if isinstance(error, PlanRefused | LedgerRefused):
            refuse_begun(work, str(error))
        tell(ExecutorStep.STOPPED, {"error": type(error).__name__, "message": str(error)})
        work.audit("stopped", error=type(error).__name__, message=str(error))
        raise
    work.audit("finished", **{fate: sum(one.fate is fate for one in outcomes) for fate in ItemFate})
    tell(ExecutorStep.FINISHED, {"outcomes": [_told(outcome) for outcome in outcomes]})
    return Execution(plan_id=plan.plan_id, plan_hash=plan.plan_hash, dry_run=plan.dry_run, outcomes=outcomes)


def contract_to_look_by(engine: Engine, contract: Contract, plan: Plan) -> Contract:
    """The contract; where it does not say any more how the plan's actions are done, with the rules of the plan's cut.

    They say where to look what a plan that has begun has done. What may be done, the contract says as it is now.
    """
    rules, kinds = contract.compensation, {item.kind for item in plan.items}
    posts, triggers = not kinds.isdisjoint(INTO_LEDGER), Kind.TRIGGER in kinds
    if rules is not None and (rules.post or not posts) and (rules.trigger or not triggers):
        return contract
    then = read_contract(engine, contract.contract, plan.cut_n)
    return contract.model_copy(update={"compensation": then.compensation}) if then else contract


def verify_plan(contract: Contract, plan: Plan, connections: Connections) -> VerifyResult:
    """Look at each action's effect again, in the plan's order: is its break cleared? No action proves nothing."""
    found = _check_items(contract, _repaired_here(plan), connections) | check_handed_over(contract, plan, connections)
    checks = (*check_aborts(plan, connections), *(found[item.action_id] for item in plan.items))
    return VerifyResult(verdict=merge_verdicts(check.verdict for check in checks), checks=checks)


def _check_items(contract: Contract, items: Sequence[PlanItem], connections: Connections) -> dict[UUID, ItemCheck]:
    """Read the touched topics up to the LSO, and the ledger."""
    if not items:
        return {}
    settled = settle_topics(connections.kafka, _topics(items), wait_seconds=SETTLE_SECONDS)
    events = find_events(read_committed(connections.kafka, settled.partitions), items, contract.event)
    with open_ledger(connections.ledger_dsn) as ledger:
        rows = read_source_rows(ledger, contract.ledger, {item.match_key for item in items})
    return {
        item.action_id: _check(
            item, events.of(item), rows.get(item.match_key, ()), contract.event, held=item.topic in settled.held
        )
        for item in items
    }


def verify_and_keep(
    engine: Engine, contract: Contract, plan: Plan, connections: Connections, *, actor: str
) -> VerifyResult:
    """The same, by the rules that tell how the plan was done; what became of each action stands in the audit trail."""
    result = verify_plan(contract_to_look_by(engine, contract, plan), plan, connections)
    effects = {str(item.action_id): check.effect for item, check in zip(plan.actions, result.checks, strict=True)}
    append_audit(
        engine,
        contract.contract,
        plan_id=plan.plan_id,
        actor=actor,
        event="verified",
        detail={"plan_hash": plan.plan_hash, "verdict": result.verdict, "effects": effects},
    )
    return result


@dataclass(frozen=True, kw_only=True)
class _Proof:
    """What was found out about the plan's items, all of it after the publisher had fenced its predecessors."""

    actions: Mapping[UUID, StoredAction]
    progress: ProgressProof
    events: StandingEvents
    held: frozenset[str]
    rows: Mapping[str, tuple[StandingRow, ...]]
    names: EventFields
    settled: SettledTopics
    judged: Mapping[TopicPartition, JudgedPart]
    taken_back: Mapping[UUID, frozenset[str]]
    negated: bool
    writers_open: bool


def _refuse_unapproved(work: Work, approved_hash: str, *, allowed: Contract) -> None:
    """allowed: the contract as it is now. Of a plan that has begun, what it forbids is only not done."""
    plan, contract = work.plan, work.contract
    require_same_books(work.engine, contract)  # also a plan that has begun: by another key its events are not found
    if approved_hash != plan.plan_hash:
        raise PlanStale(f"{contract.contract}: approved was {approved_hash}, the plan is {plan.plan_hash}")
    begun = open_actions(work.engine, contract.contract)
    has_begun = any(action.plan_id == plan.plan_id for action in begun.values())
    forbidden = _why_forbidden(allowed, plan, has_begun=has_begun)
    if read_plan(work.engine, plan.plan_id) is None:
        raise PlanStale(f"{contract.contract}: plan {plan.plan_id} was never stored")
    asked = requesters(work.engine, plan)
    agreed = agreements(work.engine, plan.plan_id, scheduler_run_id=work.approved_in)
    refuse_too_few_people(contract, plan, asked=asked, agreed=agreed)
    if not plan.dry_run:
        work.refuse_for_now()
    too_old = _why_too_old(work, asked=asked, agreed=agreed)
    if has_begun:
        stopped = why_not_any_more(work.engine, contract, work.connections, plan, begun)
        if reason := forbidden or too_old:
            undone = [one.action_id for one in plan.actions if not _is_done(begun.get(one.action_id))]
            stopped = dict.fromkeys(undone, reason) | stopped
        work.stopped.update(stopped)
        return
    if too_old:
        raise ApprovalTooOld(f"{contract.contract}: {too_old}")
    refuse_over_caps(contract, plan, spent=spent_today(work.engine, contract.contract))
    now = draw_plan(work.engine, contract, work.connections, cut_n=plan.cut_n, dry_run=plan.dry_run)
    if now.plan_hash != plan.plan_hash:
        raise PlanStale(
            f"{contract.contract}: approved was {plan.plan_hash}, today's plan is {now.plan_hash}: breaks, rows, caps "
            "or the newest run have changed since; ask for a new plan"
        )


def _why_forbidden(allowed: Contract, plan: Plan, *, has_begun: bool) -> str | None:
    """What the contract says against the plan as a whole; None: nothing.

    Raises CompensationOff, CapsExceeded of a plan that has not begun.
    """
    try:
        refuse_over_caps(allowed, plan)
    except (CompensationOff, CapsExceeded) as error:
        if not has_begun:
            raise
        return str(error)
    return None


def _why_too_old(work: Work, *, asked: Collection[str], agreed: Mapping[str, timedelta]) -> str | None:
    """What speaks against who agreed, by how long ago that was; None: nothing."""
    contract, plan = work.contract, work.plan
    if work.approved_in and not agreed:
        return f"nobody is on record to have agreed to this plan in run {work.approved_in}; start a new run, which asks"
    valid = rules_of(contract).approval_valid_seconds
    holding = {name for name, age in agreed.items() if age <= timedelta(seconds=valid)}
    try:
        refuse_too_few_people(contract, plan, asked=asked, agreed=holding)
    except (NotAnApprover, OnePersonOnly):
        enough = False
    else:
        enough = bool(holding) or not work.approved_in
    if enough:
        return None
    oldest = max(agreed.values())
    return (
        f"its approval is {int(oldest.total_seconds())} s old and holds for {valid} s, as "
        "compensation.approval_valid_seconds says; start a new run, which asks again"
    )


def _is_done(action: StoredAction | None) -> TypeGuard[StoredAction]:
    return action is not None and action.state is ActionState.DONE


def _rehearse(work: Work) -> tuple[ItemOutcome, ...]:
    found = _rehearse_items(work, _repaired_here(work.plan)) | rehearse_handing_over(work)
    return (*rehearse_aborts(work), *(found[item.action_id] for item in work.plan.items))


def _rehearse_items(work: Work, items: Sequence[PlanItem]) -> dict[UUID, ItemOutcome]:
    if not items:
        return {}
    proof = _prove(work, items, actions=open_actions(work.engine, work.contract.contract), progress_topics=())
    return {
        item.action_id: _fate(item, proof)
        or _why_unproven(work, item, proof)
        or ItemOutcome(action_id=item.action_id, match_key=item.match_key, fate=ItemFate.WOULD_PUBLISH)
        for item in items
    }


def _execute(work: Work) -> tuple[ItemOutcome, ...]:
    ended = execute_aborts(work)
    repaired = _repaired_here(work.plan)
    outcomes: tuple[ItemOutcome, ...] = ()
    if any(item.kind in INTO_LEDGER for item in repaired):
        outcomes = _execute_posts(work, repaired)
    elif repaired:
        outcomes = _execute_publishing(work, repaired)
    by_action = {outcome.action_id: outcome for outcome in (*outcomes, *hand_over(work))}
    return (*ended, *(by_action[item.action_id] for item in work.plan.items))


def _repaired_here(plan: Plan) -> tuple[PlanItem, ...]:
    return tuple(item for item in plan.items if item.kind is not Kind.TRIGGER)


def _execute_publishing(work: Work, items: Sequence[PlanItem]) -> tuple[ItemOutcome, ...]:
    progress = ensure_progress_topic(work.connections.kafka, work.contract.contract)
    actions = work.claim(
        items,
        progress_topic_id=progress.topic_id,
        progress_from=progress.written_end,
        transactional_id=work.transactional_id,
    )
    _refuse_unfenced(work, actions)
    work.audit("executing", progress_topic_id=progress.topic_id, transactional_id=work.transactional_id)
    work.tell(ExecutorStep.EXECUTING, {"transactional_id": work.transactional_id})
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


def _execute_posts(work: Work, items: Sequence[PlanItem]) -> tuple[ItemOutcome, ...]:
    """Each in a database transaction of its own; the switch and the minutes are asked before each."""
    dsn = work.connections.poster_dsn
    if dsn is None:
        raise PlanRefused(f"{work.contract.contract}: expected the connection of compensation.post, got none")
    ledger = read_database_identity(work.connections.ledger_dsn)
    if (found := read_database_identity(dsn)) != ledger:
        raise PlanRefused(
            f"{work.contract.contract}: the connection of compensation.post leads to database {found}; expected "
            f"{ledger}, where ledger.connection leads"
        )
    actions = work.claim(items, ledger=f"{ledger}/{work.contract.ledger.table}")
    work.audit("executing", table=work.contract.ledger.table)
    work.tell(ExecutorStep.EXECUTING, {"table": work.contract.ledger.table})
    proof = _prove(work, items, actions=actions, progress_topics=())
    posted = read_posted(dsn, work.contract, actions)
    return do_each(work, items, lambda item: _post(work, item, proof, posted, dsn))


def _post(work: Work, item: PlanItem, proof: _Proof, posted: Mapping[UUID, str], dsn: str) -> ItemOutcome:
    """What an earlier start may be posting is refused only once the ledger says that it has not."""
    place = {"table": work.contract.ledger.table}
    if _is_done(action := proof.actions.get(item.action_id)):
        return _already(item, action.outcome)
    if item.action_id in posted:
        return _posted_before(work, item, posted[item.action_id])
    if (fate := _fate(item, proof) or _stopped(work, item)) is not None:
        mine = item.action_id in work.begun | work.unclaimed
        plan_hash = None if mine else posted_for(dsn, work.contract, item)
        return fate if plan_hash is None else _posted_before(work, item, plan_hash)

    def may_write() -> str | None:
        if not held_among(work.engine, [item.action_id], work.executor):
            return "another executor has claimed it since"
        unread_at = last_cut_with_rows_unread(work.engine, work.contract.contract)
        if item.kind is Kind.POST and unread_at > work.plan.cut_n:
            return why_row_may_have_come(unread_at)
        return work.why_not_now([item]).get(item.action_id)

    plan_hash = work.plan.plan_hash
    if item.kind is Kind.COUNTERPOST:
        done = counterpost_once(dsn, work.contract, item, plan_hash=plan_hash, may_write=may_write, tell=work.tell)
    else:
        event = json.loads(event_at(item.posts, proof.events.of(item)).value)
        done = post_once(dsn, work.contract, item, event, plan_hash=plan_hash, may_write=may_write, tell=work.tell)
    if done.refused:
        return refused(item, done.refused)
    if done.posted_for is not None:
        return _posted_before(work, item, done.posted_for)
    return ItemOutcome(action_id=item.action_id, match_key=item.match_key, fate=ItemFate.PUBLISHED, place=place)


def _posted_before(work: Work, item: PlanItem, plan_hash: str) -> ItemOutcome:
    """By an action's row in the ledger. Whoever may insert there may forge one, so it counts for a stored plan only."""
    ours = plan_hash == work.plan.plan_hash
    if not ours and (plan := read_plan(work.engine, plan_id_of(plan_hash))) is not None:
        ours = item.action_id in {one.action_id for one in plan.items}
    if ours:
        return _already(item, {"table": work.contract.ledger.table})
    named = foreign_text(plan_hash, characters_max=64)
    doubt = f"{work.contract.actions_table} has a row of action {item.action_id} for plan hash {named!r}"
    return waits(item, f"{doubt}, and no stored plan of this hash has it; that row must go before it can be posted")


def _stopped(work: Work, item: PlanItem) -> ItemOutcome | None:
    reason = work.stopped.get(item.action_id)
    return refused(item, reason) if reason else None


def _refuse_unfenced(work: Work, actions: Mapping[UUID, StoredAction]) -> None:
    """An executor under another transactional id may be at work still, and ours would not fence it."""
    begun = [action for action in actions.values() if action.state is ActionState.EXECUTING]
    under = {str(one.outcome.get("transactional_id", work.transactional_id)) for one in begun}
    if others := sorted(under - {work.transactional_id}):
        raise PlanRefused(
            f"{work.contract.contract}: the plan was begun under transactional.id {others[0]}, got "
            f"{work.transactional_id}; expected the same TALLYSTICK_ENVIRONMENT to finish it"
        )


def _attempt(work: Work, items: Sequence[PlanItem], actions: Mapping[UUID, StoredAction]) -> tuple[ItemOutcome, ...]:
    """Fence, read, prove, publish; in this order, or a predecessor's work goes unseen."""
    publisher = open_publisher(work.connections.kafka, transactional_id=work.transactional_id)
    work.tell(ExecutorStep.FENCED, {})
    proof = _prove(work, items, actions=actions, progress_topics=(progress_topic_name(work.contract.contract),))
    fates: dict[UUID, ItemOutcome | None] = {
        item.action_id: _fate(item, proof) or _why_unproven(work, item, proof) for item in items
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
    work: Work, publisher: Producer, items: Sequence[PlanItem], proof: _Proof
) -> dict[UUID, ItemOutcome]:
    """One producer transaction, told before and after."""
    ends = {
        topic: {str(part.partition): part.written_end for part in proof.settled.of(topic)} for topic in _topics(items)
    }
    work.audit(PUBLISHING, actions=[str(item.action_id) for item in items], ends=ends)
    places = _publish(work, publisher, items, proof)
    work.begun.difference_update(places)
    work.audit("published", places={str(action_id): place for action_id, place in places.items()})
    return {
        item.action_id: ItemOutcome(
            action_id=item.action_id, match_key=item.match_key, fate=ItemFate.PUBLISHED, place=places[item.action_id]
        )
        for item in items
    }


def _prove(
    work: Work, items: Sequence[PlanItem], *, actions: Mapping[UUID, StoredAction], progress_topics: Sequence[str]
) -> _Proof:
    """Read progress, log and ledger, in this order: each up to what stands at its moment."""
    kafka, contract, topics = work.connections.kafka, work.contract, _topics(items)
    settled = settle_topics(kafka, {*progress_topics, *topics}, wait_seconds=SETTLE_SECONDS)
    progress, rules = ProgressProof(), contract.compensation
    if progress_topics:
        progress = prove_progress(work, items, actions, settled)
        work.tell(ExecutorStep.PROGRESS_READ, {"published": len(progress.published)})
    partitions = [part for topic in topics for part in settled.of(topic)]
    events = find_events(read_committed(kafka, partitions), items, contract.event)
    with open_ledger(work.connections.ledger_dsn) as ledger:
        posts = any(item.kind is Kind.POST for item in items)
        writers_open = posts and not writers_end(ledger, contract.ledger.table, wait_seconds=SETTLE_SECONDS)
        rows = read_source_rows(ledger, contract.ledger, {item.match_key for item in items})
    # after the log was read, before the breaks are asked for
    judged = judged_parts(work.engine, contract.contract, planned_at=work.plan.cut_n)
    work.tell(ExecutorStep.PROVED, {})
    return _Proof(
        actions=actions,
        progress=progress,
        events=events,
        held=settled.held,
        rows=rows,
        names=contract.event,
        settled=settled,
        judged=judged,
        taken_back=work.taken_back,
        negated=rules is not None and rules.reversal == "negated",
        writers_open=writers_open,
    )


def _fate(item: PlanItem, proof: _Proof) -> ItemOutcome | None:
    """None: nothing speaks against publishing it now."""
    action, standing = proof.actions.get(item.action_id), proof.events.of(item)
    if item.kind in INTO_LEDGER:
        return _post_fate(item, action, proof)
    named = [event for event in standing if event.action_id == str(item.action_id)]
    ours = [event for event in named if is_as_planned(event, item, proof.names, negated=proof.negated)]
    if ours:
        return _already(item, ours[0].place)
    if item.action_id in proof.progress.published:
        return _published_once(item, proof)
    if _is_done(action):
        return _already(item, action.outcome)
    if named:
        doubt = f"{_where(named[0])} has the action's header and does not say what the plan says"
        return waits(item, doubt, seen=proof.progress.seen)
    if doubt := proof.progress.doubts.get(item.action_id, ""):
        return waits(item, doubt, seen=proof.progress.seen)
    if action is not None and action.state is ActionState.WAITING:
        return _still_waits(item, action)
    if item.kind is Kind.REPUBLISH and standing:
        return refused(item, f"the event stands: {_where(standing[0])}")
    if item.topic in proof.held:
        return refused(item, f"not provable now: an open producer transaction holds {item.topic}")
    if hidden := proof.events.why_hidden(item):
        return refused(item, hidden)
    elsewhere = proof.taken_back.get(item.action_id, frozenset())
    if item.kind is Kind.REVERSE and (reason := why_not_reversible(item, standing, proof.names, elsewhere=elsewhere)):
        return refused(item, reason)
    if [row.source for row in proof.rows.get(item.match_key, ())] != [item.row]:
        return refused(item, "the ledger row is gone, doubled or changed")
    return None


def _why_unproven(work: Work, item: PlanItem, proof: _Proof) -> ItemOutcome | None:
    """Of one that nothing on either side speaks against: is that proven, and may the plan still do it?"""
    reason = work.stopped.get(item.action_id)
    if reason is None and item.kind is Kind.REPUBLISH:
        reason = why_not_read_whole(proof.settled.of(item.topic), proof.judged)
    return refused(item, reason) if reason else None


def _post_fate(item: PlanItem, action: StoredAction | None, proof: _Proof) -> ItemOutcome | None:
    """Of one whose action has not posted yet; the transaction that posts asks that once more."""
    if _is_done(action):
        return _already(item, action.outcome)
    if action is not None and action.state is ActionState.WAITING:
        return _still_waits(item, action)
    if item.kind is Kind.COUNTERPOST:
        reason = why_not_taken_back(item, proof.rows.get(item.match_key, ()))
    else:
        reason = why_not_postable(item, proof.events.of(item), proof.names)
        if reason is None and proof.writers_open:
            reason = "not provable now: a database transaction that is open in the ledger may hold a row of it"
    return refused(item, reason) if reason else None


def _published_once(item: PlanItem, proof: _Proof) -> ItemOutcome:
    """By its sealed record, without its event: retention has taken that, or the record is a copy of an aborted one.

    Who may read the topic can copy it while its transaction is open. The log tells while it has all that came since.
    """
    ends = proof.progress.behind.get(item.action_id, {}).get(item.topic)
    parts = proof.settled.of(item.topic)
    has_all = ends is not None and all(part.log_start <= ends.get(str(part.partition), 0) for part in parts)
    if has_all and item.topic not in proof.held:
        doubt = f"its progress says that it was published, and {item.topic} has all events since and none of it"
        return waits(item, doubt, seen=proof.progress.seen)
    return _already(item, {"topic": item.topic})


def _still_waits(item: PlanItem, action: StoredAction) -> ItemOutcome:
    """What made it wait may be gone from the topic or the ledger; that it was not done is not proven by that."""
    reason = str(action.outcome.get("reason", ""))
    seen = {name: value for name, value in action.outcome.items() if name != "reason"}
    return replace(refused(item, reason), waits=True, seen=seen)


def _already(item: PlanItem, place: Mapping[str, Any]) -> ItemOutcome:
    return ItemOutcome(action_id=item.action_id, match_key=item.match_key, fate=ItemFate.ALREADY_PUBLISHED, place=place)


def _publish(
    work: Work, publisher: Producer, items: Sequence[PlanItem], proof: _Proof
) -> dict[UUID, Mapping[str, Any]]:
    """Events and progress in one producer transaction; give where each event stands."""
    session = f"tallystick-{uuid.uuid4()}"
    events = [_event_of(work, item, proof, session=session) for item in items]
    progress_topic, key = progress_topic_name(work.contract.contract), read_executor_key(work.engine)
    progress = [
        OutgoingRecord(topic=progress_topic, key=action, value=value)
        for action, value in (
            progress_record(key, work.plan, item, reopened=work.reopened.get(item.action_id, 0)) for item in items
        )
    ]
    records = [*events, *progress]
    places = publish_together(publisher, records, tell=work.tell, why_not_commit=lambda: _why_not_commit(work, items))
    return {item.action_id: place for item, place in zip(items, places, strict=False)}


def _why_not_commit(work: Work, items: Sequence[PlanItem]) -> str | None:
    """Their records hold the log's stable end by now, so that no run can clear their breaks behind this answer."""
    reasons = work.why_not_now(items)
    return next(iter(reasons.values()), None)


def _event_of(work: Work, item: PlanItem, proof: _Proof, *, session: str) -> OutgoingRecord:
    headers, rules = event_headers(item, session=session), work.contract.compensation
    if item.kind is Kind.REPUBLISH or rules is None:
        key, value = item.transaction_key.encode(), event_value(item, work.contract.event)
    else:
        copy = event_at(item.reverses, proof.events.of(item))
        key = copy.message_key
        value = reversal_value(copy, work.contract.event, negated=rules.reversal == "negated")
    return OutgoingRecord(topic=item.topic, key=key, value=value, headers=headers)


def _told(outcome: ItemOutcome) -> dict[str, str]:
    return {
        "action_id": str(outcome.action_id),
        "match_key": outcome.match_key,
        "fate": outcome.fate,
        "reason": outcome.reason,
    }


def _check(
    item: PlanItem, standing: Sequence[StandingEvent], rows: Sequence[StandingRow], names: EventFields, *, held: bool
) -> ItemCheck:
    """Of what the retained log shows; an open transaction may hide more."""
    found = effect_of(item, standing, rows, names)
    hidden = held and item.kind not in INTO_LEDGER and found is not Effect.CHANGED
    return ItemCheck(
        match_key=item.match_key,
        effect=Effect.HIDDEN if hidden else found,
        places=tuple(event.place for event in standing),
    )


def _topics(items: Sequence[PlanItem]) -> tuple[str, ...]:
    """Topics whose events tell what stands of these items; of a row to take back the ledger alone does."""
    return tuple(sorted({item.topic for item in items if item.kind is not Kind.COUNTERPOST}))


def _where(event: StandingEvent) -> str:
    return f"{event.topic}[{event.partition}] at {event.kafka_offset}"
