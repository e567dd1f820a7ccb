"""Spark's forms of equality say of any event and row what `tallystick.contract.equality` says."""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tallystick.contract.equality import NO_MONEY, Compared, compared, in_capitals, row_money
from tallystick_spark.matching import equality_forms
from tallystick_spark.matching.frame_match import pair_by_key
from tallystick_spark.matching.keyed_hash import new_secret
from tallystick_spark.readers.ledger_frame import as_ledger_rows
from tests.unit.moneys import OTHER_VALUE, SOME_AMOUNTS, SOME_CURRENCIES

MONEYS = [
    *(Compared(amount, currency) for amount in SOME_AMOUNTS for currency in ("EUR", "USD")),
    *(Compared(1_000, currency) for currency in SOME_CURRENCIES),
    *(Compared(1_000, "EUR")._replace(**{field: value}) for field, value in OTHER_VALUE.items()),
]
PAIRS = list(product(MONEYS, MONEYS))
WRITTEN = (
    *("1000", " 1000", "\t5\r\n", "-7.000", "1e3", "+5", ".0", "7.", "\u0661\u0662"),
    *(str(2**63 - 1), str(2**63), str(-(2**63)), str(-(2**63) - 1), "1e400"),
    *("0e23", "-0E+37", "0.000e40", "0e38", "0e400", "0e999999999"),
    *("12.50", "twelve", "", " ", "NaN", "Infinity", "1_000", "0x10", "1,000", "\u00a01000", "\u20035", None),
)
CODES = ("EUR", "eur", "", "x" * 500, "x" * 501, "E\0R", "\u20ac", None)
CASES = (
    "eur",
    "EuR",
    "caf\u00e9",
    "stra\u00dfe",
    "\u0131",
    "i",
    "\ufb01",
    "\u03c3\u03c2",
    "\u01c6",
    "\u0149",
    "\U00010428",
)


SIGNS = st.sampled_from(("", "-", "+"))
PLAIN = st.builds(
    "{}{}.{}{}".format,
    SIGNS,
    st.integers(0, 10**19),
    st.text("0123456789", max_size=5),
    st.sampled_from(("", "", "0", "00000", "0" * 30, "0" * 30 + "1")),
)
WITH_EXPONENT = st.builds(
    "{}{}{}{}".format,
    SIGNS,
    st.integers(0, 10**20),
    st.sampled_from(("e", "E", "E+", "e-", ".5e-")),
    st.integers(0, 25),
)


def side(spark: SparkSession, moneys: list[Compared]) -> DataFrame:
    """One copy a key: its place in the list."""
    rows = [(f"{place}", *money) for place, money in enumerate(moneys)]
    frame = spark.createDataFrame(rows, "match_key string, amount_minor long, currency string, compared_text string")
    return frame.withColumn("planted", F.lit(False))


@pytest.mark.parametrize("ignore_case", [False, True])
def test_an_event_and_a_row_pair_where_they_are_equal(spark: SparkSession, ignore_case: bool) -> None:
    topic, ledger = side(spark, [one for one, _ in PAIRS]), side(spark, [other for _, other in PAIRS])
    if ignore_case:
        topic, ledger = equality_forms.in_capitals(topic), equality_forms.in_capitals(ledger)
    unequal = {int(found.match_key) for found in pair_by_key(topic, ledger, secret=new_secret()).collect()}
    expected = {
        place
        for place, pair in enumerate(PAIRS)
        if len({compared(*one.money, ignore_case=ignore_case, compared_text=one.compared_text) for one in pair}) == 2
    }
    assert unequal == expected
    assert 0 < len(unequal) < len(PAIRS)


def test_a_case_is_ignored_by_spark_as_by_python(spark: SparkSession) -> None:
    written = equality_forms.in_capitals(spark.createDataFrame([(code,) for code in CASES], "currency string"))
    assert [(row.currency, row.currency_as_written) for row in written.collect()] == [
        (in_capitals(code), code) for code in CASES
    ]


def test_a_rows_money_is_read_by_spark_as_by_look_ups(spark: SparkSession) -> None:
    written = list(product(WRITTEN, CODES))
    frame = spark.createDataFrame(
        [(str(place), "a", "p", "leg", *money) for place, money in enumerate(written)],
        "row_id string, match_key string, transaction_key string, leg string, amount_minor string, currency string",
    )
    for in_major in (False, True):
        read = as_ledger_rows(frame, in_major=in_major).collect()
        rows = {written[int(row.row_id)]: (row.amount_minor, row.currency) for row in read}
        assert rows == {one: row_money(*one, in_major=in_major) for one in written}


def test_money_in_major_units_is_read_by_spark_as_by_look_ups(spark: SparkSession) -> None:
    """Of 2,000 amounts as databases write them, of currencies of each number of digits, and of none."""
    drawn: list[tuple[str, str]] = []

    @settings(max_examples=2_000, database=None, deadline=None, derandomize=True)
    @given(amount=st.one_of(PLAIN, WITH_EXPONENT), code=st.sampled_from(("EUR", "jpy", "KWD", "CLF", "XAU", "EURO")))
    def draw(amount: str, code: str) -> None:
        drawn.append((amount, code))

    draw()
    written = list(dict.fromkeys(drawn))
    frame = spark.createDataFrame(
        [(str(place), "a", "p", "leg", *money) for place, money in enumerate(written)],
        "row_id string, match_key string, transaction_key string, leg string, amount_minor string, currency string",
    )
    read = as_ledger_rows(frame, in_major=True).collect()
    rows = {written[int(row.row_id)]: (row.amount_minor, row.currency) for row in read}
    assert rows == {one: row_money(*one, in_major=True) for one in written}
    assert 100 < sum(money == NO_MONEY for money in rows.values()) < len(rows) - 100
