"""The key index as Spark writes and asks it, of a frame of events; what it holds is tallystick/ledger/key_index.py.

Shape: hash_high, hash_low, part, kafka_offset; one row per readable copy of either side, in order of the hash.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from tallystick.host.artifacts import ObjectPlace, Place, fetch
from tallystick.host.private_files import narrow, private_folder
from tallystick.ledger.key_index import INDEX_COLUMNS, open_index_file
from tallystick.matching.scan_result import CANARY_PARTITION
from tallystick.model.offsets import TopicPartition
from tallystick_spark.readers.key_index_files import (
    COPIES_OF_A_FILE,
    IndexPlan,
    IndexWriter,
    read_before,
    write_whole,
)

_SHAPE = "hash_high bigint, hash_low bigint, part string, kafka_offset bigint"
_ROW_GROUP_BYTES = 1 << 20
"""Small ones, some 40,000 copies: a look-up of a few keys reads a few of them."""
_TASKS_MAX = 64
"""Tasks that read earlier indexes out of a store."""


def hash_columns() -> tuple[Column, Column]:
    """Hash like tallystick.ledger.key_index.key_hash; a negative base makes conv give signed numbers."""
    digest = F.sha2("match_key", 256)
    halves = (F.conv(F.substring(digest, start, 16), 16, -10).cast("bigint") for start in (1, 17))
    high, low = halves
    return high.alias("hash_high"), low.alias("hash_low")


def index_of(outputs: DataFrame, inputs: DataFrame) -> DataFrame:
    """Return the rows that this cut adds to the index. Takes parsed events of both sides; planted ones are left out."""
    entries = [
        side.where(F.col("readable") & (F.col("partition") != CANARY_PARTITION)).select(
            *hash_columns(), F.concat_ws(":", F.lit(word), "topic", "partition").alias("part"), "kafka_offset"
        )
        for side, word in ((outputs, "topic"), (inputs, "ledger"))
    ]
    return entries[0].unionByName(entries[1]).select(*INDEX_COLUMNS)


def write_index(index: DataFrame, folder: Place) -> None:
    """Write it in order of the hash, so that a row group's bounds say which keys it may hold.

    Spark writes to a folder. To a store of objects each task sends what it has: Spark would need a jar for each store.
    """
    ordered = index.sort("hash_high", "hash_low")
    if isinstance(folder, ObjectPlace):
        ordered.mapInArrow(partial(_send_sorted, folder=folder), "copies bigint").collect()
        return
    private_folder(folder)
    (
        ordered.write.option("compression", "zstd")
        .option("parquet.block.size", _ROW_GROUP_BYTES)
        .mode("append")  # to the folder, which is empty: Spark's own would be everybody's to read
        .parquet(local_file(folder))
    )
    narrow(folder)


def _send_sorted(batches: Iterable[pa.RecordBatch], folder: Place) -> Iterator[pa.RecordBatch]:
    """Send a task's part, some copies at a time. A file is named after its first: a second attempt replaces it."""
    waiting: list[pa.RecordBatch] = []
    copies = 0

    def sent() -> Iterator[pa.RecordBatch]:
        if waiting:
            part = pa.Table.from_batches(waiting)
            first = part.slice(0, 1).to_pylist()[0]
            name = "-".join(str(first[column]).replace(":", "-") for column in INDEX_COLUMNS)
            write_whole(part, folder, name)
            waiting.clear()
            yield pa.record_batch({"copies": pa.array([part.num_rows], pa.int64())})

    for batch in batches:
        waiting.append(batch)
        copies += batch.num_rows
        if copies >= COPIES_OF_A_FILE:
            yield from sent()
            copies = 0
    yield from sent()


def local_file(path: Path) -> str:
    """Return Spark's name of a path in each machine's own file system, whatever its default one. Escapes nothing."""
    return f"file://{path.absolute()}"


def keys_in_indexes(spark: SparkSession, events: DataFrame, files: Collection[Place]) -> set[str]:
    """Return keys of these events that an earlier cut has read too, on either side.

    files: where executors find the indexes.
    """
    paths = [file for file in files if isinstance(file, Path)]
    objects = [file for file in files if isinstance(file, ObjectPlace)]
    if paths:
        indexed = spark.read.schema(_SHAPE).parquet(*map(local_file, paths)).select("hash_high", "hash_low")
    elif objects:
        numbers = spark.range(0, len(objects), numPartitions=min(len(objects), _TASKS_MAX))
        indexed = numbers.mapInArrow(partial(_hashes_of, objects=objects), "hash_high bigint, hash_low bigint")
    else:
        return set()
    hashed = events.where("readable").select("match_key", *hash_columns())
    seen = hashed.join(indexed, ["hash_high", "hash_low"], "left_semi").select("match_key").distinct()
    return {row["match_key"] for row in seen.collect()}


def keys_below(events: DataFrame, ends: Mapping[TopicPartition, int]) -> set[str]:
    """Return keys of these events that lie below an offset of their partition. ends: offsets, of some partitions."""
    below = [
        (F.col("topic") == part.topic) & (F.col("partition") == part.partition) & (F.col("kafka_offset") < end)
        for part, end in ends.items()
    ]
    if not below:
        return set()
    found = events.where(F.col("readable") & reduce(Column.__or__, below)).select("match_key").distinct()
    return {row["match_key"] for row in found.collect()}


def _hashes_of(batches: Iterable[pa.RecordBatch], objects: Sequence[ObjectPlace]) -> Iterator[pa.RecordBatch]:
    """Yield the hashes in objects, which are named by their number."""
    for number in (one for batch in batches for one in batch.column(0).to_pylist()):
        with TemporaryDirectory(prefix="tallystick-") as scratch:
            name = objects[number].name
            fetch(replace(objects[number], below=objects[number].below.parent), [name], Path(scratch))
            with open_index_file(Path(scratch, name)) as opened:
                yield from opened.iter_batches(columns=["hash_high", "hash_low"])


def keys_read_before(events: DataFrame, index: IndexPlan) -> set[str]:
    """Write the index of these events, and give those of their keys that earlier cuts have read too."""
    of_keys = events.where("readable").select("topic", "partition", "kafka_offset", "match_key")
    written = of_keys.mapInArrow(partial(_write_keys, index=index), "copies bigint").collect()
    places = [
        (topic, partition, offset)
        for (topic, partition), offsets in read_before(index, sum(task["copies"] for task in written)).items()
        for offset in offsets.tolist()
    ]
    if not places:
        return set()
    frame = events.sparkSession.createDataFrame(places, "topic string, partition int, kafka_offset bigint")
    found = of_keys.join(F.broadcast(frame), ["topic", "partition", "kafka_offset"], "left_semi")
    return {row["match_key"] for row in found.select("match_key").distinct().collect()}


def _write_keys(batches: Iterable[pa.RecordBatch], index: IndexPlan) -> Iterator[pa.RecordBatch]:
    keys, copies = IndexWriter(folder=index.folder, seed=index.seed), 0
    for batch in batches:
        by_part: dict[tuple[str, int], tuple[list[bytes], list[int]]] = {}
        for row in batch.to_pylist():
            some = by_part.setdefault((row["topic"], row["partition"]), ([], []))
            some[0].append(row["match_key"].encode())
            some[1].append(row["kafka_offset"])
        for (topic, partition), (match_keys, offsets) in by_part.items():
            keys.add(topic, partition, match_keys, np.array(offsets, dtype=np.int64))
        copies += batch.num_rows
    keys.close()
    yield pa.record_batch({"copies": pa.array([copies], pa.int64())})
