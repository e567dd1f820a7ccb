"""Money to its last unit, order and time, read from a real log and a real ledger: each beside a twin that is none."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tallystick.contract.alerts import Severity
from tallystick.ledger.protocol import LedgerRefused
from tallystick.model.finding_names import BreakClass, Doubt, Notice
from tallystick.model.findings import NoticeFound
from tallystick.model.stored_run import StoredRun
from tallystick.model.verdict import Verdict
from tallystick.store.alerts.alert_store import firing_alerts
from tallystick.store.breaks.item_query_store import read_breaks
from tallystick.store.views.overview_store import read_overview, stakes_of_run
from tallystick.store.views.trend_store import read_trend
from tests.stack.live_books import LiveBooks, doubts, expected, kinds, payment

from .live import NewBooks

ABOVE_DOUBLES = 2**53 + 1


def notice(run: StoredRun, name: Notice) -> NoticeFound | None:
    return next((found for found in run.result.notices if found.notice is name), None)


# Minor units.


@pytest.fixture(scope="module")
def minor(new_books: NewBooks, spark: SparkSession) -> Iterator[StoredRun]:
    """Pairs that differ by little, and equal ones of the same size beside them."""
    with new_books(direction="topic_to_ledger") as books:
        books.take_cut()
        for name, in_topic, in_ledger in (
            ("hundred million", 10_000_000_000, 10_000_000_399),
            ("above doubles", ABOVE_DOUBLES, ABOVE_DOUBLES - 1),
            ("largest", 2**63 - 1, 2**63 - 2),
            ("sign", -500, 500),
            ("swapped 1", 1_000, 2_000),
            ("swapped 2", 2_000, 1_000),
        ):
            books.produce(payment(name, in_topic))
            books.post(payment(name, in_ledger))
        books.produce(payment("no currency in the ledger"), payment("alone in the topic", 777))
        books.post(payment("no currency in the ledger", currency=""), payment("alone in the ledger", 777))
        books.both(
            payment("equal hundred million", 10_000_000_399),
            payment("equal above doubles", ABOVE_DOUBLES),
            payment("equal largest", 2**63 - 1),
            payment("equal and negative", -500),
        )
        yield books.next_run()


def test_amounts_that_differ_by_one_unit_are_mismatches_and_equal_ones_are_not(minor: StoredRun) -> None:
    assert kinds(minor) == expected(
        *(
            ("amount_mismatch", payment(name))
            for name in ("hundred million", "above doubles", "largest", "sign", "swapped 1", "swapped 2")
        ),
        ("currency_mismatch", payment("no currency in the ledger")),
        ("missing_in_ledger", payment("alone in the topic")),
        ("phantom_in_ledger", payment("alone in the ledger")),
    )
    at_stake = {one.transaction_key: one.amount_minor for one in minor.result.breaks}
    for name, difference in (("hundred million", 399), ("above doubles", 1), ("largest", 1), ("sign", 1_000)):
        assert at_stake[payment(name).payment_id] == difference
    assert minor.result.figures.matched_rows == 4
    assert minor.result.figures.matched_money["EUR"] == 10_000_000_399 + ABOVE_DOUBLES + 2**63 - 1 - 500


def test_errors_that_do_not_cancel_out_to_the_last_unit_are_not_told_as_such(minor: StoredRun) -> None:
    assert notice(minor, Notice.OFFSETTING_ERRORS) is None


def test_equal_totals_of_different_items_are_breaks_and_told(new_books: NewBooks, spark: SparkSession) -> None:
    with new_books(direction="topic_to_ledger") as books:
        books.take_cut()
        books.produce(payment("swapped 1", 1_000), payment("swapped 2", 2_000), payment("in the topic", 777))
        books.post(payment("swapped 1", 2_000), payment("swapped 2", 1_000), payment("in the ledger", 777))
        books.both(payment("equal"))
        run = books.next_run()
        found = notice(run, Notice.OFFSETTING_ERRORS)
        assert found is not None
        assert (found.count, found.details["moved_minor"]) == (4, {"EUR": 1_777})
        assert found.details["topic_total_minor"] == found.details["ledger_total_minor"] == {"EUR": 4_777}
        assert len(run.result.breaks) == 4

        books.both(payment("equal totals of equal items"))
        assert notice(books.next_run(), Notice.OFFSETTING_ERRORS) is None


# Major units, and a case that does not count.


@dataclass(frozen=True)
class Written:
    """What an event's JSON says, and what the ledger's numeric column does."""

    name: str
    in_topic: tuple[str, str]
    in_ledger: tuple[str, str]


MAJOR = (
    Written("text", ('"12.50"', "EUR"), ("12.50", "EUR")),
    Written("number of another scale", ("12.5", "EUR"), ("12.50", "EUR")),
    Written("above doubles", ("90071992547409.93", "EUR"), ("90071992547409.93", "EUR")),
    Written("negative", ("-0.01", "EUR"), ("-0.01", "EUR")),
    Written("yen", ("500", "JPY"), ("500", "JPY")),
    Written("dinar", ('"1.234"', "BHD"), ("1.234", "BHD")),
    Written("another case", ("7.00", "eur"), ("7.00", "EUR")),
)
UNEQUAL = (
    Written("hundred million", ("100000000.00", "EUR"), ("100000003.99", "EUR")),
    Written("big by one", ("90071992547409.93", "EUR"), ("90071992547409.92", "EUR")),
)
NOT_WHOLE_ROW = Written("a third of a cent", ("3.33", "EUR"), ("3.333", "EUR"))


@pytest.fixture(scope="module")
def major(new_books: NewBooks, spark: SparkSession) -> Iterator[LiveBooks]:
    """Books in major units on both sides. The baseline is taken."""
    with new_books(
        direction="topic_to_ledger",
        event={"amount_minor": "amount", "amount_unit": "major"},
        ledger={"columns": {"amount_minor": "amount"}, "amount_unit": "major"},
        currency_case="ignored",
    ) as books:
        books.ledger.execute(f"ALTER TABLE {books.table} ADD COLUMN amount numeric")
        books.take_cut()
        yield books


def write(books: LiveBooks, *items: Written) -> None:
    """Put each item on both sides, as it is written."""
    for item in items:
        event, (amount, currency) = payment(item.name), item.in_topic
        books.produce_raw(
            f'{{"event_id":"{event.event_id}","payment_id":"{event.payment_id}","leg":"payment",'
            f'"amount":{amount},"currency":"{currency}"}}'.encode()
        )
        books.ledger.execute(
            f"INSERT INTO {books.table} (event_id, payment_id, leg, side, amount_minor, amount, currency) "
            "VALUES (%s, %s, 'payment', 'credit', 0, %s::numeric, %s)",
            (event.event_id, event.payment_id, *item.in_ledger),
        )


def test_major_amounts_are_compared_digit_by_digit_and_in_the_digits_of_their_currency(major: LiveBooks) -> None:
    write(major, *MAJOR)
    run = major.next_run()
    assert (run.result.verdict, run.result.breaks, doubts(run)) == (Verdict.MATCHED, (), [])
    assert run.result.figures.matched_money == {
        "BHD": 1_234,
        "EUR": 1_250 + 1_250 + ABOVE_DOUBLES - 1 + 700,
        "JPY": 500,
    }
    found = notice(run, Notice.REPRESENTATION_DIFFERS)
    assert found is not None
    assert found.count == 1
    assert major.judge_again(run).digest == run.result.digest

    write(major, *UNEQUAL, NOT_WHOLE_ROW)
    broken = major.next_run()
    assert kinds(broken) == expected(
        *(("amount_mismatch", payment(item.name)) for item in (*UNEQUAL, NOT_WHOLE_ROW)),
    )
    assert sorted(one.amount_minor for one in broken.result.breaks) == [1, 333, 399]

    major.produce_raw(b'{"event_id":"e","payment_id":"p","leg":"payment","amount":12.345,"currency":"EUR"}')
    write(major, Written("beside it", ("1.00", "EUR"), ("1.00", "EUR")))
    assert doubts(major.next_run()) == [Doubt.UNREADABLE_PAYLOAD]


@pytest.mark.parametrize("kind", ["double precision", "real", "text"])
def test_a_column_that_does_not_hold_exact_money_is_refused_before_a_cut_is_made(
    new_books: NewBooks, spark: SparkSession, kind: str
) -> None:
    with new_books(
        direction="topic_to_ledger", ledger={"columns": {"amount_minor": "amount"}, "amount_unit": "major"}
    ) as books:
        books.ledger.execute(f"ALTER TABLE {books.table} ADD COLUMN amount {kind}")
        with pytest.raises(LedgerRefused, match=r"amount|mod|operator"):
            books.take_cut()


# Order and time.


def numbered(books: LiveBooks, name: str, account: str, number: int, *, partition: int = 0, **record: Any) -> None:
    """An event with a sequence, and its row."""
    event = payment(name)
    value = json.loads(event.value) | {"account": account, "number": number}
    producer = books.producer()
    producer.begin_transaction()
    producer.produce(books.contract.legs["payment"], value=json.dumps(value).encode(), partition=partition, **record)
    producer.flush(30)
    producer.commit_transaction()
    books.post(event)


def at(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)


def test_order_time_and_isolation_are_told(new_books: NewBooks, spark: SparkSession) -> None:
    with new_books(
        direction="topic_to_ledger",
        event={"ordering_key": "account", "sequence": "number"},
        ledger={"consumer_isolation": "read_uncommitted"},
        timestamp_tolerance_seconds=600,
    ) as books:
        books.take_cut()
        numbered(books, "first", "a", 1)
        numbered(books, "of another account", "b", 9)
        numbered(books, "second", "a", 2)
        numbered(books, "on another partition", "a", 1, partition=1)
        numbered(books, "a little ahead", "a", 3, timestamp=at(datetime.now(UTC) + timedelta(seconds=500)))
        clean = books.next_run()
        assert (clean.result.verdict, clean.result.breaks) == (Verdict.MATCHED, ())
        assert notice(clean, Notice.TIMESTAMP_SKEW) is None
        reader = notice(clean, Notice.UNFILTERED_READER)
        assert reader is not None
        assert "no aborted record" in reader.sentence

        numbered(books, "third", "a", 5)
        numbered(books, "overtaken", "a", 4)
        numbered(books, "from the future", "a", 6, timestamp=at(datetime.now(UTC) + timedelta(minutes=30)))
        numbered(books, "from the past", "a", 7, timestamp=at(datetime.now(UTC) - timedelta(days=1)), partition=1)
        books.produce(payment("undone"), abort=True)
        run = books.next_run()
        assert kinds(run) == expected(("out_of_order_in_topic", payment("overtaken")))
        skew, reader = notice(run, Notice.TIMESTAMP_SKEW), notice(run, Notice.UNFILTERED_READER)
        assert skew is not None
        assert [(part["partition"], part["early"], part["late"]) for part in skew.details["partitions"]] == [
            (0, 0, 1),
            (1, 1, 0),
        ]
        assert reader is not None
        assert reader.details["aborted_records"] == 1
        assert books.judge_again(run).digest == run.result.digest

        numbered(books, "fourth", "a", 8)
        after = books.next_run()
        assert (after.result.verdict, after.result.breaks) == (Verdict.MATCHED, ())


def test_a_missing_payment_and_a_missing_refund_of_that_size_are_both_at_stake(
    new_books: NewBooks, spark: SparkSession
) -> None:
    alerts = {"critical_at_minor": {"EUR": 5_000_000}}
    with new_books(direction="ledger_to_topic", alert=alerts) as books:
        books.take_cut()
        books.both(payment("equal"))
        refund, largest = payment("refund", -5_000_000), payment("the smallest bigint", -(2**63))
        books.post(payment("payment", 4_000_000), refund)
        run = books.next_run()
        name, found = books.contract.name, BreakClass.MISSING_IN_TOPIC_NEVER_PRODUCED
        assert kinds(run) == expected((found, payment("payment")), (found, refund))
        alert = firing_alerts(books.store, name)[found]
        assert alert.severity is Severity.CRITICAL
        assert "90,000.00 EUR at stake, of it 50,000.00 EUR in negative amounts" in alert.summary
        assert [one.amount_minor for one in stakes_of_run(books.store, name, run.cut.n)] == [9_000_000]
        assert read_trend(books.store, name, windows=1)[0].money == {"EUR": 9_000_000}
        book = read_overview(books.store, name, windows=1)
        assert book is not None
        (standing,) = (one.items for one in book.standing)
        assert (standing.count, standing.amount_minor) == (2, 9_000_000)
        shown = read_breaks(books.store, name, run.cut.n, break_class=None, after="").breaks
        assert [one.amount_minor for one in shown] == [-5_000_000, 4_000_000]

        books.post(largest)
        assert books.next_run().result.breaks[0].amount_minor == -(2**63)
        assert stakes_of_run(books.store, name, run.cut.n + 1)[0].amount_minor == 2**63
