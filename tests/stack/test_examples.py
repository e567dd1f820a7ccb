"""The contracts of docs/examples.md, each on records and rows as its example's own documentation has them."""

import json
import os
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from confluent_kafka import Producer

from lab.servers.process import REPOSITORY
from tallystick.connections.connections import environment_variable
from tallystick.model.verdict import Verdict
from tallystick.store.runs.run_store import read_run
from tests.stack.live_books import LiveBooks

from .live import NewBooks, run_contract

EXAMPLES = REPOSITORY / "docs" / "examples"
CENTS = 1099

pytestmark = [pytest.mark.usefixtures("spark"), pytest.mark.timeout(600)]


@dataclass(frozen=True)
class Example:
    """One of them: name of its file, and what its systems write for the event of a number."""

    name: str
    folder: Path

    @property
    def document(self) -> dict[str, Any]:
        loaded: dict[str, Any] = yaml.safe_load((EXAMPLES / f"{self.name}.yaml").read_text())
        return loaded

    def key(self, number: int) -> str:
        return f"ch_{number}" if self.name == "stripe_settlement" else str(uuid.UUID(int=number))

    def record(self, number: int) -> dict[str, Any]:
        """What the producer sends: key, value and headers."""
        match self.name:
            case "debezium_outbox":
                text = json.dumps({"id": number, "lineItems": [{"totalPrice": 39.98}], "customerId": 123})
                return {"key": str(number), "value": json.dumps(text), "headers": [("id", self.key(number))]}
            case "cloudevents_binary":
                attributes = {"specversion": "1.0", "type": "order", "source": "/shop", "id": self.key(number)}
                headers = {f"ce_{name}": said for name, said in (attributes | {"subject": str(number)}).items()}
                value = json.dumps({"amount": "10.99", "items": [{"amount": "10.99"}]})
                return {"value": value, "headers": [*headers.items(), ("content-type", "application/json")]}
            case _:
                charge = {"id": self.key(number), "object": "charge", "amount": CENTS, "currency": "usd"}
                event = {"id": f"evt_{number}", "type": "charge.succeeded", "data": {"object": charge}}
                return {"value": json.dumps(event)}

    def make_table(self, books: LiveBooks) -> None:
        for statement in _TABLES.get(self.name, ()):
            books.ledger.execute(statement)

    def add_row(self, books: LiveBooks, number: int) -> None:
        if self.name == "stripe_settlement":
            row = {"id": f"txn_{number}", "source_id": self.key(number), "amount": CENTS, "currency": "usd", "fee": 62}
            lake = self.folder / "stripe" / "balance_transactions"
            lake.mkdir(parents=True, exist_ok=True)
            hidden = lake / f".{number}.parquet"
            pq.write_table(pa.Table.from_pylist([row]), hidden)
            hidden.rename(lake / f"{number}.parquet")
            return
        books.ledger.execute(_ROWS[self.name], [self.key(number), str(number)])


_TABLES: dict[str, Sequence[str]] = {
    "debezium_outbox": (
        "CREATE SCHEMA inventory",
        "CREATE TABLE inventory.outboxevent (id uuid PRIMARY KEY, aggregatetype varchar(255) NOT NULL, "
        "aggregateid varchar(255) NOT NULL, type varchar(255) NOT NULL, payload jsonb)",
    ),
    "cloudevents_binary": (
        "CREATE SCHEMA IF NOT EXISTS shop",
        "CREATE TABLE shop.orders (event_id uuid, order_id text PRIMARY KEY, total numeric(12, 2))",
    ),
}
_ROWS = {
    "debezium_outbox": "INSERT INTO inventory.outboxevent VALUES (%s, 'order', %s, 'OrderCreated', '{}')",
    "cloudevents_binary": "INSERT INTO shop.orders VALUES (%s, %s, 10.99)",
}


@pytest.fixture(params=["debezium_outbox", "cloudevents_binary", "stripe_settlement"])
def example(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Example:
    (tmp_path / "stripe" / "balance_transactions").mkdir(parents=True)
    monkeypatch.setenv(environment_variable("stripe_files"), str(tmp_path))
    return Example(request.param, tmp_path)


@pytest.fixture
def books(example: Example, new_books: NewBooks, monkeypatch: pytest.MonkeyPatch) -> Iterator[LiveBooks]:
    """The example as it stands, but for its name, its topic and how long it waits."""
    document = example.document
    kept = {name: document[name] for name in ("event", "currency_case") if name in document}
    ledger = document["ledger"] | ({"quiet_seconds": 0} if document["ledger"].get("kind") == "parquet" else {})
    plain = {} if document["ledger"].get("where") else {"where": None}
    monkeypatch.setenv(environment_variable("shop_ledger"), os.environ[environment_variable("ledger_billing")])
    with new_books(
        direction=document["direction"], legs=tuple(document["legs"]), ledger={**plain, **ledger}, **kept
    ) as opened:
        example.make_table(opened)
        try:
            yield opened
        finally:
            opened.ledger.execute("DROP SCHEMA IF EXISTS inventory CASCADE")
            opened.ledger.execute("DROP TABLE IF EXISTS shop.orders")  # the schema may be the walk's


def send(books: LiveBooks, example: Example, *numbers: int) -> None:
    """As a producer that is not changed sends: plain, acknowledged by all."""
    producer = Producer({"bootstrap.servers": books.stack.bootstrap_servers, "acks": "all"})
    for number in numbers:
        producer.produce(books.contract.topics[0], **example.record(number))
    assert producer.flush(30) == 0


def test_its_contract_finds_what_is_lost_and_doubled_and_nothing_else(
    books: LiveBooks, example: Example, warm_spark: dict[str, str]
) -> None:
    books.take_cut()
    send(books, example, 1, 2, 3)
    for number in (1, 2, 3):
        example.add_row(books, number)
    run = books.next_run()
    assert (run.result.verdict, run.result.figures.matched_rows) == (Verdict.MATCHED, 3)

    is_outbox = example.name == "debezium_outbox"
    send(books, example, *((5, 1) if is_outbox else (4, 5, 1)))
    for number in (4, 5) if is_outbox else (5,):
        example.add_row(books, number)
    code, _, stderr = run_contract(books, Path(os.environ["TALLYSTICK_ARTIFACTS_DIR"]), warm_spark)
    assert code == 1, stderr
    stored = read_run(books.store, books.contract.name, 2)
    assert stored is not None
    found = {(str(one.break_class).partition("_in_")[0], one.match_key) for one in stored.result.breaks}
    assert found == {("missing", example.key(4)), ("duplicate", example.key(1))}
    assert stored.result.figures.matched_rows == 1
    assert stored.result.doubts == ()
