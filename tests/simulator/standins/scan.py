"""The first reader without Spark: the real walk, decoding, hashing, matching and second look, in one process.

It stands for `tallystick_spark.scan.scan_cut` in its quickest way. Kafka's client as a second reader is left out.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache, partial
from itertools import chain
from typing import Any

import numpy as np

from tallystick.contract.contract import Contract
from tallystick.judging.canaries import canary_events, canary_rows
from tallystick.kafka_log.event_decoder import EventDecoder
from tallystick.kafka_log.fetch import Fetch
from tallystick.kafka_log.header_cache import BatchHeads
from tallystick.matching.scan_result import CANARY, REPEATED_IDS_MAX, CanaryScan, SliceScan
from tallystick.model.census_values import PartitionCensus
from tallystick.model.cut import LedgerSlice, TopicSlice
from tallystick.model.offsets import TopicPartition
from tallystick_spark import scan as real
from tallystick_spark.matching.bucket_blobs import Numbers, ScanPlan, summarise_rows
from tallystick_spark.matching.hash_scan import Canaries, Places, Row, _of_keys, scan_by_hash
from tallystick_spark.readers.canary_rows import canary_events_read, canary_ledger_rows
from tallystick_spark.readers.log_reader import WantedOffsets, event_rows, records_at, summaries_of
from tallystick_spark.readers.postgres_rows import hashed_row_batch
from tests.simulator.standins import lean_scan
from tests.simulator.standins.frame import Frame
from tests.simulator.standins.key_index import IndexWriter, read_before
from tests.simulator.standins.ledger import WorldLedger, row_as_read, rows_as_arrow
from tests.simulator.standins.pair_scan import scan_inputs
from tests.simulator.standins.parquet_ledger import WorldParquetLedger
from tests.simulator.standins.same import Same

SECRET = "known in no world"[:16]
CANARIES_WRITTEN_AT = datetime.fromtimestamp(0, UTC)
"""They are compared with each other, whatever the window can hold: no rule asks when."""


@dataclass(frozen=True, kw_only=True)
class WorldTopic:
    """A TopicSource over the world's fetch, as LogTopic is one over Kafka's."""

    fetch: Fetch
    slices: tuple[TopicSlice, ...]
    contract: Contract
    index: Any

    def summaries(self, plan: ScanPlan) -> Frame:
        legs = dict(self.contract.legs)
        return Frame(
            lambda: list(
                summaries_of(self.fetch, self.slices, plan, _decoder(self.contract), legs, {}, index=self.index)
            )
        )

    def events_at(self, places: Places, heads: Mapping[TopicPartition, BatchHeads]) -> Sequence[Row]:
        wanted = []
        for inside in (part.readable for part in self.slices):
            offsets = places.get((inside.topic, inside.partition))
            if offsets is not None and len(offsets):
                wanted.append(WantedOffsets(inside, np.sort(offsets), None))
        found = chain.from_iterable(records_at(self.fetch, self.fetch, one) for one in wanted)
        batches = event_rows(found, self.contract.event, dict(self.contract.legs))
        return [row for batch in batches for row in batch.to_pylist()]


@dataclass(kw_only=True)
class WorldRows:
    """A LedgerSource over the world's ledger, as PostgresRows and `ledger.rows_by_id` are one over PostgreSQL's."""

    ledger: WorldLedger | WorldParquetLedger
    ledger_slice: LedgerSlice
    with_time: bool

    def summaries(self, plan: ScanPlan) -> Frame:
        rows = self.ledger.slice_rows(self.ledger_slice)
        if not rows:
            return Frame(lambda: list(summarise_rows([], plan)))
        batch = rows_as_arrow(rows, with_time=self.with_time)
        return Frame(lambda: list(summarise_rows([hashed_row_batch(batch, plan.secret, placed=True)], plan)))

    def rows_of(self, plan: ScanPlan, key_hashes: Numbers, places: Numbers) -> Sequence[Row]:
        rows = self.ledger.slice_rows(self.ledger_slice)
        if places.all():
            ids = set(places.tolist())
            rows = [row for row in rows if row.row_id in ids]
        return _of_keys([row_as_read(row, with_time=self.with_time) for row in rows], key_hashes, plan.secret)


def _decoder(contract: Contract) -> EventDecoder:
    return _decoder_of(Same(contract))


@lru_cache(maxsize=64)
def _decoder_of(contract: Same[Contract]) -> EventDecoder:
    return EventDecoder(contract.it.event, several_legs=len(contract.it.legs) > 1)


@lru_cache(maxsize=64)
def _canaries_of(contract: Same[Contract]) -> Canaries:
    several_legs = len(contract.it.legs) > 1
    events = canary_events_read(
        canary_events(contract.it), contract.it.event, several_legs=several_legs, written_at=CANARIES_WRITTEN_AT
    )
    return Canaries(events=events, rows=canary_ledger_rows(canary_rows(contract.it)))


def scan_cut(
    engine: Any,
    asked: real.CutToScan,
    *,
    keys_to_include: Collection[str],
    by_log: bool,
    on_progress: Any,
    indexes: Any = None,
    index_to: Any = None,
) -> tuple[SliceScan, tuple[PartitionCensus, ...]]:
    """As the real one, with its arguments; connections are the world. One run in LONG_WAY_IN is scanned both ways,
    unless something happens while it is scanned: the second way would read what has become of it.
    """
    world, keys = asked.connections, set(keys_to_include)
    with world.open_ledger(engine, asked.contract) as ledger:
        described = ledger.describe()
        if asked.contract.input_topics:
            return scan_inputs(world.fetch, asked, keys, indexes, index_to), ()
        with ledger.held_snapshot():
            if not described.key_is_unique:
                keys |= set(ledger.keys_seen_before(asked.cut.ledger_slice))
            if index_to is not None and indexes is not None:
                index_to = replace(index_to, older=indexes.paths_of(index_to.seed))
            given = _Given(asked, ledger, tuple(asked.topic_slices), frozenset(keys), index_to)
            Counted.scans += 1
            waiting = len(world.point.waiting)
            quick = _lean_way(given)
            as_it_was = len(world.point.waiting) == waiting
            if as_it_was and (Counted.scans % LONG_WAY_IN == 1 or _is_first_with_canary_keys(world, quick[0])):
                with world.point.aside():
                    _refuse_difference(quick, _long_way(given))
            return quick if described.row_id_is_unique else (_with_repeated_ids(given, quick[0]), quick[1])


def _with_repeated_ids(given: "_Given", scan: SliceScan) -> SliceScan:
    """Where no database says that row ids are unique, each slice's are counted."""
    ids = Counter(str(row.row_id) for row in given.ledger.slice_rows(given.asked.cut.ledger_slice))
    repeated = sorted(one for one, times in ids.items() if times > 1)
    return replace(scan, row_ids_repeat=True, repeated_row_ids=tuple(repeated[:REPEATED_IDS_MAX]))


LONG_WAY_IN = 499
"""One run in so many goes through Arrow, blobs and hashes too."""


def _is_first_with_canary_keys(world: Any, scan: SliceScan) -> bool:
    """Are these a world's first copies whose keys begin as those of planted ones do?"""
    first = not world.has_canary_keys and any(one.match_key.startswith(CANARY) for one in scan.copies)
    world.has_canary_keys |= first
    return first


class Counted:
    """How many scans there were in this process."""

    scans = 0


@dataclass(frozen=True)
class _Given:
    """What a scan is asked, and what it asks."""

    asked: real.CutToScan
    ledger: WorldLedger | WorldParquetLedger
    slices: tuple[TopicSlice, ...]
    keys_to_include: frozenset[str]
    index_to: Any


class WaysDiffer(AssertionError):
    """The long way and the lean one told two things of one cut."""


def _refuse_difference(
    lean: tuple[SliceScan, tuple[PartitionCensus, ...]], long: tuple[SliceScan, tuple[PartitionCensus, ...]]
) -> None:
    a, b = replace(lean[0], content_digests={}, heads={}), replace(long[0], content_digests={}, heads={})
    for one in (a, b):
        object.__setattr__(one, "copies", tuple(sorted(one.copies, key=lambda copy: copy.item_id)))
        object.__setattr__(one, "incomplete", tuple(sorted(one.incomplete, key=lambda copy: copy.item_id)))
        object.__setattr__(one, "canaries", None)
    wrong = [name for name in vars(a) if getattr(a, name) != getattr(b, name)]
    if wrong or lean[1] != long[1]:
        raise WaysDiffer(f"{[(name, getattr(a, name), getattr(b, name)) for name in wrong]} {lean[1]} {long[1]}")


def _lean_way(given: _Given) -> tuple[SliceScan, tuple[PartitionCensus, ...]]:
    contract, index_to = given.asked.contract, given.index_to
    writer = IndexWriter(folder=index_to.folder, seed=index_to.seed) if index_to else None
    read = lean_scan.read_topics(given.asked.connections.fetch, given.slices, _decoder(contract), writer)
    with_time = contract.ledger.columns.written_at is not None
    rows = [row_as_read(row, with_time=with_time) for row in given.ledger.slice_rows(given.asked.cut.ledger_slice)]
    found = lean_scan.scan(
        read,
        rows,
        contract,
        given.keys_to_include,
        _canaries_scanned(Same(contract)),
        possible_ms=given.asked.possible_ms,
        lag_of=given.asked.lag_of,
        repeated=partial(read_before, index_to) if index_to else None,
    )
    return found, tuple(read.census)


@lru_cache(maxsize=64)
def _canaries_scanned(contract: Same[Contract]) -> CanaryScan:
    """What the long way tells of planted copies: they are compared with each other only, so it is always the same."""
    plan = ScanPlan(
        secret=SECRET, topics=tuple(sorted(set(contract.it.legs.values()))), legs=len(contract.it.legs), lag_of_one_in=1
    )
    planted, nothing = _canaries_of(contract), WorldTopic(fetch=_no_fetch, slices=(), contract=contract.it, index=None)
    return scan_by_hash(
        nothing, _NoRows(), planted, legs=contract.it.legs, keys_to_include=(), offsets=len(plan.topics)
    ).scan.canaries


class _NoRows:
    """A ledger's side without a row."""

    def summaries(self, plan: ScanPlan) -> Frame:
        return Frame(lambda: list(summarise_rows([], plan)))

    def rows_of(self, plan: ScanPlan, key_hashes: Numbers, places: Numbers) -> Sequence[Row]:
        return ()


def _no_fetch(topic_partition: TopicPartition, offset: int, read_committed: bool) -> Any:
    raise AssertionError("nothing is fetched of no slices")


def _long_way(given: _Given) -> tuple[SliceScan, tuple[PartitionCensus, ...]]:
    """By what Spark's tasks run, with all that stands between them."""
    contract, cut, slices = given.asked.contract, given.asked.cut, given.slices
    read = scan_by_hash(
        WorldTopic(fetch=given.asked.connections.fetch, slices=slices, contract=contract, index=None),
        WorldRows(
            ledger=given.ledger,
            ledger_slice=cut.ledger_slice,
            with_time=contract.ledger.columns.written_at is not None,
        ),
        _canaries_of(Same(contract)),
        legs=contract.legs,
        keys_to_include=given.keys_to_include,
        offsets=sum(len(part.readable) for part in slices),
        possible_ms=given.asked.possible_ms,
        lag_of=given.asked.lag_of,
        read_before=partial(read_before, given.index_to) if given.index_to else None,
    )
    order = {(part.offsets.topic, part.offsets.partition): place for place, part in enumerate(cut.topic_slices)}
    census = sorted((one.census for one in read.walked), key=lambda one: order[one.topic, one.partition])
    return read.scan, tuple(census)
