"""Which events and rows no cut has read, by what the cuts that are stored say and by what befell the log."""

from collections.abc import Iterable
from datetime import datetime

from tallystick.model.cut import Cut
from tallystick.model.finding_names import Doubt
from tests.simulator.standins.store import VerdictRow
from tests.simulator.world.folder import Folder
from tests.simulator.world.truth import EventFact, RowFact
from tests.simulator.world.world import World

TAKEN = ("retained", "compacted")
"""Losses of what nobody cut away: it stood there until then."""


def unread_events(world: World, name: str, events: Iterable[EventFact]) -> list[EventFact]:
    """Those that lie in no slice of a stored cut, as far as it could read, and was read at all; or that came to lie
    there since, where the log was cut back.
    """
    books = world.store.of(name)
    read = [(books.cuts[n].cut, row) for n, row in sorted(books.verdicts.items()) if Doubt.CUT_CLOSED not in row.doubts]
    return [one for one in events if not any(_has_read(world, cut, row, one) for cut, row in read)]


def rows_in_closed_cuts(world: World, name: str, rows: Iterable[RowFact]) -> list[RowFact]:
    """Those that lie in the slice of a cut that was closed unread: by the ids of their transactions or their own, or
    as all of their files do, and in no slice that was read.
    """
    by = {
        "written_xid": lambda row: row.written_xid,
        "xmin": lambda row: row.xid,
        "jdbc": lambda row: row.row_id,
    }.get(world.config.slice_by)
    books = world.store.of(name)
    is_closed = {n: Doubt.CUT_CLOSED in row.doubts for n, row in books.verdicts.items()}
    closed = [books.cuts[n].cut.ledger_slice for n in is_closed if is_closed[n]]
    if isinstance(world.database, Folder):
        unread = {file.path for one in closed for file in one.files}
        read = {file.path for n in is_closed if not is_closed[n] for file in books.cuts[n].cut.ledger_slice.files}
        stood_in = world.database.stood_in
        return [row for row in rows if unread & stood_in[row.row_id] and not read & stood_in[row.row_id]]
    if by is None:
        return []
    return [row for row in rows if any(one.position_start <= (by(row) or 0) < one.position_end for one in closed)]


def rows_in_no_cut(world: World, name: str, rows: Iterable[RowFact]) -> list[RowFact]:
    """Those whose transaction's id lies in no slice that was read once they had come: on a server that was put back ids
    are given out again.
    """
    by = {"written_xid": lambda row: row.written_xid, "xmin": lambda row: row.xid}.get(world.config.slice_by)
    if by is None:
        return []
    books = world.store.of(name)
    read = [
        (books.cuts[n].cut.ledger_slice, row.recorded_at)
        for n, row in books.verdicts.items()
        if Doubt.CUT_CLOSED not in row.doubts
    ]
    return [
        row
        for row in rows
        if not any(
            part.position_start <= (by(row) or 0) < part.position_end and at >= row.visible_at for part, at in read
        )
    ]


_TAKEN_IN_WORDS = {Doubt.LOG_EXPIRED, Doubt.LOG_COMPACTED}


def _has_read(world: World, cut: Cut, row: VerdictRow, event: EventFact) -> bool:
    """A cut is stored as it was made: what expires before it is read, or is cut away from its end, its run says."""
    part = cut.slice_of(event.place)
    return (
        part is not None
        and part.snapshot.topic_id == event.topic_id
        and part.readable.kafka_offset_start <= event.offset < part.readable.kafka_offset_end
        and event.written_at <= row.recorded_at
        and not (event.first_visible_at and event.first_visible_at > row.recorded_at)  # it was aborted then
        and event.leader_epoch <= part.snapshot.leader_epoch  # later ones stand where the cut's own had stood
        and not (row.doubts & _TAKEN_IN_WORDS and was_taken(world, event, before=row.recorded_at))
        and not _was_left_out(row, event, offsets=len(part.readable))
    )


def was_closed_away(world: World, name: str, event: EventFact, *, before: datetime) -> bool:
    """Had a person closed a cut by then that it lies in, so that nobody has read it there?"""
    closed = closed_over(world, name, event)
    return any(event.written_at <= row.recorded_at < before for row in closed)


def closed_over(world: World, name: str, event: EventFact) -> list[VerdictRow]:
    """What is stored of the cuts that a person has closed unread and that have its offset, whenever it came there."""
    books = world.store.of(name)
    return [
        row
        for n, row in books.verdicts.items()
        if Doubt.CUT_CLOSED in row.doubts
        and (part := books.cuts[n].cut.slice_of(event.place)) is not None
        and part.snapshot.topic_id == event.topic_id
        and part.offsets.kafka_offset_start <= event.offset < part.offsets.kafka_offset_end
    ]


def was_taken(world: World, event: EventFact, *, before: datetime) -> bool:
    """Had retention or compaction taken it by then?"""
    return any(
        place == event.place and at <= before and takes(what, event.offset, up_to)
        for at, what, place, up_to in world.truth.losses
    )


def takes(what: str, offset: int, up_to: int) -> bool:
    """Does a loss of that kind, up to or at an offset, take this one from the log for good?"""
    return (what == "retained" and offset < up_to) or (what == "compacted" and offset == up_to)


def _was_left_out(row: VerdictRow, event: EventFact, *, offsets: int) -> bool:
    """Does the run say that it read nothing of the partition, whose log ends before the slice does, or was written anew
    there, or had none of the slice's offsets by the time it was read?
    """
    return any(
        (
            one.doubt is Doubt.LOG_TRUNCATED
            or (one.doubt is Doubt.LOG_REWRITTEN and "unread_offsets" in one.details)
            or (one.doubt is Doubt.UNEXPLAINED_GAP and one.details["unexplained"] == offsets)
        )
        and (one.details["topic"], one.details["partition"]) == (event.place.topic, event.place.partition)
        for one in row.result.doubts
    )
