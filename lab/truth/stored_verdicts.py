"""What the reconciler stored, read by plain SQL: the demo compares it with the truth and shares no code with it."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.rows import dict_row

from lab.truth.truth import Anomaly

Found = Counter[tuple[str, str]]
"""(break class, event) to copies; the event of a torn payment is "<payment id>/<missing leg>"."""

_TORN = "torn_transaction"


@dataclass(frozen=True, kw_only=True)
class StoredRun:
    """One row of the verdict store, with the money of its breaks by currency."""

    contract: str
    cut_n: int
    verdict: str
    scheduler_run_id: str
    doubts: tuple[str, ...]
    aborted_records: int
    breaks: tuple[dict[str, Any], ...]

    @property
    def found(self) -> Found:
        counted: Found = Counter()
        for row in self.breaks:
            torn = row["break_class"] == _TORN
            event = f"{row['transaction_key']}/{row['leg']}" if torn else row["match_key"]
            counted[row["break_class"], event] += row["copies"]
        return counted

    @property
    def money(self) -> Counter[str]:
        """Money at stake, by currency in minor units."""
        totals: Counter[str] = Counter()
        for row in self.breaks:
            totals[row["currency"]] += row["amount_minor"]
        return totals

    def count(self, prefix: str) -> int:
        """Copies in breaks whose class begins so."""
        return sum(row["copies"] for row in self.breaks if row["break_class"].startswith(prefix))


def read_runs(store_dsn: str, contract: str) -> list[StoredRun]:
    """All judged cuts of one contract, in order."""
    with psycopg.connect(store_dsn, row_factory=dict_row) as connection:
        rows = connection.execute(
            "SELECT * FROM tallystick.verdict v JOIN tallystick.cut c ON (c.contract, c.n) = (v.contract, v.cut_n)"
            " WHERE v.contract = %s ORDER BY v.cut_n",
            [contract],
        ).fetchall()
        return [_run(connection, row) for row in rows]


def _run(connection: psycopg.Connection[dict[str, Any]], row: dict[str, Any]) -> StoredRun:
    breaks = connection.execute(
        "SELECT * FROM tallystick.item_break WHERE contract = %s AND cut_n = %s", [row["contract"], row["cut_n"]]
    ).fetchall()
    return StoredRun(
        contract=row["contract"],
        cut_n=row["cut_n"],
        verdict=row["verdict"],
        scheduler_run_id=row["scheduler_run_id"],
        doubts=tuple(doubt["doubt"] for doubt in row["doubts"]),
        aborted_records=sum(part["aborted"] for part in row["figures"]["census"]),
        breaks=tuple(breaks),
    )


def expected(anomalies: Iterable[Anomaly]) -> Found:
    """The truth in the same shape."""
    counted: Found = Counter()
    for anomaly in anomalies:
        torn = anomaly.break_class == _TORN
        event = f"{anomaly.payment_id}/{anomaly.leg}" if torn else anomaly.event_id
        counted[anomaly.break_class, event] += anomaly.copies
    return counted


def open_items(store_dsn: str, contract: str, state: str) -> int:
    """Items of a contract whose newest row has this state."""
    query = """
        SELECT count(*) FROM (SELECT DISTINCT ON (item_id) state FROM tallystick.open_item
                              WHERE contract = %s ORDER BY item_id, cut_n DESC, step DESC) newest WHERE state = %s"""
    with psycopg.connect(store_dsn) as connection:
        (count,) = connection.execute(query, [contract, state]).fetchone() or (0,)
    return int(count)
