"""The lag of partners, measured, and the grace that follows from it. Pure.

A lag runs from the moment the copy on the first side was written to the moment its partner on the second was: the
record's timestamp, and the ledger column that the contract names `written_at`. Pairs are counted by lag in buckets
whose edges double, so that the counts of many runs add up, and a quantile is too long by a factor of two at most.
"""

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

EDGES_MS = tuple(10 * 2**n for n in range(26))
"""Upper edges of the buckets, in milliseconds: 10 ms to 93 h. The last bucket holds what took longer, too."""

CLEAN_CUTS = 100
"""The grace is measured on the MATCHED runs among so many cuts before this one."""

Pairs = tuple[int, ...]
"""Pairs by bucket, in the order of EDGES_MS."""


@dataclass(frozen=True, kw_only=True)
class TopicLag:
    """Pairs of one topic's events by lag. One whose partner claims to be older than itself is in the first bucket."""

    topic: str
    pairs: Pairs


PAIRS_FOR_P999 = 1_000
"""With fewer pairs p99.9 is the longest of them: there all but the longest count, so that one outlier sets no grace."""


@dataclass(frozen=True, kw_only=True)
class Grace:
    """The time that a partner may be late. measured_ms: the longest p99.9 of any topic; None where nothing was
    measured.

    pairs: of that topic; None where an older run did not keep it.
    """

    seconds: int
    measured_ms: int | None = None
    clean_runs: int = 0
    pairs: int | None = None

    @property
    def duration(self) -> timedelta:
        return timedelta(seconds=self.seconds)


@dataclass(frozen=True, kw_only=True)
class RunLag:
    """The lag of the pairs that one run made, and the grace that it judged by."""

    topics: tuple[TopicLag, ...]
    grace: Grace


def bucket_of(lag_ms: int) -> int:
    return min(bisect_left(EDGES_MS, lag_ms), len(EDGES_MS) - 1)


def lags_of_pairs(pairs: Iterable[tuple[str, int]]) -> tuple[TopicLag, ...]:
    """Count (topic, lag in milliseconds)."""
    counted: dict[str, list[int]] = {}
    for topic, lag_ms in pairs:
        counted.setdefault(topic, [0] * len(EDGES_MS))[bucket_of(lag_ms)] += 1
    return tuple(TopicLag(topic=topic, pairs=tuple(counts)) for topic, counts in sorted(counted.items()))


def add_lags(lags: Iterable[TopicLag]) -> tuple[TopicLag, ...]:
    """One per topic, in order."""
    totals: dict[str, Pairs] = {}
    for lag in lags:
        before = totals.get(lag.topic, (0,) * len(EDGES_MS))
        totals[lag.topic] = tuple(a + b for a, b in zip(before, lag.pairs, strict=True))
    return tuple(TopicLag(topic=topic, pairs=pairs) for topic, pairs in sorted(totals.items()))


def quantile_ms(pairs: Pairs, *, per_mille: int) -> int | None:
    """The edge that so many of a thousand pairs do not pass; None without a pair."""
    return _edge_at(pairs, rank=-(-sum(pairs) * per_mille // 1000))


def p999_ms(pairs: Pairs) -> int | None:
    """The edge that 999 of 1,000 pairs do not pass; of fewer than PAIRS_FOR_P999, that all but the longest do not pass.

    None without a second pair.
    """
    total = sum(pairs)
    return _edge_at(pairs, rank=min(-(-total * 999 // 1000), total - 1))


def _edge_at(pairs: Pairs, *, rank: int) -> int | None:
    """The upper edge of the bucket that holds the pair of this rank, counted from 1."""
    reached = 0
    for edge, count in zip(EDGES_MS, pairs, strict=True):
        reached += count
        if 0 < rank <= reached:
            return int(edge)
    return None
