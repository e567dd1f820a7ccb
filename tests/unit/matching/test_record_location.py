"""What stands elsewhere is seen with its place; the log is asked about what is overdue or odd, not about traffic."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from tallystick.kafka_cluster.open_transactions import OpenTransaction
from tallystick.kafka_log.log_walk import Outcome
from tallystick.kafka_log.search import Wanted
from tallystick.matching.match_case import Entry, LookupHit, MatchResult, MatchStatus, RecordLocation, UnmatchedItem
from tallystick.matching.record_location import (
    add_unseen,
    in_log_order,
    locate_input,
    locate_record,
    needs_input,
    needs_topic,
    not_yet_fetched,
    pairs_with_older_row,
    without_reversals_cut_away,
    without_those_gone,
)
from tallystick.model.direction import Direction
from tallystick.model.item_reason import ReasonCode, reason_of
from tallystick.model.offsets import TopicPartition
from tallystick.model.open_item import ItemState
from tests.unit.builders import (
    HOUR,
    IN_TOPIC,
    L2T,
    LEDGER,
    MINUTE,
    NOON,
    PART,
    T2L,
    TOPIC,
    case_of,
    event,
    item_of,
    offsets,
    partition_at,
    row,
    seen,
    slice_of,
)
from tests.unit.matching.scans import scan_of
from tests.unit.pipeline.lookup_cases import BASELINE, CUT, record


@pytest.mark.parametrize(
    ("offset", "place"),
    [
        (4, RecordLocation.BEFORE_BASELINE),
        (5, RecordLocation.EARLIER_SLICE),
        (9, RecordLocation.EARLIER_SLICE),
        (10, RecordLocation.SLICE),
        (19, RecordLocation.SLICE),
        (20, RecordLocation.PENDING),
    ],
)
def test_an_events_place_is_told_by_its_offset(offset: int, place: RecordLocation) -> None:
    hit = locate_record(record(offset), CUT, BASELINE)
    assert (hit.side, hit.place) == (IN_TOPIC, place)
    assert hit.item_id == f"topic:billing.payouts:0:{offset}"
    told = {name: hit.detail[name] for name in ("outcome", "producer_id", "producer_epoch")}
    assert told == {"outcome": "committed", "producer_id": 7, "producer_epoch": 0}


def test_of_an_event_that_an_earlier_cut_read_the_money_is_told_and_of_another_it_is_not() -> None:
    paid = replace(record(5), amount_minor=7, currency="JPY")
    told = locate_record(paid, CUT, BASELINE).detail
    assert (told["amount_minor"], told["currency"]) == (7, "JPY")
    for one in (replace(record(12), amount_minor=7, currency="JPY"), replace(record(5), amount_minor=None)):
        assert not {"amount_minor", "currency"} & locate_record(one, CUT, BASELINE).detail.keys()


def test_of_an_event_that_says_it_takes_one_back_that_is_told() -> None:
    assert "takes_back" not in locate_record(record(5), CUT, BASELINE).detail
    reversal = replace(record(5), amount_minor=-7, currency="JPY", reverses="topic:billing.payouts:0:4")
    assert locate_record(reversal, CUT, BASELINE).detail["takes_back"] == "topic:billing.payouts:0:4"


def test_what_the_log_shows_already_is_not_added_again() -> None:
    found = [seen(IN_TOPIC, RecordLocation.SLICE, 12, by="the log")]
    add_unseen(found, [seen(IN_TOPIC, RecordLocation.PENDING, 12), seen(IN_TOPIC, RecordLocation.PENDING, 25)])
    assert [(one.item_id[-2:], one.place) for one in found] == [
        ("12", RecordLocation.SLICE),
        ("25", RecordLocation.PENDING),
    ]


def test_records_come_in_the_order_of_the_partitions_and_by_offset_and_those_of_others_do_not() -> None:
    other = replace(record(3), topic_partition=TopicPartition(topic=TOPIC, partition=1))
    ordered = in_log_order([record(12), other, record(5)], [partition_at(partition=1), partition_at()])
    assert [(one.topic_partition.partition, one.kafka_offset) for one in ordered] == [(1, 3), (0, 5), (0, 12)]
    assert in_log_order([other], [partition_at()]) == []


@pytest.mark.parametrize("offset", [4, 12, 25])
def test_an_aborted_event_has_no_place_but_that(offset: int) -> None:
    assert locate_record(record(offset, Outcome.ABORTED), CUT, BASELINE).place is RecordLocation.ABORTED


def open_transaction(start: int, *, producer_id: int = 7, partition: int = 0) -> OpenTransaction:
    return OpenTransaction(
        topic_partition=TopicPartition(topic=TOPIC, partition=partition),
        producer_id=producer_id,
        producer_epoch=0,
        kafka_offset_start=start,
        transactional_id="relay",
        started_ms=0,
        timeout_ms=60_000,
    )


@pytest.mark.parametrize(
    ("transaction", "place"),
    [
        pytest.param(open_transaction(18), RecordLocation.OPEN, id="its own transaction is open"),
        pytest.param(open_transaction(20), RecordLocation.OPEN, id="and begins with it"),
        pytest.param(open_transaction(21), RecordLocation.PENDING, id="its producer began another one since"),
        pytest.param(open_transaction(18, producer_id=8), RecordLocation.PENDING, id="it lies behind somebody else's"),
        pytest.param(open_transaction(18, partition=1), RecordLocation.PENDING, id="that is open on another partition"),
        pytest.param(None, RecordLocation.PENDING, id="it has ended meanwhile"),
    ],
)
def test_an_undecided_event_lies_beyond_the_cut_and_is_open_only_while_its_own_transaction_is(
    transaction: OpenTransaction | None, place: RecordLocation
) -> None:
    still_open = [transaction] if transaction else []
    assert locate_record(record(20, Outcome.OPEN), CUT, BASELINE, open_transactions=still_open).place is place


@pytest.mark.parametrize(
    ("outcome", "place"),
    [
        (Outcome.COMMITTED, RecordLocation.STRAY),
        (Outcome.PLAIN, RecordLocation.STRAY),
        (Outcome.ABORTED, RecordLocation.ABORTED),
        (Outcome.OPEN, RecordLocation.PENDING),
    ],
)
def test_an_event_on_a_topic_of_no_leg_strays_once_it_is_committed(outcome: Outcome, place: RecordLocation) -> None:
    assert locate_record(record(4, outcome), CUT, BASELINE, legs={"billing.fees"}).place is place
    assert locate_record(record(12), CUT, BASELINE, legs={TOPIC}).place is RecordLocation.SLICE


def test_an_event_of_a_partition_that_the_cut_did_not_know_lies_beyond_it() -> None:
    assert locate_record(record(0, partition=3), CUT, BASELINE).place is RecordLocation.PENDING


def test_a_partition_that_the_baseline_did_not_know_has_nothing_before_it() -> None:
    assert locate_record(record(0), CUT, replace(BASELINE, topic_slices=())).place is RecordLocation.EARLIER_SLICE


# What the log is asked about.


def asks(*copies: Entry, rows: Iterable[LookupHit] = (), direction: Direction = L2T, due_in: int = -60) -> bool:
    """due_in: minutes from now to the deadline of new copies."""
    now_utc = NOON + HOUR
    return needs_topic(
        case_of(*copies),
        rows,
        direction=direction,
        now_utc=now_utc,
        new_copies_due_utc=now_utc + due_in * MINUTE,
    )


@pytest.mark.parametrize("direction", [L2T, T2L], ids=str)
def test_a_row_alone_is_looked_for_once_it_is_due_and_not_before(direction: Direction) -> None:
    assert asks(row(1), direction=direction, due_in=0)
    assert not asks(row(1), direction=direction, due_in=1)


def test_a_carried_row_has_its_own_deadline() -> None:
    def carried(due_in: int) -> Entry:
        return row(1, carried=item_of(row(1), due_utc=NOON + HOUR + due_in * MINUTE))

    assert asks(carried(0), due_in=30)
    assert not asks(carried(1), due_in=-30)


def test_a_row_beside_an_older_row_is_looked_for_at_once() -> None:
    """Whether it is one too many depends on an event that may lie beyond the cut."""
    assert asks(row(2), rows=[seen(LEDGER, RecordLocation.EARLIER_SLICE, 1)], direction=T2L, due_in=30)


def test_a_pair_is_not_looked_for_unless_its_row_stands_elsewhere_too() -> None:
    assert not asks(row(1), event(11), rows=[seen(LEDGER, RecordLocation.SLICE, 1)])
    assert asks(
        row(2), event(11), rows=[seen(LEDGER, RecordLocation.SLICE, 2), seen(LEDGER, RecordLocation.EARLIER_SLICE, 1)]
    )


@pytest.mark.parametrize("place", [RecordLocation.EARLIER_SLICE, RecordLocation.BEFORE_BASELINE])
@pytest.mark.parametrize("direction", [L2T, T2L], ids=str)
def test_an_event_whose_row_is_older_than_the_slice_may_double_one_elsewhere(
    direction: Direction, place: RecordLocation
) -> None:
    assert asks(event(11), rows=[seen(LEDGER, place, 1)], direction=direction)


def test_an_event_whose_row_is_behind_the_horizon_waits_without_asking() -> None:
    assert not asks(event(11), rows=[seen(LEDGER, RecordLocation.PENDING, 1)])


def test_an_overdue_event_without_any_row_is_asked_about_where_its_row_comes_first() -> None:
    assert asks(event(11))
    assert not asks(event(11), due_in=1)
    assert not asks(event(11), direction=T2L)  # a consumer that is down: every event is one


def test_a_broken_copy_beside_a_new_one_counts_as_a_copy() -> None:
    broken = item_of(event(11), ItemState.BROKEN)
    assert asks(event(11, carried=broken), row(1), row(2))


def test_a_pair_of_which_one_waited_is_looked_for_where_its_row_may_have_been_written_anew() -> None:
    old_row, old_event = row(1, carried=item_of(row(1), cut_n=3)), event(11, carried=item_of(event(11), cut_n=3))
    assert pairs_with_older_row(case_of(old_row, event(12)), {3}, moved_here=False)
    assert not pairs_with_older_row(case_of(old_row, event(12)), {2}, moved_here=True)
    assert pairs_with_older_row(case_of(row(1), old_event), set(), moved_here=True)
    assert not pairs_with_older_row(case_of(row(1), old_event), {3}, moved_here=False)
    anew = replace(old_row, is_new_version=True)
    assert pairs_with_older_row(case_of(anew, event(12)), set(), moved_here=True)
    assert not pairs_with_older_row(case_of(anew, event(12)), {3}, moved_here=False)
    for copies in ((row(1), event(12)), (old_row,), (old_event,)):
        assert not pairs_with_older_row(case_of(*copies), {3}, moved_here=True)


# What the scan has brought home is not searched again.

KEY = Wanted(match_keys=frozenset({"ev-1"}))
SLICES = [slice_of(10, 20, expired=4), slice_of(0, 7, topic="billing.fees")]
KNOWN = (offsets(14, 20), offsets(0, 7, topic="billing.fees"))


def test_of_a_wanted_key_the_records_at_home_are_given_and_the_others_asked_for_by_their_place() -> None:
    at_home = record(11)
    copies = (event(11), event(12), event(13, "ev-2"), row(1))
    scan = scan_of(copies=copies, log_records={event(11).item_id: at_home})
    wanted = replace(KEY, places=frozenset({(PART, 3), (PART, 11)}))
    asked, records = not_yet_fetched(wanted, SLICES, scan)
    assert asked == replace(KEY, places=frozenset({(PART, 3), (PART, 12)}), known=KNOWN)
    assert records == (at_home,)


def test_of_a_wanted_transaction_the_events_that_lack_a_leg_count_too() -> None:
    wanted = Wanted(transaction_keys=frozenset({"pay-of-ev-1"}))
    scan = scan_of(incomplete=(event(11), event(12, "ev-2")))
    asked, records = not_yet_fetched(wanted, SLICES, scan)
    assert (asked, records) == (replace(wanted, places=frozenset({(PART, 11)}), known=KNOWN), ())
    whole = scan_of(copies=(event(11),))
    assert not_yet_fetched(wanted, SLICES, whole) == (wanted, ())


def test_where_a_record_could_not_be_read_every_slice_is_searched() -> None:
    scan = scan_of(copies=(event(11),), unreadable_count=1)
    assert not_yet_fetched(KEY, SLICES, scan) == (KEY, ())
    assert not_yet_fetched(KEY, SLICES, replace(scan, unreadable_count=0)) != (KEY, ())


def input_asks(*copies: Entry, indexed: Iterable[LookupHit] = (), due_in: int = -60) -> bool:
    now_utc = NOON + HOUR
    due_utc = now_utc + due_in * MINUTE
    return needs_input(case_of(*copies), indexed, now_utc=now_utc, new_copies_due_utc=due_utc)


def test_the_input_is_asked_where_outputs_outnumber_inputs_unless_one_alone_may_wait() -> None:
    assert input_asks(event(11), due_in=0)
    assert not input_asks(event(11), due_in=1)
    assert input_asks(event(11), due_in=1, indexed=[seen(IN_TOPIC, RecordLocation.EARLIER_SLICE, 5)])
    assert not input_asks(event(11), due_in=1, indexed=[seen(IN_TOPIC, RecordLocation.SLICE, 11)])
    assert input_asks(event(11), event(12), row(1), due_in=1)
    assert not input_asks(event(11), row(1))
    assert not input_asks(row(1))


def test_an_output_that_waited_has_its_own_deadline() -> None:
    def carried(due_in: int) -> Entry:
        return event(11, carried=item_of(event(11), due_utc=NOON + HOUR + due_in * MINUTE))

    assert input_asks(carried(0), due_in=30)
    assert not input_asks(carried(1), due_in=-30)


def test_an_input_is_located_like_a_record_and_named_like_a_row() -> None:
    hit = locate_input(record(12), CUT, BASELINE)
    assert hit == replace(locate_record(record(12), CUT, BASELINE), side=LEDGER, item_id="ledger:billing.payouts:0:12")
    assert locate_input(record(12, Outcome.OPEN), CUT, BASELINE).place is RecordLocation.PENDING


@pytest.mark.parametrize(
    ("copy", "fate", "decided"),
    [
        (event(11), MatchStatus.EXTRA, False),
        (event(10), MatchStatus.EXTRA, True),  # the log still has it
        (event(11), MatchStatus.FOLLOWER_ABSENT, True),
        (event(11, carried=item_of(event(11), ItemState.BROKEN)), MatchStatus.EXTRA, True),  # an earlier run read it
        (row(11), MatchStatus.EXTRA, True),
    ],
)
def test_of_an_event_too_many_that_an_election_has_taken_since_nothing_is_decided(
    copy: Entry, fate: MatchStatus, decided: bool
) -> None:
    residue = UnmatchedItem(copy=copy, fate=fate, reason=reason_of(ReasonCode.EXTRA_ALONE))
    outcome = MatchResult(case=case_of(copy), matched=(), residues=(residue,))
    (found,) = without_those_gone(outcome, {PART: 11}).residues
    undecided = replace(residue, fate=MatchStatus.UNDECIDABLE, reason=reason_of(ReasonCode.CUT_AWAY))
    assert found == (residue if decided else undecided)
    assert without_those_gone(outcome, {}) == outcome


@pytest.mark.parametrize(
    ("partner", "waits"),
    [
        (row(2), True),
        (row(2, carried=item_of(row(2))), True),
        (row(2, carried=item_of(row(2), ItemState.BROKEN)), False),
    ],
)
def test_what_followed_an_event_that_an_election_has_taken_waits_for_the_next_run(partner: Entry, waits: bool) -> None:
    residue = UnmatchedItem(
        copy=event(11),
        fate=MatchStatus.EXTRA,
        reason=reason_of(ReasonCode.EXTRA_WAS_FOLLOWED),
        partner=partner,
        original=event(10),
    )
    outcome = MatchResult(case=case_of(event(11), partner), matched=(), residues=(residue,))
    gone, *left = without_those_gone(outcome, {PART: 11}, {"topic:billing.payouts:0:11"}).residues
    assert (gone.fate, gone.reason.code, gone.partner) == (MatchStatus.UNDECIDABLE, ReasonCode.CUT_AWAY, None)
    waiting = UnmatchedItem(copy=partner, fate=MatchStatus.UNSETTLED, reason=reason_of(ReasonCode.PARTNER_CUT_AWAY))
    assert left == [waiting] * waits
    assert without_those_gone(outcome, {PART: 12}, {"topic:billing.payouts:0:10"}) == outcome
    gone, *left = without_those_gone(outcome, {PART: 12}, {"topic:billing.payouts:0:11"}).residues
    assert (gone.fate, gone.reason.code, gone.partner) == (MatchStatus.UNDECIDABLE, ReasonCode.GONE_UNREAD, None)
    expired = UnmatchedItem(
        copy=partner, fate=MatchStatus.PARTNER_EXPIRED, reason=reason_of(ReasonCode.OFFSETS_EXPIRED)
    )
    assert left == [expired] * waits


@pytest.mark.parametrize(
    ("end", "reverses", "stays"),
    [(12, "topic:billing.payouts:0:3", True), (11, "", True), (11, "topic:billing.payouts:0:3", False)],
)
def test_a_reversal_that_an_election_has_taken_takes_nothing_back(end: int, reverses: str, stays: bool) -> None:
    reversal, taken_back = replace(event(11), reverses=reverses), event(3, carried=item_of(event(3), ItemState.BROKEN))
    case = case_of(reversal, taken_back)
    left, gone = without_reversals_cut_away(case, {PART: end})
    if stays:
        assert (left, gone) == (case, ())
    else:
        assert left.copies == (taken_back,)
        assert gone == (
            UnmatchedItem(copy=reversal, fate=MatchStatus.UNDECIDABLE, reason=reason_of(ReasonCode.CUT_AWAY)),
        )
