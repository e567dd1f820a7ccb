"""What a readable event is, and why any other record is none."""

import json

import pytest
from hypothesis import given, settings

from tallystick.contract.event import EventFields
from tallystick.kafka_log.event_decoder import DEPTH_MAX, EventReader, depth_of
from tests.unit.event_payloads import FIELDS, PAYLOADS, READABLE, UNREADABLE, WHOLE, nested, with_field

READER, IN_MAJOR_UNITS = EventReader(FIELDS), EventReader(EventFields(amount_unit="major"), several_legs=True)
IN_ORDER = EventReader(EventFields(ordering_key="leg", sequence="note"), several_legs=True)


@pytest.mark.parametrize("value", READABLE.values(), ids=READABLE)
def test_one_object_with_the_contracts_fields_is_read(value: bytes) -> None:
    event = READER.read(value)
    assert (event.problem, event.transaction_key) == ("", "pay-1")


@pytest.mark.parametrize(("value", "problem"), UNREADABLE.values(), ids=UNREADABLE)
def test_anything_else_is_unreadable_and_says_why(value: bytes | None, problem: str) -> None:
    event = READER.read(value)
    assert problem in event.problem
    assert "ev-1" not in event.problem and "pay-1" not in event.problem


def test_what_is_sound_in_an_unreadable_event_is_known() -> None:
    event = READER.read(with_field(b"10.50", "amount_minor"))
    assert (event.match_key, event.amount_minor, event.currency) == ("ev-1", None, "EUR")


@pytest.mark.parametrize("several_legs", [True, False])
def test_an_empty_transaction_key_is_none_where_legs_are_told_apart_by_it(several_legs: bool) -> None:
    event = EventReader(FIELDS, several_legs=several_legs).read(with_field(b'""', "payment_id"))
    assert event.problem == ("payment_id is empty" if several_legs else "")


def test_keys_of_different_bytes_are_never_one_key() -> None:
    """Replaced bytes would make one key of three, and a false duplicate."""
    keys = [READER.read(with_field(key)).match_key for key in (b'"caf\xe9"', b'"caf\xff"', '"caf\ufffd"'.encode())]
    assert keys == [None, None, "caf\ufffd"]


@pytest.mark.parametrize("depth", [1, 2, DEPTH_MAX, 3 * DEPTH_MAX])
def test_depth_is_counted_outside_of_texts(depth: int) -> None:
    assert depth_of(nested(depth + 1)) == min(depth, DEPTH_MAX + 1)
    assert depth_of(b'{"]":"[[[","a":"\\"[[",\n"b":' + nested(depth + 1) + b"}") == min(depth, DEPTH_MAX) + 1


@settings(max_examples=500, deadline=None)
@given(value=PAYLOADS)
def test_a_readable_event_is_what_any_strict_parser_says(value: bytes) -> None:
    event = READER.read(value)
    if event.problem:
        return
    document = json.loads(value.decode("utf-8-sig"))
    for name, said in (("event_id", event.match_key), ("payment_id", event.transaction_key), ("leg", event.leg)):
        assert str(document[name]) == said
    assert (document["amount_minor"], str(document["currency"])) == (event.amount_minor, event.currency)
    assert all("\0" not in str(text) for text in event)


@settings(max_examples=500, deadline=None)
@given(value=PAYLOADS)
def test_reading_never_fails(value: bytes) -> None:
    for reader, fields in ((READER, 5), (IN_MAJOR_UNITS, 5), (IN_ORDER, 7)):
        event = reader.read(value)
        assert bool(event.problem) == (None in event[:fields])


def test_white_space_and_another_order_are_nothing() -> None:
    turned = dict(reversed(json.loads(WHOLE).items()))
    assert READER.read(json.dumps(turned, indent=1).encode()) == READER.read(WHOLE)
