"""All breaks of a run as one Parquet file, for those who want to query them. Money as integers, evidence as JSON."""

import os
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

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
_AS_JSON = msgspec.json.Encoder(order="sorted", enc_hook=str)


def write_breaks_file(result: RunResult, artifacts: Path) -> Path:
    """Write <artifacts>/breaks/<contract>/cut=<n>/breaks.parquet, whole or not at all; again gives the same rows."""
    path = artifacts / "breaks" / result.contract / f"cut={result.cut_n}" / "breaks.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    columns: dict[str, list[Any]] = {name: [getattr(one, name) for one in result.breaks] for name in _SCHEMA.names}
    columns["break_id"] = list(map(str, columns["break_id"]))
    columns["evidence"] = list(map(_AS_JSON.encode, columns["evidence"]))
    unfinished = path.with_suffix(f".{os.getpid()}.unfinished")
    pq.write_table(pa.table(columns, schema=_SCHEMA), unfinished)
    unfinished.replace(path)
    return path
