"""Writes money for people, and knows each currency's digits. Integer arithmetic only; nothing is rounded.

The number of decimals is ISO 4217's own (the iso4217 package carries its table). CLDR, and so Babel, counts the
decimals people use in shops: it has 0 for the Iraqi dinar, where ISO 4217 has 3, and a thousandfold error.
"""

from collections.abc import Mapping

from iso4217 import Currency


def format_minor(amount_minor: int, currency: str) -> str:
    """Write minor units as major ones: (123456, "EUR") is "1,234.56 EUR"; (500, "JPY") is "500 JPY".

    A currency without decimals of its own in ISO 4217, or unknown to it, stays in minor units and says so.
    """
    decimals = _decimals(currency)
    if decimals is None:
        return f"{amount_minor:,} minor units of {currency or 'an unknown currency'}"
    sign = "-" if amount_minor < 0 else ""
    major, minor = divmod(abs(amount_minor), 10**decimals)
    fraction = f".{minor:0{decimals}d}" if decimals else ""
    return f"{sign}{major:,}{fraction} {currency}"


def format_money(money: Mapping[str, int]) -> str:
    """Write amounts per currency in the order of their codes: "1.00 EUR, 5 JPY". No money at all is "none"."""
    return ", ".join(format_minor(money[currency], currency) for currency in sorted(money)) or "none"


def is_known_currency(code: str) -> bool:
    """Return whether ISO 4217 lists this code today."""
    try:
        Currency(code)
    except ValueError:
        return False
    return True


def codes_by_digits() -> dict[int, tuple[str, ...]]:
    """Currency codes by the number of digits of their minor unit; those that have none in ISO 4217 are left out."""
    codes: dict[int, list[str]] = {}
    for currency in Currency:
        if currency.exponent is not None:
            codes.setdefault(currency.exponent, []).append(currency.code)
    return {digits: tuple(sorted(codes[digits])) for digits in sorted(codes)}


def has_minor_unit(code: str) -> bool:
    """Return whether ISO 4217 gives a code minor units, be they none at all as of the yen."""
    return _decimals(code) is not None


def minor_unit_digits(code: str) -> int:
    """Digits of a currency's minor unit. Raises LookupError for a code that ISO 4217 gives none."""
    digits = _decimals(code)
    if digits is None:
        raise LookupError(code)
    return digits


def _decimals(code: str) -> int | None:
    return Currency(code).exponent if is_known_currency(code) else None
