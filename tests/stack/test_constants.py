"""A currency and a leg that the contract states for all events and rows, with every kind of ledger."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tallystick.connections.connections import environment_variable
from tallystick.model.stored_run import StoredRun
from tallystick.model.verdict import Verdict
from tests.stack.live_books import Event, LiveBooks, doubts, payment, payments

from .iceberg_table import NAME, IcebergSink
from .ledger_files import write_file
from .live import NewBooks

pytestmark = pytest.mark.usefixtures("spark")

ELSEWHERE = "ledger_elsewhere"
STATED = {"currency": {"constant": "JPY"}, "leg": {"constant": "payment"}, "transaction_key": "event_id"}
"""What columns and fields of those names say is another currency: whoever reads them is found out."""


@dataclass(frozen=True)
class StatedBooks:
    """Books and how rows come into their ledger."""

    books: LiveBooks
    post: Callable[..., None]

    def produce(self, *events: Event) -> None:
        """Events that say neither leg nor currency nor transaction."""
        with self.books.transaction() as producer:
            for event in events:
                value = json.dumps({"event_id": event.event_id, "amount_minor": event.amount_minor})
                producer.produce(self.books.contract.topics[0], key=event.payment_id, value=value)


def found(run: StoredRun) -> list[tuple[str, str]]:
    """Class and match key of each break."""
    return sorted((str(one.break_class), one.match_key) for one in run.result.breaks)


def breaks(*named: tuple[str, str]) -> list[tuple[str, str]]:
    """The same of classes and names of payments."""
    return sorted((name, payment(key).event_id) for name, key in named)


@pytest.fixture(params=["postgres", "jdbc", "parquet", "iceberg"])
def stated(
    request: pytest.FixtureRequest, new_books: NewBooks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[StatedBooks]:
    sink = IcebergSink(tmp_path)
    ledger: dict[str, Any] = {
        "postgres": {},
        "jdbc": {"kind": "jdbc", "order_by": "entry_id", "overlap": 0},
        "parquet": {"connection": ELSEWHERE, "table": "billing.posting", "quiet_seconds": 0, "where": None},
        "iceberg": {"connection": ELSEWHERE, "table": NAME, "where": None},
    }[request.param]
    if request.param == "parquet":
        (tmp_path / "lake" / "billing" / "posting").mkdir(parents=True)
        monkeypatch.setenv(environment_variable(ELSEWHERE), str(tmp_path / "lake"))
    elif request.param == "iceberg":
        sink.make()
        monkeypatch.setenv(environment_variable(ELSEWHERE), sink.address)
    section = {"kind": request.param, **ledger, "columns": STATED}
    with new_books(direction="topic_to_ledger", event=STATED, ledger=section) as books:

        def file(*events: Event) -> None:
            write_file(books, f"{events[0].payment}.parquet", *events)

        post: Callable[..., None] = {"parquet": file, "iceberg": sink.append}.get(request.param, books.post)
        yield StatedBooks(books, post)


def test_what_is_wrong_is_found_in_the_stated_currency_and_what_is_right_is_none(stated: StatedBooks) -> None:
    books = stated.books
    books.take_cut()
    stated.produce(*payments("a", "b"))
    stated.post(*payments("a", "b"))
    run = books.next_run()
    assert (run.result.verdict, run.result.figures.matched_rows, doubts(run)) == (Verdict.MATCHED, 2, [])

    stated.produce(*payments("c", "lost"), payment("wrong", 900), payment("a"))
    stated.post(payment("c"), payment("invented"), payment("wrong", 901), payment("b"))
    run = books.next_run()
    assert found(run) == breaks(
        ("missing_in_ledger", "lost"),
        ("amount_mismatch", "wrong"),
        ("phantom_in_ledger", "invented"),
        ("duplicate_in_topic_new_session", "a"),
        ("duplicate_in_ledger", "b"),
    )
    assert ({one.currency for one in run.result.breaks}, doubts(run)) == ({"JPY"}, [])
    assert books.judge_again(run).digest == run.result.digest


def test_a_row_in_another_currency_than_the_events_is_a_break(new_books: NewBooks) -> None:
    with new_books(direction="topic_to_ledger", event={"currency": {"constant": "JPY"}}) as books:
        books.take_cut()
        books.both(payment("a"))
        books.produce(payment("b"))
        books.post(payment("b", currency="JPY"))
        run = books.next_run()
        assert found(run) == breaks(("currency_mismatch", "a"))
        assert run.result.figures.matched_rows == 1


def test_inputs_that_say_no_currency_are_of_the_stated_one(new_books: NewBooks) -> None:
    inputs = {"event": {"currency": {"constant": "EUR"}}}
    with new_books(direction="topic_to_topic", ledger=inputs) as books:
        books.take_cut()
        with books.transaction(writer="client") as client:
            for one in payments("a", "b", "lost"):
                document = {name: value for name, value in json.loads(one.value).items() if name != "currency"}
                client.produce(books.contract.input_topics[0], key=one.payment_id, value=json.dumps(document))
        books.produce(payment("a"), payment("b", currency="USD"))
        run = books.next_run()
        assert found(run) == breaks(("currency_mismatch", "b"), ("missing_in_topic_never_produced", "lost"))
        assert run.result.figures.matched_rows == 1


QUOTED = {"row_id": '"rowId"', "match_key": '"Event-Id"', "amount_minor": '"amount.minor"', "written_at": '"writtenAt"'}


@pytest.mark.parametrize("kind", [{}, {"kind": "jdbc", "order_by": '"rowId"', "overlap": 0}], ids=["postgres", "jdbc"])
def test_a_table_and_columns_in_quotes_are_read_by_their_own_names(new_books: NewBooks, kind: dict[str, Any]) -> None:
    table = '"Shop of ours"."Order.Rows"'
    ledger = {
        **kind,
        "table": table,
        "where": "\"Side\" = 'in'",
        "columns": STATED | {"transaction_key": '"Event-Id"'} | QUOTED,
    }
    with new_books(direction="topic_to_ledger", event=STATED, ledger=ledger) as books:
        books.ledger.execute('CREATE SCHEMA "Shop of ours"')
        books.ledger.execute(
            f'CREATE TABLE {table} ("rowId" bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, "Event-Id" uuid, '
            '"amount.minor" bigint, "Side" text, "writtenAt" timestamptz DEFAULT now())'
        )
        try:
            books.take_cut()
            StatedBooks(books, books.post).produce(*payments("a", "lost"))
            for one in payments("a", "invented"):
                books.ledger.execute(
                    f'INSERT INTO {table} ("Event-Id", "amount.minor", "Side") VALUES (%s, %s, %s)',
                    [one.event_id, one.amount_minor, "in"],
                )
            run = books.next_run()
        finally:
            books.ledger.execute('DROP SCHEMA "Shop of ours" CASCADE')
        assert found(run) == breaks(("missing_in_ledger", "lost"), ("phantom_in_ledger", "invented"))
        assert (run.result.figures.matched_rows, doubts(run)) == (1, [])
