"""A cut that lost offsets unread while an executor was under way has not read what the log retains no more."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from tallystick.compensation.plan import RepairKind
from tallystick.executor.prove_repairs import why_unproven
from tallystick.model.cut import JudgedPart, PartitionSnapshot
from tallystick.model.offsets import TopicPartition
from tests.planned_items import ITEM

PLANNED_AT, LATER = 4, 5
WORK: Any = SimpleNamespace(stopped={}, plan=SimpleNamespace(cut_n=PLANNED_AT))
PART = PartitionSnapshot(
    topic="payouts", partition=0, topic_id="t", leader_epoch=0, log_start=9, lso=9, high_watermark=9
)


def proof(*, offsets_lost_at: int) -> Any:
    """The log begins where the newest cut with a verdict ends."""
    judged = {TopicPartition(topic="payouts", partition=0): JudgedPart(topic_id="t", kafka_offset_end=9)}
    settled = SimpleNamespace(of=lambda _: (PART,))
    return SimpleNamespace(settled=settled, judged=judged, offsets_lost_at=offsets_lost_at)


def test_what_a_later_cut_has_lost_may_have_been_the_event() -> None:
    outcome = why_unproven(WORK, ITEM, proof(offsets_lost_at=LATER))
    assert outcome is not None
    assert outcome.reason == "its event may have come since: offsets were lost before cut 5 could read them"


@pytest.mark.parametrize("offsets_lost_at", [-1, PLANNED_AT])
def test_what_was_lost_before_the_plan_was_held_against_it_when_it_was_drawn(offsets_lost_at: int) -> None:
    assert why_unproven(WORK, ITEM, proof(offsets_lost_at=offsets_lost_at)) is None


def test_a_reversal_stands_on_the_copies_that_the_log_still_has() -> None:
    taken_back = replace(ITEM, kind=RepairKind.REVERSE, reverses="topic:payouts:0:9")
    assert why_unproven(WORK, taken_back, proof(offsets_lost_at=LATER)) is None
