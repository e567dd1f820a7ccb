"""Open items as of a cut, and the mapping between items or breaks and their rows."""

from collections.abc import Collection
from dataclasses import fields
from typing import Any

from sqlalchemy import (
    ARRAY,
    ColumnElement,
    Engine,
    FromClause,
    Row,
    Select,
    Subquery,
    Text,
    any_,
    cast,
    func,
    literal,
    or_,
    select,
    text,
    true,
)
from sqlalchemy.dialects.postgresql import JSONPATH

from tallystick.matching.match_case import RecordLocation
from tallystick.model.finding_names import SURPLUS_CLASSES, BreakClass
from tallystick.model.findings import Break
from tallystick.model.item_reason import read_reason
from tallystick.model.open_item import ItemSide, ItemState, OpenItem
from tallystick.store.schema import (
    item_break,
    item_life,
    open_item,
)

_IS_LEFT_ROW = text("open_item.state in ('undecidable', 'written_off') and open_item.side = 'ledger'")
"""In the words of the index open_item_left_rows, which a plan that knows no values takes by them alone."""

_BESIDE_UNREAD = f"""$.found_elsewhere[*] ? (@.at starts with "{ItemSide.LEDGER}:" && (
    @.place == "{RecordLocation.UNREAD}" || @.place == "{RecordLocation.BEFORE_BASELINE}"))"""


def open_items_as_of(engine: Engine, contract_name: str, n: int) -> tuple[OpenItem, ...]:
    """Items that cut n carries, as the cuts before it left them: open, or broken or written off and still pairable."""
    newest = newest_items(contract_name, standing_at=n, known=open_item.c.cut_n < n).subquery()
    carried = (newest.c.state == ItemState.OPEN) | (newest.c.pairable & (newest.c.state != ItemState.CLEARED))
    statement = items_with_class(newest).where(carried).order_by(newest.c.item_id.collate("C"))
    with engine.connect() as connection:
        return tuple(item_of_row(row) for row in connection.execute(statement))


def surplus_items_as_of(engine: Engine, contract_name: str, n: int) -> tuple[OpenItem, ...]:
    """Events and rows that no cut before n could pair any more, broken still: copies one too many. Only what takes them
    back ends them.
    """
    newest = newest_items(contract_name, standing_at=n, known=open_item.c.cut_n < n).subquery()
    statement = (
        items_with_class(newest)
        .where(newest.c.state == ItemState.BROKEN, ~newest.c.pairable)
        .order_by(newest.c.item_id.collate("C"))
    )
    with engine.connect() as connection:
        return tuple(item_of_row(row) for row in connection.execute(statement))


def judged_items_as_of(engine: Engine, contract_name: str, n: int, item_ids: Collection[str]) -> tuple[OpenItem, ...]:
    """Return those of these items that the cuts before n left broken or written off, pairable or not."""
    if not item_ids:
        return ()
    newest = _newest_of(contract_name, n, item_ids)
    judged = items_with_class(newest).where(newest.c.state.in_([ItemState.BROKEN, ItemState.WRITTEN_OFF]))
    with engine.connect() as connection:
        return tuple(item_of_row(row) for row in connection.execute(judged.order_by(newest.c.item_id.collate("C"))))


def rows_beside_unread_as_of(engine: Engine, contract_name: str, n: int, item_ids: Collection[str]) -> frozenset[str]:
    """Return those of these rows that the cuts before n called one too many beside one that no cut has read: that alone
    does not show that their key was paired.
    """
    if not item_ids:
        return frozenset()
    newest = _newest_of(contract_name, n, item_ids)
    statement = (
        select(newest.c.item_id)
        .join(item_break, item_break.c.break_id == newest.c.break_id)
        .where(item_break.c.break_class.in_(SURPLUS_CLASSES))
        .where(func.jsonb_path_exists(item_break.c.evidence, cast(_BESIDE_UNREAD, JSONPATH)))
    )
    with engine.connect() as connection:
        return frozenset(connection.scalars(statement))


def undecided_items_as_of(engine: Engine, contract_name: str, n: int, item_ids: Collection[str]) -> frozenset[str]:
    """Return those of these items that the cuts before n left undecidable."""
    if not item_ids:
        return frozenset()
    newest = _newest_of(contract_name, n, item_ids)
    undecided = select(newest.c.item_id).where(newest.c.state == ItemState.UNDECIDABLE)
    with engine.connect() as connection:
        return frozenset(connection.scalars(undecided))


def left_rows_as_of(
    engine: Engine, contract_name: str, n: int, transaction_keys: Collection[str]
) -> tuple[OpenItem, ...]:
    """Return the rows of these business transactions that cuts before n left undecidable, and those that people wrote
    off, pairable or not.
    """
    if not transaction_keys:
        return ()
    ever = (
        select(open_item.c.item_id)
        .where(open_item.c.contract == contract_name, open_item.c.cut_n < n)
        .where(open_item.c.transaction_key == any_(literal(sorted(transaction_keys), ARRAY(Text))))
        .where(_IS_LEFT_ROW)
        .distinct()
    )
    with engine.connect() as connection:
        item_ids = connection.scalars(ever).all()
        if not item_ids:
            return ()
        newest = _newest_of(contract_name, n, item_ids)
        left = items_with_class(newest).where(newest.c.state.in_([ItemState.UNDECIDABLE, ItemState.WRITTEN_OFF]))
        return tuple(item_of_row(row) for row in connection.execute(left.order_by(newest.c.item_id.collate("C"))))


def _newest_of(contract_name: str, n: int, item_ids: Collection[str]) -> Subquery:
    """The newest row of each of these items that a cut before n wrote."""
    return (
        select(open_item)
        .where(open_item.c.contract == contract_name, open_item.c.cut_n < n)
        .where(open_item.c.item_id == any_(literal(sorted(item_ids), ARRAY(Text))))
        .order_by(open_item.c.item_id, open_item.c.cut_n.desc(), open_item.c.step.desc())
        .distinct(open_item.c.item_id)
        .subquery()
    )


def count_open_items(engine: Engine, contract_name: str) -> int:
    """Count the items that are open now; broken and written-off ones are not."""
    newest = newest_items(contract_name).subquery()
    statement = select(func.count()).select_from(newest).where(newest.c.state == ItemState.OPEN)
    with engine.connect() as connection:
        return int(connection.scalar(statement) or 0)


def newest_items(
    contract_name: str, *, standing_at: int | None = None, known: ColumnElement[bool] | None = None
) -> Select[Any]:
    """The newest row of each item that cut `standing_at` may carry or that its run ended; None: that stands now.

    known: which rows count. Looked up item by item, so that its cost grows with what stands, not with what ever stood,
    whatever the planner knows of tables that have just been written.
    """
    ended = item_life.c.ended_cut_n
    stands = ended.is_(None) if standing_at is None else or_(ended.is_(None), ended >= standing_at)
    newest = (
        select(open_item)
        .where(open_item.c.contract == item_life.c.contract, open_item.c.item_id == item_life.c.item_id)
        .where(true() if known is None else known)
        .order_by(open_item.c.cut_n.desc(), open_item.c.step.desc())
        .limit(1)
        .correlate(item_life)
        .lateral("newest")
    )
    return (
        select(newest).select_from(item_life.join(newest, true())).where(item_life.c.contract == contract_name, stands)
    )


def items_with_class(items: FromClause) -> Select[Any]:
    """Rows of open_item as `item_of_row` takes them: with the class of the break that each answers for."""
    of_break = select(item_break.c.break_class).where(item_break.c.break_id == items.c.break_id).correlate(items)
    return select(items, of_break.scalar_subquery().label("found_as"))


def in_report_order(statement: Select[Any]) -> Select[Any]:
    """Byte order, whatever the database's collation: reports must not change with it."""
    c = item_break.c
    return statement.order_by(c.break_class.collate("C"), c.match_key.collate("C"), c.break_id)


def item_columns(item: OpenItem) -> dict[str, Any]:
    """Return the columns of open_item for an item: all but the class of its break, which is the break's own."""
    columns = {one.name: getattr(item, one.name) for one in fields(item) if one.name != "found_as"}
    return columns | {"reason": item.reason.stored}


def break_of_row(row: Row[Any]) -> Break:
    """A row of item_break as it was found."""
    return Break(
        break_id=row.break_id,
        break_class=BreakClass(row.break_class),
        match_key=row.match_key,
        transaction_key=row.transaction_key,
        leg=row.leg,
        amount_minor=row.amount_minor,
        currency=row.currency,
        copies=row.copies,
        story=row.story,
        evidence=row.evidence,
    )


def item_of_row(row: Row[Any]) -> OpenItem:
    """A row of `items_with_class`."""
    return OpenItem(
        item_id=row.item_id,
        side=ItemSide(row.side),
        match_key=row.match_key,
        transaction_key=row.transaction_key,
        leg=row.leg,
        amount_minor=row.amount_minor,
        currency=row.currency,
        first_seen_cut=row.first_seen_cut,
        first_seen_utc=row.first_seen_utc,
        due_utc=row.due_utc,
        state=ItemState(row.state),
        reason=read_reason(row.reason),
        pairable=row.pairable,
        break_id=row.break_id,
        found_as=BreakClass(row.found_as) if row.found_as else None,
        cleared_by=row.cleared_by,
        written_ms=row.written_ms,
        compared_text=row.compared_text,
    )
