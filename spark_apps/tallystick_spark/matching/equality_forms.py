"""`tallystick.contract.equality` in numpy's words and in Spark's: what whole sides are matched by.

Each form takes all fields of `Compared`; tests hold both against it, field by field.
"""

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tallystick_spark.matching.keyed_hash import keyed_currency, keyed_long_text

_ODD = np.int64(0x5851F42D4C957F2D)
"""What sets the hash of a text apart from the same text's as a currency: an odd number, so that none falls together."""


def compared_numbers(
    amounts_minor: NDArray[np.int64],
    currency_hashes: NDArray[np.int64] | int,
    text_hashes: NDArray[np.int64] | None = None,
) -> NDArray[np.int64]:
    """A number for each copy: of one key, two are the same where both copies are equal.

    currency_hashes: under the scan's secret, so that nobody can choose an amount that makes up for a currency. One
    number, where all have one currency. text_hashes: so too, of compared_text, where the contract compares more.
    """
    numbers = amounts_minor ^ currency_hashes
    return numbers if text_hashes is None else numbers ^ (text_hashes * _ODD)


def in_capitals(side: DataFrame) -> DataFrame:
    """A side whose currencies are compared whatever their case, beside how they are written."""
    return side.withColumns({"currency": F.upper("currency"), "currency_as_written": F.col("currency")})


def has_text(side: DataFrame) -> bool:
    """Return whether the contract compares more than money."""
    return "compared_text" in side.columns


def compared_columns(side: DataFrame, secret: str) -> tuple[Column, ...]:
    """Return the columns of a copy for an aggregation by key: longs, so that it stays a hash aggregation."""
    text = keyed_long_text("compared_text", secret) if has_text(side) else F.lit(0).cast("bigint")
    return F.col("amount_minor"), keyed_currency(secret).alias("currency_hash"), text.alias("text_hash")


def compared_figures() -> tuple[Column, ...]:
    """Return the figures that this aggregation keeps of an event and a row."""
    return (
        F.bit_xor("currency_hash").alias("difference"),
        F.bit_xor("text_hash").alias("text_difference"),
        F.max(F.when(F.col("in_topic"), F.col("amount_minor"))).alias("topic_amount"),
        F.max(F.when(~F.col("in_topic"), F.col("amount_minor"))).alias("ledger_amount"),
    )


def summed_figures() -> tuple[Column, ...]:
    """Return the figures that the aggregation keeps where parts add up to a whole. A sum of longs may be none."""
    amount = F.col("amount_minor").cast("decimal(38,0)")
    return (
        F.min("currency_hash").alias("least_currency"),
        F.max("currency_hash").alias("greatest_currency"),
        F.sum(F.when(F.col("in_topic"), amount)).alias("topic_amount"),
        F.sum(F.when(~F.col("in_topic"), amount)).alias("ledger_amount"),
    )


def add_up() -> Column:
    """Return whether events and rows of a key are of one currency and have one sum, by these figures."""
    same_currency = F.col("least_currency") == F.col("greatest_currency")
    return same_currency & (F.col("topic_amount") == F.col("ledger_amount"))


def are_equal() -> Column:
    """Return whether the one event and the one row of a key are equal, by these figures."""
    same_texts = (F.col("difference") == 0) & (F.col("text_difference") == 0)
    return same_texts & (F.col("topic_amount") == F.col("ledger_amount"))
