"""Plans, repairs and looks again, with the real servers: ada asks, bob approves."""

from typing import Any, Protocol

from sqlalchemy import Engine, text

from tallystick.compensation import Execution, execute_plan, verify_plan
from tallystick.compensation_plan import Plan
from tallystick.compensation_source import draw_plan
from tallystick.connections import Connections
from tallystick.contract import Contract
from tallystick.repair_effect import Effect
from tallystick.store.plan_store import read_audit, save_plan


class Repaired(Protocol):
    """Books that a compensation acts on."""

    @property
    def store(self) -> Engine: ...

    @property
    def contract(self) -> Contract: ...

    @property
    def connections(self) -> Connections: ...


def planned(books: Repaired, cut_n: int, *, dry_run: bool = False) -> Plan:
    """The plan of a stored run, kept as it is when somebody asks for it."""
    plan = draw_plan(books.store, books.contract, books.connections, cut_n=cut_n, dry_run=dry_run)
    save_plan(books.store, plan, requested_by="ada")
    return plan


def executed(books: Repaired, plan: Plan, **how: Any) -> Execution:
    """how: arguments of execute_plan other than these."""
    given = {
        "contract": books.contract,
        "connections": books.connections,
        "approved_hash": plan.plan_hash,
        "approver": "bob",
        "environment": "test",
    }
    return execute_plan(books.store, plan=plan, **given | how)


def effects(books: Repaired, plan: Plan) -> list[Effect]:
    return [check.effect for check in verify_plan(books.contract, plan, books.connections).checks]


def trail(books: Repaired, plan: Plan) -> list[str]:
    """Events of the audit trail about a plan, oldest first."""
    return [entry.event for entry in read_audit(books.store, books.contract.contract, plan_id=plan.plan_id)]


def action_states(books: Repaired, plan: Plan) -> list[tuple[str, str]]:
    """State and reason of each action of a plan that was begun, in the plan's order."""
    asked = text("select action_id, state, outcome from tallystick.compensation_action where plan_id = :plan")
    with books.store.connect() as connection:
        found = {row.action_id: row for row in connection.execute(asked, {"plan": plan.plan_id})}
    begun = [found[item.action_id] for item in plan.actions if item.action_id in found]
    return [(row.state, str(row.outcome.get("reason", ""))) for row in begun]
