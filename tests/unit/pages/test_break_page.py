"""A break's page: both sides beside each other, what differs marked, and its life from seen to cleared."""

from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest

from tallystick.alerting.alert import AlertAction
from tallystick.model.open_item import ItemState, WriteOff
from tallystick.pages.break_page import side_by_side, state_words
from tallystick.store.breaks.break_life_store import AlertTold, RepairTold
from tallystick.store.plans.plan_store import ActionState
from tests.stored_books import mismatch, missing, payouts, torn
from tests.unit.pages.books_shown import page_of_break, told
from tests.unit.pages.plans_told import HOUR, NOON


def fields_of(page_fields: object) -> dict[str, tuple[str, str, bool]]:
    return {row.field: (row.topic, row.ledger, row.differs) for row in page_fields}  # type: ignore[attr-defined]


def test_both_sides_stand_side_by_side_and_what_differs_is_marked() -> None:
    fields = fields_of(side_by_side(mismatch(payouts(), "pay-7")))
    assert fields["amount"] == ("10.00 EUR", "100.00 EUR", True)
    assert fields["currency"] == ("EUR", "EUR", False)
    assert fields["place"] == ("offset 266 of billing.payouts[0]", "row 7", False)


def test_a_side_where_nothing_stands_says_so_and_does_not_differ() -> None:
    fields = fields_of(side_by_side(missing(payouts(), "pay-1", 125_000)))
    assert fields["place"] == ("nothing", "row 1", False)
    assert fields["amount"] == ("nothing", "1,250.00 EUR", False)


def test_of_several_copies_no_amount_is_guessed() -> None:
    fields = fields_of(side_by_side(replace(missing(payouts(), "pay-1", 125_000), copies=3)))
    assert fields["amount"] == ("nothing", "not in the evidence", False)


ALERT = AlertTold(
    action=AlertAction.TRIGGER,
    recorded_at=NOON + timedelta(minutes=1),
    delivered_at={"webhook": NOON + timedelta(minutes=2)},
    sinks=("webhook",),
)
REPAIR = RepairTold(
    plan_id=UUID(int=1),
    planned_at=NOON + timedelta(minutes=3),
    requested_by="op",
    action_id=UUID(int=2),
    state=ActionState.DONE,
    begun_at=NOON + timedelta(minutes=4),
)


def test_the_life_of_a_break_runs_from_seen_to_cleared_in_order() -> None:
    page = page_of_break(told(ItemState.BROKEN, ItemState.CLEARED), alerts=(ALERT,), repairs=(REPAIR,))
    assert [row.kind for row in page.life] == ["seen", "proven", "sent", "sent", "planned", "acted", "cleared"]
    assert page.standing == "cleared"


@pytest.mark.parametrize(
    ("state", "dag_id", "words"),
    [
        (ActionState.DONE, "", "The repair was done."),
        (ActionState.DONE, "refund", "A run of DAG refund was started. Whether it repaired the break, later runs say."),
        (ActionState.REFUSED, "refund", "The repair was begun and refused: nothing was published."),
    ],
)
def test_what_a_dag_was_started_for_is_not_said_to_be_done(state: ActionState, dag_id: str, words: str) -> None:
    repair = replace(REPAIR, state=state, dag_id=dag_id)
    page = page_of_break(told(ItemState.BROKEN), repairs=(repair,))
    assert [row.words for row in page.life if row.kind == "acted"] == [words]


def test_who_took_the_incident_on_is_named() -> None:
    taken = replace(ALERT, action=AlertAction.ACKNOWLEDGE, acknowledged_by="Ada", delivered_at={})
    page = page_of_break(told(ItemState.BROKEN), alerts=(ALERT, taken))
    assert [row.words for row in page.life if row.kind == "acknowledged"] == ["Ada acknowledged the incident."]


def test_a_break_that_stands_has_no_end_in_its_life() -> None:
    page = page_of_break(told(ItemState.BROKEN))
    assert [row.kind for row in page.life] == ["seen", "proven"]
    assert page.standing == "outstanding"


def test_who_gave_a_break_up_is_named_with_the_reason() -> None:
    given_up = WriteOff(by="finance", reason="refunded", at_utc=NOON + 2 * HOUR)
    page = page_of_break(told(ItemState.BROKEN, ItemState.WRITTEN_OFF, written_off=given_up))
    assert page.life[-1].kind == "written off"
    assert page.life[-1].words == "finance wrote row 2 off: refunded."
    assert page.standing == "written off"


def test_an_item_that_another_break_took_over_does_not_stand_for_this_one() -> None:
    one = told(ItemState.BROKEN, ItemState.BROKEN)
    other = replace(one.life[1], item=replace(one.life[1].item, break_id=UUID(int=9)))
    assert state_words(replace(one, life=(one.life[0], other))) == "answered for by another break"


def test_a_torn_transaction_shows_each_leg() -> None:
    one = replace(told(ItemState.BROKEN), item_break=torn(payouts(), "pay-9"))
    assert [(mark.leg, mark.state) for mark in page_of_break(one).legs] == [("payout", "committed")]
