"""A slice that the scan has read is not searched again, and a look-up answers as if it were."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tallystick.contract.event import EventFields
from tallystick.kafka_log.batch_header import Marker
from tallystick.kafka_log.log_walk import Outcome
from tallystick.kafka_log.record import LogRecord, read_records
from tallystick.kafka_log.search import NEEDLES_MAX, Wanted, find_records
from tallystick.matching.match_case import Entry
from tallystick.matching.record_location import not_yet_fetched
from tallystick.matching.scan_result import CanaryScan, SliceScan
from tallystick.model.offsets import OffsetRange
from tallystick.model.open_item import ItemSide
from tests.laws.scanned_logs import STEPS, log_of
from tests.unit.builders import LAW, PART, event, offsets, row, slice_of

FIELDS = EventFields()
SLICE = slice_of(10, 20)


def scan_of(*copies: Entry, incomplete: tuple[Entry, ...] = (), unreadable_count: int = 0) -> SliceScan:
    return SliceScan(
        rows_by_partition={},
        ledger_rows=0,
        matched_rows=0,
        matched_money={},
        copies=copies,
        incomplete=incomplete,
        unreadable_count=unreadable_count,
        unreadable_sample=(),
        content_digests={},
        canaries=CanaryScan(copies=(), incomplete=(), unreadable=1),
    )


KEY = Wanted(match_keys=frozenset({"ev-1"}))
TRANSACTION = Wanted(transaction_keys=frozenset({"pay-of-ev-1"}))


def test_of_a_wanted_key_the_copies_at_home_are_asked_for_by_their_place() -> None:
    scan = scan_of(event(11), event(12, "ev-2"), row(1))
    asked, _ = not_yet_fetched(KEY, [SLICE], scan)
    assert asked == replace(KEY, places=frozenset({(PART, 11)}), known=(offsets(10, 20),))


def test_so_are_the_events_of_a_transaction_that_lacks_a_leg() -> None:
    asked, _ = not_yet_fetched(TRANSACTION, [SLICE], scan_of(incomplete=(event(11), event(12, "ev-2"))))
    assert asked == replace(TRANSACTION, places=frozenset({(PART, 11)}), known=(offsets(10, 20),))


def test_a_transaction_of_which_no_event_came_home_may_be_whole_in_the_slice_so_that_is_searched() -> None:
    assert not_yet_fetched(TRANSACTION, [SLICE], scan_of(event(11))) == (TRANSACTION, ())


def test_where_an_event_could_not_be_read_the_slice_is_searched() -> None:
    assert not_yet_fetched(KEY, [SLICE], scan_of(event(11), unreadable_count=1)) == (KEY, ())


def test_what_has_expired_of_a_slice_is_not_known() -> None:
    asked, _ = not_yet_fetched(KEY, [slice_of(10, 20, expired=4)], scan_of())
    assert asked.known == (offsets(14, 20),)


def copy_of(record: LogRecord) -> Entry:
    return Entry(
        side=ItemSide.TOPIC,
        item_id=record.item_id,
        match_key=record.match_key,
        transaction_key=record.transaction_key,
        leg="",
        amount_minor=0,
        currency="EUR",
        order=record.kafka_offset,
    )


@LAW
@given(STEPS, st.data())
def test_the_same_records_are_found_as_if_the_whole_log_were_searched(
    steps: list[tuple[int | None, list[tuple[str, str]] | Marker]], data: st.DataObject
) -> None:
    log = log_of(steps)
    start, end = sorted(data.draw(st.tuples(st.integers(0, log.lso), st.integers(0, log.lso))))
    everything = [replace(one, span=None) for one in read_records(log.fetch, PART, range(log.end), FIELDS)]
    read = [
        record
        for record in everything
        if start <= record.kafka_offset < end and record.outcome in (Outcome.COMMITTED, Outcome.PLAIN)
    ]
    exceptional = data.draw(st.sets(st.sampled_from("abcde")))
    lacking = data.draw(st.sets(st.sampled_from("xyz")))
    scan = scan_of(
        *(copy_of(record) for record in read if record.match_key in exceptional),
        incomplete=tuple(copy_of(record) for record in read if record.transaction_key in lacking),
    )
    more = frozenset(f"no such event {number}" for number in range(NEEDLES_MAX * data.draw(st.integers(0, 1))))
    wanted = Wanted(
        match_keys=frozenset(
            data.draw(st.sets(st.sampled_from(sorted(exceptional))) if exceptional else st.just(set()))
        )
        | more,
        transaction_keys=frozenset(data.draw(st.sets(st.sampled_from("xyz")))),
        places=frozenset((PART, offset) for offset in data.draw(st.sets(st.integers(0, 20), max_size=2))),
    )
    asked, _ = not_yet_fetched(wanted, [slice_of(start, end)], scan)
    whole = OffsetRange(topic=PART.topic, partition=0, kafka_offset_start=0, kafka_offset_end=log.end)
    assert list(find_records(log.fetch, [whole], FIELDS, asked)) == [one for one in everything if one in wanted]
