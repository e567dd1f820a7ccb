"""Every offset of a slice accounted for, and the outcome of every batch in it.

A batch's outcome is the broker's own list of aborted transactions, answered with each fetch; never "the markers seen in
my slice", since a slice begins inside transactions and ends before their markers, and never the epoch, since a marker
may carry a later one. Source: KIP-98; the client's rule is in Kafka's CompletedFetch.

A broker may leave an aborted transaction out of its list (KAFKA-13727, KAFKA-17801); all who go by the list then read
it as committed. Its ABORT marker tells: what it ends is counted as aborted, and so the readers are seen to disagree.
"""

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, cast

from tallystick.kafka_log.batch_header import NO_PRODUCER_ID, Marker
from tallystick.kafka_log.fetch import Fetch, OffsetNotInLog
from tallystick.kafka_log.log_walk import NO_END, DecidedBatch, LogEndsEarly, Outcome, walk_batches
from tallystick.kafka_log.producer_history import ProducerHistory
from tallystick.model.census_values import PartitionCensus
from tallystick.model.offsets import OffsetRange

LOOK_BACK_OFFSETS = 10_000
"""Distance before a slice where the census looks for a COMMIT marker's data, so as not to call it empty."""


OnProgress = Callable[[str, Mapping[str, Any]], None]
"""(step, figures) -> None"""


class OffsetProgress:
    """Tells how many offsets of all partitions are counted, whenever another hundredth is."""

    def __init__(self, of: int, on_progress: Callable[[str, Mapping[str, Any]], None]) -> None:
        self._of, self._tell = of, on_progress
        self._before = self._told = 0

    def of_partition(self, counted: int) -> None:
        """Report how many offsets of the partition in progress are counted."""
        self._say(self._before + counted)

    def partition_done(self, counted: int) -> None:
        """Report that the partition is complete, and how many offsets it had."""
        self._before += counted
        self._say(self._before)

    def _say(self, done: int) -> None:
        if (done - self._told) * 100 >= self._of and done > self._told:
            self._told = done
            self._tell("counting", {"done": done, "of": self._of})


def walk_with_progress(
    batches: Iterable[DecidedBatch], start: int, end: int, told: OffsetProgress
) -> Iterator[DecidedBatch]:
    """Yield the same batches; report how far they reach into [start, end)."""
    for batch in batches:
        yield batch
        told.of_partition(min(batch.header.last_offset + 1, end) - start)
    told.partition_done(end - start)


def take_census(
    fetch: Fetch,
    offsets: OffsetRange,
    *,
    log_start: int = 0,
    lso: int = 0,
    high_watermark: int = 0,
    told: OffsetProgress | None = None,
    last: deque[DecidedBatch] | None = None,
) -> PartitionCensus:
    """Count what every offset of the range is, as `walk_counted` does. last: takes the batches that were counted."""
    counting = walk_counted(fetch, offsets, log_start=log_start, lso=lso, high_watermark=high_watermark, told=told)
    counted: deque[DecidedBatch] = deque(maxlen=0) if last is None else last
    while True:
        try:
            counted.append(next(counting))
        except StopIteration as ended:
            return cast(PartitionCensus, ended.value)


def walk_counted(
    fetch: Fetch,
    offsets: OffsetRange,
    *,
    log_start: int = 0,
    lso: int = 0,
    high_watermark: int = 0,
    told: OffsetProgress | None = None,
) -> Generator[DecidedBatch, None, PartitionCensus]:
    """Walk the batches of [start, end), counting what every offset is; end must not be above the LSO.

    Yields each batch that it counts, returns the census. log_start, lso, high_watermark are passed through.

    Unexplained are holes between and inside batches, record counts that the offsets cannot hold, batches whose leader
    epoch goes backwards, and what a truncated log has lost at its end. Of transactions that begin in the slice and end
    after it, the marker is looked for however far it lies, so that each batch that bled is found. Of those that begin
    before it, the data is looked for LOOK_BACK_OFFSETS before it: a marker of which none is found is not counted as one
    of an empty transaction.
    """
    start, end = offsets.kafka_offset_start, offsets.kafka_offset_end
    committed = aborted = plain = commit_markers = abort_markers = without_producer_id = explained = holes = 0
    leader_epoch, position, history = -1, start, ProducerHistory(offsets)
    try:
        batches = walk_batches(fetch, offsets)
        for batch in walk_with_progress(batches, start, end, told) if told else batches:
            header, outcome = batch.header, batch.outcome
            next_offset = header.last_offset + 1
            clipped_start = header.base_offset if header.base_offset > start else start
            if clipped_start > position:
                holes += clipped_start - position
            position = next_offset if next_offset < end else end
            yield batch
            if header.leader_epoch < leader_epoch:
                continue
            leader_epoch = header.leader_epoch
            records = clipped = position - clipped_start
            too_few = next_offset - header.base_offset - header.record_count
            if too_few:
                records = max(0, clipped - abs(too_few))
                holes += clipped - records if too_few > 0 else 0
            explained += records
            if outcome is Outcome.COMMITTED:
                committed += records
                history.add_data(header, is_committed=True, records=records)
            elif outcome is Outcome.PLAIN:
                plain += records
                if header.producer_id == NO_PRODUCER_ID:
                    without_producer_id += records
            elif outcome is Outcome.ABORTED:
                aborted += records
                history.add_data(header, is_committed=False, records=records)
            elif header.marker is None:
                explained -= records
            else:
                if header.marker is Marker.COMMIT:
                    commit_markers += records
                else:
                    abort_markers += records
                history.add_marker(header, ends_aborted_data=batch.ends_aborted_data)
        holes += end - position
        _look_around(fetch, offsets, history, log_start=log_start)
    except LogEndsEarly:
        pass
    return PartitionCensus(
        topic=offsets.topic,
        partition=offsets.partition,
        kafka_offset_start=start,
        kafka_offset_end=end,
        committed=committed - history.hidden_aborts,
        aborted=aborted + history.hidden_aborts,
        plain=plain,
        commit_markers=commit_markers,
        abort_markers=abort_markers,
        unexplained=len(offsets) - explained,
        without_producer_id=without_producer_id,
        log_start=log_start,
        lso=lso,
        high_watermark=high_watermark,
        holes=holes,
        empty_transactions=history.empty_transactions,
        fencings=history.fencings,
        bled_batches=history.bled_batches,
        bled=history.bled,
    )


def _look_around(fetch: Fetch, offsets: OffsetRange, history: ProducerHistory, *, log_start: int) -> None:
    """Give the history the other end of transactions that the slice cuts through.

    What is committed in the slice has its marker on the log: it stands there before the LSO passes the data. So the
    walk is as long as the transaction, and costs no more than that.
    """
    start, end = offsets.kafka_offset_start, offsets.kafka_offset_end
    if history.unfinished():
        after = replace(offsets, kafka_offset_start=end, kafka_offset_end=NO_END)
        for batch in walk_batches(fetch, after, read_committed=False):
            if batch.header.base_offset >= end:
                history.add_after(batch.header)
            if not history.unfinished():
                break
    if history.undecided_commits:
        first = max(log_start, start - LOOK_BACK_OFFSETS)
        before = replace(offsets, kafka_offset_start=min(first, start), kafka_offset_end=start)
        try:
            last_is_data = _last_is_data(fetch, before, history)
        except OffsetNotInLog:
            return
        history.add_before(last_is_data, nothing_else_before=first <= log_start)


def _last_is_data(fetch: Fetch, before: OffsetRange, history: ProducerHistory) -> dict[int, bool]:
    """Return by producer id whether its last trace in the range is data, of those whose COMMIT is undecided.

    Raises OffsetNotInLog where the range has expired in the meantime.
    """
    last_is_data: dict[int, bool] = {}
    for batch in walk_batches(fetch, before):
        if batch.header.is_transactional and batch.header.producer_id in history.undecided_commits:
            last_is_data[batch.header.producer_id] = not batch.header.is_control
    return last_is_data


def with_compaction(census: PartitionCensus, *, compacts: bool) -> PartitionCensus:
    """Attribute holes to compaction where the topic's cleanup.policy compacts. It explains nothing else.

    Source: KIP-58, KIP-98: a compacted batch keeps its offsets and loses records, or goes as a whole.
    """
    if not compacts:
        return census
    moved = census.holes - census.compacted
    return replace(census, compacted=census.holes, unexplained=census.unexplained - moved)
