"""Finds one break by its id, with the whole life of its items, and keys by what any run found of them."""

import re
from collections.abc import Collection, Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import ARRAY, Connection, Engine, Row, Text, any_, func, literal, select

from tallystick.model.break_history import EarlierRepair, LifeStep, ToldBreak
from tallystick.model.errors import TallystickError
from tallystick.model.finding_names import COPIES_DIFFER, WITHOUT_PARTNER, BreakClass
from tallystick.model.open_item import ItemState, WriteOff
from tallystick.store.plans.plan_store import ActionState
from tallystick.store.runs.open_item_store import break_of_row, item_of_row, items_with_class
from tallystick.store.schema import compensation_action, item_break, open_item, prune_mark
from tallystick.store.schema import cut as cut_table
from tallystick.store.schema import verdict as verdict_table
from tallystick.text.plain import parse_utc

PREFIX_MIN = 8
_CANDIDATES_MAX = 10


class BreakNotFound(TallystickError):
    """No stored break has this id, or one that begins so."""


class BreakAmbiguous(TallystickError):
    """More than one break's id begins so. The message lists them."""


def find_break(engine: Engine, name: str) -> ToldBreak:
    """The break whose id is, or uniquely begins with, these hexadecimal digits. Dashes do not count.

    Raises BreakNotFound, BreakAmbiguous.
    """
    digits = name.replace("-", "").lower()
    if re.fullmatch(rf"[0-9a-f]{{{PREFIX_MIN},32}}", digits) is None:
        raise BreakNotFound(
            f"{name!r} is no break id: expected it whole, or its first {PREFIX_MIN} or more hexadecimal digits, "
            "as `tallystick show RUN` and the report write it"
        )
    first, last = UUID(digits.ljust(32, "0")), UUID(digits.ljust(32, "f"))
    begins_so = (
        select(item_break)
        .where(item_break.c.break_id.between(first, last))
        .order_by(item_break.c.break_id)
        .limit(_CANDIDATES_MAX + 1)
    )
    with engine.connect() as connection:
        rows = connection.execute(begins_so).all()
        if not rows:
            hint = _pruned_hint(connection)
            raise BreakNotFound(f"{name}: no stored break has an id that begins so; see: tallystick show RUN{hint}")
        if len(rows) > 1:
            raise BreakAmbiguous(_candidates(name, rows))
        return _told(connection, rows[0])


def keys_whose_copies_differ(engine: Engine, contract_name: str, match_keys: Collection[str]) -> dict[str, BreakClass]:
    """Return which of these keys any run found a break of by which their copies differ, or breaks of different money,
    and the class of one.

    Whatever became of that break: of one that was written off the copies differ still.
    """
    asked = literal(sorted(match_keys), ARRAY(Text))
    differs = item_break.c.break_class.in_(COPIES_DIFFER)
    named = func.coalesce(func.min(item_break.c.break_class).filter(differs), func.min(item_break.c.break_class))
    money = func.concat_ws(" ", item_break.c.amount_minor, item_break.c.currency)
    query = (
        select(item_break.c.match_key, named.label("break_class"))
        .where(item_break.c.contract == contract_name, item_break.c.match_key == any_(asked))
        .group_by(item_break.c.match_key)
        .having(func.bool_or(differs) | (func.count(money.distinct()) > 1))
    )
    with engine.connect() as connection:
        return {row.match_key: BreakClass(row.break_class) for row in connection.execute(query)}


def transactions_with_lonely_copies(
    engine: Engine, contract_name: str, transaction_keys: Collection[str]
) -> dict[str, BreakClass]:
    """Return which of these business transactions have a copy that a run found without a partner, and the class of one.

    It counts until it is cleared, so also where a person has written it off.
    """
    asked = literal(sorted(transaction_keys), ARRAY(Text))
    lonely = (
        item_break.c.contract == contract_name,
        item_break.c.break_class.in_(WITHOUT_PARTNER),
        item_break.c.transaction_key == any_(asked),
    )
    newest = (
        select(open_item.c.break_id, open_item.c.state)
        .where(
            open_item.c.contract == contract_name,
            open_item.c.break_id.in_(select(item_break.c.break_id).where(*lonely)),
        )
        .order_by(open_item.c.item_id, open_item.c.cut_n.desc(), open_item.c.step.desc())
        .distinct(open_item.c.item_id)
        .subquery()
    )
    query = (
        select(item_break.c.transaction_key, func.min(item_break.c.break_class).label("break_class"))
        .join(newest, newest.c.break_id == item_break.c.break_id)
        .where(*lonely, newest.c.state.in_([ItemState.BROKEN, ItemState.WRITTEN_OFF]))
        .group_by(item_break.c.transaction_key)
    )
    with engine.connect() as connection:
        return {row.transaction_key: BreakClass(row.break_class) for row in connection.execute(query)}


def _pruned_hint(connection: Connection) -> str:
    """The end of the sentence: where the store was pruned, the break may have been there."""
    pruned = connection.scalar(select(prune_mark.c.contract).limit(1))
    return "; it may have been pruned: docs/retention.md says what stays" if pruned else ""


def _candidates(name: str, rows: Sequence[Row[Any]]) -> str:
    shown = [f"  {row.break_id}  {row.break_class}  {row.contract}/{row.cut_n}" for row in rows[:_CANDIDATES_MAX]]
    more = ["  and more"] if len(rows) > _CANDIDATES_MAX else []
    return "\n".join([f"{name}: more than one break begins so; expected more digits of one of them:", *shown, *more])


def _told(connection: Connection, row: Row[Any]) -> ToldBreak:
    look_ups = verdict_table.c.look_ups
    judged = connection.execute(
        select(
            cut_table.c.window_start_utc,
            cut_table.c.window_end_utc,
            cut_table.c.now_utc,
            verdict_table.c.key_index,
            look_ups["topic_settled_until_utc"].as_string().label("topic_settled"),
            look_ups["ledger_settled_until_utc"].as_string().label("ledger_settled"),
        )
        .join(
            verdict_table, (verdict_table.c.contract == cut_table.c.contract) & (verdict_table.c.cut_n == cut_table.c.n)
        )
        .where(cut_table.c.contract == row.contract, cut_table.c.n == row.cut_n)
    ).one()
    return ToldBreak(
        item_break=break_of_row(row),
        contract=row.contract,
        cut_n=row.cut_n,
        window_start_utc=judged.window_start_utc,
        window_end_utc=judged.window_end_utc,
        judged_utc=judged.now_utc,
        topic_settled_until_utc=parse_utc(judged.topic_settled),
        ledger_settled_until_utc=parse_utc(judged.ledger_settled),
        life=life_of_break(connection, row.contract, row.break_id),
        of_inputs=bool(judged.key_index) and judged.key_index.get("seed") is None,
        repairs=_earlier_repairs(connection, row),
    )


def _earlier_repairs(connection: Connection, row: Row[Any]) -> tuple[EarlierRepair, ...]:
    """Compensations that are done for good, of other breaks of this break's key."""
    repaired = (
        select(compensation_action, item_break.c.break_class)
        .join(item_break, item_break.c.break_id == compensation_action.c.break_id)
        .where(
            item_break.c.contract == row.contract,
            item_break.c.match_key == row.match_key,
            item_break.c.break_id != row.break_id,
            compensation_action.c.state == ActionState.DONE,
        )
        .order_by(compensation_action.c.recorded_at)
    )
    return tuple(
        EarlierRepair(action_id=one.action_id, break_class=BreakClass(one.break_class), done_utc=one.recorded_at)
        for one in connection.execute(repaired)
    )


def life_of_break(connection: Connection, contract_name: str, break_id: UUID) -> tuple[LifeStep, ...]:
    """Every row of every item that this break ever named, also those from before it was one; an item's in order."""
    named = select(open_item.c.item_id).where(open_item.c.contract == contract_name, open_item.c.break_id == break_id)
    steps = (
        items_with_class(open_item)
        .add_columns(cut_table.c.now_utc)
        .join(cut_table, (cut_table.c.contract == open_item.c.contract) & (cut_table.c.n == open_item.c.cut_n))
        .where(open_item.c.contract == contract_name, open_item.c.item_id.in_(named))
        .order_by(open_item.c.item_id.collate("C"), open_item.c.cut_n, open_item.c.step)
    )
    return tuple(
        LifeStep(cut_n=step.cut_n, judged_utc=step.now_utc, item=item_of_row(step), written_off=_write_off_of(step))
        for step in connection.execute(steps)
    )


def _write_off_of(row: Row[Any]) -> WriteOff | None:
    if row.written_off_at is None:
        return None
    return WriteOff(by=row.written_off_by, reason=row.written_off_because, at_utc=row.written_off_at)
