"""A break with its items, and the story that is told of it."""

from datetime import timedelta
from typing import Any
from uuid import UUID

from tallystick.model.break_history import LifeStep, ToldBreak
from tallystick.model.finding_names import BreakClass
from tallystick.model.findings import Break
from tallystick.model.item_reason import read_reason
from tallystick.model.open_item import ItemSide, ItemState, OpenItem
from tallystick.report.break_story import Story
from tests.unit.builders import HOUR, MINUTE, NOON


def a_break(break_class: BreakClass = BreakClass.DUPLICATE_IN_TOPIC_REPROCESSED, **evidence: Any) -> Break:
    return Break(
        break_id=UUID(int=7),
        break_class=break_class,
        match_key="ev-1",
        transaction_key="pay-1",
        leg="payout",
        amount_minor=123_456,
        currency="EUR",
        copies=1,
        story="It stands twice.",
        evidence=evidence,
    )


def item(state: ItemState, reason: str = "", *, cleared_by: str = "") -> OpenItem:
    return OpenItem(
        item_id="topic:billing.payouts:0:17",
        side=ItemSide.TOPIC,
        match_key="ev-1",
        transaction_key="pay-1",
        leg="payout",
        amount_minor=123_456,
        currency="EUR",
        first_seen_cut=2,
        first_seen_utc=NOON,
        due_utc=NOON + MINUTE,
        state=state,
        reason=read_reason(reason),
        break_id=UUID(int=7),
        cleared_by=cleared_by,
    )


def told(item_break: Break, *items: OpenItem) -> ToldBreak:
    return ToldBreak(
        item_break=item_break,
        contract="billing_payouts",
        cut_n=3,
        window_start_utc=NOON - HOUR,
        window_end_utc=NOON,
        judged_utc=NOON + MINUTE,
        topic_settled_until_utc=NOON + timedelta(seconds=30),
        ledger_settled_until_utc=None,
        life=tuple(LifeStep(cut_n=2 + n, judged_utc=NOON + n * HOUR, item=one) for n, one in enumerate(items)),
    )


def sentences(story: Story) -> dict[str, tuple[str, ...]]:
    return {paragraph.heading: paragraph.sentences for paragraph in story.paragraphs}
