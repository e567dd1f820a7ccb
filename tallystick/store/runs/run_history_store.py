"""The counts of earlier runs of a contract, as later runs need them."""

from typing import Any

from sqlalchemy import (
    Engine,
    Numeric,
    case,
    cast,
    null,
    select,
    true,
)

from tallystick.ledger.earlier_rows import EarlierRows, ReadSlice
from tallystick.model.finding_names import Doubt
from tallystick.model.partner_lag import CLEAN_CUTS, TopicLag
from tallystick.model.run_result import KeyIndex
from tallystick.model.verdict import Verdict
from tallystick.store.runs.cut_store import LEDGER
from tallystick.store.runs.run_store import KEY_INDEX_JSON, LAG_JSON
from tallystick.store.schema import (
    big_integer,
    cut_slice,
)
from tallystick.store.schema import verdict as verdict_table


def ledger_rows_before(engine: Engine, contract_name: str, n: int) -> int | None:
    """Rows the ledger must still show below cut n: those older than the cut before it, as counted then, and its slice.

    So a rewritten row is doubted by the cut that finds it, not by every later one. None where they were not counted.
    """
    figures = verdict_table.c.figures
    statement = select(big_integer(figures["ledger_rows"]) + big_integer(figures["ledger_older_rows"])).where(
        verdict_table.c.contract == contract_name, verdict_table.c.cut_n == n - 1
    )
    with engine.connect() as connection:
        counted: int | None = connection.scalar(statement)
    return counted


def ledger_rows_by_slice(engine: Engine, contract_name: str, before: int | None = None) -> tuple[ReadSlice, ...]:
    """Return what judged cuts, or those before one, have read of the ledger, in order, without empty slices.

    Of one that was closed unread nobody knows the rows.
    """
    closed = verdict_table.c.doubts.contains([{"doubt": Doubt.CUT_CLOSED}])
    rows = case((closed, null()), else_=big_integer(verdict_table.c.figures["ledger_rows"]))
    statement = (
        select(cut_slice.c.starts_at, cut_slice.c.ends_at, rows)
        .join(
            verdict_table,
            (verdict_table.c.contract == cut_slice.c.contract) & (verdict_table.c.cut_n == cut_slice.c.cut_n),
        )
        .where(
            cut_slice.c.contract == contract_name,
            cut_slice.c.side == LEDGER,
            cut_slice.c.starts_at < cut_slice.c.ends_at,
            true() if before is None else cut_slice.c.cut_n < before,
        )
        .order_by(cut_slice.c.slice_n)
    )
    with engine.connect() as connection:
        return tuple(ReadSlice(start=start, end=end, rows=rows) for start, end, rows in connection.execute(statement))


def ledger_sum_of_slice(engine: Engine, contract_name: str, read: ReadSlice, *, prefix: str = "") -> int | None:
    """Return the sum of the positions that a slice held once its cut had read it; None where its run kept none.

    The run summed all that lay below the slice's end and all that lay below its start. prefix: of which of its sums.
    """
    sums = verdict_table.c.look_ups["surroundings"]["ledger_sums"]
    at_end, at_start = (cast(sums[f"{prefix}{place}"].as_string(), Numeric) for place in ("at_end", "now"))
    statement = (
        select(at_end - at_start)
        .join(
            cut_slice,
            (cut_slice.c.contract == verdict_table.c.contract) & (cut_slice.c.cut_n == verdict_table.c.cut_n),
        )
        .where(
            cut_slice.c.contract == contract_name,
            cut_slice.c.side == LEDGER,
            cut_slice.c.starts_at == read.start,
            cut_slice.c.ends_at == read.end,
        )
    )
    with engine.connect() as connection:
        kept = connection.scalar(statement)
    return None if kept is None else int(kept)


def earlier_rows_before(engine: Engine, contract_name: str, n: int) -> EarlierRows | None:
    """Return what the run before cut n counted of the rows that carry their transactions' ids; None where it did not
    count.
    """
    statement = (
        select(verdict_table.c.look_ups["earlier_rows"])
        .where(verdict_table.c.contract == contract_name, verdict_table.c.cut_n < n)
        .order_by(verdict_table.c.cut_n.desc())
        .limit(1)
    )
    with engine.connect() as connection:
        document = connection.scalar(statement)
    return EarlierRows.from_json(document) if document else None


def lags_of_clean_runs(engine: Engine, contract_name: str, n: int) -> tuple[tuple[TopicLag, ...], ...]:
    """Return the lags that the MATCHED runs among the CLEAN_CUTS cuts before cut n measured; none of those that
    measured nothing.
    """
    statement = select(verdict_table.c.lag).where(
        verdict_table.c.contract == contract_name,
        verdict_table.c.cut_n.between(n - CLEAN_CUTS, n - 1),
        verdict_table.c.verdict == Verdict.MATCHED,
    )
    with engine.connect() as connection:
        stored = connection.scalars(statement).all()
    return tuple(lag.topics for lag in (LAG_JSON.validate_python(one) for one in stored if one) if lag.topics)


def key_indexes_before(engine: Engine, contract_name: str, n: int, *, windows: int) -> dict[int, KeyIndex]:
    """Return the indexes that the verdicts of so many cuts before cut n name, by cut, in order. A baseline has none."""
    statement = (
        select(verdict_table.c.cut_n, verdict_table.c.key_index)
        .where(
            verdict_table.c.contract == contract_name,
            verdict_table.c.cut_n.between(n - windows, n - 1),
        )
        .order_by(verdict_table.c.cut_n)
    )
    with engine.connect() as connection:
        rows = connection.execute(statement).all()
    return {row.cut_n: KEY_INDEX_JSON.validate_python(row.key_index) for row in rows if row.key_index}


def key_index_seed_before(engine: Engine, contract_name: str, n: int) -> int | None:
    """Return the seed of the hashes of the newest index below cut n that has one; None where there is none yet."""
    seed = big_integer(verdict_table.c.key_index["seed"])
    statement = (
        select(seed)
        .where(verdict_table.c.contract == contract_name, verdict_table.c.cut_n < n, seed.is_not(None))
        .order_by(verdict_table.c.cut_n.desc())
        .limit(1)
    )
    with engine.connect() as connection:
        found: int | None = connection.scalar(statement)
    return found


def cluster_state_document(engine: Engine, contract_name: str, n: int) -> dict[str, Any]:
    """Return the cluster state that the run of cut n stored, as tallystick.kafka_cluster.state writes
    it; else empty.
    """
    statement = select(verdict_table.c.look_ups["surroundings"]).where(
        verdict_table.c.contract == contract_name, verdict_table.c.cut_n == n
    )
    with engine.connect() as connection:
        return connection.scalar(statement) or {}
