"""The open items, page by page: filtered, searched and sorted by the store.

Each listing begins after the last row of the one before, by value and id: a late one costs what the first one does, and
rows that come or go between two of them neither repeat nor hide another.
"""

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Engine, Numeric, Select, and_, literal, or_, select, tuple_

from tallystick.model.finding_names import BreakClass
from tallystick.model.findings import Break
from tallystick.model.open_item import ItemState
from tallystick.store.runs.open_item_store import break_of_row
from tallystick.store.schema import item_break, standing_item, without_sign

LISTED_AT_ONCE = 50
_BETWEEN = "~"
_LAST_CHARACTER = "\U0010ffff"


class ItemOrder(StrEnum):
    """The order of items. The item's id decides between equals, so that every page begins where the last one ended."""

    OLDEST = "oldest"
    NEWEST = "newest"
    LARGEST = "largest"


@dataclass(frozen=True, kw_only=True)
class ItemQuestion:
    """The filter of the open items. search: how its match key or transaction key begins.

    after: where the listing before ended, as its next_after says; what cannot be read as that asks for the first one.
    kind: a state, or of what is broken a class; None: all.
    """

    kind: ItemState | BreakClass | None = None
    search: str = ""
    order: ItemOrder = ItemOrder.OLDEST
    after: str = ""


@dataclass(frozen=True, kw_only=True)
class ListedItem:
    """One item that stands. Money in integer minor units, currency "" where nobody can say."""

    item_id: str
    state: ItemState
    break_class: BreakClass | None
    side: str
    match_key: str
    transaction_key: str
    leg: str
    amount_minor: int
    currency: str
    first_seen_utc: datetime
    due_utc: datetime
    break_id: UUID | None


@dataclass(frozen=True, kw_only=True)
class ItemListing:
    """Rows in the order asked for. next_after: what to ask for next; "" at the end."""

    rows: tuple[ListedItem, ...]
    next_after: str


@dataclass(frozen=True, kw_only=True)
class BreakListing:
    """Breaks of one run, the largest first. next_after: as above."""

    breaks: tuple[Break, ...]
    next_after: str


def list_items(engine: Engine, contract_name: str, question: ItemQuestion) -> ItemListing:
    """Some at once."""
    with engine.connect() as connection:
        rows = connection.execute(_listing(contract_name, question)).all()
    shown = tuple(
        ListedItem(
            item_id=row.item_id,
            state=ItemState(row.state),
            break_class=BreakClass(row.break_class) if row.break_class else None,
            side=row.side,
            match_key=row.match_key,
            transaction_key=row.transaction_key,
            leg=row.leg,
            amount_minor=row.amount_minor,
            currency=row.currency,
            first_seen_utc=row.first_seen_utc,
            due_utc=row.due_utc,
            break_id=row.break_id,
        )
        for row in rows[:LISTED_AT_ONCE]
    )
    return ItemListing(
        rows=shown, next_after=_place_of(shown[-1], question.order) if len(rows) > LISTED_AT_ONCE else ""
    )


def read_breaks(
    engine: Engine, contract_name: str, n: int, *, break_class: BreakClass | None, after: str
) -> BreakListing:
    """Some at once of what the run of cut n found."""
    c = item_break.c
    statement = (
        select(item_break)
        .where(c.contract == contract_name, c.cut_n == n)
        .order_by(without_sign(c.amount_minor).desc(), c.break_id.desc())
        .limit(LISTED_AT_ONCE + 1)
    )
    if break_class is not None:
        statement = statement.where(c.break_class == break_class)
    with suppress(ValueError):
        amount, _, break_id = after.partition(_BETWEEN)
        last = tuple_(literal(_amount(amount), Numeric), literal(UUID(break_id)))
        statement = statement.where(tuple_(without_sign(c.amount_minor), c.break_id) < last)
    with engine.connect() as connection:
        rows = connection.execute(statement).all()
    shown = tuple(break_of_row(row) for row in rows[:LISTED_AT_ONCE])
    more = len(rows) > LISTED_AT_ONCE
    return BreakListing(
        breaks=shown, next_after=f"{abs(shown[-1].amount_minor)}{_BETWEEN}{shown[-1].break_id}" if more else ""
    )


def _place_of(row: ListedItem, order: ItemOrder) -> str:
    value = abs(row.amount_minor) if order is ItemOrder.LARGEST else row.first_seen_utc.isoformat()
    return f"{value}{_BETWEEN}{row.item_id}"


def _listing(contract_name: str, question: ItemQuestion) -> Select[Any]:
    c = standing_item.c
    value = without_sign(c.amount_minor) if question.order is ItemOrder.LARGEST else c.first_seen_utc
    rising = question.order is ItemOrder.OLDEST
    statement = (
        select(standing_item)
        .where(c.contract == contract_name, *_filters(question))
        .order_by(*((value, c.item_id) if rising else (value.desc(), c.item_id.desc())))
        .limit(LISTED_AT_ONCE + 1)
    )
    with suppress(ValueError):
        written, _, item_id = question.after.partition(_BETWEEN)
        seen = _amount(written) if question.order is ItemOrder.LARGEST else _moment(written)
        place, last = tuple_(value, c.item_id), tuple_(literal(seen, value.type), literal(item_id))
        statement = statement.where(place > last if rising else place < last)
    return statement


def _amount(written: str) -> int:
    amount = int(written)
    if not 0 <= amount <= 2**63:
        raise ValueError(written)
    return amount


def _moment(written: str) -> datetime:
    moment = datetime.fromisoformat(written)
    if moment.tzinfo is None:
        raise ValueError(written)
    return moment


def _filters(question: ItemQuestion) -> list[ColumnElement[bool]]:
    c = standing_item.c
    filters: list[ColumnElement[bool]] = []
    if isinstance(question.kind, BreakClass):
        filters.append(and_(c.state == ItemState.BROKEN, c.break_class == question.kind))
    elif question.kind is not None:
        filters.append(c.state == question.kind)
    if question.search:
        first, last = literal(question.search), literal(question.search + _LAST_CHARACTER)
        filters.append(or_(*(and_(key >= first, key < last) for key in (c.match_key, c.transaction_key))))
    return filters
