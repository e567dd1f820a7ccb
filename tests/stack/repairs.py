"""Plans, repairs and looks again, with the real servers: ada asks, bob approves. And books that need a repair."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Protocol

from confluent_kafka.admin import AdminClient
from sqlalchemy import Engine, text

from tallystick.compensation.plan import Plan
from tallystick.compensation.repair_effect import RepairEffect
from tallystick.connections.connections import Connections
from tallystick.contract.contract import Contract
from tallystick.executor.draw_plan import draw_plan
from tallystick.executor.execute_plan import Execution, execute_plan
from tallystick.executor.progress_topic import progress_topic_name
from tallystick.executor.verify_plan import verify_plan
from tallystick.kafka_cluster.open_transactions import OpenTransaction
from tallystick.kafka_cluster.settings import BrokerSettings
from tallystick.kafka_cluster.state import BlockedEvents, ClusterState, FirstSight
from tallystick.store.plans.approval_store import AGREED
from tallystick.store.plans.plan_store import append_audit, read_audit, save_plan
from tests.stack.live_books import LiveBooks

COPIED = ("event_id", "payment_id", "leg", "amount_minor", "currency", "occurred_at")
"""Columns that a posted row copies from its event."""


class Repaired(Protocol):
    """Books that a compensation acts on."""

    @property
    def store(self) -> Engine: ...

    @property
    def contract(self) -> Contract: ...

    @property
    def connections(self) -> Connections: ...


def planned(books: Repaired, cut_n: int, *, dry_run: bool = False) -> Plan:
    """The plan of a stored run, kept as it is when ada asks for it; to one that needs two people, bob agrees.

    Each kind of repair is tried under a condition with a %, which a statement with parameters takes for one of them.
    """
    assert books.contract.ledger.kind == "topic" or "%" in (books.contract.ledger.where or "")
    plan = draw_plan(books.store, books.contract, books.connections, cut_n=cut_n, dry_run=dry_run)
    save_plan(books.store, plan, requested_by="ada")
    if plan.aborts:
        agree(books, plan, "bob")
    return plan


def agree(books: Repaired, plan: Plan, who: str) -> None:
    """Somebody's yes, as the approval task keeps it."""
    detail = {"plan_hash": plan.plan_hash}
    append_audit(books.store, plan.contract, plan_id=plan.plan_id, actor=who, event=AGREED, detail=detail)


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


def effects(books: Repaired, plan: Plan) -> list[RepairEffect]:
    return [check.effect for check in verify_plan(books.contract, plan, books.connections).checks]


def trail(books: Repaired, plan: Plan) -> list[str]:
    """Events of the audit trail about a plan, oldest first."""
    return [entry.event for entry in read_audit(books.store, books.contract.name, plan_id=plan.plan_id)]


def action_states(books: Repaired, plan: Plan) -> list[tuple[str, str]]:
    """State and reason of each action of a plan that was begun, in the plan's order."""
    asked = text("select action_id, state, outcome from tallystick.compensation_action where plan_id = :plan")
    with books.store.connect() as connection:
        found = {row.action_id: row for row in connection.execute(asked, {"plan": plan.plan_id})}
    begun = [found[item.action_id] for item in plan.actions if item.action_id in found]
    return [(row.state, str(row.outcome.get("reason", ""))) for row in begun]


def posting_books(opened: LiveBooks, *, columns: Mapping[str, str] | None = None, **rules: Any) -> LiveBooks:
    """The same books, whose contract posts two rows an event; the owner has made the table of actions.

    columns: those of the ledger beside the defaults. rules: of the compensation, beside what is posted.
    """
    actions_table = f"{opened.contract.name}.posted_action"
    document = opened.contract.model_dump(mode="json", exclude_defaults=True)
    document["ledger"] |= {"columns": columns or {}}
    document["compensation"] = rules | {
        "max_amount_minor": {"EUR": 10_000},
        "four_eyes_above_minor": {"EUR": 10_000},
        "post": {
            "connection": "ledger_poster",
            "actions_table": actions_table,
            "columns": {column: column for column in COPIED},
            "rows": {"payment": [{"side": "debit"}, {"side": "credit"}]},
        },
    }
    contract = Contract.model_validate(document)
    opened.contract_file.write_text(contract.model_dump_json(exclude_defaults=True))
    opened.ledger.execute(f"CREATE TABLE {actions_table} (action_id uuid PRIMARY KEY, plan_hash text NOT NULL)")
    return replace(opened, contract=contract)


def posted(books: LiveBooks, plan: Plan, **how: Any) -> Execution:
    """Carried out by whoever may write into the ledger."""
    connections = replace(books.connections, poster_dsn=books.stack.ledger_owner_dsn)
    return executed(books, plan, connections=connections, **how)


def all_hanging(
    found: Sequence[OpenTransaction], settings: BrokerSettings, *, first_seen_utc: datetime
) -> ClusterState:
    """What stood around a cut whose run calls these hanging, each with one event of 7.00 EUR, whatever they are."""
    return ClusterState(
        broker_settings=settings,
        open_transactions=tuple(
            replace(one, confirmed=True, coordinator_state="", lists_partition=False) for one in found
        ),
        first_sights=tuple(
            FirstSight(
                topic_partition=one.topic_partition,
                producer_id=one.producer_id,
                kafka_offset_start=one.kafka_offset_start,
                first_seen_utc=first_seen_utc,
            )
            for one in found
        ),
        held_events=tuple(
            BlockedEvents(
                topic_partition=one.topic_partition,
                producer_id=one.producer_id,
                producer_epoch=one.producer_epoch,
                kafka_offset_start=one.kafka_offset_start,
                events=1,
                money={"EUR": 700},
                holds=True,
            )
            for one in found
        ),
    )


def delete_progress_topic(books: Repaired) -> None:
    name = progress_topic_name(books.contract.name)
    admin = AdminClient(books.connections.kafka.for_confluent())
    admin.delete_topics([name])[name].result()
    while name in admin.list_topics().topics:
        time.sleep(0.05)
