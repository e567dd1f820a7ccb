"""Carries out a plan: each repair at most once over all plans, whatever crashes, retries or runs twice.

How it works. A break has one action id, for ever. The store says "executing" before Kafka is touched. One transactional
id per contract and environment fences every other executor. After init_transactions, and only then, the progress topic
tells what was published already; each event is proven absent from the log once more, or its copy one too many; events
and progress records then stand in one producer transaction. The store's outcome is written last and may be lost:
progress decides. What is posted into the ledger has its progress there: ledger_post.py. A hanging transaction's marker
is its own progress, and so is the run of a DAG: hanging_abort.py, dag_trigger.py.

What it cannot do. A producer of the contract's own that publishes a missing event between our last look and our commit
makes a second copy; the next run finds it. An event that retention took from the log before our look is not seen.
"""

import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from confluent_kafka import KafkaException, Producer
from kafka.admin import KafkaAdminClient
from sqlalchemy import Engine
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential

from tallystick.abort_plan import AbortItem
from tallystick.acting_rules import refuse_outside_hours, refuse_stopped
from tallystick.committed_records import read_committed, settle_topics
from tallystick.compensation_plan import (
    Kind,
    Plan,
    PlanItem,
    PlanRefused,
    PlanStale,
    SourceRow,
    conf_of,
    refuse_one_person,
    refuse_over_caps,
)
from tallystick.compensation_source import draw_plan, read_source_rows
from tallystick.connections import Connections, HttpAccount
from tallystick.contract import Contract, EventFields
from tallystick.contract_change import ContractChangeRefused
from tallystick.dag_trigger import AirflowApi, DagRun, open_airflow
from tallystick.event_publisher import (
    ExecutorFenced,
    OutgoingRecord,
    TransactionAborted,
    open_publisher,
    publish_together,
)
from tallystick.executor_step import ExecutorStep, Tell, tell_nobody
from tallystick.hanging_abort import Standing, State, look_at, read_evidence, wait_ended, write_abort
from tallystick.ledger import LedgerRefused
from tallystick.ledger_post import post_once, read_posted
from tallystick.ledger_reader import open_ledger
from tallystick.log_fetch import BrokerUnreachable, open_admin
from tallystick.progress_topic import (
    Progress,
    ProgressLost,
    ensure_progress_topic,
    progress_record,
    progress_topic_name,
    read_progress,
)
from tallystick.repair_effect import Effect, effect_of
from tallystick.republished_event import (
    StandingEvent,
    StandingEvents,
    event_at,
    event_headers,
    event_value,
    find_events,
    reversal_value,
    why_not_postable,
    why_not_reversible,
)
from tallystick.store.contract_store import require_same_books
from tallystick.store.plan_store import (
    ActionState,
    StoredAction,
    append_audit,
    claim_actions,
    ending_alone,
    open_actions,
    read_plan,
    record_done,
    record_refusal,
    requesters,
    spent_today,
)
from tallystick.store.switch_store import read_switch
from tallystick.verdict import Verdict, merge_verdicts

_ATTEMPTS = 5
_TOGETHER = 500
"""Events of one producer transaction: a long plan can be stopped between two, and each is done long before Kafka's
time-out for it."""
_SETTLE_SECONDS = 10
"""How long an open transaction may keep us from proving an absence before its topic's items are refused for now."""


class ItemFate(StrEnum):
    """What came of one action of the plan. done, already_done, would_do: of one that neither publishes nor posts."""

    PUBLISHED = "published"
    ALREADY_PUBLISHED = "already_published"
    REFUSED = "refused"
    WOULD_PUBLISH = "would_publish"
    DONE = "done"
    ALREADY_DONE = "already_done"
    WOULD_DO = "would_do"


@dataclass(frozen=True, kw_only=True)
class ItemOutcome:
    """place: topic, partition and offset of the event or the marker, where known. reason: why it was refused."""

    action_id: UUID
    match_key: str
    fate: ItemFate
    place: Mapping[str, Any] | None = None
    reason: str = ""

    def as_json(self) -> dict[str, Any]:
        return {
            "action_id": str(self.action_id),
            "match_key": self.match_key,
            "fate": str(self.fate),
            "place": dict(self.place) if self.place else None,
            "reason": self.reason,
        }


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
class ItemCheck:
    """Where one event of the plan stands after the fact."""

    match_key: str
    effect: Effect
    places: tuple[Mapping[str, Any], ...]

    @property
    def verdict(self) -> Verdict:
        if self.effect in (Effect.HIDDEN, Effect.HANDED_OVER):
            return Verdict.INCONCLUSIVE
        return Verdict.MATCHED if self.effect is Effect.CLEARED else Verdict.BROKEN


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
    tell: Tell = tell_nobody,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Execution:
    """Do what was approved, or say why not. Safe to call again with the same arguments after any failure.

    tell: called with each step once it is done.
    A plan that has begun is finished as it was approved; a new one must still be what the store would plan now.
    A dry run proves every item, publishes nothing and writes only the audit trail.
    The kill switch and the acting hours are asked before each producer transaction: what was committed by then stays
    and is told, the rest is not done.
    Raises PlanRefused (PlanStale, CompensationOff, CapsExceeded, OnePersonOnly, ActingStopped, OutsideActingHours),
    ContractChangeRefused, ProgressLost; what another start can cure: ProgressHeld, ExecutorFenced, TransactionAborted.
    """
    work = _Work(engine, contract, connections, plan, approver, environment, tell, now)
    work.audit("approved", approved_hash=approved_hash, dry_run=plan.dry_run, items=len(plan.actions))
    try:
        _refuse_unapproved(work, approved_hash)
        tell(ExecutorStep.APPROVED, {})
        outcomes = _rehearse(work) if plan.dry_run else _execute(work)
    except (RuntimeError, ConnectionError, KafkaException, ContractChangeRefused, LedgerRefused) as error:
        tell(ExecutorStep.STOPPED, {"error": type(error).__name__, "message": str(error)})
        work.audit("stopped", error=type(error).__name__, message=str(error))
        raise
    work.audit("finished", **{fate: sum(one.fate is fate for one in outcomes) for fate in ItemFate})
    tell(ExecutorStep.FINISHED, {"outcomes": [_told(outcome) for outcome in outcomes]})
    return Execution(plan_id=plan.plan_id, plan_hash=plan.plan_hash, dry_run=plan.dry_run, outcomes=outcomes)


def verify_plan(contract: Contract, plan: Plan, connections: Connections) -> VerifyResult:
    """Look at each action's effect again, in the plan's order: is its break cleared? No action proves nothing."""
    found = _check_items(contract, _repaired_here(plan), connections) | _check_handed(contract, plan, connections)
    checks = (*_check_aborts(plan, connections), *(found[item.action_id] for item in plan.items))
    return VerifyResult(verdict=merge_verdicts(check.verdict for check in checks), checks=checks)


def _check_aborts(plan: Plan, connections: Connections) -> tuple[ItemCheck, ...]:
    """Is each transaction ended by our marker, and has the LSO passed its beginning?"""
    if not plan.aborts:
        return ()
    with open_admin(connections.kafka) as admin:
        found = [(item, look_at(admin, item)) for item in plan.aborts]
    return tuple(
        ItemCheck(
            match_key=item.place, effect=_ended_effect(standing), places=(standing.place,) if standing.place else ()
        )
        for item, standing in found
    )


def _ended_effect(standing: Standing) -> Effect:
    if standing.state is State.ABORTED and standing.stable:
        return Effect.CLEARED
    return {State.HANGS: Effect.NOT_CLEARED, State.ENDED: Effect.CHANGED}.get(standing.state, Effect.HIDDEN)


def _check_items(contract: Contract, items: Sequence[PlanItem], connections: Connections) -> dict[UUID, ItemCheck]:
    """Read the touched topics up to the LSO, and the ledger."""
    if not items:
        return {}
    settled = settle_topics(connections.kafka, _topics(items), wait_seconds=_SETTLE_SECONDS)
    events = find_events(read_committed(connections.kafka, settled.partitions), items, contract.event)
    with open_ledger(connections.ledger_dsn) as ledger:
        rows = read_source_rows(ledger, contract.ledger, {item.match_key for item in items})
    return {
        item.action_id: _check(
            item, events.of(item), rows.get(item.match_key, ()), contract.event, held=item.topic in settled.held
        )
        for item in items
    }


def _check_handed(contract: Contract, plan: Plan, connections: Connections) -> dict[UUID, ItemCheck]:
    """Does each DAG's run stand, and has it not failed? That it repaired anything is not proven by that."""
    items = _handed_over(plan)
    if not items:
        return {}
    with open_airflow(_airflow_of(contract, connections)) as airflow:
        return {
            item.action_id: ItemCheck(
                match_key=item.match_key,
                effect=_handed_effect(airflow.find_run(item.triggers, str(item.action_id)), conf_of(plan, item)),
                places=(_run_place(item),),
            )
            for item in items
        }


def _handed_effect(run: DagRun | None, conf: Mapping[str, Any]) -> Effect:
    if run is None or run.state == "failed":
        return Effect.NOT_CLEARED
    return Effect.HANDED_OVER if run.conf == conf else Effect.CHANGED


def verify_and_keep(
    engine: Engine, contract: Contract, plan: Plan, connections: Connections, *, actor: str
) -> VerifyResult:
    """The same; what became of each action stands in the audit trail."""
    result = verify_plan(contract, plan, connections)
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


@dataclass(frozen=True)
class _Work:
    """One call of execute_plan."""

    engine: Engine
    contract: Contract
    connections: Connections
    plan: Plan
    approver: str
    environment: str
    tell: Tell
    now: Callable[[], datetime]
    executor: str = field(default_factory=lambda: str(uuid.uuid4()))

    @property
    def transactional_id(self) -> str:
        return f"tallystick-compensation-{self.environment}-{self.contract.contract}"

    def audit(self, event: str, **detail: Any) -> None:
        append_audit(
            self.engine,
            self.contract.contract,
            plan_id=self.plan.plan_id,
            actor=self.approver,
            event=event,
            detail={"plan_hash": self.plan.plan_hash} | detail,
        )


@dataclass(frozen=True, kw_only=True)
class _Proof:
    """What was found out about the plan's items, all of it after the publisher had fenced its predecessors."""

    actions: Mapping[UUID, StoredAction]
    progress: Mapping[UUID, Progress]
    events: StandingEvents
    held: frozenset[str]
    rows: Mapping[str, tuple[SourceRow, ...]]
    names: EventFields


def _refuse_unapproved(work: _Work, approved_hash: str) -> None:
    plan, contract = work.plan, work.contract
    require_same_books(work.engine, contract)  # also a plan that has begun: by another key its events are not found
    if approved_hash != plan.plan_hash:
        raise PlanStale(f"{contract.contract}: approved was {approved_hash}, the plan is {plan.plan_hash}")
    refuse_over_caps(contract, plan)
    if read_plan(work.engine, plan.plan_id) is None:
        raise PlanStale(f"{contract.contract}: plan {plan.plan_id} was never stored")
    refuse_one_person(contract, plan, approver=work.approver, requesters=requesters(work.engine, plan.plan_id))
    if not plan.dry_run:
        _refuse_for_now(work)
    actions = open_actions(work.engine, contract.contract).values()
    if any(action.plan_id == plan.plan_id for action in actions):
        return
    refuse_over_caps(contract, plan, spent=spent_today(work.engine, contract.contract))
    now = draw_plan(work.engine, contract, work.connections, cut_n=plan.cut_n, dry_run=plan.dry_run)
    if now.plan_hash != plan.plan_hash:
        raise PlanStale(
            f"{contract.contract}: approved was {plan.plan_hash}, today's plan is {now.plan_hash}: breaks, rows, caps "
            "or the newest run have changed since; ask for a new plan"
        )


def _refuse_for_now(work: _Work) -> None:
    refuse_stopped(work.contract, *read_switch(work.engine, work.contract.contract))
    refuse_outside_hours(work.contract, now_utc=work.now())


def _rehearse(work: _Work) -> tuple[ItemOutcome, ...]:
    found = _rehearse_items(work, _repaired_here(work.plan)) | _rehearse_handed(work)
    return (*_rehearse_aborts(work), *(found[item.action_id] for item in work.plan.items))


def _rehearse_aborts(work: _Work) -> tuple[ItemOutcome, ...]:
    if not work.plan.aborts:
        return ()
    with open_admin(work.connections.kafka) as admin:
        return tuple(_abort_outcome(item, look_at(admin, item), ItemFate.WOULD_DO) for item in work.plan.aborts)


def _rehearse_items(work: _Work, items: Sequence[PlanItem]) -> dict[UUID, ItemOutcome]:
    if not items:
        return {}
    proof = _prove(work, items, actions=open_actions(work.engine, work.contract.contract), progress_topics=())
    return {
        item.action_id: _fate(item, proof)
        or ItemOutcome(action_id=item.action_id, match_key=item.match_key, fate=ItemFate.WOULD_PUBLISH)
        for item in items
    }


def _rehearse_handed(work: _Work) -> dict[UUID, ItemOutcome]:
    items = _handed_over(work.plan)
    if not items:
        return {}
    with open_airflow(_airflow_of(work.contract, work.connections)) as airflow:
        reasons = {item.action_id: airflow.why_not_startable(item.triggers) for item in items}
    return {
        item.action_id: _refused(item, reason)
        if (reason := reasons[item.action_id])
        else ItemOutcome(action_id=item.action_id, match_key=item.match_key, fate=ItemFate.WOULD_DO)
        for item in items
    }


def _execute(work: _Work) -> tuple[ItemOutcome, ...]:
    ended = _execute_aborts(work)
    repaired = _repaired_here(work.plan)
    outcomes: tuple[ItemOutcome, ...] = ()
    if any(item.kind is Kind.POST for item in repaired):
        outcomes = _execute_posts(work, repaired)
    elif repaired:
        outcomes = _execute_publishing(work, repaired)
    by_action = {outcome.action_id: outcome for outcome in (*outcomes, *_execute_handing_over(work))}
    return (*ended, *(by_action[item.action_id] for item in work.plan.items))


def _repaired_here(plan: Plan) -> tuple[PlanItem, ...]:
    return tuple(item for item in plan.items if item.kind is not Kind.TRIGGER)


def _handed_over(plan: Plan) -> tuple[PlanItem, ...]:
    return tuple(item for item in plan.items if item.kind is Kind.TRIGGER)


def _airflow_of(contract: Contract, connections: Connections) -> HttpAccount:
    if connections.airflow is None:
        raise PlanRefused(f"{contract.contract}: expected the connection of compensation.trigger, got none")
    return connections.airflow


def _execute_handing_over(work: _Work) -> tuple[ItemOutcome, ...]:
    """A run of its DAG for each; the switch and the minutes are asked before each."""
    items = _handed_over(work.plan)
    if not items:
        return ()
    account = _airflow_of(work.contract, work.connections)
    actions = _claim(work, items, outcome={})
    work.audit("executing", dags=sorted({item.triggers for item in items}))
    work.tell(ExecutorStep.EXECUTING, {"dags": len({item.triggers for item in items})})
    outcomes = []
    with open_airflow(account) as airflow:
        for n, item in enumerate(items, start=1):
            _refuse_for_now(work)
            outcome = _hand_over(work, airflow, item, actions[item.action_id])
            _record(work, outcome)
            work.tell(ExecutorStep.RECORDED, {"item": n, "fate": outcome.fate})
            outcomes.append(outcome)
    return tuple(outcomes)


def _hand_over(work: _Work, airflow: AirflowApi, item: PlanItem, action: StoredAction) -> ItemOutcome:
    if action.state is ActionState.DONE:
        fate = ItemFate.ALREADY_DONE
    else:
        started = airflow.start_once(item.triggers, str(item.action_id), conf_of(work.plan, item))
        if started.refused:
            return _refused(item, started.refused)
        work.tell(ExecutorStep.STARTED, {"dag_id": item.triggers, "dag_run_id": str(item.action_id)})
        fate = ItemFate.ALREADY_DONE if started.already else ItemFate.DONE
    return ItemOutcome(action_id=item.action_id, match_key=item.match_key, fate=fate, place=_run_place(item))


def _run_place(item: PlanItem) -> dict[str, str]:
    return {"dag_id": item.triggers, "dag_run_id": str(item.action_id)}


def _execute_aborts(work: _Work) -> tuple[ItemOutcome, ...]:
    """Each by itself, and by one executor at a time; the switch and the minutes are asked before each."""
    if not work.plan.aborts:
        return ()
    actions = _claim(work, work.plan.aborts, outcome={})
    work.audit("executing", transactions=[item.place for item in work.plan.aborts])
    work.tell(ExecutorStep.EXECUTING, {"transactions": len(work.plan.aborts)})
    outcomes = []
    for n, item in enumerate(work.plan.aborts, start=1):
        with ending_alone(work.engine, work.contract.contract), open_admin(work.connections.kafka) as admin:
            _refuse_for_now(work)
            outcome = _abort(work, admin, item, actions[item.action_id])
            _record(work, outcome)
        work.tell(ExecutorStep.RECORDED, {"item": n, "fate": outcome.fate})
        outcomes.append(outcome)
    return tuple(outcomes)


def _abort(work: _Work, admin: KafkaAdminClient, item: AbortItem, action: StoredAction) -> ItemOutcome:
    """Evidence, proof, marker, and a look at what stands; in this order, and nothing between proof and marker."""
    if action.state is ActionState.DONE:
        return ItemOutcome(
            action_id=item.action_id, match_key=item.place, fate=ItemFate.ALREADY_DONE, place=action.outcome
        )
    standing = look_at(admin, item)
    if standing.state is not State.HANGS:
        return _abort_outcome(item, standing, ItemFate.ALREADY_DONE)
    work.audit("evidence", action_id=str(item.action_id), **read_evidence(admin, item))
    work.audit("ending", action_id=str(item.action_id), place=item.place)
    work.tell(ExecutorStep.EVIDENCE_KEPT, {})
    standing = look_at(admin, item)
    if standing.state is not State.HANGS:
        return _abort_outcome(item, standing, ItemFate.ALREADY_DONE)
    write_abort(admin, item)
    work.tell(ExecutorStep.MARKED, {})
    standing = wait_ended(admin, item, wait_seconds=_SETTLE_SECONDS)
    if standing.state is not State.ABORTED:
        raise BrokerUnreachable(
            f"{work.contract.contract}: {item.place}: the marker was written, and within {_SETTLE_SECONDS} s it is not "
            f"seen to have ended the transaction{f': {standing.reason}' if standing.reason else ''}"
        )
    return _abort_outcome(item, standing, ItemFate.DONE)


def _abort_outcome(item: AbortItem, standing: Standing, fate: ItemFate) -> ItemOutcome:
    """fate: where it hangs or our marker has ended it; else it is refused."""
    about: dict[str, Any] = {"action_id": item.action_id, "match_key": item.place, "place": standing.place}
    if standing.state in (State.UNPROVEN, State.ENDED):
        return ItemOutcome(fate=ItemFate.REFUSED, reason=standing.reason, **about)
    return ItemOutcome(fate=fate, **about)


def _execute_publishing(work: _Work, items: Sequence[PlanItem]) -> tuple[ItemOutcome, ...]:
    topic_id = ensure_progress_topic(work.connections.kafka, work.contract.contract)
    actions = _claim(work, items, outcome={"progress_topic_id": topic_id})
    _refuse_lost_progress(work, actions, topic_id)
    work.audit("executing", progress_topic_id=topic_id, transactional_id=work.transactional_id)
    work.tell(ExecutorStep.EXECUTING, {"transactional_id": work.transactional_id})
    attempts = Retrying(
        stop=stop_after_attempt(_ATTEMPTS),
        wait=wait_exponential(multiplier=0.2, max=5),
        retry=retry_if_exception_type(TransactionAborted),
        before_sleep=lambda state: work.audit("aborted", attempt=state.attempt_number),
        reraise=True,
    )
    outcomes = attempts(_attempt, work, items, actions)
    for n, outcome in enumerate(outcomes, start=1):
        _record(work, outcome)
        work.tell(ExecutorStep.RECORDED, {"item": n, "fate": outcome.fate})
    return outcomes


def _claim(
    work: _Work, actions: Sequence[AbortItem | PlanItem], *, outcome: Mapping[str, Any]
) -> dict[UUID, StoredAction]:
    return claim_actions(
        work.engine,
        work.plan,
        actions,
        executor=work.executor,
        outcome=outcome,
        allow=lambda spent: refuse_over_caps(work.contract, work.plan, spent=spent),
    )


def _execute_posts(work: _Work, items: Sequence[PlanItem]) -> tuple[ItemOutcome, ...]:
    """Each event in a database transaction of its own; the switch and the minutes are asked before each."""
    if work.connections.poster_dsn is None:
        raise PlanRefused(f"{work.contract.contract}: expected the connection of compensation.post, got none")
    actions = _claim(work, items, outcome={})
    work.audit("executing", table=work.contract.ledger.table)
    work.tell(ExecutorStep.EXECUTING, {"table": work.contract.ledger.table})
    proof = _prove(work, items, actions=actions, progress_topics=())
    posted = read_posted(work.connections.poster_dsn, work.contract, actions)
    outcomes = []
    for n, item in enumerate(items, start=1):
        _refuse_for_now(work)
        if item.action_id in posted:
            outcome = _already(item, {"table": work.contract.ledger.table})
        else:
            outcome = _fate(item, proof) or _post(work, item, proof, work.connections.poster_dsn)
        _record(work, outcome)
        work.tell(ExecutorStep.RECORDED, {"item": n, "fate": outcome.fate})
        outcomes.append(outcome)
    return tuple(outcomes)


def _post(work: _Work, item: PlanItem, proof: _Proof, dsn: str) -> ItemOutcome:
    event = json.loads(event_at(item.posts, proof.events.of(item)).value)
    posted = post_once(dsn, work.contract, item, event, plan_hash=work.plan.plan_hash, tell=work.tell)
    if posted.refused:
        return _refused(item, posted.refused)
    place = {"table": work.contract.ledger.table}
    if posted.already:
        return _already(item, place)
    return ItemOutcome(action_id=item.action_id, match_key=item.match_key, fate=ItemFate.PUBLISHED, place=place)


def _refuse_lost_progress(work: _Work, actions: Mapping[UUID, StoredAction], topic_id: str) -> None:
    """An action that began under another progress topic may have been published, and nobody can say."""
    begun = [action for action in actions.values() if action.state is ActionState.EXECUTING]
    lost = sorted(str(one.action_id) for one in begun if one.outcome.get("progress_topic_id") != topic_id)
    if lost:
        raise ProgressLost(
            f"{work.contract.contract}: {len(lost)} actions began under another progress topic, such as {lost[0]}"
        )


def _attempt(work: _Work, items: Sequence[PlanItem], actions: Mapping[UUID, StoredAction]) -> tuple[ItemOutcome, ...]:
    """Fence, read, prove, publish; in this order, or a predecessor's work goes unseen."""
    publisher = open_publisher(work.connections.kafka, transactional_id=work.transactional_id)
    work.tell(ExecutorStep.FENCED, {})
    proof = _prove(work, items, actions=actions, progress_topics=(progress_topic_name(work.contract.contract),))
    fates = {item.action_id: _fate(item, proof) for item in items}
    publish = [item for item in items if fates[item.action_id] is None]
    published: dict[UUID, ItemOutcome] = {}
    for first in range(0, len(publish), _TOGETHER):
        try:
            _refuse_for_now(work)
        except PlanRefused:
            for outcome in published.values():
                _record(work, outcome)
            raise
        published |= _publish_batch(work, publisher, publish[first : first + _TOGETHER], proof)
    return tuple(fates[item.action_id] or published[item.action_id] for item in items)


def _publish_batch(
    work: _Work, publisher: Producer, items: Sequence[PlanItem], proof: _Proof
) -> dict[UUID, ItemOutcome]:
    """One producer transaction, told before and after."""
    work.audit("publishing", actions=[str(item.action_id) for item in items])
    places = _publish(work, publisher, items, proof)
    work.audit("published", places={str(action_id): place for action_id, place in places.items()})
    return {
        item.action_id: ItemOutcome(
            action_id=item.action_id, match_key=item.match_key, fate=ItemFate.PUBLISHED, place=places[item.action_id]
        )
        for item in items
    }


def _prove(
    work: _Work, items: Sequence[PlanItem], *, actions: Mapping[UUID, StoredAction], progress_topics: Sequence[str]
) -> _Proof:
    """Read progress, log and ledger, in this order: each up to what stands at its moment."""
    kafka, contract, topics = work.connections.kafka, work.contract, _topics(items)
    settled = settle_topics(kafka, {*progress_topics, *topics}, wait_seconds=_SETTLE_SECONDS)
    progress: Mapping[UUID, Progress] = {}
    if progress_topics:
        progress = read_progress(kafka, contract.contract, settled)
        work.tell(ExecutorStep.PROGRESS_READ, {"published": sum(item.action_id in progress for item in items)})
    partitions = [part for topic in topics for part in settled.of(topic)]
    events = find_events(read_committed(kafka, partitions), items, contract.event)
    with open_ledger(work.connections.ledger_dsn) as ledger:
        rows = read_source_rows(ledger, contract.ledger, {item.match_key for item in items})
    work.tell(ExecutorStep.PROVED, {})
    return _Proof(actions=actions, progress=progress, events=events, held=settled.held, rows=rows, names=contract.event)


def _fate(item: PlanItem, proof: _Proof) -> ItemOutcome | None:
    """None: nothing speaks against publishing it now."""
    action, standing = proof.actions.get(item.action_id), proof.events.of(item)
    if item.kind is Kind.POST:
        return _post_fate(item, action, proof)
    ours = [event for event in standing if event.action_id == str(item.action_id)]
    if ours or item.action_id in proof.progress:
        return _already(item, ours[0].place if ours else {"topic": item.topic})
    if action is not None and action.state is ActionState.DONE:
        return _already(item, action.outcome)
    if item.kind is Kind.REPUBLISH and standing:
        return _refused(item, f"the event stands: {_where(standing[0])}")
    if item.topic in proof.held:
        return _refused(item, f"not provable now: an open producer transaction holds {item.topic}")
    if proof.events.may_hide(item):
        return _refused(item, f"not provable: a record of its message key in {item.topic} is unreadable")
    if item.kind is Kind.REVERSE and (reason := why_not_reversible(item, standing, proof.names)):
        return _refused(item, reason)
    if proof.rows.get(item.match_key) != (item.row,):
        return _refused(item, "the ledger row is gone, doubled or changed")
    return None


def _post_fate(item: PlanItem, action: StoredAction | None, proof: _Proof) -> ItemOutcome | None:
    """Of one whose action has not posted yet; the transaction that posts asks that once more."""
    if action is not None and action.state is ActionState.DONE:
        return _already(item, action.outcome)
    reason = why_not_postable(item, proof.events.of(item), proof.names)
    return _refused(item, reason) if reason else None


def _already(item: PlanItem, place: Mapping[str, Any]) -> ItemOutcome:
    return ItemOutcome(action_id=item.action_id, match_key=item.match_key, fate=ItemFate.ALREADY_PUBLISHED, place=place)


def _refused(item: PlanItem, reason: str) -> ItemOutcome:
    return ItemOutcome(action_id=item.action_id, match_key=item.match_key, fate=ItemFate.REFUSED, reason=reason)


def _publish(
    work: _Work, publisher: Producer, items: Sequence[PlanItem], proof: _Proof
) -> dict[UUID, Mapping[str, Any]]:
    """Events and progress in one producer transaction; give where each event stands."""
    session = f"tallystick-{uuid.uuid4()}"
    events = [_event_of(work, item, proof, session=session) for item in items]
    progress_topic = progress_topic_name(work.contract.contract)
    progress = [
        OutgoingRecord(topic=progress_topic, key=key, value=value)
        for key, value in (progress_record(work.plan, item) for item in items)
    ]
    places = publish_together(publisher, [*events, *progress], tell=work.tell)
    return {item.action_id: place for item, place in zip(items, places, strict=False)}


def _event_of(work: _Work, item: PlanItem, proof: _Proof, *, session: str) -> OutgoingRecord:
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


def _record(work: _Work, outcome: ItemOutcome) -> None:
    """Raises ExecutorFenced instead of a refusal that a later start may be making untrue."""
    if outcome.fate is ItemFate.REFUSED:
        detail: dict[str, Any] = {"reason": outcome.reason}
        if not record_refusal(work.engine, outcome.action_id, executor=work.executor, outcome=detail):
            raise ExecutorFenced(f"{work.contract.contract}: another executor has claimed {outcome.action_id} since")
    else:
        detail = dict(outcome.place or {})
        record_done(work.engine, outcome.action_id, outcome=detail)
    work.audit(str(outcome.fate), action_id=str(outcome.action_id), **detail)


def _check(
    item: PlanItem, standing: Sequence[StandingEvent], rows: Sequence[SourceRow], names: EventFields, *, held: bool
) -> ItemCheck:
    """Of what the retained log shows; an open transaction may hide more."""
    found = effect_of(item, standing, rows, names)
    hidden = held and item.kind is not Kind.POST and found is not Effect.CHANGED
    return ItemCheck(
        match_key=item.match_key,
        effect=Effect.HIDDEN if hidden else found,
        places=tuple(event.place for event in standing),
    )


def _topics(items: Sequence[PlanItem]) -> tuple[str, ...]:
    return tuple(sorted({item.topic for item in items}))


def _where(event: StandingEvent) -> str:
    return f"{event.topic}[{event.partition}] at {event.kafka_offset}"
