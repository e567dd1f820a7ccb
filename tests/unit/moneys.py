"""Amounts and currencies that a careless comparison takes for one another."""

from typing import Any

from hypothesis import strategies as st

from tallystick.contract.equality import LONG_MAX, LONG_MIN

SOME_AMOUNTS = (0, 1, -1, 100, 10_000, 2**53, 2**53 + 1, LONG_MAX, LONG_MIN, LONG_MIN + 1)
SOME_CURRENCIES = (
    "EUR",
    "eur",
    "EURO",
    "USD",
    "EU",
    "",
    " EUR",
    "\u20ac",
    "\u0404UR",
    "e\u0301",
    "\u00e9",
    "EUR\u0000",
)
"""Of other bytes each, however alike they look."""
AMOUNTS = st.sampled_from(SOME_AMOUNTS) | st.integers(LONG_MIN, LONG_MAX)
CURRENCIES = st.sampled_from(SOME_CURRENCIES) | st.text(max_size=6)
TEXTS = st.sampled_from(("", '{"status":"paid"}', '{"status":"open"}', "EUR", "eur")) | st.text(max_size=6)
OTHER_VALUE: dict[str, Any] = {"amount_minor": 1_001, "currency": "USD", "compared_text": '{"status":"paid"}'}
"""By each field of `Compared`: what neither 1,000 nor EUR is. A field without a line here is compared by nobody yet."""
