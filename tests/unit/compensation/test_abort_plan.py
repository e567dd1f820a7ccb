"""A hanging transaction is planned to be ended only when nobody else can end it, and all that it holds is counted."""

from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from tallystick.compensation import plan_text
from tallystick.compensation.abort_plan import AbortItem, abort_words, why_too_young
from tallystick.compensation.approval_rules import refuse_too_few_people
from tallystick.compensation.caps import refuse_over_caps
from tallystick.compensation.plan import CapsExceeded, DailyUsage, OnePersonOnly, Plan, PlanContext
from tallystick.compensation.planning import make_plan
from tallystick.kafka_cluster.state import ClusterState
from tallystick.model.finding_names import Doubt
from tallystick.model.offsets import TopicPartition
from tests.unit.builders import PART
from tests.unit.compensation.abort_plans import ABORTS, AROUND, OLD, planned
from tests.unit.compensation.plans import NOON, candidate, contract, run
from tests.unit.open_transactions import BEHIND, HANGING, LIVE, OWN, SETTINGS

describe_plan = partial(plan_text.describe_plan, shown_key=str)


def reasons(plan: Plan) -> list[str]:
    return [one.reason for one in plan.left_out]


def test_a_transaction_that_hangs_since_longer_than_any_time_out_is_planned_with_all_that_tells_it_apart() -> None:
    plan = planned()
    (item,) = plan.aborts
    assert (item.topic_partition, item.kafka_offset_start) == (PART, 20)
    assert (item.producer_id, item.producer_epoch, item.coordinator_epoch) == (4001, 3, -1)
    assert (item.first_seen_utc, item.age_seconds) == ("2026-03-01 09:55:00 UTC", 7_500)
    assert (item.own_events, item.own_money_minor) == (1, {"EUR": 1_000})
    assert (item.waiting_events, item.waiting_money_minor) == (2, {"EUR": 2_050})
    assert (plan.items, plan.left_out, plan.moved_minor) == ((), (), {"EUR": 1_000})


def test_whoever_approves_reads_what_is_ended_what_that_costs_and_what_it_does_not_do() -> None:
    assert describe_plan(planned()).splitlines()[:4] == [
        "**payouts**, cut 5. Will end 1 hanging transaction by an ABORT marker, each on its partition alone, so that 1 "
        "record worth 10.00 EUR will count as aborted; nothing else of their producers is touched, and no record is "
        "deleted.",
        "",
        "- End billing.payouts:0 at offset 20: producer 4001, epoch 3, no coordinator; first seen 2026-03-01 09:55:00 "
        "UTC, 7500 s before the run. 1 record of its own, 10.00 EUR, will count as aborted; 2 events behind it, 20.50 "
        "EUR, can be read again.",
        "",
    ]


@pytest.mark.parametrize("live", [LIVE, replace(LIVE, confirmed=True), replace(HANGING, confirmed=False)])
def test_one_that_a_coordinator_will_end_or_that_was_not_confirmed_is_not_even_thought_of(live: Any) -> None:
    plan = planned(replace(AROUND, open_transactions=(live,)))
    assert (plan.aborts, plan.left_out) == ((), ())


@pytest.mark.parametrize(
    ("around", "reason"),
    [
        (
            replace(AROUND, first_sights=(replace(OLD, first_seen_utc=NOON - timedelta(seconds=7_499)),)),
            "it was first seen 7499 s before; expected at least 7500 s, the brokers' transaction.max.timeout.ms and "
            "300 s more",
        ),
        (
            replace(AROUND, first_sights=()),
            "it was first seen 0 s before; expected at least 7500 s, the brokers' transaction.max.timeout.ms and 300 s "
            "more",
        ),
        (
            replace(AROUND, broker_settings=None),
            "the brokers' transaction.max.timeout.ms may not be described, so nobody can say that it is over",
        ),
        (replace(AROUND, held_events=(BEHIND,)), "its records could not all be counted"),
        (replace(AROUND, held_events=(OWN, replace(BEHIND, complete=False))), "its records could not all be counted"),
        (replace(AROUND, held_events=(replace(OWN, money={"JPY": 1}),)), "the contract sets no cap for JPY"),
        (replace(AROUND, held_events=(replace(OWN, money={"EUR": -1_001}),)), "over the cap on EUR"),
    ],
)
def test_what_speaks_against_it_is_told(around: ClusterState, reason: str) -> None:
    plan = planned(around)
    assert (plan.aborts, reasons(plan)) == ((), [reason])
    assert "Left out: 1 hanging transaction." in describe_plan(plan)


@pytest.mark.parametrize(
    ("epoch", "told"), [(-1, "no coordinator"), (0, "coordinator epoch 0"), (7, "coordinator epoch 7")]
)
def test_whoever_approves_reads_whether_a_coordinator_knew_it(epoch: int, told: str) -> None:
    around = replace(AROUND, open_transactions=(replace(HANGING, coordinator_epoch=epoch),))
    (item,) = planned(around).aborts
    assert item.transactional_id == HANGING.transactional_id
    assert f"producer 4001, epoch 3, {told}; first seen" in abort_words(item)


def test_one_on_a_topic_of_no_leg_is_left_to_its_owner() -> None:
    part = TopicPartition(topic="billing.requests", partition=0)
    moved = {
        name: tuple(replace(one, topic_partition=part) for one in getattr(AROUND, name))
        for name in ("open_transactions", "first_sights", "held_events")
    }
    assert reasons(planned(replace(AROUND, **moved))) == ["it stands on no topic of the contract's legs"]


@pytest.mark.parametrize(
    "gone",
    [
        (),
        (replace(HANGING, kafka_offset_start=21),),
        (replace(HANGING, producer_id=4003),),
        (replace(HANGING, confirmed=False),),
    ],
)
def test_what_the_newest_run_does_not_find_any_more_is_left_out(gone: Any) -> None:
    newest = replace(AROUND, open_transactions=gone)
    assert reasons(planned(newest=newest)) == ["the newest run does not find it any more"]


def test_without_the_contracts_yes_nothing_is_ended_and_the_plan_says_so() -> None:
    plan = planned(abort_hanging_transactions=False)
    assert reasons(plan) == ["compensation.abort_hanging_transactions is not true, so nothing is ended"]


def test_evidence_that_is_not_clean_ends_nothing() -> None:
    stood = PlanContext(planned=AROUND, newest=AROUND)
    plan = make_plan(contract(**ABORTS), run(Doubt.LOG_TRUNCATED), (), around=stood)
    assert reasons(plan) == ["the run's evidence is not clean: log_truncated"]


def test_without_a_newest_run_nobody_has_seen_it_since() -> None:
    plan = make_plan(contract(**ABORTS), run(), (), around=PlanContext(planned=AROUND))
    assert reasons(plan) == ["the newest run does not find it any more"]


def test_the_doubt_that_it_raises_itself_does_not_stop_it() -> None:
    stood = PlanContext(planned=AROUND, newest=AROUND)
    assert len(make_plan(contract(**ABORTS), run(Doubt.HANGING_TRANSACTION), (), around=stood).aborts) == 1


def test_it_takes_its_place_under_the_caps_before_the_breaks() -> None:
    stood = PlanContext(planned=AROUND, newest=AROUND)
    plan = make_plan(contract(**ABORTS), run(), [candidate("a")], around=stood)
    assert (len(plan.aborts), plan.items, reasons(plan)) == (1, (), ["over the cap on EUR"])
    roomy = make_plan(contract(**ABORTS, max_amount_minor={"EUR": 1_100}), run(), [candidate("a")], around=stood)
    assert (len(roomy.aborts), len(roomy.items), roomy.moved_minor) == (1, 1, {"EUR": 1_100})
    assert [action.action_id for action in roomy.actions] == [roomy.aborts[0].action_id, roomy.items[0].action_id]
    assert describe_plan(roomy).count("| a | billing.payouts | 1.00 EUR |") == 1
    assert "Nothing is to be published." not in describe_plan(planned())
    with pytest.raises(CapsExceeded, match=f"break {roomy.items[0].break_id}: over the cap on the number of events"):
        refuse_over_caps(contract(**ABORTS, max_items=1), roomy)
    daily = make_plan(contract(**ABORTS, max_items_per_day=1), run(), (), around=stood, spent=DailyUsage(items=1))
    assert reasons(daily) == ["over the day's cap on the number of events"]


def test_one_that_another_plan_has_is_left_out() -> None:
    stood = PlanContext(planned=AROUND, newest=AROUND)
    taken = [planned().aborts[0].action_id]
    plan = make_plan(contract(**ABORTS), run(), (), around=stood, taken=taken)
    assert reasons(plan) == ["another plan has it"]


def test_an_approved_plan_is_held_against_the_contract_of_now() -> None:
    refuse_over_caps(contract(**ABORTS), planned())
    for rules, said in (
        (contract(), "is not true"),
        (contract(**ABORTS, max_amount_minor={"EUR": 999}), "over the cap"),
    ):
        with pytest.raises(CapsExceeded, match=said):
            refuse_over_caps(rules, planned())


def test_it_needs_two_people_whatever_its_money() -> None:
    rules = contract(**ABORTS, four_eyes_above_minor={"EUR": 10**9})
    for asked in (["Ada"], []):
        with pytest.raises(OnePersonOnly, match="it ends 1 transaction for good"):
            refuse_too_few_people(rules, planned(), asked=asked, agreed=["ada"])
    refuse_too_few_people(rules, planned(), asked=["ada"], agreed=["bob"])


def hash_of(**changes: Any) -> str:
    plan = planned()
    return replace(plan, aborts=(replace(plan.aborts[0], **changes),)).plan_hash


def test_the_hash_stands_for_the_transaction_and_a_plan_without_one_has_the_hash_it_always_had() -> None:
    hashes = {hash_of(), *(hash_of(**{name: 9}) for name in ("partition", "producer_id", "producer_epoch"))}
    assert len(hashes | {hash_of(kafka_offset_start=9)}) == 5
    repair = make_plan(contract(), run(), [candidate("a")])
    assert repair.plan_hash == replace(repair, aborts=()).plan_hash
    assert repair.plan_hash == "a8f0edc446ab39433a1a7bab8a605a7ce758ae8620a59897bbd49e8e3862b1b0"


def test_one_transaction_has_one_action_for_ever_and_another_epoch_another() -> None:
    later = replace(AROUND, held_events=(OWN,), first_sights=(replace(OLD, first_seen_utc=NOON - timedelta(days=1)),))
    bumped = replace(AROUND, open_transactions=(replace(HANGING, producer_epoch=4),))
    items = [planned(around).aborts[0] for around in (AROUND, later, bumped)]
    assert items[0].action_id == items[1].action_id != items[2].action_id
    assert str(items[0].action_id) == "86f1df41-672f-54c6-a555-1c2c7a5e6f4c"


def test_the_same_transaction_is_known_by_partition_producer_and_beginning() -> None:
    (item,) = planned().aborts
    assert isinstance(item, AbortItem)
    assert item.is_same(replace(HANGING, producer_epoch=9, confirmed=False))
    assert not item.is_same(replace(HANGING, kafka_offset_start=21))


def test_the_age_at_which_it_may_be_ended_follows_the_brokers() -> None:
    assert why_too_young(1_200, replace(SETTINGS, transaction_max_timeout_ms=900_000)) is None
    assert why_too_young(1_199, replace(SETTINGS, transaction_max_timeout_ms=900_000)) is not None
