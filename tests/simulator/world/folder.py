"""A ledger in Parquet files, in memory: who commits writes a file, and whoever changes a row writes its file anew.

It is the world's database with files beneath, so that services, people and the truth need to know of no other ledger.
What a folder does not have, two-phase commits and ids of transactions, does nothing here or is asked by nobody.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from tests.simulator.world.clock import Clock
from tests.simulator.world.database import Database, Row

_MILLISECOND_NS = 1_000_000
_BYTES_OF_A_ROW = 64


@dataclass(frozen=True)
class FileOfRows:
    """One file: ids of its rows, and when it was written last. Its size says how many rows it has."""

    modified_ns: int
    row_ids: tuple[int, ...]

    @property
    def size_bytes(self) -> int:
        return _BYTES_OF_A_ROW * (1 + len(self.row_ids))


@dataclass(kw_only=True)
class Folder(Database):
    """files: by path. stood_in: every path that a row has ever stood in. older_by_seconds: what is moved in says that
    it was written so long ago. into_newest: who commits adds to the newest file.
    """

    clock: Clock
    files: dict[str, FileOfRows] = field(default_factory=dict)
    stood_in: dict[int, set[str]] = field(default_factory=dict)
    written: int = 0
    older_by_seconds: int = 0
    into_newest: bool = False

    def commit(self, name: str) -> None:
        before = dict(self.rows)
        super().commit(name)
        self._write_anew({row_id for row_id, row in before.items() if self.rows.get(row_id) != row})
        new = [row_id for row_id in self.rows if row_id not in before]
        if new:
            self._write(new)

    def prepare(self, name: str) -> None:
        """No file system has that."""

    def rewrite(self) -> None:
        """Compaction: one new file has all that the old ones had."""
        if self.writers or not self.rows:
            return
        super().rewrite()
        self.files.clear()
        self._write(list(self.rows))

    def copy_newest(self) -> list[int]:
        """A writer that had no answer writes its file again under another name: the same row ids a second time."""
        if not self.files:
            return []
        of_file = self.files[self._newest()].row_ids
        copies = []
        for row_id in of_file:
            row = self.rows[row_id]
            copied = replace(row, row_id=self.next_row_id, copy_of=row.said_id)
            self.rows[copied.row_id] = copied
            copies.append(copied.row_id)
            self.next_row_id += 1
        self._write(copies)
        return copies

    def rows_in(self, paths: Iterable[str]) -> Iterator[Row]:
        """As the files say them: a copied row has the id of the one that it is a copy of."""
        for path in paths:
            for row_id in self.files[path].row_ids:
                row = self.rows[row_id]
                yield row if row.copy_of is None else replace(row, row_id=row.said_id)

    def _newest(self) -> str:
        return max(self.files, key=lambda path: self.files[path].modified_ns)

    def _write(self, row_ids: list[int]) -> None:
        if self.into_newest and self.files:
            path = self._newest()
            self._touch(self.files[path].row_ids)
            row_ids = [*self.files[path].row_ids, *row_ids]
        else:
            path = f"part-{self.written:05}.parquet"
        self._put(path, row_ids, self._moment() - self.older_by_seconds * 1000 * _MILLISECOND_NS)

    def _write_anew(self, changed: set[int]) -> None:
        """Files that hold a changed row: without those that went, and each row in them is written once more."""
        for path, file in list(self.files.items()) if changed else ():
            if changed.isdisjoint(file.row_ids):
                continue
            left = [row_id for row_id in file.row_ids if row_id in self.rows]
            if not left:
                del self.files[path]
                continue
            self._touch(left)
            self._put(path, left, self._moment())

    def _touch(self, row_ids: Iterable[int]) -> None:
        xid = self._take_xid()
        self.rows |= {row_id: replace(self.rows[row_id], xid=xid) for row_id in row_ids}
        self._end([xid])

    def _put(self, path: str, row_ids: list[int], modified_ns: int) -> None:
        self.files[path] = FileOfRows(modified_ns, tuple(row_ids))
        for row_id in row_ids:
            self.stood_in.setdefault(row_id, set()).add(path)

    def _moment(self) -> int:
        """No two writes have the same one."""
        self.written += 1
        return self.clock.now_ms * _MILLISECOND_NS + self.written
