"""A break is cleared when one event and one row stand that say what the plan says; anything else has changed."""

import json
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from tallystick.compensation.plan import CurrentRow, PlanItem, RepairKind
from tallystick.compensation.repair_effect import RepairEffect, effect_of, why_not_taken_back
from tallystick.compensation.republished_event import CurrentEvent
from tallystick.contract.event import EventFields
from tallystick.model.finding_names import BreakClass

NAMES = EventFields()
ROW = CurrentRow(
    row_id="7",
    match_key="ev-1",
    transaction_key="12",
    leg="payout",
    amount_minor=250,
    currency="EUR",
    occurred_at="2026-03-01T12:00:00+00:00",
)
REPUBLISH = PlanItem(
    **vars(ROW.source),
    action_id=UUID(int=1),
    break_id=UUID(int=2),
    break_class=BreakClass.MISSING_IN_TOPIC_NEVER_PRODUCED,
    topic="payouts",
)
REVERSE = replace(REPUBLISH, kind=RepairKind.REVERSE, reverses="topic:payouts:0:9")
POST = replace(REPUBLISH, kind=RepairKind.POST, posts="topic:payouts:0:9")
SENT = replace(ROW, occurred_at="2026-03-01T12:00:05+00:00")
"""The owner has written the row anew, and it says the same."""


def at(offset: int, *, reverses: int | None = None, **fields: Any) -> CurrentEvent:
    """payment_id is a JSON number here, which a run reads as text."""
    value = {"event_id": "ev-1", "payment_id": 12, "leg": "payout", "amount_minor": 250, "currency": "EUR"} | fields
    return CurrentEvent(
        topic="payouts",
        partition=0,
        kafka_offset=offset,
        action_id="",
        reverses="" if reverses is None else f"topic:payouts:0:{reverses}",
        value=json.dumps(value).encode(),
    )


@pytest.mark.parametrize(
    ("item", "standing", "rows"),
    [
        (REPUBLISH, [at(4)], [ROW]),
        (REPUBLISH, [at(4)], [SENT]),
        (REPUBLISH, [at(4), at(9), at(12, reverses=9)], [ROW]),
        (REVERSE, [at(4), at(9), at(12, reverses=9)], [ROW]),
        (REVERSE, [at(4), at(9), at(12, reverses=9, amount_minor=-250)], [ROW]),
        (POST, [at(9)], [ROW]),
        (POST, [], [ROW]),
    ],
    ids=[
        "published",
        "its row sent",
        "a second copy taken back",
        "taken back",
        "taken back, negated",
        "posted",
        "posted, its event expired",
    ],
)
def test_a_break_is_cleared_when_one_event_and_one_row_stand(
    item: PlanItem, standing: list[CurrentEvent], rows: list[CurrentRow]
) -> None:
    assert effect_of(item, standing, rows, NAMES) is RepairEffect.CLEARED


@pytest.mark.parametrize(
    ("item", "standing", "rows"),
    [(REPUBLISH, [], [ROW]), (REPUBLISH, [], []), (REVERSE, [at(4), at(9)], [ROW]), (POST, [at(9)], [])],
    ids=["nothing published", "nothing published, its row gone", "nothing taken back", "nothing posted"],
)
def test_it_is_not_cleared_while_nothing_of_the_repair_stands(
    item: PlanItem, standing: list[CurrentEvent], rows: list[CurrentRow]
) -> None:
    assert effect_of(item, standing, rows, NAMES) is RepairEffect.NOT_CLEARED


@pytest.mark.parametrize(
    ("item", "standing", "rows"),
    [
        (REPUBLISH, [at(4), at(9)], [ROW]),
        (REPUBLISH, [at(4, amount_minor=251)], [ROW]),
        (REPUBLISH, [at(4, currency="USD")], [ROW]),
        (REPUBLISH, [at(4)], [replace(ROW, amount_minor=251)]),
        (REPUBLISH, [at(4)], []),
        (REPUBLISH, [at(4)], [ROW, replace(ROW, row_id="8")]),
        (REVERSE, [at(4), at(5), at(9), at(12, reverses=9)], [ROW]),
        (REVERSE, [at(4), at(9), at(12, reverses=9), at(13, reverses=9)], [ROW]),
        (REVERSE, [at(4), at(9), at(12, reverses=9), at(13, reverses=4)], [ROW]),
        (REVERSE, [at(4), at(9), at(12, reverses=9)], []),
        (REVERSE, [at(4), at(9), at(12, reverses=9, amount_minor=1)], [ROW]),
        (POST, [at(9)], [ROW, replace(ROW, row_id="8")]),
        (POST, [at(9)], [replace(ROW, amount_minor=251)]),
    ],
    ids=[
        "a late original",
        "published by another, with another amount",
        "published by another, in another currency",
        "its row changed",
        "its row gone",
        "its row doubled",
        "a third copy",
        "taken back twice",
        "the other copy taken back too",
        "taken back, its row gone",
        "taken back by a forged one, with another amount",
        "posted late by its consumer too",
        "posted by another, with another amount",
    ],
)
def test_it_has_changed_when_anything_else_stands(
    item: PlanItem, standing: list[CurrentEvent], rows: list[CurrentRow]
) -> None:
    assert effect_of(item, standing, rows, NAMES) is RepairEffect.CHANGED


SECOND = replace(ROW, row_id="8")
BACK = replace(ROW, row_id="9", amount_minor=-250, takes_back="8")
COUNTERPOST = replace(REPUBLISH, **vars(SECOND.source), kind=RepairKind.COUNTERPOST, reverses="ledger:8")


@pytest.mark.parametrize(
    ("rows", "effect"),
    [
        ([ROW, SECOND, BACK], RepairEffect.CLEARED),
        ([ROW, SECOND], RepairEffect.NOT_CLEARED),
        ([ROW, SECOND, replace(BACK, takes_back="7")], RepairEffect.NOT_CLEARED),
        ([ROW, SECOND, BACK, replace(BACK, row_id="10")], RepairEffect.CHANGED),
        ([ROW, SECOND, replace(BACK, amount_minor=-249)], RepairEffect.CHANGED),
        ([ROW, SECOND, replace(BACK, currency="USD")], RepairEffect.CHANGED),
        ([ROW, SECOND, replace(SECOND, row_id="11"), BACK], RepairEffect.CHANGED),
        ([SECOND, BACK], RepairEffect.CHANGED),
        ([ROW, SECOND, BACK, replace(BACK, row_id="10", takes_back="6")], RepairEffect.CHANGED),
    ],
    ids=[
        "taken back",
        "not",
        "another",
        "twice",
        "other money",
        "other currency",
        "a third row",
        "no row left",
        "one of another contract's too",
    ],
)
def test_what_became_of_a_row_too_many_stands_in_the_ledger_alone(rows: list[CurrentRow], effect: RepairEffect) -> None:
    for standing in ([], [at(4)], [at(4), at(9)]):
        assert effect_of(COUNTERPOST, standing, rows, EventFields()) is effect


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([ROW, SECOND], None),
        ([ROW], "the ledger row is gone or changed"),
        ([ROW, replace(SECOND, amount_minor=249)], "the ledger row is gone or changed"),
        ([ROW, SECOND, BACK, replace(SECOND, row_id="11")], "it was taken back already"),
        ([SECOND], "no other row of its key is in force"),
        ([ROW, replace(SECOND, takes_back="7")], "the row takes row 7 back itself"),
    ],
)
def test_a_row_is_taken_back_only_while_it_stands_and_another_one_does(
    rows: list[CurrentRow], reason: str | None
) -> None:
    assert why_not_taken_back(COUNTERPOST, rows) == reason


def test_a_posted_row_that_is_taken_back_for_a_late_one_leaves_its_repair_cleared() -> None:
    assert effect_of(POST, [], [ROW, SECOND], EventFields()) is RepairEffect.CHANGED
    assert effect_of(POST, [], [ROW, SECOND, BACK], EventFields()) is RepairEffect.CLEARED


def test_the_effects_keep_the_names_under_which_they_are_stored() -> None:
    assert [str(one) for one in RepairEffect] == ["cleared", "not_cleared", "changed", "hidden", "handed_over"]
