"""The key index as Spark writes it is the one that is asked without Spark."""

from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from tallystick.ledger.key_index import IndexedCopy, ReadableIndexes, commit_index, index_folder, key_hash
from tallystick.matching.scan_result import CANARY_PARTITION
from tallystick.model.offsets import TopicPartition
from tallystick_spark.readers.key_index_frame import index_of, keys_below, keys_in_indexes, write_index

KEYS = ["a", "b", "", "ü", "9b1d", "with space", "\u65e5\u672c"]
SHAPE = "topic string, partition int, kafka_offset bigint, match_key string, readable boolean"


def events(spark: SparkSession, topic: str, keys: list[str], *more: tuple[object, ...]) -> DataFrame:
    rows = [(topic, number % 2, number, key, True) for number, key in enumerate(keys)]
    return spark.createDataFrame([*rows, *more], SHAPE)


def test_what_spark_writes_is_found_by_key_in_order_of_the_hash(spark: SparkSession, tmp_path: Path) -> None:
    artifacts = tmp_path / "with space"
    folder = index_folder(artifacts, "billing", 1, attempt=1)
    outputs = events(
        spark, "out", KEYS, ("out", CANARY_PARTITION, 1, "canary", True), ("out", 0, 99, "unreadable", False)
    )
    write_index(index_of(outputs, events(spark, "in", KEYS[:2])), folder)
    index = commit_index(artifacts, folder, copies=len(KEYS) + 2, kept_from=1)
    asked = ReadableIndexes(artifacts=artifacts, by_cut={1: index})
    found = asked.look_up([*KEYS, "nowhere", "canary", "unreadable"])
    assert set(found) == set(KEYS)
    assert found["b"] == (IndexedCopy("ledger:in:1:1", 1), IndexedCopy("topic:out:1:1", 1))
    for path in asked.paths:
        written = [(row["hash_high"], row["hash_low"]) for row in pq.read_table(path).to_pylist()]
        assert written == sorted(written)
        assert set(written) <= {key_hash(key) for key in KEYS}
    again = events(spark, "in", ["b", "new"], ("in", 0, 9, "a", False))
    assert keys_in_indexes(spark, again, asked.paths) == {"b"}
    assert keys_in_indexes(spark, again, ()) == set()


def test_keys_below_an_offset_of_their_partition_are_told(spark: SparkSession) -> None:
    some = events(spark, "in", ["a", "b", "c", "d"], ("in", 0, 1, "unreadable", False), ("other", 0, 0, "e", True))
    first, second = (TopicPartition(topic="in", partition=number) for number in (0, 1))
    assert keys_below(some, {first: 2, second: 9}) == {"a", "b", "d"}
    assert keys_below(some, {first: 0}) == set()
    assert keys_below(some, {}) == set()
