"""A real table of Iceberg with a catalog in SQLite, and the slices that cuts take of it."""

import json
import re
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
from pyiceberg.catalog import load_catalog
from pyiceberg.table import Table

from tallystick.contract.ledger import LedgerSection
from tallystick.ledger.iceberg.iceberg_ledger import IcebergLedger, open_iceberg_ledger
from tallystick.matching.ledger_horizon import locate_row
from tallystick.matching.match_case import RecordLocation
from tallystick.model.cut import FileChange, LedgerSlice

SECTION = LedgerSection(kind="iceberg", connection="lake", table="billing.posting")
SHAPE = pa.schema(
    [(name, pa.string()) for name in ("entry_id", "event_id", "payment_id", "leg", "currency")]
    + [("amount_minor", pa.int64())]
)


@dataclass
class Book:
    """A table, and the slices that cuts took of it."""

    folder: Path
    slices: list[LedgerSlice] = field(default_factory=list)

    @property
    def address(self) -> str:
        return json.dumps(
            {"type": "sql", "uri": f"sqlite:///{self.folder}/lake.db", "warehouse": f"file://{self.folder}"}
        )

    @property
    def table(self) -> Table:
        return load_catalog("default", **json.loads(self.address)).load_table(SECTION.table)

    def make(self, shape: pa.Schema = SHAPE) -> None:
        catalog = load_catalog("default", **json.loads(self.address))
        catalog.create_namespace("billing")
        catalog.create_table(SECTION.table, schema=shape)

    def append(self, *keys: str) -> None:
        row = {"payment_id": "p", "leg": "payment", "currency": "EUR", "amount_minor": 7}
        self.table.append(
            pa.Table.from_pylist([{**row, "entry_id": f"{key}!", "event_id": key} for key in keys], SHAPE)
        )

    def expire_all_but(self, kept: int) -> None:
        table = self.table
        ids = [one.snapshot_id for one in sorted(table.metadata.snapshots, key=lambda one: one.sequence_number or 0)]
        table.maintenance.expire_snapshots().by_ids(ids[:-kept]).commit()

    def opened(self, section: LedgerSection = SECTION) -> IcebergLedger:
        return open_iceberg_ledger(self.address, section, stored_slices=lambda: tuple(self.slices))

    def cut(self) -> LedgerSlice:
        """Take the next slice, up to the newest snapshot; the first one is the baseline."""
        there = self.opened()
        now = there.read_snapshot()
        start = self.slices[-1].position_end if self.slices else now.low_mark
        baseline = self.slices[0].position_end if self.slices else start
        end = max(start, now.low_mark)
        taken = there.fix(
            LedgerSlice(position_start=start, position_end=end, snapshot=now, mark=end, baseline_position=baseline)
        )
        self.slices.append(taken)
        return taken

    def places(self, *keys: str) -> dict[str, list[RecordLocation]]:
        """Where the newest cut finds each row of these keys."""
        found = self.opened().look_up_rows(keys, self.slices[-1])
        return {key: [locate_row(row, self.slices[-1]).place for row in rows] for key, rows in found.items()}


def told(changed: tuple[FileChange, ...]) -> list[str]:
    """What is said, without the ids of snapshots."""
    return [re.sub(r"\d{12,}", "N", one.after.path) for one in changed if one.after]
