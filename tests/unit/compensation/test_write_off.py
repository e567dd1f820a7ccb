"""What a person may give up, what becomes of its items, and what on-call hears of it."""

from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from tallystick.alerting.alert import AlertAction, Outstanding
from tallystick.alerting.policy import alerts_of_write_off
from tallystick.compensation.plan import RepairKind
from tallystick.compensation.write_off import (
    RepairBegun,
    WriteOffRefused,
    items_written_off,
    refuse_while_repaired,
    write_off_of,
)
from tallystick.documents.run import story_document
from tallystick.model.break_history import LifeStep
from tallystick.model.cut import PartitionSnapshot, TopicSlice
from tallystick.model.offsets import TopicPartition, partition_of
from tallystick.model.open_item import ItemState, OpenItem, WriteOff
from tallystick.report.break_story import explain
from tests.unit.alerting.run_alerts import CONTRACT, MISSING, cut, fired
from tests.unit.builders import HOUR, NOON
from tests.unit.report.told_breaks import a_break, item, sentences, told

FOUND = a_break(at="topic:billing.payouts:0:17")
ADA = WriteOff(by="Ada", reason="refunded by hand", at_utc=NOON + 3 * HOUR)


def steps(*items: OpenItem, by: WriteOff | None = None) -> tuple[LifeStep, ...]:
    """One row a cut; with `by`, one more of the newest item, of a person."""
    run = [LifeStep(cut_n=2 + n, judged_utc=NOON + n * HOUR, item=one) for n, one in enumerate(items)]
    given_up = replace(items[-1], state=ItemState.WRITTEN_OFF)
    return (*run, replace(run[-1], item=given_up, written_off=by)) if by else tuple(run)


def test_what_is_broken_is_written_off_and_stays_as_pairable_as_it_was() -> None:
    broken = item(ItemState.BROKEN, "missing_in_ledger")
    for pairable in (True, False):
        (given_up,) = items_written_off(FOUND, steps(replace(broken, pairable=pairable)))
        assert given_up == replace(broken, pairable=pairable, state=ItemState.WRITTEN_OFF)


def test_of_several_items_those_that_are_broken_are_written_off() -> None:
    other = replace(item(ItemState.CLEARED), item_id="ledger:9")
    given_up = items_written_off(FOUND, steps(other, item(ItemState.BROKEN)))
    assert [one.item_id for one in given_up] == ["topic:billing.payouts:0:17"]


@pytest.mark.parametrize(
    ("life", "why"),
    [
        pytest.param(
            steps(item(ItemState.BROKEN), item(ItemState.CLEARED, cleared_by="ledger:9")),
            "already cleared, by cut 3; expected one that is outstanding; there is nothing to write off",
            id="cleared",
        ),
        pytest.param(
            (
                *steps(item(ItemState.BROKEN), item(ItemState.BROKEN), replace(item(ItemState.CLEARED), item_id="a")),
                *steps(item(ItemState.CLEARED)),
            ),
            "already cleared, by cut 4; expected one that is outstanding; there is nothing to write off",
            id="cleared, its items one after the other",
        ),
        pytest.param(
            steps(item(ItemState.BROKEN), by=ADA),
            "already written off, by Ada at 2026-03-01 15:00:00 UTC; expected one that is outstanding",
            id="written off",
        ),
        pytest.param(
            steps(item(ItemState.BROKEN), replace(item(ItemState.BROKEN), break_id=UUID(int=8))),
            f"its item answers for break {UUID(int=8)} now; write that one off",
            id="another break's by now",
        ),
        pytest.param(
            (),
            "it was told once and left no item open; expected one that is outstanding; there is nothing to write off",
            id="never an item",
        ),
    ],
)
def test_what_is_not_outstanding_is_refused_with_the_reason(life: tuple[LifeStep, ...], why: str) -> None:
    with pytest.raises(WriteOffRefused) as refused:
        items_written_off(FOUND, life)
    assert str(refused.value) == f"break {FOUND.break_id}: {why}"


@pytest.mark.parametrize(
    ("done_at_utc", "why"),
    [
        (None, "is repairing it; expected no repair under way; .* execute CONTRACT_FILE 5a1d --by NAME"),
        (NOON + HOUR, "repaired it at .*, and no cut made since has read"),
        (NOON, None),
    ],
)
def test_what_a_repair_pays_is_not_given_up_before_a_run_has_looked(
    done_at_utc: datetime | None, why: str | None
) -> None:
    repair = RepairBegun(action_id=UUID(int=8), plan_id=UUID(int=7), plan_hash="5a1d", done_at_utc=done_at_utc)
    with pytest.raises(WriteOffRefused, match=f"plan {repair.plan_id} {why}") if why else nullcontext():
        refuse_while_repaired(UUID(int=1), repair, seen_up_to_utc=NOON)


@pytest.mark.parametrize(
    "state", [{}, {"waits": True}, {"handed_over": True}, {"done_at_utc": NOON + HOUR}], ids=lambda one: str([*one])
)
def test_the_plan_of_another_contract_is_named_with_that(state: dict[str, Any]) -> None:
    repair = RepairBegun(
        **{"action_id": UUID(int=8), "plan_id": UUID(int=7), "plan_hash": "5a1d", "done_at_utc": None} | state
    )
    for contract, named in (("audit", " of contract audit"), ("", "")):
        with pytest.raises(WriteOffRefused, match=f"plan {repair.plan_id}{named} (is|has|may|repaired) "):
            refuse_while_repaired(UUID(int=1), replace(repair, contract=contract), seen_up_to_utc=NOON)


def test_what_a_repair_may_have_paid_is_not_given_up_before_a_person_has_looked() -> None:
    repair = RepairBegun(action_id=UUID(int=8), plan_id=UUID(int=7), plan_hash="5a1d", done_at_utc=None, waits=True)
    told = f"a person has to look; .* tallystick compensation reopen CONTRACT_FILE {repair.action_id} --by NAME"
    with pytest.raises(WriteOffRefused, match=told):
        refuse_while_repaired(UUID(int=1), repair, seen_up_to_utc=NOON)


@pytest.mark.parametrize("state", [{"waits": True}, {"handed_over": True}], ids=lambda one: str([*one]))
@pytest.mark.parametrize(
    ("over_at_utc", "why"),
    [
        (None, "compensation reopen CONTRACT_FILE"),
        (NOON + HOUR, "may have repaired it by 2026-03-01 13:00:00 UTC, when its own break was over, and no cut made"),
        (NOON, None),
    ],
)
def test_what_another_contract_may_have_paid_counts_as_paid_once_its_own_break_is_over(
    state: dict[str, Any], over_at_utc: datetime | None, why: str | None
) -> None:
    repair = RepairBegun(
        action_id=UUID(int=8),
        plan_id=UUID(int=7),
        plan_hash="5a1d",
        done_at_utc=None,
        contract="audit",
        over_at_utc=over_at_utc,
        **state,
    )
    with pytest.raises(WriteOffRefused, match=why) if why else nullcontext():
        refuse_while_repaired(UUID(int=1), repair, seen_up_to_utc=NOON)
    another = replace(repair, contract="", over_at_utc=None)
    with pytest.raises(WriteOffRefused):
        for one in (repair, another):
            refuse_while_repaired(UUID(int=1), one, seen_up_to_utc=NOON)


@pytest.mark.parametrize(
    ("seen_ended", "why"),
    [
        (None, "has handed it to a DAG, and nobody has seen its run .* ended; .* execute CONTRACT_FILE 5a1d --by NAME"),
        (NOON + HOUR, "no cut made since has read"),
        (NOON, None),
    ],
)
def test_what_a_dag_was_handed_is_not_given_up_before_its_run_was_seen_ended_and_a_run_has_looked(
    seen_ended: datetime | None, why: str | None
) -> None:
    repair = RepairBegun(
        action_id=UUID(int=8), plan_id=UUID(int=7), plan_hash="5a1d", done_at_utc=seen_ended, handed_over=True
    )
    with pytest.raises(WriteOffRefused, match=why) if why else nullcontext():
        refuse_while_repaired(UUID(int=1), repair, seen_up_to_utc=NOON)


LEDGER = None
ON_TOPIC, ELSEWHERE = partition_of("billing.payouts", 0), partition_of("billing.fees", 0)


@pytest.mark.parametrize(
    ("kind", "topic", "sides"),
    [
        (RepairKind.POST, "billing.payouts", (LEDGER,)),
        (RepairKind.COUNTERPOST, "billing.payouts", (LEDGER,)),
        (RepairKind.REPUBLISH, "billing.payouts", (ON_TOPIC,)),
        (RepairKind.REVERSE, "billing.payouts", (ON_TOPIC,)),
        (RepairKind.REVERSE, "billing.others", (ON_TOPIC, ELSEWHERE, LEDGER)),
        (RepairKind.TRIGGER, "billing.payouts", (ON_TOPIC, ELSEWHERE, LEDGER)),
    ],
)
def test_a_run_has_looked_once_it_has_read_the_side_that_the_repair_changes(
    kind: RepairKind, topic: str, sides: tuple[TopicPartition | None, ...]
) -> None:
    read = replace(cut(4), topic_slices=tuple(map(slice_of, (ON_TOPIC, ELSEWHERE))))
    repair = RepairBegun(action_id=UUID(int=8), plan_id=UUID(int=7), plan_hash="5a1d", done_at_utc=NOON, kind=kind)
    assert repair.sides_changed(read, topic) == sides


def slice_of(part: TopicPartition) -> TopicSlice:
    snapshot = PartitionSnapshot(
        topic=part.topic, partition=part.partition, topic_id="id", leader_epoch=1, log_start=0, lso=9, high_watermark=9
    )
    return TopicSlice(offsets=snapshot.stable_from(0), snapshot=snapshot, mark=9)


@pytest.mark.parametrize("empty", ["", "  ", "\n\t", "\u200b"], ids=repr)
def test_nobody_and_no_reason_write_nothing_off(empty: str) -> None:
    with pytest.raises(WriteOffRefused, match=r"^--by: got .*; expected the name of who decided it$"):
        write_off_of(by=empty, reason="refunded", at_utc=NOON)
    with pytest.raises(WriteOffRefused, match=r"^--reason: got .*; expected why"):
        write_off_of(by="Ada", reason=empty, at_utc=NOON)


def test_a_name_that_no_database_can_hold_is_refused() -> None:
    with pytest.raises(WriteOffRefused, match=r"^--by: got bytes that are not UTF-8"):
        write_off_of(by="Ad\udce9", reason="refunded", at_utc=NOON)


def test_spaces_around_a_name_are_dropped() -> None:
    assert write_off_of(by=" Ada ", reason=" refunded by hand\n", at_utc=ADA.at_utc) == ADA


def test_the_story_says_who_gave_it_up_when_and_why() -> None:
    story = replace(told(FOUND), life=steps(item(ItemState.BROKEN, "phantom_in_topic"), by=ADA))
    assert sentences(explain(story))["History"][-1] == (
        "Ada wrote it off at 2026-03-01 15:00:00 UTC, after cut 2: refunded by hand."
    )
    assert [step["written_off"] for step in story_document(story)["life"]] == [
        None,
        {"by": "Ada", "reason": "refunded by hand", "at_utc": "2026-03-01T15:00:00Z"},
    ]


def test_a_name_that_drives_a_terminal_is_written_out() -> None:
    story = replace(told(FOUND), life=steps(item(ItemState.BROKEN), by=replace(ADA, by="Ada\x1b[2J")))
    assert "\x1b" not in "".join(sentences(explain(story))["History"])


def test_the_last_of_a_class_resolves_its_alert_and_says_by_whom() -> None:
    (alert,) = alerts_of_write_off(
        CONTRACT, MISSING, ADA, cut=cut(4), firing={MISSING: fired(MISSING, owner="first-team")}, outstanding={}
    )
    assert (alert.action, alert.name, alert.cut_n) == (AlertAction.RESOLVE, MISSING, 4)
    assert alert.dedup_key == f"tallystick/payouts/{MISSING}"
    assert alert.summary == (
        "payouts: missing in topic never produced: none outstanding; the last was written off by Ada"
    )
    assert (alert.details["written_off_because"], alert.details["owner"]) == ("refunded by hand", "first-team")
    assert alert.sinks == ("webhook:pager", "file:alerts.jsonl")


def test_the_last_but_one_of_a_class_resolves_nothing() -> None:
    one = Outstanding(count=1, money={"EUR": 1}, first_seen_utc=datetime(2026, 3, 1, tzinfo=UTC))
    firing = {MISSING: fired(MISSING)}
    assert alerts_of_write_off(CONTRACT, MISSING, ADA, cut=cut(4), firing=firing, outstanding={MISSING: one}) == ()


def test_what_never_fired_is_not_resolved() -> None:
    assert alerts_of_write_off(CONTRACT, MISSING, ADA, cut=cut(4), firing={}, outstanding={}) == ()
