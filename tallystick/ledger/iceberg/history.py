"""The history of a table of Iceberg: which snapshots a slice has, and in words what was done besides appending."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from tallystick.model.cut import LedgerFile, LedgerSlice

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot

_NANOSECONDS = 1_000_000
"""Nanoseconds of a millisecond."""


def lineage_of(table: "Table") -> list["Snapshot"]:
    """Return the current snapshot and its ancestors, as far as the table still has them, the newest first."""
    from pyiceberg.table.snapshots import ancestors_of

    return list(ancestors_of(table.current_snapshot(), table.metadata))


def begins_the_table(one: "Snapshot") -> bool:
    """Return whether no snapshot was before it: one without a parent may have lost it by an expiry."""
    return one.parent_snapshot_id is None and position_of(one) <= 1


def position_of(one: "Snapshot") -> int:
    return one.sequence_number or 0


def is_inside(one: "Snapshot", ledger_slice: LedgerSlice) -> bool:
    return ledger_slice.position_start <= position_of(one) < ledger_slice.position_end


def _operation(one: "Snapshot") -> str:
    return one.summary.operation.value if one.summary else ""


def appends(one: "Snapshot") -> bool:
    return _operation(one) == "append"


def _count(one: "Snapshot", name: str) -> int:
    return int((one.summary.additional_properties if one.summary else {}).get(name, 0))


def as_file(one: "Snapshot") -> LedgerFile:
    return LedgerFile(
        path=f"snapshot {one.snapshot_id}",
        size_bytes=_count(one, "added-files-size"),
        modified_ns=one.timestamp_ms * _NANOSECONDS,
    )


def as_told(one: "Snapshot", why: str) -> LedgerFile:
    return replace(as_file(one), path=f"snapshot {one.snapshot_id} {why}")


def change_text(one: "Snapshot") -> str:
    """Say how a snapshot changed rows; empty for an append, and for a compaction that kept them all."""
    added, removed = _count(one, "added-records"), _count(one, "deleted-records")
    by_files = _count(one, "added-position-deletes") + _count(one, "added-equality-deletes")
    if appends(one) or (_operation(one) == "replace" and added == removed):
        return ""
    kind = {"replace": "is a compaction that kept not all rows"}.get(
        _operation(one), f"is no append: {_operation(one)}"
    )
    return f"{kind} of {added:,} rows written and {removed + by_files:,} taken away"


def expired_part(table: "Table", ledger_slice: LedgerSlice) -> Iterator[LedgerFile]:
    """Yield in words the part of a slice whose snapshots the table does not have any more."""
    oldest = min(lineage_of(table), key=position_of, default=None)
    start, end = ledger_slice.position_start, ledger_slice.position_end
    if oldest is None or begins_the_table(oldest) or start == end or position_of(oldest) <= start:
        return
    last = min(position_of(oldest), end) - 1
    which = (
        f"snapshot with sequence number {start}"
        if last == start
        else f"snapshots with sequence numbers {start} to {last}"
    )
    yield LedgerFile(
        path=f"{which}: expired before a cut read what they appended",
        size_bytes=0,
        modified_ns=oldest.timestamp_ms * _NANOSECONDS,
    )


def rolled_back(table: "Table", earlier: Iterable[LedgerSlice]) -> Iterator[LedgerFile]:
    """Yield in words the snapshots that cuts have read and that the table's history has left out since."""
    lineage = {one.snapshot_id for one in lineage_of(table)}
    beside = {f"snapshot {one.snapshot_id}" for one in table.metadata.snapshots if one.snapshot_id not in lineage}
    for one in earlier:
        for file in one.files:
            if file.path in beside:
                yield replace(file, path=f"{file.path}, which a cut has read, was rolled back")
