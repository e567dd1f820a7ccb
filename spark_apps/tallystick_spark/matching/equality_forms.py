"""`tallystick.contract.equality` in numpy's words and in Spark's: what whole sides are matched by.

Each form takes all fields of `Compared`; tests hold both against it, field by field.
"""

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tallystick_spark.matching.keyed_hash import keyed_currency


def compared_numbers(amounts_minor: NDArray[np.int64], currency_hashes: NDArray[np.int64] | int) -> NDArray[np.int64]:
    """A number for each copy: of one key, two are the same where both copies are equal.

    currency_hashes: under the scan's secret, so that nobody can choose an amount that makes up for a currency. One
    number, where all have one currency.
    """
    return amounts_minor ^ currency_hashes


def in_capitals(side: DataFrame) -> DataFrame:
    """A side whose currencies are compared whatever their case, beside how they are written."""
    return side.withColumns({"currency": F.upper("currency"), "currency_as_written": F.col("currency")})


def compared_columns(secret: str) -> tuple[Column, ...]:
    """Return the columns of a copy for an aggregation by key: longs, so that it stays a hash aggregation."""
    return F.col("amount_minor"), keyed_currency(secret).alias("currency_hash")


def compared_figures() -> tuple[Column, ...]:
    """Return the figures that this aggregation keeps of an event and a row."""
    return (
        F.bit_xor("currency_hash").alias("difference"),
        F.max(F.when(F.col("in_topic"), F.col("amount_minor"))).alias("topic_amount"),
        F.max(F.when(~F.col("in_topic"), F.col("amount_minor"))).alias("ledger_amount"),
    )


def are_equal() -> Column:
    """Return whether the one event and the one row of a key are equal, by these figures."""
    return (F.col("difference") == 0) & (F.col("topic_amount") == F.col("ledger_amount"))
