"""Events in other formats than JSON, through `tallystick run` and by each reader alike, with a real registry.

One file, since one registry serves all of its tests.
"""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from pyspark.sql import SparkSession

from lab.servers.process import REPOSITORY
from lab.servers.schema_registry import SchemaRegistry
from tallystick.formats.schema_cache import RegistryUnreachable
from tallystick.model.verdict import Verdict
from tallystick.store.runs.run_store import read_run
from tests.avro_values import changed, prefixed, record_of, written
from tests.protobuf_values import written as written_proto
from tests.stack.live_books import (
    TWO_LEGS,
    Event,
    LiveBooks,
    both_legs,
    doubts,
    expected,
    invoice,
    kinds,
    payment,
    payments,
)

from .live import NewBooks, run_contract

REGISTRY = "registry_billing"
VARIABLE = f"TALLYSTICK_CONN_{REGISTRY.upper()}"

pytestmark = pytest.mark.timeout(900)

Serialize = Callable[[Event], bytes]


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SchemaRegistry]:
    running = SchemaRegistry(tmp_path_factory.mktemp("registry"))
    try:
        running.start()
        yield running
    finally:
        running.stop()


@pytest.fixture
def known(registry: SchemaRegistry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, json.dumps({"url": registry.url}))


def produce(books: LiveBooks, serialize: Serialize, *events: Event, abort: bool = False) -> None:
    """One producer transaction with these events, each serialized so."""
    produce_values(books, *((event, serialize(event)) for event in events), abort=abort)


def produce_values(books: LiveBooks, *values: tuple[Event, bytes | None], abort: bool = False) -> None:
    with books.transaction(abort=abort) as producer:
        for event, value in values:
            producer.produce(
                books.contract.legs[event.leg], key=event.payment_id, value=value, partition=event.partition
            )


MONEY = {"type": "bytes", "logicalType": "decimal", "precision": 18, "scale": 2}
OF_MONEY = record_of({"name": "amount", "type": MONEY}, {"name": "currency", "type": "string"}, name="Money")
OLDER = record_of(
    {"name": "eventId", "type": "string"},
    {"name": "paymentId", "type": "string"},
    {"name": "leg", "type": "string"},
    {"name": "total", "type": ["null", "shop.Money"]},
)
NEWER = record_of(
    {"name": "source", "type": {"type": "enum", "name": "Source", "symbols": ["WEB", "APP"]}},
    {"name": "occurredAt", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    *OLDER["fields"],
)
PATHS = {
    "format": "avro",
    "match_key": "eventId",
    "transaction_key": "paymentId",
    "amount_minor": "total.amount",
    "amount_unit": "major",
    "currency": "total.currency",
}


def _plain(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema without logical types: fastavro then takes what is on the wire."""
    text: dict[str, Any] = json.loads(json.dumps(schema).replace('"logicalType"', '"ignored"'))
    return text


def in_avro(schema: dict[str, Any], schema_id: int) -> Serialize:
    def serialize(event: Event) -> bytes:
        digits = event.amount_minor.to_bytes(8, "big", signed=True)
        value = {
            "eventId": event.event_id,
            "paymentId": event.payment_id,
            "leg": event.leg,
            "total": {"amount": digits, "currency": event.currency},
            "source": "APP",
            "occurredAt": 1_767_225_600_000,
        }
        return written(_plain(schema), value, schema_id=schema_id, money=_plain(OF_MONEY))

    return serialize


def registered(registry: SchemaRegistry, name: str, schema: dict[str, Any]) -> Serialize:
    """Register a schema that refers to Money; return what serializes by it."""
    registry.register("shop.Money", json.dumps(OF_MONEY))
    return in_avro(schema, registry.register(name, json.dumps(schema), references=("shop.Money",)))


@pytest.mark.usefixtures("known")
def test_events_of_avro_are_reconciled_as_those_of_json_are(
    new_books: NewBooks, registry: SchemaRegistry, warm_spark: dict[str, str], tmp_path: Path
) -> None:
    """Two versions of the schema in one window, one of which refers to a third; decimals, an enum, a timestamp."""
    older, newer = registered(registry, "older", OLDER), registered(registry, "newer", NEWER)
    of_registry = {"kafka": {"connection": "kafka_billing", "schema_registry": REGISTRY}}
    with new_books(direction="topic_to_ledger", event=PATHS, **of_registry) as books:
        assert run_contract(books, tmp_path, warm_spark)[0] == 3
        sound = [payment(name) for name in ("a", "b", "c", "d")]
        produce(books, older, *sound[:2])
        produce(books, newer, *sound[2:])
        books.post(*sound)
        produce(books, newer, payment("aborted"), abort=True)
        code, stdout, stderr = run_contract(books, tmp_path, warm_spark, "--json")
        assert code == 0, stderr
        document = json.loads(stdout)
        assert (document["verdict"], document["matched_rows"]) == ("MATCHED", 4)

        produce(books, newer, payment("lost"), payment("wrong", 900), payment("e"))
        produce(books, older, payment("a"))
        books.post(payment("wrong", 901), payment("e"), payment("invented"), payment("aborted"))
        assert run_contract(books, tmp_path, warm_spark)[0] == 1
        stored = read_run(books.store, books.contract.name, 2)
        assert stored is not None
        assert kinds(stored) == expected(
            ("missing_in_ledger", payment("lost")),
            ("amount_mismatch", payment("wrong")),
            ("phantom_in_ledger", payment("invented")),
            ("aborted_read_in_ledger", payment("aborted")),
            ("duplicate_in_topic_new_session", payment("a")),
        )
        for way in ({}, {"TALLYSTICK_SCAN": "by_client"}):
            code, _, stderr = run_contract(books, tmp_path, warm_spark, "--reread", "2", **way)
            assert code == 1, stderr
            assert "Read again: the same digest" in stderr


@pytest.mark.usefixtures("known")
def test_legs_of_avro_are_told_apart_and_what_cannot_be_read_says_why(
    new_books: NewBooks, spark: SparkSession, registry: SchemaRegistry
) -> None:
    flat = {"format": "avro"}
    of_registry = {"kafka": {"connection": "kafka_billing", "schema_registry": REGISTRY}}
    schema = changed("leg", "string")
    schema_id = registry.register("flat", json.dumps(schema))
    doubles = changed("amount_minor", "double")
    doubles_id = registry.register("doubles", json.dumps(doubles))

    def serialize(event: Event) -> bytes:
        return written(schema, {**json.loads(event.value), "occurred_at": 5}, schema_id=schema_id)

    with new_books(direction="topic_to_ledger", legs=TWO_LEGS, event=flat, **of_registry) as books:
        books.take_cut()
        produce(books, serialize, *both_legs("a", "b"), payment("torn"))
        books.post(*both_legs("a", "b"), payment("torn"))
        torn = books.next_run()
        assert (torn.result.figures.matched_rows, doubts(torn)) == (5, [])
        assert kinds(torn) == expected(("torn_transaction", invoice("torn")))

        one = {**json.loads(payment("d").value), "occurred_at": 5, "leg": "payment", "amount_minor": 1.0}
        for value, problem in (
            (payment("json").value, "does not begin with a schema's id"),
            (prefixed(999_999, b"\0"), "its schema 999999 is not in the schema registry"),
            (prefixed(schema_id, b"\0"), f"its bytes are no value of its schema {schema_id}"),
            (written(doubles, one, schema_id=doubles_id), "amount_minor is floating point number in its schema"),
        ):
            produce_values(books, (payment("unreadable"), value))
            told = books.next_run()
            assert told.result.verdict is Verdict.INCONCLUSIVE
            (sentence,) = [one.sentence for one in told.result.doubts if one.doubt == "unreadable_payload"]
            assert problem in sentence


PROTO = """
syntax = "proto3";
package shop;
import "google/type/money.proto";
message Refund { string id = 1; }
message Payment {
  Meta meta = 1;
  google.type.Money total = 2;
  message Meta { string event_id = 1; string payment_id = 2; string leg = 3; }
}
"""
IN_PROTOBUF = {
    "format": "protobuf",
    "match_key": "meta.event_id",
    "transaction_key": "meta.payment_id",
    "leg": "meta.leg",
    "amount_minor": "total.amount",
    "amount_unit": "major",
    "currency": "total.currency_code",
}


@pytest.mark.usefixtures("known")
def test_events_of_protobuf_are_reconciled_as_those_of_json_are(
    new_books: NewBooks, registry: SchemaRegistry, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema_id = registry.register("proto", PROTO, kind="PROTOBUF")
    of_registry = {"kafka": {"connection": "kafka_billing", "schema_registry": REGISTRY}}

    def serialize(event: Event) -> bytes:
        units, cents = divmod(event.amount_minor, 100)
        total = {"currencyCode": event.currency, "units": units, "nanos": cents * 10_000_000}
        meta = {"eventId": event.event_id, "paymentId": event.payment_id, "leg": event.leg}
        return written_proto(PROTO, {"meta": meta, "total": total}, schema_id=schema_id)

    with new_books(direction="topic_to_ledger", legs=TWO_LEGS, event=IN_PROTOBUF, **of_registry) as books:
        books.take_cut()
        produce(books, serialize, *both_legs("a", "b"), payment("lost"), invoice("lost"), payment("wrong", 1999))
        produce(books, serialize, invoice("wrong"), payment("a"))
        produce(books, serialize, payment("aborted"), abort=True)
        books.post(*both_legs("a", "b"), invoice("lost"), payment("wrong", 1998), invoice("wrong"))
        run = books.next_run()
        assert kinds(run) == expected(
            ("missing_in_ledger", payment("lost")),
            ("amount_mismatch", payment("wrong")),
            ("duplicate_in_topic_new_session", payment("a")),
        )
        assert books.judge_again(run).digest == run.result.digest
        monkeypatch.setenv("TALLYSTICK_SCAN", "by_client")
        assert books.judge_again(run).digest == run.result.digest


@pytest.mark.parametrize("in_avro", [False, True])
@pytest.mark.usefixtures("known")
def test_rows_that_debezium_tells_of_are_reconciled_and_a_deletion_is_told(
    new_books: NewBooks, registry: SchemaRegistry, spark: SparkSession, in_avro: bool
) -> None:
    """With and without the schema around them, and in Avro; a tombstone is unreadable, as it is in JSON."""
    row = record_of(*changed("leg", "string")["fields"], name="Value")
    schema = record_of(
        {"name": "before", "type": ["null", row]},
        {"name": "after", "type": ["null", "shop.Value"]},
        {"name": "op", "type": "string"},
        name="Envelope",
    )
    schema_id = registry.register("envelope", json.dumps(schema))

    def serialize(event: Event, op: str = "c") -> bytes:
        after = None if op == "d" else {**json.loads(event.value), "occurred_at": 5}
        envelope = {"before": None, "after": after, "op": op}
        if in_avro:
            return written(schema, envelope, schema_id=schema_id)
        return json.dumps(envelope if event.payment == "a" else {"schema": {}, "payload": envelope}).encode()

    kafka = {"connection": "kafka_billing"} | ({"schema_registry": REGISTRY} if in_avro else {})
    with new_books(direction="topic_to_ledger", event={"format": "debezium"}, kafka=kafka) as books:
        books.take_cut()
        produce(books, serialize, payment("a"), payment("b"), payment("lost"))
        books.post(payment("a"), payment("b"))
        assert kinds(books.next_run()) == expected(("missing_in_ledger", payment("lost")))

        produce_values(books, (payment("b"), serialize(payment("b"), "d")))
        told = books.next_run()
        (sentence,) = [one.sentence for one in told.result.doubts if one.doubt == "unreadable_payload"]
        assert "its op is a deletion" in sentence
        produce_values(books, (payment("b"), None))
        (sentence,) = [one.sentence for one in books.next_run().result.doubts if one.doubt == "unreadable_payload"]
        assert "it has no value" in sentence


@pytest.mark.usefixtures("known")
def test_inputs_and_outputs_may_have_formats_of_their_own(
    new_books: NewBooks, registry: SchemaRegistry, spark: SparkSession
) -> None:
    """Inputs in Avro, outputs in JSON behind a schema's id."""
    schema = changed("leg", "string")
    schema_id = registry.register("flat", json.dumps(schema))

    def as_input(event: Event) -> bytes:
        return written(schema, {**json.loads(event.value), "occurred_at": 5}, schema_id=schema_id)

    kafka = {"connection": "kafka_billing", "schema_registry": REGISTRY}
    ledger = {"event": {"format": "avro"}}
    with new_books(direction="topic_to_topic", event={"format": "json_schema"}, kafka=kafka, ledger=ledger) as books:
        books.take_cut()
        producer = books.producer()
        producer.begin_transaction()
        for event in (payment("a"), payment("lost")):
            producer.produce(books.contract.input_topics[0], key=event.payment_id, value=as_input(event), partition=0)
        assert producer.flush(30) == 0
        producer.commit_transaction()
        produce(books, lambda event: prefixed(7, event.value), payment("a"))
        run = books.next_run()
        assert run.result.figures.matched_rows == 1
        assert [one.break_class for one in run.result.breaks] == ["missing_in_topic_never_produced"]


def test_a_registry_that_is_down_leaves_no_verdict_and_loses_nothing(
    new_books: NewBooks, spark: SparkSession, registry: SchemaRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = changed("leg", "string")
    schema_id = registry.register("flat", json.dumps(schema))
    of_registry = {"kafka": {"connection": "kafka_billing", "schema_registry": "registry_down"}}

    def serialize(event: Event) -> bytes:
        return written(schema, {**json.loads(event.value), "occurred_at": 5}, schema_id=schema_id)

    monkeypatch.setenv("TALLYSTICK_CONN_REGISTRY_DOWN", json.dumps({"url": "http://127.0.0.1:9"}))
    with new_books(direction="topic_to_ledger", event={"format": "avro"}, **of_registry) as books:
        books.take_cut()
        produce(books, serialize, payment("a"), payment("b"))
        books.post(payment("a"))
        cut = books.take_cut()
        with pytest.raises(RegistryUnreachable, match=r"the schema registry at 127.0.0.1 did not give its schema"):
            books.judge(cut)
        assert read_run(books.store, books.contract.name, cut.n) is None

        monkeypatch.setenv("TALLYSTICK_CONN_REGISTRY_DOWN", json.dumps({"url": registry.url}))
        judged = books.judge(cut)
        assert kinds(judged) == expected(("missing_in_ledger", payment("b")))


TUTORIAL = record_of({"name": "id", "type": "string"}, {"name": "amount", "type": "double"})
"""Payment, as Confluent's Schema Registry tutorial has it."""


@pytest.mark.usefixtures("known")
def test_the_contract_of_confluents_tutorial_finds_what_is_lost_and_says_why_its_amount_is_no_money(
    new_books: NewBooks, spark: SparkSession, registry: SchemaRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    example = yaml.safe_load((REPOSITORY / "docs" / "examples" / "confluent_avro_payments.yaml").read_text())
    monkeypatch.setenv("TALLYSTICK_CONN_SHOP_SCHEMAS", os.environ[VARIABLE])
    monkeypatch.setenv("TALLYSTICK_CONN_SHOP_LEDGER", os.environ["TALLYSTICK_CONN_LEDGER_BILLING"])
    kafka = {"connection": "kafka_billing", "schema_registry": "shop_schemas"}
    schema_id = registry.register("transactions-value", json.dumps(TUTORIAL))

    def serialize(event: Event) -> bytes:
        return written(TUTORIAL, {"id": event.payment, "amount": 1000.0}, schema_id=schema_id)

    with new_books(
        direction=example["direction"], kafka=kafka, event=example["event"], ledger=example["ledger"] | {"where": None}
    ) as books:
        books.ledger.execute("CREATE SCHEMA sink")
        books.ledger.execute("CREATE TABLE sink.transactions (id text PRIMARY KEY, amount double precision)")
        try:
            books.take_cut()
            produce(books, serialize, *payments("a", "lost"))
            books.ledger.execute("INSERT INTO sink.transactions VALUES ('a', 1000.0), ('invented', 1.0)")
            run = books.next_run()
        finally:
            books.ledger.execute("DROP SCHEMA sink CASCADE")
    found = {(str(one.break_class), one.match_key) for one in run.result.breaks}
    assert found == {("missing_in_ledger", "lost"), ("phantom_in_ledger", "invented")}
    assert (run.result.figures.matched_rows, doubts(run)) == (1, [])

    with_money = example["event"] | {"amount_minor": "amount", "amount_unit": "major", "currency": {"constant": "USD"}}
    with new_books(direction=example["direction"], kafka=kafka, event=with_money) as books:
        books.take_cut()
        produce(books, serialize, payment("a"))
        told = books.next_run()
        (sentence,) = [one.sentence for one in told.result.doubts if one.doubt == "unreadable_payload"]
        assert "amount is floating point number in its schema" in sentence


@pytest.mark.usefixtures("known", "spark")
def test_columns_of_avro_are_compared_by_their_types(new_books: NewBooks, registry: SchemaRegistry) -> None:
    compare = {"source": "exact", "occurred_at": {"within": "2s", "event": "occurredAt"}}
    serialize = registered(registry, "newer", NEWER)
    kafka = {"connection": "kafka_billing", "schema_registry": REGISTRY}
    with new_books(direction="topic_to_ledger", event=PATHS, compare=compare, kafka=kafka) as books:
        books.ledger.execute(
            f"ALTER TABLE {books.table} ADD COLUMN source text DEFAULT 'APP', "
            "ALTER COLUMN occurred_at SET DEFAULT '2026-01-01T00:00:01Z'"
        )
        books.take_cut()
        produce(books, serialize, *payments("same", "late", "web"))
        books.post(*payments("same", "late", "web"))
        for name, said in (("late", "occurred_at = '2026-01-01T00:00:03Z'"), ("web", "source = 'WEB'")):
            books.ledger.execute(f"UPDATE {books.table} SET {said} WHERE event_id = %s", [payment(name).event_id])
        run = books.next_run()
        assert kinds(run) == expected(("column_mismatch", payment("late")), ("column_mismatch", payment("web")))
        named = {one.match_key: one.evidence["columns"][0] for one in run.result.breaks}
        assert named[payment("late").event_id] == {
            "column": "occurred_at",
            "rule": "within 2s",
            "topic": "2026-01-01T00:00:00Z",
            "ledger": "2026-01-01T00:00:03Z",
        }
        assert run.result.figures.matched_rows == 1
