"""The execution of a plan: each repair at most once over all plans, whatever crashes, retries or runs twice.

How it works. A break has one action id, for ever. The store says "executing" before Kafka is touched, and says so only
while the break is outstanding: store/claim_store.py. One transactional id per contract and environment fences every
other executor. After init_transactions, and only then, the progress topic tells what was published already; each event
is proven absent from the log once more, or its copy one too many, and its break is asked for once more, and again right
before the commit. What the log retains no more must have been judged: the retained log has to begin no later than the
newest verdict's cut ends. A start that a later one has claimed from since publishes nothing: its actions may be refused
by now. Events and progress records then stand in one producer transaction. The store's outcome is written last and may
be lost: progress decides. What is posted into the ledger has its progress there: post_to_ledger.py. A hanging
transaction's marker is its own progress, and so is the run of a DAG: abort_marker.py, airflow_api.py.

A plan that has begun is held against the newest run as a new one is, and against the contract as it is now: whether a
thing may be done, and whether in the way that was approved. The contract that it begins under is kept, so that this can
be told. What it did is found and recorded first; what it did not do, and may not do any more, is refused, and another
plan may take it.

What it cannot do. A producer of the contract's own that publishes a missing event between our last look and our commit
makes a second copy; the next run finds it.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from uuid import UUID

from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from tallystick.compensation.approval_rules import refuse_too_few_people, why_too_old
from tallystick.compensation.caps import refuse_over_caps
from tallystick.compensation.plan import (
    INTO_LEDGER,
    ApprovalTooOld,
    CapsExceeded,
    CompensationOff,
    Plan,
    PlanItem,
    PlanRefused,
    PlanStale,
)
from tallystick.connections.connections import Connections
from tallystick.contract.contract import Contract
from tallystick.executor.draw_plan import draw_plan, why_not_any_more
from tallystick.executor.effects.abort_transactions import execute_aborts, rehearse_aborts
from tallystick.executor.effects.action_log import ActionResult, ExecutionContext, ItemOutcome, refuse_begun
from tallystick.executor.effects.step import ExecutorStep, OnProgress, no_progress
from tallystick.executor.effects.trigger_dags import rehearse_triggers, trigger_dags
from tallystick.executor.post_repairs import execute_posts
from tallystick.executor.prove_repairs import (
    contract_to_look_by,
    fate_of_action,
    is_done,
    outcome_figures,
    prove_actions,
    repaired_here,
    why_done_otherwise,
    why_unproven,
)
from tallystick.executor.publish_repairs import execute_publishing
from tallystick.host.terminal_user import Terminal, at_terminal
from tallystick.ledger.protocol import LedgerRefused
from tallystick.store.clock import store_now
from tallystick.store.plans.approval_store import agreements, last_voided, requesters
from tallystick.store.plans.plan_store import (
    open_actions,
    read_plan,
    spent_today,
)
from tallystick.store.runs.contract_store import keep_contract, require_same_books
from tallystick.text.plain import printed_text


@dataclass(frozen=True, kw_only=True)
class Execution:
    """The result of one call of execute_plan, in the plan's order."""

    plan_id: UUID
    plan_hash: str
    dry_run: bool
    outcomes: tuple[ItemOutcome, ...]

    def count(self, fate: ActionResult) -> int:
        return sum(outcome.fate is fate for outcome in self.outcomes)


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
    on_progress: OnProgress = no_progress,
    now: Callable[[], datetime] | None = None,
) -> Execution:
    """Carry out an approved plan, or say why not. Safe to call again with the same arguments after any failure.

    approver: who answers for this start. approved_in: the scheduler's run in which people agreed, whose yes has an age;
    "": whoever has agreed to this plan counts, and where nobody needs to, this call is the approval.
    terminal: where approver sits, on the command line. on_progress: called with each step once it is done. now:
    the verdict store's clock, unless another is given.
    A new plan must still be what the store would plan now. Of one that has begun, what would not be planned so any more
    is refused by itself, once it is known not to be done.
    A dry run proves every item, publishes nothing and writes only the audit trail.
    The kill switch, the acting hours and the approval's age are asked before each producer transaction, row or run, and
    again right before its commit: what was committed by then stays and is told, the rest is refused for now.
    Whatever ends it is a line of the audit trail and goes on.
    Raises PlanRefused (PlanStale, ApprovalTooOld, CompensationOff, CapsExceeded, NotAnApprover, OnePersonOnly,
    ActingStopped, OutsideActingHours),
    ContractChangeRefused, ProgressLost; what another start can cure: ProgressHeld, ExecutorFenced, TransactionAborted.
    """
    work = ExecutionContext(
        engine=engine,
        contract=contract_to_look_by(engine, contract, plan),
        connections=connections,
        plan=plan,
        approver=approver,
        environment=environment,
        on_progress=on_progress,
        now=now or partial(store_now, engine),
        approved_in=approved_in,
    )
    begun = {"approved_hash": approved_hash, "dry_run": plan.dry_run, "items": len(plan.actions)}
    work.audit("approved", **begun, **at_terminal(terminal))
    try:
        _refuse_unapproved(work, approved_hash, allowed=contract)
        on_progress(ExecutorStep.APPROVED, {})
        outcomes = _rehearse(work) if plan.dry_run else _execute(work)
    except Exception as error:
        if isinstance(error, PlanRefused | LedgerRefused):
            refuse_begun(work, str(error))
        on_progress(ExecutorStep.STOPPED, {"error": type(error).__name__, "message": str(error)})
        with suppress(SQLAlchemyError):  # where the store is what failed, that is what must be told
            work.audit("stopped", error=type(error).__name__, message=printed_text(str(error)))
        raise
    work.audit("finished", **{fate: sum(outcome.fate is fate for outcome in outcomes) for fate in ActionResult})
    on_progress(ExecutorStep.FINISHED, {"outcomes": [outcome_figures(outcome) for outcome in outcomes]})
    return Execution(plan_id=plan.plan_id, plan_hash=plan.plan_hash, dry_run=plan.dry_run, outcomes=outcomes)


def _refuse_unapproved(work: ExecutionContext, approved_hash: str, *, allowed: Contract) -> None:
    """Refuse a plan that is not approved. allowed: the contract as it is now. A begun plan skips what that forbids;
    one that has not begun must be what would be planned by it, so that no older rule counts for that.
    """
    plan, contract = work.plan, work.contract
    require_same_books(work.engine, contract)  # also a plan that has begun: by another key its events are not found
    if approved_hash != plan.plan_hash:
        raise PlanStale(
            f"{contract.name}: approved was {approved_hash}, the plan is {plan.plan_hash}; ask for a new plan"
        )
    begun = open_actions(work.engine, contract.name)
    has_begun = any(action.plan_id == plan.plan_id for action in begun.values())
    forbidden = _why_forbidden(allowed, plan, has_begun=has_begun)
    if read_plan(work.engine, plan.plan_id) is None:
        raise PlanStale(
            f"{contract.name}: plan {plan.plan_id} was never stored; expected a plan of this verdict store. Ask for "
            "it there, with `tallystick compensation plan CONTRACT_FILE --by NAME`"
        )
    if contract.compensation is None:
        raise CompensationOff(
            f"{contract.name}: the contract has no compensation any more, and the one by which plan {plan.plan_id} was "
            "begun is not stored or not readable; expected the section until the plan has ended: put it "
            "back, and execute the plan"
        )
    asked, voided = requesters(work.engine, plan), last_voided(work.engine, plan)
    agreed = agreements(work.engine, plan.plan_id, voided=voided, scheduler_run_id=work.approved_in)
    refuse_too_few_people(contract, plan, asked=asked, agreed=agreed, voided=voided)
    if not plan.dry_run:
        work.refuse_for_now()
    too_old = why_too_old(contract, plan, asked=asked, agreed=agreed, approved_in=work.approved_in, voided=voided)
    work.note_approval(asked, agreed)
    if has_begun:
        reasons = why_done_otherwise(work.engine, allowed, plan)
        if reason := forbidden or too_old:
            reasons = dict.fromkeys((action.action_id for action in plan.actions), reason)
        undone = {one: why for one, why in reasons.items() if not is_done(begun.get(one))}
        work.stopped.update(undone | why_not_any_more(work.engine, contract, work.connections, plan, begun))
        return
    if too_old:
        raise ApprovalTooOld(f"{contract.name}: {too_old}")
    refuse_over_caps(allowed, plan, spent=spent_today(work.engine, contract.name))
    now = draw_plan(work.engine, allowed, work.connections, cut_n=plan.cut_n, dry_run=plan.dry_run)
    if now.plan_hash != plan.plan_hash:
        raise PlanStale(
            f"{contract.name}: approved was {plan.plan_hash}, today's plan is {now.plan_hash}: breaks, rows, caps "
            "or the newest run have changed since; ask for a new plan"
        )
    if not plan.dry_run:
        keep_contract(work.engine, allowed)  # whose rules say how, whatever the file says once the plan has begun


def _why_forbidden(allowed: Contract, plan: Plan, *, has_begun: bool) -> str | None:
    """Return what in the contract forbids the plan as a whole; None: nothing.

    Raises CompensationOff, CapsExceeded of a plan that has not begun.
    """
    try:
        refuse_over_caps(allowed, plan)
    except (CompensationOff, CapsExceeded) as error:
        if not has_begun:
            raise
        return str(error)
    return None


def _rehearse(work: ExecutionContext) -> tuple[ItemOutcome, ...]:
    found = _rehearse_items(work, repaired_here(work.plan)) | rehearse_triggers(work)
    return (*rehearse_aborts(work), *(found[item.action_id] for item in work.plan.items))


def _rehearse_items(work: ExecutionContext, items: Sequence[PlanItem]) -> dict[UUID, ItemOutcome]:
    if not items:
        return {}
    proof = prove_actions(work, items, actions=open_actions(work.engine, work.contract.name), progress_topics=())
    return {
        item.action_id: fate_of_action(item, proof)
        or why_unproven(work, item, proof)
        or ItemOutcome(action_id=item.action_id, match_key=item.match_key, fate=ActionResult.WOULD_PUBLISH)
        for item in items
    }


def _execute(work: ExecutionContext) -> tuple[ItemOutcome, ...]:
    ended = execute_aborts(work)
    repaired = repaired_here(work.plan)
    outcomes: tuple[ItemOutcome, ...] = ()
    if any(item.kind in INTO_LEDGER for item in repaired):
        outcomes = execute_posts(work, repaired)
    elif repaired:
        outcomes = execute_publishing(work, repaired)
    by_action = {outcome.action_id: outcome for outcome in (*outcomes, *trigger_dags(work))}
    return (*ended, *(by_action[item.action_id] for item in work.plan.items))
