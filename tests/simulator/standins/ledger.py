"""A ledger as the product asks for it, answered by the database in memory as PostgreSQL answers the product's SQL."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256
from typing import Any

import pyarrow as pa

from tallystick.contract.ledger import LedgerSection
from tallystick.ledger.earlier_rows import (
    EarlierRows,
    ReadSlice,
    bounds_of,
    compare,
    compare_digests,
    find_read_slice,
    places_by_number,
    slice_name,
)
from tallystick.ledger.jdbc import scattered, snapshot_behind
from tallystick.ledger.protocol import HorizonHolder, LedgerDescription, LedgerRow
from tallystick.ledger.unread_rows import UnreadCount, UnreadRows
from tallystick.model.cut import ANCHORS_MAX, FileChange, LedgerAnchor, LedgerSlice, LedgerSnapshot, anchor_of
from tallystick_spark.readers.ledger_frame import LEDGER_ROWS
from tests.simulator.world.database import Database, Row
from tests.simulator.world.interleaving import Interleaving


@dataclass(kw_only=True)
class WorldLedger:
    """One contract's ledger. point: told of each question, since the world may go on between any two."""

    database: Database
    ledger: LedgerSection
    key_is_unique: bool
    point: Interleaving
    read_before: Callable[[int], tuple[ReadSlice, ...]]
    counted_before: Callable[[int], EarlierRows | None]
    sum_before: Callable[[ReadSlice], int | None]
    scattered_before: Callable[[ReadSlice], int | None]
    snapshot: dict[int, Row] | None = None

    def describe(self) -> LedgerDescription:
        self.point.reached("ledger.describe")
        known_alone = self.key_is_unique and self.ledger.columns.reverses is None
        return LedgerDescription(key_is_unique=known_alone, row_id_is_unique=True, row_id_is_integer=True)

    def read_snapshot(self) -> LedgerSnapshot:
        self.point.reached("ledger.read_snapshot")
        return self.database.read_snapshot()

    def read_beginning(self) -> tuple[LedgerSnapshot, int | None]:
        """Both at one moment, as one transaction of PostgreSQL reads them."""
        self.point.reached("ledger.read_beginning")
        snapshot = self.database.read_snapshot()
        return snapshot, self._older_rows(snapshot.low_mark)

    def fix(self, ledger_slice: LedgerSlice) -> LedgerSlice:
        newest = sorted(self._now(), key=lambda row: row.row_id)[-ANCHORS_MAX:]
        return replace(ledger_slice, anchors=tuple(anchor_of(str(row.row_id), row.match_key) for row in newest))

    def changed_files(self, ledger_slice: LedgerSlice) -> tuple[FileChange, ...]:
        return ()

    def lost_anchors(self, ledger_slice: LedgerSlice) -> tuple[LedgerAnchor, ...]:
        there = {str(row.row_id): row.match_key for row in self._now()}
        return tuple(
            replace(one, taken=True)
            for one in ledger_slice.anchors
            if one.row_id in there and anchor_of(one.row_id, there[one.row_id]) != one
        )

    def holder(self, *, horizon: int) -> HorizonHolder | None:
        found = self.database.holder_of(horizon)
        if found is None:
            return None
        name, writer = found
        kind = "prepared transaction" if writer.prepared else "session"
        return HorizonHolder(position=horizon, holder=f"{kind} {name}", since=None)

    def first_position_at(self, at_utc: datetime, *, start: int, end: int) -> int | None:
        if self.ledger.columns.written_at is None:
            return None
        at_ms = int(at_utc.timestamp() * 1000)
        found = [self._position(row) for row in self._now() if row.written_ms >= at_ms]
        return min((one for one in found if start <= one < end), default=None)

    def count_older_rows(self, ledger_slice: LedgerSlice) -> int | None:
        self.point.reached("ledger.count_older_rows")
        return self._older_rows(ledger_slice.position_start)

    def _older_rows(self, start: int) -> int | None:
        if self.ledger.slice_by == "written_xid":
            return None
        upper = max(self.database.latest_ended + 1, start)
        return sum(not start <= row.xid < upper for row in self._now())

    def sum_of_positions(self, *, below: int) -> int | None:
        return None

    def scattered_sum_of_positions(self, *, below: int) -> int | None:
        return None

    def count_unread(self, ledger_slice: LedgerSlice, *, below: int, before: UnreadRows | None) -> UnreadCount | None:
        self.point.reached("ledger.count_unread")
        if self.ledger.slice_by == "written_xid":
            return None
        end, unread = ledger_slice.position_end, [one.xid for one in self._now()]
        unread = [xid for xid in unread if xid >= ledger_slice.position_start]
        return UnreadCount(
            snapshot=self.database.snapshot(),
            snapshot_end=self.database.latest_ended + 1,
            still=sum(xid < below and _is_visible(xid, before.snapshot) for xid in unread) if before else 0,
            behind=sum(xid >= end for xid in unread),
            behind_below=sum(end <= xid < below for xid in unread),
        )

    def count_by_place(self, ledger_slice: LedgerSlice, *, cut_n: int) -> EarlierRows | None:
        self.point.reached("ledger.count_by_place")
        if self.ledger.slice_by != "written_xid":
            return None
        read, before = self.read_before(cut_n), self.counted_before(cut_n)
        start = ledger_slice.position_start
        next_xid = max(self.database.latest_ended + 1, ledger_slice.position_end)
        bounds = bounds_of(read, xid_start=start, xid_end=ledger_slice.position_end, next_xid=next_xid)
        names, numbers = places_by_number(read), {}
        for row in self._now():
            numbers[row.row_id] = _bounds_reached(bounds, row.written_xid)
        outside = [
            numbers[row.row_id]
            for row in self._now()
            if row.written_xid is None or not start <= row.written_xid < next_xid
        ]
        counted = {names[number]: n for number, n in Counter(outside).items() if number in names}
        counts, changed = compare(counted, read, before)
        digests = self._digests(ledger_slice, bounds, read)
        changed += compare_digests(digests, before, changed)
        of_name = {name: number for number, name in names.items()}
        return EarlierRows(
            counts=counts,
            digests=digests,
            changed=tuple(
                replace(place, row_ids=self._last_written(numbers, of_name[place.name], of=place.to_name))
                for place in changed
            ),
        )

    def _digests(self, ledger_slice: LedgerSlice, bounds: list[int], read: tuple[ReadSlice, ...]) -> dict[str, str]:
        if not self.ledger.compared_windows:
            return {}
        own = ReadSlice(start=ledger_slice.position_start, end=ledger_slice.position_end, rows=0)
        slices = [*read, own]
        said: dict[int, list[str]] = {}
        for row in self._now():
            number = _bounds_reached(bounds, row.written_xid)
            if number is not None:
                said.setdefault(number, []).append(
                    f"{row.row_id} {row.match_key} {row.transaction_key} {row.leg} {row.amount_minor} {row.currency}"
                )
        compared = slices[-1 - self.ledger.compared_windows :]
        return {
            slice_name(one): sha256("\n".join(sorted(said.get(slices.index(one) + 1, []))).encode()).hexdigest()
            for one in compared
            if one.start < one.end
        }

    def _last_written(self, numbers: dict[int, int | None], number: int | None, *, of: int) -> tuple[str, ...]:
        there = [row for row in self._now() if numbers[row.row_id] == number]
        there.sort(key=lambda row: (-row.xid, str(row.row_id)))
        return tuple(str(row.row_id) for row in there[: min(of, 5)])

    def look_up_rows(self, match_keys: Collection[str], ledger_slice: LedgerSlice) -> dict[str, tuple[LedgerRow, ...]]:
        self.point.reached("ledger.look_up_rows")
        asked, found = set(match_keys), dict[str, list[LedgerRow]]()
        for row in self._now():
            if row.match_key in asked:
                found.setdefault(row.match_key, []).append(_looked_up(row, self._position(row)))
        by_place = {key: sorted(rows, key=lambda row: (row.position, row.row_id)) for key, rows in found.items()}
        return {key: tuple(rows) for key, rows in by_place.items()}

    def keys_seen_before(self, ledger_slice: LedgerSlice) -> tuple[str, ...]:
        start, end = ledger_slice.position_start, ledger_slice.position_end
        inside = [row for row in self._now() if start <= self._position(row) < end]
        older = {row.match_key for row in self._now() if self._position(row) < start}
        return tuple(sorted({row.match_key for row in inside if row.match_key in older or row.reverses}))

    def keys_below(self, ledger_slice: LedgerSlice, *, below: int) -> tuple[str, ...]:
        start, end = ledger_slice.position_start, min(ledger_slice.position_end, below)
        return tuple(sorted({row.match_key for row in self._now() if start <= self._position(row) < end}))

    @contextmanager
    def held_snapshot(self) -> Iterator[str | None]:
        self.point.reached("ledger.held_snapshot")
        self.snapshot = dict(self.database.rows)
        try:
            yield "exported"
        finally:
            self.snapshot = None

    def slice_rows(self, ledger_slice: LedgerSlice) -> list[Row]:
        """The slice under the snapshot that is held, as the scan's tasks read it: by halves of the table's blocks.

        A new version of a row is written where there is room, which may be in the other half.
        """
        start, end = ledger_slice.position_start, ledger_slice.position_end
        found = []
        for half in (0, 1):
            self.point.reached("ledger.scan")
            here = (row for row in self._now() if row.xid % 2 == half)
            found += [row for row in here if start <= self._position(row) < end]
        return sorted(found, key=lambda row: row.row_id)

    def _now(self) -> Collection[Row]:
        return (self.database.rows if self.snapshot is None else self.snapshot).values()

    def _position(self, row: Row) -> int:
        return (row.written_xid or 0) if self.ledger.slice_by == "written_xid" else row.xid


def rows_as_arrow(rows: Collection[Row], *, with_time: bool) -> pa.RecordBatch:
    """Shape: LEDGER_ROWS."""
    columns: list[list[Any]] = [
        [str(row.row_id) for row in rows],
        [row.match_key for row in rows],
        [row.transaction_key for row in rows],
        [row.leg for row in rows],
        [row.amount_minor for row in rows],
        [row.currency for row in rows],
        [row.written_ms if with_time else None for row in rows],
    ]
    arrays = [pa.array(one, kind) for one, kind in zip(columns, LEDGER_ROWS.types, strict=True)]
    return pa.record_batch(arrays, schema=LEDGER_ROWS)


def row_as_read(row: Row, *, with_time: bool) -> dict[str, Any]:
    return {
        "row_id": str(row.row_id),
        "match_key": row.match_key,
        "transaction_key": row.transaction_key,
        "leg": row.leg,
        "amount_minor": row.amount_minor,
        "currency": row.currency,
        "written_ms": row.written_ms if with_time else None,
    }


def _looked_up(row: Row, position: int) -> LedgerRow:
    return LedgerRow(
        row_id=str(row.row_id),
        match_key=row.match_key,
        transaction_key=row.transaction_key,
        leg=row.leg,
        amount_minor=row.amount_minor,
        currency=row.currency,
        position=position,
        receipt_partition=row.receipt_partition,
        receipt_offset=row.receipt_offset,
        reverses=row.reverses,
        action_id=row.action_id,
    )


def _bounds_reached(bounds: list[int], written_xid: int | None) -> int | None:
    """PostgreSQL's width_bucket."""
    return None if written_xid is None else bisect_right(bounds, written_xid)


def _is_visible(xid: int, snapshot: str) -> bool:
    """PostgreSQL's pg_visible_in_snapshot."""
    start, end, still_open = snapshot.split(":")
    return xid < int(start) or (xid < int(end) and str(xid) not in still_open.split(","))


@dataclass(kw_only=True)
class WorldJdbcLedger(WorldLedger):
    """The same table read by a column that grows, with an overlap; as JdbcLedger reads one."""

    def describe(self) -> LedgerDescription:
        self.point.reached("ledger.describe")
        return LedgerDescription(key_is_unique=self.key_is_unique)

    def read_snapshot(self) -> LedgerSnapshot:
        self.point.reached("ledger.read_snapshot")
        end = max(self.database.rows, default=-1) + 1
        return snapshot_behind(end, overlap=self.ledger.overlap or 0, clock=None, system="sqlite")

    def read_beginning(self) -> tuple[LedgerSnapshot, int | None]:
        snapshot = self.read_snapshot()
        self.point.reached("ledger.count_older_rows")
        return snapshot, self._older_rows(snapshot.low_mark)

    def holder(self, *, horizon: int) -> HorizonHolder | None:
        return HorizonHolder(position=horizon, holder=f"the overlap of {self.ledger.overlap_text}", since=None)

    def count_older_rows(self, ledger_slice: LedgerSlice) -> int | None:
        self.point.reached("ledger.count_older_rows")
        return self._older_rows(ledger_slice.position_start)

    def _older_rows(self, start: int) -> int | None:
        return sum(row.row_id < start for row in self._now())

    def fix(self, ledger_slice: LedgerSlice) -> LedgerSlice:
        self.point.reached("ledger.fix")
        newest = sorted((row for row in self._now() if row.row_id < ledger_slice.position_end), key=self._position)
        return replace(ledger_slice, anchors=tuple(map(_anchor, reversed(newest[-ANCHORS_MAX:]))))

    def lost_anchors(self, ledger_slice: LedgerSlice) -> tuple[LedgerAnchor, ...]:
        self.point.reached("ledger.lost_anchors")
        now = {_anchor(row) for row in self._now()}
        keys = {str(row.row_id): row.match_key for row in self._now()}
        return tuple(
            replace(one, taken=one.row_id in keys)
            for one in ledger_slice.anchors
            if one not in now
            if one.row_id not in keys or anchor_of("", keys[one.row_id]).key_checksum != one.key_checksum
        )

    def count_unread(self, ledger_slice: LedgerSlice, *, below: int, before: UnreadRows | None) -> None:
        return None

    def sum_of_positions(self, *, below: int) -> int | None:
        return _sum_of(row for row in self._now() if row.row_id < below)

    def scattered_sum_of_positions(self, *, below: int) -> int | None:
        return _scattered_sum_of(row for row in self._now() if row.row_id < below)

    def look_up_rows(self, match_keys: Collection[str], ledger_slice: LedgerSlice) -> dict[str, tuple[LedgerRow, ...]]:
        read = self.read_before(1 << 30)
        found = super().look_up_rows(match_keys, ledger_slice)
        return {key: tuple(self._was_read(row, ledger_slice, read) for row in rows) for key, rows in found.items()}

    def _was_read(self, row: LedgerRow, ledger_slice: LedgerSlice, read: tuple[ReadSlice, ...]) -> LedgerRow:
        """A slice that holds as many rows as a cut has read there, with the same sum, was read whole."""
        if not ledger_slice.baseline_position <= row.position < ledger_slice.position_start:
            return row
        one = find_read_slice(read, row.position)
        if one is None:
            return replace(row, was_read=False)
        there = [other for other in self._now() if one.start <= other.row_id < one.end]
        same = self.sum_before(one) in (None, _sum_of(there))
        same = same and self.scattered_before(one) in (None, _scattered_sum_of(there))
        return replace(row, was_read=len(there) == one.rows and same)

    def _position(self, row: Row) -> int:
        return row.row_id


def _anchor(row: Row) -> LedgerAnchor:
    return anchor_of(str(row.row_id), row.match_key, position=row.row_id)


def _sum_of(rows: Iterable[Row]) -> int:
    return sum(row.row_id % 1_000_003 for row in rows)


def _scattered_sum_of(rows: Iterable[Row]) -> int:
    return sum(scattered(row.row_id % 1_000_003) for row in rows)
