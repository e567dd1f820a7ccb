"""The scan with nothing between its parts: no Arrow, no blobs, no hashes of texts.

The walk, the census, the decoding, the numpy match and what makes copies of exceptional rows are the product's. Keys
are numbered instead of hashed, which is what a hash without collisions does, and totals are counted in Python. A sample
of runs is scanned the long way too, and both must say the same (`scan.scan_cut`).
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

import numpy as np

from tallystick.contract.contract import Contract
from tallystick.kafka_cluster.batch_fingerprints import fingerprints
from tallystick.kafka_cluster.state import BatchFingerprint
from tallystick.kafka_log.event_decoder import EventDecoder
from tallystick.kafka_log.fetch import Fetch
from tallystick.kafka_log.header_cache import BatchHeads, HeadKeeper
from tallystick.kafka_log.log_walk import DecidedBatch
from tallystick.kafka_log.offset_census import walk_counted
from tallystick.kafka_log.record import LogRecord, record_of
from tallystick.matching.evidence import RecordTimes, UnreadableRecord
from tallystick.matching.match_case import Entry
from tallystick.matching.scan_result import UNREADABLE_SAMPLE, CanaryScan, SliceScan, topic_place
from tallystick.model.census_values import PartitionCensus
from tallystick.model.cut import TopicSlice
from tallystick.model.direction import Direction
from tallystick.model.findings import total_money
from tallystick.model.offsets import TopicPartition
from tallystick.model.partner_lag import lags_of_pairs
from tallystick_spark.matching.bucket_blobs import PARTITIONS, WIDTH, BlobKind, ScanPlan
from tallystick_spark.matching.frame_match import ledger_copy, topic_copy
from tallystick_spark.matching.hash_match import _match_bucket
from tallystick_spark.matching.hash_scan import _exceptional, _incomplete
from tallystick_spark.readers.log_reader import _READ, _checked

_HEADS_MAX = 1_000
_NOTHING = {kind: np.empty((0, width), dtype=np.int64) for kind, width in WIDTH.items()}


@dataclass
class Read:
    """What the walks brought: events as rows, and the census of each slice."""

    events: list[dict[str, Any]] = field(default_factory=list)
    unreadable: list[tuple[str, int, int]] = field(default_factory=list)
    rows_by_partition: Counter[tuple[str, int]] = field(default_factory=Counter)
    times: dict[tuple[str, int], list[int]] = field(default_factory=dict)
    census: list[PartitionCensus] = field(default_factory=list)
    heads: dict[TopicPartition, BatchHeads] = field(default_factory=dict)
    last_batches: dict[TopicPartition, Sequence[BatchFingerprint]] = field(default_factory=dict)
    batches: dict[tuple[str, int, int], tuple[Any, DecidedBatch]] = field(default_factory=dict)
    content: int = 0


def read_topics(fetch: Fetch, slices: Iterable[TopicSlice], decoder: EventDecoder, index: Any) -> Read:
    """Walk the slices; index: what takes the keys, or None."""
    read = Read()
    for part in slices:
        inside, keeper = part.readable, HeadKeeper(part.readable, heads_max=_HEADS_MAX)
        walk = walk_counted(
            fetch,
            inside,
            log_start=part.snapshot.log_start,
            lso=part.snapshot.lso,
            high_watermark=part.snapshot.high_watermark,
        )
        counting = keeper.keeping(walk)
        while True:
            try:
                batch = next(counting)
            except StopIteration as ended:
                census = ended.value
                break
            if batch.outcome in _READ:
                _read_batch(read, batch, part, decoder)
        read.census.append(census)
        read.last_batches[inside.topic_partition] = fingerprints(inside.topic_partition, keeper.last)
        heads = None if census.unexplained else keeper.kept()
        if heads is not None:
            read.heads[inside.topic_partition] = heads
    if index is not None:
        index.add_events(read.events)
    return read


def _read_batch(read: Read, batch: DecidedBatch, part: TopicSlice, decoder: EventDecoder) -> None:
    inside, name = part.readable, (part.readable.topic, part.readable.partition)
    records = [
        one
        for one in _checked(batch, inside.topic_partition)
        if inside.kafka_offset_start <= one.offset < inside.kafka_offset_end
    ]
    if not records:
        return
    read.content = crc32(batch.raw, read.content + batch.header.base_offset)
    read.rows_by_partition[name] += len(records)
    read.times.setdefault(name, []).extend([one.timestamp for one in records])
    for record, event in zip(records, decoder.read_each(list(map(decoder.payload, records))), strict=True):
        if event is None:
            read.unreadable.append((*name, record.offset))
            continue
        read.batches[(*name, record.offset)] = (record, batch)
        read.events.append(
            {
                "topic": inside.topic,
                "partition": inside.partition,
                "kafka_offset": record.offset,
                "match_key": event.match_key,
                "transaction_key": event.transaction_key,
                "leg": event.leg,
                "amount_minor": event.amount_minor,
                "currency": event.currency,
                "written_ms": record.timestamp,
            }
        )


@dataclass
class Numbered:
    """Texts as numbers, each its own: what a hash without collisions gives."""

    topics: tuple[str, ...]
    numbers: dict[str, int] = field(default_factory=dict)

    def number(self, text: str) -> int:
        return self.numbers.setdefault(text, len(self.numbers))

    def fields(self, one: Mapping[str, Any]) -> int:
        """Amount and currency as one number."""
        return int(one["amount_minor"]) * 1_000_003 + self.number(f"\t{one['currency']}")

    def part(self, one: Mapping[str, Any]) -> int:
        """As `bucket_blobs` has it."""
        return self.topics.index(one["topic"]) * PARTITIONS + int(one["partition"]) + 1


def match(
    read: Read, rows: Sequence[Mapping[str, Any]], contract: Contract, keys_to_include: Collection[str]
) -> tuple[list[Any], list[Any], list[Any]]:
    """The numpy match over numbered keys. Gives the exceptional events and rows, and events of torn transactions."""
    if not read.events and not rows:
        return [], [], []
    numbered = Numbered(tuple(sorted(set(contract.legs.values()))))
    events, given = read.events, dict(_NOTHING)
    if events:
        given[BlobKind.EVENTS] = np.array(
            [
                (numbered.number(one["match_key"]), numbered.fields(one), numbered.part(one), one["kafka_offset"])
                for one in events
            ],
            dtype=np.int64,
        )
    if rows:
        given[BlobKind.ROWS] = np.array(
            [(numbered.number(one["match_key"]), numbered.fields(one), int(one["row_id"])) for one in rows],
            dtype=np.int64,
        )
    wanted = [numbered.numbers[key] for key in keys_to_include if key in numbered.numbers]
    if len(contract.legs) > 1 and events:
        wanted += _misrouted(events, contract, numbered)
        given[BlobKind.TRANSACTIONS] = np.array(
            [
                (numbered.number(f"\n{one['transaction_key']}"), numbered.part(one), one["kafka_offset"])
                for one in events
            ],
            dtype=np.int64,
        )
    if wanted:
        given[BlobKind.WANTED] = np.array([[one] for one in wanted], dtype=np.int64)
    plan = ScanPlan(secret="", topics=numbered.topics, legs=len(contract.legs))
    return _home(_match_bucket(given, plan), read, rows, numbered)


def _misrouted(events: Sequence[Mapping[str, Any]], contract: Contract, numbered: Numbered) -> list[int]:
    """Keys of events that name a leg whose topic is another one."""
    elsewhere = (one for one in events if contract.legs.get(one["leg"], one["topic"]) != one["topic"])
    return [numbered.numbers[one["match_key"]] for one in elsewhere]


def _home(
    found: Mapping[BlobKind, Any], read: Read, rows: Sequence[Mapping[str, Any]], numbered: Numbered
) -> tuple[list[Any], list[Any], list[Any]]:
    """What the match told of, by its place."""
    place_of = {(numbered.part(one), one["kafka_offset"]): one for one in read.events}
    ids = {place for _, place in found[BlobKind.EXCEPTION_ROWS].tolist()}
    return (
        [place_of[part, at] for _, part, at in found[BlobKind.EXCEPTION_EVENTS].tolist()],
        [one for one in rows if int(one["row_id"]) in ids],
        [place_of[part, at] for part, at in found[BlobKind.INCOMPLETE].tolist()],
    )


def scan(
    read: Read,
    rows: Sequence[Mapping[str, Any]],
    contract: Contract,
    keys_to_include: Collection[str],
    canaries: CanaryScan,
    *,
    possible_ms: tuple[int, int] | None,
    lag_of: Direction | None,
    repeated: Callable[[int], Mapping[tuple[str, int], Any]] | None,
) -> SliceScan:
    """The same words as `hash_scan` says it in."""
    again: set[str] = set()
    if repeated is not None:
        places = {(*part, at) for part, found in repeated(len(read.events)).items() for at in found.tolist()}
        again = {
            one["match_key"] for one in read.events if (one["topic"], one["partition"], one["kafka_offset"]) in places
        }
    every = {*keys_to_include, *again}
    home, rows_home, torn = match(read, rows, contract, every)
    copies = map(topic_copy, home), map(ledger_copy, rows_home)
    events, exceptional_rows = _exceptional(*copies, contract.legs, every)
    incomplete = _incomplete(map(topic_copy, torn), contract.legs)
    topic_copies, ledger_copies = tuple(events), tuple(exceptional_rows)
    money = total_money((one["currency"], one["amount_minor"]) for one in rows)
    exceptional = total_money((copy.currency, copy.amount_minor) for copy in ledger_copies)
    return SliceScan(
        rows_by_partition=dict(sorted(read.rows_by_partition.items())),
        ledger_rows=len(rows),
        matched_rows=len(rows) - len(ledger_copies),
        matched_money={currency: amount - exceptional.get(currency, 0) for currency, amount in money.items()},
        copies=topic_copies + ledger_copies,
        incomplete=tuple(incomplete),
        unreadable_count=len(read.unreadable),
        unreadable_sample=tuple(
            UnreadableRecord(topic=topic, partition=part, kafka_offset=at)
            for topic, part, at in sorted(read.unreadable)[:UNREADABLE_SAMPLE]
        ),
        content_digests={"topic": str(read.content), "ledger": str(_content_of(rows))},
        topic_money=total_money((one["currency"], one["amount_minor"]) for one in read.events),
        ledger_money=money,
        record_times=_record_times(read, possible_ms) if possible_ms else (),
        lags=_lags(read, rows, lag_of) if lag_of else (),
        canaries=canaries,
        log_records=_log_records(read, contract, (*events, *incomplete)),
        heads=read.heads,
        last_batches=read.last_batches,
    )


def _log_records(read: Read, contract: Contract, events: Iterable[Entry]) -> dict[str, LogRecord]:
    """What the log says of copies that came home, by item id."""
    found = {}
    for one in events:
        part, offset = topic_place(one.item_id)
        record, batch = read.batches[part.topic, part.partition, offset]
        kept = record_of(record, batch, part, contract.event)
        found[kept.item_id] = kept
    return found


def _content_of(rows: Sequence[Mapping[str, Any]]) -> int:
    said = sorted(f"{one['row_id']} {one['match_key']} {one['amount_minor']} {one['currency']}" for one in rows)
    return crc32("\n".join(said).encode())


def _record_times(read: Read, possible_ms: tuple[int, int]) -> tuple[RecordTimes, ...]:
    first, last = possible_ms
    return tuple(
        RecordTimes(
            topic=topic,
            partition=partition,
            early=sum(one < first for one in times),
            late=sum(one > last for one in times),
            earliest_ms=min(times),
            latest_ms=max(times),
        )
        for (topic, partition), times in sorted(read.times.items())
    )


def _lags(read: Read, rows: Sequence[Mapping[str, Any]], direction: Direction) -> Any:
    """Of keys with one event and one row that say the same, whatever else is known of them."""
    sign = 1 if direction is Direction.TOPIC_TO_LEDGER else -1
    events = Counter(one["match_key"] for one in read.events)
    in_ledger = Counter(one["match_key"] for one in rows)
    row_of = {one["match_key"]: one for one in rows if in_ledger[one["match_key"]] == 1}
    return lags_of_pairs(
        (one["topic"], sign * (row["written_ms"] - one["written_ms"]))
        for one in read.events
        if events[one["match_key"]] == 1 and (row := row_of.get(one["match_key"])) is not None
        if all(row[name] == one[name] for name in ("amount_minor", "currency"))
    )
