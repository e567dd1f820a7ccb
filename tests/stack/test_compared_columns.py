"""Columns that are compared besides money, with every kind of ledger: what differs is named, by its rule."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tallystick.model.open_item import ItemState
from tallystick.model.stored_run import StoredRun
from tallystick.model.verdict import Verdict
from tallystick.spark.spark_job import BY_CLIENT, PAIR_BY_PAIR, SCAN_VARIABLE
from tests.stack.live_books import Event, LiveBooks, doubts, payment

from .iceberg_table import IcebergSink
from .ledger_kinds import add_file, ledger_of_kind
from .live import NewBooks

pytestmark = pytest.mark.usefixtures("spark")

COMPARE = {
    "status": "exact",
    "batch": {"exact": "number"},
    "fee": {"abs": 1},
    "booked_at": {"within": "2s"},
    "note": {"exact": "text", "event": "meta.note", "column": '"Note"', "shown": False},
    "internal": "ignore",
}
EVENT = {
    "status": "paid",
    "batch": 7.0,
    "fee": "1.50",
    "booked_at": "2026-01-01T02:00:00+02:00",
    "meta": {"note": "café"},
}
"""What an event says, unless a test says otherwise."""
ROW = {
    "status": "paid",
    "batch": Decimal("7"),
    "fee": Decimal("1.5"),
    "booked_at": datetime(2026, 1, 1, tzinfo=UTC),
    "Note": "café",
}
"""The same in a ledger's types."""
SHAPE = pa.schema(
    [
        *((name, pa.string()) for name in ("entry_id", "event_id", "payment_id", "leg")),
        ("amount_minor", pa.int64()),
        ("currency", pa.string()),
        ("status", pa.string()),
        ("batch", pa.decimal128(12, 2)),
        ("fee", pa.decimal128(12, 4)),
        ("booked_at", pa.timestamp("us", "UTC")),
        ("Note", pa.string()),
    ]
)


def arrow_row(event: Event, said: Mapping[str, Any]) -> pa.Table:
    money = {"amount_minor": event.amount_minor, "currency": event.currency}
    keys = {"event_id": event.event_id, "payment_id": event.payment_id, "leg": event.leg}
    return pa.Table.from_pylist([{"entry_id": f"row of {event.payment}", **keys, **money, **ROW, **said}], schema=SHAPE)


@dataclass(frozen=True)
class ComparedBooks:
    """Books whose events and rows say more than money. ways: in which a cut of theirs is read again. post: puts one row
    into the ledger.
    """

    books: LiveBooks
    ways: tuple[str, ...]
    post: Callable[[Event, Mapping[str, Any]], None]

    def produce(self, name: str, **said: Any) -> None:
        event = payment(name)
        with self.books.transaction() as producer:
            value = json.dumps(json.loads(event.value) | EVENT | said)
            producer.produce(self.books.contract.topics[0], key=event.payment_id, value=value)

    def row(self, name: str, **said: Any) -> None:
        self.post(payment(name), said)

    def both(self, name: str, *, in_topic: Mapping[str, Any] | None = None, **in_ledger: Any) -> None:
        self.produce(name, **(in_topic or {}))
        self.row(name, **in_ledger)


WRITTEN_AT = 1_767_225_600_123


@pytest.fixture
def beside(new_books: NewBooks) -> Iterator[LiveBooks]:
    """Books that are compared by what stands beside an event's value, too."""
    compare = {
        "booked_at": {"within": "2s", "event": {"record": "timestamp"}},
        "made_by": {"exact": "text", "event": {"header": "source"}},
        "account": {"exact": "text", "event": {"record": "key"}, "column": "payment_id"},
    }
    with new_books(direction="topic_to_ledger", compare=compare) as books:
        books.ledger.execute(f"ALTER TABLE {books.table} ADD COLUMN booked_at timestamptz, ADD COLUMN made_by text")
        yield books


@pytest.mark.parametrize("by_client", [False, True])
def test_a_records_timestamp_header_and_key_are_compared_in_every_way_of_reading(
    beside: LiveBooks, monkeypatch: pytest.MonkeyPatch, by_client: bool
) -> None:
    books, second = beside, timedelta(seconds=1)
    if by_client:
        monkeypatch.setenv(SCAN_VARIABLE, "by_client")
    written = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(milliseconds=123)
    books.take_cut()
    for name, booked, source in (
        ("agrees", written + 2 * second, b"relay"),
        ("late", written + 3 * second, b"relay"),
        ("other", written, b"Relay"),
        ("nobody", written, None),
    ):
        event = payment(name)
        with books.transaction() as producer:
            producer.produce(
                books.contract.topics[0],
                key=event.payment_id,
                value=event.value,
                timestamp=WRITTEN_AT,
                headers=[("source", source)],
            )
        books.post(event)
        books.ledger.execute(
            f"UPDATE {books.table} SET booked_at = %s, made_by = 'relay' WHERE made_by IS NULL", [booked]
        )
    run = books.next_run()
    assert differing(run) == keys(late=["booked_at"], other=["made_by"], nobody=["made_by"])
    assert books.judge_again(run).digest == run.result.digest
    (late,) = [one for one in run.result.breaks if one.match_key == payment("late").event_id]
    (column,) = late.evidence["columns"]
    assert column["topic"] == "2026-01-01T00:00:00.123000Z"


def differing(run: StoredRun) -> dict[str, list[str]]:
    """Match key of each column mismatch to the columns that it names; no other break is there."""
    assert {str(one.break_class) for one in run.result.breaks} <= {"column_mismatch"}
    return {one.match_key: [said["column"] for said in one.evidence["columns"]] for one in run.result.breaks}


def keys(**by_name: list[str]) -> dict[str, list[str]]:
    return {payment(name).event_id: columns for name, columns in by_name.items()}


def post_sql(books: LiveBooks) -> Callable[[Event, Mapping[str, Any]], None]:
    books.ledger.execute(
        f"ALTER TABLE {books.table} ADD COLUMN status text, ADD COLUMN batch numeric, ADD COLUMN fee numeric(12, 4), "
        'ADD COLUMN booked_at timestamptz, ADD COLUMN "Note" text'
    )

    def post(event: Event, said: Mapping[str, Any]) -> None:
        with books.ledger.transaction():
            books.post(event)
            values = ROW | dict(said)
            named = ", ".join(f'"{name}" = %s' for name in values)
            where = "event_id = %s AND status IS NULL"
            books.ledger.execute(f"UPDATE {books.table} SET {named} WHERE {where}", [*values.values(), event.event_id])

    return post


@pytest.fixture(params=["postgres", "jdbc", "parquet", "iceberg"])
def compared(
    request: pytest.FixtureRequest, new_books: NewBooks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ComparedBooks]:
    kind, sink = request.param, IcebergSink(tmp_path)
    ledger = ledger_of_kind(kind, sink, shape=SHAPE, monkeypatch=monkeypatch)

    def file(event: Event, said: Mapping[str, Any]) -> None:
        add_file(sink, event.payment, arrow_row(event, said))

    def append(event: Event, said: Mapping[str, Any]) -> None:
        sink.table.append(arrow_row(event, said))

    with new_books(direction="topic_to_ledger", compare=COMPARE, ledger=ledger) as books:
        ways = (BY_CLIENT, PAIR_BY_PAIR) if kind == "postgres" else ()
        yield ComparedBooks(books, ways, {"parquet": file, "iceberg": append}.get(kind) or post_sql(books))


def test_each_column_is_compared_by_its_rule_in_every_way_of_reading(
    compared: ComparedBooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    books = compared.books
    books.take_cut()
    compared.both("same")
    compared.both("written otherwise", in_topic={"batch": "7.00", "fee": 1.5, "booked_at": "2026-01-01"})
    compared.both("within", in_topic={"fee": 2.5, "booked_at": "2026-01-01T00:00:02Z"})
    run = books.next_run()
    assert (run.result.verdict, run.result.figures.matched_rows, doubts(run)) == (Verdict.MATCHED, 3, [])

    compared.both("right")
    compared.both("status", in_topic={"status": "Paid"})
    compared.both("batch", in_topic={"batch": 8})
    compared.both("beyond", in_topic={"fee": 2.5001, "booked_at": "2026-01-01T00:00:02.000001Z"})
    compared.both("nothing", in_topic={"status": None}, Note=None)
    compared.both("accents", Note="cafe\u0301")
    compared.both("absent alike", in_topic={"status": None, "meta": {}}, status=None, Note=None)
    run = books.next_run()
    assert differing(run) == keys(
        status=["status"], batch=["batch"], beyond=["booked_at", "fee"], nothing=["note", "status"], accents=["note"]
    )
    assert (run.result.figures.matched_rows, doubts(run)) == (2, [])
    assert books.judge_again(run).digest == run.result.digest
    for way in compared.ways:
        monkeypatch.setenv(SCAN_VARIABLE, way)
        assert books.judge_again(run).digest == run.result.digest, way


def test_an_event_that_waited_for_its_row_is_compared_as_it_was_read(compared: ComparedBooks) -> None:
    books = compared.books
    books.take_cut()
    compared.both("first")
    for name in ("near", "far"):
        compared.produce(name, fee="2.4", status="paid" if name == "near" else "open")
    waiting = books.take_cut()
    for name in ("near", "far"):
        compared.row(name)
    books.judge(waiting)
    run = books.next_run()
    assert differing(run) == keys(far=["status"])
    assert {item.match_key for item in run.result.items if item.state is ItemState.CLEARED} == {
        payment("near").event_id
    }


def test_an_input_and_its_output_are_compared_at_the_same_paths(new_books: NewBooks) -> None:
    compare = {"status": "exact", "fee": {"abs": 1, "event": "data.fee"}}
    with new_books(direction="topic_to_topic", compare=compare) as books:
        books.take_cut()

        def produce(topic: str, writer: str, name: str, **said: Any) -> None:
            with books.transaction(writer=writer) as producer:
                value = json.dumps(json.loads(payment(name).value) | {"status": "paid", "data": {"fee": 1}} | said)
                producer.produce(topic, key=payment(name).payment_id, value=value)

        requests, outputs = books.contract.input_topics[0], books.contract.topics[0]
        for name in ("same", "near", "far", "other"):
            produce(requests, "client", name)
        produce(outputs, "writer", "same")
        produce(outputs, "writer", "near", data={"fee": 2})
        produce(outputs, "writer", "far", data={"fee": 2.1})
        produce(outputs, "writer", "other", status="open")
        run = books.next_run()
        assert differing(run) == keys(far=["fee"], other=["status"])
        assert run.result.figures.matched_rows == 2
