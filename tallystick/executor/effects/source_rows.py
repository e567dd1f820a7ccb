"""The ledger rows that a repair is made from, read anew."""

from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import Any

import psycopg
from psycopg.abc import Buffer
from psycopg.adapt import Loader
from psycopg.rows import dict_row
from psycopg.types.datetime import DateLoader, TimestampLoader, TimestamptzLoader

from tallystick.compensation.plan import CurrentRow
from tallystick.contract.ledger import LedgerSection
from tallystick.ledger import postgres_sql
from tallystick.ledger.postgres_table import describe_table


def read_source_rows(
    connection: psycopg.Connection, ledger: LedgerSection, match_keys: Collection[str]
) -> dict[str, tuple[CurrentRow, ...]]:
    """Read every visible row of these keys. Keys without a row are not in the answer. Raises LedgerRefused."""
    table = describe_table(connection, ledger)
    reverses = ledger.columns.reverses
    pairing = postgres_sql.beside_parameters(postgres_sql.pairing_condition(ledger))
    query = f"""
        SELECT {postgres_sql.column_list(ledger)}, {ledger.columns.occurred_at} AS occurred_at,
               {f"coalesce({reverses}::text, '')" if reverses else "''"} AS takes_back
        FROM {ledger.table}
        WHERE {pairing} AND {table.asked_keys(ledger)}
        ORDER BY 1"""
    found: dict[str, list[CurrentRow]] = {}
    with connection.cursor(row_factory=dict_row) as cursor:
        for kind, loader in _MOMENTS.items():
            cursor.adapters.register_loader(kind, loader)
        for row in cursor.execute(query, {"type": table.key_type, "keys": sorted(match_keys)}):
            source = CurrentRow(**row | {"occurred_at": _as_text(row["occurred_at"])})
            found.setdefault(source.match_key, []).append(source)
    return {key: tuple(rows) for key, rows in found.items()}


class _OrText(Loader):
    """A value that no datetime holds, such as infinity, as PostgreSQL writes it."""

    def load(self, data: Buffer) -> Any:
        try:
            return super().load(data)  # type: ignore[safe-super]
        except psycopg.DataError:
            return bytes(data).decode()


class _AnyTimestamptz(_OrText, TimestamptzLoader): ...


class _AnyTimestamp(_OrText, TimestampLoader): ...


class _AnyDate(_OrText, DateLoader): ...


_MOMENTS: Mapping[str, type[Loader]] = {"timestamptz": _AnyTimestamptz, "timestamp": _AnyTimestamp, "date": _AnyDate}
"""By type: one row that says infinity must not keep all others from being repaired."""


def _as_text(occurred_at: Any) -> str:
    """Format as ISO 8601, in UTC where the column knows its zone."""
    if isinstance(occurred_at, datetime):
        return (occurred_at.astimezone(UTC) if occurred_at.tzinfo else occurred_at).isoformat()
    return str(occurred_at)
