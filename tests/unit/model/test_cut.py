"""Slices tile: each offset and each ledger transaction belongs to one cut, whatever is held, sampled or expired.

One file, since the rules of a cut are tried on the same few slices.
"""

import json
import re
from dataclasses import fields, replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from tallystick.contract.ledger import LedgerSection
from tallystick.ledger.protocol import HorizonHolder, LedgerRow
from tallystick.matching.unreadable_ranges import LedgerStarts, Loss
from tallystick.model.cut import (
    Cut,
    Discontinuity,
    LedgerAnchor,
    LedgerSlice,
    LedgerSnapshot,
    PartitionSnapshot,
    PartitionsVanished,
    Sample,
    TopicSlice,
    choose_sample,
    discontinued_slice,
    discontinuity,
    is_late,
    mark_by_time,
    next_topic_slice,
    reuses_ids,
    with_lost,
    without_expired,
)
from tallystick.model.offsets import TopicPartition
from tallystick.pipeline.make_cut import LedgerTooFarAhead, next_ledger_slice, next_topic_slices, refuse_too_wide
from tests.unit.builders import (
    HOUR,
    LAW,
    MINUTE,
    NOON,
    PART,
    TOPIC,
    cut_of,
    ledger_at,
    ledger_slice_of,
    offsets,
    partition_at,
    sample_at,
    slice_of,
)

OF_POSTGRESQL = re.compile(r"(?<![a-z])(xid|xmin|xmax)(?![a-z])")


def bounds(part: TopicSlice) -> tuple[int, int]:
    return part.offsets.kafka_offset_start, part.offsets.kafka_offset_end


def next_slice(*, previous_end: int | None = 10, mark: int | None = 20, **snapshot: int) -> TopicSlice:
    previous = None if previous_end is None else slice_of(0, previous_end)
    return next_topic_slice(partition_at(**snapshot), previous=previous, mark=mark)


# One topic slice.


def test_what_is_stable_of_a_partition_ends_at_its_lso_and_nothing_is_above() -> None:
    part = partition_at(log_start=3, lso=15, high_watermark=20)
    assert [part.stable_from(start) for start in (3, 15)] == [offsets(3, 15), offsets(15, 15)]
    with pytest.raises(ValueError, match="16"):
        part.stable_from(16)


def test_a_slice_starts_where_the_previous_ended_and_ends_at_the_mark() -> None:
    part = next_slice(mark=18)
    assert (bounds(part), part.held, part.expired) == ((10, 18), False, 0)


def test_a_slice_never_passes_the_lso_and_says_that_it_is_held() -> None:
    part = next_slice(mark=18, lso=15)
    assert (bounds(part), part.held) == ((10, 15), True)


def test_a_slice_is_held_while_it_is_one_offset_short() -> None:
    assert next_slice(mark=18, lso=17).held
    assert not next_slice(mark=18, lso=18).held


def test_what_was_written_after_the_mark_belongs_to_the_next_slice() -> None:
    assert bounds(next_slice(mark=12, lso=20)) == (10, 12)


def test_a_mark_before_the_previous_end_gives_an_empty_slice_and_holds_nothing() -> None:
    part = next_slice(mark=7)
    assert (bounds(part), part.held) == ((10, 10), False)


def test_of_a_partition_that_came_since_the_last_cut_what_retention_took_expired_unread() -> None:
    part = next_slice(previous_end=None, log_start=4, mark=None)
    assert (bounds(part), part.expired, part.readable.kafka_offset_start) == ((0, 20), 4, 4)


def test_a_topic_that_was_no_part_of_the_books_starts_where_its_log_does() -> None:
    added = partition_at(topic="billing.invoices", log_start=4)
    known = replace(added, topic=TOPIC, log_start=0)
    of_topics = {
        part.offsets.topic: (bounds(part), part.expired)
        for part in next_topic_slices(cut_of(), [known, added], sample_at(NOON, 20, 1))
    }
    assert of_topics == {"billing.invoices": ((4, 20), 0), TOPIC: ((20, 20), 0)}


def test_what_retention_took_is_counted_and_not_read() -> None:
    part = next_slice(log_start=13)
    assert (bounds(part), part.expired) == ((10, 20), 3)
    assert part.readable.kafka_offset_start == 13


def test_a_slice_that_has_expired_whole_is_empty_and_the_next_one_goes_on() -> None:
    part = next_slice(log_start=20, mark=15)
    assert (bounds(part), part.expired, len(part.readable)) == ((10, 20), 10, 0)


# Logs that do not go on where the books ended.

BOOKS = cut_of(slice_of(10, 20))
MADE_ANEW = partition_at(topic_id="another", lso=50, high_watermark=50)
CUT_BACK = partition_at(lso=19, high_watermark=19)


def next_slices(*partitions: PartitionSnapshot, previous: Cut = BOOKS) -> list[TopicSlice]:
    return list(next_topic_slices(previous, partitions, sample_at(NOON, 50, 300)))


@pytest.mark.parametrize(
    ("now", "why"),
    [
        (MADE_ANEW, Discontinuity.RECREATED),
        (replace(MADE_ANEW, partition=7), Discontinuity.RECREATED),
        (CUT_BACK, Discontinuity.TRUNCATED),
        (partition_at(lso=20, high_watermark=20), None),
        (partition_at(lso=12, high_watermark=20), None),
        (partition_at(log_start=35, lso=40, high_watermark=40), None),
        (partition_at(leader_epoch=9), None),
        (partition_at(partition=1, lso=0, high_watermark=0), None),
        (partition_at(topic="billing.fees", topic_id="another"), None),
    ],
    ids=[
        "made anew",
        "made anew with more partitions",
        "cut back by one",
        "idle",
        "held",
        "expired",
        "another leader",
        "a new partition",
        "another topic",
    ],
)
def test_a_log_goes_on_unless_its_topic_is_another_or_its_end_is_gone(
    now: PartitionSnapshot, why: Discontinuity | None
) -> None:
    assert discontinuity(BOOKS, now) is why


def test_nothing_of_a_topic_that_was_made_anew_is_read_and_the_books_keep_the_old_id() -> None:
    (part,) = next_slices(MADE_ANEW)
    assert (bounds(part), part.expired, part.held) == ((20, 20), 0, False)
    assert part.snapshot == BOOKS.topic_slices[0].snapshot
    (again,) = next_slices(MADE_ANEW, previous=cut_of(part, n=3))
    assert (bounds(again), again.snapshot.topic_id) == ((20, 20), part.snapshot.topic_id)


def test_a_topic_that_was_made_anew_keeps_its_old_partitions_and_gets_no_new_ones() -> None:
    previous = cut_of(slice_of(10, 20), replace(slice_of(0, 5), offsets=replace(offsets(0, 5), partition=1)))
    parts = next_slices(MADE_ANEW, replace(MADE_ANEW, partition=2), previous=previous)
    assert [(part.offsets.partition, bounds(part)) for part in parts] == [(0, (20, 20)), (1, (5, 5))]


def test_a_log_that_was_truncated_waits_at_the_end_of_the_books_until_it_has_grown_past_it() -> None:
    (part,) = next_slices(CUT_BACK)
    assert (bounds(part), part.held, part.snapshot) == ((20, 20), False, CUT_BACK)
    (grown,) = next_slices(partition_at(lso=25, high_watermark=25), previous=cut_of(part, n=3))
    assert bounds(grown) == (20, 25)


def test_a_slice_that_is_broken_off_starts_where_the_one_before_it_ended() -> None:
    part = discontinued_slice(slice_of(10, 20, mark=27), MADE_ANEW)
    assert (bounds(part), part.mark, part.held, len(part.readable)) == ((20, 20), 20, False, 0)


# All partitions.


def test_a_partition_that_vanished_is_refused() -> None:
    previous = cut_of(slice_of(10, 20), slice_of(0, 5, topic="billing.fees"))
    with pytest.raises(PartitionsVanished, match=r"billing.fees\[0\]: cut 2 read it"):
        next_topic_slices(previous, [partition_at()], sample_at(NOON, 20, 300))


def test_a_new_partition_joins_from_its_log_start_and_the_others_tile() -> None:
    new = partition_at(partition=1, log_start=0, lso=6, high_watermark=6)
    parts = next_topic_slices(
        cut_of(slice_of(10, 20)), [partition_at(lso=30, high_watermark=30), new], sample_at(NOON, 25, 300)
    )
    assert [bounds(part) for part in parts] == [(20, 25), (0, 6)]


def test_what_retention_took_of_a_partition_before_any_cut_knew_of_it_has_expired() -> None:
    new = partition_at(partition=1, log_start=4, lso=6, high_watermark=6)
    of_new_leg = replace(new, topic="billing.fees")
    parts = next_topic_slices(cut_of(slice_of(10, 20)), [partition_at(), new, of_new_leg], sample_at(NOON, 20, 300))
    by_place = {part.offsets.topic_partition: (bounds(part), part.expired) for part in parts}
    assert by_place[new.topic_partition] == ((0, 6), 4)
    assert by_place[of_new_leg.topic_partition] == ((4, 6), 0)  # a topic from before the books


# What expired after the cut was stored.


def test_a_cut_whose_log_is_still_there_is_as_it_was() -> None:
    cut = cut_of(slice_of(10, 20))
    for log_start in (3, 10):
        assert without_expired(cut, [partition_at(log_start=log_start)]) == cut
    assert not cut.has_expired


@pytest.mark.parametrize(("log_start", "expired"), [(11, 1), (20, 10), (35, 10)])
def test_what_left_the_log_since_the_cut_was_stored_counts_as_expired(log_start: int, expired: int) -> None:
    cut = without_expired(cut_of(slice_of(10, 20)), [partition_at(log_start=log_start)])
    assert (cut.topic_slices[0].expired, cut.has_expired) == (expired, True)
    assert len(cut.topic_slices[0].readable) == 10 - expired


@pytest.mark.parametrize("now", [[], [MADE_ANEW], [CUT_BACK]], ids=["gone", "made anew", "cut back"])
def test_a_partition_that_is_gone_or_does_not_go_on_has_expired_whole(now: list[object]) -> None:
    assert without_expired(cut_of(slice_of(10, 20)), now).topic_slices[0].expired == 10


# The ledger's slice.


def test_a_ledger_slice_ends_at_the_mark_and_never_above_the_horizon() -> None:
    previous = ledger_slice_of(200, 300)
    whole = next_ledger_slice(previous, ledger_at(350), sample_at(NOON, 20, 340))
    assert (whole.position_start, whole.position_end, whole.held) == (300, 340, False)
    short = next_ledger_slice(previous, ledger_at(330), sample_at(NOON, 20, 340))
    assert (short.position_start, short.position_end, short.held) == (300, 330, True)


def test_a_horizon_that_stands_still_gives_an_empty_slice_and_no_step_back() -> None:
    slice_now = next_ledger_slice(ledger_slice_of(200, 300), ledger_at(290), sample_at(NOON, 20, 295))
    assert (slice_now.position_start, slice_now.position_end, slice_now.mark, slice_now.held) == (300, 300, 300, False)


def test_the_baseline_is_handed_on() -> None:
    assert (
        next_ledger_slice(
            ledger_slice_of(200, 300, baseline=7), ledger_at(350), sample_at(NOON, 0, 1)
        ).baseline_position
        == 7
    )


GOES_ON = ledger_at(300, lsn="0/FFFFFFFF")
OTHER_HISTORIES = {
    "another timeline": ledger_at(350, timeline=2, lsn="1/0"),
    "another system": replace(ledger_at(350, lsn="1/0"), system_identifier="80"),
    "a horizon that fell back": ledger_at(299, lsn="1/0"),
    "a log that fell back": ledger_at(350, lsn="0/FFFFFFFE"),
}


@pytest.mark.parametrize("now", OTHER_HISTORIES.values(), ids=OTHER_HISTORIES)
def test_where_the_ids_do_not_go_on_nobody_says_whether_rows_below_the_slice_were_read(now: LedgerSnapshot) -> None:
    """Taken for read, their events would be duplicates. That the books began earlier stays so."""
    previous = replace(ledger_slice_of(200, 300, baseline=7), snapshot=GOES_ON)
    mark = sample_at(NOON, 0, 1)
    after = next_ledger_slice(previous, now, mark)
    assert (after.baseline_position, after.reused_below) == (7, 300)
    later = next_ledger_slice(replace(after, snapshot=GOES_ON), ledger_at(300, lsn="1/0"), mark)
    assert (later.baseline_position, later.reused_below) == (7, 300)
    same = next_ledger_slice(previous, ledger_at(300, lsn="1/0"), mark)
    assert (same.baseline_position, same.reused_below) == (7, 0)


def anchors_at(*positions: int) -> tuple[LedgerAnchor, ...]:
    return tuple(LedgerAnchor(position=one, row_id=str(one), key_checksum=one) for one in positions)


@pytest.mark.parametrize(
    ("lost", "before", "reused"),
    [
        pytest.param((), (0, 0), (0, 0), id="none"),
        pytest.param((9,), (0, 0), (9, 300), id="the newest"),
        pytest.param((9, 6), (0, 0), (5, 300), id="some, and newer ones stand"),
        pytest.param((9, 8, 6, 4, 3), (0, 0), (0, 300), id="all"),
        pytest.param((9,), (2, 100), (2, 300), id="again"),
        pytest.param((9,), (100, 200), (9, 300), id="again, and from below"),
        pytest.param((), (2, 100), (2, 100), id="none since"),
    ],
)
def test_above_the_newest_row_that_all_lost_ones_leave_standing_positions_may_be_given_again(
    lost: tuple[int, ...], before: tuple[int, int], reused: tuple[int, int]
) -> None:
    reused_from, reused_below = before
    previous = replace(
        ledger_slice_of(200, 300), anchors=anchors_at(9, 8, 6, 4, 3), reused_from=reused_from, reused_below=reused_below
    )
    following = next_ledger_slice(previous, previous.snapshot, sample_at(NOON, 0, 1))
    now = with_lost(following, previous, anchors_at(*lost))
    assert (now.reused_from, now.reused_below) == reused
    assert now.lost == anchors_at(*lost)


@pytest.mark.parametrize(
    ("lost", "before", "came_again"),
    [
        pytest.param(anchors_at(9), {}, False, id="one is gone"),
        pytest.param(tuple(replace(one, taken=True) for one in anchors_at(9)), {}, True, id="another has its id"),
        pytest.param(anchors_at(9, 8, 6, 4, 3), {}, True, id="all are gone"),
        pytest.param(anchors_at(9), {"reused_below": 100}, True, id="the ledger was put back before"),
        pytest.param(anchors_at(9), {"reused_below": 100, "row_ids_reused": False}, False, id="one was gone before"),
        pytest.param((), {"reused_below": 100, "row_ids_reused": True}, True, id="none since"),
    ],
)
def test_row_ids_come_again_where_one_does_or_all_of_the_newest_are_gone(
    lost: tuple[LedgerAnchor, ...], before: dict[str, Any], came_again: bool
) -> None:
    """Else a row that was read may still be written anew, as the same row."""
    previous = replace(ledger_slice_of(200, 300), anchors=anchors_at(9, 8, 6, 4, 3), **before)
    now = with_lost(next_ledger_slice(previous, previous.snapshot, sample_at(NOON, 0, 1)), previous, lost)
    assert now.row_ids_came_again is came_again


def test_ids_are_given_again_until_a_cut_has_begun_above_what_had_been_read() -> None:
    """The server passed the old end between two cuts: what it wrote below that is in neither."""
    behind, past, later = (ledger_at(xmin) for xmin in (290, 320, 330))
    assert reuses_ids(ledger_at(300), behind, read_up_to=300)
    assert reuses_ids(behind, past, read_up_to=300)
    assert not reuses_ids(past, later, read_up_to=320)


def test_a_fail_over_may_have_a_shorter_log() -> None:
    """Positions of two timelines are not compared; its ids are."""
    assert not reuses_ids(ledger_at(300), ledger_at(300, timeline=2, lsn="0/0"), read_up_to=300)
    assert reuses_ids(ledger_at(300), ledger_at(299, timeline=2), read_up_to=300)


def test_the_newest_row_of_a_ledger_without_history_may_go_and_no_row_leaves_the_books() -> None:
    """Such a horizon follows the largest value. With a log beside it, it would be a copy of an earlier state."""
    mark = sample_at(NOON, 0, 299)
    for fell_back in (ledger_at(290, timeline=0, lsn="0/0"), ledger_at(290, lsn="0/0")):
        previous = replace(ledger_slice_of(200, 300, baseline=7), snapshot=replace(fell_back, low_mark=300))
        now = next_ledger_slice(previous, fell_back, mark)
        assert (now.position_start, now.position_end, now.held) == (300, 300, False)
        assert (now.baseline_position, now.reused_below) == (
            7,
            300 if fell_back.keeps_history else previous.reused_below,
        )
        assert reuses_ids(previous.snapshot, fell_back, read_up_to=300) is fell_back.keeps_history


@pytest.mark.parametrize(("timeline", "kept"), [(0, False), (1, True)])
def test_a_server_with_a_timeline_keeps_its_history_and_other_kinds_of_ledger_keep_none(
    timeline: int, kept: bool
) -> None:
    assert ledger_at(300, timeline=timeline).keeps_history is kept


def test_a_log_position_counts_bytes_in_two_hexadecimal_halves() -> None:
    assert ledger_at(300, lsn="1A/FFFFFFFF").log_position + 1 == ledger_at(300, lsn="1B/0").log_position
    assert ledger_at(300, lsn="1A/10").log_position == 0x1A_0000_0010


def test_brokers_that_keep_a_partition_and_do_not_have_all_of_it_are_out_of_sync() -> None:
    assert partition_at(replicas=(3, 1, 2), in_sync=(1,)).out_of_sync == (2, 3)
    assert partition_at(replicas=(3, 1), in_sync=(1, 3)).out_of_sync == ()


def test_half_of_32_bits_since_the_last_cut_is_all_that_a_slice_by_xmin_may_span() -> None:
    by_xmin = LedgerSection(connection="c", table="billing.posting")
    by_column = by_xmin.model_copy(update={"slice_by": "written_xid"})
    end, half = 300, 2**31
    refuse_too_wide(by_xmin, cut_of(), ledger_at(301, high_mark=end + half))
    refuse_too_wide(by_column, cut_of(), ledger_at(301, high_mark=end + half + 1))
    with pytest.raises(
        LedgerTooFarAhead,
        match=r"2,147,483,649 transaction ids .* cut 2 .* at most 2,147,483,648.*ALTER TABLE billing.posting",
    ):
        refuse_too_wide(by_xmin, cut_of(), ledger_at(301, high_mark=end + half + 1))


# Tiling, as a law.

MOVES = st.lists(st.tuples(*[st.integers(0, 6)] * 4), min_size=1, max_size=8)


@LAW
@given(MOVES)
def test_topic_slices_tile_and_never_pass_the_lso(moves: list[tuple[int, int, int, int]]) -> None:
    """Each move: what is appended, how far the LSO lags, how far the sample lags, what retention takes."""
    parts: list[TopicSlice] = []
    high_watermark, log_start, previous_end, lso = 0, 0, 0, 0
    for appended, held, lag, taken in moves:
        high_watermark += appended
        lso = max(lso, high_watermark - held)
        log_start = min(log_start + taken, lso)
        part = next_topic_slice(
            partition_at(log_start=log_start, lso=lso, high_watermark=high_watermark),
            previous=slice_of(0, previous_end),
            mark=max(0, high_watermark - lag),
        )
        previous_end = part.offsets.kafka_offset_end
        assert previous_end <= lso
        assert log_start <= part.readable.kafka_offset_start <= previous_end or not len(part.readable)
        parts.append(part)
    read = [offset for part in parts for offset in range(*bounds(part))]
    assert read == list(range(previous_end))


@LAW
@given(MOVES)
def test_ledger_slices_tile_and_never_pass_the_horizon(moves: list[tuple[int, int, int, int]]) -> None:
    part: LedgerSlice = ledger_slice_of(100, 100)
    xmax, xmin, read = 100, 100, []
    for begun, open_for, lag, _ in moves:
        xmax += begun
        xmin = max(xmin, xmax - open_for)
        part = next_ledger_slice(part, ledger_at(xmin, high_mark=xmax), sample_at(NOON, 0, max(0, xmax - lag)))
        assert part.position_end <= xmin
        read += range(part.position_start, part.position_end)
    assert read == list(range(100, part.position_end))


# Which sample ends a window.

EARLY, AT, LATER = (sample_at(NOON + step * MINUTE, 0, 0) for step in (-1, 0, 1))


def test_a_window_ends_at_the_first_sample_at_or_after_its_end() -> None:
    assert choose_sample([LATER, EARLY, AT], window_end_utc=NOON) is AT
    assert choose_sample([LATER, EARLY], window_end_utc=NOON) is LATER


def test_without_a_later_sample_the_newest_one_ends_it() -> None:
    assert choose_sample([EARLY, sample_at(NOON - HOUR, 0, 0)], window_end_utc=NOON) is EARLY


@pytest.mark.parametrize(
    ("sampled", "late"), [(MINUTE, False), (HOUR - MINUTE, False), (HOUR, True), (30 * HOUR, True)]
)
def test_a_sample_is_late_once_the_next_window_has_ended_too(sampled: timedelta, late: bool) -> None:
    sample = sample_at(NOON + sampled, 0, 0)
    assert is_late(sample, window_end_utc=NOON, next_end_utc=NOON + HOUR) is late


def test_a_window_that_no_other_one_follows_is_never_late() -> None:
    assert not is_late(sample_at(NOON + HOUR, 0, 0), window_end_utc=NOON, next_end_utc=NOON)


def test_a_late_windows_marks_move_back_to_where_its_end_lies_by_timestamp() -> None:
    late = sample_at(NOON + 5 * HOUR, 90, 700)
    moved = mark_by_time(late, offsets={PART: 40}, position=300)
    assert (moved.high_watermark(PART), moved.ledger_high_mark, moved.at_utc) == (40, 300, late.at_utc)


@pytest.mark.parametrize(
    ("offsets", "xid"),
    [
        pytest.param({}, None, id="nothing is that young, or nobody says"),
        pytest.param({PART: 95}, 800, id="written after the sample"),
    ],
)
def test_a_late_windows_marks_never_move_beyond_the_sample(offsets: dict[TopicPartition, int], xid: int | None) -> None:
    late = sample_at(NOON + 5 * HOUR, 90, 700)
    assert mark_by_time(late, offsets=offsets, position=xid) == late


def test_a_cut_without_expiry_has_none() -> None:
    assert not replace(cut_of(), topic_slices=()).has_expired
    assert cut_of(n=0).is_baseline
    assert not cut_of(n=1).is_baseline


# What is stored.


def test_a_stored_slice_keeps_its_keys_whatever_code_calls_its_fields() -> None:
    """Cuts of each release are read by each later one; a file or a number that grows was always called by these too."""
    document = {
        "xid_start": 200,
        "xid_end": 300,
        "snapshot": {"xmin": 300, "xmax": 310, "system_identifier": "73012345", "timeline": 1, "lsn": "0/1A2B3C8"},
        "mark": 305,
        "baseline_xid": 100,
        "reused_below": 0,
        "files": [],
        "changed": [],
        "left": [],
        "left_from": None,
        "reused_from": 0,
        "row_ids_reused": None,
        "anchors": [],
        "lost": [],
    }
    stored = TypeAdapter(LedgerSlice)
    ledger_slice = replace(ledger_slice_of(200, 300, mark=305), snapshot=ledger_at(300, high_mark=310))
    assert json.dumps(stored.dump_python(ledger_slice, mode="json", by_alias=True)) == json.dumps(document)
    assert stored.validate_python(document) == ledger_slice
    of_old = {
        key: value
        for key, value in document.items()
        if key not in ("left", "left_from", "reused_from", "row_ids_reused", "anchors", "lost")
    }
    assert stored.validate_python(of_old) == ledger_slice


def test_a_stored_loss_keeps_its_keys() -> None:
    """Of look-ups that a restarted attempt goes on from."""
    document = {"cut_n": 3, "marked_at_utc": "2026-03-01T12:00:00Z", "ledger_xmax": 310}
    loss = Loss(cut_n=3, marked_at_utc=NOON, ledger_high_mark=310)
    assert TypeAdapter(Loss).dump_python(loss, mode="json", by_alias=True) == document
    assert TypeAdapter(Loss).validate_python(document) == loss


@pytest.mark.parametrize("kind", [LedgerSlice, LedgerSnapshot, Sample, HorizonHolder, LedgerRow, Loss, LedgerStarts])
def test_no_field_that_every_kind_of_ledger_has_is_called_as_postgresqls(kind: type) -> None:
    assert [one.name for one in fields(kind) if OF_POSTGRESQL.search(one.name)] == []
    assert OF_POSTGRESQL.search("row_xid")
