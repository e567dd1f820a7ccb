"""The census on a real log: whatever wrote it and wherever a slice begins and ends, every offset is one thing."""

import itertools
from collections import Counter
from random import Random

import pytest

from tallystick.kafka_log.fetch import Fetch, OffsetNotInLog
from tallystick.kafka_log.log_walk import Outcome, walk_batches
from tallystick.kafka_log.offset_census import take_census
from tallystick.kafka_log.producer_history import MarkerProtocol
from tallystick.kafka_log.transaction_span import read_spans
from tallystick.model import offsets
from tallystick.model.census_values import PartitionCensus
from tests.forward_outcomes import COMMITTED, outcomes_forward

from .log_of_every_producer import Log, end, fetch, log

__all__ = ["end", "fetch", "log"]  # fixtures


def test_the_census_adds_up_to_what_was_written(log: Log, fetch: Fetch, end: int) -> None:
    census = take_census(fetch, log.range(0, end))
    assert census.unexplained == 0
    assert (census.committed, census.aborted, census.plain) == (len(log.committed), len(log.aborted), len(log.plain))
    assert (census.commit_markers, census.abort_markers) == (5, 6)
    assert census.without_producer_id == 28  # four codecs of five were written without idempotence
    assert _sum(census) == end


def test_every_slice_counts_what_a_consumer_of_another_make_reads_there(log: Log, fetch: Fetch, end: int) -> None:
    """Slices begin within batches and transactions, and end before their markers."""
    seen, random = log.consumed(end), Random(7)
    assert sorted(seen.values(), key=int) == sorted(log.committed + log.plain, key=int)
    cuts = [sorted(random.sample(range(end + 1), 2)) for _ in range(60)]
    for start, stop in [*cuts, *((at, at + 1) for at in range(end))]:
        census = take_census(fetch, log.range(start, stop))
        assert (_sum(census), census.unexplained) == (stop - start, 0)
        assert census.readable_records == sum(start <= offset < stop for offset in seen), f"[{start}, {stop})"


def test_both_ways_of_deciding_agree_on_a_hundred_slices(log: Log, fetch: Fetch, end: int) -> None:
    """By the aborted list, and forward from the markers. Slices begin inside batches and end before their markers."""
    walked = [batch.header for batch in walk_batches(fetch, log.range(0, end))]
    inside_batches = [at for one in walked for at in range(one.base_offset + 1, one.next_offset)]
    before_markers = [
        at for one in walked if one.is_transactional for at in range(one.base_offset + 1, one.next_offset)
    ]
    random = Random(11)
    slices = {(start, stop) for start in inside_batches for stop in before_markers if start < stop}
    chosen = random.sample(sorted(slices), 100)
    for start, stop in chosen:
        forward = Counter(outcomes_forward(fetch, log.range(start, stop)).values())
        census = take_census(fetch, log.range(start, stop))
        assert {name: getattr(census, name) for name in forward} == forward, f"[{start}, {stop})"
        assert (_sum(census), census.unexplained, forward.total()) == (stop - start, 0, stop - start)


def test_what_the_producers_did_is_seen(log: Log, fetch: Fetch, end: int) -> None:
    """The heir of a zombie commits under one epoch, so the abort before it was a fencing; nothing bled."""
    census = take_census(fetch, log.range(0, end))
    assert (census.fencings, census.bled_batches, census.empty_transactions, census.holes) == (1, 0, 0, 0)


def test_librdkafka_keeps_its_epoch_and_each_record_knows_its_marker(log: Log, fetch: Fetch, end: int) -> None:
    part = offsets.TopicPartition(topic=log.topic, partition=0)
    forward = outcomes_forward(fetch, log.range(0, end))
    wanted = {
        at
        for batch in walk_batches(fetch, log.range(0, end))
        if batch.header.is_transactional and not batch.header.is_control
        for at in range(batch.header.base_offset, batch.header.next_offset)
    }
    met: list[int] = []
    spans = read_spans(fetch, part, wanted, lambda batch, inside: met.extend(inside))
    assert sorted(met) == sorted(wanted)
    assert sorted(spans) == sorted(wanted)
    for at, span in spans.items():
        assert span.marker is not None and span.marker_offset is not None
        assert span.first_offset <= at < span.marker_offset
        assert (str(span.marker) == "commit") == (forward[at] == COMMITTED)
        assert span.protocol is not MarkerProtocol.EPOCH_PER_TRANSACTION
    assert MarkerProtocol.CONSTANT_EPOCH in {span.protocol for span in spans.values()}


def test_a_slice_holds_the_same_whatever_it_is_cut_into(log: Log, fetch: Fetch, end: int) -> None:
    whole = {batch.header.base_offset: batch.outcome for batch in walk_batches(fetch, log.range(0, end))}
    for start, stop in itertools.pairwise([0, 3, 11, 36, 40, 41, 60, end]):
        for batch in walk_batches(fetch, log.range(start, stop)):
            assert batch.outcome is whole[batch.header.base_offset]
    assert set(whole.values()) == {Outcome.COMMITTED, Outcome.ABORTED, Outcome.PLAIN, Outcome.MARKER}


def test_what_lies_past_the_end_of_the_log_is_unexplained_and_what_never_could_is_refused(
    log: Log, fetch: Fetch, end: int
) -> None:
    """As after a truncation: the slice was cut when the log reached further."""
    assert take_census(fetch, log.range(end - 1, end + 1)).unexplained == 1
    with pytest.raises(OffsetNotInLog, match="is not in the log"):
        take_census(fetch, log.range(end + 5, end + 6))


def _sum(census: PartitionCensus) -> int:
    markers = census.commit_markers + census.abort_markers
    return census.committed + census.aborted + census.plain + markers + census.unexplained
