"""A bad day: 20,000 breaks are judged, stored, written, reported and told once."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tallystick.connections.connections import artifacts_folder
from tallystick.model.finding_names import BreakClass
from tallystick.model.open_item import ItemState
from tallystick.model.stored_run import StoredRun
from tallystick.model.verdict import Verdict
from tallystick.report.break_sample import BREAKS_SHOWN_MAX
from tallystick.report.write_report import write_report
from tallystick.store.alerts.alert_store import pending_alerts
from tallystick.store.runs.outstanding_store import outstanding_classes
from tests.stack.live_books import LiveBooks, copy_of_store, payments

from .live import NewBooks

BREAKS = 20_000
PAGE_MAX_BYTES = 3_000_000


@dataclass(frozen=True)
class BadDay:
    books: LiveBooks
    run: StoredRun
    page: Path


@pytest.fixture(scope="module")
def day(new_books: NewBooks, spark: SparkSession) -> Iterator[BadDay]:
    """An outbox that nobody relays: rows without events, and two pairs. In a store that no other test has to read."""
    sinks = {"sinks": [{"kind": "file", "path": "alerts.jsonl"}]}
    with new_books(direction="ledger_to_topic", alert=sinks) as opened, copy_of_store(opened) as books:
        books.take_cut()
        books.both(*payments("a", "b"))
        books.ledger.execute(
            f"INSERT INTO {books.table} (event_id, payment_id, leg, side, amount_minor, currency) "
            "SELECT gen_random_uuid(), gen_random_uuid(), 'payment', 'credit', n, CASE n % 2 WHEN 0 THEN 'EUR' "
            f"ELSE 'JPY' END FROM generate_series(1, {BREAKS}) AS n"
        )
        run = books.next_run()
        yield BadDay(books, run, write_report(run, books.contract, artifacts_folder()))


def test_each_is_a_break_with_its_item_and_its_money(day: BadDay) -> None:
    result = day.run.result
    assert result.verdict is Verdict.BROKEN
    assert {one.break_class for one in result.breaks} == {BreakClass.MISSING_IN_TOPIC_NEVER_PRODUCED}
    assert len({one.break_id for one in result.breaks}) == BREAKS
    assert sum(item.state is ItemState.BROKEN for item in result.items) == BREAKS
    outstanding = outstanding_classes(day.books.store, day.books.contract.name)
    (found,) = outstanding.values()
    assert (found.count, sum(found.money.values())) == (BREAKS, BREAKS * (BREAKS + 1) // 2)


def test_all_stand_in_one_file(day: BadDay) -> None:
    folder = artifacts_folder() / "breaks" / day.books.contract.name / "cut=1"
    table = pq.read_table(folder / "breaks.parquet", columns=["amount_minor"])
    assert sum(table["amount_minor"].to_pylist()) == BREAKS * (BREAKS + 1) // 2


def test_the_page_stays_readable(day: BadDay) -> None:
    html = day.page.read_text()
    assert len(html) < PAGE_MAX_BYTES
    assert f"{BREAKS:,}" in html
    assert f"{BREAKS - BREAKS_SHOWN_MAX:,} more breaks in the verdict store" in html


def test_on_call_is_told_once(day: BadDay) -> None:
    (pending,) = pending_alerts(day.books.store, day.books.contract.name)
    assert pending.alert.details["new"] == BREAKS
    assert len(json.dumps(pending.alert.details)) < 2_000
