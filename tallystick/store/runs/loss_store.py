"""The losses of earlier runs, for later ones: offsets that expired unread, rows that may be older ones, judged legs."""

from collections.abc import Collection, Mapping
from typing import Any

from sqlalchemy import (
    ARRAY,
    BigInteger,
    ColumnElement,
    Engine,
    FromClause,
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
from sqlalchemy.dialects.postgresql import JSONB, JSONPATH

from tallystick.compensation.plan import OffsetsUnread
from tallystick.contract.contract import Contract
from tallystick.ledger.unread_rows import UnreadRows
from tallystick.matching.unreadable_ranges import LedgerStarts, Loss
from tallystick.model.finding_names import Doubt
from tallystick.model.offsets import TopicPartition
from tallystick.model.open_item import legs_item_id
from tallystick.store.runs.cut_store import LEDGER, side_name
from tallystick.store.schema import big_integer, cut_slice, open_item
from tallystick.store.schema import cut as cut_table
from tallystick.store.schema import verdict as verdict_table

_OFFSETS_LOST = (
    Doubt.LOG_EXPIRED,
    Doubt.LOG_COMPACTED,
    Doubt.LOG_TRUNCATED,
    Doubt.LOG_REWRITTEN,
    Doubt.TOPIC_RECREATED,
)
"""Doubts under which an event may have stood where no run has read it."""


def _offsets_unread(of_topic: str, on_topic: str) -> str:
    """Return the path of the doubts under which a cut left offsets unread: lost, of a topic, or closed, on a topic."""
    lost = " || ".join(f'@.doubt == "{doubt}"' for doubt in _OFFSETS_LOST)
    return f"""$[*] ? (
        ({lost}) {of_topic}
        || @.doubt == "{Doubt.CUT_CLOSED}" && (!exists(@.details.offsets) || exists(@.details.offsets[*] {on_topic}))
    )"""


_OF_TOPIC = _offsets_unread("&& (!exists(@.details.topic) || @.details.topic == $topic)", "? (@.topic == $topic)")
_MAY_HAVE_BEEN_UNREADABLE = f"""$[*] ? (
    @.doubt == "{Doubt.UNREADABLE_PAYLOAD}" && (
        !exists(@.details.places) || @.details.records > @.details.places.size()
        || exists(@.details.places[*] ? (@ starts with $place))
    )
)"""
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
            or_(*(verdict_table.c.doubts.contains([{"doubt": doubt}]) for doubt in _OFFSETS_LOST)),
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


def last_cuts_with_offsets_unread(
    engine: Engine,
    contract_name: str,
    topics: Collection[str],
    *,
    log_starts: Mapping[TopicPartition, int] | None = None,
    planned_at: int | None = None,
) -> OffsetsUnread:
    """Return the newest judged cut that had lost offsets before they were read, or was closed with a slice of a topic
    that is not empty: on any topic, and on each of these.

    And the newest that could not read what the log may not have any more, as `OffsetsUnread` says. log_starts: as they
    are now, to look for what has gone since the cut that a plan was made at; None: as the newest run had them, for all
    that has gone by then.
    """
    doubts, ordered = verdict_table.c.doubts, sorted(topics)
    newest = [
        func.max(verdict_table.c.cut_n).filter(func.jsonb_path_exists(doubts, cast(path, JSONPATH), cast(named, JSONB)))
        for path, named in (
            (_offsets_unread("", ""), {}),
            *((_OF_TOPIC, {"topic": topic}) for topic in ordered),
        )
    ]
    statement = select(*newest).where(verdict_table.c.contract == contract_name)
    with engine.connect() as connection:
        at, *at_topic = (-1 if found is None else int(found) for found in connection.execute(statement).one())
    begins = _log_starts_at(engine, contract_name, planned_at)
    by_now, by_then = (begins, {}) if log_starts is None else (log_starts, begins)
    return OffsetsUnread(
        at=at,
        at_topic=dict(zip(ordered, at_topic, strict=True)),
        unreadable_at=_newest_of_each(
            _unreadable_gone(engine, contract_name, by_now, by_then),
            _gone_unseen(engine, contract_name, after=-1 if planned_at is None else planned_at),
        ),
    )


def _newest_of_each(cuts: Mapping[str, int], others: Mapping[str, int]) -> dict[str, int]:
    return {topic: max(cuts.get(topic, -1), others.get(topic, -1)) for topic in {**cuts, **others}}


def _gone_unseen(engine: Engine, contract_name: str, *, after: int) -> dict[str, int]:
    """Return, by topic, the newest judged cut behind that one by which all that had been read of a partition had left
    the log, and the partition had another leader.
    """
    before = cut_slice.alias("before")

    def of_snapshot(of: FromClause, name: str) -> ColumnElement[int]:
        return big_integer(of.c.details["snapshot"][name])

    statement = (
        select(
            cut_slice.c.details["offsets"]["topic"].as_string().label("topic"),
            func.max(cut_slice.c.cut_n).label("newest"),
        )
        .join(
            before,
            (before.c.contract == cut_slice.c.contract)
            & (before.c.side == cut_slice.c.side)
            & (before.c.slice_n == cut_slice.c.previous_slice_n),
        )
        .join(
            verdict_table,
            (verdict_table.c.contract == cut_slice.c.contract) & (verdict_table.c.cut_n == cut_slice.c.cut_n),
        )
        .where(
            cut_slice.c.contract == contract_name,
            cut_slice.c.side != LEDGER,
            cut_slice.c.cut_n > after,
            of_snapshot(cut_slice, "log_start") == cut_slice.c.starts_at,
            of_snapshot(cut_slice, "log_start") > of_snapshot(before, "log_start"),
            of_snapshot(cut_slice, "leader_epoch") != of_snapshot(before, "leader_epoch"),
        )
        .group_by("topic")
    )
    with engine.connect() as connection:
        return {row.topic: int(row.newest) for row in connection.execute(statement)}


def _unreadable_gone(
    engine: Engine,
    contract_name: str,
    log_starts: Mapping[TopicPartition, int],
    gone_before: Mapping[TopicPartition, int],
) -> dict[str, int]:
    """Return, by topic, the newest judged cut that could not read records of a slice that these log starts cut into.

    Where its doubt does not name all of them, any slice may have held one. gone_before: log starts of before; what they
    had cut into is left out.
    """
    ordered = sorted(log_starts)
    sides = {part: side_name(part) for part in ordered}
    columns = (
        ("side", Text, list(sides.values())),
        ("place", Text, [f"{part} at " for part in ordered]),
        ("gone_before", BigInteger, [gone_before.get(part, 0) for part in ordered]),
        ("log_start", BigInteger, [log_starts[part] for part in ordered]),
    )
    wanted = (
        func.unnest(*(literal(values, ARRAY(kind)) for _, kind, values in columns))
        .table_valued(*(column(name, kind) for name, kind, _ in columns), name="wanted")
        .render_derived()
    )
    statement = (
        select(wanted.c.side, func.max(cut_slice.c.cut_n).label("newest"))
        .join(cut_slice, (cut_slice.c.contract == contract_name) & (cut_slice.c.side == wanted.c.side))
        .join(
            verdict_table,
            (verdict_table.c.contract == cut_slice.c.contract) & (verdict_table.c.cut_n == cut_slice.c.cut_n),
        )
        .where(
            cut_slice.c.starts_at < cut_slice.c.ends_at,
            cut_slice.c.starts_at >= wanted.c.gone_before,
            cut_slice.c.starts_at < wanted.c.log_start,
            verdict_table.c.doubts.contains([{"doubt": Doubt.UNREADABLE_PAYLOAD}]),
            func.jsonb_path_exists(
                verdict_table.c.doubts,
                cast(_MAY_HAVE_BEEN_UNREADABLE, JSONPATH),
                func.jsonb_build_object("place", wanted.c.place),
            ),
        )
        .group_by(wanted.c.side)
    )
    with engine.connect() as connection:
        found = {row.side: int(row.newest) for row in connection.execute(statement)}
    newest: dict[str, int] = {}
    for part in ordered:
        newest[part.topic] = max(newest.get(part.topic, -1), found.get(sides[part], -1))
    return newest


def _log_starts_at(engine: Engine, contract_name: str, n: int | None) -> dict[TopicPartition, int]:
    """Return where the log of each partition began when that cut was made; None: the newest that is judged."""
    judged = select(func.max(verdict_table.c.cut_n)).where(verdict_table.c.contract == contract_name).scalar_subquery()
    statement = select(
        cut_slice.c.details["offsets"]["topic"].as_string().label("topic"),
        cut_slice.c.details["offsets"]["partition"].as_integer().label("partition"),
        big_integer(cut_slice.c.details["snapshot"]["log_start"]).label("log_start"),
    ).where(
        cut_slice.c.contract == contract_name,
        cut_slice.c.cut_n == (judged if n is None else n),
        cut_slice.c.side != LEDGER,
    )
    with engine.connect() as connection:
        return {
            TopicPartition(topic=row.topic, partition=row.partition): int(row.log_start)
            for row in connection.execute(statement)
        }


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
