"""What is chosen to be read twice, and when two readings are the same."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.faults.swollen_batch import ZSTD, packed_batch, record_bytes, swollen_batch
from tallystick.kafka_log.batch_header import Marker
from tallystick.model.cut import PartitionSnapshot, TopicSlice
from tallystick.model.offsets import OffsetRange
from tallystick_spark.readers import cross_check
from tallystick_spark.readers.cross_check import CLIENT_BYTES_MAX, SAMPLE_OFFSETS, choose_sample, compare, look_at
from tallystick_spark.readers.reader_messages import RecordDigest
from tests.unit.builders import offsets
from tests.unit.synthetic_log import SyntheticLog, value

SLICES = st.lists(st.tuples(st.integers(0, 10**12), st.sampled_from([0, 1, 100, 9_999, 10_001, 10**6])), max_size=5)
SEEN = RecordDigest(3, 17, 40)


def slices_of(sizes: list[tuple[int, int]]) -> list[TopicSlice]:
    return [
        TopicSlice(
            offsets=OffsetRange(topic="t", partition=number, kafka_offset_start=start, kafka_offset_end=start + size),
            snapshot=PartitionSnapshot(
                topic="t",
                partition=number,
                topic_id="",
                leader_epoch=0,
                log_start=0,
                lso=start + size,
                high_watermark=start + size,
            ),
            mark=start + size,
        )
        for number, (start, size) in enumerate(sizes)
    ]


@given(sizes=SLICES, seed=st.text())
def test_all_of_a_small_cut_and_a_part_of_a_large_one(sizes: list[tuple[int, int]], seed: str) -> None:
    slices = slices_of(sizes)
    chosen = choose_sample(slices, seed=seed)
    assert chosen == choose_sample(slices, seed=seed)
    whole = {part.readable.topic_partition: part.readable for part in slices}
    for part in chosen:
        inside = whole[part.topic_partition]
        assert inside.kafka_offset_start <= part.kafka_offset_start
        assert part.kafka_offset_end <= inside.kafka_offset_end
    offsets = sum(size for _, size in sizes)
    if offsets <= SAMPLE_OFFSETS:
        assert sum(map(len, chosen)) == offsets
    else:
        assert len(chosen) == 1
        assert 0 < len(chosen[0]) <= SAMPLE_OFFSETS


def test_every_place_of_a_large_cut_may_be_chosen() -> None:
    """First and last offset of each partition, the smaller one, too."""
    slices = slices_of([(0, 3 * SAMPLE_OFFSETS), (0, SAMPLE_OFFSETS // 2)])
    chosen = [choose_sample(slices, seed=str(number))[0] for number in range(500)]
    assert {part.partition for part in chosen} == {0, 1}
    starts = {part.kafka_offset_start for part in chosen if part.partition == 0}
    assert min(starts) < SAMPLE_OFFSETS < max(starts)


def test_two_readings_are_the_same_only_in_all_their_figures() -> None:
    (part,) = (one.readable for one in slices_of([(5, 3)]))
    at = part.topic_partition
    (same,) = compare([part], {at: SEEN}, {at: SEEN})
    assert (same.offsets, same.rows, same.client_rows, same.is_same) == (part, 3, 3, True)
    for other in (SEEN._replace(rows=2), SEEN._replace(xor=1), SEEN._replace(total=1)):
        (differs,) = compare([part], {at: SEEN}, {at: other})
        assert (differs.client_rows, differs.is_same) == (other.rows, False)
    (nothing,) = compare([part], {at: SEEN}, {})
    assert (nothing.client_rows, nothing.is_same) == (0, False)
    (neither,) = compare([part], {}, {})
    assert neither.is_same


# Where Kafka's client is not sent.

MIB = 1 << 20


def log_of(*batches: tuple[int, int]) -> SyntheticLog:
    """Packed batches of one event each: codec, and bytes behind it."""
    log = SyntheticLog()
    for codec, size in batches:
        log.append(value("ev") + b"x" * size, compression=codec)
    return log


def bomb_on(log: SyntheticLog) -> None:
    log.append_raw(swollen_batch(ZSTD, 8 * MIB), records=1)


def test_a_range_is_looked_at_as_far_as_it_goes() -> None:
    log = log_of((0, 10), (ZSTD, 1_000), (0, 10))
    looked = look_at(log.fetch, offsets(0, 3))
    assert looked is not None
    assert (looked.offsets, looked.data, looked.seen.rows) == (offsets(0, 3), offsets(0, 3), 3)
    assert 1_000 < looked.unpacked_bytes < 1_100
    assert look_at(log.fetch, offsets(0, 0)) is not None


def test_the_client_is_not_sent_to_a_batch_that_nobody_gets_to_read() -> None:
    log = log_of((0, 10))
    bomb_on(log)
    assert look_at(log.fetch, offsets(0, 2)) is None


def test_the_client_opens_one_batch_at_a_time_where_such_a_batch_stands_behind_its_range() -> None:
    log = log_of((0, 10))
    log.append(b"{}", producer_id=7, transactional=True)
    log.end_transaction(7, Marker.ABORT)
    bomb_on(log)
    for fetch_batches in (1_000, 1):
        log.fetch_batches = fetch_batches
        looked = look_at(log.fetch, offsets(0, 3))
        assert looked is not None
        assert (looked.seen.rows, looked.data) == (1, offsets(0, 1))
        assert looked.unpacked_bytes > CLIENT_BYTES_MAX


def test_of_a_range_that_unpacks_to_much_the_client_reads_the_first_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cross_check, "CLIENT_BYTES_MAX", 1_500)
    looked = look_at(log_of(*[(ZSTD, 1_000)] * 4).fetch, offsets(0, 4))
    assert looked is not None
    assert (looked.offsets, looked.seen.rows) == (offsets(0, 2), 2)
    assert looked.unpacked_bytes > 1_500


def test_the_client_reads_up_to_a_record_whose_time_spark_cannot_hold() -> None:
    far_ms = 1_795_000_000_000 * 1_000_000
    far = packed_batch(0, [record_bytes(0, value("far"))], count=1, timestamp_ms=far_ms)
    log = log_of((0, 10), (0, 10))
    log.append_raw(far, records=1)
    log.append(value("behind"))
    looked = look_at(log.fetch, offsets(0, 4))
    assert looked is not None
    assert (looked.offsets, looked.seen.rows) == (offsets(0, 2), 2)
    assert look_at(log.fetch, offsets(2, 4)) is None
    near = SyntheticLog()
    near.append_raw(packed_batch(0, [record_bytes(0, value("near"))], count=1, timestamp_ms=far_ms // 1_000), records=1)
    assert look_at(near.fetch, offsets(0, 1)) is not None
