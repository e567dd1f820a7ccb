"""The rules that hold everything else, each broken on purpose: its aimed test must then fail.

A row of SABOTAGE names the rule, breaks the real thing in the product, and names the test that has to notice. The same
tests pass unbroken elsewhere in this folder; a rule whose loss nobody notices is not tested.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
from psycopg import Connection
from psycopg.rows import class_row
from pyspark.sql import DataFrame

from lab.servers.stack import LabStack
from tallystick.contract.ledger import LedgerSection
from tallystick.kafka_log.batch_header import Marker
from tallystick.kafka_log.fetch import Fetch
from tallystick.kafka_log.log_walk import DecidedBatch, Outcome, walk_batches
from tallystick.kafka_log.offset_census import take_census
from tallystick.ledger import postgres, postgres_sql
from tallystick.ledger.key_index import IndexIncomplete
from tallystick.ledger.protocol import LedgerRow
from tallystick.matching.match_case import LookupHit, RecordLocation
from tallystick.matching.unreadable_ranges import NOTHING
from tallystick.model.census_values import PartitionCensus
from tallystick.model.cut import LedgerSlice, LedgerSnapshot, PartitionSnapshot, TopicSlice, next_topic_slice
from tallystick.model.offsets import OffsetRange
from tallystick.model.verdict import Verdict
from tallystick.pipeline import investigate, lookups, make_cut
from tallystick.spark.spark_job import BY_CLIENT, PAIR_BY_PAIR, SCAN_VARIABLE
from tallystick_spark.matching import frame_match, hash_scan
from tallystick_spark.readers import topic_frame
from tests.stack.live_books import payment, payments

from . import (
    ledger_table,
    test_bad_input,
    test_census_stack,
    test_ledger_crash,
    test_ledger_horizon,
    test_reconcile_holds,
)
from .ledger_table import Slices, Table, table
from .live import NewBooks
from .log_of_every_producer import end, fetch, log

__all__ = ["end", "fetch", "log", "table"]  # fixtures

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("spark")]

Patch = pytest.MonkeyPatch


# The aimed tests that stand nowhere else.


def an_aborted_payment_changes_nothing(new_books: NewBooks) -> None:
    with new_books(direction="topic_to_ledger") as books:
        books.take_cut()
        books.produce(*payments("undone"), abort=True)
        books.both(*payments("a", "b"))
        assert books.next_run().result.verdict is Verdict.MATCHED


def an_event_doubled_on_both_sides_is_a_duplicate(new_books: NewBooks) -> None:
    with new_books(direction="topic_to_ledger") as books:
        books.take_cut()
        books.both(*payments("a", "b"))
        books.both(payment("b"))
        run = books.next_run()
        assert [(one.match_key, one.copies) for one in run.result.breaks] == [(payment("b").event_id, 1)]


def a_cut_ends_at_the_lso(new_books: NewBooks) -> None:
    with new_books(direction="topic_to_ledger") as books:
        books.take_cut()
        books.wait_stable()
        holder = books.producer("holder")
        holder.begin_transaction()
        books.send(holder, payment("held"))
        try:
            cut = books.take_cut(settled=False)
            assert all(part.offsets.kafka_offset_end <= part.snapshot.lso for part in cut.topic_slices)
        finally:
            holder.abort_transaction()


def a_row_below_open_writers_is_in_the_slice(table: Table) -> None:
    slices, writers = Slices(table), [table.connect() for _ in range(5)]
    for number, writer in enumerate(writers):
        writer.execute("BEGIN")
        table.insert(writer, f"writer-{number}")
    writers[0].execute("COMMIT")
    slices.cut()
    for writer in writers:
        writer.close()
    assert slices.keys == ["writer-0"]


# The sabotage.


def isolation_left_out(patch: Patch) -> None:
    patch.setattr(topic_frame, "ISOLATION", "read_uncommitted")


def multiset_turned_into_a_set(patch: Patch) -> None:
    whole = frame_match.pair_by_key

    def as_sets(topic: DataFrame, ledger: DataFrame, **lag: Any) -> DataFrame:
        return whole(topic.dropDuplicates(["match_key"]), ledger.dropDuplicates(["match_key"]), **lag)

    patch.setattr(frame_match, "pair_by_key", as_sets)
    patch.setenv(SCAN_VARIABLE, PAIR_BY_PAIR)


def hashes_turned_into_a_set(patch: Patch) -> None:
    events, rows = hash_scan.events_to_hash, hash_scan.rows_to_hash
    patch.setattr(hash_scan, "events_to_hash", lambda *side, **how: events(*side, **how).dropDuplicates(["match_key"]))
    patch.setattr(hash_scan, "rows_to_hash", lambda side, **how: rows(side, **how).dropDuplicates(["match_key"]))
    patch.setenv(SCAN_VARIABLE, BY_CLIENT)


def lso_bound_dropped(patch: Patch) -> None:
    def unbound(snapshot: PartitionSnapshot, **known: Any) -> TopicSlice:
        return replace(next_topic_slice(replace(snapshot, lso=snapshot.high_watermark), **known), snapshot=snapshot)

    patch.setattr(make_cut, "next_topic_slice", unbound)


def horizon_by_age(patch: Patch) -> None:
    """Age counts from the next id to be given out, the snapshot's xmax from the last one that ended."""

    def by_age(ledger: LedgerSection, *, xid_start: int, xid_end: int) -> str:
        row = "(pg_snapshot_xmax(pg_current_snapshot())::text::bigint - age(xmin))"
        return f"({row} >= {xid_start} AND {row} < {xid_end})"

    patch.setattr(postgres_sql, "slice_condition", by_age)


def horizon_by_snapshot(patch: Patch) -> None:
    """A slice is what one saved snapshot sees and the one before did not; it takes a savepoint's id for ended."""
    snapshots: dict[int, str] = {}
    read = ledger_table.read_ledger_snapshot

    def numbered(connection: Connection) -> LedgerSnapshot:
        row = connection.execute("SELECT pg_current_snapshot()::text").fetchone()
        assert row is not None
        snapshots[len(snapshots)] = row[0]
        return replace(read(connection), low_mark=len(snapshots) - 1)

    def by_snapshot(ledger: LedgerSection, *, xid_start: int, xid_end: int) -> str:
        def sees(number: int) -> str:
            return f"pg_visible_in_snapshot((xmin::text::bigint)::text::xid8, '{snapshots[number]}')"

        return f"({sees(xid_end)} AND NOT {sees(xid_start)})"

    patch.setattr(ledger_table, "read_ledger_snapshot", numbered)
    patch.setattr(postgres_sql, "slice_condition", by_snapshot)


def outcome_from_own_slice(patch: Patch) -> None:
    """Committed is what has its COMMIT marker in the slice itself."""

    def decided_here(fetch: Fetch, offsets: OffsetRange, **known: Any) -> PartitionCensus:
        batches = [one for one in walk_batches(fetch, offsets) if one.header.base_offset < offsets.kafka_offset_end]
        committed = sum(len_of(one, offsets) for one in batches if outcome_here(one, batches) is Outcome.COMMITTED)
        right = take_census(fetch, offsets, **known)
        return replace(right, committed=committed, aborted=right.aborted + right.committed - committed)

    patch.setattr(test_census_stack, "take_census", decided_here)


def outcome_here(batch: DecidedBatch, batches: list[DecidedBatch]) -> Outcome:
    if batch.outcome not in (Outcome.COMMITTED, Outcome.ABORTED):
        return batch.outcome
    later = (
        one.header.marker
        for one in batches
        if one.header.marker
        and one.header.producer_id == batch.header.producer_id
        and one.header.base_offset > batch.header.base_offset
    )
    return Outcome.COMMITTED if next(later, None) is Marker.COMMIT else Outcome.ABORTED


def len_of(batch: DecidedBatch, offsets: OffsetRange) -> int:
    header = batch.header
    return min(header.next_offset, offsets.kafka_offset_end) - max(header.base_offset, offsets.kafka_offset_start)


def look_up_without_place(patch: Patch) -> None:
    """Any row that stands somewhere is taken for one that was paired."""
    placed = lookups.locate_row

    def anywhere(row: LedgerRow, ledger_slice: LedgerSlice) -> LookupHit:
        return replace(placed(row, ledger_slice), place=RecordLocation.EARLIER_SLICE)

    patch.setattr(lookups, "locate_row", anywhere)


def mark_below_open_writers(patch: Patch) -> None:
    """A snapshot's own xmax is the last id that ended, plus one."""
    own = re.sub(r"greatest\(.*?\) AS high_mark", "xmax AS high_mark", postgres_sql.SNAPSHOT, flags=re.DOTALL)
    assert own != postgres_sql.SNAPSHOT
    patch.setattr(postgres_sql, "SNAPSHOT", own)


def horizon_not_flushed(patch: Patch) -> None:
    def unflushed(connection: Connection) -> LedgerSnapshot:
        snapshot = connection.cursor(row_factory=class_row(LedgerSnapshot)).execute(postgres_sql.SNAPSHOT).fetchone()
        assert snapshot is not None
        return snapshot

    patch.setattr(postgres, "read_ledger_snapshot", unflushed)


def expiry_forgotten(patch: Patch) -> None:
    """What left the log unread may still be called missing."""
    patch.setattr(investigate, "_lost_offsets", lambda *_: False)
    patch.setattr(investigate, "_out_of_sight", lambda *_: NOTHING)


@dataclass(frozen=True)
class Sabotage:
    """fixtures: names of what the aimed test takes."""

    breaks: Callable[[Patch], None]
    aimed: Callable[..., None]
    fixtures: tuple[str, ...] = ("new_books",)


SABOTAGE = (
    Sabotage(isolation_left_out, an_aborted_payment_changes_nothing),
    Sabotage(multiset_turned_into_a_set, an_event_doubled_on_both_sides_is_a_duplicate),
    Sabotage(hashes_turned_into_a_set, an_event_doubled_on_both_sides_is_a_duplicate),
    Sabotage(lso_bound_dropped, a_cut_ends_at_the_lso),
    Sabotage(horizon_by_age, a_row_below_open_writers_is_in_the_slice, ("table",)),
    Sabotage(
        horizon_by_snapshot, test_ledger_horizon.test_a_row_under_a_savepoint_waits_for_its_transaction, ("table",)
    ),
    Sabotage(
        outcome_from_own_slice,
        test_census_stack.test_every_slice_counts_what_a_consumer_of_another_make_reads_there,
        ("log", "fetch", "end"),
    ),
    Sabotage(
        look_up_without_place,
        test_reconcile_holds.test_a_database_transaction_in_another_database_is_named_and_what_it_hides_waits,
    ),
    Sabotage(
        mark_below_open_writers,
        test_ledger_horizon.test_the_mark_lies_above_an_open_writer_even_if_none_has_ended_after_it,
        ("table", "versioned"),
    ),
    Sabotage(
        horizon_not_flushed,
        test_ledger_crash.test_a_crash_right_after_a_horizon_was_read_takes_none_of_its_ids_back,
        ("versioned", "waits"),
    ),
    Sabotage(
        expiry_forgotten,
        test_bad_input.test_events_that_expired_before_any_cut_are_a_doubt_and_their_rows_no_phantoms,
    ),
)


@pytest.fixture
def versioned(stack: LabStack) -> LabStack:
    """Of the versions of a ledger that an aimed test is tried on: the newest."""
    return stack


@pytest.fixture
def waits() -> str:
    """Whether commits of the ledger's reader wait for the disk."""
    return "on"


@pytest.fixture(params=SABOTAGE, ids=lambda one: one.breaks.__name__)
def sabotage(request: pytest.FixtureRequest) -> tuple[Sabotage, dict[str, Any]]:
    return request.param, {name: request.getfixturevalue(name) for name in request.param.fixtures}


def test_the_aimed_test_notices_the_broken_rule(sabotage: tuple[Sabotage, dict[str, Any]]) -> None:
    broken, fixtures = sabotage
    with pytest.MonkeyPatch.context() as patch:
        broken.breaks(patch)
        with pytest.raises((AssertionError, IndexIncomplete)):  # the index counts what was read, and may say so first
            broken.aimed(**fixtures)


@pytest.fixture(
    params=[one for one in SABOTAGE if one.aimed.__module__ == __name__], ids=lambda one: one.aimed.__name__
)
def unbroken(request: pytest.FixtureRequest) -> tuple[Callable[..., None], dict[str, Any]]:
    return request.param.aimed, {name: request.getfixturevalue(name) for name in request.param.fixtures}


def test_the_aimed_test_passes_with_the_rule_in_force(unbroken: tuple[Callable[..., None], dict[str, Any]]) -> None:
    aimed, fixtures = unbroken
    aimed(**fixtures)
