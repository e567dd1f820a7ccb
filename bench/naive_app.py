"""What a good Spark user writes today: the default Kafka source, from_json, JDBC, a full outer join, counts.

    python -m bench.naive_app --servers HOST:PORT --dsn-from VARIABLE --table NAME --times 4 --result FILE

Finds no doubled event, no aborted or torn transaction, keeps no evidence and stores nothing. With --datacompy the same
two frames are compared by datacompy's SparkSQLCompare instead.
"""

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from sqlalchemy import make_url

from bench.data_set import TOPIC
from bench.spark_session import open_session, time_each

_EVENT = "event_id string, payment_id string, leg string, amount_minor bigint, currency string"
_COMPARED = ("payment_id", "leg", "amount_minor", "currency")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--servers", required=True, help="the broker's address")
    parser.add_argument("--dsn-from", required=True, help="environment variable with the ledger's address")
    parser.add_argument("--table", required=True, help="the ledger's table")
    parser.add_argument("--times", type=int, default=1, help="so many times in one session")
    parser.add_argument("--datacompy", action="store_true", help="compare the frames by datacompy")
    parser.add_argument("--result", type=Path, required=True, help="where the figures go")
    given = parser.parse_args()
    spark = open_session("naive")
    compare = _by_datacompy if given.datacompy else _by_join
    dsn = os.environ[given.dsn_from]

    def once() -> Callable[[], dict[str, Any]]:
        answer = compare(spark, _events(spark, given.servers), _rows(spark, dsn, given.table))
        return lambda: answer

    time_each(given.times, once, given.result)


def _events(spark: SparkSession, servers: str) -> DataFrame:
    source = (
        spark.read.format("kafka")
        .option("kafka.bootstrap.servers", servers)
        .option("kafka.isolation.level", "read_committed")
        .option("subscribe", TOPIC)
        .option("startingOffsets", "earliest")
        .option("endingOffsets", "latest")
        .load()
    )
    return source.select(F.from_json(F.col("value").cast("string"), _EVENT).alias("event")).select("event.*")


def _rows(spark: SparkSession, dsn: str, table: str) -> DataFrame:
    url = make_url(dsn)
    query = f"SELECT event_id::text AS event_id, payment_id, leg, amount_minor, currency FROM {table}"
    return (
        spark.read.format("jdbc")
        .option("url", f"jdbc:postgresql://{url.host}:{url.port}/{url.database}")
        .option("user", url.username or "")
        .option("password", url.password or "")
        .option("driver", "org.postgresql.Driver")
        .option("fetchsize", "10000")
        .option("query", query)
        .load()
    )


def _by_join(spark: SparkSession, events: DataFrame, rows: DataFrame) -> dict[str, Any]:
    topic, ledger = events.alias("topic"), rows.alias("ledger")
    joined = topic.join(ledger, F.col("topic.event_id") == F.col("ledger.event_id"), "full_outer")
    same = F.lit(True)
    for name in _COMPARED:
        same = same & (F.col(f"topic.{name}") == F.col(f"ledger.{name}"))
    both = F.col("topic.event_id").isNotNull() & F.col("ledger.event_id").isNotNull()
    counts = joined.agg(
        F.count_if(F.col("ledger.event_id").isNull()).alias("missing_in_ledger"),
        F.count_if(F.col("topic.event_id").isNull()).alias("missing_in_topic"),
        F.count_if(both & ~same).alias("different"),
    ).first()
    assert counts is not None  # an aggregate over everything has one row
    return counts.asDict()


def _by_datacompy(spark: SparkSession, events: DataFrame, rows: DataFrame) -> dict[str, Any]:
    from datacompy.spark import SparkSQLCompare  # one of the two programs; the other does without

    compared = SparkSQLCompare(spark, events, rows, join_columns=["event_id"], df1_name="topic", df2_name="ledger")
    compared.report()
    found = {
        "missing_in_ledger": compared.df1_unq_rows.count(),
        "missing_in_topic": compared.df2_unq_rows.count(),
        "different": compared.intersect_rows.count() - compared.count_matching_rows(),
    }
    spark.catalog.clearCache()  # it keeps the pairs; the next run must not find them
    return found


if __name__ == "__main__":
    main()
