"""Breaks that are neither cleared nor written off."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import (
    Connection,
    Engine,
    Row,
    Select,
    select,
)

from tallystick.alerting.alert import Outstanding
from tallystick.model.finding_names import BreakClass
from tallystick.model.findings import negative_at_stake, total_at_stake
from tallystick.model.open_item import ItemState
from tallystick.model.run_result import RunResult
from tallystick.model.stored_run import OutstandingBreak
from tallystick.store.runs.open_item_store import (
    break_of_row,
    in_report_order,
    newest_items,
)
from tallystick.store.schema import (
    item_break,
)


def outstanding_breaks(engine: Engine, contract_name: str) -> tuple[OutstandingBreak, ...]:
    """Breaks with an item whose newest state is broken, in order of class, match key and id."""
    with engine.connect() as connection:
        rows = connection.execute(in_report_order(_broken_items(contract_name))).all()
    items: dict[UUID, list[Row[Any]]] = {}
    for row in rows:
        items.setdefault(row.break_id, []).append(row)
    return tuple(
        OutstandingBreak(
            item_break=break_of_row(found[-1]),
            cut_n=found[-1].cut_n,
            first_seen_utc=min(row.first_seen_utc for row in found),
            seen_by=tuple((row.item_id, row.first_seen_cut) for row in found),
        )
        for found in items.values()
    )


def outstanding_classes(
    engine: Engine, contract_name: str, *, after: RunResult | None = None
) -> dict[BreakClass, Outstanding]:
    """Count, money and age of the outstanding breaks per class; with `after`, as they will be once it is committed."""
    with engine.connect() as connection:
        return outstanding_seen_by(connection, contract_name, after=after)


def outstanding_seen_by(
    connection: Connection, contract_name: str, *, after: RunResult | None = None
) -> dict[BreakClass, Outstanding]:
    """The same, with what this connection's transaction has written."""
    rows = connection.execute(_broken_items(contract_name)).all()
    broken = {row.item_id: (row.break_id, row.first_seen_utc) for row in rows}
    stakes = {row.break_id: _Stake(BreakClass(row.break_class), row.currency, row.amount_minor) for row in rows}
    if after is not None:
        stakes |= {
            found.break_id: _Stake(found.break_class, found.currency, found.amount_minor) for found in after.breaks
        }
        for item in after.items:
            broken.pop(item.item_id, None)
            if item.state is ItemState.BROKEN and item.break_id is not None:
                broken[item.item_id] = (item.break_id, item.first_seen_utc)
    return _by_class(broken.values(), stakes)


class _Stake(NamedTuple):
    break_class: BreakClass
    currency: str
    amount_minor: int


def _by_class(broken: Iterable[tuple[UUID, datetime]], stakes: Mapping[UUID, _Stake]) -> dict[BreakClass, Outstanding]:
    since: dict[BreakClass, datetime] = {}
    money: dict[BreakClass, list[tuple[str, int]]] = {}
    for found_id, first_seen_utc in _first_seen_of(broken).items():
        break_class, currency, amount_minor = stakes[found_id]
        money.setdefault(break_class, []).append((currency, amount_minor))
        since[break_class] = min(first_seen_utc, since.get(break_class, first_seen_utc))
    return {
        break_class: Outstanding(
            count=len(money[break_class]),
            money=total_at_stake(money[break_class]),
            first_seen_utc=since[break_class],
            negative=negative_at_stake(money[break_class]),
        )
        for break_class in sorted(money)
    }


def _first_seen_of(broken: Iterable[tuple[UUID, datetime]]) -> dict[UUID, datetime]:
    """Return when each break was first seen, by the oldest of its items."""
    first: dict[UUID, datetime] = {}
    for found_id, first_seen_utc in broken:
        before = first.setdefault(found_id, first_seen_utc)
        if first_seen_utc < before:
            first[found_id] = first_seen_utc
    return first


def _broken_items(contract_name: str) -> Select[Any]:
    """Break columns, item_id and when and by which cut it was first seen, of each item whose newest state is broken."""
    newest = newest_items(contract_name).subquery()
    return (
        select(item_break, newest.c.item_id, newest.c.first_seen_utc, newest.c.first_seen_cut)
        .join(newest, newest.c.break_id == item_break.c.break_id)
        .where(newest.c.state == ItemState.BROKEN)
    )
