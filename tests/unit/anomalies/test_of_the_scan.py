"""What the scan itself counts: order, timestamps, ways of writing, errors that cancel out, an unfiltered reader."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.anomalies.breaks.mismatch import amount_mismatch, currency_mismatch
from tallystick.anomalies.breaks.out_of_order_in_topic import out_of_order_in_topic
from tallystick.anomalies.notices.offsetting_errors import offsetting_errors
from tallystick.anomalies.notices.representation_differs import representation_differs
from tallystick.anomalies.notices.timestamp_skew import possible_ms, timestamp_skew
from tallystick.anomalies.notices.unfiltered_reader import unfiltered_reader
from tallystick.matching.evidence import Evidence, OutOfOrderEvent, RecordTimes
from tallystick.matching.match_case import Entry, RecordLocation
from tallystick.model.finding_names import BreakClass
from tallystick.model.findings import NoticeFound
from tests.unit.builders import (
    HOUR,
    IN_TOPIC,
    LAW,
    MINUTE,
    NOON,
    T2L,
    TOPIC,
    census_of,
    contract_of,
    cut_of,
    deadlines_of,
    event,
    evidence_of,
    item_of,
    record_of,
    row,
    seen,
    slice_of,
)

# X3: errors that cancel out.


def errors_of(*copies: Entry, **changes: object) -> list[NoticeFound]:
    return list(offsetting_errors(evidence_of(*copies, **changes)))


def test_two_mismatches_that_cancel_out_are_told_with_what_they_moved() -> None:
    (found,) = errors_of(
        *(event(11, "ev-1", 1_010), row(1, "ev-1", 1_000), event(12, "ev-2", 1_990), row(2, "ev-2", 2_000)),
        topic_money={"EUR": 3_000},
        ledger_money={"EUR": 3_000},
    )
    assert (found.count, found.pages, found.details["moved_minor"]) == (2, False, {"EUR": 10})
    assert (found.details["topic_total_minor"], found.details["ledger_total_minor"]) == ({"EUR": 3_000}, {"EUR": 3_000})
    assert found.sentence.startswith("2 errors cancel out to the last unit (0.10 EUR too much and as much too little")


def test_a_missing_and_a_phantom_of_one_amount_cancel_out() -> None:
    """Equal totals, equal counts, and not one item in common."""
    assert [found.count for found in errors_of(event(11, "ev-1"), row(1, "ev-2"))] == [2]


def test_one_large_error_may_be_hidden_by_many_small_ones() -> None:
    small = [event(20 + number, f"small-{number}", 100) for number in range(10)]
    assert [found.count for found in errors_of(*small, row(1, "large", 1_000))] == [11]


def test_above_two_to_the_53_one_unit_is_seen() -> None:
    big = 2**53
    assert errors_of(event(11, "ev-1", big + 1), row(1, "ev-2", big)) == []
    assert len(errors_of(event(11, "ev-1", big + 1), row(1, "ev-2", big + 1))) == 1


@pytest.mark.parametrize(
    "copies",
    [
        pytest.param((), id="clean books, whose totals are equal too"),
        pytest.param((event(11), row(1)), id="an event and its row"),
        pytest.param((event(11, "ev-1"),), id="one error"),
        pytest.param((event(11, "ev-1"), row(1, "ev-2", 999)), id="one unit is left"),
        pytest.param((event(11, "ev-1"), row(1, "ev-2", currency="USD")), id="two currencies"),
        pytest.param((event(11, "ev-1"), event(12, "ev-2")), id="two errors of one sign"),
        pytest.param((event(11), event(12), row(1), row(2)), id="a copy that the other side followed"),
        pytest.param((event(11, "ev-1", 0), row(1, "ev-2", 0)), id="of nothing"),
    ],
)
def test_nothing_cancels_out(copies: tuple[Entry, ...]) -> None:
    assert errors_of(*copies) == []


def test_one_currency_may_cancel_out_and_another_not() -> None:
    (found,) = errors_of(
        *(event(11, "a", 100), row(1, "b", 100), event(12, "c", 7, "JPY")),
    )
    assert (found.count, found.details["moved_minor"]) == (2, {"EUR": 100})


def test_what_merely_waits_cancels_nothing_out() -> None:
    in_grace = deadlines_of(now_utc=NOON + MINUTE / 2)
    assert errors_of(event(11, "ev-1"), row(1, "ev-2"), deadlines=in_grace) == []


def test_errors_of_earlier_rows_count_in_the_run_that_proves_them() -> None:
    carried = [item_of(event(3, "ev-1")), item_of(row(1, "ev-2"))]
    assert [found.count for found in errors_of(carried=carried)] == [2]


@LAW
@given(st.lists(st.integers(-(2**62), 2**62).filter(bool), min_size=1, max_size=6), st.randoms())
def test_errors_cancel_out_exactly_when_they_add_up_to_nothing(differences: list[int], dice: object) -> None:
    copies = [event(10 + number, f"ev-{number}", amount) for number, amount in enumerate(differences)]
    dice.shuffle(copies)  # type: ignore[attr-defined]
    assert bool(errors_of(*copies)) == (sum(differences) == 0)
    assert errors_of(*copies, row(1, "all", sum(differences)))


# O1: order.


def late_event(offset: int, key: str = "ev-1") -> OutOfOrderEvent:
    return OutOfOrderEvent(
        topic=TOPIC,
        partition=0,
        kafka_offset=offset,
        match_key=key,
        transaction_key=f"pay-of-{key}",
        leg="payout",
        ordering_key="account-1",
        sequence=4,
        highest_before=5,
        highest_offset=10,
    )


def disordered(*events: OutOfOrderEvent, **changes: object) -> Evidence:
    return evidence_of(out_of_order=events, out_of_order_count=len(events), **changes)


def test_an_event_out_of_order_is_a_break_without_money() -> None:
    (found,) = out_of_order_in_topic(disordered(late_event(12)))
    assert (found.break_class, found.match_key) == (BreakClass.OUT_OF_ORDER_IN_TOPIC, "ev-1")
    assert (found.amount_minor, found.currency, found.copies) == (0, "", 1)
    assert found.story == (
        "topic:billing.payouts:0:12 has sequence 4, and topic:billing.payouts:0:10 before it has 5 "
        "under the same ordering key."
    )
    assert "at" not in found.evidence
    assert found.evidence["identity"] is None


def test_where_not_all_events_out_of_order_are_named_each_says_how_many_there_are() -> None:
    (found,) = out_of_order_in_topic(replace(disordered(late_event(12)), out_of_order_count=10_001))
    assert found.story.endswith(" The slice has 10,001 such events, of which the first 1 are named.")


def test_it_says_who_wrote_the_event() -> None:
    late = event(12)
    (found,) = out_of_order_in_topic(disordered(late_event(12), identities={late.item_id: record_of(late)}))
    assert found.evidence["identity"]["producer_id"] == -1


def test_each_place_out_of_order_is_a_break_of_its_own_and_the_same_in_every_run() -> None:
    first, second = out_of_order_in_topic(disordered(late_event(12), late_event(13)))
    assert first.break_id != second.break_id
    assert [first, second] == list(out_of_order_in_topic(disordered(late_event(12), late_event(13))))


def test_a_copy_that_came_later_is_a_duplicate_and_no_reordering() -> None:
    evidence = evidence_of(row(1), event(11), event(12), out_of_order=(late_event(12),), out_of_order_count=1)
    assert list(out_of_order_in_topic(evidence)) == []
    again = evidence_of(row(1), event(11), event(12), out_of_order=(late_event(11),), out_of_order_count=1)
    assert len(list(out_of_order_in_topic(again))) == 1


def test_a_copy_of_an_event_of_an_earlier_cut_is_a_duplicate_too() -> None:
    again = evidence_of(
        event(12),
        direction=T2L,
        sightings=[seen(IN_TOPIC, RecordLocation.EARLIER_SLICE, 3)],
        out_of_order=(late_event(12),),
        out_of_order_count=1,
    )
    assert list(out_of_order_in_topic(again)) == []


# O2: timestamps.

WHOLE_BEFORE = cut_of(slice_of(0, 10), n=1)


def timed(*times: RecordTimes, previous: object = WHOLE_BEFORE) -> list[NoticeFound]:
    return list(timestamp_skew(evidence_of(record_times=times, previous_cut=previous)))


def times_of(early: int, late: int, *, partition: int = 0) -> RecordTimes:
    return RecordTimes(
        topic=TOPIC, partition=partition, early=early, late=late, earliest_ms=0, latest_ms=1_772_366_400_123
    )


def test_times_that_the_window_cannot_hold_are_told_per_partition_and_page_nobody() -> None:
    (found,) = timed(times_of(2, 3))
    assert (found.count, found.pages) == (5, False)
    assert found.details["partitions"] == [
        {
            "topic": TOPIC,
            "partition": 0,
            "early": 2,
            "late": 3,
            "earliest_utc": "1970-01-01T00:00:00+00:00",
            "latest_utc": "2026-03-01T12:00:00.123000+00:00",
        }
    ]
    assert "2 too early, 3 too late, by more than 3,600 s" in found.sentence


def test_times_within_the_window_are_not_told() -> None:
    assert timed(times_of(0, 0)) == []
    assert timed() == []


@pytest.mark.parametrize(
    "previous",
    [
        pytest.param(cut_of(slice_of(0, 10, mark=11), n=1), id="its slice was held back"),
        pytest.param(cut_of(slice_of(0, 10, topic="billing.fees"), n=1), id="it did not know the partition"),
        pytest.param(None, id="it is not known"),
    ],
)
def test_how_old_a_record_may_be_is_known_only_after_a_whole_slice(previous: object) -> None:
    assert timed(times_of(2, 0), previous=previous) == []
    assert [found.count for found in timed(times_of(2, 3), previous=previous)] == [3]


def test_a_partition_is_judged_by_its_own_slice() -> None:
    (found,) = timed(times_of(2, 0), times_of(7, 0, partition=1))
    assert [part["partition"] for part in found.details["partitions"]] == [0]
    assert found.count == 2


def test_a_record_may_be_as_old_as_the_mark_before_and_as_young_as_the_mark_after_it() -> None:
    previous, cut = cut_of(n=1, marked_at_utc=NOON - HOUR), cut_of(marked_at_utc=NOON)
    first, last = possible_ms(cut, previous, tolerance_seconds=90)
    assert first == int((NOON - HOUR - timedelta(seconds=90)).timestamp() * 1000)
    assert last == int((NOON + timedelta(seconds=90)).timestamp() * 1000)


# X2, A3.


def test_pairs_written_differently_are_counted() -> None:
    (found,) = representation_differs(evidence_of(differently_written=1_234))
    assert (found.count, found.details) == (1_234, {"pairs": 1_234, "rule": "currency_case: ignored"})
    assert list(representation_differs(evidence_of())) == []


def read_by(isolation: str | None, *copies: Entry, aborted: int = 0, sightings: object = ()) -> list[NoticeFound]:
    ledger = {"connection": "ledger_billing", "table": "billing.payout", "consumer_isolation": isolation}
    census = replace(census_of(slice_of(10, 20)), aborted=aborted)
    evidence = evidence_of(
        *copies, direction=T2L, contract=contract_of(T2L, ledger=ledger), census=(census,), sightings=sightings
    )
    return list(unfiltered_reader(evidence))


def test_a_reader_of_uncommitted_data_is_told_and_whether_it_met_any() -> None:
    (lucky,) = read_by("read_uncommitted")
    assert lucky.sentence.endswith("no aborted record lay in this window.")
    (spared,) = read_by("read_uncommitted", aborted=3)
    assert spared.sentence.endswith("3 aborted records lay in this window, and no row of them was found.")
    assert spared.details["aborted_records"] == 3


@pytest.mark.parametrize("isolation", ["read_committed", None])
def test_a_reader_that_filters_or_that_nobody_declared_is_not(isolation: str | None) -> None:
    assert read_by(isolation, aborted=3) == []


def test_where_it_did_harm_the_break_says_so() -> None:
    assert read_by("read_uncommitted", row(1), aborted=1, sightings=[seen(IN_TOPIC, RecordLocation.ABORTED, 12)]) == []
    assert read_by("read_uncommitted", row(1), sightings=[seen(IN_TOPIC, RecordLocation.OPEN, 25)]) == []
    assert len(read_by("read_uncommitted", row(1))) == 1


# X1.


def test_a_row_without_a_comparable_amount_says_so() -> None:
    evidence = evidence_of(event(11), row(1, amount_minor=0, currency=""))
    (found,) = amount_mismatch(evidence)
    assert not list(currency_mismatch(evidence))
    assert "ledger:1 says no whole amount of a currency" in found.story
