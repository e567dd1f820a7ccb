"""What a payload must be to be read, and that whatever else it is, is kept and counted."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import Row, SparkSession

from spark_apps.topic_frame import IsolationNotReadCommitted, assert_read_committed, parse_events, use_kafka_v2_source
from tallystick.contract import EventFields

_SOURCE = "topic string, partition int, offset long, key binary, value binary"
WHOLE = b'{"event_id":"ev-1","payment_id":"pay-1","leg":"payout","amount_minor":1000,"currency":"EUR"}'


@dataclass(frozen=True)
class Parsed:
    """Rows by the payload they came from."""

    rows: dict[bytes | None, Row]

    def of(self, value: bytes | None) -> Row:
        return self.rows[value]


READABLE = {
    "as the contract says": WHOLE,
    "in another order": b'{"currency":"EUR","leg":"payout","amount_minor":1000,"payment_id":"pay-1","event_id":"ev-1"}',
    "with white space": b" \n" + WHOLE + b"\n",
    "with more than the contract asks for": WHOLE[:-1] + b',"note":{"a":[1,2]}}',
}
UNREADABLE = {
    "nothing": None,
    "empty": b"",
    "no json": b"no json",
    "cut short": WHOLE[:-1],
    "a text": b'"ev-1"',
    "a number": b"17",
    "null": b"null",
    "a list of events": b"[" + WHOLE + b"," + WHOLE + b"]",
    "another encoding": WHOLE.decode().encode("utf-16"),
    "single quotes": WHOLE.replace(b'"', b"'"),
    "no key": WHOLE.replace(b'"event_id"', b'"id"'),
    "a key in another case": WHOLE.replace(b"event_id", b"EVENT_ID"),
    "an empty key": WHOLE.replace(b'"ev-1"', b'""'),
    "a null key": WHOLE.replace(b'"ev-1"', b"null"),
    "no transaction": WHOLE.replace(b"payment_id", b"payment"),
    "no leg": WHOLE.replace(b'"leg"', b'"part"'),
    "no amount": WHOLE.replace(b"amount_minor", b"amount"),
    "no currency": WHOLE.replace(b',"currency":"EUR"', b""),
    "a null currency": WHOLE.replace(b'"EUR"', b"null"),
    "an empty currency": WHOLE.replace(b'"EUR"', b'""'),
    "a fraction": WHOLE.replace(b"1000", b"10.50"),
    "a float without a fraction": WHOLE.replace(b"1000", b"1000.0"),
    "an exponent": WHOLE.replace(b"1000", b"1e3"),
    "an amount in quotes": WHOLE.replace(b"1000", b'"1000"'),
    "an amount that is no number": WHOLE.replace(b"1000", b"NaN"),
    "an amount above a bigint": WHOLE.replace(b"1000", b"9223372036854775808"),
}
AMOUNTS = [0, -1, -1000, 2**53, 2**53 + 1, 2**63 - 1, -(2**63)]
NUMBER_KEY = WHOLE.replace(b'"ev-1"', b"9007199254740993")
OTHER_NAMES = b'{"id":"ev-9","payment_id":"pay-1","leg":"payout","cents":7,"currency":"EUR"}'


def with_amount(amount_minor: int) -> bytes:
    return WHOLE.replace(b"1000", str(amount_minor).encode())


@pytest.fixture(scope="module")
def parsed(spark: SparkSession) -> Parsed:
    """All payloads of this file, parsed once."""
    values = [*READABLE.values(), *UNREADABLE.values(), *map(with_amount, AMOUNTS), NUMBER_KEY, OTHER_NAMES]
    source = spark.createDataFrame([("billing.payouts", 3, n, b"k", value) for n, value in enumerate(values)], _SOURCE)
    rows = parse_events(source, EventFields()).collect()
    assert len(rows) == len(values)
    return Parsed({values[row["kafka_offset"]]: row for row in rows})


@pytest.mark.parametrize("value", READABLE.values(), ids=READABLE)
def test_an_object_with_the_contracts_fields_is_read(parsed: Parsed, value: bytes) -> None:
    row = parsed.of(value)
    assert row["readable"]
    assert (row["topic"], row["partition"]) == ("billing.payouts", 3)
    fields = ("match_key", "transaction_key", "leg", "amount_minor", "currency")
    assert tuple(row[name] for name in fields) == ("ev-1", "pay-1", "payout", 1000, "EUR")


@pytest.mark.parametrize("value", UNREADABLE.values(), ids=UNREADABLE)
def test_anything_else_is_kept_as_unreadable(parsed: Parsed, value: bytes | None) -> None:
    assert parsed.of(value)["readable"] is False


@pytest.mark.parametrize("amount_minor", AMOUNTS)
def test_an_amount_is_read_to_its_last_unit(parsed: Parsed, amount_minor: int) -> None:
    row = parsed.of(with_amount(amount_minor))
    assert (row["readable"], row["amount_minor"]) == (True, amount_minor)


def test_a_key_that_is_a_number_is_read_digit_by_digit(parsed: Parsed) -> None:
    assert parsed.of(NUMBER_KEY)["match_key"] == "9007199254740993"


def test_the_bytes_of_a_record_have_a_hash_that_another_record_has_not(parsed: Parsed) -> None:
    hashes = {row["value_hash"] for value, row in parsed.rows.items() if value}
    assert len(hashes) == len([value for value in parsed.rows if value])


def test_a_contract_may_name_the_fields_otherwise(spark: SparkSession, parsed: Parsed) -> None:
    source = spark.createDataFrame([("billing.payouts", 0, 0, None, OTHER_NAMES)], _SOURCE)
    (row,) = parse_events(source, EventFields(match_key="id", amount_minor="cents")).collect()
    assert (row["match_key"], row["amount_minor"], row["readable"]) == ("ev-9", 7, True)
    assert parsed.of(OTHER_NAMES)["readable"] is False


# The isolation level, in the plan.


@pytest.fixture
def v2_sources(spark: SparkSession) -> Iterator[SparkSession]:
    """Files are read as Spark reads Kafka: by its newer path, whose plan shows the options."""
    name = "spark.sql.sources.useV1SourceList"
    before = spark.conf.get(name)
    spark.conf.set(name, "")
    yield spark
    spark.conf.set(name, before)


@pytest.mark.parametrize(
    ("options", "got"),
    [({}, "None"), ({"kafka.isolation.level": "read_uncommitted"}, "read_uncommitted")],
    ids=["no level", "another level"],
)
def test_a_plan_that_does_not_say_read_committed_is_refused(
    v2_sources: SparkSession, tmp_path: Path, options: dict[str, str], got: str
) -> None:
    source = v2_sources.read.schema(_SOURCE).options(**options).json(str(tmp_path))
    with pytest.raises(IsolationNotReadCommitted, match=f"expected kafka.isolation.level=read_committed .* got {got}"):
        assert_read_committed(source)


def test_a_plan_that_says_it_is_taken(v2_sources: SparkSession, tmp_path: Path) -> None:
    source = v2_sources.read.schema(_SOURCE).option("kafka.isolation.level", "read_committed").json(str(tmp_path))
    assert_read_committed(source)
    with pytest.raises(IsolationNotReadCommitted):
        assert_read_committed(source.unionByName(v2_sources.read.schema(_SOURCE).json(str(tmp_path))))


def test_a_plan_that_cannot_show_its_options_is_refused(spark: SparkSession) -> None:
    with pytest.raises(IsolationNotReadCommitted, match="expected the V2 Kafka source, got LogicalRDD"):
        assert_read_committed(spark.createDataFrame([], _SOURCE))


def test_kafka_alone_leaves_the_list_of_older_sources(spark: SparkSession) -> None:
    name = "spark.sql.sources.useV1SourceList"
    before = spark.conf.get(name)
    spark.conf.set(name, "avro,kafka,csv")
    use_kafka_v2_source(spark)
    assert spark.conf.get(name) == "avro,csv"
    spark.conf.set(name, before)
