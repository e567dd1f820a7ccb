"""When two values of a compared column agree: each rule with what it lets pass, and what it must not."""

import json
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tallystick.contract.compare import ComparedColumns, CompareRule, Kind, compared_columns, text_of_json, written
from tallystick.contract.contract import Contract, ContractRefused
from tallystick.contract.contract import contract_of as contract_at
from tallystick.contract.equality import TEXT_LENGTH_MAX, Compared
from tallystick.contract.field_types import RecordPart
from tests.unit.builders import LAW, T2T, contract_of

NUMBERS = st.decimals(-(10**20), 10**20, allow_nan=False, allow_infinity=False, places=6)
INSTANTS = st.integers(-(2**51), 2**52).map(
    lambda since: datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=since)
)
LONG = "x" * (TEXT_LENGTH_MAX + 1)


def columns(rule: dict[str, Any]) -> ComparedColumns:
    return compared_columns({"it": CompareRule.model_validate(rule)})


def agree(rule: dict[str, Any], in_topic: str | None, in_ledger: str | None) -> bool:
    asked = columns(rule)
    one, other = (Compared(1, "EUR", asked.text_of([said])) for said in (in_topic, in_ledger))
    assert asked.agree(one, other) is asked.agree(other, one)
    return asked.agree(one, other)


TEXT, NUMBER, TIME = {"exact": "text"}, {"exact": "number"}, {"exact": "time"}


@pytest.mark.parametrize(
    ("rule", "one", "other"),
    [
        (TEXT, "paid", "paid"),
        (TEXT, None, None),
        (TEXT, LONG, LONG),
        (NUMBER, "1.50", "1.5"),
        (NUMBER, "15e-1", "1.5"),
        (NUMBER, "-0.00", "0"),
        (NUMBER, "1E+3", "1000"),
        (NUMBER, "NaN", "NaN"),
        (TIME, "2026-01-01T02:00:00+02:00", "2026-01-01 00:00:00"),
        (TIME, "2026-01-01", "2026-01-01T00:00:00Z"),
        (TIME, "2026-01-01T00:00:00.500000Z", "2026-01-01 00:00:00.5+00"),
        (NUMBER, "1E308", f"1{'0' * 308}.0"),
        (NUMBER, "-5e-324", f"-0.{'0' * 323}5"),
        (TIME, "2026-01-01T10:00:00.123456789Z", "2026-01-01 10:00:00.123457+00"),
        (TIME, "2026-01-01T23:59:59.9999996Z", "2026-01-02"),
        (TIME, "2026-01-01t10:00:00z", "2026-01-01T10:00"),
        (TIME, "1900-01-01T00:09:21+00:09:21", "1900-01-01"),
        (TIME, "2026-01-01 10:00:00.0000000 +01:00", "2026-01-01T09:00:00Z"),
        (TIME, "soon", "soon"),
        ({"abs": 1}, "1.5", "2.5"),
        ({"abs": 0}, "1.5", "1.50"),
        ({"abs": 0.1}, "0.3", "0.4"),
        ({"rel": 0.001}, "1000", "999"),
        ({"rel": 0.001}, "-1000", "-999"),
        ({"rel": 0.5}, "0", "0.0"),
        ({"within": "2s"}, "2026-01-01T00:00:00Z", "2026-01-01T00:00:02Z"),
        ({"within": "500ms"}, "2026-01-01T00:00:00.5Z", "2026-01-01T00:00:00Z"),
        ({"within": "1d"}, "2026-01-01", "2026-01-02"),
    ],
)
def test_these_agree(rule: dict[str, Any], one: str | None, other: str | None) -> None:
    assert agree(rule, one, other)


@pytest.mark.parametrize(
    ("rule", "one", "other"),
    [
        (TEXT, "paid", "Paid"),
        (TEXT, "paid", "paid "),
        (TEXT, "", None),
        (TEXT, "null", None),
        (TEXT, "1.50", "1.5"),
        (TEXT, "caf\u00e9", "cafe\u0301"),
        (TEXT, LONG, f"{LONG}x"),
        (NUMBER, "1.50", "1.51"),
        (NUMBER, "1.5", "1,5"),
        (NUMBER, "NaN", "nan"),
        (NUMBER, "0", None),
        (NUMBER, "9007199254740993", "9007199254740992"),
        (NUMBER, f"0.1{'0' * 420}1", "0.1"),
        (NUMBER, "1e400", f"1{'0' * 400}"),
        (NUMBER, "1e-2000000", "0"),
        (TIME, "2026-01-01T00:00:00+02:00", "2026-01-01T00:00:00"),
        (TIME, "2026-01-01T00:00:00.000001Z", "2026-01-01T00:00:00Z"),
        (TIME, "1767225600", "2026-01-01T00:00:00Z"),
        (TIME, "1711123112345", "1711123122345"),
        (TIME, "2026-01-01+05:00", "2026-01-01-05:00"),
        (TIME, "20260101", "2026-01-01"),
        (TIME, "2026-01-01T10:00.5", "2026-01-01T10:00:00.5"),
        (TIME, "2026-01-01T10:00:00 ", "2026-01-01T10:00:00"),
        (TIME, "2026-01-01T24:00:00", "2026-01-02"),
        (TEXT, "a\0", "a"),
        ({"abs": 1}, "1.5", "2.5001"),
        ({"abs": 1}, "1", None),
        ({"abs": 1}, "NaN", "1"),
        ({"abs": 10**9}, "Infinity", "1"),
        ({"abs": 1}, "one", "two"),
        ({"abs": 1}, "0", f"1.{'0' * 40}1"),
        ({"rel": 0.001}, f"1.{'0' * 40}", f"0.998{'9' * 40}"),
        ({"abs": 0.1}, "0.3", "0.400000000000000001"),
        ({"rel": 0.001}, "1000", "998.9"),
        ({"rel": 0.001}, "1", "-1"),
        ({"rel": 0.001}, "0", "0.0001"),
        ({"within": "2s"}, "2026-01-01T00:00:00Z", "2026-01-01T00:00:02.000001Z"),
        ({"within": "2s"}, "2026-01-01T00:00:00Z", "2026-01-01T00:00:01+01:00"),
        ({"within": "2s"}, "2026-01-01T00:00:00Z", None),
        ({"within": "2s"}, "soon", "later"),
    ],
)
def test_these_do_not(rule: dict[str, Any], one: str | None, other: str | None) -> None:
    assert not agree(rule, one, other)


@pytest.mark.parametrize("kind", ["text", "number", "time"])
def test_nothing_is_compared_with_a_nul_which_no_store_takes(kind: Kind) -> None:
    assert "\0" not in written(kind, "1\0")
    assert "\\u0000" not in columns({"exact": kind}).text_of(["1\0"])


@LAW
@given(one=NUMBERS, other=NUMBERS, allowed=st.decimals(0, 10**20, places=6))
def test_numbers_agree_where_their_difference_is_allowed_and_nowhere_else(
    one: Decimal, other: Decimal, allowed: Decimal
) -> None:
    assert agree({"abs": allowed}, str(one), f"{other:f}") is (abs(one - other) <= allowed)
    assert agree({"abs": abs(one - other)}, str(one), str(other))
    assert agree(NUMBER, str(one), f"{other}000") is (one == other)


@LAW
@given(one=INSTANTS, apart=st.integers(-(10**7), 10**7), hours=st.integers(-12, 14))
def test_instants_agree_within_their_span_whatever_their_zones(one: datetime, apart: int, hours: int) -> None:
    other = (one + timedelta(microseconds=apart)).astimezone(timezone(timedelta(hours=hours)))
    assert agree({"within": "2s"}, one.isoformat(), other.isoformat(sep=" ")) is (abs(apart) <= 2_000_000)
    assert agree(TIME, one.isoformat(), other.isoformat()) is (apart == 0)


@LAW
@given(kind=st.sampled_from(["text", "number", "time"]), text=st.text() | NUMBERS.map(str) | INSTANTS.map(str))
def test_what_is_written_is_written_once_and_a_text_is_a_text(kind: Any, text: str) -> None:
    """So an item of an earlier window, which holds what was written, is compared as if it were read now."""
    once = written(kind, text)
    assert written(kind, once) == once
    if kind == "text" and len(text) <= TEXT_LENGTH_MAX:
        assert once == text


@LAW
@given(st.text())
def test_a_text_is_read_out_of_json_however_it_is_written_there(text: str) -> None:
    for ensure_ascii in (True, False):
        try:
            raw = json.dumps(text, ensure_ascii=ensure_ascii).encode()
            text.encode()
        except UnicodeEncodeError:  # half a pair is no text
            return
        assert text_of_json(raw) == text


def test_what_is_no_text_is_what_stands_there() -> None:
    assert text_of_json(rb'"\ud800"') == r'"\ud800"'
    assert text_of_json(rb'"\u00e9"') == "\u00e9"
    assert [text_of_json(raw) for raw in (b"", b"null", b"true", b"-1.50", b'""')] == [None, None, "true", "-1.50", ""]
    assert text_of_json(b'{"b": 1.0, "a": [true]}') == '{"b": 1.0, "a": [true]}'


def test_only_what_both_sides_were_read_for_is_compared() -> None:
    before, after = columns(TEXT), compared_columns({"it": "exact", "new": "exact"})
    old, new = before.text_of(["paid"]), after.text_of(["paid", "later"])
    assert after.differing(old, new) == after.differing("", new) == ()
    (found,) = after.differing(before.text_of(["open"]), new)
    assert (found.column, found.topic, found.ledger, found.rule) == ("it", "open", "paid", "exact text")


def test_the_order_of_a_contracts_file_changes_nothing() -> None:
    one, other = (dict.fromkeys(names, "exact") for names in (("fee", "status"), ("status", "fee")))
    assert contract_of(compare=one).event == contract_of(compare=other).event
    stored = Contract.model_validate(contract_of(compare=one).model_dump(mode="json", by_alias=True))
    assert stored.event.compared == contract_of(compare=one).event.compared
    assert stored.ledger.columns.compared == stored.event.compared


def test_money_is_no_column_and_must_be_the_same_in_any_case() -> None:
    asked = columns({"abs": 10})
    text = asked.text_of(["1"])
    assert not asked.agree(Compared(1, "EUR", text), Compared(2, "EUR", text))
    assert not asked.agree(Compared(1, "EUR", text), Compared(1, "USD", text))


@pytest.mark.parametrize(
    ("stated", "sentence"),
    [
        ({"compare": {"fee": {}}}, "expected exactly one of exact, abs, rel and within"),
        ({"compare": {"fee": {"abs": 1, "rel": 0.1}}}, "expected exactly one of exact, abs, rel and within"),
        ({"compare": {"fee": {"abs": -1}}}, "greater than or equal to 0"),
        ({"compare": {"fee": {"within": "soon"}}}, "String should match pattern"),
        ({"compare": {"fee": "about"}}, "Input should be 'exact' or 'ignore'"),
        ({"compare": {"amount_minor": "exact"}}, "expected compare to name other fields than event: amount_minor"),
        ({"compare": {"fee": {"exact": "text", "event": "data"}}, "event": {"leg": "data.leg"}}, "lies inside data"),
        (
            {
                "compare": {"key": {"exact": "text", "event": {"record": "key"}}},
                "event": {"match_key": {"record": "key"}},
            },
            r"expected compare to name other places than event: \{record: key\} is one already",
        ),
        ({"compare": {"at": {"within": "1s", "event": {"record": "offset"}}}}, "Input should be 'key' or 'timestamp'"),
        ({"event": {"match_key": {"record": "timestamp"}}}, "Input should be 'key'"),
        (
            {"compare": {"at": {"abs": 1000, "event": {"record": "timestamp"}}}},
            "expected exact: time or within, since a record's timestamp is a time",
        ),
        (
            {"compare": {"at": {"exact": "text", "event": {"record": "timestamp"}}}},
            "expected exact: time or within, since a record's timestamp is a time",
        ),
        (
            {
                "compare": {"fee": "exact"},
                "compensation": {
                    "classes": ["missing_in_topic_never_produced"],
                    "max_amount_minor": {"EUR": 100},
                },
            },
            "expected none with compare: a repair would write no fee",
        ),
    ],
)
def test_what_cannot_be_compared_is_refused_with_the_reason(stated: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValidationError, match=sentence):
        contract_of(**stated)


def test_each_fault_is_one_line_with_the_place_of_its_rule(tmp_path: Path) -> None:
    compare = {
        "fee": "about",
        "rate": {"abs": -1},
        "at": {"within": "soon"},
        "two": {"abs": 1, "rel": 2},
        "x": {"y": 1},
    }
    document = contract_of().model_dump(mode="json", by_alias=True, exclude_defaults=True) | {"compare": compare}
    file = tmp_path / "a.yaml"
    with pytest.raises(ContractRefused) as refused:
        contract_at(document, path=file)
    assert str(refused.value).splitlines() == [
        f"{file}: compare.fee: got \"about\"; expected 'exact' or 'ignore'",
        f"{file}: compare.rate.abs: got -1; expected 0 or more",
        f'{file}: compare.at.within: got "soon"; expected a duration, such as 500ms, 2s, 5m, 1h or 1d',
        f'{file}: compare.two: got {{"abs": 1, "rel": 2}}; expected exactly one of exact, abs, rel and within',
        f"{file}: compare.x.y: unknown key; expected one of exact, abs, rel, within, event, column, shown",
    ]


def test_inputs_have_the_fields_of_the_events_and_no_columns() -> None:
    contract = contract_of(T2T, compare={"fee": {"exact": "text", "event": "data.fee"}})
    assert contract.input_event.compared == contract.event.compared != ComparedColumns()
    beside = contract_of(T2T, compare={"at": {"within": "2s", "event": {"record": "timestamp"}}})
    assert beside.input_event.places == beside.event.places == (RecordPart(record="timestamp"),)
    with pytest.raises(ValidationError, match=r"expected no column in compare\.fee with kind topic"):
        contract_of(T2T, compare={"fee": {"exact": "text", "column": "cost"}})
