"""Classes that need look-ups, each against all that it must be told apart from."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from tallystick.anomalies.registry import RULES
from tallystick.contract.contract import Contract
from tallystick.judging.judge import judge
from tallystick.kafka_cluster.state import ClusterState, ExecutedAction
from tallystick.kafka_log.record import LogRecord
from tallystick.matching.evidence import Evidence, LegsCase
from tallystick.matching.match_case import RecordLocation
from tallystick.model.direction import Direction
from tallystick.model.finding_names import BreakClass, Doubt, Notice
from tallystick.model.findings import Break, DoubtFound, NoticeFound
from tallystick.model.open_item import ItemState, OpenItem
from tests.unit.builders import (
    HOUR,
    IN_TOPIC,
    L2T,
    LEDGER,
    MINUTE,
    NOON,
    T2L,
    TOPIC,
    contract_of,
    cut_of,
    deadlines_of,
    event,
    evidence_of,
    item_of,
    ledger_slice_of,
    record_of,
    row,
    seen,
    slice_of,
)

FEES, STRAY = "billing.fees", "billing.refunds"
TWO_LEGS = {"payout": TOPIC, "fee": FEES}
ABORTED, OPEN, PENDING = (
    seen(IN_TOPIC, place, 25) for place in (RecordLocation.ABORTED, RecordLocation.OPEN, RecordLocation.PENDING)
)
STRAYS = seen(IN_TOPIC, RecordLocation.STRAY, 4, topic=STRAY)
LOST = seen(IN_TOPIC, RecordLocation.LOST, 12, stands_there="another event (committed)", leader_epoch=5)
EXPIRED = seen(IN_TOPIC, RecordLocation.EXPIRED, 3, stands_there="retention has taken that offset")

Findings = list[Break | DoubtFound | NoticeFound]


def findings(evidence: Evidence) -> Findings:
    return [found for rule in RULES for found in rule.judge(evidence)]


def classes(evidence: Evidence) -> set[BreakClass | Doubt]:
    """Breaks and doubts, without notices."""
    found = findings(evidence)
    return {one.break_class for one in found if isinstance(one, Break)} | {
        one.doubt for one in found if isinstance(one, DoubtFound)
    }


def the_break(evidence: Evidence) -> Break:
    (found,) = [one for one in findings(evidence) if isinstance(one, Break)]
    return found


def items_of(evidence: Evidence) -> dict[str, OpenItem]:
    """What the run says of each item."""
    result = judge(evidence, matched_rows=0, matched_money={}, content_digests={}, look_ups={}, carried=())
    return {item.item_id: item for item in result.items}


# A1 and A2: a row that nobody who keeps to the LSO can have posted.


@pytest.mark.parametrize(
    ("evidence", "instead"),
    [
        pytest.param(
            evidence_of(row(1), event(13), direction=T2L, sightings=[ABORTED]), set(), id="it was written again"
        ),
        pytest.param(
            evidence_of(row(1), direction=T2L, sightings=[ABORTED, PENDING]), set(), id="it was, beyond the cut"
        ),
        pytest.param(
            evidence_of(row(1), direction=T2L, sightings=[ABORTED], deadlines=deadlines_of(now_utc=NOON + MINUTE / 2)),
            set(),
            id="its producer may still try again",
        ),
        pytest.param(
            evidence_of(row(1), direction=L2T, sightings=[ABORTED]),
            {BreakClass.MISSING_IN_TOPIC_ABORTED_ONLY},
            id="the ledger is written first",
        ),
        pytest.param(
            evidence_of(row(1), direction=T2L, sightings=[ABORTED, STRAYS]),
            {BreakClass.MISROUTED_IN_TOPIC},
            id="it was committed on another topic",
        ),
        pytest.param(
            evidence_of(
                row(1), direction=T2L, sightings=[ABORTED], deadlines=deadlines_of(topic_settled_until_utc=NOON)
            ),
            {Doubt.PARTNER_NOT_SETTLED},
            id="the topic is held",
        ),
    ],
)
def test_a_row_is_not_called_an_aborted_read_when(evidence: Evidence, instead: set[object]) -> None:
    assert classes(evidence) == instead


@pytest.mark.parametrize(
    ("evidence", "instead"),
    [
        pytest.param(
            evidence_of(row(1), direction=T2L, sightings=[OPEN, PENDING]), set(), id="a committed one lies beyond"
        ),
        pytest.param(evidence_of(row(1), direction=L2T, sightings=[OPEN]), set(), id="the ledger is written first"),
        pytest.param(
            evidence_of(row(1), event(11), direction=T2L, sightings=[OPEN]), set(), id="it has an event of its own"
        ),
        pytest.param(
            evidence_of(event(11), row(1), row(2), direction=T2L, sightings=[OPEN]), set(), id="it is the second row"
        ),
        pytest.param(
            evidence_of(row(1), direction=T2L, sightings=[OPEN, seen(IN_TOPIC, RecordLocation.BEFORE_BASELINE, 3)]),
            set(),
            id="its event may lie before the baseline",
        ),
        pytest.param(
            evidence_of(row(2), direction=T2L, sightings=[OPEN, seen(LEDGER, RecordLocation.EARLIER_SLICE, 1)]),
            set(),
            id="an earlier row had the first event",
        ),
        pytest.param(
            evidence_of(row(1), direction=T2L, sightings=[ABORTED]),
            {BreakClass.ABORTED_READ_IN_LEDGER},
            id="the transaction was aborted",
        ),
    ],
)
def test_a_row_is_not_called_an_open_read_when(evidence: Evidence, instead: set[object]) -> None:
    assert classes(evidence) == instead


def test_an_open_read_needs_neither_deadline_nor_settled_topics() -> None:
    early = deadlines_of(now_utc=NOON + MINUTE / 2, topic_settled_until_utc=None)
    evidence = evidence_of(row(1), direction=T2L, sightings=[OPEN, ABORTED], deadlines=early)
    assert classes(evidence) == {BreakClass.OPEN_READ_IN_LEDGER}
    assert items_of(evidence)["ledger:1"].pairable


def test_of_two_rows_for_one_open_event_the_first_is_the_open_read() -> None:
    evidence = evidence_of(row(1), row(2), direction=T2L, sightings=[OPEN])
    assert the_break(evidence).evidence["at"] == "ledger:1"
    assert items_of(evidence)["ledger:2"].state is ItemState.OPEN


# M5: the event is there, and not where it belongs.


@pytest.mark.parametrize("direction", [L2T, T2L], ids=str)
def test_a_row_whose_event_is_on_a_stray_topic_is_misrouted_and_says_where(direction: Direction) -> None:
    found = the_break(evidence_of(row(1), direction=direction, sightings=[STRAYS]))
    assert (found.break_class, found.evidence["found_at"]) == (
        BreakClass.MISROUTED_IN_TOPIC,
        ["topic:billing.refunds:0:4"],
    )
    assert found.evidence["expected_topic"] == TOPIC


@pytest.mark.parametrize(
    ("evidence", "instead"),
    [
        pytest.param(evidence_of(row(1), event(11), sightings=[STRAYS]), set(), id="the right one is there too"),
        pytest.param(evidence_of(row(1), sightings=[STRAYS, PENDING]), set(), id="the right one lies beyond the cut"),
        pytest.param(
            evidence_of(row(1), sightings=[STRAYS], deadlines=deadlines_of(now_utc=NOON + MINUTE / 2)),
            set(),
            id="within its grace",
        ),
        pytest.param(evidence_of(row(1)), {BreakClass.MISSING_IN_TOPIC_NEVER_PRODUCED}, id="it is nowhere"),
    ],
)
def test_a_row_is_not_called_misrouted_when(evidence: Evidence, instead: set[object]) -> None:
    assert classes(evidence) == instead


def of_two_legs(*copies: Any, direction: Direction, **about: Any) -> Evidence:
    return evidence_of(*copies, direction=direction, contract=contract_of(direction, legs=TWO_LEGS), **about)


@pytest.mark.parametrize("direction", [L2T, T2L], ids=str)
def test_an_event_under_the_wrong_leg_is_misrouted_though_its_row_pairs_with_it(direction: Direction) -> None:
    evidence = of_two_legs(event(11, leg="fee"), row(1), direction=direction)
    found = the_break(evidence)
    assert classes(evidence) == {BreakClass.MISROUTED_IN_TOPIC}
    assert (found.evidence["expected_topic"], found.evidence["partner"]) == (FEES, "ledger:1")
    item = items_of(evidence)["topic:billing.payouts:0:11"]
    assert (item.state, item.pairable, item.cleared_by) == (ItemState.BROKEN, False, "ledger:1")


@pytest.mark.parametrize(
    ("evidence", "instead"),
    [
        pytest.param(of_two_legs(event(11, leg="payout"), row(1), direction=L2T), set(), id="it is the right leg"),
        pytest.param(
            of_two_legs(event(11, leg="tip"), row(1), direction=L2T), set(), id="it names no leg of the contract"
        ),
        pytest.param(
            of_two_legs(event(11, leg="fee", topic=FEES), row(1), direction=L2T), set(), id="its topic is that leg's"
        ),
        pytest.param(
            of_two_legs(event(11, leg="fee"), direction=L2T), {BreakClass.PHANTOM_IN_TOPIC}, id="it has no row at all"
        ),
        pytest.param(
            of_two_legs(event(11, leg="fee", amount_minor=1), row(1), direction=L2T),
            {BreakClass.AMOUNT_MISMATCH},
            id="its amount differs",
        ),
        pytest.param(
            of_two_legs(event(11), event(12, leg="fee"), row(1), direction=T2L),
            {BreakClass.DUPLICATE_IN_TOPIC_CAUSE_UNKNOWN},
            id="it is a second copy",
        ),
        pytest.param(
            of_two_legs(event(11, leg="fee"), direction=T2L, deadlines=deadlines_of(now_utc=NOON + MINUTE / 2)),
            set(),
            id="its row may still come",
        ),
    ],
)
def test_an_event_is_not_called_misrouted_when(evidence: Evidence, instead: set[object]) -> None:
    assert classes(evidence) == instead


def test_that_no_consumer_posted_it_is_explained_by_the_wrong_topic() -> None:
    evidence = of_two_legs(event(11, leg="fee"), direction=T2L)
    assert classes(evidence) == {BreakClass.MISROUTED_IN_TOPIC}
    assert items_of(evidence)["topic:billing.payouts:0:11"].pairable


def test_a_row_that_comes_late_for_a_misrouted_event_clears_it_and_breaks_nothing_twice() -> None:
    broken = item_of(event(11, leg="fee"), ItemState.BROKEN, reason="misrouted_in_topic", break_id=UUID(int=1))
    evidence = of_two_legs(row(1), direction=T2L, carried=[broken])
    assert classes(evidence) == set()
    assert items_of(evidence)["topic:billing.payouts:0:11"].state is ItemState.CLEARED


def test_a_misrouted_event_whose_row_came_a_window_later_is_told_then() -> None:
    waiting = item_of(event(11, leg="fee"))
    evidence = of_two_legs(row(1), direction=T2L, carried=[waiting])
    assert classes(evidence) == {BreakClass.MISROUTED_IN_TOPIC}


def strayed_leg(**stands: RecordLocation) -> Evidence:
    """A payment whose payout leg is committed, and where its fee leg stands."""
    sightings = {"fee": tuple(seen(IN_TOPIC, place, 4, topic=STRAY) for place in stands.values())}
    case = LegsCase(
        transaction_key="pay-1", seen={"payout": (1_000, "EUR", "topic:billing.payouts:0:11")}, sightings=sightings
    )
    return evidence_of(direction=T2L, contract=contract_of(T2L, legs=TWO_LEGS), incomplete=(case,))


def test_a_leg_on_a_stray_topic_is_misrouted_and_its_payment_not_torn() -> None:
    evidence = strayed_leg(there=RecordLocation.STRAY)
    found = the_break(evidence)
    assert (found.break_class, found.leg) == (BreakClass.MISROUTED_IN_TOPIC, "fee")
    assert "topic:billing.refunds:0:4" in found.story
    item = items_of(evidence)["legs:pay-1"]
    assert (item.state, item.reason, item.break_id) == (ItemState.BROKEN, "misrouted_in_topic", found.break_id)


def test_a_leg_that_was_aborted_on_a_stray_topic_is_torn() -> None:
    assert classes(strayed_leg(there=RecordLocation.ABORTED)) == {BreakClass.TORN_TRANSACTION}


# M7: acknowledged, and gone.


def test_a_lost_write_says_what_was_acknowledged_and_what_stands_there_now() -> None:
    found = the_break(evidence_of(row(1), sightings=[LOST]))
    assert found.break_class is BreakClass.LOST_ACKNOWLEDGED_WRITE
    assert found.evidence["receipt"] == {
        "at": "topic:billing.payouts:0:12",
        "place": "lost",
        "stands_there": "another event (committed)",
        "leader_epoch": 5,
    }


@pytest.mark.parametrize(
    ("evidence", "instead"),
    [
        pytest.param(evidence_of(row(1)), {BreakClass.MISSING_IN_TOPIC_NEVER_PRODUCED}, id="it has no receipt"),
        pytest.param(
            evidence_of(row(1), sightings=[EXPIRED]), {Doubt.PARTNER_NOT_SETTLED}, id="nobody can say what was there"
        ),
        pytest.param(evidence_of(row(1), event(14), sightings=[LOST]), set(), id="it was sent again"),
        pytest.param(evidence_of(row(1), sightings=[LOST, PENDING]), set(), id="it was, beyond the cut"),
        pytest.param(evidence_of(row(1), sightings=[LOST, OPEN]), set(), id="it was, and is open"),
        pytest.param(
            evidence_of(row(1), sightings=[LOST, STRAYS]),
            {BreakClass.MISROUTED_IN_TOPIC},
            id="it was acknowledged on another topic",
        ),
        pytest.param(
            evidence_of(row(1), sightings=[EXPIRED, STRAYS]),
            {BreakClass.MISROUTED_IN_TOPIC},
            id="it was acknowledged at an old offset of another topic",
        ),
        pytest.param(
            evidence_of(row(1), sightings=[LOST], deadlines=deadlines_of(now_utc=NOON + MINUTE / 2)),
            set(),
            id="it may be sent again within its grace",
        ),
        pytest.param(
            evidence_of(row(1), sightings=[LOST], deadlines=deadlines_of(topic_settled_until_utc=NOON)),
            {Doubt.PARTNER_NOT_SETTLED},
            id="the topic is held",
        ),
    ],
)
def test_a_row_is_not_called_a_lost_write_when(evidence: Evidence, instead: set[object]) -> None:
    assert classes(evidence) == instead


def test_that_other_offsets_are_gone_too_does_not_hide_what_a_receipt_proves() -> None:
    evidence = evidence_of(row(1), sightings=[LOST], deadlines=deadlines_of(topic_lost_offsets=True))
    assert classes(evidence) == {BreakClass.LOST_ACKNOWLEDGED_WRITE}


def test_an_aborted_attempt_elsewhere_does_not_excuse_the_lost_one() -> None:
    assert classes(evidence_of(row(1), sightings=[LOST, ABORTED])) == {BreakClass.LOST_ACKNOWLEDGED_WRITE}


def test_a_row_whose_receipt_proves_nothing_still_pairs_with_an_event_that_comes() -> None:
    item = items_of(evidence_of(row(1), sightings=[EXPIRED]))["ledger:1"]
    assert (item.state, item.pairable) == (ItemState.UNDECIDABLE, True)


# P3: written by somebody else.


def with_origins(direction: Direction) -> Contract:
    return contract_of(direction, event={"origin_header": "service", "known_origins": ["relay", "backfill"]})


def written_by(headers: Mapping[str, str] | None, *copies: Any, direction: Direction = L2T) -> Evidence:
    """An event, and who wrote it; None: it has left the log."""
    alone = event(11)
    identities: dict[str, LogRecord] = {}
    if headers is not None:
        identities[alone.item_id] = replace(record_of(alone), headers=headers)
    return evidence_of(alone, *copies, direction=direction, contract=with_origins(direction), identities=identities)


@pytest.mark.parametrize(("direction"), [L2T, T2L], ids=str)
@pytest.mark.parametrize("headers", [{"service": "load-test"}, {}, {"session": "relay"}])
def test_an_unpaired_event_of_an_unknown_writer_is_foreign(direction: Direction, headers: Mapping[str, str]) -> None:
    evidence = written_by(headers, direction=direction)
    assert classes(evidence) == {BreakClass.FOREIGN_IN_TOPIC}
    assert the_break(evidence).evidence["origin"] == headers.get("service")


@pytest.mark.parametrize("direction", [L2T, T2L], ids=str)
@pytest.mark.parametrize("headers", [{"service": "relay"}, {"service": "backfill"}, None])
def test_an_unpaired_event_of_a_known_writer_or_of_one_that_nobody_can_tell_is_not(
    direction: Direction, headers: Mapping[str, str] | None
) -> None:
    known = BreakClass.PHANTOM_IN_TOPIC if direction is L2T else BreakClass.MISSING_IN_LEDGER
    assert classes(written_by(headers, direction=direction)) == {known}


def test_a_paired_event_is_not_asked_where_it_comes_from() -> None:
    assert classes(written_by({"service": "load-test"}, row(1))) == set()


def test_without_known_origins_nobody_is_foreign() -> None:
    evidence = replace(written_by({"service": "load-test"}), contract=contract_of())
    assert classes(evidence) == {BreakClass.PHANTOM_IN_TOPIC}


# C2: our own repair.

BROKEN_ROW = item_of(row(1), ItemState.BROKEN, reason="missing_in_topic_never_produced", break_id=UUID(int=1))


def repaired(*copies: Any, executed_utc: datetime = NOON - HOUR, **about: Any) -> Evidence:
    """A broken row of an earlier cut whose event we published again, and what this cut reads."""
    action = ExecutedAction(action_id=UUID(int=2), executed_utc=executed_utc, item=BROKEN_ROW)
    return evidence_of(*copies, carried=[BROKEN_ROW], surroundings=ClusterState(actions=(action,)), **about)


def acted_on(copy: Any, reason: str, *copies: Any, **about: Any) -> Evidence:
    """A broken event of an earlier cut that we took back or posted, and what this cut reads."""
    item = item_of(copy, ItemState.BROKEN, reason=reason, pairable=False, break_id=UUID(int=1))
    action = ExecutedAction(action_id=UUID(int=2), executed_utc=NOON - HOUR, item=item)
    carried = replace(copy, carried=item)
    return evidence_of(carried, *copies, surroundings=ClusterState(actions=(action,)), **about)


ZOMBIE, UNPOSTED, SECOND_ROW = "duplicate_in_topic_zombie", "missing_in_ledger", "duplicate_in_ledger"


@pytest.mark.parametrize(
    ("reason", "direction", "about", "story"),
    [
        (ZOMBIE, Direction.LEDGER_TO_TOPIC, {}, "no reversal of it was found, and it is still one too many"),
        (UNPOSTED, Direction.TOPIC_TO_LEDGER, {}, "the event is still without its row"),
        (SECOND_ROW, Direction.TOPIC_TO_LEDGER, {}, "no reversal of it was found, and it is still one too many"),
    ],
)
def test_a_reversal_or_a_post_without_effect_is_told(reason: str, direction: Direction, about: Any, story: str) -> None:
    copy = row(4) if reason == SECOND_ROW else event(4)
    found = the_break(acted_on(copy, reason, direction=direction, **about))
    assert found.break_class is BreakClass.COMPENSATION_NOT_EFFECTIVE
    assert story in found.story


ROW_TOOK_BACK = replace(row(11, amount_minor=-1_000), reverses=row(4).item_id)
TOOK_BACK = replace(event(11, amount_minor=-1_000), reverses=event(4).item_id)


@pytest.mark.parametrize(
    "evidence",
    [
        acted_on(event(4), ZOMBIE, TOOK_BACK),
        acted_on(event(4), ZOMBIE, cut=cut_of(slice_of(10, 20, mark=21))),
        acted_on(
            event(4),
            UNPOSTED,
            direction=Direction.TOPIC_TO_LEDGER,
            cut=cut_of(ledger_slice=ledger_slice_of(100, 200, mark=201)),
        ),
        acted_on(row(4), SECOND_ROW, ROW_TOOK_BACK, direction=Direction.TOPIC_TO_LEDGER),
        acted_on(
            row(4),
            SECOND_ROW,
            direction=Direction.TOPIC_TO_LEDGER,
            cut=cut_of(ledger_slice=ledger_slice_of(100, 200, mark=201)),
        ),
    ],
    ids=[
        "its reversal came",
        "its reversal may lie behind an open transaction",
        "its row may lie behind the horizon",
        "its compensating row came",
        "its compensating row may lie behind the horizon",
    ],
)
def test_a_reversal_or_a_post_that_may_have_its_effect_is_not(evidence: Evidence) -> None:
    assert BreakClass.COMPENSATION_NOT_EFFECTIVE not in classes(evidence)


def test_a_repair_without_effect_is_told_and_its_item_answers_for_it_from_then_on() -> None:
    evidence = repaired()
    found = the_break(evidence)
    assert (found.break_class, found.match_key, found.amount_minor) == (
        BreakClass.COMPENSATION_NOT_EFFECTIVE,
        "ev-1",
        1_000,
    )
    assert (found.evidence["action_id"], found.evidence["repairs"]) == (str(UUID(int=2)), str(UUID(int=1)))
    item = items_of(evidence)["ledger:1"]
    assert (item.state, item.reason, item.break_id, item.pairable) == (
        ItemState.BROKEN,
        "compensation_not_effective",
        found.break_id,
        True,
    )


@pytest.mark.parametrize(
    ("evidence", "instead"),
    [
        pytest.param(repaired(executed_utc=NOON - timedelta(seconds=59)), set(), id="it was executed moments ago"),
        pytest.param(repaired(event(11)), set(), id="its event came in this cut"),
        pytest.param(
            repaired(event(11, amount_minor=2)), {BreakClass.AMOUNT_MISMATCH}, id="its event came with another amount"
        ),
        pytest.param(
            repaired(event(11, leg="fee"), contract=contract_of(legs=TWO_LEGS)),
            {BreakClass.MISROUTED_IN_TOPIC},
            id="its event came on another topic",
        ),
        pytest.param(
            repaired(cut=cut_of(slice_of(10, 20, mark=21))),
            {Doubt.HELD_BY_OPEN_TRANSACTION},
            id="its event may lie behind an open transaction",
        ),
        pytest.param(
            repaired(deadlines=deadlines_of(topic_lost_offsets=True)), set(), id="its event may have expired unread"
        ),
        pytest.param(evidence_of(carried=[BROKEN_ROW]), set(), id="nothing was executed"),
    ],
)
def test_a_repair_is_not_called_ineffective_when(evidence: Evidence, instead: set[object]) -> None:
    assert classes(evidence) == instead


# L2 and L3: late, or merely across an edge.


def notices(evidence: Evidence) -> dict[Notice, int]:
    return {one.notice: one.count for one in findings(evidence) if isinstance(one, NoticeFound)}


def test_late_partners_are_counted_and_how_late_they_may_be() -> None:
    carried = [item_of(row(n, f"ev-{n}"), ItemState.BROKEN, due_utc=NOON - n * HOUR) for n in (1, 2)]
    evidence = evidence_of(event(11, "ev-1"), event(12, "ev-2"), carried=carried)
    assert notices(evidence) == {Notice.LATE_PARTNER: 2}
    (found,) = [one for one in findings(evidence) if isinstance(one, NoticeFound)]
    assert found.details == {"late_seconds_max": 7_200}


def test_a_row_read_from_an_open_transaction_did_not_wait_for_its_event() -> None:
    early = item_of(row(1), ItemState.BROKEN, reason="open_read_in_ledger")
    assert notices(evidence_of(event(11), direction=T2L, carried=[early])) == {Notice.PAIRED_ACROSS_WINDOWS: 1}


@pytest.mark.parametrize(
    ("evidence", "count"),
    [
        (evidence_of(event(11), carried=[item_of(row(1), cut_n=1)]), 1),
        (evidence_of(carried=[item_of(event(11), cut_n=0), item_of(row(1), cut_n=1)]), 1),
        (evidence_of(carried=[item_of(event(11), cut_n=1), item_of(row(1), cut_n=1)]), None),
        (evidence_of(event(11), row(1)), None),
        (evidence_of(event(11, amount_minor=1), carried=[item_of(row(1), cut_n=1)]), None),
    ],
)
def test_pairs_across_windows_are_counted(evidence: Evidence, count: int | None) -> None:
    assert notices(evidence).get(Notice.PAIRED_ACROSS_WINDOWS) == count


def test_the_ledgers_own_sighting_of_the_row_disturbs_none_of_them() -> None:
    own = seen(LEDGER, RecordLocation.SLICE, 1)
    for there in (STRAYS, LOST, ABORTED):
        assert classes(evidence_of(row(1), sightings=[own, there])) == classes(evidence_of(row(1), sightings=[there]))
