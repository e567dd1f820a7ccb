"""Rows of a ledger that keeps its transactions' ids (written_xid), counted by where their ids lie. Pure.

A row's id is its owner's column, so a row may come to lie where no cut reads it any more: without an id, with that of
an old transaction (a partition that was attached, an import), or with one that the server has not given out. And a row
that was read may be deleted, which its id's place shows as well.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

WITHOUT_ID, BEFORE, AHEAD = "without_id", "before", "ahead"
"""Places besides the slices: no id, one below the first slice, one that the server has not given out yet."""
_CLOSED = ", closed unread"
"""What follows the ids of a slice that nobody has read."""
NAMED_MAX = 5
"""Number of rows that are named of a place with a surplus."""


@dataclass(frozen=True, kw_only=True)
class ReadSlice:
    """A slice of an earlier cut, and how many rows it held when that was read. Unit: positions. rows: None where the
    cut was closed, so that nobody has read it.
    """

    start: int
    end: int
    rows: int | None


def find_read_slice(read: Sequence[ReadSlice], position: int) -> ReadSlice | None:
    """Return the slice that holds the position; slices come in order and do not overlap."""
    after = bisect_right(read, position, key=lambda one: one.start)
    return read[after - 1] if after and position < read[after - 1].end else None


@dataclass(frozen=True, kw_only=True)
class Place:
    """One place with other rows than expected. row_ids: the newest of a place that has too many."""

    name: str
    """WITHOUT_ID, BEFORE, AHEAD, or the ids of a slice as a half-open range, and whether it was closed unread."""
    expected: int
    now: int
    row_ids: tuple[str, ...] = ()

    @property
    def surplus(self) -> int:
        return max(0, self.now - self.expected)

    @property
    def was_read(self) -> bool:
        """Return whether a cut has read what lies there."""
        return self.name not in (WITHOUT_ID, BEFORE, AHEAD) and not self.name.endswith(_CLOSED)

    @property
    def says_otherwise(self) -> bool:
        """Return whether there are as many rows as before, and some have changed."""
        return self.now == self.expected

    @property
    def to_name(self) -> int:
        """Return how many of its newest rows are worth naming."""
        return NAMED_MAX if self.says_otherwise else self.surplus

    @property
    def gone(self) -> int:
        """Return how many rows that cuts have read are gone."""
        return max(0, self.expected - self.now) if self.was_read else 0


@dataclass(frozen=True, kw_only=True)
class EarlierRows:
    """The figures of one run. counts: by place; of slices only those that hold other rows than were read of them.

    digests: what the rows say, by slice, of those that the contract compares and of the run's own.
    """

    counts: Mapping[str, int] = field(default_factory=dict)
    digests: Mapping[str, str] = field(default_factory=dict)
    changed: tuple[Place, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "counts": dict(self.counts),
            "digests": dict(self.digests),
            "changed": [vars(place) for place in self.changed],
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> "EarlierRows":
        changed = (Place(**{**place, "row_ids": tuple(place["row_ids"])}) for place in document["changed"])
        return cls(counts=document["counts"], digests=document.get("digests", {}), changed=tuple(changed))


def bounds_of(read: Sequence[ReadSlice], *, xid_start: int, xid_end: int, next_xid: int) -> list[int]:
    """Return where places begin, in order: slices that were read, the cut's own, ids behind it, ids ahead."""
    return [*(one.start for one in read), xid_start, xid_end, next_xid]


def places_by_number(read: Sequence[ReadSlice]) -> dict[int | None, str]:
    """Return the places to compare, by how many of those bounds a row's id has reached; None: it has no id."""
    names: dict[int | None, str] = {None: WITHOUT_ID, 0: BEFORE, len(read) + 3: AHEAD}
    return names | {number: slice_name(one) for number, one in enumerate(read, start=1)}


def slice_name(one: ReadSlice) -> str:
    return f"[{one.start}, {one.end}){_CLOSED * (one.rows is None)}"


def compare(
    counted: Mapping[str, int], read: Sequence[ReadSlice], before: EarlierRows | None
) -> tuple[dict[str, int], tuple[Place, ...]]:
    """Return the counts to keep for the next run, and the places that hold other rows than the run before saw there.

    before: of the cut before; None where it did not count, and then nobody knows what had no id or an older one. Nor
    does anybody know of a slice that was closed unread, until a later run has counted it.
    """
    rows_read = {slice_name(one): one.rows for one in read}
    known = {name: rows for name, rows in rows_read.items() if rows is not None}
    now = {name: counted.get(name, 0) for name in (*rows_read, WITHOUT_ID, BEFORE, AHEAD)}
    expected = {**now, **known, AHEAD: 0} | dict(before.counts if before else {})
    changed = tuple(
        Place(name=name, expected=expected[name], now=now[name]) for name in now if now[name] != expected[name]
    )
    return {name: rows for name, rows in now.items() if rows_read.get(name) != rows}, changed


def compare_digests(
    digests: Mapping[str, str], before: EarlierRows | None, counted: Sequence[Place]
) -> tuple[Place, ...]:
    """Return slices that were read and whose rows changed since the run before, except those whose count shows it
    already.
    """
    told = {place.name for place in counted}
    known = before.digests if before else {}
    places = (
        Place(name=name, expected=0, now=0)
        for name, digest in digests.items()
        if name in known and known[name] != digest and name not in told
    )
    return tuple(place for place in places if place.was_read)
