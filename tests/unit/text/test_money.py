"""Money is written with the decimals of ISO 4217, from whole minor units."""

import pytest

from tallystick.text.money import codes_by_digits, format_minor, format_money, is_known_currency


@pytest.mark.parametrize(
    ("amount_minor", "currency", "text"),
    [
        (123_456, "EUR", "1,234.56 EUR"),
        (5, "EUR", "0.05 EUR"),
        (0, "EUR", "0.00 EUR"),
        (-5, "EUR", "-0.05 EUR"),
        (500, "JPY", "500 JPY"),
        (1_234_567, "KWD", "1,234.567 KWD"),
        (1_234_567, "IQD", "1,234.567 IQD"),  # CLDR says 0 decimals; ISO 4217 says 3
        (12_345, "CLF", "1.2345 CLF"),
        (9_007_199_254_740_993, "EUR", "90,071,992,547,409.93 EUR"),  # 2^53 + 1: a float would end in .92
        (1_500, "XAU", "1,500 minor units of XAU"),  # gold has no minor unit
        (1_500, "ABC", "1,500 minor units of ABC"),
        (1_500, "eur", "1,500 minor units of eur"),
        (0, "", "0 minor units of an unknown currency"),
    ],
)
def test_minor_units_are_written_with_the_currencys_own_decimals(amount_minor: int, currency: str, text: str) -> None:
    assert format_minor(amount_minor, currency) == text


def test_amounts_stand_in_the_order_of_their_currencies() -> None:
    assert format_money({"JPY": 5, "EUR": 100}) == "1.00 EUR, 5 JPY"
    assert format_money({}) == "none"


def test_each_code_stands_once_under_the_digits_of_its_minor_unit() -> None:
    by_digits = codes_by_digits()
    codes = [code for codes in by_digits.values() for code in codes]
    assert len(codes) == len(set(codes)) > 150
    for code, digits in (("JPY", 0), ("EUR", 2), ("USD", 2), ("IQD", 3), ("BHD", 3), ("CLF", 4)):
        assert code in by_digits[digits]
    assert "XAU" not in codes


def test_a_currency_is_known_only_by_its_own_code() -> None:
    assert is_known_currency("EUR")
    assert not is_known_currency("eur")
    assert not is_known_currency("ERU")
