"""Count how late partners came while they are paired, so that the rows are not shuffled a second time."""

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tallystick.model.direction import Direction
from tallystick.model.partner_lag import EDGES_MS, TopicLag
from tallystick_spark.readers.topic_frame import topic_number


@dataclass(frozen=True)
class LagMeter:
    """Counts keys that are one event and one equal row, by topic and lag."""

    topics: tuple[str, ...]
    direction: Direction

    def event_columns(self) -> tuple[Column, ...]:
        """Return an event's columns. Its topic travels as a number: text would turn the aggregation into a sort."""
        return topic_number(self.topics).alias("topic_number"), F.col("written_ms")

    def row_columns(self) -> tuple[Column, ...]:
        """Return a ledger row's columns, in the same shape."""
        return F.lit(-1).alias("topic_number"), F.col("written_ms")

    def figures(self) -> tuple[Column, ...]:
        """Return the figures that the aggregation by key keeps of them."""
        in_topic = F.col("in_topic")
        return (
            F.max("topic_number").alias("topic_number"),
            F.max(F.when(in_topic, F.col("written_ms"))).alias("topic_ms"),
            F.max(F.when(~in_topic, F.col("written_ms"))).alias("ledger_ms"),
        )

    def fold(self, counted: DataFrame, simple: Column) -> DataFrame:
        """Fold simple keys into one row per topic and bucket; planted ones are not measured.

        Shape: planted, match_key (null in those), lag_cell, pairs.

        Folded before it is shuffled, so that what travels is the exceptional keys and a few counts.
        """
        topic_to_ledger = self.direction is Direction.TOPIC_TO_LEDGER
        first, second = ("topic_ms", "ledger_ms") if topic_to_ledger else ("ledger_ms", "topic_ms")
        lag_ms = F.col(second) - F.col(first)
        bucket = F.lit(len(EDGES_MS) - 1)
        for number in reversed(range(len(EDGES_MS) - 1)):
            bucket = F.when(lag_ms <= EDGES_MS[number], number).otherwise(bucket)
        measured = simple & lag_ms.isNotNull() & ~F.col("planted")
        cell = F.when(measured, F.col("topic_number") * len(EDGES_MS) + bucket)
        key = F.when(~simple, F.col("match_key"))
        group = ("planted", key.alias("match_key"), cell.alias("lag_cell"))
        return counted.groupBy(*group).agg(F.count("*").alias("pairs"))

    def read(self, folded: DataFrame) -> tuple[TopicLag, ...]:
        """Return the counts by topic; without topics that had no pair."""
        counts = {row["lag_cell"]: row["pairs"] for row in folded.where("lag_cell IS NOT NULL").collect()}
        width = len(EDGES_MS)
        lags = (
            TopicLag(topic=topic, pairs=tuple(counts.get(position * width + n, 0) for n in range(width)))
            for position, topic in enumerate(self.topics)
        )
        return tuple(lag for lag in lags if any(lag.pairs))
