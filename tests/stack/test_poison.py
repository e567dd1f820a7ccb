"""No record and no ledger row stops the books: it is counted, placed and told, in every way of reading."""

import json
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from typing import Any

import pytest
from confluent_kafka import Producer
from kafka import KafkaProducer
from pyspark.sql import SparkSession

from lab.faults.swollen_batch import GZIP, LZ4, ZSTD, produce_batch, swollen_batch
from lab.services.raw_producer import open_raw_admin
from tallystick.model.finding_names import BreakClass, Doubt, Notice
from tallystick.model.stored_run import StoredRun
from tallystick.model.verdict import Verdict
from tallystick.spark.spark_job import BY_CLIENT, PAIR_BY_PAIR, SCAN_VARIABLE
from tallystick_spark import reconcile_app
from tests.stack.live_books import TWO_LEGS, LiveBooks, both_legs, doubts, payment, payments

from .live import NewBooks

DEEP = b'{"note":' + b"[" * 2_000 + b"]" * 2_000 + b"}"
MICROSECONDS = 1_795_000_000_000_000
NANOSECONDS = MICROSECONDS * 1_000


def with_fields(**fields: object) -> bytes:
    return json.dumps(json.loads(payment("poison").value) | fields).encode()


POISON: Mapping[str, bytes] = {
    "nested more than 100 deep": payment("poison").value[:-1] + b',"note":' + b"[" * 2_000 + b"]" * 2_000 + b"}",
    "event_id holds a NUL": with_fields(event_id="a\0"),
    "payment_id holds a NUL": with_fields(payment_id="a\0"),
    "leg holds a NUL": with_fields(leg="payment\0"),
    "currency holds a NUL": with_fields(currency="E\0R"),
    "event_id has 6,000 characters": with_fields(event_id="k" * 6_000),
    "currency has 6,000 characters": with_fields(currency="c" * 6_000),
    "payment_id is empty": with_fields(payment_id=""),
    "amount_minor is no whole number": with_fields(amount_minor=2**63),
    "not one JSON object": payment("a").value + b" x",
    "not one JSON": payment("a").value + payment("behind it").value,
    "one JSON object": with_fields(event_id="\ud800"),
    "not UTF-8": with_fields().replace(b"EUR", b"caf\xe9"),
    "not UTF-8 (": with_fields().replace(b"EUR", b"caf\xff"),
    "not UTF-8 (byte": with_fields(event_id="KEY").replace(b"KEY", b"caf\xe9"),
    "event_id is no text": with_fields(event_id=1.5),
    "payment_id is missing": with_fields(payment_id=None),
}


class NoText(str):
    """A header name as a careless producer writes it."""

    def encode(self, encoding: str = "utf-8", errors: str = "strict") -> bytes:
        return b"caf\xe9"


def reread_in_every_way(books: LiveBooks, run: StoredRun, monkeypatch: pytest.MonkeyPatch) -> None:
    reconcile_app.reread_cut(books.store, books.contract, books.connections, run.cut, run.result)
    for way in (BY_CLIENT, PAIR_BY_PAIR):
        with monkeypatch.context() as patch:
            patch.setenv(SCAN_VARIABLE, way)
            reconcile_app.reread_cut(books.store, books.contract, books.connections, run.cut, run.result)


@pytest.mark.usefixtures("spark")
def test_a_record_of_a_time_that_spark_cannot_hold_is_judged_and_so_are_those_behind_it(new_books: NewBooks) -> None:
    """Kafka's client in Spark reads again up to that record."""
    with new_books(direction="topic_to_ledger") as books:
        books.configure_topic("payment", **{"message.timestamp.after.max.ms": str(2**63 - 1)})
        books.take_cut()
        books.both(payment("a"))
        _send_at(books, payment("far time").value, NANOSECONDS)
        books.both(payment("b"))
        books.post(payment("far time"), payment("phantom"))
        run = books.next_run()
        assert [(one.break_class, one.match_key) for one in run.result.breaks] == [
            (BreakClass.PHANTOM_IN_LEDGER, payment("phantom").event_id)
        ]
        assert (doubts(run), run.result.figures.matched_rows) == ([], 3)
        assert Notice.TIMESTAMP_SKEW in [one.notice for one in run.result.notices]


def test_no_record_stops_the_books_or_passes_for_another(
    new_books: NewBooks, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    with new_books(direction="topic_to_ledger", legs=TWO_LEGS) as books:
        books.configure_topic("payment", **{"message.timestamp.after.max.ms": str(2**63 - 1)})
        books.take_cut()
        books.both(*both_legs("a", "b"))
        for value in POISON.values():
            books.produce_raw(value)
        run = books.next_run()
        assert (run.result.verdict, run.result.breaks) == (Verdict.INCONCLUSIVE, ())
        assert doubts(run) == [Doubt.UNREADABLE_PAYLOAD]
        assert (run.result.figures.unreadable_records, run.result.figures.matched_rows) == (len(POISON), 4)
        sentence = run.result.doubts[0].sentence
        named = [problem for problem in POISON if problem in sentence]
        assert len(named) >= 5, sentence
        assert f"{books.contract.legs['payment']}[0] at " in sentence
        assert "kkkk" not in sentence
        reread_in_every_way(books, run, monkeypatch)

        # What no clock has, what is aborted, what has a header whose name is no text, and look-ups past all of it.
        producer = books.producer()
        for value in (DEEP, POISON["event_id holds a NUL"]):
            producer.begin_transaction()
            producer.produce(books.contract.legs["payment"], value=value, partition=0)
            producer.flush(30)
            producer.abort_transaction()
        books.both(*both_legs("c"))
        odd_header, odd_time = payment("odd header"), payment("odd time", -1)
        _send_with_odd_header(books, odd_header.value)
        _send_at(books, odd_time.value, MICROSECONDS)
        books.post(odd_header, payment("odd time", 2**63 - 1), *payments("p1", "p2", "p3", "p4", "p5", "p6"))
        broken = books.next_run()
        assert Counter(one.break_class for one in broken.result.breaks) == {
            BreakClass.AMOUNT_MISMATCH: 1,
            BreakClass.DUPLICATE_IN_TOPIC_CAUSE_UNKNOWN: 1,
            BreakClass.PHANTOM_IN_LEDGER: 6,
            BreakClass.TORN_TRANSACTION: 2,
        }
        assert max(one.amount_minor for one in broken.result.breaks) == 2**63 - 1
        assert doubts(broken) == []
        assert Notice.TIMESTAMP_SKEW in [one.notice for one in broken.result.notices]
        reread_in_every_way(books, broken, monkeypatch)

        # What would fill the memory of whoever opens it: just behind the slice of a window, and in the next one's.
        books.both(*both_legs("d"))
        cut = books.take_cut()
        with open_raw_admin(books.stack.bootstrap_servers) as admin:
            for codec, size in ((ZSTD, 2 << 30), (LZ4, 128 << 20), (GZIP, 8 << 20)):
                produce_batch(admin, books.contract.legs["payment"], 0, swollen_batch(codec, size - 100))
        assert books.judge(cut).result.verdict is Verdict.MATCHED
        books.both(*both_legs("e"))
        books.post(*payments("p7"))
        swollen = books.next_run()
        assert doubts(swollen) == [Doubt.UNREADABLE_PAYLOAD]
        assert [one.break_class for one in swollen.result.breaks] == [BreakClass.PHANTOM_IN_LEDGER]
        assert (swollen.result.figures.unreadable_records, swollen.result.figures.matched_rows) == (3, 2)
        assert swollen.result.doubts[0].sentence.count("bytes unpacks to more than") == 3
        reconcile_app.reread_cut(books.store, books.contract, books.connections, swollen.cut, swollen.result)

        books.both(*both_legs("f"))
        assert books.next_run().result.verdict is Verdict.MATCHED


def _send_with_odd_header(books: LiveBooks, value: bytes) -> None:
    """Twice, so that what told the copies apart is stored, too."""
    for session in (b"a\0", b"b\0"):
        headers = [(NoText("n"), b"1"), ("session", session), ("service\0", b"x")]
        plain = KafkaProducer(bootstrap_servers=books.stack.bootstrap_servers, enable_idempotence=False)
        with closing(plain) as producer:
            producer.send(books.contract.legs["payment"], value, partition=0, headers=headers)


def _send_at(books: LiveBooks, value: bytes, timestamp: int) -> None:
    producer = Producer({"bootstrap.servers": books.stack.bootstrap_servers})
    producer.produce(books.contract.legs["payment"], value=value, partition=0, timestamp=timestamp)
    assert producer.flush(30) == 0


@pytest.mark.parametrize("kind", ["numeric", "double precision"])
def test_no_ledger_row_stops_the_books_and_a_wrong_amount_is_called_one(
    new_books: NewBooks, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    ledger: dict[str, Any] = {"columns": {"match_key": "odd_key", "written_at": "occurred_at"}}
    with new_books(direction="topic_to_ledger", ledger=ledger) as books:
        books.ledger.execute(
            f"ALTER TABLE {books.table} ALTER amount_minor TYPE {kind}, ALTER amount_minor DROP NOT NULL, "
            "ADD COLUMN odd_key text"
        )
        books.take_cut()
        odd = {name: payment(name) for name in ("NaN", "1e30", "Infinity", "-Infinity", "9223372036854775808", "1.5")}
        odd["NULL"] = payment("NULL")
        books.produce(*odd.values(), payment("for ever"), payment("a"))
        for amount, event in odd.items():
            _insert(books, event.event_id, amount if amount == "NULL" else f"'{amount}'")
        _insert(books, payment("for ever").event_id, "1000", occurred_at="infinity")
        _insert(books, payment("a").event_id, "1000")
        _insert(books, "k" * 6_000, "1000")
        run = books.next_run()
        wrong = [one.match_key for one in run.result.breaks if one.break_class is BreakClass.AMOUNT_MISMATCH]
        assert sorted(wrong) == sorted(event.event_id for event in odd.values())
        assert len(run.result.breaks) == len(odd) + 1
        assert run.result.figures.matched_rows == 2
        reread_in_every_way(books, run, monkeypatch)


@pytest.mark.usefixtures("spark")
def test_no_amount_in_major_units_and_no_receipt_of_any_size_stops_the_books(new_books: NewBooks) -> None:
    """PostgreSQL refuses a whole statement for one number that no type of it holds."""
    sent = {"receipt_partition": "sent_partition", "receipt_offset": "sent_offset"}
    ledger = {"amount_unit": "major", "slice_by": "written_xid", "columns": {"match_key": "odd_key"} | sent}
    with new_books(direction="ledger_to_topic", ledger=ledger) as books:
        books.ledger.execute(
            f"ALTER TABLE {books.table} ALTER amount_minor TYPE numeric, ADD COLUMN odd_key text, "
            "ADD COLUMN sent_partition numeric, ADD COLUMN sent_offset numeric"
        )
        books.take_cut()
        huge = {f"9e{digits}": payment(f"9e{digits}") for digits in (131_071, 130_000, 19)}
        far = {place: payment(place) for place in (str(2**31), "9e30", "-1", "1.5", "NaN")}
        books.produce(*huge.values(), payment("a"))
        for amount, event in huge.items():
            _insert(books, event.event_id, amount)
        for event in (payment("a"), *far.values()):
            _insert(books, event.event_id, "10")
        for place, event in far.items():
            update = f"UPDATE {books.table} SET sent_partition = %s, sent_offset = %s WHERE odd_key = %s"
            books.ledger.execute(update, (place, place, event.event_id))
        run = books.next_run()
        found = {one.match_key: one.break_class for one in run.result.breaks}
        assert found == {
            **{event.event_id: BreakClass.AMOUNT_MISMATCH for event in huge.values()},
            **{event.event_id: BreakClass.MISSING_IN_TOPIC_NEVER_PRODUCED for event in far.values()},
        }
        assert run.result.figures.matched_rows == 1


def _insert(books: LiveBooks, key: str, amount: str, *, occurred_at: str = "now") -> None:
    books.ledger.execute(
        f"INSERT INTO {books.table} (event_id, payment_id, leg, side, amount_minor, currency, occurred_at, odd_key) "
        f"VALUES (gen_random_uuid(), gen_random_uuid(), 'payment', 'credit', {amount}, 'EUR', %s, %s)",
        (occurred_at, key),
    )
