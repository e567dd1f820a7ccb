"""Single records come with their producer and their outcome; above the LSO nobody can say, and nobody does."""

import json
from dataclasses import replace

import pytest

from tallystick.contract.event import EventFields
from tallystick.kafka_log.log_walk import Outcome
from tallystick.kafka_log.record import ACTION_HEADER, HEADER_LENGTH, HEADERS_KEPT, read_record, read_records
from tests.unit.builders import PART
from tests.unit.synthetic_log import SyntheticLog, a_log, value

FIELDS = EventFields()


def test_a_record_is_read_with_its_producer() -> None:
    record = read_record(a_log().fetch, PART, 2, FIELDS)
    assert (record.match_key, record.transaction_key, record.outcome) == ("ev-2", "pay-1", Outcome.ABORTED)
    assert (record.producer_id, record.producer_epoch, record.sequence, record.is_transactional) == (7, 3, 41, True)
    assert (record.session, record.source) == (None, None)


def test_a_record_without_idempotence_has_no_sequence_but_may_have_a_session_and_a_source() -> None:
    record = read_record(a_log().fetch, PART, 0, FIELDS)
    assert (record.producer_id, record.sequence, record.outcome) == (-1, -1, Outcome.PLAIN)
    assert (record.session, record.source) == ("relay-1", "in:0:4")


def test_no_record_of_a_batch_without_idempotence_has_a_sequence() -> None:
    log = SyntheticLog()
    log.append(value("ev-0"), value("ev-1"))
    assert [read_record(log.fetch, PART, offset, FIELDS).sequence for offset in (0, 1)] == [-1, -1]


def test_a_record_in_a_compressed_batch_is_found_at_its_own_offset() -> None:
    assert read_record(a_log().fetch, PART, 5, FIELDS).match_key == "ev-3"


@pytest.mark.parametrize("odd", [b"", b"no json", b"\xff\xfe", b"[1]", b'"text"', b"null", b"17"])
def test_a_value_that_is_no_object_has_empty_keys(odd: bytes) -> None:
    log = SyntheticLog()
    log.append(odd)
    record = read_record(log.fetch, PART, 0, FIELDS)
    assert (record.match_key, record.transaction_key) == ("", "")


def test_the_contract_says_which_keys_of_the_payload_are_meant() -> None:
    log = SyntheticLog()
    log.append(b'{"id": "ev-1", "event_id": "other", "payment_id": "pay-1"}')
    record = read_record(log.fetch, PART, 0, EventFields(match_key="id"))
    assert record.match_key == "ev-1"


@pytest.mark.parametrize(
    ("key", "read"), [(9007199254740993, "9007199254740993"), (True, ""), (1.5, ""), ({"a": 1}, ""), ("é", "é")]
)
def test_a_key_is_a_text_or_a_whole_number(key: object, read: str) -> None:
    log = SyntheticLog()
    log.append(value(key))
    assert read_record(log.fetch, PART, 0, FIELDS).match_key == read


@pytest.mark.parametrize(("marks", "read"), [(0, "ev-1"), (1, "ev-1"), (2, "")])
def test_one_byte_order_mark_before_a_payload_is_no_part_of_it(marks: int, read: str) -> None:
    log = SyntheticLog()
    log.append(b"\xef\xbb\xbf" * marks + value("ev-1"))
    assert read_record(log.fetch, PART, 0, FIELDS).match_key == read


def test_a_key_that_is_null_is_no_key() -> None:
    log = SyntheticLog()
    log.append(value(None, None))
    record = read_record(log.fetch, PART, 0, FIELDS)
    assert (record.match_key, record.transaction_key) == ("", "")


# What else a record says.


def with_payload(**payload: object) -> SyntheticLog:
    log = SyntheticLog()
    log.append(json.dumps(payload).encode())
    return log


@pytest.mark.parametrize(
    ("amount", "read"),
    [(1_000, 1_000), (9007199254740993, 9007199254740993), (-5, -5), ("1000", None), (1.5, None), (True, None)],
)
def test_money_is_an_integer_or_unreadable(amount: object, read: int | None) -> None:
    record = read_record(with_payload(amount_minor=amount, currency="EUR", leg="payout").fetch, PART, 0, FIELDS)
    assert (record.amount_minor, record.currency, record.leg) == (read, "EUR", "payout")


@pytest.mark.parametrize(
    ("amount", "currency", "read"),
    [
        ("12.50", "EUR", 1_250),
        (12.5, "EUR", 1_250),
        ("12", "JPY", 12),
        ("1.234", "KWD", 1_234),
        ("1.234", "EUR", None),
        ("12", "XXX", None),
        ("no number", "EUR", None),
        ("Infinity", "EUR", None),
        ("1e3", "EUR", None),
        (1e16, "EUR", None),
        ("1e999990", "EUR", None),
        ("9" * 5_000, "EUR", None),
        ("92233720368547758.07", "EUR", 2**63 - 1),
        ("92233720368547758.08", "EUR", None),
    ],
    ids=lambda one: str(one)[:24],
)
def test_money_in_major_units_is_whole_minor_units_of_its_currency(
    amount: object, currency: str, read: int | None
) -> None:
    log = with_payload(amount_minor=amount, currency=currency)
    assert read_record(log.fetch, PART, 0, EventFields(amount_unit="major")).amount_minor == read


def test_equal_payloads_have_equal_digests_and_no_others() -> None:
    log = SyntheticLog()
    for payload in (value("ev-1"), value("ev-1"), value("ev-2")):
        log.append(payload)
    first, second, third = (read_record(log.fetch, PART, offset, FIELDS).value_digest for offset in range(3))
    assert first == second != third


def test_short_text_headers_are_kept_and_nothing_else() -> None:
    log = SyntheticLog()
    headers = [("service", b"relay"), (ACTION_HEADER, b"a-1"), ("long", b"x" * (HEADER_LENGTH + 1)), ("raw", b"\xff")]
    log.append(value("ev-1"), headers=headers)
    record = read_record(log.fetch, PART, 0, FIELDS)
    assert (record.header("service"), record.action_id) == ("relay", "a-1")
    assert sorted(record.headers) == ["service", ACTION_HEADER]


def test_no_payload_is_in_a_records_json() -> None:
    log = with_payload(event_id="ev-1", payment_id="pay-1", amount_minor=123456789, note="secret")
    text = json.dumps(read_record(log.fetch, PART, 0, FIELDS).as_json())
    assert "secret" not in text and "123456789" not in text


# Many at once.


def offsets_read(log: SyntheticLog, *wanted: int) -> list[tuple[int, Outcome]]:
    return [(one.kafka_offset, one.outcome) for one in read_records(log.fetch, PART, wanted, FIELDS)]


def test_many_records_are_read_with_the_outcome_they_have_one_by_one() -> None:
    log = a_log()
    assert offsets_read(log, 8, 2, 0, 5, 2) == [
        (0, Outcome.PLAIN),
        (2, Outcome.ABORTED),
        (5, Outcome.COMMITTED),
        (8, Outcome.OPEN),
    ]
    for offset in (0, 1, 2, 4, 5):
        (record,) = read_records(log.fetch, PART, [offset], FIELDS)
        assert replace(record, span=None) == read_record(log.fetch, PART, offset, FIELDS)
        assert (record.span is not None) is record.is_transactional


def test_markers_holes_and_what_has_left_the_log_are_left_out() -> None:
    log = a_log()
    log.end += 3
    log.append(value("ev-9"))
    assert offsets_read(log, 3, 6, 10, 12) == [(12, Outcome.OPEN)]
    log.log_start = 4
    assert offsets_read(log, 0, 1, 5) == [(5, Outcome.COMMITTED)]
    assert offsets_read(log, 0, 1) == []
    assert offsets_read(log, 4, 500) == [(4, Outcome.COMMITTED)]
    assert offsets_read(log) == []


def test_neighbours_share_a_fetch() -> None:
    log = SyntheticLog(fetch_batches=100)
    for number in range(1_000):
        log.append(value(f"ev-{number}"))
    assert len(offsets_read(log, *range(0, 1_000, 3))) == 334
    assert log.fetches <= 12


def test_of_many_headers_the_first_are_kept_and_of_long_names_none() -> None:
    many = [(f"name {number}", b"text") for number in range(HEADERS_KEPT)]
    log = SyntheticLog()
    log.append(value("ev-1"), headers=[("n" * (HEADER_LENGTH + 1), b"text"), *many])
    log.append(value("ev-2"), headers=[*many, ("one too many", b"text"), ("name 0", b"again")])
    first, second = (read_record(log.fetch, PART, offset, FIELDS).headers for offset in (0, 1))
    assert dict(first) == {name: "text" for name, _ in many}
    assert dict(second) == dict(first) | {"name 0": "again"}
