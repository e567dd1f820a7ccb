"""Has each doubt its cause? What befell a log or a ledger since the run before looked there, as the world knows it."""

from collections.abc import Callable, Iterator
from datetime import datetime

from tallystick.model.finding_names import Doubt
from tallystick.model.findings import DoubtFound
from tallystick.model.offsets import TopicPartition
from tests.simulator.world.truth import RowFact
from tests.simulator.world.world import World

_BEFALLS = {
    Doubt.TOPIC_RECREATED: {"recreated"},
    Doubt.LOG_TRUNCATED: {"truncated"},
    Doubt.LOG_EXPIRED: {"retained"},
    Doubt.LOG_COMPACTED: {"compacted"},
    Doubt.LOG_REWRITTEN: {"truncated", "recreated"},
    Doubt.UNEXPLAINED_GAP: {"truncated", "recreated", "compacted"},
    Doubt.READERS_DISAGREE: {"truncated", "recreated", "compacted", "retained"},
}
"""What of a log's misfortunes may be the cause."""
_STANDS = {Doubt.TOPIC_RECREATED, Doubt.LOG_TRUNCATED, Doubt.LOG_REWRITTEN, Doubt.LOG_COMPACTED}
"""What may have come long before: it is told for as long as it holds, once the log has grown again, or once a slice
begins where an open transaction had held the books.
"""


def has_its_cause(world: World, name: str, cut_n: int, found: DoubtFound) -> bool:
    """True also for a doubt of which the world cannot say what it would take."""
    since = _last_looked(world, name, cut_n)
    if found.doubt in _BEFALLS:
        place = _place(found)
        return any(
            (at >= since or found.doubt in _STANDS)
            and what in _BEFALLS[found.doubt]
            and (of is None or place is None or of == place)
            for at, what, of, _ in world.truth.losses
        )
    of_ledger = _OF_LEDGER.get(found.doubt)
    return of_ledger is None or of_ledger(world, since)


def _last_looked(world: World, name: str, cut_n: int) -> datetime:
    """When the newest cut was made that some run has read, of those before this one."""
    books = world.store.of(name)
    read = [n for n, row in books.verdicts.items() if n < cut_n and Doubt.CUT_CLOSED not in row.doubts]
    return books.cuts[max(read, default=0)].cut.marked_at_utc


def _place(found: DoubtFound) -> TopicPartition | None:
    topic, partition = found.details.get("topic"), found.details.get("partition")
    return TopicPartition(topic=topic, partition=partition) if topic is not None and partition is not None else None


def _rows_repeat(world: World, since: datetime) -> bool:
    copied = any(row.copy_of is not None for row in world.database.rows.values())
    return copied or _was_restored(world) or any(row.odd_id for row in world.truth.rows.values())


def _unreadable(world: World, since: datetime) -> bool:
    return any(not one.readable for one in world.truth.events)


def _rewritten(world: World, since: datetime) -> bool:
    """By xmin. Other kinds tell so of rows that came where no cut reads; this one too, where ids come again."""
    if world.config.slice_by != "xmin" or _was_restored(world):
        return True
    return any(at >= since for row in world.truth.rows.values() for at in _changes(row))


def _was_restored(world: World) -> bool:
    return any(what == "restored" for _, what, *_ in world.truth.losses)


def _changes(row: RowFact) -> Iterator[datetime]:
    yield from row.touched
    yield from (changed_at for changed_at, _ in row.changed)
    if row.gone_at is not None:
        yield row.gone_at


_OF_LEDGER: dict[Doubt, Callable[[World, datetime], bool]] = {
    Doubt.ROW_IDS_REPEAT: _rows_repeat,
    Doubt.UNREADABLE_PAYLOAD: _unreadable,
    Doubt.LEDGER_REWRITTEN: _rewritten,
    Doubt.CANARY_MISSED: lambda world, since: False,
}
WITH_A_CAUSE = frozenset({*_BEFALLS, *_OF_LEDGER})
"""Those of which the world can say what it takes."""
