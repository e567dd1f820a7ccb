"""The log's own batches, read once on the executors: events for the match, and the census of every offset, in one walk.

Each task walks whole partitions, one after the other, through the broker's fetch protocol under read_committed. It
counts every offset as `tallystick.kafka_log.offset_census` does, and decodes the records of committed and plain
batches. A batch whose checksum is wrong ends the attempt.

One file, since a task walks, counts and decodes in one pass over the same batches.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession

from tallystick.connections.connections import KafkaSettings
from tallystick.connections.schema_registry import remember_registries
from tallystick.contract.event import EventFields
from tallystick.formats.schema_cache import RegistryUnreachable, registries_of
from tallystick.host.artifacts import ArtifactsUnreachable
from tallystick.host.gc_tuning import relaxed_gc
from tallystick.kafka_cluster.batch_fingerprints import fingerprints
from tallystick.kafka_log.event_decoder import EventDecoder
from tallystick.kafka_log.fetch import Fetch, FetchedLog, OffsetNotInLog, fetcher, fetchers, open_admin
from tallystick.kafka_log.header_cache import HEADS_MAX, BatchHeads, HeadKeeper
from tallystick.kafka_log.log_walk import DecidedBatch, LogEndsEarly, Outcome, batch_at, walk_batches
from tallystick.kafka_log.offset_census import walk_counted
from tallystick.kafka_log.open_batch import Record, is_compressed, is_whole, open_batch
from tallystick.kafka_log.prefetch import fetch_ahead
from tallystick.kafka_log.record import packed, record_of
from tallystick.model.cut import TopicSlice
from tallystick.model.errors import TallystickError
from tallystick.model.offsets import OffsetRange, TopicPartition
from tallystick_spark.matching.bucket_blobs import (
    HASHED_EVENTS,
    LOW_32_BITS,
    NO_BUCKET,
    PARTITIONS,
    BlobKind,
    Numbers,
    ScanPlan,
    blobs_of,
    summarise_events,
)
from tallystick_spark.matching.equality_forms import compared_numbers
from tallystick_spark.matching.keyed_hash import keyed_hashes, keyed_texts
from tallystick_spark.matching.row_hashes import SUMMARY_SHAPE
from tallystick_spark.matching.xxhash import hash_longs, hash_pairs, hash_place
from tallystick_spark.readers.event_columns import WholeEvents, read_columns, readable_among
from tallystick_spark.readers.key_index_files import IndexPlan, IndexWriter
from tallystick_spark.readers.reader_messages import NOTHING_SEEN, PartitionScan, RecordDigest, seen_blob, walked_blob
from tallystick_spark.readers.topic_frame import events_shape, with_events
from tallystick_spark.session import tasks_for

CHUNK_RECORDS = 2_000
CHUNK_BYTES = 16 << 20
"""Unpacked bytes decoded together. More costs more for each: two thousand events stay in a core's cache."""
TASKS_PER_CORE = 4
TASK_OFFSETS_MIN = 20_000
"""A task is a client of its own to the broker: what is smaller is read together."""

_READ = (Outcome.COMMITTED, Outcome.PLAIN)
_EVENTS_AT = (
    "topic string, partition int, kafka_offset bigint, match_key string, transaction_key string, leg string, "
    "amount_minor bigint, currency string, written_ms bigint, log_record binary"
)
_EVENT_KINDS = {field.name: field.type for field in HASHED_EVENTS}


class CorruptBatch(TallystickError):
    """A batch's bytes are not those that its checksum was made of."""


@contextmanager
def as_raised_in_the_task() -> Iterator[None]:
    """Raise the error of this reader's task itself, instead of Spark's account of it."""
    try:
        yield
    except PythonException as error:
        for line in str(error).splitlines():
            name, _, sentence = line.partition(": ")
            for kind in (CorruptBatch, LogEndsEarly, OffsetNotInLog, ArtifactsUnreachable, RegistryUnreachable):
                if name == f"{kind.__module__}.{kind.__name__}":
                    raise kind(sentence) from error
        raise


class Records(NamedTuple):
    """Records of one partition in log order, a list of each figure."""

    offsets: list[int]
    keys: list[bytes | None]
    values: list[bytes | None]
    timestamps_ms: list[int]
    placed: list[bytes | None]

    @property
    def payloads(self) -> list[bytes | None]:
        """Return what the decoder reads of each; placed: where that is not the value alone."""
        return self.placed or self.values


Found = tuple[TopicPartition, DecidedBatch, Sequence[Record]]
"""Some records of one batch."""


@dataclass(frozen=True, kw_only=True)
class LogTopic:
    """One cut's events, read from the log itself: a scan's TopicSide.

    slices: of the contract's topics, whether anything is in them or not. sample: what is counted by itself, for Kafka's
    own client to read again; at most one range of a partition. index: where the keys go.
    """

    spark: SparkSession
    kafka: KafkaSettings
    slices: tuple[TopicSlice, ...]
    fields: EventFields
    legs: Mapping[str, str]
    sample: tuple[OffsetRange, ...]
    index: IndexPlan | None = None

    def summaries(self, plan: ScanPlan) -> DataFrame:
        """Return the slices as `summarise_events` makes them; beside it WALKED and SEEN of each.

        Raises, by the task: CorruptBatch, OffsetNotInLog.
        """
        kafka, fields, legs, registries = self.kafka, self.fields, dict(self.legs), registries_of(self.fields)
        sample = {part.topic_partition: part for part in self.sample}
        heads_max, index = HEADS_MAX // max(1, len(self.slices)), self.index

        def read(slices: Sequence[TopicSlice]) -> Iterator[pa.RecordBatch]:
            remember_registries(registries)
            with open_admin(kafka) as admin:
                fetch = fetch_ahead(*fetchers(admin), [part.readable for part in slices])
                decoder = _decoder(fields, legs)
                yield from summaries_of(fetch, slices, plan, decoder, legs, sample, heads_max=heads_max, index=index)

        return _in_tasks(self.spark, self.slices, lambda part: len(part.readable), read, SUMMARY_SHAPE)

    def events_at(
        self, places: Mapping[tuple[str, int], Numbers], heads: Mapping[TopicPartition, BatchHeads]
    ) -> Collection[Mapping[str, Any]]:
        """Return the events at these offsets, and of each `log_record`. Those that the summaries had as readable are.

        heads: where few batches hold them, these are fetched one by one.
        """
        found = self._read_at(
            places, heads, partial(event_rows, fields=self.fields, legs=dict(self.legs)), _shape_at(self.fields)
        )
        return _FoundEvents(found.toArrow())

    def _read_at(
        self,
        places: Mapping[tuple[str, int], Numbers],
        heads: Mapping[TopicPartition, BatchHeads],
        rows_of: Callable[[Iterator[Found]], Iterator[pa.RecordBatch]],
        shape: str,
    ) -> DataFrame:
        """Read the records at these offsets in tasks, and return what those make of them."""
        kafka, registries = self.kafka, registries_of(self.fields)

        def read(wanted: Sequence[WantedOffsets]) -> Iterator[pa.RecordBatch]:
            remember_registries(registries)
            with open_admin(kafka) as admin:
                fetch = fetch_ahead(*fetchers(admin), [one.span for one in wanted if one.picked is None])
                fetch_one = fetcher(admin, fetch_bytes=1)
                yield from rows_of(found for one in wanted for found in records_at(fetch, fetch_one, one))

        wanted = []
        for inside in (part.readable for part in self.slices):
            offsets, kept = places.get((inside.topic, inside.partition)), heads.get(inside.topic_partition)
            if offsets is not None and len(offsets):
                wanted.append(WantedOffsets(inside, np.sort(offsets), kept.picked(offsets.tolist()) if kept else None))
        return _in_tasks(self.spark, wanted, WantedOffsets.weight, read, shape)


class _FoundEvents(Collection[Mapping[str, Any]]):
    """Rows of a table, of which few are a dictionary at one time: those of a broken window would take gigabytes."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        for some in self._table.to_batches(max_chunksize=CHUNK_RECORDS):
            yield from some.to_pylist()

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def __contains__(self, event: object) -> bool:
        return any(one == event for one in self)


class WantedOffsets(NamedTuple):
    """Offsets of a range, sorted. picked: one of each batch that holds some; None: walk the range."""

    range: OffsetRange
    offsets: Numbers
    picked: tuple[int, ...] | None

    def weight(self) -> int:
        return len(self.range) if self.picked is None else CHUNK_RECORDS * len(self.picked)

    @property
    def span(self) -> OffsetRange:
        """The range from the first offset to the last."""
        first, last = int(self.offsets[0]), int(self.offsets[-1])
        return replace(self.range, kafka_offset_start=first, kafka_offset_end=last + 1)


def _in_tasks(
    spark: SparkSession,
    shares: Sequence[Any],
    weight: Callable[[Any], int],
    read: Callable[[Sequence[Any]], Iterator[pa.RecordBatch]],
    shape: str,
) -> DataFrame:
    """Run `read` over the shares of each task. A task has one large share, or several small ones."""
    worth = 1 + sum(map(weight, shares)) // TASK_OFFSETS_MIN
    tasks = max(1, tasks_for(spark, min(len(shares), worth), per_core=TASKS_PER_CORE))
    loads: list[list[Any]] = [[] for _ in range(tasks)]
    weights = [0] * tasks
    for share in sorted(shares, key=weight, reverse=True):
        lightest = weights.index(min(weights))
        loads[lightest].append(share)
        weights[lightest] += weight(share)

    def run(numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with relaxed_gc():
            for batch in numbers:
                for number in batch.column("id").to_pylist():
                    yield from read(loads[number])

    return spark.range(0, tasks, 1, tasks).mapInArrow(run, shape)


def summaries_of(
    fetch: Fetch,
    slices: Sequence[TopicSlice],
    plan: ScanPlan,
    decoder: EventDecoder,
    legs: Mapping[str, str],
    sample: Mapping[TopicPartition, OffsetRange],
    *,
    heads_max: int = HEADS_MAX,
    index: IndexPlan | None = None,
) -> Iterator[pa.RecordBatch]:
    """Summarise one task's slices, as `LogTopic.summaries` has them. heads_max: of each slice. Shape: SUMMARY."""
    beside: list[pa.RecordBatch] = []
    keys = IndexWriter(folder=index.folder, seed=index.seed) if index else None

    def hashed() -> Iterator[pa.RecordBatch]:
        for part in slices:
            hasher = _Hasher(part.readable, plan, legs, decoder, keys)
            sampled, seen = sample.get(part.readable.topic_partition), NOTHING_SEEN
            for records in _chunks(_walk(fetch, part, beside, heads_max), part.readable, decoder):
                events = hasher.hashed(records)
                yield events
                if sampled is not None:
                    seen = seen.plus(_seen(events, sampled))
            if sampled is not None:
                beside.append(blobs_of(BlobKind.SEEN, NO_BUCKET, [seen_blob(part.readable.topic_partition, seen)]))

    yield from summarise_events(hashed(), plan)
    if keys is not None:
        keys.close()
    yield from beside


def _seen(events: pa.RecordBatch, inside: OffsetRange) -> RecordDigest:
    offsets = events["place"].to_numpy()
    first, last = np.searchsorted(offsets, [inside.kafka_offset_start, inside.kafka_offset_end])
    return _seen_of(events["content"].to_numpy()[first:last])


def _seen_of(content: Numbers) -> RecordDigest:
    return RecordDigest(len(content), int(np.bitwise_xor.reduce(content)), int((content & LOW_32_BITS).sum()))


def _walk(fetch: Fetch, part: TopicSlice, beside: list[pa.RecordBatch], heads_max: int) -> Iterator[DecidedBatch]:
    """Yield the slice's batches; add its census and its heads to `beside`."""
    fetched_bytes, keeper = 0, HeadKeeper(part.readable, heads_max=heads_max)

    def counting(topic_partition: TopicPartition, offset: int, read_committed: bool) -> FetchedLog:
        nonlocal fetched_bytes
        fetched = fetch(topic_partition, offset, read_committed)
        fetched_bytes += len(fetched.records)
        return fetched

    walk = walk_counted(
        counting,
        part.readable,
        log_start=part.snapshot.log_start,
        lso=part.snapshot.lso,
        high_watermark=part.snapshot.high_watermark,
    )
    census = yield from keeper.keeping(walk)
    heads = None if census.unexplained else keeper.kept()
    walked = PartitionScan(census, fetched_bytes, heads, fingerprints(part.readable.topic_partition, keeper.last))
    beside.append(blobs_of(BlobKind.WALKED, NO_BUCKET, [walked_blob(walked)]))


def log_events(
    spark: SparkSession, kafka: KafkaSettings, ranges: Sequence[OffsetRange], fields: EventFields, *, several_legs: bool
) -> DataFrame:
    """Read all committed and plain records of some ranges. Shape: as `topic_frame.parse_events` has it.

    Raises, by the task: CorruptBatch, OffsetNotInLog.
    """
    registries = registries_of(fields)

    def read(some: Sequence[OffsetRange]) -> Iterator[pa.RecordBatch]:
        remember_registries(registries)
        decoder = EventDecoder(fields, several_legs=several_legs)
        with open_admin(kafka) as admin:
            fetch = fetch_ahead(*fetchers(admin), some)
            for inside in some:
                for records in _chunks(walk_batches(fetch, inside), inside, decoder):
                    yield with_events(_as_rows(inside, records), decoder, fields)

    return _in_tasks(spark, ranges, len, read, events_shape(fields))


def _as_rows(inside: OffsetRange, records: Records) -> pa.RecordBatch:
    count, value_hash = len(records.offsets), hash_pairs(records.keys, records.values)
    return pa.record_batch(
        {
            "topic": pa.array([inside.topic] * count, pa.string()),
            "partition": pa.array([inside.partition] * count, pa.int32()),
            "kafka_offset": pa.array(records.offsets, pa.int64()),
            "value_hash": pa.array(value_hash.view(np.int64)),
            "written_ms": pa.array(records.timestamps_ms, pa.int64()),
            "value": pa.array(records.payloads, pa.binary()),
        }
    )


def seen_by_us(fetch: Fetch, inside: OffsetRange) -> Iterator[tuple[DecidedBatch, RecordDigest]]:
    """Yield each committed or plain batch of a range, with the digest of its records in the range."""
    for batch in walk_batches(fetch, inside):
        if batch.outcome in _READ:
            records = _no_records()
            _append(records, batch, inside)
            offsets = np.array(records.offsets, dtype=np.int64)
            content = _contents(offsets, records, hash_place(inside.topic, inside.partition)).view(np.int64)
            yield batch, _seen_of(content)


def _contents(offsets: Numbers, records: Records, place_hash: int) -> NDArray[np.uint64]:
    values = hash_pairs(records.keys, records.values).view(np.int64)
    return hash_longs(values, hash_longs(offsets, place_hash))


def _no_records() -> Records:
    return Records([], [], [], [], [])


def _chunks(batches: Iterable[DecidedBatch], inside: OffsetRange, decoder: EventDecoder) -> Iterator[Records]:
    """Yield the committed and plain records of a range, many at a time, with what the decoder reads of them."""
    some, size = _no_records(), 0
    for batch in batches:
        if batch.outcome not in _READ:
            continue
        size += _append(some, batch, inside, decoder)
        if len(some.offsets) >= CHUNK_RECORDS or size >= CHUNK_BYTES:
            yield some
            some, size = _no_records(), 0
    if some.offsets:
        yield some


def _append(some: Records, batch: DecidedBatch, inside: OffsetRange, decoder: EventDecoder | None = None) -> int:
    """Append a batch's records and return its bytes, which may be far more than it takes in the log."""
    records = _checked(batch, inside.topic_partition)
    start, end = inside.kafka_offset_start, inside.kafka_offset_end
    if batch.header.base_offset < start or batch.header.last_offset >= end:
        records = [record for record in records if start <= record.offset < end]
    some.offsets.extend([record.offset for record in records])
    some.keys.extend([record.key for record in records])
    some.values.extend([record.value for record in records])
    some.timestamps_ms.extend([record.timestamp for record in records])
    more = 0
    if decoder is not None and decoder.has_places:
        placed = list(map(decoder.payload, records))
        some.placed.extend(placed)
        more = sum(len(one) for one in placed if one is not None)
    if not is_compressed(batch):
        return len(batch.raw) + more
    return more + sum(len(part) for record in records for part in (record.key, record.value) if part is not None)


def _checked(batch: DecidedBatch, topic_partition: TopicPartition) -> Sequence[Record]:
    """Return the batch's records. Raises CorruptBatch."""
    if not is_whole(batch):
        raise CorruptBatch(f"{topic_partition}: the batch at offset {batch.header.base_offset} is corrupt")
    return open_batch(batch)


class _Hasher:
    """Turns the records of one partition into HASHED_EVENTS."""

    def __init__(
        self,
        inside: OffsetRange,
        plan: ScanPlan,
        legs: Mapping[str, str],
        decoder: EventDecoder,
        keys: IndexWriter | None,
    ) -> None:
        self._inside, self._keys = inside, keys
        self.part = plan.topics.index(inside.topic) * PARTITIONS + inside.partition + 1
        self._place_hash = hash_place(inside.topic, inside.partition)
        self._secret = plan.secret
        self._several_legs = len(legs) > 1
        self._elsewhere = {leg for leg, topic in legs.items() if topic != inside.topic}
        self._decoder = decoder

    def hashed(self, records: Records) -> pa.RecordBatch:
        """Return the records as HASHED_EVENTS."""
        count, offsets = len(records.offsets), np.array(records.offsets, dtype=np.int64)
        content = _contents(offsets, records, self._place_hash)
        readable = np.ones(count, dtype=bool)
        at_once = read_columns(self._decoder, records.payloads)
        if at_once is not None:
            whole = at_once
            figures, decoded = self._figures(whole), offsets
        else:
            places, whole = readable_among(self._decoder, records.payloads)
            rows = np.full(count, -1)
            rows[places], decoded = np.arange(len(places)), offsets[places]
            readable = rows >= 0
            at = pa.array(rows, mask=~readable)
            figures = {name: values.take(at) for name, values in self._figures(whole).items()}
        if self._keys is not None:
            self._keys.add(self._inside.topic, self._inside.partition, whole.match_keys, decoded)
        figures |= {
            "part": pa.array(np.full(count, self.part)),
            "place": pa.array(offsets),
            "readable": pa.array(readable),
            "content": pa.array(content.view(np.int64)),
            "written_ms": pa.array(records.timestamps_ms, pa.int64()),
        }
        columns = [figures[name] if name in figures else pa.nulls(count, kind) for name, kind in _EVENT_KINDS.items()]
        return pa.record_batch(columns, schema=HASHED_EVENTS)

    def _figures(self, events: WholeEvents) -> dict[str, pa.Array]:
        """Return the columns that the fields of readable events give."""
        different = sorted(set(events.currencies))
        of_currency = dict(zip(different, keyed_hashes(different, self._secret).tolist(), strict=True))
        if len(different) == 1:
            currencies, hashes = pa.repeat(different[0], len(events.currencies)), next(iter(of_currency.values()))
        else:
            currencies = pa.array(events.currencies, pa.string())
            hashes = np.array([of_currency[currency] for currency in events.currencies], dtype=np.int64)
        texts = () if events.compared_texts is None else (keyed_texts(events.compared_texts, self._secret),)
        figures = {
            "key_hash": pa.array(keyed_hashes(events.match_keys, self._secret)),
            "fields": pa.array(compared_numbers(events.amounts_minor, hashes, *texts)),
            "amount_minor": pa.array(events.amounts_minor),
            "currency": currencies,
        }
        if self._several_legs:
            transactions = [event.transaction_key for event in events.events]
            figures["transaction_hash"] = pa.array(keyed_hashes(transactions, self._secret))
            figures["misrouted"] = pa.array([event.leg in self._elsewhere for event in events.events], pa.bool_())
        return figures


def records_at(fetch: Fetch, fetch_one: Fetch, wanted: WantedOffsets) -> Iterator[Found]:
    """Yield the records at some offsets, by batch."""
    part, offsets = wanted.range.topic_partition, wanted.offsets
    picked = (batch_at(fetch_one, part, offset) for offset in wanted.picked or ())
    for batch in walk_batches(fetch, wanted.span) if wanted.picked is None else picked:
        first, last = np.searchsorted(offsets, [batch.header.base_offset, batch.header.next_offset])
        if batch.outcome not in _READ or first == last:
            continue
        asked = set(offsets[first:last].tolist())
        yield part, batch, [record for record in _checked(batch, part) if record.offset in asked]


def _shape_at(fields: EventFields) -> str:
    return _EVENTS_AT + (", compared_text string" if fields.compared else "")


def _decoder(fields: EventFields, legs: Mapping[str, str]) -> EventDecoder:
    return EventDecoder(fields, several_legs=len(legs) > 1)


def event_rows(found: Iterable[Found], fields: EventFields, legs: Mapping[str, str]) -> Iterator[pa.RecordBatch]:
    """Yield the readable ones among the records, decoded. Shape: `_shape_at`."""
    decoder = _decoder(fields, legs)
    for part, batch, records in found:
        places, whole = readable_among(decoder, list(map(decoder.payload, records)))
        readable = [records[place] for place in places]
        log_records = [packed(record_of(record, batch, part, fields)) for record in readable]
        columns = {
            **_places(part, readable, "kafka_offset"),
            "match_key": pa.array(whole.match_keys, pa.binary()).cast(pa.string()),
            "transaction_key": pa.array([event.transaction_key for event in whole.events], pa.string()),
            "leg": pa.array([event.leg for event in whole.events], pa.string()),
            "amount_minor": pa.array(whole.amounts_minor),
            "currency": pa.array(whole.currencies, pa.string()),
            "written_ms": pa.array([record.timestamp for record in readable], pa.int64()),
            "log_record": pa.array(log_records, pa.binary()),
        }
        if whole.compared_texts is not None:
            columns["compared_text"] = whole.compared_texts
        yield pa.record_batch(columns)


def _places(part: TopicPartition, records: Sequence[Record], offset_name: str) -> dict[str, pa.Array]:
    return {
        "topic": pa.array([part.topic] * len(records), pa.string()),
        "partition": pa.array([part.partition] * len(records), pa.int32()),
        offset_name: pa.array([record.offset for record in records], pa.int64()),
    }
