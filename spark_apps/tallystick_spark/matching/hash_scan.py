"""The first reader's quick way: match both sides by the hashes of their keys, and collect only what differs.

Each side is read once. Its tasks hash its rows into a few large blobs, one shuffle brings those of one bucket of keys
together, and the match reports the places of all that is not one event and one equal row (`bucket_blobs`,
`hash_match`). A second look collects those rows, which are then paired by their real keys. `supports_hash_match` says
where this way gives the same answers as `frame_match.scan_slices`.

One file, since its three stages share the layout of the blobs that go from one to the next.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import compress
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tallystick.kafka_log.header_cache import BatchHeads
from tallystick.kafka_log.record import PackedRecords
from tallystick.matching.evidence import UnreadableRecord
from tallystick.matching.match_case import Entry
from tallystick.matching.pairing import is_misrouted, topic_of
from tallystick.matching.scan_result import CANARY_PARTITION, CanaryScan, SliceScan
from tallystick.model.direction import Direction
from tallystick.model.errors import TallystickError
from tallystick.model.findings import total_money
from tallystick.model.offsets import TopicPartition
from tallystick.model.partner_lag import TopicLag, lags_of_pairs
from tallystick_spark.matching.bucket_blobs import (
    NO_BUCKET,
    PARTITIONS,
    PLANTED,
    SUMMARY,
    BlobKind,
    GroupTotal,
    Numbers,
    ScanPlan,
    add_totals,
    bucket_of,
    by_bucket,
    first_places,
    numbers_in,
    summarise_events,
    summarise_rows,
    totals_in,
)
from tallystick_spark.matching.content_digest import content_digest
from tallystick_spark.matching.frame_match import (
    Total,
    ledger_copy,
    ledger_totals_in_order,
    record_times_of,
    rows_by_partition_of,
    topic_copy,
    topic_totals_in_order,
)
from tallystick_spark.matching.hash_match import match
from tallystick_spark.matching.keyed_hash import keyed_hashes, keyed_texts, new_secret
from tallystick_spark.matching.row_hashes import (
    SUMMARY_SHAPE,
    events_to_hash,
    hashed_events,
    hashed_rows,
    planted_events_to_hash,
    planted_rows_to_hash,
    rows_to_hash,
)
from tallystick_spark.readers.ledger_frame import RowsById
from tallystick_spark.readers.reader_messages import PartitionScan, RecordDigest, heads_of, seen_in, walked_in
from tallystick_spark.session import cores

LAGS_MEASURED = 50_000
"""About so many keys of a slice have their lag measured."""

ROWS_BY_ID_MAX = 200_000
"""Rows that the ledger is asked for one by one; of more, all are read again."""

MATCHED_TOGETHER = 100_000
"""Offsets that one task matches, at least."""

TASKS_PER_CORE = 2

_NO_PLACES: Numbers = np.empty((0, 2), dtype=np.int64)
_PLACE = "topic string, partition int, kafka_offset bigint"
_BYTES_PER_BATCH = ("spark.sql.execution.arrow.maxBytesPerBatch", str(32 << 20))
"""Blobs are tens of kilobytes: by rows alone a batch of them could be hundreds of megabytes."""

Row = Mapping[str, Any]
Places = Mapping[tuple[str, int], Numbers]
"""Offsets by topic and partition."""


class SourceChangedDuringScan(TallystickError):
    """The second look did not find the rows that the first one told of: log or ledger changed in between."""

    retryable = True


@dataclass(frozen=True, kw_only=True)
class HashScan:
    """A scan, and what only a reader of the log itself adds to it.

    walked: each slice, with its census. seen: what it saw of the offsets that are read twice.
    """

    scan: SliceScan
    walked: tuple[PartitionScan, ...]
    seen: Mapping[TopicPartition, RecordDigest]


class TopicSource(Protocol):
    """The events of a cut, as often as they are asked for."""

    def summaries(self, plan: ScanPlan) -> DataFrame:
        """Return all of them, by `summarise_events`. Shape: SUMMARY."""

    def events_at(self, places: Places, heads: Mapping[TopicPartition, BatchHeads]) -> Collection[Row]:
        """Return readable ones at these offsets, by topic and partition. They hold what `topic_copy` takes; a reader of
        the log itself adds `log_record`, as `log_record.packed` makes it. heads: kept of the log by the summaries.
        """


class LedgerSource(Protocol):
    """The rows of a cut, as often as they are asked for."""

    def summaries(self, plan: ScanPlan) -> DataFrame:
        """Return all of them, by `summarise_rows`. Shape: SUMMARY."""

    def rows_of(self, plan: ScanPlan, key_hashes: Numbers, places: Numbers) -> Sequence[Row]:
        """Return all rows of these keys; in each place the row that was summarised. Shape: as in `ledger_frame`."""


@dataclass(frozen=True, kw_only=True)
class ParsedEvents:
    """A TopicSource over a frame of parsed events."""

    events: DataFrame
    legs: Mapping[str, str]

    def summaries(self, plan: ScanPlan) -> DataFrame:
        def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            return summarise_events(hashed_events(batches, plan.secret), plan)

        return events_to_hash(self.events, topics=plan.topics, legs=self.legs).mapInArrow(run, SUMMARY_SHAPE)

    def events_at(self, places: Places, heads: Mapping[TopicPartition, BatchHeads]) -> Collection[Row]:
        wanted = pa.concat_tables(
            pa.table(
                {
                    "topic": pa.repeat(topic, len(offsets)),
                    "partition": pa.repeat(pa.scalar(partition, pa.int32()), len(offsets)),
                    "kafka_offset": pa.array(offsets, pa.int64()),
                }
            )
            for (topic, partition), offsets in places.items()
        )
        frame = self.events.sparkSession.createDataFrame(wanted)
        found = self.events.join(F.broadcast(frame), ["topic", "partition", "kafka_offset"], "left_semi")
        return _rows_in(found)


@dataclass(frozen=True, kw_only=True)
class ParsedRows:
    """A LedgerSource over a frame of ledger rows.

    by_id: reads the slice's rows of some ids, where ids are integers; else, and where they are too many, all are read
    again.
    """

    rows: DataFrame
    by_id: RowsById | None = None

    def summaries(self, plan: ScanPlan) -> DataFrame:
        def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            return summarise_rows(hashed_rows(batches, plan.secret), plan)

        return rows_to_hash(self.rows, placed=self.by_id is not None).mapInArrow(run, SUMMARY_SHAPE)

    def rows_of(self, plan: ScanPlan, key_hashes: Numbers, places: Numbers) -> Sequence[Row]:
        if self.by_id is None or not places.all():
            return _rows_in(self._of_keys(plan.secret, np.unique(key_hashes)))
        ids = np.unique(places)
        found = self.by_id(ids.tolist()) if len(places) <= ROWS_BY_ID_MAX else _rows_in(self._of_ids(ids))
        return _of_keys(found, key_hashes, plan.secret)

    def _of_ids(self, ids: Numbers) -> DataFrame:
        wanted = self.rows.sparkSession.createDataFrame(pa.table({"row_id": pa.array(ids).cast(pa.string())}))
        return self.rows.join(F.broadcast(wanted), "row_id", "left_semi")

    def _of_keys(self, secret: str, key_hashes: Numbers) -> DataFrame:
        def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for rows in batches:
                yield rows.filter(pa.array(np.isin(keyed_texts(rows["match_key"], secret), key_hashes)))

        return self.rows.mapInArrow(run, self.rows.schema)


@dataclass(frozen=True, kw_only=True)
class Canaries:
    """Canaries, read already: parsed events on their own partition, each at another offset, and ledger rows."""

    events: pa.RecordBatch
    rows: pa.RecordBatch

    def summaries(self, plan: ScanPlan, legs: Mapping[str, str]) -> Iterator[pa.RecordBatch]:
        """Summarise both sides here: so few rows would wait for plans and tasks of their own. Shape: SUMMARY."""
        events = planted_events_to_hash(self.events, topics=plan.topics, legs=legs)
        yield from summarise_events(hashed_events([events], plan.secret), plan)
        yield from summarise_rows(hashed_rows([planted_rows_to_hash(self.rows)], plan.secret), plan, planted=True)

    def told(self, plan: ScanPlan, kinds: Mapping[BlobKind, Numbers]) -> tuple[list[Row], list[Row]]:
        """Return the planted events and rows that the match reports."""
        offsets = {*kinds[BlobKind.EXCEPTION_EVENTS][:, 2].tolist(), *kinds[BlobKind.INCOMPLETE][:, 1].tolist()}
        return (
            [event for event in self.events.to_pylist() if event["kafka_offset"] in offsets],
            _of_keys(self.rows.to_pylist(), kinds[BlobKind.EXCEPTION_ROWS][:, 0], plan.secret),
        )


def _rows_in(frame: DataFrame) -> list[Row]:
    """Return all rows of a frame, brought here by Arrow."""
    rows: list[Row] = frame.toArrow().to_pylist()
    return rows


def _frame_of(spark: SparkSession, summaries: Iterable[pa.RecordBatch]) -> DataFrame:
    """Return summaries that were made here. Shape: SUMMARY."""
    # Spark 4 leaves out, without a word, what stands behind an empty batch of a table.
    return spark.createDataFrame(pa.Table.from_batches(summaries, schema=SUMMARY).combine_chunks())


def _of_keys(rows: Sequence[Row], key_hashes: Numbers, secret: str) -> list[Row]:
    """Return the rows whose key has one of these hashes."""
    return list(compress(rows, np.isin(keyed_hashes((row["match_key"] for row in rows), secret), key_hashes)))


def supports_hash_match(*, has_sequence: bool, ignore_case: bool, has_inputs: bool, adds_up: bool) -> bool:
    """Return whether the quick way answers as the full one does."""
    return not (has_sequence or ignore_case or has_inputs or adds_up)


def scan_by_hash(
    topic: TopicSource,
    ledger: LedgerSource,
    planted: Canaries,
    *,
    legs: Mapping[str, str],
    keys_to_include: Collection[str],
    offsets: int,
    possible_ms: tuple[int, int] | None = None,
    lag_of: Direction | None = None,
    read_before: Callable[[int], Places] | None = None,
) -> HashScan:
    """Scan both sides once, and what is exceptional a second time.

    offsets: of the topics' slices together. read_before: where events stand whose key earlier cuts have read, given how
    many events there are; asked once the topics have been read. The other arguments are those of `scan_slices`.
    Raises SourceChangedDuringScan.
    """
    plan = ScanPlan(
        secret=new_secret(),
        topics=tuple(sorted(set(legs.values()))),
        legs=len(legs),
        possible_ms=possible_ms,
        lag_of_one_in=max(1, -(-offsets // LAGS_MEASURED)) if lag_of else None,
    )
    included = frozenset(keys_to_include)
    found = _first_look(topic, ledger, planted, plan, included, legs=legs, offsets=offsets)
    walked = tuple(map(walked_in, found.beside[BlobKind.WALKED]))
    heads = heads_of(walked)
    home, canaries = _second_look(topic, ledger, planted, plan, found, heads)
    repeated = _places_of(plan, read_before(_events_in(found))) if read_before else _NO_PLACES
    if len(repeated):
        home, again = _with_repeated(topic, ledger, plan, home, repeated, heads)
        included |= again
    return HashScan(
        scan=replace(
            _assemble(plan, found, home, canaries, legs=legs, keys_to_include=included, lag_of=lag_of),
            heads=heads,
            last_batches={one.census.topic_partition: one.last for one in walked},
        ),
        walked=walked,
        seen=dict(map(seen_in, found.beside[BlobKind.SEEN])),
    )


@dataclass(frozen=True, kw_only=True)
class _Found:
    """The match's results. read, planted: rows of numbers by kind. beside: additions of the log's reader, by kind."""

    event_totals: list[GroupTotal]
    row_totals: list[GroupTotal]
    unreadable: Numbers
    read: Mapping[BlobKind, Numbers]
    planted: Mapping[BlobKind, Numbers]
    beside: Mapping[BlobKind, list[bytes]]


@dataclass(frozen=True, kw_only=True)
class _Home:
    """The copies that the second look collected, read or planted. told: reported by the match, by kind."""

    events: Collection[Row]
    rows: Sequence[Row]
    told: Mapping[BlobKind, Numbers]


def _first_look(
    topic: TopicSource,
    ledger: LedgerSource,
    planted: Canaries,
    plan: ScanPlan,
    keys_to_include: frozenset[str],
    *,
    legs: Mapping[str, str],
    offsets: int,
) -> _Found:
    """Run the one job that reads both sides."""
    read = topic.summaries(plan)
    spark = read.sparkSession
    spark.conf.set(*_BYTES_PER_BATCH)
    known_here = [*planted.summaries(plan, legs), *_wanted(keys_to_include, plan.secret)]
    sides = read.union(ledger.summaries(plan)).union(_frame_of(spark, known_here))
    tasks = tasks_to_match(offsets, cores=partial(cores, spark))
    by_bucket = sides.repartition(tasks, "bucket").sortWithinPartitions("bucket")
    told = by_bucket.mapInArrow(partial(match, plan=plan), SUMMARY_SHAPE).toArrow()
    kinds, buckets = told["kind"].to_numpy(), told["bucket"].to_numpy()

    def blobs(kind: BlobKind, wanted: np.ndarray[Any, Any]) -> list[bytes]:
        return list(told["blob"].filter(pa.array(wanted & (kinds == kind))).to_pylist())

    whole = buckets == NO_BUCKET
    told_kinds = (BlobKind.EXCEPTION_EVENTS, BlobKind.EXCEPTION_ROWS, BlobKind.INCOMPLETE, BlobKind.LAGS)
    return _Found(
        event_totals=add_totals(total for blob in blobs(BlobKind.EVENT_TOTALS, whole) for total in totals_in(blob)),
        row_totals=add_totals(total for blob in blobs(BlobKind.ROW_TOTALS, whole) for total in totals_in(blob)),
        unreadable=first_places(numbers_in(BlobKind.UNREADABLE, blobs(BlobKind.UNREADABLE, whole))),
        read={kind: numbers_in(kind, blobs(kind, buckets != PLANTED)) for kind in told_kinds},
        planted={kind: numbers_in(kind, blobs(kind, buckets == PLANTED)) for kind in told_kinds},
        beside={kind: blobs(kind, whole) for kind in (BlobKind.WALKED, BlobKind.SEEN)},
    )


def tasks_to_match(offsets: int, *, cores: Callable[[], int]) -> int:
    """A few for each core, so that none waits long for the last one; of a small slice fewer: each has its start.

    As many for one core as for another: with three for two cores one of them waits. cores: asked where it matters,
    since that is a job of Spark's.
    """
    worth = max(1, offsets // MATCHED_TOGETHER)
    if worth == 1:
        return 1
    number = cores()
    return worth if worth <= number else min(worth // number, TASKS_PER_CORE) * number


def _wanted(keys: Collection[str], secret: str) -> Iterator[pa.RecordBatch]:
    """Yield the keys whose copies are collected in any case. Shape: SUMMARY."""
    if keys:
        hashes = keyed_hashes(keys, secret)
        yield by_bucket(BlobKind.WANTED, bucket_of(hashes), hashes[:, np.newaxis])


def _second_look(
    topic: TopicSource,
    ledger: LedgerSource,
    planted: Canaries,
    plan: ScanPlan,
    found: _Found,
    heads: Mapping[TopicPartition, BatchHeads],
) -> tuple[_Home, _Home]:
    """Collect the copies that the match reports, read and planted. Raises SourceChangedDuringScan."""
    places = np.unique(
        np.vstack([found.read[BlobKind.EXCEPTION_EVENTS][:, 1:], found.read[BlobKind.INCOMPLETE]]), axis=0
    )
    keys = found.read[BlobKind.EXCEPTION_ROWS]
    with ThreadPoolExecutor(1) as beside:
        asked = beside.submit(ledger.rows_of, plan, keys[:, 0], keys[:, 1]) if len(keys) else None
        events = topic.events_at(_by_partition(plan, places), heads) if len(places) else []
        rows = asked.result() if asked else []
    if (len(events), len(rows)) != (len(places), len(keys)):
        raise SourceChangedDuringScan(
            f"expected {len(places)} events and {len(keys)} ledger rows at the second look, got {len(events)} and "
            f"{len(rows)}: log or ledger changed while it was read; the next attempt reads both again"
        )
    canary_events, canary_rows = planted.told(plan, found.planted)
    return (
        _Home(events=events, rows=rows, told=found.read),
        _Home(events=canary_events, rows=canary_rows, told=found.planted),
    )


def _events_in(found: _Found) -> int:
    """Return the readable ones, without planted ones."""
    return sum(one.rows for one in found.event_totals if one.readable and one.part % PARTITIONS)


def _with_repeated(
    topic: TopicSource,
    ledger: LedgerSource,
    plan: ScanPlan,
    home: _Home,
    repeated: Numbers,
    heads: Mapping[TopicPartition, BatchHeads],
) -> tuple[_Home, frozenset[str]]:
    """Return the same with repeated events, and their keys. The match reported none that paired, nor its row."""
    told = set(map(tuple, home.told[BlobKind.EXCEPTION_EVENTS][:, 1:].tolist()))
    paired = repeated[[place not in told for place in map(tuple, repeated.tolist())]]
    here = {_place(event): event for event in home.events}
    wanted = {(*_partition(plan, part), offset) for part, offset in paired.tolist()}
    unseen = paired[[(*_partition(plan, part), offset) not in here for part, offset in paired.tolist()]]
    events = topic.events_at(_by_partition(plan, unseen), heads) if len(unseen) else []
    keys = {event["match_key"] for event in (*home.events, *events) if _place(event) in wanted}
    hashes = keyed_hashes(keys, plan.secret)
    rows = ledger.rows_of(plan, hashes, np.zeros(len(hashes), dtype=np.int64)) if keys else []
    as_told = np.column_stack([np.zeros(len(paired), dtype=np.int64), paired])
    every = {(*_partition(plan, part), offset) for part, offset in repeated.tolist()}
    return (
        _Home(
            events=[*home.events, *events],
            rows=[*home.rows, *(row for row in rows if row["match_key"] in keys)],
            told={**home.told, BlobKind.EXCEPTION_EVENTS: np.vstack([home.told[BlobKind.EXCEPTION_EVENTS], as_told])},
        ),
        frozenset(event["match_key"] for event in (*home.events, *events) if _place(event) in every),
    )


def _place(event: Row) -> tuple[str, int, int]:
    return event["topic"], event["partition"], event["kafka_offset"]


def _places_of(plan: ScanPlan, places: Places) -> Numbers:
    """Return rows of part and place, of offsets by partition."""
    rows = [_NO_PLACES]
    for (topic, partition), offsets in places.items():
        part = plan.topics.index(topic) * PARTITIONS + partition + 1
        rows.append(np.column_stack([np.full(len(offsets), part), offsets]))
    return np.vstack(rows)


def _by_partition(plan: ScanPlan, places: Numbers) -> dict[tuple[str, int], Numbers]:
    """Return offsets by topic and partition, of rows of part and place."""
    return {_partition(plan, part): places[places[:, 0] == part][:, 1] for part in np.unique(places[:, 0]).tolist()}


def _partition(plan: ScanPlan, part: int) -> tuple[str, int]:
    return plan.topics[part // PARTITIONS], part % PARTITIONS - 1


def _assemble(
    plan: ScanPlan,
    found: _Found,
    home: _Home,
    canaries: _Home,
    *,
    legs: Mapping[str, str],
    keys_to_include: frozenset[str],
    lag_of: Direction | None,
) -> SliceScan:
    """Put the scan together, in the shape that `scan_slices` returns."""
    topic_totals, planted_totals = _topic_totals(plan, found.event_totals)
    ledger_totals = _ledger_totals(found.row_totals)
    topic_copies, ledger_copies, incomplete, log_records = _copies(plan, home, legs, keys_to_include)
    topic_canaries, ledger_canaries, incomplete_canaries, _ = _copies(plan, canaries, legs, frozenset())
    money = total_money((total["currency"], total["amount"]) for total in ledger_totals)
    exceptional = total_money((copy.currency, copy.amount_minor) for copy in ledger_copies)
    ledger_rows = sum(total["rows"] for total in ledger_totals)
    return SliceScan(
        rows_by_partition=rows_by_partition_of(topic_totals),
        ledger_rows=ledger_rows,
        matched_rows=ledger_rows - len(ledger_copies),
        matched_money={currency: amount - exceptional.get(currency, 0) for currency, amount in money.items()},
        copies=topic_copies + ledger_copies,
        incomplete=incomplete,
        unreadable_count=sum(total["rows"] for total in topic_totals if not total["readable"]),
        unreadable_sample=_unreadable_sample(plan, found.unreadable),
        content_digests={"topic": content_digest(topic_totals), "ledger": content_digest(ledger_totals)},
        topic_money=total_money((total["currency"], total["amount"]) for total in topic_totals if total["readable"]),
        ledger_money=money,
        record_times=record_times_of(topic_totals) if plan.possible_ms else (),
        lags=_lags(plan, found.read[BlobKind.LAGS], lag_of) if lag_of else (),
        canaries=CanaryScan(
            copies=topic_canaries + ledger_canaries,
            incomplete=incomplete_canaries,
            unreadable=sum(total["rows"] for total in planted_totals if not total["readable"]),
        ),
        log_records=PackedRecords(log_records),
    )


def _copies(
    plan: ScanPlan, home: _Home, legs: Mapping[str, str], keys_to_include: frozenset[str]
) -> tuple[tuple[Entry, ...], tuple[Entry, ...], tuple[Entry, ...], dict[str, tuple[bytes, None]]]:
    """Return exceptional copies of both sides, and the events of transactions that lack a leg; beside them the packed
    log records of all that came, by item id.
    """
    paired, whole, log_records = _of_keys_and_transactions(plan, home)
    events, rows = _exceptional(paired, map(ledger_copy, home.rows), legs, keys_to_include)
    return tuple(events), tuple(rows), tuple(_incomplete(whole, legs)), log_records


def _of_keys_and_transactions(
    plan: ScanPlan, home: _Home
) -> tuple[list[Entry], list[Entry], dict[str, tuple[bytes, None]]]:
    """Return events whose key is here with all its copies, and events whose transaction is here as a whole."""

    def told(kind: BlobKind, first: int) -> set[tuple[str, int, int]]:
        return {(*_partition(plan, part), place) for part, place in home.told[kind][:, first:].tolist()}

    of_transactions, paired, whole = told(BlobKind.INCOMPLETE, 0), [], []
    of_keys = told(BlobKind.EXCEPTION_EVENTS, 1) if of_transactions else None  # without these no others came
    log_records: dict[str, tuple[bytes, None]] = {}
    for event in home.events:
        copy, log_record = topic_copy(event), event.get("log_record")
        if of_keys is None or _place(event) in of_keys:
            paired.append(copy)
        if of_transactions and _place(event) in of_transactions:
            whole.append(copy)
        if log_record is not None:
            log_records[copy.item_id] = (log_record, None)
    return paired, whole, log_records


def _unreadable_sample(plan: ScanPlan, places: Numbers) -> tuple[UnreadableRecord, ...]:
    named = ((*_partition(plan, part), offset) for part, offset in places.tolist())
    return tuple(UnreadableRecord(topic=topic, partition=part, kafka_offset=offset) for topic, part, offset in named)


def _exceptional(
    events: Iterable[Entry], rows: Iterable[Entry], legs: Mapping[str, str], keys_to_include: frozenset[str]
) -> tuple[list[Entry], list[Entry]]:
    """Return copies of keys to include, on another leg's topic, or not of one event and one equal row."""
    by_key: dict[str, tuple[list[Entry], list[Entry]]] = {}
    for event in events:
        by_key.setdefault(event.match_key, ([], []))[0].append(event)
    for row in rows:
        by_key.setdefault(row.match_key, ([], []))[1].append(row)
    copies: tuple[list[Entry], list[Entry]] = ([], [])
    for key, (in_topic, in_ledger) in by_key.items():
        if key in keys_to_include or not _is_simple(in_topic, in_ledger, legs):
            copies[0].extend(in_topic)
            copies[1].extend(in_ledger)
    return copies


def _is_simple(in_topic: Sequence[Entry], in_ledger: Sequence[Entry], legs: Mapping[str, str]) -> bool:
    if len(in_topic) != 1 or len(in_ledger) != 1:
        return False
    (event,), (row,) = in_topic, in_ledger
    return event.compared == row.compared and not (len(legs) > 1 and is_misrouted(event, legs))


def _incomplete(events: Iterable[Entry], legs: Mapping[str, str]) -> list[Entry]:
    """Return all events of transactions that lack a leg. Which leg an event is, its topic says."""
    by_transaction: dict[str, list[Entry]] = {}
    for event in events:
        by_transaction.setdefault(event.transaction_key, []).append(event)
    lacking = (some for some in by_transaction.values() if len({topic_of(one.item_id) for one in some}) < len(legs))
    return [event for some in lacking for event in some]


def _topic_totals(plan: ScanPlan, totals: Iterable[GroupTotal]) -> tuple[list[Total], list[Total]]:
    """Return totals by partition, readable or not, and currency, as `scan_slices` does: of read and planted events."""
    named: list[Total] = []
    for total in totals:
        topic, partition = _partition(plan, total.part)
        figures = {name: value for name, value in asdict(total).items() if name != "part"}
        named.append({"topic": topic, "partition": partition, **figures})
    ordered = topic_totals_in_order(named)
    read = [total for total in ordered if total["partition"] != CANARY_PARTITION]
    return read, [total for total in ordered if total["partition"] == CANARY_PARTITION]


def _ledger_totals(totals: Iterable[GroupTotal]) -> list[Total]:
    wanted = ("currency", "rows", "amount", "xor", "sum")
    return ledger_totals_in_order({name: getattr(total, name) for name in wanted} for total in totals)


def _lags(plan: ScanPlan, measured: Numbers, direction: Direction) -> tuple[TopicLag, ...]:
    """Return the lags of all pairs of a small slice, or of a sample of a large one."""
    sign = 1 if direction is Direction.TOPIC_TO_LEDGER else -1
    return lags_of_pairs((plan.topics[topic], sign * lag_ms) for topic, lag_ms in measured.tolist())
