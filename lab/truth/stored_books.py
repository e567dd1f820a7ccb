"""What the reconciler stored of one contract, window by window, with all that it says to have counted. By plain SQL."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.rows import dict_row

from lab.servers.log_ends import Partition
from lab.truth.score import Finding, FindingKind
from lab.truth.stored_findings import break_finding, item_finding, verdict_findings

_COUNTED = ("committed", "aborted", "plain", "commit_markers", "abort_markers")
_QUERIES = {
    "verdict": "SELECT * FROM tallystick.verdict WHERE contract = %s AND cut_n > 0 ORDER BY cut_n",
    "break": "SELECT * FROM tallystick.item_break WHERE contract = %s",
    "item": "SELECT * FROM tallystick.open_item WHERE contract = %s ORDER BY item_id, cut_n, step",
    "slice": "SELECT * FROM tallystick.cut_slice WHERE contract = %s ORDER BY side, slice_n",
}


@dataclass(frozen=True, kw_only=True)
class StoredBooks:
    """verdicts by window. findings: their contract is "<contract>/<window>". Counts are sums over all windows.

    states: of each item, in the order they were stored. slices: half-open, in order, by side as the store names it.
    """

    contract: str
    verdicts: Mapping[int, str]
    findings: tuple[Finding, ...]
    states: Mapping[str, tuple[str, ...]]
    slices: Mapping[str, tuple[tuple[int, int], ...]]
    offsets: Mapping[Partition, int]
    records: Mapping[Partition, int]  # committed or plain
    unexplained: int
    ledger_rows: int


def window_name(contract: str, window: int) -> str:
    """What stands for the contract in a finding of one window."""
    return f"{contract}/{window}"


def read_books(store_dsn: str, contract: str) -> StoredBooks:
    with psycopg.connect(store_dsn, row_factory=dict_row) as connection:
        rows = {name: connection.execute(query, [contract]).fetchall() for name, query in _QUERIES.items()}
    states: dict[str, tuple[str, ...]] = {}
    for row in rows["item"]:
        states[row["item_id"]] = (*states.get(row["item_id"], ()), row["state"])
    slices: dict[str, tuple[tuple[int, int], ...]] = {}
    for row in rows["slice"]:
        slices[row["side"]] = (*slices.get(row["side"], ()), (row["starts_at"], row["ends_at"]))
    census = [part for row in rows["verdict"] for part in row["figures"]["census"]]
    return StoredBooks(
        contract=contract,
        verdicts={row["cut_n"]: row["verdict"] for row in rows["verdict"]},
        findings=(
            *(break_finding(_named(row)) for row in rows["break"]),
            *(one for row in rows["verdict"] for one in verdict_findings(_named(row))),
            *(
                item_finding(_named(row), FindingKind(row["state"]))
                for row in rows["item"]
                if row["state"] in (FindingKind.CLEARED, FindingKind.UNDECIDABLE)
            ),
        ),
        states=states,
        slices=slices,
        offsets=_sums(census, _COUNTED),
        records=_sums(census, ("committed", "plain")),
        unexplained=sum(part["unexplained"] for part in census),
        ledger_rows=sum(row["figures"]["ledger_rows"] for row in rows["verdict"]),
    )


def _named(row: Mapping[str, Any]) -> dict[str, Any]:
    return {**row, "contract": window_name(row["contract"], row["cut_n"])}


def _sums(census: list[dict[str, Any]], columns: tuple[str, ...]) -> dict[Partition, int]:
    summed: Counter[Partition] = Counter()
    for part in census:
        summed[part["topic"], part["partition"]] += sum(part[column] for column in columns)
    return dict(summed)
