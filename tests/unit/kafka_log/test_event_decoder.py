"""What a readable event is, and why any other record is none.

One file, since all ways of reading are held against the one rule, over the same payloads.
"""

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tallystick.contract.compare import compared_columns
from tallystick.contract.event import EventFields
from tallystick.contract.field_path import value_at
from tallystick.contract.field_types import CurrencyConstant, LegConstant
from tallystick.kafka_log._simple_events import read_simple
from tallystick.kafka_log.event_decoder import (
    DECODE_ERRORS,
    DEPTH_MAX,
    EventDecoder,
    SimpleEvents,
    depth_of,
    written_keys,
)
from tests.unit.event_payloads import (
    COMPARING,
    EVERY_KIND,
    FIELDS,
    NESTED,
    PAYLOADS,
    READABLE,
    SOME_FIELDS,
    UNREADABLE,
    WHOLE,
    WHOLE_NESTED,
    as_said,
    by_the_rule,
    fields_and_values,
    nested,
    with_field,
    with_note,
)

READER, IN_MAJOR_UNITS = EventDecoder(FIELDS), EventDecoder(EventFields(amount_unit="major"), several_legs=True)
OF_PATHS = EventDecoder(NESTED)
IN_ORDER = EventDecoder(EventFields(ordering_key="leg", sequence="note"), several_legs=True)


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
    event = EventDecoder(FIELDS, several_legs=several_legs).read(with_field(b'""', "payment_id"))
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


@settings(max_examples=500, deadline=None, suppress_health_check=list(HealthCheck))
@given(drawn=fields_and_values(), several_legs=st.booleans())
def test_a_field_at_any_path_is_what_any_strict_parser_says(
    drawn: tuple[EventFields, list[bytes | None]], several_legs: bool
) -> None:
    fields, values = drawn
    for value in values:
        event = EventDecoder(fields, several_legs=several_legs).read(value)
        if event.problem or value is None:
            continue
        document = json.loads(value.decode("utf-8-sig"))
        for name in ("match_key", "transaction_key", "leg", "currency"):
            field = getattr(fields, name)
            said = str(value_at(document, field)) if isinstance(field, str) else field.constant
            assert said == getattr(event, name)
        if fields.amount_unit == "minor":
            assert value_at(document, fields.amount_minor) == event.amount_minor


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (b'{"data":{"order":{}}}', "data.order.id is missing"),
        (b'{"data":{"order":null}}', "data.order.id is missing"),
        (b'{"data":{"order":"ev-1"}}', "data.order.id is missing"),
        (b'{"data":[{"order":{"id":"ev-1"}}]}', "data.order.id is missing"),
        (b'{"data":{"order":{"id":{}}}}', "data.order.id is no text"),
        (b'{"data.order.id":"ev-1"}', "data.order.id is missing"),
        (WHOLE_NESTED[:-1] + b',"data":{}}', "data.order.id is missing"),
        (WHOLE_NESTED.replace(b"leg.name", b"leg"), 'data."leg.name" is missing'),
        (WHOLE_NESTED.replace(b"1000", b"10.5"), "money.amount is no whole number that 64 bits hold"),
    ],
)
def test_a_path_that_leads_to_nothing_is_named(value: bytes, problem: str) -> None:
    assert EventDecoder(NESTED).read(value).problem == problem


def test_white_space_and_another_order_are_nothing() -> None:
    turned = dict(reversed(json.loads(WHOLE).items()))
    assert READER.read(json.dumps(turned, indent=1).encode()) == READER.read(WHOLE)


# The quick ways of the same interface.


def columns_in(simple: SimpleEvents) -> list[tuple[str, int, str]]:
    """Match key, amount and currency of each event."""
    amounts = memoryview(simple.amounts_minor).cast("q").tolist()
    keys = [key.decode() for key in simple.match_keys]
    return list(zip(keys, amounts, simple.currencies, strict=True))


def compared_in(simple: SimpleEvents) -> list[list[bytes]]:
    """The JSON of each event, by column that is compared besides money."""
    columns = [(memoryview(ends).cast("i").tolist(), texts) for ends, texts in simple.compared]
    return [[texts[start:end] for start, end in pairwise(ends)] for ends, texts in columns]


def read_together(
    values: Sequence[bytes | None], fields: EventFields, *, several_legs: bool
) -> list[tuple[Any, ...] | None]:
    """As many are read at once: by `read_each`, and by `read_whole` and `read_simple` where they answer."""
    decoder = EventDecoder(fields, several_legs=several_legs)
    events = decoder.read_each(values)
    found = as_said(decoder, values, events)
    quick = decoder.read_whole(values)
    assert quick is None or as_said(decoder, values, quick) == found
    simple = decoder.read_simple(values)
    if simple is not None:
        assert columns_in(simple) == [None if one is None else (one[0], one[3], one[4]) for one in found]
        assert compared_in(simple) == decoder.read_compared(values)
    return found


@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    values=st.lists(PAYLOADS | st.none(), max_size=6), fields=st.sampled_from(SOME_FIELDS), several_legs=st.booleans()
)
@example(values=EVERY_KIND, fields=FIELDS, several_legs=True)
@example(values=[WHOLE, WHOLE], fields=FIELDS, several_legs=True)
@example(values=[b"", b"1", UNREADABLE["too deep"][0]], fields=FIELDS, several_legs=True)
def test_many_are_read_as_each_is(values: list[bytes | None], fields: EventFields, several_legs: bool) -> None:
    assert read_together(values, fields, several_legs=several_legs) == by_the_rule(
        values, fields, several_legs=several_legs
    )
    for value in values:
        alone = read_together([value], fields, several_legs=several_legs)
        assert alone == by_the_rule([value], fields, several_legs=several_legs)


@settings(max_examples=800, deadline=None, suppress_health_check=list(HealthCheck))
@given(drawn=fields_and_values(), several_legs=st.booleans())
@example(drawn=(NESTED, [WHOLE_NESTED, WHOLE_NESTED]), several_legs=False)
def test_fields_at_any_path_are_read_alike_in_all_ways(
    drawn: tuple[EventFields, list[bytes | None]], several_legs: bool
) -> None:
    fields, values = drawn
    expected = by_the_rule(values, fields, several_legs=several_legs)
    assert read_together(values, fields, several_legs=several_legs) == expected
    for value, said in zip(values, expected, strict=True):
        assert read_together([value], fields, several_legs=several_legs) == [said]


@pytest.mark.parametrize("value", [WHOLE, with_field('"é"'.encode()), READABLE["as long as may be"]])
def test_plain_events_are_read_quickly_and_one_of_another_kind_among_them_is_not(value: bytes) -> None:
    decoder = EventDecoder(FIELDS, several_legs=True)
    assert decoder.read_whole([value] * 3) is not None
    assert decoder.read_whole([value, with_field(b"17")]) is None


def test_the_compiled_code_is_there_for_the_tests_to_test() -> None:
    assert READER.read_simple([WHOLE]) is not None
    assert OF_PATHS.read_simple([WHOLE_NESTED]) is not None


AMOUNT = b'"amount_minor":'
assert WHOLE.count(AMOUNT) == 1


def with_amount(written: bytes) -> bytes:
    before, _, behind = WHOLE.partition(AMOUNT)
    return before + AMOUNT + written + behind[len(behind) - len(behind.lstrip(b" -0123456789")) :]


SIMPLE = {
    "white space": b" \n" + WHOLE.replace(b":", b" :\t").replace(b",", b" ,\r") + b" ",
    "a word, a fraction and a text that nobody asks for": with_note(b'true,"a":null,"b":false,"c":-0.5,"d":""'),
    "as many digits as may be": with_amount(b"-" + b"9" * 18),
    "a zero with a sign": with_amount(b"-0"),
    "a key as long as may be": with_field(b'"' + b"x" * 500 + b'"'),
    "objects and arrays in it": with_note(b' { "event_id" : "ev-2", "a":{} } ,"b":[],"c":[ 1 ,"x",[{}],{"leg":null}]'),
    "objects and arrays as deep as may be": with_note(nested(15) + b',"b":' + b'{"a":' * 15 + b"1" + b"}" * 15),
}
NOT_SIMPLE = {
    "nothing": b"",
    "a key too long": with_field(b'"' + b"x" * 501 + b'"'),
    "an empty key": with_field(b'""'),
    "a key twice": with_note(b'1,"event_id":"ev-2"'),
    "a key that is a number": with_field(b"17"),
    "a key that is null": with_field(b"null"),
    "an escape": with_field(b'"e\\u0076"'),
    "a letter that is not ASCII": with_field('"é"'.encode()),
    "a control character": with_field(b'"e\x01"'),
    "a NUL": with_field(b'"e\0"'),
    "a NUL behind it": WHOLE + b"\0",
    "an object behind it": WHOLE + WHOLE,
    "an object that ends as an array": with_note(b"{]"),
    "an array without an end": with_note(b"[1"),
    "an array with a comma at the end": with_note(b"[1,]"),
    "objects deeper than that": with_note(b'{"a":' * 16 + b"1" + b"}" * 16),
    "arrays deeper than that": with_note(b"[" * 16 + b"]" * 16),
    "an object for a key": with_field(b'{"event_id":"ev-1"}'),
    "an array for a key": with_field(b'["ev-1"]'),
    "an exponent": with_note(b"1e3"),
    "a fraction without digits": with_note(b"1."),
    "a leading zero": with_amount(b"01"),
    "a sign alone": with_amount(b"-"),
    "an amount with a fraction": with_amount(b"1.0"),
    "an amount of many digits": with_amount(b"9" * 19),
    "an amount twice": with_note(b'1,"amount_minor":5'),
    "an amount that is a text": with_amount(b'"5"'),
    "a comma at the end": WHOLE[:-1] + b",}",
    "no end": WHOLE[:-1],
    "a byte order mark": b"\xef\xbb\xbf" + WHOLE,
    "half a word": with_note(b"tru"),
    "a name without quotes": with_note(b"1,a:2"),
}


@pytest.mark.parametrize("value", SIMPLE.values(), ids=SIMPLE)
def test_a_flat_event_of_plain_letters_is_read_by_compiled_code(value: bytes) -> None:
    simple, reading = READER.read_simple([WHOLE, value, WHOLE]), READER.read(value)
    assert simple is not None
    assert columns_in(simple)[1] == (reading.match_key, reading.amount_minor, reading.currency)


NESTED_NOT_SIMPLE = {
    "nothing at the path": WHOLE_NESTED.replace(b'"order":{"id":"ev-1"}', b'"order":{}'),
    "a text on the way": WHOLE_NESTED.replace(b'{"id":"ev-1"}', b'"ev-1"'),
    "an array on the way": WHOLE_NESTED.replace(b'{"id":"ev-1"}', b'[{"id":"ev-1"}]'),
    "an object at its end": WHOLE_NESTED.replace(b'"ev-1"', b'{"id":"ev-1"}'),
    "the key without its objects": WHOLE_NESTED.replace(b'"order":{"id":"ev-1"}', b'"id":"ev-1"'),
    "the last key twice": WHOLE_NESTED.replace(b'"id":"ev-1"', b'"id":"ev-1","id":"ev-2"'),
    "an object on the way twice": WHOLE_NESTED.replace(b'"order":', b'"order":{},"order":'),
    "half of the fields in each of two": WHOLE_NESTED.replace(b',"payment-id"', b'},"data":{"payment-id"'),
    "the same, and all of them in the second": WHOLE_NESTED[:-1] + b"," + WHOLE_NESTED[1:],
    "an amount with a fraction": WHOLE_NESTED.replace(b"1000", b"10.5"),
}


@pytest.mark.parametrize("value", NESTED_NOT_SIMPLE.values(), ids=NESTED_NOT_SIMPLE)
def test_compiled_code_gives_back_what_has_no_one_value_at_each_path(value: bytes) -> None:
    assert OF_PATHS.read_simple([WHOLE_NESTED, WHOLE_NESTED]) is not None
    assert OF_PATHS.read_simple([WHOLE_NESTED, value]) is None


@pytest.mark.parametrize("paths", [((b"a",),) * 4, (((),) * 5), ((b"a",) * 17,) * 5, (b"a",) * 5])
def test_paths_that_are_none_are_refused(paths: Any) -> None:
    with pytest.raises(ValueError, match="expected"):
        read_simple([WHOLE], paths, 500)


@pytest.mark.parametrize("value", [*NOT_SIMPLE.values(), None], ids=[*NOT_SIMPLE, "no value"])
def test_one_of_another_kind_gives_all_back_unread(value: bytes | None) -> None:
    assert READER.read_simple([WHOLE, value, WHOLE]) is None


OF_COLUMNS = EventDecoder(COMPARING)
COMPARED = {
    "nothing at all": (WHOLE, [b"", b"", b""]),
    "some of them": (with_note(b' 1.50 ,"data":{"b":[1],"at":"2026-01-01"}'), [b'"2026-01-01"', b"", b"1.50"]),
    "null": (with_note(b"null"), [b"", b"", b"null"]),
    "an object and a list": (with_note(b'{"a": [1]},"currency-note":[ ]'), [b"", b"[ ]", b'{"a": [1]}']),
    "a path that ends before its last key": (with_note(b'1,"data":{}'), [b"", b"", b"1"]),
}
NOT_COMPARED = {
    "a column twice": with_note(b'1,"note":2'),
    "a column twice and once null": with_note(b'null,"note":2'),
    "the object on the way twice": with_note(b'1,"data":{},"data":{"at":1}'),
    "a text on the way": with_note(b'1,"data":"at"'),
    "a letter that is not ASCII": with_note('"é"'.encode()),
    "an escape": with_note(rb'"\u0041"'),
    "an exponent": with_note(b"1e3"),
}


@pytest.mark.parametrize(("value", "said"), COMPARED.values(), ids=COMPARED)
def test_what_is_compared_besides_money_is_the_json_that_stands_there(value: bytes, said: list[bytes]) -> None:
    simple = OF_COLUMNS.read_simple([WHOLE, value])
    assert simple is not None
    assert [column[1] for column in compared_in(simple)] == said
    assert compared_in(simple) == OF_COLUMNS.read_compared([WHOLE, value])


@pytest.mark.parametrize("value", NOT_COMPARED.values(), ids=NOT_COMPARED)
def test_one_whose_columns_have_no_one_value_gives_all_back_unread(value: bytes) -> None:
    assert OF_COLUMNS.read_simple([WHOLE, value]) is None


@pytest.mark.parametrize(("columns", "is_quick"), [(11, True), (12, False)])
def test_more_columns_than_compiled_code_can_hold_are_read_by_the_library(columns: int, is_quick: bool) -> None:
    compared = compared_columns({f"column_{number}": "exact" for number in range(columns)})
    decoder = EventDecoder(FIELDS.comparing(compared))
    assert (decoder.read_simple([WHOLE]) is not None) is is_quick
    assert decoder.read_compared([WHOLE]) == [[b""]] * columns


def test_legs_and_other_kinds_of_fields_are_not_for_compiled_code() -> None:
    assert EventDecoder(FIELDS, several_legs=True).read_simple([WHOLE]) is None
    assert EventDecoder(EventFields(amount_unit="major")).read_simple([WHOLE]) is None


@settings(max_examples=2000, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    reader=st.sampled_from([READER, OF_PATHS, OF_COLUMNS]),
    value=st.sampled_from(
        [
            *(WHOLE, *SIMPLE.values(), *NOT_SIMPLE.values(), *[WHOLE_NESTED] * 9, *NESTED_NOT_SIMPLE.values()),
            *(*(value for value, _ in COMPARED.values()), *NOT_COMPARED.values()),
        ]
    ),
    place=st.integers(0, 200),
    removed=st.integers(0, 3),
    put=st.binary(max_size=3) | st.text(alphabet='"{}[]:,.-+0159eEtrufalsn \\', max_size=4).map(str.encode),
)
def test_no_change_of_a_few_bytes_makes_compiled_code_read_what_the_rule_does_not(
    reader: EventDecoder, value: bytes, place: int, removed: int, put: bytes
) -> None:
    changed = value[:place] + put + value[place + removed :]
    simple, reading = reader.read_simple([changed]), reader.read(changed)
    assert simple is None or not reading.problem
    assert simple is None or columns_in(simple) == [(reading.match_key, reading.amount_minor, reading.currency)]
    assert simple is None or compared_in(simple) == reader.read_compared([changed])


OF_CONSTANTS = EventFields(
    transaction_key="event_id", leg=LegConstant(constant="payout"), currency=CurrencyConstant(constant="KWD")
)


def test_what_the_contract_says_of_all_events_is_asked_of_none() -> None:
    bare, other = b'{"event_id":"ev-1","amount_minor":5}', b'{"event_id":"ev-2","amount_minor":6,"currency":"EUR"}'
    simple = EventDecoder(OF_CONSTANTS).read_simple([bare, other])
    assert simple is not None
    assert columns_in(simple) == [("ev-1", 5, "KWD"), ("ev-2", 6, "KWD")]
    read = read_together([bare, other, b"{}"], OF_CONSTANTS, several_legs=False)
    assert read == [("ev-1", "ev-1", "payout", 5, "KWD", ""), ("ev-2", "ev-2", "payout", 6, "KWD", ""), None]
    in_major = OF_CONSTANTS.model_copy(update={"amount_unit": "major"})
    assert EventDecoder(in_major).read(b'{"event_id":"ev-1","amount_minor":"0.005"}').amount_minor == 5


def test_one_name_for_two_fields() -> None:
    fields = EventFields(transaction_key=FIELDS.match_key)
    whole = EventDecoder(fields).read_whole([WHOLE])
    assert whole is not None
    assert (whole[0].match_key, whole[0].transaction_key) == ("ev-1", "ev-1")
    assert EventDecoder(fields).read_whole([with_field(b'""')]) is None


def may_be_wanted(value: bytes, fields: EventFields, *, match_key: str | None, transaction_key: str | None) -> bool:
    """What a look-up for these keys concludes from `decode_keys`."""
    try:
        keys = EventDecoder(fields).decode_keys(value)
    except DECODE_ERRORS:
        return True
    match_keys, transaction_keys = (written_keys([key] if key else []) for key in (match_key, transaction_key))
    return keys.match_key in match_keys or keys.transaction_key in transaction_keys


@settings(max_examples=500, deadline=None, suppress_health_check=list(HealthCheck))
@given(value=PAYLOADS, fields=st.sampled_from(SOME_FIELDS))
@example(value=with_field(b"-0"), fields=FIELDS)
@example(value=READABLE["a byte order mark before it"], fields=FIELDS)
@example(value=READABLE["a name twice"], fields=FIELDS)
@example(value=with_field(b"10.50", "amount_minor"), fields=FIELDS)
def test_no_look_up_passes_over_a_payload_that_reads_as_its_key(value: bytes, fields: EventFields) -> None:
    """Also where the payload is unreadable for another reason than its key."""
    said = EventDecoder(fields).read(value)
    if said.match_key:
        assert may_be_wanted(value, fields, match_key=said.match_key, transaction_key=None)
    if said.transaction_key:
        assert may_be_wanted(value, fields, match_key=None, transaction_key=said.transaction_key)


@settings(max_examples=500, deadline=None, suppress_health_check=list(HealthCheck))
@given(drawn=fields_and_values())
def test_no_look_up_passes_over_a_key_at_any_path(drawn: tuple[EventFields, list[bytes | None]]) -> None:
    fields, values = drawn
    for value in values:
        said = EventDecoder(fields).read(value)
        if value is not None and said.match_key:
            assert may_be_wanted(value, fields, match_key=said.match_key, transaction_key=None)
        if value is not None and said.transaction_key:
            assert may_be_wanted(value, fields, match_key=None, transaction_key=said.transaction_key)


@pytest.mark.parametrize("value", [WHOLE_NESTED, WHOLE_NESTED.replace(b'"id"', b'"no"'), b'{"data":null}', b"{}"])
def test_one_with_another_key_at_the_path_is_passed_over(value: bytes) -> None:
    assert not may_be_wanted(value, NESTED, match_key="ev-2", transaction_key="ev-1")


@pytest.mark.parametrize("value", [WHOLE, with_field(b"17"), with_field(b"null"), with_note(b'"ev-2"')])
def test_one_that_reads_as_another_key_is_passed_over(value: bytes) -> None:
    assert not may_be_wanted(value, FIELDS, match_key="ev-2", transaction_key="ev-1")
