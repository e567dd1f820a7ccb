"""The present state of the books of a contract, for the overview and the contract's page, at a cost that does not grow.

Reads the sums that triggers keep (break_total, standing_total); never a run's rows, only those that people added.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import TypeAdapter
from sqlalchemy import Connection, Engine, cast, func, or_, select
from sqlalchemy.dialects.postgresql import JSONPATH

from tallystick.contract.contract import Contract
from tallystick.model.cut import Cut
from tallystick.model.finding_names import NOTHING_READ, BreakClass
from tallystick.model.findings import DoubtFound, Stake, sort_stakes
from tallystick.model.metric_figures import ClassTotal
from tallystick.model.open_item import ItemState, ItemTotal
from tallystick.model.verdict import Verdict
from tallystick.store.runs.contract_store import contract_of_body
from tallystick.store.runs.cut_store import cut_of_row
from tallystick.store.schema import break_total, contract_version, item_break, open_item, standing_total
from tallystick.store.schema import cut as cut_table
from tallystick.store.schema import verdict as verdict_table

_DOUBTS = TypeAdapter(tuple[DoubtFound, ...])
_MOMENTS = TypeAdapter(list[datetime])
_CONTRACTS: dict[tuple[str, str], Contract] = {}
"""By name and fingerprint, so a stored one never changes; reading its document costs a millisecond."""


@dataclass(frozen=True, kw_only=True)
class OverviewWindow:
    """One cut as a window on a strip. verdict: None where none is stored."""

    cut_n: int
    window_start_utc: datetime
    window_end_utc: datetime
    verdict: Verdict | None


@dataclass(frozen=True, kw_only=True)
class ContractOverview:
    """The books of one contract. windows: the newest, oldest first. doubts: of the newest verdict.

    cut: the newest, judged or not. read_cut_n: the newest that a run read; None before there is one. expires_utc: when
    retention may take the first offset that nobody has read, as that run foresaw it; None where it foresaw none.
    given_up, loose: where the newest verdict is BROKEN and nothing stands broken, how many of its breaks people wrote
    off, and how many they did not; else 0.
    """

    contract: Contract
    windows: tuple[OverviewWindow, ...]
    standing: tuple[ClassTotal, ...]
    doubts: tuple[DoubtFound, ...]
    cut: Cut
    read_cut_n: int | None
    expires_utc: datetime | None
    given_up: int = 0
    loose: int = 0


@dataclass(frozen=True, kw_only=True)
class ContractVersion:
    """One version of a contract's file, and the cut since which it was in force, until the next one."""

    version: int
    fingerprint: str
    first_cut_n: int
    since_utc: datetime
    contract: Contract


def list_contracts(engine: Engine) -> tuple[str, ...]:
    """Every contract that has books, by name."""
    statement = select(contract_version.c.contract).distinct().order_by(contract_version.c.contract)
    with engine.connect() as connection:
        return tuple(connection.scalars(statement))


def read_overview(engine: Engine, contract_name: str, *, windows: int) -> ContractOverview | None:
    """The books with their newest windows; None where no cut was stored."""
    newest = select(cut_table).where(cut_table.c.contract == contract_name).order_by(cut_table.c.n.desc()).limit(1)
    with engine.connect() as connection:
        cut = connection.execute(newest).first()
        if cut is None:
            return None
        read_cut_n, expires_utc = newest_look(connection, contract_name)
        standing = _standing(connection, contract_name)
        stands_broken = any(group.items.state is ItemState.BROKEN for group in standing)
        given_up, loose = (0, 0) if stands_broken else _given_up(connection, contract_name)
        return ContractOverview(
            contract=contract_of(connection, contract_name, cut.contract_fingerprint),
            windows=newest_windows(connection, contract_name, windows),
            standing=standing,
            doubts=_newest_doubts(connection, contract_name),
            cut=cut_of_row(connection, cut),
            read_cut_n=read_cut_n,
            expires_utc=expires_utc,
            given_up=given_up,
            loose=loose,
        )


def newest_windows(connection: Connection, contract_name: str, count: int) -> tuple[OverviewWindow, ...]:
    """The newest cuts, oldest first, with their verdicts."""
    statement = (
        select(cut_table.c.n, cut_table.c.window_start_utc, cut_table.c.window_end_utc, verdict_table.c.verdict)
        .outerjoin(
            verdict_table, (verdict_table.c.contract == cut_table.c.contract) & (verdict_table.c.cut_n == cut_table.c.n)
        )
        .where(cut_table.c.contract == contract_name)
        .order_by(cut_table.c.n.desc())
        .limit(count)
    )
    rows = connection.execute(statement).all()
    return tuple(
        OverviewWindow(
            cut_n=row.n,
            window_start_utc=row.window_start_utc,
            window_end_utc=row.window_end_utc,
            verdict=Verdict(row.verdict) if row.verdict else None,
        )
        for row in reversed(rows)
    )


def cut_of_scheduler_run(engine: Engine, contract_name: str, scheduler_run_id: str) -> int | None:
    """The newest cut that a run of the scheduler made."""
    statement = select(func.max(cut_table.c.n)).where(
        cut_table.c.contract == contract_name, cut_table.c.scheduler_run_id == scheduler_run_id
    )
    with engine.connect() as connection:
        found: int | None = connection.scalar(statement)
    return found


def stakes_of_run(engine: Engine, contract_name: str, n: int) -> tuple[Stake, ...]:
    """Return the breaks of the run of cut n, per class and currency."""
    statement = select(break_total).where(break_total.c.contract == contract_name, break_total.c.cut_n == n)
    with engine.connect() as connection:
        rows = connection.execute(statement).all()
    return sort_stakes(
        Stake(
            break_class=BreakClass(row.break_class),
            currency=row.currency,
            amount_minor=int(row.amount_minor),
            count=row.breaks,
        )
        for row in rows
    )


def contract_of_cut(engine: Engine, contract_name: str, n: int) -> Contract | None:
    """The contract that cut n was made with."""
    statement = select(cut_table.c.contract_fingerprint).where(
        cut_table.c.contract == contract_name, cut_table.c.n == n
    )
    with engine.connect() as connection:
        fingerprint = connection.scalar(statement)
        return contract_of(connection, contract_name, fingerprint) if fingerprint else None


def contract_of(connection: Connection, contract_name: str, fingerprint: str) -> Contract:
    """A contract as it was stored. Kept: the same fingerprint is the same contract for ever."""
    key = (contract_name, fingerprint)
    if key not in _CONTRACTS:
        body = connection.execute(
            select(contract_version.c.body).where(
                contract_version.c.contract == contract_name, contract_version.c.fingerprint == fingerprint
            )
        ).scalar_one()
        _CONTRACTS[key] = contract_of_body(body)
    return _CONTRACTS[key]


def list_versions(engine: Engine, contract_name: str, *, limit: int) -> tuple[ContractVersion, ...]:
    """The newest spans of cuts that were made with one version, newest first: a version may come back."""
    fingerprint = cut_table.c.contract_fingerprint
    before = func.lag(fingerprint).over(order_by=cut_table.c.n).label("before")
    cuts = (
        select(cut_table.c.n, cut_table.c.recorded_at, fingerprint, before)
        .where(cut_table.c.contract == contract_name)
        .subquery()
    )
    first_cuts = (
        select(cuts)
        .where(cuts.c.contract_fingerprint.is_distinct_from(cuts.c.before))
        .order_by(cuts.c.n.desc())
        .limit(limit)
    )
    with engine.connect() as connection:
        rows = connection.execute(first_cuts).all()
        contracts = [contract_of(connection, contract_name, row.contract_fingerprint) for row in rows]
    return tuple(
        ContractVersion(
            version=contract.version,
            fingerprint=row.contract_fingerprint,
            first_cut_n=row.n,
            since_utc=row.recorded_at,
            contract=contract,
        )
        for row, contract in zip(rows, contracts, strict=True)
    )


def newest_look(connection: Connection, contract_name: str) -> tuple[int | None, datetime | None]:
    """Return the newest cut that a run read, and when retention may take what that left unread; None where nothing."""
    path = cast("$.surroundings.expiries[*].expires_utc", JSONPATH)
    expiries = func.jsonb_path_query_array(verdict_table.c.look_ups, path)
    unread = or_(*(verdict_table.c.doubts.contains([{"doubt": doubt}]) for doubt in NOTHING_READ))
    statement = (
        select(verdict_table.c.cut_n, expiries.label("expiries"))
        .where(verdict_table.c.contract == contract_name, ~unread)
        .order_by(verdict_table.c.cut_n.desc())
        .limit(1)
    )
    row = connection.execute(statement).first()
    return (row.cut_n, min(_MOMENTS.validate_python(row.expiries), default=None)) if row else (None, None)


def _newest_doubts(connection: Connection, contract_name: str) -> tuple[DoubtFound, ...]:
    statement = (
        select(verdict_table.c.doubts)
        .where(verdict_table.c.contract == contract_name)
        .order_by(verdict_table.c.cut_n.desc())
        .limit(1)
    )
    return _DOUBTS.validate_python(connection.scalar(statement) or ())


def _given_up(connection: Connection, contract_name: str) -> tuple[int, int]:
    """Count the breaks of the newest verdict that were written off since, and its others."""
    judged = select(func.max(verdict_table.c.cut_n)).where(verdict_table.c.contract == contract_name).scalar_subquery()
    of_cut, total = item_break.c.cut_n == judged, func.coalesce(func.sum(break_total.c.breaks), 0)
    breaks = select(total).where(break_total.c.contract == contract_name, break_total.c.cut_n == judged)
    written_off = (
        select(func.count(open_item.c.break_id.distinct()))
        .join(item_break, (item_break.c.break_id == open_item.c.break_id) & of_cut)
        .where(open_item.c.contract == contract_name, open_item.c.cut_n == judged, open_item.c.step > 0)
    )
    found = int(connection.scalar(breaks) or 0)
    given_up = int(connection.scalar(written_off) or 0) if found else 0
    return given_up, found - given_up


def _standing(connection: Connection, contract_name: str) -> tuple[ClassTotal, ...]:
    statement = select(standing_total).where(standing_total.c.contract == contract_name)
    return totals_of_rows(connection.execute(statement).all())


def totals_of_rows(rows: Sequence[Any]) -> tuple[ClassTotal, ...]:
    """Rows of standing_total, oldest first."""
    found = (
        ClassTotal(
            break_class=BreakClass(row.break_class) if row.break_class else None,
            items=ItemTotal(
                state=ItemState(row.state),
                first_seen_utc=row.first_seen_utc,
                currency=row.currency,
                count=row.items,
                amount_minor=int(row.amount_minor),
            ),
        )
        for row in rows
    )
    return tuple(
        sorted(
            found,
            key=lambda one: (one.items.first_seen_utc, one.items.state, one.break_class or "", one.items.currency),
        )
    )
