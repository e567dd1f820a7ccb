"""What an event and a ledger row are compared by: whole minor units, and a currency as it is written."""

from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.contract.equality import (
    LONG_MAX,
    LONG_MIN,
    NO_MONEY,
    TEXT_LENGTH_MAX,
    Compared,
    compared,
    row_money,
    whole_minor,
)
from tallystick.kafka_log.event_decoder import EventDecoder
from tallystick.text.money import minor_unit_digits
from tests.unit.builders import LAW, event, row
from tests.unit.event_payloads import FIELDS, PAYLOADS
from tests.unit.moneys import AMOUNTS, CURRENCIES, OTHER_VALUE


@pytest.mark.parametrize("field", Compared._fields)
def test_each_field_counts(field: str) -> None:
    one = Compared(1_000, "EUR")
    assert one != one._replace(**{field: OTHER_VALUE[field]})
    assert one == one._replace(**{field: getattr(one, field)})


@LAW
@given(amount=AMOUNTS, other=AMOUNTS, currency=CURRENCIES, code=CURRENCIES)
def test_an_event_and_a_row_are_equal_where_both_fields_are(amount: int, other: int, currency: str, code: str) -> None:
    topic, ledger = event(1, "a", amount, currency), row(1, "a", other, code)
    assert (topic.compared == ledger.compared) is (amount == other and currency == code)
    assert event(1, "a", amount, currency).compared == row(1, "a", amount, currency).compared


@pytest.mark.parametrize(
    ("currency", "code"), [("EUR", "eur"), ("eUR", "Eur"), ("caf\u00e9", "CAF\u00c9"), ("stra\u00dfe", "STRASSE")]
)
def test_case_is_ignored_only_where_the_contract_says_so(currency: str, code: str) -> None:
    assert compared(1, currency, ignore_case=True) == compared(1, code, ignore_case=True)
    assert compared(1, currency) != compared(1, code)
    assert compared(1, currency, ignore_case=True) != compared(2, code, ignore_case=True)
    assert compared(1, currency, ignore_case=True) != compared(1, f"{code}x", ignore_case=True)


@pytest.mark.parametrize(
    ("amount", "minor"),
    [
        (1_000, 1_000),
        ("1000", 1_000),
        (" 1000\n", 1_000),
        ("\u0661\u0662", 12),
        ("-7.000", -7),
        (Decimal("7.0"), 7),
        (12.0, 12),
        ("1e3", 1_000),
        (LONG_MAX, LONG_MAX),
        (str(LONG_MIN), LONG_MIN),
        (2**53 + 1, 2**53 + 1),
    ],
)
def test_a_whole_number_is_read_however_it_is_written(amount: Any, minor: int) -> None:
    assert whole_minor(amount) == minor
    assert row_money(amount, "EUR") == (minor, "EUR")


@pytest.mark.parametrize(
    "amount",
    [
        *(
            None,
            "",
            " ",
            "twelve",
            "12.50",
            Decimal("0.5"),
            12.5,
            LONG_MAX + 1,
            LONG_MIN - 1,
            "1e400000000",
            "1e-400000000",
        ),
        *(
            float("nan"),
            float("inf"),
            Decimal("sNaN"),
            "Infinity",
            "1_000",
            "0x10",
            "1,000",
            "\u00a01000",
            True,
            b"12",
        ),
    ],
    ids=repr,
)
def test_any_other_amount_is_none_and_its_currency_with_it(amount: Any) -> None:
    assert whole_minor(amount) is None
    assert row_money(amount, "EUR") == NO_MONEY


@LAW
@given(number=st.decimals(allow_nan=False, allow_infinity=False, places=3))
def test_no_amount_is_rounded(number: Decimal) -> None:
    exact = Fraction(number)
    expected = exact.denominator == 1 and LONG_MIN <= exact <= LONG_MAX
    assert whole_minor(str(number)) == (int(exact) if expected else None)


@pytest.mark.parametrize(
    ("currency", "said"),
    [
        (None, ""),
        ("EUR", "EUR"),
        ("x" * TEXT_LENGTH_MAX, "x" * TEXT_LENGTH_MAX),
        ("x" * (TEXT_LENGTH_MAX + 1), ""),
        ("E\0R", ""),
    ],
    ids=["null", "a code", "as long as may be", "too long", "a NUL"],
)
def test_a_rows_currency_that_no_event_can_have_is_none(currency: str | None, said: str) -> None:
    assert row_money(5, currency) == (5, said)


@LAW
@given(value=PAYLOADS)
def test_no_readable_event_equals_a_row_without_money(value: bytes) -> None:
    said = EventDecoder(FIELDS).read(value)
    if not said.problem:
        assert compared(said.amount_minor or 0, said.currency or "") != NO_MONEY


@pytest.mark.parametrize(
    ("amount", "currency", "money"),
    [
        ("12.50", "EUR", (1_250, "EUR")),
        (Decimal("12.5"), "eur", (1_250, "eur")),
        ("-0.01", "EUR", (-1, "EUR")),
        ("5", "JPY", (5, "JPY")),
        ("5.000", "JPY", (5, "JPY")),
        ("1.234", "KWD", (1_234, "KWD")),
        ("0.0001", "CLF", (1, "CLF")),
        ("92233720368547758.07", "EUR", (LONG_MAX, "EUR")),
        (Decimal("1E+2"), "EUR", (10_000, "EUR")),
    ],
)
def test_major_units_are_minor_ones_of_their_currency(amount: Any, currency: str, money: tuple[int, str]) -> None:
    assert row_money(amount, currency, in_major=True) == money


@pytest.mark.parametrize(
    ("amount", "currency"),
    [
        ("12.505", "EUR"),
        ("12.500000000000000000000000000000000000001", "EUR"),
        ("5.1", "JPY"),
        ("92233720368547758.08", "EUR"),
        ("1", "XAU"),
        ("1", "EURO"),
        ("1", None),
        ("NaN", "EUR"),
    ],
)
def test_an_amount_with_more_digits_than_its_currency_equals_nothing(amount: str, currency: str | None) -> None:
    assert row_money(amount, currency, in_major=True) == NO_MONEY


@LAW
@given(
    minor=st.integers(LONG_MIN, LONG_MAX), code=st.sampled_from(("EUR", "JPY", "KWD", "CLF")), zeros=st.integers(0, 40)
)
def test_each_amount_of_minor_units_is_read_back_from_major_ones(minor: int, code: str, zeros: int) -> None:
    digits = minor_unit_digits(code)
    whole, rest = divmod(abs(minor), 10**digits)
    figures = f"{rest:0{digits}d}" if digits else ""
    major = f"{'-' if minor < 0 else ''}{whole}.{figures}{'0' * zeros}"
    assert row_money(major, code, in_major=True) == (minor, code)
    assert row_money(f"{major}1", code, in_major=True) == NO_MONEY
    assert Fraction(major) * 10**digits == minor
