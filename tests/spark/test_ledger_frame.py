"""Rows of a ledger that is no PostgreSQL, as text or as its files have them, in the shape that every scan takes."""

import pytest
from pyspark.sql import SparkSession

from tallystick_spark.readers.ledger_frame import as_ledger_rows

SHAPE = "row_id string, match_key string, transaction_key string, leg string, amount_minor string, currency string"


@pytest.mark.parametrize(
    ("amount", "currency", "compared"),
    [
        ("1000", "EUR", (1000, "EUR")),
        ("-7.000", "EUR", (-7, "EUR")),
        (str(2**63 - 1), "EUR", (2**63 - 1, "EUR")),
        (str(2**53 + 1), None, (2**53 + 1, "")),
        (str(2**63), "EUR", (0, "")),
        ("12.50", "EUR", (0, "")),
        ("twelve", "EUR", (0, "")),
        (None, "EUR", (0, "")),
    ],
)
def test_an_amount_that_is_no_whole_number_equals_nothing(
    spark: SparkSession, amount: str | None, currency: str | None, compared: tuple[int, str]
) -> None:
    (row,) = as_ledger_rows(spark.createDataFrame([("1", "a", "p", "leg", amount, currency)], SHAPE)).collect()
    assert (row.amount_minor, row.currency) == compared
    assert (row.row_id, row.match_key, row.transaction_key, row.leg, row.written_ms) == ("1", "a", "p", "leg", None)


def test_a_row_without_a_key_has_one_that_nothing_pairs_with(spark: SparkSession) -> None:
    (row,) = as_ledger_rows(spark.createDataFrame([("815", None, None, None, "1", "EUR")], SHAPE)).collect()
    assert (row.match_key, row.transaction_key, row.leg) == ("", "", "")
