"""All breaks of a run as one Parquet file, for those who want to query them. Money as integers, evidence as JSON."""

import json
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tallystick.garbage import seldom_collected
from tallystick.run_result import RunResult

_SCHEMA = pa.schema(
    [
        ("break_id", pa.string()),
        ("break_class", pa.string()),
        ("match_key", pa.string()),
        ("transaction_key", pa.string()),
        ("leg", pa.string()),
        ("amount_minor", pa.int64()),
        ("currency", pa.string()),
        ("copies", pa.int32()),
        ("story", pa.string()),
        ("evidence", pa.string()),
    ]
)


@seldom_collected()
def write_breaks_file(result: RunResult, artifacts: Path) -> Path:
    """Write <artifacts>/breaks/<contract>/cut=<n>/breaks.parquet, whole or not at all; again gives the same rows."""
    path = artifacts / "breaks" / result.contract / f"cut={result.cut_n}" / "breaks.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [
        {
            **{name: getattr(one, name) for name in _SCHEMA.names},
            "break_id": str(one.break_id),
            "break_class": str(one.break_class),
            "evidence": json.dumps(one.evidence, sort_keys=True, default=str),
        }
        for one in result.breaks
    ]
    unfinished = path.with_suffix(f".{os.getpid()}.unfinished")
    pq.write_table(pa.Table.from_pylist(rows, schema=_SCHEMA), unfinished)
    unfinished.replace(path)
    return path
