"""The losses of earlier runs, for later ones: offsets that expired unread, rows that may be older ones, judged legs."""

from collections.abc import Collection
from typing import Any

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Engine,
    Integer,
    Select,
    Text,
    any_,
    cast,
    column,
    func,
    literal,
    null,
    or_,
    select,
)
from sqlalchemy.dialects.postgresql import JSONPATH

from tallystick.contract.contract import Contract
from tallystick.ledger.unread_rows import UnreadRows
from tallystick.matching.unreadable_ranges import LedgerStarts, Loss
from tallystick.model.finding_names import Doubt
from tallystick.model.open_item import legs_item_id
from tallystick.store.runs.cut_store import LEDGER
from tallystick.store.runs.unread_store import OFFSETS_LOST
from tallystick.store.schema import big_integer, cut_slice, open_item
from tallystick.store.schema import cut as cut_table
from tallystick.store.schema import verdict as verdict_table

_ROWS_UNREAD = f"""$[*] ? (
    @.doubt == "{Doubt.LEDGER_IDS_REUSED}"
    || @.doubt == "{Doubt.LEDGER_REWRITTEN}" && (
        @.details.older_rows > @.details.expected || exists(@.details.places[*] ? (@.now > @.expected))
    )
)"""
"""Doubts under which a row may stand where no run reads it, in any but a closed cut."""


def losses_before(engine: Engine, contract_name: str, n: int) -> tuple[Loss, ...]:
    """Every cut below n that closed with offsets of its topics lost before they were read, in order."""
    statement = (
        select(
            cut_table.c.n.label("cut_n"),
            cut_table.c.marked_at_utc,
            big_integer(cut_slice.c.details["snapshot"]["xmax"]).label("ledger_high_mark"),
        )
        .join(
            verdict_table, (verdict_table.c.contract == cut_table.c.contract) & (verdict_table.c.cut_n == cut_table.c.n)
        )
        .join(cut_slice, (cut_slice.c.contract == cut_table.c.contract) & (cut_slice.c.cut_n == cut_table.c.n))
        .where(
            cut_table.c.contract == contract_name,
            cut_table.c.n < n,
            cut_slice.c.side == LEDGER,
            or_(*(verdict_table.c.doubts.contains([{"doubt": doubt}]) for doubt in OFFSETS_LOST)),
        )
        .order_by(cut_table.c.n)
    )
    with engine.connect() as connection:
        return tuple(Loss(**row._mapping) for row in connection.execute(statement))


def ledger_starts_of(
    engine: Engine, contract_name: str, cuts: Collection[int], *, rows_move: bool = False
) -> LedgerStarts:
    """Return the starts of these cuts. A run older than the question, and doubting its ledger, may have read older
    rows.

    rows_move: LedgerStarts.rows_move; nobody else asks where rows may have moved from.
    """
    behind = cut_slice.alias()
    moved_from = (
        select(behind.c.starts_at)
        .where(
            behind.c.contract == cut_slice.c.contract,
            behind.c.side == LEDGER,
            behind.c.cut_n < cut_slice.c.cut_n,
            big_integer(behind.c.details["snapshot"]["xmax"]) <= cut_slice.c.starts_at,
        )
        .order_by(behind.c.cut_n.desc())
        .limit(1)
        .correlate(cut_slice)
        .scalar_subquery()
    )
    look_ups = verdict_table.c.look_ups
    doubted = verdict_table.c.doubts.contains([{"doubt": Doubt.LEDGER_REWRITTEN}])
    may_be_older = look_ups.contains({"rows_may_be_older": True}) | (~look_ups.has_key("rows_may_be_older") & doubted)
    statement = (
        select(
            cut_slice.c.cut_n,
            cut_slice.c.starts_at,
            may_be_older.label("older"),
            big_integer(cut_slice.c.details["left_from"]).label("left_from"),
            (moved_from if rows_move else null()).label("moved_from"),
        )
        .outerjoin(
            verdict_table,
            (verdict_table.c.contract == cut_slice.c.contract) & (verdict_table.c.cut_n == cut_slice.c.cut_n),
        )
        .where(cut_slice.c.contract == contract_name, cut_slice.c.side == LEDGER, cut_slice.c.cut_n.in_(cuts))
    )
    with engine.connect() as connection:
        rows = connection.execute(statement).all()
    return LedgerStarts(
        position_start={row.cut_n: row.starts_at for row in rows},
        rows_move=rows_move,
        moved_from={row.cut_n: row.moved_from for row in rows if row.moved_from is not None},
        rows_may_be_older=frozenset(row.cut_n for row in rows if row.older),
        left_from={row.cut_n: row.left_from for row in rows if row.left_from is not None},
    )


def moved_below(engine: Engine, contract_name: str, n: int) -> int:
    """Above every id of a row that the guard has found moved up to cut n; 0 where it has found none."""
    statement = select(big_integer(verdict_table.c.look_ups["rows_moved_below"])).where(
        verdict_table.c.contract == contract_name, verdict_table.c.cut_n == n
    )
    with engine.connect() as connection:
        return int(connection.scalar(statement) or 0)


def unread_rows_of(engine: Engine, contract_name: str, n: int) -> UnreadRows | None:
    """Return the rows that the run of cut n has counted behind its slice; None where it had no need to."""
    statement = select(verdict_table.c.look_ups["unread_rows"]).where(
        verdict_table.c.contract == contract_name, verdict_table.c.cut_n == n
    )
    with engine.connect() as connection:
        found = connection.scalar(statement)
    return UnreadRows(**found) if found else None


def last_cuts_before_rows(engine: Engine, contract: Contract, cuts: Collection[int]) -> dict[int, int]:
    """Return, for each of these cuts, the newest one before it that had seen no row of its slice being written; -1:
    there is none. An event that comes behind its row is in that cut at the earliest.
    """
    starts = ledger_starts_of(
        engine,
        contract.name,
        {n for cut_n in cuts for n in (cut_n, cut_n - 1)},
        rows_move=contract.ledger.rows_move,
    )
    ordered = sorted(cuts)
    wanted = (
        func.unnest(
            literal(ordered, ARRAY(Integer)), literal([starts.first_write_of(n) for n in ordered], ARRAY(BigInteger))
        )
        .table_valued(column("cut_n", Integer), column("begins", BigInteger), name="wanted")
        .render_derived()
    )
    statement = (
        select(wanted.c.cut_n, func.max(cut_slice.c.cut_n).label("before"))
        .join(cut_slice, cut_slice.c.cut_n < wanted.c.cut_n)
        .where(
            cut_slice.c.contract == contract.name,
            cut_slice.c.side == LEDGER,
            big_integer(cut_slice.c.details["snapshot"]["xmax"]) <= wanted.c.begins,
        )
        .group_by(wanted.c.cut_n)
    )
    with engine.connect() as connection:
        found = {row.cut_n: int(row.before) for row in connection.execute(statement)}
    return {cut_n: found.get(cut_n, -1) for cut_n in ordered}


def last_torn_cut(engine: Engine, contract_name: str, before: int) -> int:
    """The newest judged cut below that number while whose reading the topics changed; -1 without one."""
    statement = select(func.max(verdict_table.c.cut_n)).where(
        verdict_table.c.contract == contract_name,
        verdict_table.c.cut_n < before,
        verdict_table.c.doubts.contains([{"doubt": Doubt.TORN_CUT}]),
    )
    return _newest(engine, statement)


def last_cut_with_rows_unread(engine: Engine, contract_name: str) -> int:
    """The newest judged cut that left rows of the ledger where no later one reads them; -1 without one.

    It was closed with a slice that is not empty, or it told of rows whose place no cut reads.
    """
    found_unread = func.jsonb_path_exists(verdict_table.c.doubts, cast(_ROWS_UNREAD, JSONPATH))
    closed = verdict_table.c.doubts.contains([{"doubt": Doubt.CUT_CLOSED}])
    filled = cut_slice.c.starts_at < cut_slice.c.ends_at
    statement = (
        select(func.max(verdict_table.c.cut_n))
        .join(
            cut_slice,
            (cut_slice.c.contract == verdict_table.c.contract) & (cut_slice.c.cut_n == verdict_table.c.cut_n),
        )
        .where(
            verdict_table.c.contract == contract_name,
            cut_slice.c.side == LEDGER,
            or_(closed & filled, found_unread),
        )
    )
    return _newest(engine, statement)


def _newest(engine: Engine, statement: Select[Any]) -> int:
    with engine.connect() as connection:
        found: int | None = connection.scalar(statement)
    return -1 if found is None else found


def transactions_judged_before(
    engine: Engine, contract_name: str, n: int, transaction_keys: Collection[str]
) -> frozenset[str]:
    """Return those of these business transactions that had an item of their legs before cut n, whatever has become of
    it.
    """
    if not transaction_keys:
        return frozenset()
    item_ids = [legs_item_id(key) for key in sorted(transaction_keys)]
    statement = (
        select(open_item.c.transaction_key)
        .where(open_item.c.contract == contract_name, open_item.c.cut_n < n)
        .where(open_item.c.item_id == any_(literal(item_ids, ARRAY(Text))))
        .distinct()
    )
    with engine.connect() as connection:
        return frozenset(connection.scalars(statement))
