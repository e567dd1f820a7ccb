"""Spark's xxhash64 outside Spark, for many values at once.

Of several columns it is the hash of the last one, seeded with that of those before it; the first seed is 42, and a null
hands its seed on. A long is hashed as its eight bytes, an int as its four. Source: Spark, XxHash64 and XXH64.
"""

from collections.abc import Sequence
from typing import TypeGuard

import numpy as np
import pyarrow as pa
from xxhash import xxh64_intdigest

try:
    from tallystick_spark.matching._text_hashes import xxhash_texts as _xxhash_texts
except ImportError:  # no compiler was there when Tallystick was installed: numpy says the same, in more time
    _xxhash_texts = None  # type: ignore[assignment]

SEED = 42

_PRIME_1, _PRIME_2, _PRIME_3, _PRIME_4, _PRIME_5 = (
    np.uint64(prime)
    for prime in (
        0x9E3779B185EBCA87,
        0xC2B2AE3D27D4EB4F,
        0x165667B19E3779F9,
        0x85EBCA77C2B2AE63,
        0x27D4EB2F165667C5,
    )
)
_STRIPE_BYTES = 32
"""Source: the specification of xxHash, XXH64."""
_TOGETHER = 1 << 13
"""Number of texts hashed together: they, and what is computed of them, stay in a core's cache."""


def hash_pairs(firsts: Sequence[bytes | None], seconds: Sequence[bytes | None]) -> np.ndarray:
    """xxhash64 of two columns, either of which may be null. Shape: uint64."""
    seeds = [SEED if first is None else xxh64_intdigest(first, SEED) for first in firsts]
    if _has_no_null(seconds):
        return np.fromiter(map(xxh64_intdigest, seconds, seeds), dtype=np.uint64, count=len(seeds))
    pairs = zip(seeds, seconds, strict=True)
    return np.array([seed if value is None else xxh64_intdigest(value, seed) for seed, value in pairs], np.uint64)


def _has_no_null(values: Sequence[bytes | None]) -> TypeGuard[Sequence[bytes]]:
    return None not in values


def hash_place(topic: str, partition: int) -> int:
    """xxhash64 of a topic and a partition: the seed of what follows them."""
    return xxh64_intdigest(partition.to_bytes(4, "little", signed=True), xxh64_intdigest(topic.encode(), SEED))


def hash_longs(values: np.ndarray, seeds: np.ndarray | int) -> np.ndarray:
    """xxhash64 of each 64-bit value, with a seed for each or one for all. Shape: uint64, as `values`."""
    return _hash_rows(values.view(np.uint8).reshape(-1, 8), seeds)


def hash_texts(texts: pa.StringArray, seeds: np.ndarray | int = SEED) -> np.ndarray:
    """xxhash64 of each text of a column without nulls, with a seed for each or one for all. Shape: uint64."""
    seeds = np.broadcast_to(np.asarray(seeds, dtype=np.uint64), len(texts))
    ends, characters = texts.buffers()[1:]
    if _xxhash_texts is not None and len(texts):
        hashed = _xxhash_texts(ends, characters or b"", texts.offset, len(texts), np.ascontiguousarray(seeds).data)
        return np.frombuffer(hashed, dtype=np.uint64)
    starts = np.frombuffer(ends, dtype="<i4")[texts.offset :][: len(texts) + 1]
    data = np.frombuffer(characters or b"", dtype=np.uint8)
    hashes = np.empty(len(texts), dtype=np.uint64)
    for first in range(0, len(texts), _TOGETHER):
        last = min(first + _TOGETHER, len(texts))
        hashes[first:last] = _hash_some(data, starts[first : last + 1], seeds[first:last])
    return hashes


def _hash_some(data: np.ndarray, starts: np.ndarray, seeds: np.ndarray) -> np.ndarray:
    """Hash texts that follow each other in `data`; those of one length together."""
    lengths = np.diff(starts)
    if (lengths == lengths[0]).all():
        return _hash_rows(data[starts[0] : starts[-1]].reshape(len(lengths), -1), seeds)
    hashes = np.empty(len(lengths), dtype=np.uint64)
    for length in np.unique(lengths):
        places = np.flatnonzero(lengths == length)
        hashes[places] = _hash_rows(data[starts[places, np.newaxis] + np.arange(length)], seeds[places])
    return hashes


def _hash_rows(rows: np.ndarray, seeds: np.ndarray | int) -> np.ndarray:
    """XXH64 of each row of a matrix of bytes."""
    seeds = np.broadcast_to(np.asarray(seeds, dtype=np.uint64), len(rows))
    length, place = rows.shape[1], 0
    mixed = seeds + _PRIME_5
    if length >= _STRIPE_BYTES:
        lanes = [seeds + _PRIME_1 + _PRIME_2, seeds + _PRIME_2, seeds, seeds - _PRIME_1]
        while place <= length - _STRIPE_BYTES:
            lanes = [_round(lane, _words(rows, place + 8 * n, "<u8")) for n, lane in enumerate(lanes)]
            place += _STRIPE_BYTES
        one, two, three, four = lanes
        mixed = _rotated(one, 1) + _rotated(two, 7) + _rotated(three, 12) + _rotated(four, 18)
        for lane in lanes:
            mixed = (mixed ^ _round(np.uint64(0), lane)) * _PRIME_1 + _PRIME_4
    mixed = mixed + np.uint64(length)
    while place <= length - 8:
        mixed = _rotated(mixed ^ _round(np.uint64(0), _words(rows, place, "<u8")), 27) * _PRIME_1 + _PRIME_4
        place += 8
    if place <= length - 4:
        mixed = _rotated(mixed ^ (_words(rows, place, "<u4") * _PRIME_1), 23) * _PRIME_2 + _PRIME_3
        place += 4
    for last in range(place, length):
        mixed = _rotated(mixed ^ (rows[:, last] * _PRIME_5), 11) * _PRIME_1
    mixed = (mixed ^ (mixed >> np.uint64(33))) * _PRIME_2
    mixed = (mixed ^ (mixed >> np.uint64(29))) * _PRIME_3
    return np.asarray(mixed ^ (mixed >> np.uint64(32)))


def _words(rows: np.ndarray, place: int, kind: str) -> np.ndarray:
    """Return the number at this place of each row."""
    size = np.dtype(kind).itemsize
    return np.ascontiguousarray(rows[:, place : place + size]).view(kind)[:, 0].astype(np.uint64)


def _round(lane: np.ndarray | np.uint64, words: np.ndarray) -> np.ndarray:
    return _rotated(lane + words * _PRIME_2, 31) * _PRIME_1


def _rotated(values: np.ndarray, bits: int) -> np.ndarray:
    return (values << np.uint64(bits)) | (values >> np.uint64(64 - bits))
