"""Reads what the store has of one match key: breaks, items, and the cuts in which its copies lie.

No index is on the key: a question walks the contract's breaks and items, and is asked by a person, once. 2 million
items and 500,000 breaks take about a second.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Engine, func, or_, select

from tallystick.model.findings import Break
from tallystick.model.offsets import TopicPartition
from tallystick.model.open_item import OpenItem
from tallystick.model.verdict import Verdict
from tallystick.store.plans.plan_store import ActionState
from tallystick.store.runs.cut_store import side_name
from tallystick.store.runs.open_item_store import break_of_row, item_of_row, items_with_class
from tallystick.store.runs.prune_mark import mark_seen_by
from tallystick.store.schema import compensation_action, cut_slice, item_break, open_item
from tallystick.store.schema import cut as cut_table
from tallystick.store.schema import verdict as verdict_table

ROWS_MAX = 200
"""Breaks, and rows of items, of one key that are read; more are told as left out."""


@dataclass(frozen=True, kw_only=True)
class TracedCut:
    """A cut as a trace names it. verdict: None where it has none yet. is_pruned: what its run found is gone.

    has_doubts: its run could not see all, so that what it is silent of is not matched for that.
    """

    n: int
    window_start_utc: datetime
    window_end_utc: datetime
    scheduler_run_id: str
    verdict: Verdict | None
    is_pruned: bool = False
    has_doubts: bool = False


@dataclass(frozen=True, kw_only=True)
class TracedBreak:
    """A break of the key. items: the newest rows of the items that it ever named. is_repaired: an action was done."""

    item_break: Break
    cut_n: int
    items: tuple[OpenItem, ...]
    is_repaired: bool


@dataclass(frozen=True, kw_only=True)
class TracedItem:
    """The newest row of an item, and the cut whose run wrote it."""

    item: OpenItem
    cut_n: int


@dataclass(frozen=True, kw_only=True)
class StoredTrace:
    """All that the store has of one key in one contract. newest_judged: the newest cut with a verdict."""

    breaks: tuple[TracedBreak, ...] = ()
    items: tuple[TracedItem, ...] = ()
    newest_judged: TracedCut | None = None
    is_cut_open: bool = False
    has_more: bool = False


@dataclass(frozen=True, kw_only=True)
class SlicePlace:
    """The place of a position among the slices of one side. cut_n: None where no cut holds it.

    is_before: below the first slice. is_beyond: at or above the newest one's end. ends_at: that end, None without one.
    """

    cut_n: int | None
    is_before: bool = False
    is_beyond: bool = False
    ends_at: int | None = None


def trace_in_store(engine: Engine, contract_name: str, match_key: str) -> StoredTrace:
    """Read breaks and items of the key, and how far the contract has been judged."""
    with engine.connect() as connection:
        breaks = connection.execute(
            select(item_break)
            .where(item_break.c.contract == contract_name, item_break.c.match_key == match_key)
            .order_by(item_break.c.cut_n, item_break.c.break_id)
            .limit(ROWS_MAX + 1)
        ).all()
        items, has_more = _newest_rows(connection, contract_name, match_key, [row.break_id for row in breaks])
        newest = connection.scalar(
            select(func.max(verdict_table.c.cut_n)).where(verdict_table.c.contract == contract_name)
        )
        cuts = _cuts(connection, contract_name, [] if newest is None else [newest])
        is_open = connection.scalar(
            select(func.count()).select_from(cut_table).where(cut_table.c.contract == contract_name, cut_table.c.open)
        )
        repaired = _repaired(connection, [row.break_id for row in breaks])
    named = {row.break_id: {one.item_id for one in items if row.break_id in one.named} for row in breaks}
    return StoredTrace(
        breaks=tuple(
            TracedBreak(
                item_break=break_of_row(row),
                cut_n=row.cut_n,
                items=tuple(one.item for one in items if one.item_id in named[row.break_id]),
                is_repaired=row.break_id in repaired,
            )
            for row in breaks[:ROWS_MAX]
        ),
        items=tuple(TracedItem(item=one.item, cut_n=one.cut_n) for one in items),
        newest_judged=cuts.get(newest) if newest is not None else None,
        is_cut_open=bool(is_open),
        has_more=has_more or len(breaks) > ROWS_MAX,
    )


def cuts_of(engine: Engine, contract_name: str, numbers: Collection[int]) -> Mapping[int, TracedCut]:
    """Read these cuts, by number."""
    with engine.connect() as connection:
        return _cuts(connection, contract_name, numbers)


def place_in_slices(
    engine: Engine, contract_name: str, topic_partition: TopicPartition | None, position: int
) -> SlicePlace:
    """Find the cut whose slice holds an offset of a partition, or a position of the ledger: None."""
    side = side_name(topic_partition)
    mine = (cut_slice.c.contract == contract_name, cut_slice.c.side == side)
    holds = select(cut_slice.c.cut_n).where(*mine, cut_slice.c.starts_at <= position, cut_slice.c.ends_at > position)
    bounds = select(func.min(cut_slice.c.starts_at), func.max(cut_slice.c.ends_at)).where(*mine)
    with engine.connect() as connection:
        found = connection.scalar(holds)
        first, last = connection.execute(bounds).one()
    return SlicePlace(
        cut_n=found,
        is_before=first is not None and position < first,
        is_beyond=last is not None and position >= last,
        ends_at=last,
    )


@dataclass(frozen=True, kw_only=True)
class _ItemRows:
    """An item's newest row, and all breaks that any of its rows named."""

    item: OpenItem
    cut_n: int
    named: frozenset[UUID]

    @property
    def item_id(self) -> str:
        return self.item.item_id


def _newest_rows(
    connection: Connection, contract_name: str, match_key: str, break_ids: Collection[UUID]
) -> tuple[list[_ItemRows], bool]:
    """Items that ever had the key, or that one of these breaks named, by their newest rows, in order of their ids."""
    c = open_item.c
    ids = select(c.item_id).where(c.contract == contract_name, or_(c.match_key == match_key, c.break_id.in_(break_ids)))
    statement = (
        items_with_class(open_item)
        .where(c.contract == contract_name, c.item_id.in_(ids))
        .order_by(c.item_id.collate("C"), c.cut_n, c.step)
        .limit(ROWS_MAX + 1)
    )
    rows = connection.execute(statement).all()
    by_id: dict[str, list[Any]] = {}
    for row in rows[:ROWS_MAX]:
        by_id.setdefault(row.item_id, []).append(row)
    items = [
        _ItemRows(
            item=item_of_row(life[-1]),
            cut_n=life[-1].cut_n,
            named=frozenset(row.break_id for row in life if row.break_id is not None),
        )
        for life in by_id.values()
    ]
    return items, len(rows) > ROWS_MAX


def _cuts(connection: Connection, contract_name: str, numbers: Collection[int]) -> dict[int, TracedCut]:
    on = (verdict_table.c.contract == cut_table.c.contract) & (verdict_table.c.cut_n == cut_table.c.n)
    statement = (
        select(
            cut_table,
            verdict_table.c.verdict,
            (func.jsonb_array_length(verdict_table.c.doubts) > 0).label("has_doubts"),
        )
        .outerjoin(verdict_table, on)
        .where(cut_table.c.contract == contract_name, cut_table.c.n.in_(numbers))
    )
    mark = mark_seen_by(connection, contract_name)
    return {
        row.n: TracedCut(
            n=row.n,
            window_start_utc=row.window_start_utc,
            window_end_utc=row.window_end_utc,
            scheduler_run_id=row.scheduler_run_id,
            verdict=Verdict(row.verdict) if row.verdict else None,
            is_pruned=mark is not None and row.n < mark.kept_from_cut_n,
            has_doubts=bool(row.has_doubts),
        )
        for row in connection.execute(statement)
    }


def _repaired(connection: Connection, break_ids: Collection[UUID]) -> frozenset[UUID]:
    c = compensation_action.c
    done = select(c.break_id).where(c.break_id.in_(break_ids), c.state == ActionState.DONE)
    return frozenset(connection.scalars(done))
