"""The rows of a table of Iceberg, counted: as of a snapshot, and as a range of snapshots appended them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from tallystick.contract.equality import Money
from tallystick.contract.field_types import Constant
from tallystick.contract.ledger import LedgerSection
from tallystick.contract.sql_names import bare
from tallystick.ledger.iceberg.history import appends, begins_the_table, lineage_of, position_of

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot

COLUMNS = ("row_id", "match_key", "transaction_key", "leg", *Money._fields)
"""Names of the contract's columns, in the order of a row's values."""

CountedRow = tuple[Any, ...]
"""Values of some of these columns."""


@dataclass(frozen=True, kw_only=True)
class AppendedRange:
    """The snapshots that Spark scans. first_id: one without a parent, since it is the table's very first or since
    pyiceberg, which expired its parent, took the parent's id away; first_files: the data files that it appended.

    after_id, last_id: exclusive and inclusive ends of the rest; None where there is no rest.
    """

    metadata_location: str
    first_id: int | None
    first_files: tuple[str, ...]
    after_id: int | None
    last_id: int | None


@dataclass(frozen=True, kw_only=True)
class RowsOfTable:
    """The rows of a table that a filter picks, counted, at one snapshot or another. wanted: None for all.

    only: values of the first column that are counted, of rows that no filter picks; None for all.
    """

    table: "Table"
    ledger: LedgerSection
    wanted: Any
    columns: Sequence[str] = COLUMNS
    only: Sequence[Any] | None = None

    def snapshot(self, one: "Snapshot") -> Counter[CountedRow]:
        return self._counted(self.table.scan(snapshot_id=one.snapshot_id, **self._picked))

    def appended(self, ids: AppendedRange | None) -> Counter[CountedRow]:
        """Read what the snapshots of a slice appended."""
        rows: Counter[CountedRow] = Counter()
        if ids is None:
            return rows
        if ids.first_id is not None:
            rows += self._counted(
                self.table.incremental_append_scan(to_snapshot_id_inclusive=ids.first_id, **self._picked)
            )
        if ids.last_id is not None:
            scan = self.table.incremental_append_scan(
                from_snapshot_id_exclusive=ids.after_id, to_snapshot_id_inclusive=ids.last_id, **self._picked
            )
            rows += self._counted(scan)
        return rows

    def before(self, position: int) -> Counter[CountedRow] | None:
        """Read the table as it was before a position; None where the snapshots that knew it were expired."""
        lineage = lineage_of(self.table)
        older = max((one for one in lineage if position_of(one) < position), key=position_of, default=None)
        if older is not None:
            return self.snapshot(older)
        oldest = min(lineage, key=position_of, default=None)
        if oldest is None or begins_the_table(oldest):
            return Counter()
        if position_of(oldest) > position or not appends(oldest):
            return None
        scan = self.table.incremental_append_scan(
            from_snapshot_id_exclusive=oldest.parent_snapshot_id,
            to_snapshot_id_inclusive=oldest.snapshot_id,
            **self._picked,
        )
        return self.snapshot(oldest) - self._counted(scan)

    @property
    def _picked(self) -> Mapping[str, Any]:
        names = tuple(dict.fromkeys(self.ledger.columns.named(self.columns)))
        return {"selected_fields": names} | ({} if self.wanted is None else {"row_filter": self.wanted})

    def _counted(self, scan: Any) -> Counter[CountedRow]:
        said = [getattr(self.ledger.columns, name) for name in self.columns]
        sources = [bare(one) if isinstance(one, str) else one for one in said]
        rows: Counter[CountedRow] = Counter()
        for batch in scan.to_arrow_batch_reader():
            picked = batch.filter(self._is_one_of_only(batch.column(sources[0])))
            rows.update(zip(*(_values(picked, one) for one in sources), strict=True))
        return rows

    def _is_one_of_only(self, first: pa.Array) -> pa.Array:
        if self.only is None:
            return pa.repeat(True, len(first))
        return pc.is_in(first, value_set=pa.array(self.only, first.type))


def _values(batch: pa.RecordBatch, source: str | Constant) -> list[Any]:
    """Return a column, or as often as there are rows the constant in its place."""
    return batch.column(source).to_pylist() if isinstance(source, str) else [source.constant] * batch.num_rows
