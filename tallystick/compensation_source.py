"""What a plan is drawn from: the outstanding breaks in the store, and the ledger rows of their keys as they are now."""

from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any

import psycopg
from psycopg.rows import dict_row
from sqlalchemy import Engine

from tallystick import ledger_sql
from tallystick.abort_plan import AbortItem, abort_items, why_not_abort
from tallystick.compensation_plan import Candidate, Plan, PlanRefused, StandingRow, StoodAround, make_plan
from tallystick.connections import Connections
from tallystick.contract import Contract
from tallystick.contract_ledger import LedgerSide
from tallystick.ledger_reader import describe_table, open_ledger
from tallystick.store.contract_store import require_same_books
from tallystick.store.plan_store import open_actions, spent_today
from tallystick.store.run_store import StoredRun, list_runs, outstanding_breaks, read_run, surroundings_document
from tallystick.surroundings import SURROUNDINGS, Surroundings


def draw_plan(
    engine: Engine, contract: Contract, connections: Connections, *, cut_n: int, dry_run: bool = True
) -> Plan:
    """Plan the repair of what the runs up to cut_n found and nobody has cleared since.

    Later runs may find more without changing this plan; a doubt of the newest one about what was read empties it.
    Raises PlanRefused, LedgerUnreachable, LedgerRefused, and ContractChangeRefused: what one contract's books lack is
    not published under another meaning.
    """
    require_same_books(engine, contract)
    run = read_run(engine, contract.contract, cut_n)
    if run is None:
        raise PlanRefused(f"{contract.contract}: cut {cut_n} has no verdict")
    rules = contract.compensation
    standing = [found for found in outstanding_breaks(engine, contract.contract) if found.cut_n <= cut_n]
    keys = {found.item_break.match_key for found in standing if rules and found.item_break.break_class in rules.classes}
    rows = _rows_now(contract, connections, keys) if keys else {}
    candidates = [Candidate(outstanding=found, rows=rows.get(found.item_break.match_key, ())) for found in standing]
    (newest,) = list_runs(engine, contract.contract, limit=1)
    return make_plan(
        contract,
        run,
        candidates,
        newest_doubts=newest.doubts,
        around=StoodAround(
            planned=_read_surroundings(engine, contract, cut_n),
            newest=_read_surroundings(engine, contract, newest.cut_n),
        ),
        taken=open_actions(engine, contract.contract),
        spent=spent_today(engine, contract.contract),
        dry_run=dry_run,
    )


def _rows_now(
    contract: Contract, connections: Connections, keys: Collection[str]
) -> dict[str, tuple[StandingRow, ...]]:
    with open_ledger(connections.ledger_dsn) as ledger:
        return read_source_rows(ledger, contract.ledger, keys)


def endable_transactions(engine: Engine, contract: Contract, run: StoredRun) -> tuple[AbortItem, ...]:
    """Hanging transactions that a plan of this run may end, if a person agrees; the caps are not asked."""
    if contract.compensation is None or not contract.compensation.abort_hanging_transactions:
        return ()
    around = _read_surroundings(engine, contract, run.cut.n)
    return tuple(
        item
        for item in abort_items(contract.contract, around, now_utc=run.now_utc)
        if why_not_abort(item, topics=contract.topics, around=around, newest=around) is None
    )


def _read_surroundings(engine: Engine, contract: Contract, cut_n: int) -> Surroundings:
    return SURROUNDINGS.validate_python(surroundings_document(engine, contract.contract, cut_n))


def read_source_rows(
    connection: psycopg.Connection, ledger: LedgerSide, match_keys: Collection[str]
) -> dict[str, tuple[StandingRow, ...]]:
    """Every visible row of these keys. Keys that stand nowhere are not in the answer. Raises LedgerRefused."""
    table = describe_table(connection, ledger)
    reverses = ledger.columns.reverses
    query = f"""
        SELECT {ledger_sql.column_list(ledger)}, {ledger.columns.occurred_at} AS occurred_at,
               {f"coalesce({reverses}::text, '')" if reverses else "''"} AS takes_back
        FROM {ledger.table}
        WHERE {ledger_sql.pairing_condition(ledger)} AND {ledger.columns.match_key} = ANY(ARRAY(
            SELECT CASE WHEN pg_input_is_valid(asked, %(type)s) THEN asked::{table.key_type} END
            FROM unnest(%(keys)s::text[]) AS asked))
        ORDER BY 1"""
    found: dict[str, list[StandingRow]] = {}
    with connection.cursor(row_factory=dict_row) as cursor:
        for row in cursor.execute(query, {"type": table.key_type, "keys": sorted(match_keys)}):
            source = StandingRow(**row | {"occurred_at": _as_text(row["occurred_at"])})
            found.setdefault(source.match_key, []).append(source)
    return {key: tuple(rows) for key, rows in found.items()}


def _as_text(occurred_at: Any) -> str:
    """ISO 8601, in UTC where the column knows its zone."""
    if isinstance(occurred_at, datetime):
        return (occurred_at.astimezone(UTC) if occurred_at.tzinfo else occurred_at).isoformat()
    return str(occurred_at)
