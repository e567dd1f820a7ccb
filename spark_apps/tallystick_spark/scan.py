"""The first reader: Spark, both sides of one cut, in one of several ways that give the same answers.

By our own reader of the log, and Kafka's client reads a sample again: matched by hash, where the census comes with it;
or pair by pair, where a contract asks for more than pairs. By Kafka's client, where somebody asks for it: by hash or
pair by pair. What is a readable event, `tallystick.kafka_log.event_decoder` says in all of them.
"""

import os
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from sqlalchemy import Engine

from tallystick.anomalies.notices.timestamp_skew import possible_ms
from tallystick.connections.connections import Connections, KafkaSettings
from tallystick.contract.contract import Contract
from tallystick.contract.event import EventFields
from tallystick.host.artifacts import Place
from tallystick.host.extras import require
from tallystick.judging.canaries import canary_events, canary_rows
from tallystick.kafka_log.offset_census import OnProgress
from tallystick.ledger.input_topics import input_kafka
from tallystick.ledger.key_index import ReadableIndexes
from tallystick.ledger.postgres_connection import scan_address
from tallystick.matching.evidence import SecondReading
from tallystick.matching.scan_result import SliceScan
from tallystick.model.census_values import PartitionCensus
from tallystick.model.cut import Cut, TopicSlice
from tallystick.model.direction import Direction
from tallystick.model.offsets import OffsetRange, TopicPartition
from tallystick.pipeline.open_ledger import open_ledger_of
from tallystick.pipeline.run_history import inputs_of_before
from tallystick.spark.spark_job import BY_CLIENT, PAIR_BY_PAIR, way_of_scanning
from tallystick_spark.matching.frame_match import beside_planted, scan_slices
from tallystick_spark.matching.hash_scan import (
    Canaries,
    HashScan,
    LedgerSource,
    ParsedEvents,
    ParsedRows,
    Places,
    TopicSource,
    scan_by_hash,
    supports_hash_match,
)
from tallystick_spark.readers.canary_rows import canary_events_read, canary_ledger_rows
from tallystick_spark.readers.cross_check import choose_sample, compare, read_again
from tallystick_spark.readers.key_index_files import IndexPlan, read_before
from tallystick_spark.readers.key_index_frame import (
    index_of,
    keys_below,
    keys_in_indexes,
    keys_read_before,
    write_index,
)
from tallystick_spark.readers.ledger_frame import (
    RowsById,
    input_rows,
    read_ledger,
    repeated_row_ids,
    rows_by_id,
    slice_queries,
)
from tallystick_spark.readers.log_reader import LogTopic, as_raised_in_the_task, log_events
from tallystick_spark.readers.postgres_rows import PostgresRows
from tallystick_spark.readers.reader_messages import NOTHING_SEEN
from tallystick_spark.readers.topic_frame import parse_events, read_topics
from tallystick_spark.session import open_session, telling_tasks


@dataclass(frozen=True, kw_only=True)
class Side:
    """Parsed events or ledger rows: those that are read, once somebody asks for them, and the planted ones."""

    reading: Callable[[], DataFrame]
    planted: pa.RecordBatch

    @cached_property
    def read(self) -> DataFrame:
        return self.reading()

    @cached_property
    def all(self) -> DataFrame:
        planted = self.read.sparkSession.createDataFrame(pa.Table.from_batches([self.planted]))
        return beside_planted(self.read, planted)


@dataclass(frozen=True, kw_only=True)
class Sides:
    """The input of a match. by_id: asks the ledger for single rows, where it can. queries: read a PostgreSQL's rows,
    under `snapshot`.
    """

    topic: Side
    ledger: Side
    by_id: RowsById | None
    queries: tuple[str, ...]
    snapshot: str | None

    def parsed_rows(self) -> ParsedRows:
        return ParsedRows(rows=self.ledger.read, by_id=self.by_id)


def reads_log(contract: Contract) -> bool:
    """Return whether our own reader reads the events from the log, and counts its offsets in the same walk."""
    return not _asks_for_client() and matches_by_hash(contract)


def matches_by_hash(contract: Contract) -> bool:
    """Return whether the quick match answers as the full one does."""
    return way_of_scanning(os.environ) != PAIR_BY_PAIR and supports_hash_match(
        has_sequence=contract.event.sequence is not None,
        ignore_case=contract.currency_case == "ignored",
        has_inputs=bool(contract.input_topics),
        adds_up=contract.parts_side is not None,
    )


@dataclass(frozen=True, kw_only=True)
class CutToScan:
    """A cut, the one before it, the baseline, and what it is a cut of."""

    contract: Contract
    connections: Connections
    cut: Cut
    previous: Cut
    baseline: Cut

    @property
    def topic_slices(self) -> list[TopicSlice]:
        """The slices of the contract's own topics."""
        return slices_on(self.cut, self.contract.topics)

    @property
    def several_legs(self) -> bool:
        return len(self.contract.legs) > 1

    @property
    def seed(self) -> str:
        """The text that the choice of a sample depends on."""
        return f"{self.contract.name}/{self.cut.n}"

    @property
    def possible_ms(self) -> tuple[int, int] | None:
        """First and last timestamp that the window can hold; None where a cut ends by time itself."""
        if self.cut.by_time or self.previous.by_time:
            return None
        tolerance_seconds = self.contract.timestamp_tolerance_seconds
        return possible_ms(self.cut, self.previous, tolerance_seconds=tolerance_seconds)

    @property
    def lag_of(self) -> Direction | None:
        return self.contract.direction if self.contract.ledger.columns.written_at else None


def _places_of(indexes: ReadableIndexes | None, index_to: IndexPlan | None) -> tuple[Place, ...]:
    """Return where executors find the files of earlier indexes: the driver's copies are on its own disk."""
    paths = indexes.paths if indexes else ()
    copies = index_to.copies if index_to else None
    return tuple(copies.origin_of(path) for path in paths) if copies else paths


def scan_cut(
    engine: Engine,
    asked: CutToScan,
    *,
    keys_to_include: Collection[str],
    by_log: bool,
    on_progress: OnProgress,
    indexes: ReadableIndexes | None = None,
    index_to: IndexPlan | None = None,
) -> tuple[SliceScan, tuple[PartitionCensus, ...]]:
    """Read and match. by_log: as `reads_log` says; only then the census comes with it. on_progress: told each step.

    keys_to_include: keys whose copies are all collected. indexes: of earlier cuts, to know what comes again. index_to:
    where this cut's goes; None writes and asks none.
    """
    contract, connections, cut, keys = asked.contract, asked.connections, asked.cut, set(keys_to_include)
    with (
        open_session(f"tallystick {asked.seed}") as spark,
        open_ledger_of(engine, contract, connections) as ledger,
        ExitStack() as kept,
    ):
        described = ledger.describe()
        with ledger.held_snapshot() as snapshot:
            if not described.key_is_unique:
                keys |= set(ledger.keys_seen_before(cut.ledger_slice))
            topic, inputs = _topic_side(spark, asked), None
            if contract.input_topics:
                topic = replace(topic, reading=partial(_persisted, topic.reading, kept))
                input_slices = slices_on(cut, contract.input_topics)
                kafka = input_kafka(contract, connections)
                read_inputs = partial(
                    _read_events, spark, kafka, input_slices, contract.input_event, asked.several_legs
                )
                inputs = _persisted(read_inputs, kept)
                with as_raised_in_the_task():
                    keys |= keys_below(inputs, _inputs_of_before(asked))
                    keys |= keys_in_indexes(spark, inputs, _places_of(indexes, index_to))
                    if index_to is not None:
                        write_index(index_of(topic.all, inputs), index_to.folder)
                        on_progress("index_written", {})
                reading = partial(input_rows, inputs, only_leg=min(contract.legs) if len(contract.legs) == 1 else None)
            else:
                reading = partial(read_ledger, spark, connections, ledger, cut.ledger_slice, described, snapshot)
                if index_to is not None and indexes is not None:
                    index_to = replace(index_to, older=indexes.paths_of(index_to.seed))
            sides = Sides(
                topic=topic,
                ledger=Side(reading=reading, planted=canary_ledger_rows(canary_rows(contract))),
                by_id=rows_by_id(ledger, described, cut.ledger_slice),
                queries=slice_queries(ledger, described, cut.ledger_slice),
                snapshot=snapshot,
            )
            if by_log:
                scan, census = _scan_log(spark, asked, sides, keys, on_progress, index_to)
            else:
                samples = () if _asks_for_client() else _samples(asked)
                with as_raised_in_the_task(), ThreadPoolExecutor(1) as beside:
                    again = beside.submit(_read_twice, spark, samples)
                    scan, census = _scan(asked, sides, keys, inputs, index_to, kept), ()
                    scan = replace(scan, second_readings=again.result())
            if not described.row_id_is_unique:
                scan = replace(scan, row_ids_repeat=True, repeated_row_ids=repeated_row_ids(sides.ledger.read))
            return scan, census


def _inputs_of_before(asked: CutToScan) -> dict[TopicPartition, int]:
    """Return where inputs that are older than the books end, in those slices of the cut that hold some."""
    ends = inputs_of_before(asked.cut, asked.baseline, asked.contract.input_topics)
    slices = {part.offsets.topic_partition: part.offsets for part in asked.cut.topic_slices}
    return {place: end for place, end in ends.items() if slices[place].kafka_offset_start < end}


def _persisted(reading: Callable[[], DataFrame], kept: ExitStack) -> DataFrame:
    """Read a frame that Spark keeps once it was read, as long as `kept` lasts: a warm server outlives the scan."""
    frame = reading().persist()
    kept.callback(frame.unpersist)
    return frame


def _topic_side(spark: SparkSession, asked: CutToScan) -> Side:
    """Return the events of the cut's own topics, beside those that are planted."""
    contract, kafka, several_legs = asked.contract, asked.connections.kafka, asked.several_legs
    return Side(
        reading=partial(_read_events, spark, kafka, asked.topic_slices, contract.event, several_legs),
        planted=canary_events_read(
            canary_events(contract),
            contract.event,
            several_legs=several_legs,
            written_at=asked.cut.marked_at_utc,
        ),
    )


def _read_events(
    spark: SparkSession, kafka: KafkaSettings, slices: Sequence[TopicSlice], fields: EventFields, several_legs: bool
) -> DataFrame:
    """Read events by our own reader, or by Kafka's client where the environment asks for it."""
    ranges = [part.readable for part in slices]
    if _asks_for_client():
        source = read_topics(spark, kafka, ranges, headers=bool(fields.places))
        return parse_events(source, fields, several_legs=several_legs)
    return log_events(spark, kafka, ranges, fields, several_legs=several_legs)


def _asks_for_client() -> bool:
    return way_of_scanning(os.environ) in (BY_CLIENT, PAIR_BY_PAIR)


def _scan_log(
    spark: SparkSession,
    asked: CutToScan,
    sides: Sides,
    keys_to_include: Collection[str],
    on_progress: OnProgress,
    index_to: IndexPlan | None,
) -> tuple[SliceScan, tuple[PartitionCensus, ...]]:
    """Scan by our readers of log and ledger, beside a second reading by Kafka's client."""
    slices, kafka = asked.topic_slices, asked.connections.kafka
    sample = choose_sample(slices, seed=asked.seed)
    log = LogTopic(
        spark=spark,
        kafka=kafka,
        slices=tuple(slices),
        fields=asked.contract.event,
        legs=asked.contract.legs,
        sample=sample,
        index=index_to,
    )
    rows: LedgerSource
    if sides.queries and sides.snapshot is not None:
        require("adbc_driver_postgresql")
        rows = PostgresRows(
            spark=spark,
            address=scan_address(
                asked.connections.ledger_dsn, may_be_standby=asked.contract.ledger.primary_connection is not None
            ),
            snapshot=sides.snapshot,
            queries=sides.queries,
            placed=sides.by_id is not None,
            compared=asked.contract.ledger.columns.compared,
            rows_again=lambda plan, key_hashes, places: sides.parsed_rows().rows_of(plan, key_hashes, places),
        )
    else:
        rows = sides.parsed_rows()
    with as_raised_in_the_task(), ThreadPoolExecutor(1) as beside, telling_tasks(spark, partial(_tell, on_progress)):
        by_client = beside.submit(read_again, spark, kafka, sample)
        repeated = partial(read_before, index_to) if index_to else None
        read = _by_hash(asked, log, rows, sides, keys_to_include, repeated)
        again = by_client.result()
        whole = {part.topic_partition for part in sample if part in again.ranges}
        ours = {part: read.seen.get(part, NOTHING_SEEN) if part in whole else seen for part, seen in again.ours.items()}
        second_readings = compare(again.ranges, ours, again.clients)
    order = {(part.offsets.topic, part.offsets.partition): place for place, part in enumerate(asked.cut.topic_slices)}
    on_progress("fetched", {"bytes": sum(walked.fetched_bytes for walked in read.walked)})
    ordered = sorted((walked.census for walked in read.walked), key=lambda one: order[one.topic, one.partition])
    return replace(read.scan, second_readings=second_readings), tuple(ordered)


def _samples(asked: CutToScan) -> tuple[tuple[KafkaSettings, tuple[OffsetRange, ...]], ...]:
    """Return the ranges that Kafka's client reads again, with the settings of their cluster."""
    events = (asked.connections.kafka, choose_sample(asked.topic_slices, seed=asked.seed))
    if not asked.contract.input_topics:
        return (events,)
    inputs = choose_sample(slices_on(asked.cut, asked.contract.input_topics), seed=asked.seed)
    return (events, (input_kafka(asked.contract, asked.connections), inputs))


def _read_twice(
    spark: SparkSession, samples: Sequence[tuple[KafkaSettings, Sequence[OffsetRange]]]
) -> tuple[SecondReading, ...]:
    both = [read_again(spark, kafka, sample) for kafka, sample in samples]
    return tuple(chain.from_iterable(compare(one.ranges, one.ours, one.clients) for one in both))


def _tell(on_progress: OnProgress, ended: int, of: int) -> None:
    on_progress("tasks", {"done": ended, "of": of})


def _by_hash(
    asked: CutToScan,
    topic: TopicSource,
    rows: LedgerSource,
    sides: Sides,
    keys_to_include: Collection[str],
    repeated: Callable[[int], Places] | None = None,
) -> HashScan:
    return scan_by_hash(
        topic,
        rows,
        Canaries(events=sides.topic.planted, rows=sides.ledger.planted),
        legs=asked.contract.legs,
        keys_to_include=keys_to_include,
        offsets=sum(len(part.readable) for part in asked.topic_slices),
        possible_ms=asked.possible_ms,
        lag_of=asked.lag_of,
        read_before=repeated,
    )


def _scan(
    asked: CutToScan,
    sides: Sides,
    keys_to_include: Collection[str],
    inputs: DataFrame | None,
    index_to: IndexPlan | None,
    kept: ExitStack,
) -> SliceScan:
    """Scan parsed events: by hash where that gives the same answers, otherwise pair by pair."""
    if index_to is not None and inputs is None:
        sides = replace(sides, topic=replace(sides.topic, reading=partial(_persisted, sides.topic.reading, kept)))
        keys_to_include = {*keys_to_include, *keys_read_before(sides.topic.read, index_to)}
    if matches_by_hash(asked.contract):
        parsed = ParsedEvents(events=sides.topic.read, legs=asked.contract.legs)
        return _by_hash(asked, parsed, sides.parsed_rows(), sides, keys_to_include).scan
    return scan_slices(
        sides.topic.all,
        sides.ledger.all,
        legs=asked.contract.legs,
        keys_to_include=keys_to_include,
        ignore_case=asked.contract.currency_case == "ignored",
        possible_ms=asked.possible_ms,
        lag_of=asked.lag_of,
        inputs=inputs,
        parts=asked.contract.parts_side,
    )


def slices_on(cut: Cut, topics: Collection[str]) -> list[TopicSlice]:
    """Return the cut's slices of these topics."""
    return [part for part in cut.topic_slices if part.offsets.topic in topics]
