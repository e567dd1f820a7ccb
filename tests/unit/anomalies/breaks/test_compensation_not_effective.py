"""C2: our own repair was done and the break is still there; not told while its effect may come."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from tallystick.kafka_cluster.state import ClusterState, ExecutedAction
from tallystick.matching.evidence import Evidence
from tallystick.model.direction import Direction
from tallystick.model.finding_names import BreakClass, Doubt
from tallystick.model.open_item import ItemState
from tests.unit.anomalies.findings import TWO_LEGS, classes, items_of, the_break
from tests.unit.anomalies.planted import Pair, PlantedCases
from tests.unit.builders import (
    HOUR,
    MINUTE,
    NOON,
    contract_of,
    cut_of,
    deadlines_of,
    event,
    evidence_of,
    item_of,
    ledger_slice_of,
    row,
    slice_of,
)


def acted_at(executed_utc: datetime) -> Evidence:
    """A broken row whose event we published again, and that no run has cleared."""
    item = item_of(row(1), ItemState.BROKEN, break_id=UUID(int=1))
    action = ExecutedAction(action_id=UUID(int=2), executed_utc=executed_utc, item=item)
    return evidence_of(cluster=ClusterState(actions=(action,)))


class TestPlanted(PlantedCases):
    pairs = (
        Pair(
            name=BreakClass.COMPENSATION_NOT_EFFECTIVE,
            fires=acted_at(NOON - MINUTE),
            twin=acted_at(NOON - MINUTE / 2),  # its grace runs
        ),
    )


BROKEN_ROW = item_of(row(1), ItemState.BROKEN, reason="missing_in_topic_never_produced", break_id=UUID(int=1))


def repaired(*copies: Any, executed_utc: datetime = NOON - HOUR, **about: Any) -> Evidence:
    """A broken row of an earlier cut whose event we published again, and what this cut reads."""
    action = ExecutedAction(action_id=UUID(int=2), executed_utc=executed_utc, item=BROKEN_ROW)
    return evidence_of(*copies, carried=[BROKEN_ROW], cluster=ClusterState(actions=(action,)), **about)


def acted_on(copy: Any, reason: str, *copies: Any, **about: Any) -> Evidence:
    """A broken event of an earlier cut that we took back or posted, and what this cut reads."""
    item = item_of(copy, ItemState.BROKEN, reason=reason, pairable=False, break_id=UUID(int=1))
    action = ExecutedAction(action_id=UUID(int=2), executed_utc=NOON - HOUR, item=item)
    carried = replace(copy, carried=item)
    return evidence_of(carried, *copies, cluster=ClusterState(actions=(action,)), **about)


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
    assert (item.state, item.reason.stored, item.break_id, item.pairable) == (
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


def test_a_repair_without_effect_is_about_the_item_that_it_was_for() -> None:
    found = the_break(acted_at(NOON - MINUTE))
    assert (found.match_key, found.transaction_key, found.leg) == ("ev-1", "pay-of-ev-1", "payout")
    assert (found.amount_minor, found.currency, found.copies) == (1_000, "EUR", 1)
