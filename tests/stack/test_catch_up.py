"""Windows judged late, after an outage of the scheduler: each gets its own part of the outage, and the same breaks.

The same traffic is judged twice, in two stores: on time, with a clock that stands at each window's end; and after all
of it has come. Timestamps lie in the past, so nothing waits.
"""

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from confluent_kafka import Producer
from sqlalchemy import Engine

from tallystick.model.finding_names import BreakClass
from tallystick.model.stored_run import StoredRun
from tallystick.model.verdict import Verdict
from tallystick.pipeline.make_cut import resolve_cut
from tallystick.pipeline.sources import observe
from tallystick.store.runs.outstanding_store import outstanding_breaks
from tests.stack.live_books import Event, LiveBooks, payment

from .live import NewBooks

pytestmark = pytest.mark.usefixtures("spark")

HOUR, MINUTE, SECOND = timedelta(hours=1), timedelta(minutes=1), timedelta(seconds=1)
START = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - 12 * HOUR
WINDOWS = 3


def _write(books: LiveBooks, at: datetime, *events: Event, topic: bool = True, ledger: bool = True) -> None:
    """Both sides, or one of them, with the timestamps of that moment."""
    if topic:
        producer = Producer({"bootstrap.servers": books.stack.bootstrap_servers, "linger.ms": 0, "log_level": 0})
        for event in events:
            producer.produce(
                books.contract.legs[event.leg],
                key=event.payment_id,
                value=event.value,
                partition=event.partition,
                timestamp=int(at.timestamp() * 1000),
            )
        assert producer.flush(30) == 0
    if ledger:
        books.ledger.cursor().executemany(
            f"INSERT INTO {books.table} (event_id, payment_id, leg, side, amount_minor, currency, occurred_at)"
            " VALUES (%s, %s, %s, 'credit', %s, %s, %s)",
            [(one.event_id, one.payment_id, one.leg, one.amount_minor, one.currency, at) for one in events],
        )


def _write_window(books: LiveBooks, number: int) -> None:
    """One hour: payments that agree, a fault, and one whose row comes in the next hour."""
    begins = START + number * HOUR
    _write(books, begins + MINUTE, *(payment(f"{number}-{n}") for n in range(6)))
    if number:
        _write(books, begins + MINUTE, payment(f"{number - 1}-late"), topic=False)
    _write(books, begins + 30 * MINUTE, payment(f"{number}-unposted"), ledger=False)
    _write(books, begins + 30 * MINUTE, payment(f"{number}-by hand"), topic=False)
    _write(books, begins + 30 * MINUTE, payment(f"{number}-0"), ledger=False)
    _write(books, begins + 59 * MINUTE, payment(f"{number}-late"), ledger=False)


def _judge(books: LiveBooks, end: datetime, now_utc: datetime) -> StoredRun:
    """The run of the hour that ends there, by a clock of the test's."""
    observe(books.store, books.contract, books.connections, window_end_utc=end, now_utc=now_utc)
    cut = resolve_cut(
        books.store,
        books.contract,
        books.connections,
        window_start_utc=end - HOUR,
        window_end_utc=end,
        now_utc=now_utc,
        scheduler_run_id=f"run-{end.isoformat()}",
    )
    return books.stored_run(cut) if cut.is_baseline else books.judge(cut)


def _outstanding(books: LiveBooks) -> dict[UUID, BreakClass]:
    found = outstanding_breaks(books.store, books.contract.name)
    return {one.item_break.break_id: one.item_break.break_class for one in found}


def _slices(run: StoredRun) -> tuple[object, ...]:
    ledger = run.cut.ledger_slice
    return tuple(part.offsets for part in run.cut.topic_slices), run.result.figures.ledger_rows, ledger.held


def test_late_windows_hold_and_find_what_they_would_have_on_time(new_books: NewBooks, store: Engine) -> None:
    ends = [START + (number + 1) * HOUR for number in range(WINDOWS)]
    ledger = {"slice_by": "xmin", "columns": {"written_at": "occurred_at"}}
    contract = {"schedule": "0 * * * *", "partner_grace_seconds": 1800, "partner_grace_cap_seconds": 1800}
    with new_books(direction="topic_to_ledger", ledger=ledger, **contract) as on_time:
        late = replace(on_time, store=store)
        for books in (on_time, late):
            _judge(books, START, START + SECOND)
        in_time = []
        for number, end in enumerate(ends):
            _write_window(on_time, number)
            in_time.append(_judge(on_time, end, end + SECOND))
        now = datetime.now(UTC)
        caught_up = [_judge(late, end, now) for end in ends]
        for books, runs in ((on_time, in_time), (late, caught_up)):
            runs.append(_judge(books, now + HOUR - SECOND, now + HOUR))  # every deadline is over

        assert [run.cut.by_time for run in in_time] == [False] * (WINDOWS + 1)
        assert [run.cut.by_time for run in caught_up] == [True] * WINDOWS + [False]
        assert [_slices(run) for run in caught_up] == [_slices(run) for run in in_time]
        assert _outstanding(late) == _outstanding(on_time)
        assert Counter(_outstanding(late).values()) == {
            BreakClass.MISSING_IN_LEDGER: WINDOWS + 1,  # the last window's late one never came
            BreakClass.PHANTOM_IN_LEDGER: WINDOWS,
            BreakClass.DUPLICATE_IN_TOPIC_CAUSE_UNKNOWN: WINDOWS,
        }
        assert {run.result.verdict for run in caught_up[:-1]} <= {Verdict.BROKEN}


def test_a_ledger_that_does_not_say_when_is_in_the_first_late_window_and_nothing_else_changes(
    new_books: NewBooks, store: Engine
) -> None:
    ends = [START + (number + 1) * HOUR for number in range(3)]
    with new_books(direction="topic_to_ledger", schedule="0 * * * *", partner_grace_seconds=0) as books:
        _judge(books, START, START + SECOND)
        for number, end in enumerate(ends):
            _write(books, end - MINUTE, *(payment(f"{number}-{n}") for n in range(4)))
        runs = [_judge(books, end, datetime.now(UTC)) for end in ends]
    found = [run.result.figures for run in runs]
    assert [(one.topic_rows, one.ledger_rows) for one in found] == [(4, 12), (4, 0), (4, 0)]
    assert [one.matched_rows for one in found] == [4, 4, 4]
    assert not any(run.result.breaks for run in runs)
