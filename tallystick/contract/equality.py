"""The one definition of when an event and a ledger row are equal, and the form that both get before they are compared.

A match key says which event and row belong together. They are equal where their `Compared` is the same: as many whole
minor units, of a currency that is written the same, and the same in all other columns that the contract compares
(`tallystick.contract.compare`, which also says which of them may differ by how much). With `currency_case: ignored`
both currencies are written in capitals first (`compared`). A row that says no whole amount has none (`NO_MONEY`), and
equals no event: each event has a currency.

The same definition in other words, each of which a test holds against this one:
- numpy's and Spark's, over whole sides: `tallystick_spark.matching.equality_forms`;
- a row's amount in SQL and in Spark: `tallystick.ledger.postgres_sql`, `tallystick_spark.readers.ledger_frame`.
What an event says, `tallystick.kafka_log.event_decoder` reads; a key and a currency are fit by the same rule.
"""

import re
from decimal import Decimal
from typing import Any, NamedTuple

from tallystick.text.money import minor_unit_digits

TEXT_LENGTH_MAX = 500
"""Characters of a key, leg or currency: at most 2,000 bytes, which PostgreSQL still takes into an index."""
LONG_MIN, LONG_MAX = -(2**63), 2**63 - 1
"""Minor units that are compared."""
NUMBER = re.compile(r"[ \t\n\v\f\r]*[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,9})?[ \t\n\v\f\r]*")
"""A number in text as Spark casts it; Python would take `_` between digits, and every kind of space, too."""
_LONG_DIGITS, _DECIMAL_DIGITS = 19, 38
"""Digits of a long, and of Spark's widest decimal: a zero of a larger exponent is no number there."""


class Money(NamedTuple):
    """An amount with its currency: what every contract compares."""

    amount_minor: int
    currency: str


NO_MONEY = Money(0, "")
"""Of a row that says no whole number of minor units."""


class Compared(NamedTuple):
    """The values that an event and a row of one key are compared by; each field counts.

    compared_text: of the contract's compared columns, as `ComparedColumns.text_of` makes it; "" where it names none.
    """

    amount_minor: int
    currency: str
    compared_text: str = ""

    @property
    def money(self) -> Money:
        """Return the amount with its currency."""
        return Money(self.amount_minor, self.currency)


def compared(amount_minor: int, currency: str, *, ignore_case: bool = False, compared_text: str = "") -> Compared:
    """Return the values that a copy is compared by. ignore_case: of currencies."""
    return Compared(amount_minor, in_capitals(currency) if ignore_case else currency, compared_text)


def in_capitals(currency: str) -> str:
    """Return a currency as it is written where the contract ignores their case."""
    return currency.upper()


def row_money(amount: Any, currency: Any, *, in_major: bool = False) -> Money:
    """Return the money of a ledger row, as its database gives its two columns.

    in_major: the amount counts the currency's major units; one of a currency that ISO 4217 gives no digits is none.
    """
    digits = _digits_of(currency) if in_major else 0
    amount_minor = None if digits is None else whole_minor(amount, digits=digits)
    return NO_MONEY if amount_minor is None else Money(amount_minor, fit_text(currency))


def whole_minor(amount: Any, *, digits: int = 0) -> int | None:
    """Return an amount as a whole number of minor units; None of what is none that a bigint holds. digits: of the
    minor unit, where the amount counts major ones. Nothing is rounded.

    A column may hold NaN, a file's any fraction, and SQLite's any text.
    """
    written = "" if amount is None else str(amount)
    number = Decimal(written) if NUMBER.fullmatch(written) else None
    if number is None or number.adjusted() > (_LONG_DIGITS if number else _DECIMAL_DIGITS - 1):
        return None
    sign, figures, exponent = number.as_tuple()
    minor = Decimal((sign, figures, int(exponent) + digits))  # no arithmetic, which would round to 28 figures
    return int(minor) if minor == int(minor) and LONG_MIN <= minor <= LONG_MAX else None


def _digits_of(currency: Any) -> int | None:
    try:
        return minor_unit_digits(str(currency).upper())
    except LookupError:
        return None


def fit_text(value: Any) -> str:
    """Return a row's text; "" where it has none, or one that no readable event's can equal."""
    text = "" if value is None else str(value)
    return text if len(text) <= TEXT_LENGTH_MAX and "\0" not in text else ""
