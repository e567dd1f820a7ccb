"""The sources of a plan: the outstanding breaks in the store, and the ledger rows of their keys as they are now."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from uuid import UUID

from sqlalchemy import Engine

from tallystick.compensation.abort_plan import AbortItem, abort_items, why_not_abort
from tallystick.compensation.plan import (
    Candidate,
    CurrentRow,
    DailyUsage,
    OffsetsUnread,
    Plan,
    PlanContext,
    PlanItem,
    PlanRefused,
)
from tallystick.compensation.planning import make_plan
from tallystick.connections.connections import Connections
from tallystick.contract.compensation import MISSING_EVENTS, POSTABLE, REVERSIBLE
from tallystick.contract.contract import Contract
from tallystick.executor.effects.source_rows import read_source_rows
from tallystick.kafka_cluster.state import CLUSTER_STATE, ClusterState
from tallystick.ledger.postgres_connection import open_ledger
from tallystick.matching.scan_result import topic_place
from tallystick.model.offsets import TopicPartition
from tallystick.model.stored_run import OutstandingBreak, StoredRun
from tallystick.store.breaks.break_store import keys_whose_copies_differ, transactions_with_lonely_copies
from tallystick.store.plans.claim_store import NOT_OUTSTANDING
from tallystick.store.plans.plan_store import ActionState, StoredAction, open_actions, spent_today
from tallystick.store.runs.contract_store import require_same_books
from tallystick.store.runs.cut_store import last_cuts_read_whole
from tallystick.store.runs.loss_store import last_cut_with_rows_unread, last_cuts_before_rows
from tallystick.store.runs.outstanding_store import outstanding_breaks
from tallystick.store.runs.run_history_store import cluster_state_document
from tallystick.store.runs.run_store import list_runs, read_run
from tallystick.store.runs.unread_store import last_cuts_with_offsets_unread


def draw_plan(
    engine: Engine, contract: Contract, connections: Connections, *, cut_n: int, dry_run: bool = True
) -> Plan:
    """Plan the repair of what the runs up to cut_n found and nobody has cleared since.

    Later runs may find more without changing this plan; a doubt of the newest one about what was read empties it.
    Raises PlanRefused, LedgerUnreachable, LedgerRefused, and ContractChangeRefused: what one contract's books lack is
    not published under another meaning.
    """
    require_same_books(engine, contract)
    return _draw(
        engine,
        contract,
        connections,
        cut_n=cut_n,
        dry_run=dry_run,
        taken=open_actions(engine, contract.name),
        spent=spent_today(engine, contract.name),
    )


def why_not_any_more(
    engine: Engine, contract: Contract, connections: Connections, plan: Plan, begun: Mapping[UUID, StoredAction]
) -> dict[UUID, str]:
    """Return the actions of a begun plan, not done and not waiting, that would not be planned now, and why.

    begun: the contract's actions that hold their breaks. Raises as draw_plan does.
    """
    own = {action_id: action.state for action_id, action in begun.items() if action.plan_id == plan.plan_id}
    executing = {action_id for action_id, state in own.items() if state is ActionState.EXECUTING}
    now = _draw(
        engine,
        contract,
        connections,
        cut_n=plan.cut_n,
        dry_run=plan.dry_run,
        taken=begun.keys() - executing,
        spent=spent_today(engine, contract.name, but=executing),
        only={item.break_id for item in plan.items},
    )
    planned = {action.action_id: action for action in now.actions}
    left_out = {excluded.break_id or excluded.match_key: excluded.reason for excluded in now.left_out}
    reasons = {}
    for action in plan.actions:
        action_id = action.action_id
        if own.get(action_id) in (ActionState.DONE, ActionState.WAITING) or planned.get(action_id) == action:
            continue
        about = action.break_id if isinstance(action, PlanItem) else action.place
        changed = "it would be done otherwise by now: its row or the contract has changed"
        reasons[action_id] = left_out.get(about) or (changed if action_id in planned else NOT_OUTSTANDING)
    return reasons


def unreadable_since(
    engine: Engine, contract: Contract, items: Collection[PlanItem], offsets_unread: OffsetsUnread
) -> dict[UUID, int]:
    """Return the items, by break, that a record may have been about which the log may have lost since they were
    planned, and the newest cut that could not read one. How old their breaks are is asked as it is of a new plan.

    items: of one break there may be one on each of several topics. offsets_unread: by what has gone since then.
    """
    gone: dict[UUID, int] = {}
    for item in items:
        gone[item.break_id] = max(gone.get(item.break_id, -1), offsets_unread.unreadable_of(item.topic))
    gone = {break_id: cut_n for break_id, cut_n in gone.items() if cut_n >= 0}
    if not gone:
        return {}
    standing = [found for found in outstanding_breaks(engine, contract.name) if found.item_break.break_id in gone]
    came_after = _came_after(engine, contract.name, standing) | _came_after_rows(engine, contract, standing)
    for found in standing:
        break_id = found.item_break.break_id
        candidate = Candidate(outstanding=found, rows=(), came_after=came_after.get(break_id))
        if not candidate.may_have_partner_in(gone[break_id]):
            del gone[break_id]
    return gone


def _draw(
    engine: Engine,
    contract: Contract,
    connections: Connections,
    *,
    cut_n: int,
    dry_run: bool,
    taken: Collection[UUID],
    spent: DailyUsage,
    only: Collection[UUID] | None = None,
) -> Plan:
    """only: break ids; None: all."""
    run = read_run(engine, contract.name, cut_n)
    if run is None:
        raise PlanRefused(f"{contract.name}: cut {cut_n} has no verdict")
    rules = contract.compensation
    outstanding = [found for found in outstanding_breaks(engine, contract.name) if found.cut_n <= cut_n]
    standing = [found for found in outstanding if only is None or found.item_break.break_id in only]
    keys = {found.item_break.match_key for found in standing if rules and found.item_break.break_class in rules.classes}
    rows = _rows_now(contract, connections, keys) if keys else {}
    differing = keys_whose_copies_differ(engine, contract.name, keys) if keys else {}
    transactions = {found.item_break.transaction_key for found in standing} - {""}
    alike = transactions_with_lonely_copies(engine, contract.name, transactions) if keys else {}
    (newest,) = list_runs(engine, contract.name, limit=1)
    offsets_unread = last_cuts_with_offsets_unread(engine, contract.name, contract.topics)
    rows_unread_at = last_cut_with_rows_unread(engine, contract.name)
    any_unread = max(offsets_unread.at, rows_unread_at) >= 0
    unreadable = any(cut_n >= 0 for cut_n in offsets_unread.unreadable_at.values())
    came_after = _came_after(engine, contract.name, standing) if any_unread or unreadable else {}
    if unreadable:
        came_after |= _came_after_rows(engine, contract, standing)
    candidates = [
        Candidate(
            outstanding=found,
            rows=rows.get(found.item_break.match_key, ()),
            differs_by=differing.get(found.item_break.match_key),
            alike=alike.get(found.item_break.transaction_key),
            came_after=came_after.get(found.item_break.break_id),
        )
        for found in standing
    ]
    return make_plan(
        contract,
        run,
        candidates,
        newest_doubts=newest.doubts,
        around=PlanContext(
            planned=_read_cluster_state(engine, contract, cut_n),
            newest=_read_cluster_state(engine, contract, newest.cut_n),
        ),
        offsets_unread=offsets_unread,
        rows_unread_at=rows_unread_at,
        taken=taken,
        spent=spent,
        dry_run=dry_run,
    )


def _came_after(engine: Engine, contract_name: str, standing: Sequence[OutstandingBreak]) -> dict[UUID, int]:
    """Return, for each break of an event or a copy that stands on a topic, the newest cut of which is certain that it
    was sampled before any of its copies came: it had read their partitions as far as they were written by then.
    """
    on_topics = [found for found in standing if found.item_break.break_class in POSTABLE + REVERSIBLE]
    asked = {place for found in on_topics for place in _first_sights(found)}
    whole = last_cuts_read_whole(engine, contract_name, asked) if asked else {}
    return {
        found.item_break.break_id: min((whole[place] for place in _first_sights(found)), default=-1)
        for found in on_topics
    }


def _came_after_rows(engine: Engine, contract: Contract, standing: Sequence[OutstandingBreak]) -> dict[UUID, int]:
    """Return the same for each break of a row that lacks its event, which comes behind it."""
    rows = [found for found in standing if found.item_break.break_class in MISSING_EVENTS]
    before = last_cuts_before_rows(engine, contract, {found.first_seen_cut for found in rows}) if rows else {}
    return {found.item_break.break_id: before[found.first_seen_cut] for found in rows}


def _first_sights(found: OutstandingBreak) -> Iterator[tuple[TopicPartition, int]]:
    for item_id, cut_n in found.seen_by:
        if item_id.startswith("topic:"):
            yield topic_place(item_id)[0], cut_n


def _rows_now(contract: Contract, connections: Connections, keys: Collection[str]) -> dict[str, tuple[CurrentRow, ...]]:
    with open_ledger(connections.ledger_dsn) as ledger:
        return read_source_rows(ledger, contract.ledger, keys)


def endable_transactions(engine: Engine, contract: Contract, run: StoredRun) -> tuple[AbortItem, ...]:
    """Hanging transactions that a plan of this run may end, if a person agrees; the caps are not asked."""
    if contract.compensation is None or not contract.compensation.abort_hanging_transactions:
        return ()
    around = _read_cluster_state(engine, contract, run.cut.n)
    return tuple(
        item
        for item in abort_items(contract.name, around, now_utc=run.now_utc)
        if why_not_abort(item, topics=contract.topics, around=around, newest=around) is None
    )


def _read_cluster_state(engine: Engine, contract: Contract, cut_n: int) -> ClusterState:
    return CLUSTER_STATE.validate_python(cluster_state_document(engine, contract.name, cut_n))
