"""The check of the breaks that a plan repaired."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import Engine

from tallystick.compensation.plan import (
    INTO_LEDGER,
    CurrentRow,
    Plan,
    PlanItem,
)
from tallystick.compensation.repair_effect import RepairEffect, effect_of
from tallystick.compensation.republished_event import (
    CurrentEvent,
    find_events,
)
from tallystick.connections.connections import Connections
from tallystick.contract.contract import Contract
from tallystick.contract.event import EventFields
from tallystick.executor.effects.abort_transactions import check_aborts
from tallystick.executor.effects.action_log import SETTLE_SECONDS, ItemCheck
from tallystick.executor.effects.source_rows import read_source_rows
from tallystick.executor.effects.trigger_dags import asked_elsewhere, check_handed_over
from tallystick.executor.prove_repairs import (
    contract_to_look_by,
    repaired_here,
    topics_of,
)
from tallystick.kafka_log.committed_records import read_committed, settle_topics
from tallystick.ledger.postgres_connection import open_ledger
from tallystick.model.verdict import Verdict, merge_verdicts
from tallystick.store.plans.plan_life_store import RUNS_ENDED, VERIFIED
from tallystick.store.plans.plan_store import append_audit

_NOWHERE: Mapping[UUID, str] = {}


@dataclass(frozen=True, kw_only=True)
class VerifyResult:
    """MATCHED: each break of the plan is cleared. INCONCLUSIVE: a transaction hides it, or a DAG has it or may have."""

    verdict: Verdict
    checks: tuple[ItemCheck, ...]


def verify_plan(
    contract: Contract, plan: Plan, connections: Connections, *, elsewhere: Mapping[UUID, str] = _NOWHERE
) -> VerifyResult:
    """Look at each action's effect again, in the plan's order: is its break cleared? No action proves nothing.

    elsewhere: runs that another Airflow may have, and why.
    """
    handed_over = check_handed_over(contract, plan, connections, elsewhere)
    found = _check_items(contract, repaired_here(plan), connections) | handed_over
    checks = (*check_aborts(plan, connections), *(found[item.action_id] for item in plan.items))
    return VerifyResult(verdict=merge_verdicts(check.verdict for check in checks), checks=checks)


def _check_items(contract: Contract, items: Sequence[PlanItem], connections: Connections) -> dict[UUID, ItemCheck]:
    """Read the touched topics up to the LSO, and the ledger."""
    if not items:
        return {}
    settled = settle_topics(connections.kafka, topics_of(items), wait_seconds=SETTLE_SECONDS)
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
    """Verify by the rules that the plan was carried out by, and store the effect of each action in the audit trail."""
    looked_by = contract_to_look_by(engine, contract, plan)
    result = verify_plan(looked_by, plan, connections, elsewhere=asked_elsewhere(engine, looked_by, plan))
    checked = {str(item.action_id): check for item, check in zip(plan.actions, result.checks, strict=True)}
    effects = {action_id: check.effect for action_id, check in checked.items()}
    ended = [action_id for action_id, check in checked.items() if check.run_ended]
    append_audit(
        engine,
        contract.name,
        plan_id=plan.plan_id,
        actor=actor,
        event=VERIFIED,
        detail={"plan_hash": plan.plan_hash, "verdict": result.verdict, "effects": effects, RUNS_ENDED: ended},
    )
    return result


def _check(
    item: PlanItem, standing: Sequence[CurrentEvent], rows: Sequence[CurrentRow], names: EventFields, *, held: bool
) -> ItemCheck:
    """Check what the retained log shows; an open transaction may hide more."""
    found = effect_of(item, standing, rows, names)
    hidden = held and item.kind not in INTO_LEDGER and found is not RepairEffect.CHANGED
    return ItemCheck(
        match_key=item.match_key,
        effect=RepairEffect.HIDDEN if hidden else found,
        places=tuple(event.place for event in standing),
    )
