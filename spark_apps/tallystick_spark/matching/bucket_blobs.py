"""One side's rows as a few large binary rows: totals, and the hashes of its keys, by bucket of keys.

A side that is shuffled row by row costs more than all that is computed of it. So each task turns its rows into arrays
of numbers, a *blob* for each bucket of key hashes, and those are shuffled. Nothing here knows Spark: batches go in, and
batches come out. `hash_match` takes what comes of both sides.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import IntEnum

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tallystick.matching.scan_result import UNREADABLE_SAMPLE

Numbers = NDArray[np.int64]

PARTITIONS = 1 << 20
"""More than a topic can have: an event's part is its topic's number times this, and its partition plus one."""

HASHED_EVENTS = pa.schema(
    [
        ("part", pa.int64()),
        ("place", pa.int64()),
        ("readable", pa.bool_()),
        ("key_hash", pa.int64()),
        ("fields", pa.int64()),
        ("content", pa.int64()),
        ("amount_minor", pa.int64()),
        ("currency", pa.string()),
        ("written_ms", pa.int64()),
        ("transaction_hash", pa.int64()),
        ("misrouted", pa.bool_()),
    ]
)
"""Events. Hashes are those of `keyed_hash`, under one secret on both sides; only content is Spark's xxhash64.

place: the offset. key_hash: of match_key. fields: amount_minor XOR the hash of currency, so that of equal currencies it
is equal where the amounts are. content: `event_content`. transaction_hash: of transaction_key, where there are several
legs. Where an event is not readable, amount and currency are null, and these hashes but content may be anything.
"""

HASHED_ROWS = pa.schema(
    [
        ("place", pa.int64()),
        ("key_hash", pa.int64()),
        ("fields", pa.int64()),
        ("content", pa.int64()),
        ("amount_minor", pa.int64()),
        ("currency", pa.string()),
        ("written_ms", pa.int64()),
    ]
)
"""Ledger rows; what is named as in HASHED_EVENTS is the same.

place: where the ledger finds the row again, if it can say so in a number, else 0.
content: `row_content`.
"""

SUMMARY = pa.schema([("kind", pa.int8()), ("bucket", pa.int32()), ("blob", pa.binary())])
"""The shape of both sides before the match, and of its results. A blob's shape is that of its `BlobKind`."""

BUCKETS = 256
PLANTED = BUCKETS
"""The bucket of all planted rows: they are compared with each other only."""
NO_BUCKET = -1
"""The bucket of figures about a whole side."""
FLUSH_ROWS = 1 << 16
"""Rows of a task that become blobs together: some 250 to a blob. Four times as many would leave a core's cache."""

LOW_32_BITS = 0xFFFFFFFF


class BlobKind(IntEnum):
    """The content of a blob: JSON of totals, or rows of 64-bit numbers, as many in each as `WIDTH` says."""

    EVENT_TOTALS = 0
    ROW_TOTALS = 1
    UNREADABLE = 2
    """The first ones of a task: part, place."""
    EVENTS = 3
    """Key hash, fields, part, place of each readable event."""
    ROWS = 4
    """Key hash, fields, place of each ledger row."""
    WANTED = 5
    """Hashes of keys whose copies are collected in any case."""
    TRANSACTIONS = 6
    """Hash of the transaction's key, part, place of each readable event."""
    EVENT_TIMES = 7
    """Key hash, topic number, written_ms of sampled keys."""
    ROW_TIMES = 8
    """Key hash, written_ms of sampled keys."""
    EXCEPTION_EVENTS = 9
    """Told by the match: key hash, part, place of each copy of an exceptional key."""
    EXCEPTION_ROWS = 10
    """Key hash, place of each ledger row of an exceptional key."""
    INCOMPLETE = 11
    """Part, place of each event of a transaction that lacks a leg."""
    LAGS = 12
    """Topic number, milliseconds from event to row, of sampled pairs."""
    WALKED = 13
    """Census of one partition's slice, by the reader that walked it."""
    SEEN = 14
    """Digest by that reader of the offsets that are read twice."""


WIDTH = {
    BlobKind.UNREADABLE: 2,
    BlobKind.EVENTS: 4,
    BlobKind.ROWS: 3,
    BlobKind.WANTED: 1,
    BlobKind.TRANSACTIONS: 3,
    BlobKind.EVENT_TIMES: 3,
    BlobKind.ROW_TIMES: 2,
    BlobKind.EXCEPTION_EVENTS: 3,
    BlobKind.EXCEPTION_ROWS: 2,
    BlobKind.INCOMPLETE: 2,
    BlobKind.LAGS: 2,
}


@dataclass(frozen=True, kw_only=True)
class ScanPlan:
    """The order for a scan.

    secret: what both sides are hashed with, as `keyed_hash.new_secret` makes it; no answer depends on it. topics: in
    the order of their numbers. legs: how many a transaction has. possible_ms: first and last timestamp that the window
    can hold; None does not ask. lag_of_one_in: the lag of one key of so many is measured; None: of none.
    """

    secret: str = field(repr=False)
    topics: tuple[str, ...]
    legs: int
    possible_ms: tuple[int, int] | None = None
    lag_of_one_in: int | None = None


@dataclass(frozen=True, kw_only=True)
class GroupTotal:
    """The totals of a group of rows. amount: in minor units; None for unreadable events.

    xor, sum: of the rows' content; `sum` of its low 32 bits. The times are those of events, where they are asked for.
    """

    part: int
    readable: bool
    currency: str | None
    rows: int
    amount: int | None
    xor: int
    sum: int
    earliest_ms: int | None = None
    latest_ms: int | None = None
    early: int = 0
    late: int = 0

    @property
    def group(self) -> tuple[int, bool, str | None]:
        return self.part, self.readable, self.currency

    def plus(self, other: "GroupTotal") -> "GroupTotal":
        """Add two totals of one group."""
        earliest = [one.earliest_ms for one in (self, other) if one.earliest_ms is not None]
        latest = [one.latest_ms for one in (self, other) if one.latest_ms is not None]
        amounts = [one.amount for one in (self, other) if one.amount is not None]
        return replace(
            self,
            rows=self.rows + other.rows,
            amount=sum(amounts) if amounts else None,
            xor=self.xor ^ other.xor,
            sum=self.sum + other.sum,
            earliest_ms=min(earliest, default=None),
            latest_ms=max(latest, default=None),
            early=self.early + other.early,
            late=self.late + other.late,
        )


def summarise_events(batches: Iterable[pa.RecordBatch], plan: ScanPlan) -> Iterator[pa.RecordBatch]:
    """Summarise one task's events. Shape: HASHED_EVENTS -> SUMMARY."""
    totals: list[GroupTotal] = []
    unreadable = np.empty((0, 2), dtype=np.int64)
    for events in _flushes(batches):
        part, place, readable = _numbers(events, "part"), _numbers(events, "place"), events["readable"].to_numpy()
        totals = add_totals([*totals, *_totals(events, part, readable, plan.possible_ms)])
        odd = np.column_stack([part, place])[~readable & ~_is_planted(part)]
        unreadable = first_places(np.vstack([unreadable, odd]))
        yield from _event_blobs(events if readable.all() else events.filter(events["readable"]), plan)
    yield _whole_side(BlobKind.EVENT_TOTALS, totals)
    if len(unreadable):
        yield blobs_of(BlobKind.UNREADABLE, NO_BUCKET, [unreadable.astype("<i8").tobytes()])


def summarise_rows(
    batches: Iterable[pa.RecordBatch], plan: ScanPlan, *, planted: bool = False
) -> Iterator[pa.RecordBatch]:
    """Summarise one task's ledger rows. Planted ones are in no total. Shape: HASHED_ROWS -> SUMMARY."""
    totals: list[GroupTotal] = []
    for rows in _flushes(batches):
        if not planted:
            no_part, readable = np.zeros(len(rows), dtype=np.int64), np.ones(len(rows), dtype=bool)
            totals = add_totals([*totals, *_totals(rows, no_part, readable, None)])
        yield from _row_blobs(rows, plan, planted)
    yield _whole_side(BlobKind.ROW_TOTALS, totals)


def bucket_of(key_hash: Numbers) -> Numbers:
    """Return the bucket of a hash, by its upper bits."""
    return (key_hash >> 56) + BUCKETS // 2


def by_bucket(kind: BlobKind, bucket: Numbers, matrix: Numbers) -> pa.RecordBatch:
    """Return the matrix's rows as a blob for each bucket. Shape: SUMMARY."""
    order = np.argsort(bucket.astype(np.int16), kind="stable")
    ordered = bucket[order]
    starts = starts_of(ordered)
    width = matrix.shape[1] * matrix.itemsize
    offsets = (np.append(starts, len(ordered)) * width).astype(np.int32)
    data = np.ascontiguousarray(matrix[order], dtype="<i8")
    blobs = pa.Array.from_buffers(pa.binary(), len(starts), [None, pa.py_buffer(offsets.tobytes()), pa.py_buffer(data)])
    return _record_batch(kind, ordered[starts], blobs)


def blobs_of(kind: BlobKind, bucket: int, blobs: Sequence[bytes | pa.Buffer]) -> pa.RecordBatch:
    """Return blobs of one bucket. Shape: SUMMARY."""
    return _record_batch(kind, np.full(len(blobs), bucket), pa.array(map(bytes, blobs), pa.binary()))


def starts_of(ordered: Numbers) -> Numbers:
    """Return the place where each group of equal numbers begins."""
    return np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1]))[: len(ordered)])


def lengths_of(starts: Numbers, end: int) -> Numbers:
    """Return how many numbers each group has, by where the groups begin. end: of the last one."""
    lengths = np.empty_like(starts)
    np.subtract(starts[1:], starts[:-1], out=lengths[:-1])
    lengths[-1:] = end - starts[-1:]
    return lengths


def add_totals(totals: Iterable[GroupTotal]) -> list[GroupTotal]:
    """Add up the totals of each group."""
    added: dict[tuple[int, bool, str | None], GroupTotal] = {}
    for total in totals:
        before = added.get(total.group)
        added[total.group] = before.plus(total) if before else total
    return list(added.values())


def totals_in(blob: bytes) -> list[GroupTotal]:
    """Return the totals that a blob of `EVENT_TOTALS` or `ROW_TOTALS` holds."""
    return [GroupTotal(**total) for total in json.loads(blob)]


def numbers_in(kind: BlobKind, blobs: Sequence[bytes | pa.Buffer]) -> Numbers:
    """Return the numbers that blobs of one kind hold, together: a matrix as wide as the kind says."""
    return np.frombuffer(b"".join(blobs), dtype="<i8").reshape(-1, WIDTH[kind])


def _flushes(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yield the same rows, many at a time."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(one.num_rows for one in waiting) >= FLUSH_ROWS:
            yield pa.Table.from_batches(waiting)
            waiting = []
    if any(one.num_rows for one in waiting):
        yield pa.Table.from_batches(waiting)


def _event_blobs(events: pa.Table, plan: ScanPlan) -> Iterator[pa.RecordBatch]:
    """Yield the blobs of readable events."""
    part, place, key_hash = (_numbers(events, name) for name in ("part", "place", "key_hash"))
    planted = _is_planted(part)
    bucket = np.where(planted, PLANTED, bucket_of(key_hash))
    yield by_bucket(BlobKind.EVENTS, bucket, np.column_stack([key_hash, _numbers(events, "fields"), part, place]))
    if plan.lag_of_one_in:
        sampled = _sampled(key_hash, events, plan.lag_of_one_in)
        times = np.column_stack([key_hash, part // PARTITIONS, _numbers(events, "written_ms")])
        yield by_bucket(BlobKind.EVENT_TIMES, bucket[sampled], times[sampled])
    if plan.legs > 1:
        misrouted = events["misrouted"].to_numpy()
        yield by_bucket(BlobKind.WANTED, bucket[misrouted], key_hash[misrouted, np.newaxis])
        transaction = _numbers(events, "transaction_hash")
        bucket = np.where(planted, PLANTED, bucket_of(transaction))
        yield by_bucket(BlobKind.TRANSACTIONS, bucket, np.column_stack([transaction, part, place]))


def _row_blobs(rows: pa.Table, plan: ScanPlan, planted: bool) -> Iterator[pa.RecordBatch]:
    key_hash = _numbers(rows, "key_hash")
    bucket = np.full(len(key_hash), PLANTED) if planted else bucket_of(key_hash)
    yield by_bucket(
        BlobKind.ROWS, bucket, np.column_stack([key_hash, _numbers(rows, "fields"), _numbers(rows, "place")])
    )
    if plan.lag_of_one_in:
        sampled = _sampled(key_hash, rows, plan.lag_of_one_in)
        times = np.column_stack([key_hash, _numbers(rows, "written_ms")])
        yield by_bucket(BlobKind.ROW_TIMES, bucket[sampled], times[sampled])


def _sampled(key_hash: Numbers, side: pa.Table, one_in: int) -> NDArray[np.bool_]:
    """Return rows of the keys whose lag is measured; without those that do not say when they were written."""
    sampled: NDArray[np.bool_] = (key_hash % one_in == 0) & side["written_ms"].is_valid().to_numpy()
    return sampled


def _totals(
    side: pa.Table, part: Numbers, readable: NDArray[np.bool_], possible_ms: tuple[int, int] | None
) -> list[GroupTotal]:
    """Return totals by part, readable or not, and currency."""
    if not len(part):
        return []
    codes = side["currency"].combine_chunks().dictionary_encode()
    currencies = [*codes.dictionary.to_pylist(), None]
    code = pc.fill_null(codes.indices, len(currencies) - 1).to_numpy().astype(np.int64)
    parts, part_number = np.unique(part, return_inverse=True)
    group = (part_number * 2 + readable) * len(currencies) + code
    order = np.argsort(group.astype(np.int32), kind="stable") if group.min() < group.max() else slice(None)
    ordered = group[order]
    starts = starts_of(ordered)
    amount, content = _numbers(side, "amount_minor")[order], _numbers(side, "content")[order]
    rows = lengths_of(starts, len(ordered))
    high, low = np.add.reduceat(amount >> 32, starts), np.add.reduceat(amount & LOW_32_BITS, starts)
    xor, total = np.bitwise_xor.reduceat(content, starts), np.add.reduceat(content & LOW_32_BITS, starts)
    totals = [
        GroupTotal(
            part=int(parts[ordered[start] // len(currencies) // 2]),
            readable=bool(ordered[start] // len(currencies) % 2),
            currency=currencies[ordered[start] % len(currencies)],
            rows=int(rows[n]),
            amount=(int(high[n]) << 32) + int(low[n]) if ordered[start] // len(currencies) % 2 else None,
            xor=int(xor[n]),
            sum=int(total[n]),
        )
        for n, start in enumerate(starts)
    ]
    return _with_times(totals, _numbers(side, "written_ms")[order], starts, possible_ms) if possible_ms else totals


def _with_times(
    totals: Sequence[GroupTotal], written_ms: Numbers, starts: Numbers, possible_ms: tuple[int, int]
) -> list[GroupTotal]:
    """Return the same totals, with the times of their events. A record always has a time."""
    first, last = possible_ms
    figures = (
        np.minimum.reduceat(written_ms, starts),
        np.maximum.reduceat(written_ms, starts),
        np.add.reduceat((written_ms < first).astype(np.int64), starts),
        np.add.reduceat((written_ms > last).astype(np.int64), starts),
    )
    return [
        replace(total, earliest_ms=int(earliest), latest_ms=int(latest), early=int(early), late=int(late))
        for total, earliest, latest, early, late in zip(totals, *figures, strict=True)
    ]


def first_places(places: Numbers) -> Numbers:
    """Return the first few of rows of part and place."""
    return places[np.lexsort((places[:, 1], places[:, 0]))][:UNREADABLE_SAMPLE]


def _is_planted(part: Numbers) -> NDArray[np.bool_]:
    """Return a mask of the events on the partition that no topic has."""
    planted: NDArray[np.bool_] = part % PARTITIONS == 0
    return planted


def _numbers(side: pa.Table, name: str) -> Numbers:
    """A column of whole numbers; 0 where it has none."""
    column = side[name]
    return np.asarray((pc.fill_null(column, 0) if column.null_count else column).to_numpy())


def _whole_side(kind: BlobKind, totals: Sequence[GroupTotal]) -> pa.RecordBatch:
    return blobs_of(kind, NO_BUCKET, [json.dumps([asdict(total) for total in totals]).encode()])


def _record_batch(kind: BlobKind, bucket: Numbers, blobs: pa.Array) -> pa.RecordBatch:
    kinds = np.full(len(bucket), kind, dtype=np.int8)
    return pa.RecordBatch.from_arrays([pa.array(kinds), pa.array(bucket.astype(np.int32)), blobs], schema=SUMMARY)
