"""The cuts that left something unread on the topics, as those ask who would repair a break: its event may be in there.

A plan leaves such a break to people, and its executor asks once more before it acts.
"""

from collections.abc import Collection, Mapping, Sequence

from sqlalchemy import ARRAY, BigInteger, Engine, Text, cast, column, func, literal, select
from sqlalchemy.dialects.postgresql import JSONB, JSONPATH

from tallystick.compensation.plan import OffsetsUnread
from tallystick.model.finding_names import Doubt
from tallystick.model.offsets import TopicPartition
from tallystick.store.runs.cut_store import LEDGER, side_name
from tallystick.store.schema import big_integer, cut_slice
from tallystick.store.schema import verdict as verdict_table

OFFSETS_LOST = (
    Doubt.LOG_EXPIRED,
    Doubt.LOG_COMPACTED,
    Doubt.LOG_TRUNCATED,
    Doubt.LOG_REWRITTEN,
    Doubt.TOPIC_RECREATED,
)
"""Doubts under which an event may have stood where no run has read it."""


def _offsets_unread(of_topic: str, on_topic: str) -> str:
    """Return the path of the doubts under which a cut left offsets unread: lost, of a topic, or closed, on a topic."""
    lost = " || ".join(f'@.doubt == "{doubt}"' for doubt in OFFSETS_LOST)
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
_GONE_UNSEEN = "$.surroundings.gone_unseen[*] ? (@.topic == $topic)"


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
            _gone_unseen(engine, contract_name, ordered, after=-1 if planned_at is None else planned_at),
        ),
    )


def _newest_of_each(cuts: Mapping[str, int], others: Mapping[str, int]) -> dict[str, int]:
    return {topic: max(cuts.get(topic, -1), others.get(topic, -1)) for topic in {**cuts, **others}}


def _gone_unseen(engine: Engine, contract_name: str, topics: Sequence[str], *, after: int) -> dict[str, int]:
    """Return, for each of these topics, the newest judged cut behind that one that saw a partition of it go unseen."""
    newest = [
        func.max(verdict_table.c.cut_n).filter(
            func.jsonb_path_exists(verdict_table.c.look_ups, cast(_GONE_UNSEEN, JSONPATH), cast({"topic": one}, JSONB))
        )
        for one in topics
    ]
    statement = select(*newest).where(verdict_table.c.contract == contract_name, verdict_table.c.cut_n > after)
    with engine.connect() as connection:
        found = connection.execute(statement).one() if newest else ()
    return {topic: -1 if cut_n is None else int(cut_n) for topic, cut_n in zip(topics, found, strict=True)}


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
