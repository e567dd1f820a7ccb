"""What a run has the JVM do, in small and without a server, so that its classes are loaded: see class_archive.py.

    spark-submit class_archive_app.py FOLDER

A run reads a ledger by JDBC, events by Python in Arrow batches, JSON; it shuffles by hash, sorts, counts, joins, brings
Arrow home, and writes and reads Parquet. Exit 0 and files in FOLDER; what comes out of it is nobody's answer.
"""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F


def main(folder: Path) -> None:
    spark = SparkSession.builder.appName("class archive").getOrCreate()
    spark.range(0, 2, 1, 2).mapInArrow(as_they_are, "id long").collect()
    rows, events = read_rows(spark, folder / "rows.sqlite"), make_events(spark)
    both = rows.union(events).repartition(2, "match_key").sortWithinPartitions("match_key")
    both.mapInArrow(as_they_are, both.schema).toArrow()
    paired = rows.join(events.withColumnRenamed("amount", "other"), "match_key", "full_outer").persist()
    paired.groupBy("match_key").agg(F.count("*"), F.sum("amount"), F.collect_list("other")).toArrow()
    paired.unpersist()
    events.write.option("compression", "zstd").parquet(str(folder / "events"))
    spark.conf.set("spark.sql.sources.useV1SourceList", "")  # Kafka's source is one of the second kind, too
    spark.read.parquet(str(folder / "events")).where("amount > 1").toArrow()
    spark.read.format("kafka").option("kafka.bootstrap.servers", "127.0.0.1:9").option("subscribe", "none").load()
    spark.stop()


def read_rows(spark: SparkSession, database: Path) -> DataFrame:
    """A ledger as small as can be. Shape: match_key, amount, hashed."""
    with closing(sqlite3.connect(database)) as ledger, ledger:
        ledger.execute("CREATE TABLE entries (match_key TEXT, document TEXT)")
        ledger.executemany("INSERT INTO entries VALUES (?, ?)", [(str(n), f'{{"amount": {n}}}') for n in range(100)])
    reader = spark.read.format("jdbc").option("url", f"jdbc:sqlite:{database}").option("driver", "org.sqlite.JDBC")
    rows = reader.option("query", "SELECT * FROM entries").load()
    parsed = rows.select("match_key", F.from_json("document", "amount bigint").alias("event"))
    return parsed.select("match_key", "event.amount", F.xxhash64("match_key").alias("hashed"))


def make_events(spark: SparkSession) -> DataFrame:
    """Events that a table of Python's becomes. Shape: as `read_rows`."""
    table = pa.table({"match_key": [str(n) for n in range(100)], "amount": list(range(100))})
    return spark.createDataFrame(table).withColumn("hashed", F.xxhash64("match_key"))


def as_they_are(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
    """Hand them back."""
    return batches


if __name__ == "__main__":
    main(Path(sys.argv[1]))
