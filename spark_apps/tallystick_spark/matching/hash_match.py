"""Match both sides by the hashes of their keys, and tell only what is not one event and one equal row.

Exact but for a collision of 64 bits: two keys of one hash look like a key that is doubled, so they are collected and
told apart there; an event and a row of two keys pass for a pair only where their hashes and their fields are the same.
Nothing here knows Spark; what goes in is sorted by bucket.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tallystick_spark.matching.bucket_blobs import (
    NO_BUCKET,
    PARTITIONS,
    WIDTH,
    BlobKind,
    Numbers,
    ScanPlan,
    blobs_of,
    lengths_of,
    numbers_in,
    starts_of,
)

_PAIR = 2
_Blobs = dict[BlobKind, list[pa.Buffer]]


class BucketsOutOfOrder(RuntimeError):
    """Rows of a bucket came after those of another: what was matched lacks them."""


@dataclass(frozen=True, kw_only=True)
class _Keys:
    """A bucket's keys in groups of one hash each, in the order of hashes.

    order: numbers of the events, then of the rows. hashes, copies: of each group. simple: it is one event and one row,
    equal in their fields.
    """

    order: Numbers
    hashes: Numbers
    copies: Numbers
    simple: NDArray[np.bool_]


def match(batches: Iterable[pa.RecordBatch], plan: ScanPlan) -> Iterator[pa.RecordBatch]:
    """Match one task's buckets, one after the other. Shape: SUMMARY -> SUMMARY. Figures of a whole side pass through.

    Raises BucketsOutOfOrder.
    """
    for bucket, blobs in _buckets(batches):
        if bucket == NO_BUCKET:
            yield from (blobs_of(kind, NO_BUCKET, some) for kind, some in blobs.items())
        else:
            found = _match_bucket({kind: numbers_in(kind, blobs.get(kind, ())) for kind in WIDTH}, plan)
            for kind, matrix in found.items():
                if len(matrix):
                    yield blobs_of(kind, bucket, [matrix.astype("<i8").tobytes()])


def _buckets(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, _Blobs]]:
    """Yield each bucket with all its blobs."""
    open_bucket, blobs, closed = None, _Blobs(), set[int]()
    for batch in batches:
        for kind, bucket, blob in zip(*(batch.column(name) for name in ("kind", "bucket", "blob")), strict=True):
            if bucket.as_py() != open_bucket:
                if open_bucket is not None:
                    yield open_bucket, blobs
                    closed.add(open_bucket)
                open_bucket, blobs = bucket.as_py(), {}
                if open_bucket in closed:
                    raise BucketsOutOfOrder(f"bucket {open_bucket} came twice; expected rows sorted by bucket")
            blobs.setdefault(BlobKind(kind.as_py()), []).append(blob.as_buffer())
    if open_bucket is not None:
        yield open_bucket, blobs


def _match_bucket(given: Mapping[BlobKind, Numbers], plan: ScanPlan) -> dict[BlobKind, Numbers]:
    """Return the copies of a bucket to collect, and its lags."""
    events, rows = given[BlobKind.EVENTS], given[BlobKind.ROWS]
    keys = _grouped(events, rows)
    exceptional = ~keys.simple
    if len(given[BlobKind.WANTED]):
        exceptional[_places_of(given[BlobKind.WANTED][:, 0], keys.hashes)] = True
    home = keys.order[np.repeat(exceptional, keys.copies)]
    return {
        BlobKind.EXCEPTION_EVENTS: events[home[home < len(events)]][:, [0, 2, 3]],
        BlobKind.EXCEPTION_ROWS: rows[home[home >= len(events)] - len(events)][:, [0, 2]],
        BlobKind.INCOMPLETE: _incomplete(given[BlobKind.TRANSACTIONS], plan.legs),
        BlobKind.LAGS: _lags(given[BlobKind.EVENT_TIMES], given[BlobKind.ROW_TIMES], keys.hashes[keys.simple]),
    }


def _grouped(events: Numbers, rows: Numbers) -> _Keys:
    hashes, fields = np.concatenate((events[:, 0], rows[:, 0])), np.concatenate((events[:, 1], rows[:, 1]))
    order = np.argsort(hashes)
    ordered = hashes[order]
    starts = starts_of(ordered)
    copies = lengths_of(starts, len(ordered))
    simple = copies == _PAIR
    one = order[starts[simple]]
    other = order[starts[simple] + 1]
    simple[simple] = ((one < len(events)) != (other < len(events))) & (fields[one] == fields[other])
    return _Keys(order=order, hashes=ordered[starts], copies=copies, simple=simple)


def _places_of(wanted: Numbers, ordered: Numbers) -> Numbers:
    """Return where in distinct numbers in order those of the wanted ones stand that are among them."""
    places: Numbers = np.searchsorted(ordered, wanted)
    inside = places < len(ordered)
    possible: Numbers = places[inside]
    found: Numbers = possible[ordered[possible] == wanted[inside]]
    return found


def _incomplete(transactions: Numbers, legs: int) -> Numbers:
    """Return part and place of all events of transactions that lack a leg. Which leg an event is, its topic says."""
    if not len(transactions):
        return np.empty((0, 2), dtype=np.int64)
    hashes, topics = transactions[:, 0], transactions[:, 1] // PARTITIONS
    order = np.lexsort((topics, hashes))
    hashes, topics = hashes[order], topics[order]
    starts = starts_of(hashes)
    is_new = np.concatenate(([True], (hashes[1:] != hashes[:-1]) | (topics[1:] != topics[:-1])))
    lacking = np.add.reduceat(is_new.astype(np.int64), starts) < legs
    return transactions[order[np.repeat(lacking, lengths_of(starts, len(hashes)))]][:, [1, 2]]


def _lags(event_times: Numbers, row_times: Numbers, simple: Numbers) -> Numbers:
    """Return topic number, and milliseconds from event to row, of sampled keys that are simple: each is there once."""
    if not len(event_times) or not len(row_times):
        return np.empty((0, WIDTH[BlobKind.LAGS]), dtype=np.int64)
    event_times = event_times[np.isin(event_times[:, 0], simple)]
    row_times = row_times[np.isin(row_times[:, 0], simple)]
    _, of_event, of_row = np.intersect1d(event_times[:, 0], row_times[:, 0], assume_unique=True, return_indices=True)
    return np.column_stack([event_times[of_event, 1], row_times[of_row, 1] - event_times[of_event, 2]])
