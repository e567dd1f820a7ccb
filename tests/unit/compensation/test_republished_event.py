"""Which events of a key are in force, and what an event that takes one back says.

One file, since each test asks about the same few records of one topic.
"""

import json
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from tallystick.compensation.plan import RepairKind
from tallystick.compensation.republished_event import (
    CurrentEvent,
    document_at,
    event_at,
    event_headers,
    event_value,
    find_events,
    in_force,
    is_as_planned,
    reversal_value,
    unread_ranges,
    why_not_postable,
    why_not_read_whole,
    why_not_reversible,
)
from tallystick.contract.event import EventFields
from tallystick.kafka_log.committed_records import CommittedRecord
from tallystick.model.cut import JudgedPart, PartitionSnapshot
from tallystick.model.offsets import TopicPartition
from tests.unit.compensation.repaired_items import ITEM
from tests.unit.event_payloads import FIELDS, READABLE, UNREADABLE

NAMES = EventFields(match_key="id", amount_minor="cents")
VALUE = b'{"id": "ev-1", "payment_id": "pay-1", "leg": "payout", "cents": 250, "currency": "EUR", "note": "by wire"}'


def standing(offset: int, *, reverses: str = "") -> CurrentEvent:
    return CurrentEvent(topic="payouts", partition=0, kafka_offset=offset, action_id="", reverses=reverses, value=VALUE)


JUDGED_TO_9 = {
    TopicPartition(topic="payouts", partition=0): JudgedPart(
        topic_id="id", leader_epoch=1, log_start=0, kafka_offset_end=9
    )
}


def taking_back(offset: int, of: int) -> CurrentEvent:
    return standing(offset, reverses=f"topic:payouts:0:{of}")


def part(n: int, log_start: int, topic_id: str = "id") -> PartitionSnapshot:
    return PartitionSnapshot(
        topic="payouts",
        partition=n,
        topic_id=topic_id,
        leader_epoch=1,
        log_start=log_start,
        lso=100,
        high_watermark=100,
    )


JUDGED = {
    TopicPartition(topic="payouts", partition=0): JudgedPart(
        topic_id="id", leader_epoch=1, log_start=0, kafka_offset_end=40
    )
}


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ([part(0, 40)], None),
        ([part(0, 41)], "not provable: payouts[0] begins at 41 by now, and runs have read it up to 40; the next run"),
        ([part(0, 0), part(1, 0)], None),
        ([part(0, 0), part(1, 1)], "not provable: payouts[1] begins at 1 by now, and runs have read it up to 0;"),
        ([part(0, 0, "another")], "not provable: payouts was made anew since the newest run"),
    ],
)
def test_what_the_log_forgot_must_have_been_judged(parts: list[PartitionSnapshot], reason: str | None) -> None:
    said = why_not_read_whole(parts, JUDGED)
    assert said is None if reason is None else str(said).startswith(reason)


@pytest.mark.parametrize(
    ("log_start", "log_start_then", "leader_epoch", "is_refused"),
    [(40, 0, 2, True), (9, 8, 2, True), (40, 0, 1, False), (40, 40, 2, False)],
    ids=["all gone", "some gone", "its leader stayed", "all had gone before"],
)
def test_nothing_is_provable_where_a_later_leader_may_have_cut_back_what_was_read_and_some_is_gone(
    log_start: int, log_start_then: int, leader_epoch: int, is_refused: bool
) -> None:
    known = {name: replace(one, log_start=log_start_then) for name, one in JUDGED.items()}
    said = why_not_read_whole([replace(part(0, log_start), leader_epoch=leader_epoch)], known)
    assert said == (
        "not provable: payouts[0] has another leader since the newest run, and has lost records: what that leader cut "
        "back, and what came in its place, may be among them; let the next window be judged, then plan anew"
        if is_refused
        else None
    )


def test_what_no_run_has_read_begins_where_the_newest_one_ended_or_where_the_log_does() -> None:
    parts = [replace(part(n, log_start), lso=20) for n, log_start in ((0, 4), (0, 12), (1, 3))]
    assert [(one.kafka_offset_start, one.kafka_offset_end) for one in unread_ranges(parts, JUDGED_TO_9)] == [
        (9, 20),
        (12, 20),
        (3, 20),
    ]
    assert unread_ranges([replace(part(0, 4), lso=9)], JUDGED_TO_9) == []


def test_what_is_taken_back_and_what_takes_it_back_are_not_in_force() -> None:
    first, second = standing(4), standing(9)
    assert in_force([first, second]) == (first, second)
    assert in_force([first, second, standing(12, reverses="topic:payouts:0:9")]) == (first,)
    assert in_force([first, standing(12, reverses="topic:payouts:0:8")]) == (first,)


def test_a_negated_reversal_is_the_copy_with_the_other_sign_and_else_it_is_the_copy() -> None:
    assert json.loads(reversal_value(standing(9), NAMES, negated=True)) == json.loads(VALUE) | {"cents": -250}
    assert reversal_value(standing(9), NAMES, negated=False) == VALUE


def test_a_negated_reversal_leaves_what_nobody_reads_as_it_was_written() -> None:
    odd = b'"note":' + b"9" * 5_000 + b',"rate":1e999,"cents":-7}'
    copy = replace(standing(9), value=b'{"id":"ev-1",' + odd)
    assert reversal_value(copy, NAMES, negated=True) == copy.value.replace(b"-7", b"7")


def test_an_amount_inside_objects_is_negated_where_it_stands() -> None:
    names = EventFields(match_key="data.id", amount_minor='data."money.of".cents')
    value = b'{"data":{"id":"ev-1","money.of":{"cents":-7,"rate":1e999},"n":' + b"9" * 5_000 + b'},"type":"x"}'
    assert reversal_value(replace(standing(9), value=value), names, negated=True) == value.replace(b"-7", b"7")


UNASKED = (
    b'\xef\xbb\xbf{"id":"ev-1","data":{"rate":1.10,"none":null},"id":"ev-2",'
    b'"exponent":1e99999999999999999999,"digits":%b}' % (b"9" * 5_000)
)


def test_what_is_copied_of_an_event_is_read_digit_by_digit_and_nothing_else_of_it_is_read() -> None:
    asked = ["id", "data.rate", "data.none", "absent", "data.absent", "id.absent"]
    assert document_at(UNASKED, asked) == {"id": "ev-2", "data": {"rate": Decimal("1.10"), "none": None}}
    assert str(document_at(UNASKED, ["data.rate"])["data"]["rate"]) == "1.10"


@pytest.mark.parametrize("path", ["digits", "exponent"])
def test_a_number_to_copy_that_nobody_can_read_is_a_value_error_whatever_it_is(path: str) -> None:
    with pytest.raises(ValueError, match=r"digits|InvalidOperation"):
        document_at(UNASKED, ["id", path])


def test_lists_inside_each_other_to_no_end_are_a_value_error_too() -> None:
    with pytest.raises(ValueError, match="RecursionError"):
        document_at(b'{"id":' + b"[" * 100_000 + b"]" * 100_000 + b"}", ["id"])


def test_a_key_in_quotes_is_republished_under_its_own_name() -> None:
    said = json.loads(event_value(ITEM, EventFields(match_key='"event.id"', amount_minor="amount-minor")))
    assert (said["event.id"], said["amount-minor"]) == (ITEM.match_key, ITEM.amount_minor)


def test_only_a_reversal_names_the_copy_in_its_headers() -> None:
    names = [name for name, _ in event_headers(ITEM, session="s")]
    assert names == ["tallystick-action-id", "session", "tallystick-reverses"]
    assert dict(event_headers(ITEM, session="s"))["tallystick-reverses"] == b"topic:payouts:0:9"
    again = replace(ITEM, kind=RepairKind.REPUBLISH, reverses="")
    assert [name for name, _ in event_headers(again, session="s")] == ["tallystick-action-id", "session"]


@pytest.mark.parametrize(
    ("others", "reason"),
    [
        ([standing(4)], "not provable: the copy is not on the retained log any more"),
        ([standing(9)], "not provable: no other copy of the event is on the retained log any more"),
        ([standing(4), standing(9), taking_back(12, 9)], "it was taken back already: payouts[0] at 12"),
        ([standing(4), standing(5), taking_back(9, 5)], "the copy takes another one back itself"),
        (
            [standing(4), standing(9), taking_back(12, 4)],
            "not provable: no other copy of the event is on the retained log any more",
        ),
    ],
)
def test_that_the_copy_is_one_too_many_is_proven_again(others: list[CurrentEvent], reason: str) -> None:
    assert why_not_reversible(ITEM, others, NAMES) == reason


def test_a_copy_beside_another_one_is_taken_back_also_where_an_earlier_third_was() -> None:
    assert why_not_reversible(ITEM, [standing(4), standing(9)], NAMES) is None
    assert why_not_reversible(ITEM, [standing(4), standing(5), standing(9), taking_back(12, 5)], NAMES) is None


@pytest.mark.parametrize(
    "change", [{"amount_minor": 251}, {"currency": "USD"}, {"leg": "fee"}, {"transaction_key": "pay-2"}]
)
def test_a_copy_that_says_something_else_than_the_run_read_stays(change: dict[str, Any]) -> None:
    other = replace(ITEM, **change)
    assert why_not_reversible(other, [standing(4), standing(9)], NAMES) == "the copy does not say what the run read"


def saying(**fields: Any) -> bytes:
    return json.dumps(json.loads(VALUE) | fields).encode()


POST = replace(ITEM, kind=RepairKind.POST, reverses="", posts="topic:payouts:0:9")
DIFFER = "events of its key differ in money, transaction or leg: one may amend or cancel another"


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (VALUE, None),
        (saying(cents=251), DIFFER),
        (saying(cents=-250), DIFFER),
        (saying(currency="USD"), DIFFER),
        (b"{}", DIFFER),
    ],
)
def test_an_event_that_another_one_of_its_key_may_amend_or_cancel_is_neither_posted_nor_taken_back(
    value: bytes, reason: str | None
) -> None:
    others = [replace(standing(4), value=value), standing(9)]
    assert why_not_postable(POST, others, NAMES) == reason
    assert why_not_reversible(ITEM, others, NAMES) == reason
    gone = [*others, taking_back(12, 4)]
    assert why_not_postable(POST, gone, NAMES) is None


@pytest.mark.parametrize(
    ("others", "reason"),
    [
        ([standing(4)], "not provable: the event is not on the retained log any more"),
        ([standing(9), taking_back(12, 9)], "the event was taken back"),
    ],
)
def test_an_event_that_does_not_stand_any_more_is_not_posted(others: list[CurrentEvent], reason: str) -> None:
    assert why_not_postable(POST, others, NAMES) == reason


def test_an_event_is_posted_once_also_where_another_copy_of_it_stands() -> None:
    assert why_not_postable(POST, [standing(4), standing(9)], NAMES) is None
    other = replace(POST, amount_minor=251)
    assert why_not_postable(other, [standing(9)], NAMES) == "the event does not say what the run read"


WRITTEN = replace(standing(4), action_id=str(ITEM.action_id), message_key=b"pay-1")
REPUBLISH = replace(ITEM, kind=RepairKind.REPUBLISH, reverses="")


def test_an_event_with_our_header_is_ours_only_if_it_says_what_the_plan_says() -> None:
    assert is_as_planned(WRITTEN, REPUBLISH, NAMES, negated=False)
    forged = [
        replace(WRITTEN, value=saying(cents=1)),
        replace(WRITTEN, value=saying(currency="USD")),
        replace(WRITTEN, value=saying(leg="payment")),
        replace(WRITTEN, value=saying(payment_id="pay-2")),
        replace(WRITTEN, value=b"\xff"),
        replace(WRITTEN, message_key=b"elsewhere"),
        replace(WRITTEN, reverses="topic:payouts:0:9"),
    ]
    assert [is_as_planned(one, REPUBLISH, NAMES, negated=False) for one in forged] == [False] * len(forged)


@pytest.mark.parametrize("negated", [True, False])
def test_a_reversal_with_our_header_is_ours_only_with_the_sign_that_the_contract_says(negated: bool) -> None:
    copy = replace(WRITTEN, reverses=ITEM.reverses)
    signs = [is_as_planned(replace(copy, value=saying(cents=n)), ITEM, NAMES, negated=negated) for n in (250, -250, 1)]
    assert signs == [not negated, negated, False]
    other = replace(copy, reverses="topic:payouts:0:8", value=saying(cents=-250 if negated else 250))
    assert not is_as_planned(other, ITEM, NAMES, negated=negated)


def committed(value: bytes | None) -> CommittedRecord:
    return CommittedRecord(topic="payouts", partition=0, kafka_offset=0, key=b"pay-1", value=value or b"", headers={})


@pytest.mark.parametrize("value", [value for value, _ in UNREADABLE.values()], ids=UNREADABLE)
def test_what_nobody_can_read_under_an_items_message_key_may_hide_its_event(value: bytes | None) -> None:
    """However deep it is nested, and whatever its numbers are: it holds up the repairs of its key, and no other one."""
    hidden = find_events([committed(value)], [ITEM], FIELDS).why_hidden(ITEM)
    assert hidden == "not provable: a record of its message key in payouts is unreadable"
    by_match_key = replace(ITEM, transaction_key="pay-2", match_key="pay-1")
    assert find_events([committed(value)], [by_match_key], FIELDS).why_hidden(by_match_key) == hidden
    other = replace(ITEM, transaction_key="pay-2")
    assert find_events([committed(value)], [other], FIELDS).why_hidden(other) is None


@pytest.mark.parametrize("value", READABLE.values(), ids=READABLE)
def test_what_is_readable_hides_nothing(value: bytes) -> None:
    assert find_events([committed(value)], [ITEM], FIELDS).why_hidden(ITEM) is None


def record(offset: int, *, topic: str = "payouts", partition: int = 1, **about: Any) -> CommittedRecord:
    about = {"key": b"pay-1", "value": VALUE, "headers": {}} | about
    return CommittedRecord(topic=topic, partition=partition, kafka_offset=offset, **about)


def test_the_events_of_a_plans_keys_are_found_as_the_log_has_them_whoever_wrote_them() -> None:
    headers = {"tallystick-action-id": b"an-id", "tallystick-reverses": b"topic:payouts:1:3"}
    odd = VALUE.replace(b"ev-1", b"ev-2")
    found = find_events(
        [record(3), record(4, headers=headers), record(5, value=odd), record(6, topic="fees"), record(7, value=b"7")],
        [ITEM],
        NAMES,
    )
    first, second = found.of(ITEM)
    assert first == CurrentEvent(
        topic="payouts", partition=1, kafka_offset=3, action_id="", message_key=b"pay-1", value=VALUE
    )
    assert second == replace(first, kafka_offset=4, action_id="an-id", reverses="topic:payouts:1:3")
    assert found.of(replace(ITEM, match_key="ev-3")) == ()
    assert event_at("topic:payouts:1:4", found.of(ITEM)) == second
    assert second.place == {"topic": "payouts", "partition": 1, "offset": 4}
    assert found.by_key.keys() == {("payouts", "ev-1")}


def test_what_lies_in_an_unread_batch_is_said_of_the_first_and_the_rest_is_read() -> None:
    unread = [record(2, problem="one is not decoded"), record(3, problem="another is not decoded")]
    found = find_events([*unread, record(4)], [ITEM], NAMES)
    told = "not provable: any event may stand in payouts[1] at 2, where one is not decoded"
    assert found.why_hidden(ITEM) == told
    assert len(found.of(ITEM)) == 1
    assert find_events([record(4)], [ITEM], NAMES).why_hidden(ITEM) is None
    assert find_events([record(2, topic="fees", problem="one is not decoded")], [ITEM], NAMES).why_hidden(ITEM) is None


CANCELLED = "not provable: a record of its message key in payouts is unreadable"
UNTOLD = "not provable: a record in payouts is unreadable, and its message key does not tell of what"


@pytest.mark.parametrize("kind", [RepairKind.POST, RepairKind.REVERSE])
@pytest.mark.parametrize("key", [b"", b"customer-7", b'"pay-1"'])
def test_an_unreadable_record_under_the_key_of_an_event_hides_what_is_done_about_that_event(
    kind: RepairKind, key: bytes
) -> None:
    item = replace(ITEM, kind=kind)
    tombstone = record(5, key=key, value=b"")
    for stands, told in ((record(3, key=key), CANCELLED), (record(3, key=b"customer-8"), None)):
        expected = CANCELLED if b"pay-1" in key else told
        assert find_events([stands, tombstone], [item], NAMES).why_hidden(item) == expected
        since = find_events([tombstone], [item], NAMES)
        assert since.why_hidden(item, find_events([stands], [item], NAMES).of(item)) == expected
    named = record(5, key=key, value=VALUE.replace(b"ev-1", b"ev-2").replace(b"250", b"true"))
    assert find_events([record(3, key=key), named], [item], NAMES).why_hidden(item) is None


@pytest.mark.parametrize("kind", [RepairKind.POST, RepairKind.REVERSE])
@pytest.mark.parametrize(("key", "told"), [(b"customer-8", None), (b"", CANCELLED)])
def test_an_unreadable_record_without_a_key_is_not_of_an_event_with_one_that_has_no_transaction_key(
    kind: RepairKind, key: bytes, told: str | None
) -> None:
    """Found by review: any one hindered it, as a record of its message key."""
    item = replace(ITEM, kind=kind, transaction_key="")
    records = [record(3, key=key), record(5, key=b"", value=b"{")]
    assert find_events(records, [item], NAMES).why_hidden(item) == told


def test_an_unreadable_record_without_a_key_may_be_a_missing_event_that_has_no_transaction_key() -> None:
    missing = replace(ITEM, kind=RepairKind.REPUBLISH, reverses="", transaction_key="")
    other = record(3, key=b"ev-2", value=VALUE.replace(b"ev-1", b"ev-2"))
    assert find_events([other, record(5, key=b"", value=b"{")], [missing], NAMES).why_hidden(missing) == UNTOLD
    named = record(5, key=b"", value=VALUE.replace(b"ev-1", b"ev-2").replace(b"250", b"true"))
    assert find_events([other, named], [missing], NAMES).why_hidden(missing) is None


@pytest.mark.parametrize(
    ("other_key", "unreadable_key", "told"),
    [
        (b"pay-2", b"pay-3", None),
        (b'{"id":"pay-2"}', b'{"id":"pay-3"}', None),
        (b"ev-2", b"ev-3", None),
        (b"pay-2", b'"pay-1"', CANCELLED),
        (b"pay-2", b"", UNTOLD),
        (b"customer-7", b"pay-3", UNTOLD),
        (b"customer-7", b"customer-7", UNTOLD),
        (b"", b"pay-3", UNTOLD),
        (None, b"pay-3", UNTOLD),
        (None, b"pay-9", None),
    ],
)
def test_of_a_missing_event_an_unreadable_record_tells_only_where_keys_say_what_they_are_of(
    other_key: bytes | None, unreadable_key: bytes, told: str | None
) -> None:
    missing = replace(ITEM, kind=RepairKind.REPUBLISH, reverses="")
    beside = replace(missing, transaction_key="pay-9", match_key="ev-9")
    other = VALUE.replace(b"ev-1", b"ev-2").replace(b"pay-1", b"pay-2")
    ours = record(2, key=b"pay-2", value=other, headers={"tallystick-action-id": b"an-id"})
    others = [] if other_key is None else [record(3, key=other_key, value=other)]
    for broken in (b"", b"{", VALUE.replace(b'"id"', b'"ID"')):
        records = [ours, *others, record(5, key=unreadable_key, value=broken)]
        assert find_events(records, [missing, beside], NAMES).why_hidden(missing) == told
    assert find_events([ours, *others], [missing, beside], NAMES).why_hidden(missing) is None


@pytest.mark.parametrize("kind", [RepairKind.REPUBLISH, RepairKind.POST, RepairKind.REVERSE])
@pytest.mark.parametrize(
    ("asked", "key", "told"),
    [
        ({"transaction_key": "pay-1"}, b"pay-17", None),
        ({"transaction_key": "pay-1"}, b"eu/pay-1", CANCELLED),
        ({"match_key": "7"}, b"customer-17", None),
        ({"match_key": "7"}, b"customer-7", CANCELLED),
    ],
)
def test_a_record_of_a_longer_key_is_not_about_a_shorter_one(
    kind: RepairKind, asked: dict[str, Any], key: bytes, told: str | None
) -> None:
    item = replace(ITEM, kind=kind, **asked)
    other = record(3, key=b"pay-2", value=VALUE.replace(b"ev-1", b"ev-2").replace(b"pay-1", b"pay-2"))
    assert find_events([other, record(5, key=key, value=b"")], [item], NAMES).why_hidden(item) == told


@pytest.mark.parametrize(("other_key", "told"), [(b"customer-17", UNTOLD), (b"customer-7", None)])
def test_a_shorter_key_in_a_longer_one_does_not_show_that_keys_tell(other_key: bytes, told: str | None) -> None:
    """The unreadable one may be the missing event 9 of customer 22."""
    missing = replace(ITEM, kind=RepairKind.REPUBLISH, reverses="", transaction_key="pay-9", match_key="9")
    other = record(3, key=other_key, value=VALUE.replace(b'"ev-1"', b'"7"'))
    unreadable = record(5, key=b"customer-22", value=b"{")
    assert find_events([other, unreadable], [missing], NAMES).why_hidden(missing) == told


@pytest.mark.parametrize("kind", [RepairKind.POST, RepairKind.REVERSE])
@pytest.mark.parametrize("key", [b"", b"all"])
@pytest.mark.parametrize(
    ("unreadable_at", "told"),
    [
        ([(1, 5)], None),
        ([(1, 7)], CANCELLED),
        ([(1, 7), (1, 5)], CANCELLED),
        ([(0, 5)], CANCELLED),
        ([(1, 5), (2, 0)], CANCELLED),
    ],
)
def test_an_unreadable_record_before_an_event_on_its_partition_can_neither_amend_nor_cancel_it(
    kind: RepairKind, key: bytes, unreadable_at: list[tuple[int, int]], told: str | None
) -> None:
    """Found by review: one record without a key held back whatever came after it without one, for ever."""
    item = replace(ITEM, kind=kind)
    broken = [record(offset, partition=part, key=key, value=b"{") for part, offset in unreadable_at]
    assert find_events([record(6, key=key), *broken], [item], NAMES).why_hidden(item) == told
    assert (
        find_events(broken, [item], NAMES).why_hidden(item, [replace(standing(6), partition=1, message_key=key)])
        == told
    )
    older = record(4, key=key)
    assert find_events([older, record(6, key=key), *broken], [item], NAMES).why_hidden(item) == CANCELLED


def test_a_key_that_json_writes_with_escapes_is_known_in_it() -> None:
    missing = replace(ITEM, kind=RepairKind.REPUBLISH, reverses="", transaction_key='pay-\u00e9"1')
    other = record(3, key=b'"pay-1"')
    for written in (b'"pay-\\u00e9\\"1"', '"pay-\u00e9\\"1"'.encode()):
        found = find_events([other, record(5, key=written, value=b"")], [missing], NAMES)
        assert found.why_hidden(missing) == CANCELLED


def test_an_event_that_is_published_again_says_what_the_row_says_under_the_contracts_names() -> None:
    item = replace(ITEM, kind=RepairKind.REPUBLISH, reverses="", occurred_at="2026-03-01T11:00:00+00:00")
    assert json.loads(event_value(item, NAMES)) == {
        "id": "ev-1",
        "payment_id": "pay-1",
        "leg": "payout",
        "cents": 250,
        "currency": "EUR",
        "occurred_at": "2026-03-01T11:00:00+00:00",
    }
    assert dict(event_headers(item, session="s"))["tallystick-action-id"] == str(item.action_id).encode()


def test_a_reversal_of_a_copy_behind_a_byte_order_mark_is_the_copy_with_the_other_sign() -> None:
    copy = replace(standing(9), value=b"\xef\xbb\xbf" + VALUE)
    assert json.loads(reversal_value(copy, NAMES, negated=True)) == json.loads(VALUE) | {"cents": -250}
