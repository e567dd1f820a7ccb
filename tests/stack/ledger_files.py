"""A ledger in Parquet files, as its writer adds to it."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tests.stack.live_books import Event, LiveBooks


def write_file(
    books: LiveBooks, name: str, *events: Event, rows_of: str = "", row_ids: Sequence[str | None] = ()
) -> Path:
    """As a writer should: under another name first. rows_of: another file, whose rows these are.
    row_ids: where they are no file's own.
    """
    path = Path(books.connections.ledger_dsn) / "billing" / "posting" / name
    rows = [
        {
            "entry_id": row_ids[number] if row_ids else f"{rows_of or name}:{number}",
            "event_id": one.event_id,
            "payment_id": one.payment_id,
            "leg": one.leg,
            "amount_minor": one.amount_minor,
            "currency": one.currency,
        }
        for number, one in enumerate(events)
    ]
    hidden = path.with_name(f".{name}")
    pq.write_table(pa.Table.from_pylist(rows), hidden)
    return hidden.rename(path)
