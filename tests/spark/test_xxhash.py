"""Hashes made in Python are those that Spark makes."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from xxhash import xxh64_intdigest

from tallystick_spark.matching import xxhash
from tallystick_spark.matching.xxhash import hash_longs, hash_pairs, hash_place, hash_texts

BYTES = st.none() | st.binary()
LONGS = st.integers(-(2**63), 2**63 - 1)
FEW = settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@FEW
@given(
    rows=st.lists(st.tuples(st.none() | st.binary(), st.none() | st.binary(), LONGS, LONGS), min_size=1, max_size=40)
)
def test_a_chain_of_columns(spark: SparkSession, rows: list[tuple[bytes | None, bytes | None, int, int]]) -> None:
    """A hash seeds the next, and a null hands its seed on."""
    frame = spark.createDataFrame(rows, "key binary, value binary, one long, other long")
    told = frame.select(F.xxhash64("key", "value"), F.xxhash64("key", "value", "one", "other")).collect()
    keys, values, ones, others = zip(*rows, strict=True)
    pairs = hash_pairs(keys, values)
    chained = hash_longs(np.array(others, np.int64), hash_longs(np.array(ones, np.int64), pairs))
    assert [tuple(row) for row in told] == list(
        zip(pairs.view(np.int64).tolist(), chained.view(np.int64).tolist(), strict=True)
    )


@FEW
@given(texts=st.lists(st.text(), min_size=1, max_size=40), partition=st.integers(-1, 2**31 - 1))
def test_text_and_place(spark: SparkSession, texts: list[str], partition: int) -> None:
    frame = spark.createDataFrame([(text, partition) for text in texts], "text string, partition int")
    told = [tuple(row) for row in frame.select(F.xxhash64("text"), F.xxhash64("text", "partition")).collect()]
    hashed = hash_texts(pa.array(texts, pa.string())).view(np.int64)
    places = np.array([hash_place(text, partition) for text in texts], np.uint64).view(np.int64)
    assert told == list(zip(hashed.tolist(), places.tolist(), strict=True))


@settings(deadline=None)
@given(texts=st.lists(st.text(max_size=80), max_size=40), skipped=st.integers(0, 5), seed=st.integers(0, 2**64 - 1))
def test_texts_of_many_lengths_each_with_its_seed(texts: list[str], skipped: int, seed: int) -> None:
    """A column may be a part of a larger one; the C library says what is right."""
    column = pa.array(texts, pa.string())[skipped:]
    seeds = np.arange(len(column), dtype=np.uint64) + np.uint64(seed)
    expected = [xxh64_intdigest(text.encode(), int(one)) for text, one in zip(texts[skipped:], seeds, strict=True)]
    assert hash_texts(column, seeds).tolist() == expected
    with pytest.MonkeyPatch.context() as patch:  # where no compiler was there
        patch.setattr(xxhash, "_xxhash_texts", None)
        assert hash_texts(column, seeds).tolist() == expected


@pytest.mark.parametrize("length", [0, 1, 3, 4, 8, 31, 32, 36, 64, 71])
def test_texts_of_one_length(length: int) -> None:
    """More of them than are hashed together."""
    texts = [f"{number:0{length}d}"[-length:] if length else "" for number in range(10_000)]
    expected = [xxh64_intdigest(text.encode(), 42) for text in texts]
    assert hash_texts(pa.array(texts, pa.string())).tolist() == expected
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(xxhash, "_xxhash_texts", None)
        assert hash_texts(pa.array(texts, pa.string())).tolist() == expected
