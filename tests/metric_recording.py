"""What the metrics said of a real run, kept so that alert rules and dashboards can be tried on it without one.

A contract's books are driven through four moments by a real broker, ledger and Spark: in order, broken, held back, and
silent. To record them anew: `python -m tests.metric_recording`.
"""

import shutil
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lab.servers.postgres import STORE_ROLE
from lab.servers.process import REPOSITORY
from lab.servers.stack import start_stack
from tallystick.alerting.sinks.registry import sinks_from_environment
from tallystick.metrics.export import exposition
from tallystick.pipeline.deliver_alerts import DeliveryFailed, deliver_pending
from tallystick.pipeline.sources import observe
from tallystick.store.engine import connect_store, migrate, open_store
from tests.stack.live import SPARK_SETTINGS
from tests.stack.live_books import LiveBooks, environment_of, open_live_books, payment, payments

FOLDER = Path(__file__).parent / "prometheus" / "recorded"
CONTRACT = "billing_payments"
"""What the recordings call the contract, whose real name is new each time."""

BOOKS = {
    "direction": "topic_to_ledger",
    "schedule": "* * * * *",  # so that a verdict is overdue hours later
    "alert": {"sinks": [{"kind": "webhook", "connection": "not_given"}]},
}

LOST = (payment("lost", 4_200), payment("yen", 500, "JPY"), payment("odd", 7, "XXQ"))
"""Events that their consumer never posted. XXQ is no currency."""
HELD = payment("held", 900)
BEHIND = next(one for one in payments(*(f"behind {n}" for n in range(9))) if one.partition == HELD.partition)
"""Stands behind it in the log, so its row waits."""


def moments(books: LiveBooks) -> Iterator[tuple[str, str]]:
    """Each moment's name, and what the metrics say then. The clock is an hour ahead from the held window on."""
    books.configure_topic("payment", retention_ms=str(2 * 3_600_000))
    books.take_cut()
    books.both(*payments("a", "b"))
    books.next_run()
    yield "matched", _said(books, datetime.now(UTC))

    books.produce(*LOST)
    books.next_run()
    sinks = sinks_from_environment(books.contract, artifacts=Path(), environment={})
    with pytest.raises(DeliveryFailed):
        deliver_pending(books.store, books.contract.name, sinks)
    yield "broken", _said(books, datetime.now(UTC))

    books.post(LOST[0])
    holder = books.producer("holder")
    holder.begin_transaction()
    books.send(holder, HELD)
    books.both(BEHIND)
    later = timedelta(hours=1)
    end = datetime.now(UTC) + later
    observe(books.store, books.contract, books.connections, window_end_utc=end, now_utc=end)
    books.judge(books.resolve(end, later=later))
    yield "held", _said(books, datetime.now(UTC) + later)

    yield "silent", _said(books, datetime.now(UTC) + timedelta(hours=12))
    holder.abort_transaction()


def _said(books: LiveBooks, now_utc: datetime) -> str:
    return exposition(books.store, now_utc=now_utc).replace(books.contract.name, CONTRACT)


def record() -> None:
    """Write every moment's file."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    home = Path(tempfile.mkdtemp(prefix="recording-", dir=REPOSITORY / "build"))
    try:
        with start_stack(home) as stack, pytest.MonkeyPatch.context() as patch:
            migrate(connect_store(stack.store_owner_dsn), grant_to=STORE_ROLE)
            for variable, value in environment_of(stack, home).items():
                patch.setenv(variable, value)
            builder = SparkSession.builder.master("local[2]")
            for name, value in SPARK_SETTINGS.items():
                builder = builder.config(name, value)
            builder.getOrCreate().sparkContext.setLogLevel("ERROR")
            with open_live_books(stack, open_store(stack.store_dsn), home, **BOOKS) as books:
                for name, text in moments(books):
                    (FOLDER / f"{name}.prom").write_text(text)
    finally:
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    record()
