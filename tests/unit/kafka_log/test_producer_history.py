"""Fencings and bleeds, told from what one producer wrote before."""

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from tallystick.kafka_log.batch_header import Marker
from tallystick.kafka_log.producer_history import BLED_SAMPLE
from tallystick.model.census_values import BledBatch
from tests.unit.kafka_log.censuses import ABORT, COMMIT, census
from tests.unit.synthetic_log import SyntheticLog

# Fenced producers.


def fencings(log: SyntheticLog) -> int:
    return census(log, 0, log.end).fencings


def transaction(log: SyntheticLog, marker: Marker, *, data_epoch: int, marker_epoch: int, producer_id: int = 7) -> None:
    log.append(b"x", producer_id=producer_id, epoch=data_epoch, transactional=True)
    log.end_transaction(producer_id, marker, epoch=marker_epoch)


def test_an_abort_under_a_later_epoch_is_a_fencing_of_a_producer_that_keeps_its_epoch() -> None:
    log = SyntheticLog()
    transaction(log, COMMIT, data_epoch=3, marker_epoch=3)
    transaction(log, ABORT, data_epoch=3, marker_epoch=4)
    transaction(log, COMMIT, data_epoch=5, marker_epoch=5)
    assert fencings(log) == 1


def test_an_abort_under_the_producers_own_epoch_is_none() -> None:
    log = SyntheticLog()
    transaction(log, COMMIT, data_epoch=3, marker_epoch=3)
    transaction(log, ABORT, data_epoch=3, marker_epoch=3)
    assert fencings(log) == 0


def test_an_abort_under_a_later_epoch_is_ordinary_where_the_epoch_moves_with_each_transaction() -> None:
    log = SyntheticLog()
    transaction(log, COMMIT, data_epoch=3, marker_epoch=4)
    transaction(log, ABORT, data_epoch=4, marker_epoch=5)
    assert fencings(log) == 0


def test_a_producer_of_which_nothing_else_is_known_is_not_called_fenced() -> None:
    log = SyntheticLog()
    transaction(log, ABORT, data_epoch=3, marker_epoch=4)
    transaction(log, COMMIT, data_epoch=3, marker_epoch=3, producer_id=8)
    assert fencings(log) == 0


# Batches that bled.


def a_bleed(marker: Marker = COMMIT, *, between: int = 0) -> SyntheticLog:
    """Offsets 0-1 are of epoch 0, in a transaction that never ended; then one of epoch 1 and its marker."""
    log = SyntheticLog(fetch_batches=2)
    log.append(b"a", b"b", producer_id=7, epoch=0, transactional=True)
    for _ in range(between):
        log.append(b"z")
    log.append(b"c", producer_id=7, epoch=1, transactional=True)
    log.end_transaction(7, marker, epoch=1)
    return log


def bled_at(log: SyntheticLog, start: int, end: int) -> list[tuple[int, int, int | None]]:
    taken = census(log, start, end)
    assert taken.bled_batches == len(taken.bled)
    return [(one.kafka_offset_start, one.kafka_offset_end, one.marker_offset) for one in taken.bled]


def test_two_epochs_before_one_commit_are_a_bleed_of_the_earlier_one() -> None:
    taken = census(a_bleed(), 0, 4)
    assert taken.bled == (
        BledBatch(
            kafka_offset_start=0, kafka_offset_end=2, producer_id=7, producer_epoch=0, span_epoch=1, marker_offset=3
        ),
    )
    assert (taken.bled_batches, taken.committed, taken.unexplained) == (1, 3, 0)


def test_a_bleed_is_found_by_the_slice_that_holds_it_wherever_that_ends_and_by_no_other() -> None:
    log = a_bleed(between=2)
    assert [bled_at(log, 0, end) for end in range(2, 7)] == [[(0, 2, 5)]] * 5
    assert bled_at(log, 1, 6) == [(1, 2, 5)]
    assert [bled_at(log, start, 6) for start in range(2, 7)] == [[]] * 5


@settings(max_examples=20, deadline=None)
@given(between=st.lists(st.sampled_from([1, 7, 10_001]), max_size=3), slices=st.integers(1, 4))
def test_a_bleed_is_found_once_however_far_its_other_end_lies(between: list[int], slices: int) -> None:
    log = SyntheticLog(fetch_batches=2)
    log.append(b"a", b"b", producer_id=7, epoch=0, transactional=True)
    for count in between:
        log.append(*[b"z"] * count)
    log.append(b"c", producer_id=7, epoch=1, transactional=True)
    marker = log.end_transaction(7, COMMIT, epoch=1)
    log.append(b"d", producer_id=7, epoch=1, transactional=True)
    log.end_transaction(7, COMMIT, epoch=1)
    bounds = [2, *sorted(2 + (log.end - 2) * n // slices for n in range(1, slices)), log.end]
    assert bled_at(log, 0, 2) == [(0, 2, marker)]
    assert [bled_at(log, start, end) for start, end in pairwise(bounds)] == [[]] * slices


def test_strays_that_an_abort_took_along_are_no_bleed() -> None:
    assert bled_at(a_bleed(ABORT), 0, 4) == []


def test_an_epoch_that_moves_across_a_marker_is_no_bleed() -> None:
    log = SyntheticLog()
    transaction(log, COMMIT, data_epoch=0, marker_epoch=1)
    transaction(log, COMMIT, data_epoch=1, marker_epoch=2)
    transaction(log, ABORT, data_epoch=2, marker_epoch=3)
    assert bled_at(log, 0, 6) == []


def test_two_epochs_of_two_producers_or_of_no_transaction_are_no_bleed() -> None:
    log = SyntheticLog()
    log.append(b"a", producer_id=7, epoch=0, transactional=True)
    log.append(b"b", producer_id=8, epoch=1, transactional=True)
    log.append(b"c", producer_id=9, epoch=0)
    log.append(b"d", producer_id=9, epoch=1)
    log.end_transaction(7, COMMIT)
    log.end_transaction(8, COMMIT, epoch=1)
    assert bled_at(log, 0, 6) == []


def test_all_bled_batches_are_counted_and_a_few_are_named() -> None:
    log = SyntheticLog()
    for _ in range(BLED_SAMPLE + 5):
        log.append(b"a", producer_id=7, epoch=0, transactional=True)
    log.append(b"c", producer_id=7, epoch=1, transactional=True)
    log.end_transaction(7, COMMIT, epoch=1)
    taken = census(log, 0, log.end)
    assert (taken.bled_batches, len(taken.bled)) == (BLED_SAMPLE + 5, BLED_SAMPLE)
