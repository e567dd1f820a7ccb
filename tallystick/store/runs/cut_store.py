"""Cuts: what each run reads, stored before anything is read. The open cut is its contract's lock."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from pydantic import TypeAdapter
from sqlalchemy import (
    ARRAY,
    Connection,
    Engine,
    Integer,
    Row,
    Select,
    Text,
    column,
    func,
    insert,
    literal,
    select,
    update,
)
from sqlalchemy.exc import IntegrityError

from tallystick.contract.contract import Contract
from tallystick.kafka_cluster.state import CursorPosition
from tallystick.model.cut import Cut, LedgerSlice, TopicSlice
from tallystick.model.errors import TallystickError
from tallystick.model.offsets import TopicPartition
from tallystick.store.runs.contract_store import save_contract
from tallystick.store.schema import big_integer, cut_slice
from tallystick.store.schema import cut as cut_table

LEDGER = "ledger"

_TOPIC_SLICE, _LEDGER_SLICE = TypeAdapter(TopicSlice), TypeAdapter(LedgerSlice)


class CutAlreadyOpen(TallystickError):
    """The contract has an unfinished cut, which another run may be reading."""

    retryable = True


class CutOutOfOrder(ValueError):
    """Cuts of one contract are numbered from 0, one after the other."""


class CutNotFound(LookupError):
    """No such cut was stored."""


def save_cut(engine: Engine, contract: Contract, cut: Cut, *, scheduler_run_id: str) -> None:
    """Store an open cut with its slices and the contract it was made under, in one transaction.

    Raises CutAlreadyOpen, CutOutOfOrder, and IntegrityError where a slice does not start at its predecessor's end.
    """
    with engine.begin() as connection:
        save_contract(connection, contract)
        try:
            connection.execute(insert(cut_table), _cut_row(contract, cut, scheduler_run_id))
        except IntegrityError as error:
            if _constraint(error) not in ("one_open_cut", "cut_pk"):
                raise
            raise CutAlreadyOpen(f"{contract.name}: cut {cut.n} was not stored: another one is unfinished") from None
        _refuse_hole(connection, cut)
        connection.execute(insert(cut_slice), _slice_rows(connection, cut))


def read_cut(engine: Engine, contract_name: str, n: int) -> Cut | None:
    """One stored cut."""
    return _first_cut(engine, _cuts(contract_name).where(cut_table.c.n == n))


def last_cut(engine: Engine, contract_name: str) -> Cut | None:
    """The newest cut, open or closed."""
    return _first_cut(engine, _cuts(contract_name))


def open_cut(engine: Engine, contract_name: str) -> Cut | None:
    """The unfinished cut; there is one at most."""
    return _first_cut(engine, _cuts(contract_name).where(cut_table.c.open))


def find_cut(engine: Engine, contract_name: str, *, window_start_utc: datetime, window_end_utc: datetime) -> Cut | None:
    """The newest cut of this window."""
    window = cut_table.c.window_start_utc == window_start_utc, cut_table.c.window_end_utc == window_end_utc
    return _first_cut(engine, _cuts(contract_name).where(*window))


def read_cursor_positions(
    engine: Engine, contract_name: str, sides: Collection[TopicPartition | None], *, before: int, cuts: int
) -> tuple[CursorPosition, ...]:
    """Read where up to so many cuts before this one ended, on these sides; None is the ledger. Oldest first."""
    named = {side_name(side): side for side in sides}
    statement = (
        select(
            cut_slice.c.side,
            cut_slice.c.cut_n,
            cut_table.c.window_start_utc,
            cut_slice.c.ends_at,
            big_integer(cut_slice.c.details["mark"]).label("mark"),
        )
        .join(cut_table, (cut_table.c.contract == cut_slice.c.contract) & (cut_table.c.n == cut_slice.c.cut_n))
        .where(
            cut_slice.c.contract == contract_name,
            cut_slice.c.side.in_(named),
            cut_slice.c.cut_n < before,
            cut_slice.c.cut_n >= before - cuts,
        )
        .order_by(cut_slice.c.cut_n, cut_slice.c.side.collate("C"))
    )
    with engine.connect() as connection:
        return tuple(
            CursorPosition(
                topic_partition=named[row.side],
                cut_n=row.cut_n,
                window_start_utc=row.window_start_utc,
                cursor=row.ends_at,
                mark=row.mark,
            )
            for row in connection.execute(statement)
        )


def last_cuts_read_whole(
    engine: Engine, contract_name: str, asked: Collection[tuple[TopicPartition, int]]
) -> dict[tuple[TopicPartition, int], int]:
    """Return the newest cut before each of these whose slice of the partition has reached its mark; where there is
    none, the one before the first that knew the partition, which came behind that one's sample; -1: there is none.

    What it has not read came behind its sample. A cut whose marks lie by timestamp is none: its sample was late.
    """
    ordered = sorted(asked)
    sides = literal([side_name(part) for part, _ in ordered], ARRAY(Text))
    befores = literal([before for _, before in ordered], ARRAY(Integer))
    wanted = (
        func.unnest(sides, befores)
        .table_valued(column("side", Text), column("before", Integer), name="wanted")
        .render_derived()
    )
    newest = (
        select(cut_slice.c.cut_n)
        .join(cut_table, (cut_table.c.contract == cut_slice.c.contract) & (cut_table.c.n == cut_slice.c.cut_n))
        .where(
            cut_slice.c.contract == contract_name,
            cut_slice.c.side == wanted.c.side,
            cut_slice.c.cut_n < wanted.c.before,
            cut_slice.c.ends_at >= big_integer(cut_slice.c.details["mark"]),
            ~cut_table.c.by_time,
        )
        .order_by(cut_slice.c.cut_n.desc())
        .limit(1)
        .correlate(wanted)
        .scalar_subquery()
    )
    first = (
        select(func.min(cut_slice.c.cut_n) - 1)
        .where(cut_slice.c.contract == contract_name, cut_slice.c.side == wanted.c.side)
        .correlate(wanted)
        .scalar_subquery()
    )
    statement = select(wanted.c.side, wanted.c.before, func.coalesce(newest, first, -1).label("newest"))
    with engine.connect() as connection:
        found = {(row.side, row.before): int(row.newest) for row in connection.execute(statement)}
    return {(part, before): found[side_name(part), before] for part, before in ordered}


def first_cuts_read_whole(
    engine: Engine, contract_name: str, asked: Collection[TopicPartition | None], *, behind: int
) -> dict[TopicPartition | None, int]:
    """Return the first cut behind that one whose slice of a side has reached its mark, and had anything to read; no
    side where there is none. None is the ledger.
    """
    named = {side_name(side): side for side in asked}
    wanted = func.unnest(literal(sorted(named), ARRAY(Text))).table_valued(column("side", Text), name="wanted")
    wanted = wanted.render_derived()
    expired = func.coalesce(big_integer(cut_slice.c.details["expired"]), 0)
    first = (
        select(cut_slice.c.cut_n)
        .where(
            cut_slice.c.contract == contract_name,
            cut_slice.c.side == wanted.c.side,
            cut_slice.c.cut_n > behind,
            cut_slice.c.ends_at >= big_integer(cut_slice.c.details["mark"]),
            cut_slice.c.ends_at > cut_slice.c.starts_at + expired,
        )
        .order_by(cut_slice.c.cut_n)
        .limit(1)
        .correlate(wanted)
        .scalar_subquery()
    )
    with engine.connect() as connection:
        rows = list(connection.execute(select(wanted.c.side, first.label("first"))))
    return {named[row.side]: int(row.first) for row in rows if row.first is not None}


def read_ledger_slices(engine: Engine, contract_name: str) -> tuple[LedgerSlice, ...]:
    """The ledger's slice of every stored cut, in order."""
    statement = (
        select(cut_slice.c.details)
        .where(cut_slice.c.contract == contract_name, cut_slice.c.side == LEDGER)
        .order_by(cut_slice.c.slice_n)
    )
    with engine.connect() as connection:
        return tuple(_LEDGER_SLICE.validate_python(details) for details in connection.scalars(statement))


def claim_attempt(engine: Engine, contract_name: str, n: int) -> int:
    """Count a new attempt at a cut and give its number; only the newest attempt may commit. Raises CutNotFound."""
    statement = (
        update(cut_table)
        .where(cut_table.c.contract == contract_name, cut_table.c.n == n)
        .values(attempt=cut_table.c.attempt + 1)
        .returning(cut_table.c.attempt)
    )
    with engine.begin() as connection:
        attempt = connection.scalar(statement)
    if attempt is None:
        raise CutNotFound(f"{contract_name}: there is no cut {n}")
    return int(attempt)


@contextmanager
def no_run_under_way(connection: Connection, contract_name: str) -> Iterator[Cut]:
    """Hold the lock that runs use, the contract's one open cut, and give the newest cut, which is closed.

    Until the transaction ends nobody can store a cut of this contract. Raises CutAlreadyOpen.
    """
    newest = select(func.max(cut_table.c.n)).where(cut_table.c.contract == contract_name)
    is_newest = (cut_table.c.contract == contract_name, cut_table.c.n == newest.scalar_subquery())
    take = update(cut_table).where(*is_newest, ~cut_table.c.open).values(open=True).returning(cut_table)
    try:
        row = connection.execute(take).first()
    except IntegrityError as error:
        if _constraint(error) != "one_open_cut":
            raise
        row = None
    if row is None or connection.scalar(newest) != row.n:
        raise CutAlreadyOpen(
            f"{contract_name}: nothing was stored: a run is judging its newest cut; expected none under way; "
            f"try again once it has its verdict: tallystick runs --contract {contract_name}"
        )
    yield cut_of_row(connection, row)
    release = update(cut_table).where(cut_table.c.contract == contract_name, cut_table.c.n == row.n)
    connection.execute(release.values(open=False))


def cut_of_row(connection: Connection, row: Row[Any]) -> Cut:
    """Build the value of a row of table `cut`, reading its slices."""
    statement = select(cut_slice.c.side, cut_slice.c.details).where(
        cut_slice.c.contract == row.contract, cut_slice.c.cut_n == row.n
    )
    slices = {row.side: row.details for row in connection.execute(statement)}
    ledger = slices.pop(LEDGER)
    topics = (_TOPIC_SLICE.validate_python(details) for details in slices.values())
    return Cut(
        contract=row.contract,
        n=row.n,
        window_start_utc=row.window_start_utc,
        window_end_utc=row.window_end_utc,
        marked_at_utc=row.marked_at_utc,
        now_utc=row.now_utc,
        by_time=row.by_time,
        host_ahead_ms=row.host_ahead_ms,
        topic_slices=tuple(sorted(topics, key=lambda topic_slice: topic_slice.offsets.topic_partition)),
        ledger_slice=_LEDGER_SLICE.validate_python(ledger),
    )


def _cuts(contract_name: str) -> Select[Any]:
    return select(cut_table).where(cut_table.c.contract == contract_name).order_by(cut_table.c.n.desc()).limit(1)


def _first_cut(engine: Engine, statement: Select[Any]) -> Cut | None:
    with engine.connect() as connection:
        row = connection.execute(statement).first()
        return cut_of_row(connection, row) if row else None


def _cut_row(contract: Contract, cut: Cut, scheduler_run_id: str) -> dict[str, Any]:
    return {
        "contract": contract.name,
        "n": cut.n,
        "window_start_utc": cut.window_start_utc,
        "window_end_utc": cut.window_end_utc,
        "marked_at_utc": cut.marked_at_utc,
        "now_utc": cut.now_utc,
        "by_time": cut.by_time,
        "host_ahead_ms": cut.host_ahead_ms,
        "contract_fingerprint": contract.fingerprint,
        "scheduler_run_id": scheduler_run_id,
        "open": True,
    }


def _refuse_hole(connection: Connection, cut: Cut) -> None:
    """Asked after our row is in, so that nobody can store the neighbour meanwhile."""
    previous = connection.scalar(
        select(func.max(cut_table.c.n)).where(cut_table.c.contract == cut.contract, cut_table.c.n != cut.n)
    )
    expected = 0 if previous is None else previous + 1
    if cut.n != expected:
        raise CutOutOfOrder(f"{cut.contract}: expected cut {expected}, got {cut.n}")


def _slice_rows(connection: Connection, cut: Cut) -> list[dict[str, Any]]:
    """A side that was in the books is in every cut after, so its last slice is one of the cut before."""
    statement = select(cut_slice.c.side, cut_slice.c.slice_n).where(
        cut_slice.c.contract == cut.contract, cut_slice.c.cut_n == cut.n - 1
    )
    last = {row.side: row.slice_n for row in connection.execute(statement)}
    return [
        {
            "contract": cut.contract,
            "side": side,
            "slice_n": last.get(side, -1) + 1,
            "cut_n": cut.n,
            "starts_at": starts_at,
            "ends_at": ends_at,
            "details": details,
        }
        for side, starts_at, ends_at, details in _slices(cut)
    ]


def side_name(topic_partition: TopicPartition | None) -> str:
    """Return what slices of this side are stored under; None is the ledger."""
    return f"topic:{topic_partition.topic}:{topic_partition.partition}" if topic_partition else LEDGER


def _slices(cut: Cut) -> list[tuple[str, int, int, Any]]:
    """Side, half-open bounds, details; unit: offsets, and database transaction ids."""
    ledger = cut.ledger_slice
    return [
        *(
            (
                side_name(part.offsets.topic_partition),
                part.offsets.kafka_offset_start,
                part.offsets.kafka_offset_end,
                _TOPIC_SLICE.dump_python(part, mode="json"),
            )
            for part in cut.topic_slices
        ),
        (
            LEDGER,
            ledger.position_start,
            ledger.position_end,
            _LEDGER_SLICE.dump_python(ledger, mode="json", by_alias=True),
        ),
    ]


def _constraint(error: IntegrityError) -> str | None:
    diagnostics = getattr(error.orig, "diag", None)
    return getattr(diagnostics, "constraint_name", None)
