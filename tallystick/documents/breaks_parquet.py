"""All breaks of a run as one Parquet file, for those who want to query them. Money as integers, evidence as JSON.

Keys that the contract hides are masked. All other texts are as their writers wrote them: a spreadsheet may take one
that begins with =, +, - or @ for a formula, so import the columns as text.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tallystick.contract.contract import Contract
from tallystick.host.artifacts import Place, is_there, whole_file
from tallystick.host.packed_json import json_text
from tallystick.model.findings import Break
from tallystick.model.run_result import RunResult
from tallystick.report.masking import Mask

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
_WRITTEN_TOGETHER = 20_000
"""Breaks that are written as one row group: only so many are held a second time, as columns."""


@contextmanager
def breaks_file(result: RunResult, contract: Contract, artifacts: Place) -> Iterator[None]:
    """Write <artifacts>/breaks/<contract>/cut=<n>/breaks.parquet, whole or not at all; again gives the same rows.

    It is written beside what is done meanwhile, such as committing the run, and is there only once that has succeeded.
    Raises ArtifactsUnreachable, also after that.
    """
    with whole_file(breaks_place(artifacts, result.contract, result.cut_n), below=artifacts) as unfinished:
        with ThreadPoolExecutor(1) as beside:
            written = beside.submit(_write, result, Mask(contract), unfinished)
            yield
        written.result()


def breaks_place(artifacts: Place, contract_name: str, cut_n: int) -> Place:
    """Return the place of the breaks of a cut."""
    return artifacts / "breaks" / contract_name / f"cut={cut_n}" / "breaks.parquet"


def add_breaks_file(result: RunResult, contract: Contract, artifacts: Place) -> None:
    """Write the breaks of a stored run where its own attempt could not. Raises ArtifactsUnreachable."""
    if not is_there(breaks_place(artifacts, result.contract, result.cut_n)):
        with breaks_file(result, contract, artifacts):
            pass


def _write(result: RunResult, mask: Mask, to: Path) -> None:
    with pq.ParquetWriter(to, _SCHEMA) as file:
        for first in range(0, len(result.breaks), _WRITTEN_TOGETHER):
            some = result.breaks[first : first + _WRITTEN_TOGETHER]
            file.write_table(_table_of(list(map(mask.item_break, some))))


def _table_of(breaks: Sequence[Break]) -> pa.Table:
    columns: dict[str, list[Any]] = {name: [getattr(one, name) for one in breaks] for name in _SCHEMA.names}
    columns["break_id"] = list(map(str, columns["break_id"]))
    columns["evidence"] = list(map(json_text, columns["evidence"]))
    return pa.table(columns, schema=_SCHEMA)
