"""Spark's xxhash64 outside Spark, for many values at once.

Of several columns it is the hash of the last one, seeded with that of those before it; the first seed is 42, and a null
hands its seed on. A long is hashed as its eight bytes, an int as its four. Source: Spark, XxHash64 and XXH64.
"""

from collections.abc import Iterable, Sequence
from itertools import repeat

import numpy as np
from xxhash import xxh64_intdigest

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
"""Source: the specification of xxHash, XXH64."""


def hash_bytes(values: Iterable[bytes], count: int, seed: int = SEED) -> np.ndarray:
    """xxhash64 of each value. Shape: uint64, `count` of them."""
    return np.fromiter(map(xxh64_intdigest, values, repeat(seed)), dtype=np.uint64, count=count)


def hash_pairs(firsts: Sequence[bytes | None], seconds: Sequence[bytes | None]) -> np.ndarray:
    """xxhash64 of two columns, either of which may be null. Shape: uint64."""
    seeds = [SEED if first is None else xxh64_intdigest(first, SEED) for first in firsts]
    if None in seconds:
        pairs = zip(seeds, seconds, strict=True)
        return np.array([seed if value is None else xxh64_intdigest(value, seed) for seed, value in pairs], np.uint64)
    return np.fromiter(map(xxh64_intdigest, seconds, seeds), dtype=np.uint64, count=len(seeds))


def hash_place(topic: str, partition: int) -> int:
    """xxhash64 of a topic and a partition: the seed of what follows them."""
    return xxh64_intdigest(partition.to_bytes(4, "little", signed=True), xxh64_intdigest(topic.encode(), SEED))


def hash_longs(values: np.ndarray, seeds: np.ndarray | int) -> np.ndarray:
    """xxhash64 of each 64-bit value, with a seed for each or one for all. Shape: uint64, as `values`."""
    mixed = _rotated(values.view(np.uint64) * _PRIME_2, 31) * _PRIME_1
    mixed ^= np.asarray(seeds, dtype=np.uint64) + _PRIME_5 + np.uint64(8)
    mixed = _rotated(mixed, 27) * _PRIME_1 + _PRIME_4
    mixed ^= mixed >> np.uint64(33)
    mixed *= _PRIME_2
    mixed ^= mixed >> np.uint64(29)
    mixed *= _PRIME_3
    mixed ^= mixed >> np.uint64(32)
    return mixed


def _rotated(values: np.ndarray, bits: int) -> np.ndarray:
    return (values << np.uint64(bits)) | (values >> np.uint64(64 - bits))
