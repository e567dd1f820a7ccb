"""Repairs that write rows to the ledger, each in a transaction of its own."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any
from uuid import UUID

from tallystick.compensation.plan import (
    PlanItem,
    PlanRefused,
    RepairKind,
    plan_id_of,
)
from tallystick.compensation.planning import why_row_may_have_come
from tallystick.compensation.repair_effect import rows_show
from tallystick.compensation.republished_event import document_at, event_at
from tallystick.executor.effects.action_log import (
    ActionResult,
    ExecutionContext,
    ItemOutcome,
    refused,
    run_actions,
    waits,
)
from tallystick.executor.effects.post_to_ledger import counterpost_once, post_once, posted_for, read_posted
from tallystick.executor.effects.step import ExecutorStep
from tallystick.executor.prove_repairs import (
    Proof,
    already_done,
    fate_of_action,
    is_done,
    prove_actions,
    why_overtaken,
    why_unproven,
)
from tallystick.ledger.postgres_connection import read_database_identity
from tallystick.store.plans.claim_store import held_among
from tallystick.store.plans.plan_store import (
    read_plan,
)
from tallystick.store.runs.loss_store import last_cut_with_rows_unread
from tallystick.text.plain import escape_untrusted


def execute_posts(work: ExecutionContext, items: Sequence[PlanItem]) -> tuple[ItemOutcome, ...]:
    """Post each in a database transaction of its own; the switch and the hours are asked before each."""
    dsn = work.connections.poster_dsn
    if dsn is None:
        raise PlanRefused(f"{work.contract.name}: expected the connection of compensation.post, got none")
    ledger = read_database_identity(work.connections.ledger_dsn)
    if (found := read_database_identity(dsn)) != ledger:
        raise PlanRefused(
            f"{work.contract.name}: the connection of compensation.post leads to database {found}; expected "
            f"{ledger}, where ledger.connection leads"
        )
    actions = work.claim(items, ledger=f"{ledger}/{work.contract.ledger.table}")
    work.audit("executing", table=work.contract.ledger.table)
    work.on_progress(ExecutorStep.EXECUTING, {"table": work.contract.ledger.table})
    posted = read_posted(dsn, work.contract, actions)  # before the rows are read: they came with these, or are gone
    proof = prove_actions(work, items, actions=actions, progress_topics=())
    return run_actions(work, items, lambda item: _post(work, item, proof, posted, dsn))


def _post(work: ExecutionContext, item: PlanItem, proof: Proof, posted: Mapping[UUID, str], dsn: str) -> ItemOutcome:
    """Post one. An action that an earlier start may be posting is refused, for whatever reason, only once the ledger
    says that it has not."""
    place = {"table": work.contract.ledger.table}
    if is_done(action := proof.actions.get(item.action_id)):
        return already_done(item, action.outcome)
    if item.action_id in posted:
        if work.reopened.get(item.action_id) and not rows_show(item, proof.rows.get(item.match_key, ())):
            return waits(item, _row_of_before(work, item))
        return _posted_before(work, item, posted[item.action_id])
    event: Mapping[str, Any] = {}
    fate = fate_of_action(item, proof) or why_unproven(work, item, proof) or _outcome_if_overtaken(work, item, proof)
    if fate is None and item.kind is RepairKind.POST:
        try:
            event = document_at(event_at(item.posts, proof.events.of(item)).value, _copied_fields(work))
        except ValueError:
            fate = refused(item, "a number of its event has too many digits to be read, or too large an exponent")
    if fate is not None:
        mine = item.action_id in work.begun | work.unclaimed
        plan_hash = None if mine else posted_for(dsn, work.contract, item)
        return fate if plan_hash is None else _posted_before(work, item, plan_hash)

    def may_write() -> str | None:
        work.refuse_for_now()
        if not held_among(work.engine, [item.action_id], work.executor):
            return "another executor has claimed it since"
        unread_at = last_cut_with_rows_unread(work.engine, work.contract.name)
        if item.kind is RepairKind.POST and unread_at > work.plan.cut_n:
            return why_row_may_have_come(unread_at)
        return work.why_not_now([item]).get(item.action_id)

    plan_hash = work.plan.plan_hash
    if item.kind is RepairKind.COUNTERPOST:
        done = counterpost_once(
            dsn, work.contract, item, plan_hash=plan_hash, may_write=may_write, on_progress=work.on_progress
        )
    else:
        done = post_once(
            dsn, work.contract, item, event, plan_hash=plan_hash, may_write=may_write, on_progress=work.on_progress
        )
    if done.refused:
        return refused(item, done.refused)
    if done.posted_for is not None:
        return _posted_before(work, item, done.posted_for)
    return ItemOutcome(action_id=item.action_id, match_key=item.match_key, fate=ActionResult.PUBLISHED, place=place)


def _copied_fields(work: ExecutionContext) -> Collection[str]:
    rules = work.contract.compensation
    return rules.post.columns.values() if rules and rules.post else ()


def _outcome_if_overtaken(work: ExecutionContext, item: PlanItem, proof: Proof) -> ItemOutcome | None:
    reason = why_overtaken(work, item, proof)
    return refused(item, reason) if reason else None


def _row_of_before(work: ExecutionContext, item: PlanItem) -> str:
    return (
        f"it was reopened, {work.contract.actions_table} still has the row of action {item.action_id}, and the ledger "
        "has none of its rows; delete the action's row there, then reopen it once more"
    )


def _posted_before(work: ExecutionContext, item: PlanItem, plan_hash: str) -> ItemOutcome:
    """Return what an action's row in the ledger proves. Anybody who may insert there may forge one, so it counts for a
    stored plan only.
    """
    ours = plan_hash == work.plan.plan_hash
    if not ours and (plan := read_plan(work.engine, plan_id_of(plan_hash))) is not None:
        ours = item.action_id in {planned.action_id for planned in plan.items}
    if ours:
        return already_done(item, {"table": work.contract.ledger.table})
    named = escape_untrusted(plan_hash, characters_max=64)
    doubt = f"{work.contract.actions_table} has a row of action {item.action_id} for plan hash {named!r}"
    return waits(item, f"{doubt}, and no stored plan of this hash has it; that row must go before it can be posted")
