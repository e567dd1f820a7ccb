"""A ledger in Parquet files: each cut takes the files that no earlier one took, and keeps the list of them.

A file has no transaction and no order, so a slice is its manifest: path, size and modification of each file. Positions
are moments in milliseconds since 1970, and say up to when files had been left alone when a cut was made; a file's own
place is that of the cut that took it, whatever its modification says, so that one that is moved in late is read once
too. A file that changed after it was taken is told with before and after, and what a look-up finds there was not
necessarily read.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs

from tallystick.contract.equality import Money, row_money
from tallystick.contract.field_types import Constant
from tallystick.contract.ledger import LedgerSection
from tallystick.contract.sql_names import bare, parts_of
from tallystick.ledger.protocol import (
    HorizonHolder,
    LedgerDescription,
    LedgerRefused,
    LedgerRow,
    LedgerUnreachable,
)
from tallystick.ledger.unread_rows import UnreadRows
from tallystick.model.cut import FileChange, LedgerAnchor, LedgerFile, LedgerSlice, LedgerSnapshot

if TYPE_CHECKING:
    import pyarrow.dataset as ds

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_NANOSECONDS = 1_000_000
"""Nanoseconds of a millisecond."""

_COLUMNS = ("row_id", "match_key", "transaction_key", "leg", *Money._fields)
_BEFORE_ALL = -1
"""Position of what the baseline found: below every slice."""


def known_files(slices: Iterable[LedgerSlice]) -> dict[str, LedgerFile | None]:
    """Return every file that these cuts have taken, as it was last seen; None for one that was gone then."""
    known: dict[str, LedgerFile | None] = {}
    for one in slices:
        known |= {file.path: file for file in one.files}
        known |= {_path(change): change.after for change in one.changed}
    return known


def fix_files(
    ledger_slice: LedgerSlice, *, earlier: Iterable[LedgerSlice], listed: Mapping[str, LedgerFile]
) -> LedgerSlice:
    """Return the slice with the files that no earlier cut took and that were left alone since before its end.

    A baseline is empty and takes all of those, so that no later cut does. Any other empty slice takes none: no position
    lies in it, so a file of its would have no place. The next one takes it.
    """
    earlier = tuple(earlier)
    known = known_files(earlier)
    takes = not earlier or ledger_slice.position_start < ledger_slice.position_end
    taken: list[LedgerFile] = []
    left: list[LedgerFile] = []
    for path, file in sorted(listed.items()):
        if path not in known:
            is_taken = takes and file.modified_ns < ledger_slice.position_end * _NANOSECONDS
            (taken if is_taken else left).append(file)
    sizes = {file.path: file.size_bytes for file in taken}
    left_before = earlier[-1].left if earlier else ()
    # A file that was still growing is taken with all that it held; the rows of another one may be in any.
    may_hold_older = any(sizes.get(file.path, -1) < file.size_bytes for file in left_before)
    left_from = earlier[-1].left_from if may_hold_older else ledger_slice.position_start
    return replace(
        ledger_slice,
        files=tuple(taken),
        changed=changes(known, listed),
        left=tuple(left),
        left_from=left_from if left else None,
    )


def changes(known: Mapping[str, LedgerFile | None], listed: Mapping[str, LedgerFile]) -> tuple[FileChange, ...]:
    """Return the files that are not as they were last seen."""
    return tuple(
        FileChange(before=before, after=listed.get(path))
        for path, before in sorted(known.items())
        if listed.get(path) != before
    )


def _path(change: FileChange) -> str:
    one = change.before or change.after
    assert one is not None
    return one.path


def position_of(file: LedgerFile, ledger_slice: LedgerSlice, taken_by: Mapping[str, LedgerSlice]) -> int:
    """Return the position of a file's rows, as the slice sees them: in the slice that took it, or beyond the cut."""
    one = taken_by.get(file.path)
    if one is None:
        return max(ledger_slice.position_end, file.modified_ns // _NANOSECONDS)
    return one.position_start if one.position_start < one.position_end else _BEFORE_ALL


@dataclass(frozen=True, kw_only=True)
class ParquetLedger:
    """The ledger of one contract in a folder. address: a path or URI that pyarrow and Spark both know.

    stored_slices: those of all cuts, in order, the newest one's included. now: the verdict store's clock.
    """

    address: str
    ledger: LedgerSection
    stored_slices: Callable[[], tuple[LedgerSlice, ...]]
    now: Callable[[], datetime]

    @property
    def folder(self) -> str:
        return f"{self.address.rstrip('/')}/{'/'.join(parts_of(self.ledger.table))}"

    def describe(self) -> LedgerDescription:
        """Look at the newest file, if there is one: its columns."""
        newest = max(self._list().values(), key=lambda file: file.modified_ns, default=None)
        if newest is not None:
            try:
                schema = self._dataset([newest]).schema
            except pa.ArrowInvalid:
                return LedgerDescription(key_is_unique=False, row_id_is_unique=False)  # still being written
            columns = self.ledger.columns
            wanted = columns.named(_COLUMNS)
            written_at = bare(columns.written_at or "")
            for name in (*wanted, *columns.compared_names, *([written_at] if written_at else [])):
                if name not in schema.names:
                    raise LedgerRefused(
                        f"ledger file {newest.path}: has no column {name}; it has {', '.join(schema.names)}"
                    )
            if written_at and getattr(schema.field(written_at).type, "tz", None) is None:
                raise LedgerRefused(
                    f"ledger file {newest.path}: column {written_at}, which the contract names written_at: got "
                    f"{schema.field(written_at).type}; expected a timestamp with its zone"
                )
        return LedgerDescription(key_is_unique=False, row_id_is_unique=False)

    def read_snapshot(self) -> LedgerSnapshot:
        """Read both marks. Files may change for quiet_seconds after they are seen; all seen are below the high mark."""
        now = (self.now() - _EPOCH) // _MILLISECOND
        newest = max((file.modified_ns // _NANOSECONDS for file in self._list().values()), default=0)
        horizon = now - 1000 * (self.ledger.quiet_seconds or 0)
        return LedgerSnapshot(
            low_mark=horizon,
            high_mark=max(now, newest) + 1,
            system_identifier=self._system.type_name,
            timeline=0,
            lsn="0/0",
        )

    def read_beginning(self) -> tuple[LedgerSnapshot, int | None]:
        return self.read_snapshot(), None

    def fix(self, ledger_slice: LedgerSlice) -> LedgerSlice:
        return fix_files(ledger_slice, earlier=self.stored_slices(), listed=self._list())

    def changed_files(self, ledger_slice: LedgerSlice) -> tuple[FileChange, ...]:
        return changes(known_files([replace(ledger_slice, changed=())]), self._list())

    def lost_anchors(self, ledger_slice: LedgerSlice) -> tuple[LedgerAnchor, ...]:
        return ()

    def holder(self, *, horizon: int) -> HorizonHolder | None:
        wait = f"the rule that a file must be left alone for {self.ledger.quiet_seconds} s"
        return HorizonHolder(position=horizon, holder=wait, since=None)

    def first_position_at(self, at_utc: datetime, *, start: int, end: int) -> int | None:
        """Return the moment itself: a file's moment is its position."""
        at = max(start, (at_utc - _EPOCH) // _MILLISECOND)
        return at if at < end else None

    def count_older_rows(self, ledger_slice: LedgerSlice) -> int | None:
        return None

    def count_unread(self, ledger_slice: LedgerSlice, *, below: int, before: UnreadRows | None) -> None:
        return None

    def count_by_place(self, ledger_slice: LedgerSlice, *, cut_n: int) -> None:
        return None

    def sum_of_positions(self, *, below: int) -> None:
        return None

    def scattered_sum_of_positions(self, *, below: int) -> None:
        return None

    def look_up_rows(self, match_keys: Collection[str], ledger_slice: LedgerSlice) -> dict[str, tuple[LedgerRow, ...]]:
        slices = [*self._before(ledger_slice), ledger_slice]
        taken = {file.path: file for one in slices for file in one.files}
        taken_by = {file.path: one for one in slices for file in one.files}
        found: dict[str, list[LedgerRow]] = {}
        files = sorted(self._list().values(), key=lambda file: file.path)
        for file, rows in self._rows_of(files, match_keys):
            for row in rows:
                money = row_money(row["amount_minor"], row["currency"])
                one = LedgerRow(
                    row_id=_text(row["row_id"]),
                    match_key=_text(row["match_key"]),
                    transaction_key=_text(row["transaction_key"]),
                    leg=_text(row["leg"]),
                    currency=money.currency,
                    amount_minor=money.amount_minor,
                    position=position_of(file, ledger_slice, taken_by),
                    was_read=file == taken.get(file.path),
                )
                found.setdefault(one.match_key, []).append(one)
        return {key: tuple(rows) for key, rows in found.items()}

    def keys_seen_before(self, ledger_slice: LedgerSlice) -> tuple[str, ...]:
        """Read the keys of all earlier files once, and hold those of the slice in memory."""
        listed = self._list()
        own = [listed[file.path] for file in ledger_slice.files if file.path in listed]
        older = [listed[path] for path in known_files(self._before(ledger_slice)) if path in listed]
        if not own or not older:
            return ()
        key = bare(self.ledger.columns.match_key)
        inside = pc.unique(self._dataset(own).to_table(columns=[key]).column(key))
        scanner = self._dataset(older).scanner(columns=[key], filter=pc.field(key).isin(inside))
        seen = {_text(one) for batch in scanner.to_batches() for one in batch.column(0).to_pylist()}
        return tuple(sorted(seen))

    def keys_below(self, ledger_slice: LedgerSlice, *, below: int) -> tuple[str, ...]:
        """Read the keys of the files that were written below it, into memory."""
        written = [file for file in ledger_slice.files if file.modified_ns // _NANOSECONDS < below]
        listed = self._list() if written else {}
        there = [listed[file.path] for file in written if file.path in listed]
        if not there:
            return ()
        keys = self._dataset(there).to_table(columns=[bare(self.ledger.columns.match_key)]).column(0)
        return tuple(sorted({_text(one) for one in keys.to_pylist() if one is not None}))

    def held_snapshot(self) -> AbstractContextManager[None]:
        return nullcontext()

    def files_to_scan(self, ledger_slice: LedgerSlice) -> list[str]:
        """Return addresses, for Spark, of the slice's files that are still there."""
        listed = self._list()
        return [f"{self.folder}/{file.path}" for file in ledger_slice.files if file.path in listed]

    def _before(self, ledger_slice: LedgerSlice) -> list[LedgerSlice]:
        return [one for one in self.stored_slices() if one.position_end <= ledger_slice.position_start]

    def _list(self) -> dict[str, LedgerFile]:
        """Return every Parquet file below the folder, by path, without those that writers hide behind _ or `.`."""
        try:
            infos = self._system.get_file_info(pafs.FileSelector(self._root, recursive=True))
        except OSError as error:
            raise LedgerUnreachable(f"ledger folder of {self.ledger.table}: {type(error).__name__}") from None
        files = (info for info in infos if info.type is pafs.FileType.File and info.extension == "parquet")
        paths = [(PurePosixPath(info.path).relative_to(PurePosixPath(self._root)), info) for info in files]
        self._refuse_outside(info.path for _, info in paths)
        return {
            str(path): LedgerFile(path=str(path), size_bytes=info.size, modified_ns=info.mtime_ns)
            for path, info in paths
            if not any(part.startswith(("_", ".")) for part in path.parts)
        }

    def _refuse_outside(self, paths: Iterable[str]) -> None:
        """A link may name any file that Tallystick may read. Raises LedgerRefused."""
        if not isinstance(self._system, pafs.LocalFileSystem):
            return
        root = Path(self._root).resolve()
        for path in paths:
            if not Path(path).resolve().is_relative_to(root):
                raise LedgerRefused(
                    f"ledger file {path}: it is a link to a place outside the ledger's folder, which is not read; "
                    "expected the file itself there"
                )

    def _rows_of(
        self, files: Iterable[LedgerFile], match_keys: Collection[str]
    ) -> Iterator[tuple[LedgerFile, list[dict[str, Any]]]]:
        columns = {name: _source(getattr(self.ledger.columns, name)) for name in _COLUMNS}
        for file in files:
            try:
                dataset = self._dataset([file])
            except pa.ArrowInvalid:
                continue  # still being written, or no Parquet; the scan of its cut says so
            kind = dataset.schema.field(bare(self.ledger.columns.match_key)).type
            key = columns["match_key"] if pa.types.is_string(kind) else columns["match_key"].cast(pa.string())
            table = dataset.to_table(columns=columns, filter=key.isin(pa.array(sorted(match_keys), pa.string())))
            yield file, table.to_pylist()

    def _dataset(self, files: Sequence[LedgerFile]) -> "ds.Dataset":
        import pyarrow.dataset as ds  # it brings pandas along: for ledgers of files alone

        paths = [f"{self._root}/{file.path}" for file in files]
        return ds.dataset(paths, format="parquet", filesystem=self._system)

    @cached_property
    def _place(self) -> tuple[pafs.FileSystem, str]:
        try:
            system, root = pafs.FileSystem.from_uri(self.folder)
        except (ValueError, OSError) as error:
            raise LedgerRefused(
                f"ledger folder of {self.ledger.table}: expected an absolute path or a URI that pyarrow knows, such as "
                f"s3://bucket/ledger; {type(error).__name__}"
            ) from None
        return system, root

    @property
    def _system(self) -> pafs.FileSystem:
        return self._place[0]

    @property
    def _root(self) -> str:
        return self._place[1]


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def _source(column: str | Constant) -> pc.Expression:
    """Return a column, or the constant in its place."""
    return pc.field(bare(column)) if isinstance(column, str) else pc.scalar(column.constant)
