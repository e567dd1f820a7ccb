"""Our reader of the log sees what Kafka's client sees: compared with Spark's own parsing and hashing of the records."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tallystick.contract.event import EventFields
from tallystick.kafka_cluster.batch_fingerprints import fingerprints
from tallystick.kafka_log.batch_header import Marker
from tallystick.kafka_log.event_decoder import EventDecoder
from tallystick.kafka_log.fetch import Fetch, FetchedLog
from tallystick.kafka_log.log_walk import walk_batches
from tallystick.kafka_log.offset_census import take_census
from tallystick.kafka_log.record import unpacked
from tallystick.ledger.key_index import ReadableIndexes, commit_index
from tallystick.model.cut import PartitionSnapshot, TopicSlice
from tallystick.model.offsets import OffsetRange, TopicPartition
from tallystick_spark.matching.bucket_blobs import (
    BlobKind,
    GroupTotal,
    ScanPlan,
    add_totals,
    numbers_in,
    summarise_events,
    totals_in,
)
from tallystick_spark.matching.row_hashes import events_to_hash, hashed_events
from tallystick_spark.readers.key_index_files import IndexPlan, read_before
from tallystick_spark.readers.log_reader import CorruptBatch, WantedOffsets, event_rows, records_at, summaries_of
from tallystick_spark.readers.reader_messages import RecordDigest, seen_in, walked_in
from tallystick_spark.readers.topic_frame import parse_events
from tests.unit.synthetic_log import SyntheticLog

TOPIC, OTHER = "payments", "invoices"
LEGS = {"payment": TOPIC, "invoice": OTHER}
PLAN = ScanPlan(secret="0123456789abcdef", topics=(OTHER, TOPIC), legs=2, possible_ms=(0, 2**40))
FIELDS = EventFields()
KEYS = st.sampled_from(["a", "b", "", "é", 7, None])
VALUES = st.builds(
    lambda key, payment, leg, amount, currency: json.dumps(
        {"event_id": key, "payment_id": payment, "leg": leg, "amount_minor": amount, "currency": currency}
    ).encode(),
    KEYS,
    KEYS,
    st.sampled_from(["payment", "invoice", "refund", None]),
    st.integers(-(2**63), 2**63 - 1) | st.none(),
    st.sampled_from(["EUR", "USD", "", None]),
)
UNREADABLE = st.sampled_from([b"", b"no json", b'{"event_id":"a","amount_minor":"1"}', b'{"event_id":{"a":1}}', b"[1]"])
PLAIN, COMMITTED, ABORTED = range(3)
BATCHES = st.lists(
    st.tuples(
        st.sampled_from([PLAIN, COMMITTED, ABORTED]),
        st.lists(VALUES | UNREADABLE, min_size=1, max_size=4),
        st.sampled_from([0, 1, 3]),
    ),
    min_size=1,
    max_size=12,
)
Batches = Sequence[tuple[int, Sequence[bytes], int]]


def log_of(batches: Batches) -> tuple[SyntheticLog, list[tuple[int, bytes, int]]]:
    """The log, and (offset, value, timestamp) of what a read_committed reader may see of it."""
    log, visible = SyntheticLog(fetch_batches=3), []
    for number, (outcome, values, compression) in enumerate(batches):
        transactional = outcome != PLAIN
        producer = {"producer_id": number, "transactional": True} if transactional else {}
        first = log.append(*values, compression=compression, **producer)
        if transactional:
            log.end_transaction(number, Marker.ABORT if outcome == ABORTED else Marker.COMMIT)
        if outcome != ABORTED:
            visible += [(first + at, value, 1_700_000_000_000 + at) for at, value in enumerate(values)]
    return log, visible


def slice_of(log: SyntheticLog, start: int, end: int) -> TopicSlice:
    return TopicSlice(
        offsets=OffsetRange(topic=TOPIC, partition=3, kafka_offset_start=start, kafka_offset_end=end),
        snapshot=PartitionSnapshot(
            topic=TOPIC, partition=3, topic_id="", leader_epoch=0, log_start=0, lso=log.lso, high_watermark=log.end
        ),
        mark=end,
    )


def read(fetch: Fetch, part: TopicSlice, sample: OffsetRange | None = None) -> list[pa.RecordBatch]:
    sampled = {} if sample is None else {sample.topic_partition: sample}
    return list(summaries_of(fetch, [part], PLAN, EventDecoder(FIELDS, several_legs=True), LEGS, sampled))


def by_spark(spark: SparkSession, records: Sequence[tuple[int, bytes, int]]) -> list[pa.RecordBatch]:
    """The same records, as Kafka's source gives them to Spark."""
    parsed = events_to_hash(parsed_by_spark(spark, records), topics=PLAN.topics, legs=LEGS)
    return list(summarise_events(hashed_events(parsed.toArrow().to_batches(), PLAN.secret), PLAN))


def parsed_by_spark(spark: SparkSession, records: Sequence[tuple[int, bytes, int]]) -> DataFrame:
    source = spark.createDataFrame(
        [(TOPIC, 3, offset, bytearray(b"key"), bytearray(value), written_ms) for offset, value, written_ms in records],
        "topic string, partition int, offset bigint, key binary, value binary, written_ms bigint",
    ).withColumn("timestamp", F.timestamp_millis("written_ms"))
    return parse_events(source, FIELDS, several_legs=True)


def totals(summaries: Sequence[pa.RecordBatch]) -> set[GroupTotal]:
    return set(add_totals(total for blob in blobs(summaries, BlobKind.EVENT_TOTALS) for total in totals_in(blob)))


def rows(summaries: Sequence[pa.RecordBatch], kind: BlobKind) -> Counter[tuple[int, ...]]:
    """Numbers of a kind with their bucket."""
    found: Counter[tuple[int, ...]] = Counter()
    for batch in summaries:
        for one, bucket, blob in zip(*(batch[name].to_pylist() for name in ("kind", "bucket", "blob")), strict=True):
            if one == kind:
                found.update((bucket, *row) for row in numbers_in(kind, [blob]).tolist())
    return found


def blobs(summaries: Sequence[pa.RecordBatch], kind: BlobKind) -> list[bytes]:
    return [
        blob
        for batch in summaries
        for one, blob in zip(batch["kind"].to_pylist(), batch["blob"].to_pylist(), strict=True)
        if one == kind
    ]


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(batches=BATCHES)
def test_events_come_home_as_spark_parses_them(spark: SparkSession, batches: Batches) -> None:
    """All that are readable, of any log."""
    log, visible = log_of(batches)
    wanted = WantedOffsets(slice_of(log, 0, log.end).readable, np.arange(log.end), picked=None)
    rows = event_rows(records_at(log.fetch, log.fetch, wanted), FIELDS, LEGS)
    ours = [event for batch in rows for event in batch.to_pylist()]
    log_records = [unpacked(event.pop("log_record")) for event in ours]
    theirs = parsed_by_spark(spark, visible).where("readable").orderBy("kafka_offset")
    assert ours == (theirs.select(list(ours[0])).toArrow().to_pylist() if ours else [])
    assert len(ours) == theirs.count()
    assert [record.kafka_offset for record in log_records] == [event["kafka_offset"] for event in ours]


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(batches=BATCHES, cut=st.tuples(st.floats(0, 1), st.floats(0, 1)))
def test_the_same_totals_keys_and_transactions(spark: SparkSession, batches: Batches, cut: tuple[float, float]) -> None:
    """Of any slice of any log: aborted data, other batches' compression and unreadable values in it."""
    log, visible = log_of(batches)
    start, end = sorted(round(share * log.end) for share in cut)
    part = slice_of(log, start, end)
    ours, theirs = read(log.fetch, part), by_spark(spark, [one for one in visible if start <= one[0] < end])
    assert totals(ours) == totals(theirs)
    for kind in (BlobKind.EVENTS, BlobKind.TRANSACTIONS, BlobKind.WANTED, BlobKind.UNREADABLE):
        assert rows(ours, kind) == rows(theirs, kind)
    (walked,) = map(walked_in, blobs(ours, BlobKind.WALKED))
    snapshot = part.snapshot
    assert walked.census == take_census(
        log.fetch, part.readable, lso=snapshot.lso, high_watermark=snapshot.high_watermark
    )
    assert walked.last == fingerprints(part.readable.topic_partition, walk_batches(log.fetch, part.readable))


@pytest.mark.parametrize("spoilt", [True, False])
def test_a_batch_that_is_not_what_its_checksum_covers_ends_the_attempt(spoilt: bool) -> None:
    log, _ = log_of([(COMMITTED, [b"{}", b"{}"], 0)])

    def fetch(topic_partition: TopicPartition, offset: int, read_committed: bool) -> FetchedLog:
        fetched = log.fetch(topic_partition, offset, read_committed)
        records = fetched.records.replace(b"{}", b"{ ", 1) if spoilt else fetched.records
        return FetchedLog(
            records=records,
            high_watermark=fetched.high_watermark,
            lso=fetched.lso,
            log_start=fetched.log_start,
            aborted=fetched.aborted,
        )

    if spoilt:
        with pytest.raises(CorruptBatch, match=r"payments\[3\]: the batch at offset 0 is corrupt"):
            read(fetch, slice_of(log, 0, log.end))
    else:
        assert read(fetch, slice_of(log, 0, log.end))


@settings(max_examples=20, deadline=None)
@given(batches=BATCHES)
def test_the_index_holds_each_readable_event_by_its_key_at_its_offset(
    batches: Batches, tmp_path_factory: pytest.TempPathFactory
) -> None:
    log, visible = log_of(batches)
    folder = tmp_path_factory.mktemp("index")
    part, decoder = slice_of(log, 0, log.end), EventDecoder(FIELDS, several_legs=True)
    read_once = summaries_of(log.fetch, [part], PLAN, decoder, LEGS, {}, index=IndexPlan(folder=folder / "1", seed=7))
    found = totals(list(read_once))
    readable = sum(one.rows for one in found if one.readable)
    index = commit_index(folder, folder / "1", copies=readable, kept_from=1, seed=7)
    asked = ReadableIndexes(artifacts=folder, by_cut={1: index}).look_up(["a", "b", "7"])
    expected: dict[str, set[str]] = {}
    for offset, value, _ in visible:
        for event in filter(None, decoder.read_each([value])):
            expected.setdefault(event.match_key, set()).add(f"topic:{TOPIC}:3:{offset}")
    assert {key: {copy.item_id for copy in copies} for key, copies in asked.items()} == {
        key: places for key, places in expected.items() if key in ("a", "b", "7")
    }
    assert sum(map(len, expected.values())) == readable
    again = read_before(IndexPlan(folder=folder / "1", seed=7, older=tuple((folder / "1").glob("*"))), readable)
    assert sum(map(len, again.values())) == readable


@settings(max_examples=20, deadline=None)
@given(batches=BATCHES, cut=st.tuples(st.floats(0, 1), st.floats(0, 1)))
def test_the_sample_is_counted_by_itself(batches: Batches, cut: tuple[float, float]) -> None:
    log, visible = log_of(batches)
    start, end = sorted(round(share * log.end) for share in cut)
    sample = OffsetRange(topic=TOPIC, partition=3, kafka_offset_start=start, kafka_offset_end=end)
    (seen,) = map(seen_in, blobs(read(log.fetch, slice_of(log, 0, log.end), sample), BlobKind.SEEN))
    alone = totals(read(log.fetch, slice_of(log, start, end)))
    xor = int(np.bitwise_xor.reduce([total.xor for total in alone], dtype=np.int64))
    assert seen == (
        sample.topic_partition,
        RecordDigest(sum(one.rows for one in alone), xor, sum(one.sum for one in alone)),
    )
    assert seen[1].rows == sum(start <= offset < end for offset, _, _ in visible)


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    amounts=st.lists(st.integers(-(10**18) + 1, 10**18 - 1), min_size=1, max_size=20),
    notes=st.lists(st.sampled_from(["x", "\u00e9", '"', ""]), max_size=3),
)
def test_compiled_code_and_python_summarise_a_log_alike(amounts: list[int], notes: list[str]) -> None:
    """One leg, and mostly plain letters: some logs are read by compiled code, others fall back."""
    log = SyntheticLog()
    for place, amount in enumerate(amounts):
        note = {"note": notes[place]} if place < len(notes) else {}
        event = {"event_id": f"e-{place % 7}", "payment_id": "p", "leg": "", "amount_minor": amount, "currency": "EUR"}
        log.append(json.dumps(event | note, ensure_ascii=False).encode())

    def summaries() -> list[pa.RecordBatch]:
        decoder, plan = EventDecoder(EventFields()), replace(PLAN, legs=1)
        return list(summaries_of(log.fetch, [slice_of(log, 0, log.end)], plan, decoder, {"payment": TOPIC}, {}))

    compiled = summaries()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tallystick.kafka_log.event_decoder._read_simple", None)
        assert summaries() == compiled
    assert sum(total.rows for total in totals(compiled)) == len(amounts)
