"""The breaks of a plan that DAGs repair: triggers the runs, rehearses that, and looks at them, by airflow_api.py.

A run with the action's id is its own progress, unless a person who knew of it has reopened the action since. Once a run
was asked for, an action of which nobody can say whether its DAG ran waits for a person. That another Airflow than the
one that was asked has no such run says nothing.
"""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import Engine

from tallystick.compensation.effect_words import is_about_rows
from tallystick.compensation.plan import Plan, PlanItem, PlanRefused, RepairKind
from tallystick.compensation.repair_effect import RepairEffect
from tallystick.connections.connections import Connections, HttpAccount
from tallystick.contract.contract import Contract
from tallystick.documents.plan import conf_of
from tallystick.executor.effects.action_log import (
    ActionResult,
    ExecutionContext,
    ItemCheck,
    ItemOutcome,
    record_each,
    refused,
    run_actions,
    waits,
)
from tallystick.executor.effects.airflow_api import AirflowApi, DagRun, open_airflow
from tallystick.executor.effects.publish_events import ExecutorFenced
from tallystick.executor.effects.step import ExecutorStep
from tallystick.executor.prove_handed_over import HandOverProof, prove_handed_over
from tallystick.executor.prove_repairs import changed_connection
from tallystick.ledger.postgres_connection import read_database_identity
from tallystick.store.plans.claim_store import STARTING, note_starting
from tallystick.store.plans.plan_store import ActionState, StoredAction, open_actions
from tallystick.store.runs.contract_store import contract_of_fingerprint


def trigger_dags(work: ExecutionContext) -> tuple[ItemOutcome, ...]:
    """Start a run of its DAG for each."""
    items = _handed_over(work.plan)
    if not items:
        return ()
    account = _airflow_of(work.contract, work.connections)
    actions = work.claim(items, ledger=_ledger_of(work, items))
    work.audit("executing", dags=sorted({item.triggers for item in items}))
    work.on_progress(ExecutorStep.EXECUTING, {"dags": len({item.triggers for item in items})})
    elsewhere = asked_elsewhere(work.engine, work.contract, work.plan)
    proof = _look(work, items, actions)

    def start(item: PlanItem) -> ItemOutcome:
        action = actions.get(item.action_id)
        return _out_of_sight(airflow, item, action, elsewhere) or _start(work, airflow, item, action, proof.reasons)

    record_each(work, [refused(item, str(proof.error)) for item in items if item.action_id in proof.unanswered])
    outcomes: tuple[ItemOutcome, ...] = ()
    if answered := [item for item in items if item.action_id not in proof.unanswered]:
        with open_airflow(account) as airflow:
            outcomes = run_actions(work, answered, start)
    if proof.error is not None:
        raise proof.error
    return outcomes


def _look(work: ExecutionContext, items: Sequence[PlanItem], actions: Mapping[UUID, StoredAction]) -> HandOverProof:
    """Ask the topics of each that may begin now, once it is claimed: whoever reopens it from here on ends this start.

    Of no other one is a run asked for. That none was before is known, where nobody has noted it.
    """
    fresh = [item for item in items if not _may_have_run(actions.get(item.action_id))]
    return prove_handed_over(work, [item for item in fresh if item.action_id not in work.stopped])


def rehearse_triggers(work: ExecutionContext) -> dict[UUID, ItemOutcome]:
    """Ask of each DAG whether its run would begin."""
    items = _handed_over(work.plan)
    if not items:
        return {}
    with open_airflow(_airflow_of(work.contract, work.connections)) as airflow:
        reasons = {item.action_id: airflow.why_not_startable(item.triggers) for item in items}
    proof = prove_handed_over(work, items)
    if proof.error is not None:
        raise proof.error
    return {
        item.action_id: refused(item, reason)
        if (reason := reasons[item.action_id] or proof.reasons[item.action_id])
        else ItemOutcome(action_id=item.action_id, match_key=item.match_key, fate=ActionResult.WOULD_DO)
        for item in items
    }


def check_handed_over(
    contract: Contract, plan: Plan, connections: Connections, elsewhere: Mapping[UUID, str]
) -> dict[UUID, ItemCheck]:
    """Check that each DAG's run exists and has not failed. That does not prove that it repaired anything. elsewhere: as
    `asked_elsewhere` gives it.
    """
    items = _handed_over(plan)
    if not items:
        return {}
    with open_airflow(_airflow_of(contract, connections)) as airflow:
        return {item.action_id: _check(airflow, plan, item, elsewhere.get(item.action_id, "")) for item in items}


def asked_elsewhere(engine: Engine, contract: Contract, plan: Plan) -> dict[UUID, str]:
    """Return the plan's actions whose runs may have been asked for under another connection than the contract's, and
    what that says where its Airflow has none.
    """
    if contract.fingerprint == plan.contract_fingerprint or not _handed_over(plan):
        return {}
    then = contract_of_fingerprint(engine, contract.name, plan.contract_fingerprint)
    changed = changed_connection(then, contract)
    if changed is not None:
        was, now = changed
        reason = (
            f"its run was asked for, or may have been, under compensation.trigger.connection {was}, and the contract "
            f"has {now}, whose Airflow has no such run; the other one may have it"
        )
    elif then is None:
        reason = (
            "under which compensation.trigger.connection its run was asked for is not known, since the contract that "
            "its plan began under is not stored or not readable; the Airflow of the contract's own has no such run"
        )
    else:
        return {}
    held = {one.action_id: one for one in open_actions(engine, contract.name).values() if one.plan_id == plan.plan_id}
    asked = (item.action_id for item in _handed_over(plan) if _may_have_run(held.get(item.action_id)))
    return dict.fromkeys(asked, reason)


def _handed_over(plan: Plan) -> Sequence[PlanItem]:
    return [item for item in plan.items if item.kind is RepairKind.TRIGGER]


def _airflow_of(contract: Contract, connections: Connections) -> HttpAccount:
    if connections.airflow is None:
        raise PlanRefused(f"{contract.name}: expected the connection of compensation.trigger, got none")
    return connections.airflow


def _ledger_of(work: ExecutionContext, items: Sequence[PlanItem]) -> str:
    """Database and table, as whoever posts there names them; "" where no DAG is to change rows of a PostgreSQL."""
    ledger = work.contract.ledger
    if ledger.kind != "postgres" or not any(is_about_rows(item) for item in items):
        return ""
    return f"{read_database_identity(work.connections.ledger_dsn)}/{ledger.table}"


def _start(
    work: ExecutionContext,
    airflow: AirflowApi,
    item: PlanItem,
    action: StoredAction | None,
    unproven: Mapping[UUID, str | None],
) -> ItemOutcome:
    if action is not None and action.state is ActionState.DONE:
        fate = ActionResult.ALREADY_DONE
    else:
        asked: list[bool] = []

        def may_start() -> str | None:
            reason = _why_not_started(work, item, unproven)
            asked.append(reason is None)
            return reason

        started = airflow.start_once(
            item.triggers,
            str(item.action_id),
            conf_of(work.plan, item),
            asked_before=_was_asked_for(action),
            may_start=may_start,
        )
        since = _was_asked_for_since(action) or any(asked)
        before = action is not None and action.reopened and not since
        if doubt := started.doubt or (_of_before(item) if started.already and before else ""):
            return waits(item, doubt, seen={STARTING: True} if since else None)
        if started.refused:
            return refused(item, started.refused)
        work.on_progress(ExecutorStep.STARTED, {"dag_id": item.triggers, "dag_run_id": str(item.action_id)})
        fate = ActionResult.ALREADY_DONE if started.already else ActionResult.DONE
    return ItemOutcome(action_id=item.action_id, match_key=item.match_key, fate=fate, place=_run_place(item))


def _out_of_sight(
    airflow: AirflowApi, item: PlanItem, action: StoredAction | None, elsewhere: Mapping[UUID, str]
) -> ItemOutcome | None:
    """Report a run that this Airflow has not, and that another one may have; None: it is none of these."""
    is_done = action is not None and action.state is ActionState.DONE
    reason = elsewhere.get(item.action_id)
    if is_done or reason is None or airflow.find_run(item.triggers, str(item.action_id)):
        return None
    return waits(item, reason, seen={STARTING: True} if _was_asked_for_since(action) else None)


def _may_have_run(action: StoredAction | None) -> bool:
    return action is not None and (action.state is ActionState.DONE or _was_asked_for(action))


def _was_asked_for(action: StoredAction | None) -> bool:
    """Return whether a start before this one may have asked for its run. One that waits does not end by a look."""
    return action is not None and (action.state is ActionState.WAITING or _was_asked_for_since(action))


def _was_asked_for_since(action: StoredAction | None) -> bool:
    """Return whether its run was asked for since it was last reopened: what was noted before that is gone."""
    return action is not None and bool(action.outcome.get(STARTING))


def _of_before(item: PlanItem) -> str:
    return (
        f"it was reopened, and Airflow still has run {item.action_id} of {item.triggers}, which nobody has asked for "
        "since; Airflow starts no second run of that id before that one is deleted there"
    )


def _why_not_started(work: ExecutionContext, item: PlanItem, unproven: Mapping[UUID, str | None]) -> str | None:
    """Return the reason why an action has no run. None: there is none, and the request is stored before it is made."""
    work.refuse_for_now()
    if reason := work.why_not_now([item]).get(item.action_id) or unproven[item.action_id]:
        return reason
    if not note_starting(work.engine, item.action_id, executor=work.executor):
        raise ExecutorFenced(f"{work.contract.name}: another executor has claimed {item.action_id} since")
    return None


def _run_place(item: PlanItem) -> dict[str, str]:
    return {"dag_id": item.triggers, "dag_run_id": str(item.action_id)}


def _check(airflow: AirflowApi, plan: Plan, item: PlanItem, elsewhere: str) -> ItemCheck:
    run, conf = airflow.find_run(item.triggers, str(item.action_id)), conf_of(plan, item)
    hidden = elsewhere if run is None else ""
    return ItemCheck(
        match_key=item.match_key,
        effect=RepairEffect.HIDDEN if hidden else _effect(run, conf),
        places=(_run_place(item),),
        reason=hidden,
        run_ended=run is not None and run.conf == conf and run.has_ended,
    )


def _effect(run: DagRun | None, conf: Mapping[str, Any]) -> RepairEffect:
    if run is None or run.state == "failed":
        return RepairEffect.NOT_CLEARED
    return RepairEffect.HANDED_OVER if run.conf == conf else RepairEffect.CHANGED
