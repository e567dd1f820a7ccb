"""Rows that stand behind a slice, in one snapshot of the server, and whether they have moved on since. Pure.

A row that was found moved is older than it looks until a cut has read it. Whoever touches it before that moves it once
more, and neither the guard of older rows nor a scan has it to compare with. So the run that finds rows moved counts all
that no cut has read, and the run after it asks how many of these very versions are there still.
"""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class UnreadRows:
    """The rows of one snapshot that may be older than they look, and that no cut had read. snapshot: a pg_snapshot."""

    snapshot: str
    rows: int

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class UnreadCount:
    """Numbers of rows that one snapshot shows. still: of those that an earlier one showed. behind: behind the slice.
    behind_below: those of them below the mark that was asked about. snapshot_end: above the id of every row it shows.
    """

    snapshot: str
    snapshot_end: int
    still: int
    behind: int
    behind_below: int


def moved_on(
    count: UnreadCount, before: UnreadRows | None, *, slice_end: int, moved_below: int, moved_now: bool
) -> tuple[int, UnreadRows | None]:
    """Return up to where rows may be older than they look, and those that are to be counted again by the next run.

    More than were counted tell nothing either: a savepoint's rows look visible while its transaction is open.
    before: of the run before; None where nobody counted. moved_below: up to where it was until now.
    """
    if moved_now or before is None or count.still != before.rows:
        moved_below, rows = max(moved_below, count.snapshot_end), count.behind
    else:
        rows = count.behind_below
    return moved_below, UnreadRows(snapshot=count.snapshot, rows=rows) if slice_end < moved_below else None
