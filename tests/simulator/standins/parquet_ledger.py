"""The product's ParquetLedger over a folder in memory: manifests, changes, places and what was read are its own.

What opens files is answered here: their list, the newest one's columns, and rows by key. tests/simulator/
test_folder.py holds that against real files.
"""

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from types import SimpleNamespace
from typing import Any

import pyarrow as pa

from tallystick.ledger.parquet import ParquetLedger, known_files
from tallystick.ledger.protocol import LedgerDescription
from tallystick.model.cut import LedgerFile, LedgerSlice
from tests.simulator.world.database import Row
from tests.simulator.world.folder import Folder
from tests.simulator.world.interleaving import Interleaving

_COLUMNS = pa.schema(
    [
        ("entry_id", pa.int64()),
        ("event_id", pa.string()),
        ("payment_id", pa.string()),
        ("leg", pa.string()),
        ("amount_minor", pa.int64()),
        ("currency", pa.string()),
        ("written_at", pa.timestamp("ms", "UTC")),
    ]
)
"""Of each file, by the contract's names."""


@dataclass(frozen=True, kw_only=True)
class WorldParquetLedger(ParquetLedger):
    """point: told of each question. held: what a scan reads, once it has begun."""

    database: Folder
    point: Interleaving
    held: list[tuple[Row, ...]] = field(default_factory=list)

    def describe(self) -> LedgerDescription:
        self.point.reached("ledger.describe")
        return super().describe()

    @contextmanager
    def held_snapshot(self) -> Iterator[None]:  # type: ignore[override]
        """Nothing is held, as in any folder: a scan reads the slice once, when it begins."""
        self.point.reached("ledger.held_snapshot")
        yield
        self.held.clear()

    def slice_rows(self, ledger_slice: LedgerSlice) -> list[Row]:
        """The rows of the manifest's files, as they are now, as the scan's tasks read them."""
        if not self.held:
            self.point.reached("ledger.scan")
            self.held.append(tuple(self.database.rows_in(_there(ledger_slice.files, self._list()))))
        return list(self.held[0])

    def keys_seen_before(self, ledger_slice: LedgerSlice) -> tuple[str, ...]:
        listed = self._list()
        own = {row.match_key for row in self.database.rows_in(_there(ledger_slice.files, listed))}
        older = [path for path in known_files(self._before(ledger_slice)) if path in listed]
        return tuple(sorted({row.match_key for row in self.database.rows_in(older)} & own))

    def keys_below(self, ledger_slice: LedgerSlice, *, below: int) -> tuple[str, ...]:
        files = [file for file in ledger_slice.files if file.modified_ns // 1_000_000 < below]
        there = _there(files, self._list() if files else {})
        return tuple(sorted({row.match_key for row in self.database.rows_in(there)}))

    def _list(self) -> dict[str, LedgerFile]:
        self.point.reached("ledger.list")
        return {
            path: LedgerFile(path=path, size_bytes=one.size_bytes, modified_ns=one.modified_ns)
            for path, one in self.database.files.items()
        }

    def _rows_of(
        self, files: Iterable[LedgerFile], match_keys: Collection[str]
    ) -> Iterator[tuple[LedgerFile, list[dict[str, Any]]]]:
        asked = set(match_keys)
        for file in files:
            yield file, [asdict(row) for row in self.database.rows_in([file.path]) if row.match_key in asked]

    def _dataset(self, files: Any) -> Any:
        return SimpleNamespace(schema=_COLUMNS)

    @property
    def _system(self) -> Any:
        return SimpleNamespace(type_name="local")


def _there(files: Iterable[LedgerFile], listed: Collection[str]) -> list[str]:
    return [file.path for file in files if file.path in listed]
