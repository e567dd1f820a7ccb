"""A contract's ledger in each kind that a test of all kinds asks for, where it is not the lab's own table."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tallystick.connections.connections import environment_variable

from .iceberg_table import NAME, IcebergSink

ELSEWHERE = "ledger_elsewhere"
_FOLDER = Path("lake") / "billing" / "posting"


def ledger_of_kind(
    kind: str, sink: IcebergSink, *, shape: pa.Schema, monkeypatch: pytest.MonkeyPatch
) -> dict[str, Any]:
    """Make it in the sink's folder, without a row, and return its section of a contract."""
    if kind == "parquet":
        (sink.folder / _FOLDER).mkdir(parents=True)
        monkeypatch.setenv(environment_variable(ELSEWHERE), str(sink.folder / "lake"))
    elif kind == "iceberg":
        sink.make(shape=shape)
        monkeypatch.setenv(environment_variable(ELSEWHERE), sink.address)
    sections: dict[str, dict[str, Any]] = {
        "postgres": {},
        "jdbc": {"kind": "jdbc", "order_by": "entry_id", "overlap": 0},
        "parquet": {
            "kind": kind,
            "connection": ELSEWHERE,
            "table": "billing.posting",
            "quiet_seconds": 0,
            "where": None,
        },
        "iceberg": {"kind": kind, "connection": ELSEWHERE, "table": NAME, "where": None},
    }
    return sections[kind]


def add_file(sink: IcebergSink, name: str, rows: pa.Table) -> None:
    """Add a file to the Parquet ledger as a writer should: under another name first."""
    hidden = sink.folder / _FOLDER / f".{name}.parquet"
    pq.write_table(rows, hidden)
    hidden.rename(hidden.with_name(f"{name}.parquet"))
