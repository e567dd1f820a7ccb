"""Single records come with their producer and their outcome; above the LSO nobody can say, and nobody does."""

import json

import pytest

from tallystick.batch_header import Marker
from tallystick.census import Outcome
from tallystick.contract import EventFields
from tallystick.log_record import find_records, read_record

from .builders import PART, offsets
from .synthetic_log import SyntheticLog

FIELDS = EventFields()


def value(key: object, payment: object = "pay-1") -> bytes:
    return json.dumps({"event_id": key, "payment_id": payment}).encode()


def a_log() -> SyntheticLog:
    """0 plain, 1-2 aborted, 3 marker, 4-5 committed, 6 marker, 7 open, 8 plain behind it."""
    log = SyntheticLog(fetch_batches=2)
    log.append(value("ev-0"), headers=[("session", b"relay-1"), ("source", b"in:0:4")])
    log.append(value("ev-1"), value("ev-2"), producer_id=7, epoch=3, sequence=40, transactional=True)
    log.end_transaction(7, Marker.ABORT)
    log.append(value("ev-1"), value("ev-3"), producer_id=8, transactional=True, compression=1)
    log.end_transaction(8, Marker.COMMIT)
    log.append(value("ev-1"), producer_id=9, transactional=True)
    log.append(value("ev-1"))
    return log


def found(log: SyntheticLog, start: int, end: int, key: str = "ev-1") -> list[tuple[int, Outcome]]:
    records = find_records(log.fetch, [offsets(start, end)], FIELDS, lambda record: record.match_key == key)
    return [(record.kafka_offset, record.outcome) for record in records]


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


def test_every_copy_is_found_whatever_became_of_it() -> None:
    assert found(a_log(), 0, 9) == [(1, Outcome.ABORTED), (4, Outcome.COMMITTED), (7, Outcome.OPEN), (8, Outcome.OPEN)]


def test_only_copies_inside_the_range_are_found() -> None:
    assert found(a_log(), 2, 7) == [(4, Outcome.COMMITTED)]
    assert found(a_log(), 1, 2) == [(1, Outcome.ABORTED)]
    assert found(a_log(), 8, 9) == [(8, Outcome.OPEN)]
    assert found(a_log(), 4, 4) == []


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


@pytest.mark.parametrize(("key", "read"), [(9007199254740993, "9007199254740993"), (True, "true"), ("é", "é")])
def test_a_key_that_is_no_text_reads_as_the_scan_reads_it(key: object, read: str) -> None:
    log = SyntheticLog()
    log.append(value(key))
    assert read_record(log.fetch, PART, 0, FIELDS).match_key == read


def test_a_key_that_is_null_is_no_key() -> None:
    log = SyntheticLog()
    log.append(value(None, None))
    record = read_record(log.fetch, PART, 0, FIELDS)
    assert (record.match_key, record.transaction_key) == ("", "")
