"""What a payload must be to be read, and that whatever else it is, is kept and counted."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, Row, SparkSession

from tallystick.contract.event import EventFields
from tallystick_spark.readers.topic_frame import (
    IsolationNotReadCommitted,
    assert_read_committed,
    parse_events,
    use_kafka_v2_source,
)

_SOURCE = "topic string, partition int, offset long, key binary, value binary, timestamp timestamp"
WRITTEN = datetime(2026, 3, 1, 12, 0, 0, 123_000, tzinfo=UTC)
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
    return parse(spark, values, EventFields())


def parse(spark: SparkSession, values: Sequence[bytes | None], fields: EventFields) -> Parsed:
    rows = parse_events(source_of(spark, values), fields, several_legs=False).collect()
    assert len(rows) == len(values)
    return Parsed({values[row["kafka_offset"]]: row for row in rows})


def source_of(spark: SparkSession, values: Sequence[bytes | None]) -> DataFrame:
    """What Kafka's source gives of these values."""
    return spark.createDataFrame(
        [("billing.payouts", 3, n, b"k", value, WRITTEN) for n, value in enumerate(values)], _SOURCE
    )


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
    row = parse(spark, [OTHER_NAMES], EventFields(match_key="id", amount_minor="cents")).of(OTHER_NAMES)
    assert (row["match_key"], row["amount_minor"], row["readable"]) == ("ev-9", 7, True)
    assert parsed.of(OTHER_NAMES)["readable"] is False


def test_a_records_timestamp_is_read_to_its_millisecond(parsed: Parsed) -> None:
    assert parsed.of(WHOLE)["written_ms"] == int(WRITTEN.timestamp() * 1000)


def test_one_key_of_the_payload_may_carry_two_fields(spark: SparkSession) -> None:
    row = parse(spark, [WHOLE], EventFields(transaction_key="event_id")).of(WHOLE)
    assert (row["match_key"], row["transaction_key"], row["readable"]) == ("ev-1", "ev-1", True)


# Amounts in major units.


def money(amount: str, currency: str = "EUR") -> bytes:
    return WHOLE.replace(b"1000", amount.encode()).replace(b"EUR", currency.encode())


EXACT = {
    money("12.50"): 1_250,
    money("12.5"): 1_250,
    money('"12.50"'): 1_250,
    money("12"): 1_200,
    money("12.500000"): 1_250,
    money("1000.0"): 100_000,
    money("0"): 0,
    money("0.01"): 1,
    money("-0.01"): -1,
    money('"-0.50"'): -50,
    money("-12.34"): -1_234,
    money("100000000.00"): 10_000_000_000,
    money("100000003.99"): 10_000_000_399,
    money("90071992547409.92"): 2**53,
    money("90071992547409.93"): 2**53 + 1,
    money("92233720368547758.07"): 2**63 - 1,
    money("-92233720368547758.08"): -(2**63),
    money("500", "JPY"): 500,
    money("500.0", "JPY"): 500,
    money("1.234", "BHD"): 1_234,
    money("1.2345", "CLF"): 12_345,
    money("12.50", "eur"): 1_250,
}
"""A major amount, and what it is in minor units: the same number, with the digits of its currency."""
NOT_WHOLE = {
    "a third decimal": money("12.345"),
    "a third decimal in text": money('"12.345"'),
    "a fraction beyond any scale": money("12.500000000000000000000000000000000000001"),
    "a yen's fraction": money("500.5", "JPY"),
    "a fourth decimal of a dinar": money("1.2345", "BHD"),
    "an exponent": money("1.25e1"),
    "an exponent in text": money('"1.25e1"'),
    "above a bigint": money("92233720368547758.08"),
    "below a bigint": money("-92233720368547758.09"),
    "no number": money('"twelve"'),
    "a thousands separator": money('"1,200.00"'),
    "a plus": money('"+12.50"'),
    "no whole part": money('".50"'),
    "no decimals after the point": money('"12."'),
    "a space": money('" 12.50"'),
    "empty": money('""'),
    "true": money("true"),
    "a list": money("[12.50]"),
    "null": money("null"),
    "an unknown currency": money("12.50", "ZZZ"),
    "a currency without minor units": money("12", "XAU"),
    "no currency": WHOLE.replace(b',"currency":"EUR"', b""),
}


@pytest.fixture(scope="module")
def parsed_major(spark: SparkSession) -> Parsed:
    return parse(spark, [*EXACT, *NOT_WHOLE.values()], EventFields(amount_unit="major"))


@pytest.mark.parametrize("value", EXACT, ids=[value.decode().partition("amount_minor")[2] for value in EXACT])
def test_a_major_amount_is_read_digit_by_digit(parsed_major: Parsed, value: bytes) -> None:
    row = parsed_major.of(value)
    assert (row["readable"], row["amount_minor"]) == (True, EXACT[value])


@pytest.mark.parametrize("value", NOT_WHOLE.values(), ids=NOT_WHOLE)
def test_what_is_no_whole_number_of_minor_units_is_unreadable(parsed_major: Parsed, value: bytes) -> None:
    row = parsed_major.of(value)
    assert (row["readable"], row["amount_minor"]) == (False, None)


def test_any_major_amount_is_what_a_decimal_says(spark: SparkSession) -> None:
    dice = random.Random(7)
    written = {
        f"{dice.choice(['', '-'])}{dice.randint(0, 10 ** dice.randint(1, 16))}.{dice.randint(0, 9999):04}"[
            : dice.choice([None, -1, -2])
        ]
        for _ in range(300)
    }
    values = {money(dice.choice([text, f'"{text}"'])): Decimal(text) * 100 for text in sorted(written)}
    found = parse(spark, list(values), EventFields(amount_unit="major"))
    for value, minor in values.items():
        expected = int(minor) if minor == int(minor) else None
        assert found.of(value)["amount_minor"] == expected
    assert None in {found.of(value)["amount_minor"] for value in values}


# The order of events.

ORDERED = EventFields(ordering_key="account", sequence="number")


def numbered(account: str, number: str) -> bytes:
    return WHOLE[:-1] + f',"account":{account},"number":{number}}}'.encode()


def test_ordering_key_and_sequence_are_read_where_the_contract_names_them(spark: SparkSession) -> None:
    value = numbered('"a-1"', "9007199254740993")
    row = parse(spark, [value], ORDERED).of(value)
    assert (row["readable"], row["ordering_key"], row["sequence"]) == (True, "a-1", 2**53 + 1)
    by_payment = parse(spark, [value], EventFields(ordering_key="payment_id", sequence="number")).of(value)
    assert (by_payment["ordering_key"], by_payment["transaction_key"]) == ("pay-1", "pay-1")


@pytest.mark.parametrize(
    "value",
    [WHOLE, numbered("null", "1"), numbered('"a-1"', "null"), numbered('"a-1"', '"1"'), numbered('"a-1"', "1.5")],
)
def test_an_event_without_them_is_unreadable_only_there(spark: SparkSession, value: bytes) -> None:
    assert parse(spark, [value], ORDERED).of(value)["readable"] is False
    assert parse(spark, [value], EventFields()).of(value)["readable"] is True


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
