"""A plan that has begun asks again: what was cleared, written off, done by another contract or lost sight of since is
not paid. What it did before is found and recorded all the same.

One file, since every case begins with a plan that has begun, and differs in what happened since.
"""

import os
import signal
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from sqlalchemy import text

from tallystick.compensation.effect_words import effect_hashes
from tallystick.compensation.plan import ApprovalTooOld, Plan, PlanRefused, PlanStale
from tallystick.compensation.write_off import WriteOffRefused
from tallystick.contract.contract import Contract
from tallystick.executor.effects.action_log import ActionResult
from tallystick.executor.effects.publish_events import open_publisher
from tallystick.executor.effects.step import ExecutorStep
from tallystick.executor.progress_topic import progress_topic_name
from tallystick.model.finding_names import BreakClass, Doubt
from tallystick.model.open_item import ItemState, WriteOff
from tallystick.model.verdict import Verdict
from tallystick.store.breaks.write_off_store import write_off_break
from tallystick.store.clock import store_now
from tallystick.store.migrations.versions import m0012_effects_of_actions
from tallystick.store.plans.approval_store import ANSWERED_AT
from tallystick.store.plans.claim_store import NOT_OUTSTANDING
from tallystick.store.plans.plan_store import append_audit
from tallystick.store.runs.cut_store import claim_attempt
from tallystick.store.runs.outstanding_store import outstanding_breaks
from tallystick.store.runs.run_store import commit_run

from .payout_world import Books, once, world

__all__ = ["world"]  # a fixture

ABORTED = BreakClass.MISSING_IN_TOPIC_ABORTED_ONLY


def told(world: Books, plan: Plan, **how: Any) -> dict[str, tuple[str, str]]:
    """Fate and reason by match key."""
    return {one.match_key: (one.fate, one.reason) for one in world.execute(plan, **how).outcomes}


def clear(world: Books, *keys: str, n: int) -> None:
    """Run n sees the partners of these."""
    found = [one.item_break for one in outstanding_breaks(world.store, world.contract.name)]
    items = tuple(world.runs.item(one, n=n, state=ItemState.CLEARED) for one in found if one.match_key in keys)
    world.runs.commit(world.store, world.runs.result(n, items=items))


def unreadable(world: Books, key: bytes) -> None:
    producer = Producer({"bootstrap.servers": world.stack.bootstrap_servers, "partitioner": "murmur2_random"})
    producer.produce(world.topic, key=key, value=b"\xff not JSON")
    producer.flush()


def test_what_a_late_original_cleared_is_not_paid_when_the_task_is_cleared_after_retention(world: Books) -> None:
    rows = world.pay(2)
    world.find_missing(rows)
    a, b = (str(row.event.event_id) for row in rows)
    plan = world.plan()
    world.publish(rows[1].event)
    assert [fate for fate, _ in told(world, plan).values()].count(ActionResult.PUBLISHED) == 1
    assert world.copies() == once(rows)
    clear(world, b, n=2)
    world.expire()
    before = world.ends()
    assert told(world, plan) == {a: (ActionResult.ALREADY_PUBLISHED, ""), b: (ActionResult.REFUSED, NOT_OUTSTANDING)}
    assert (world.ends(), world.copies()) == (before, Counter())
    assert world.states() == {"done": 1, "refused": 1}


def test_what_was_written_off_is_not_paid_when_the_task_is_cleared(world: Books) -> None:
    rows = world.pay(3)
    world.find_missing(rows)
    a, b, c = (str(row.event.event_id) for row in rows)
    plan = world.plan()
    for row in rows[1:]:
        unreadable(world, row.event.message_key)
    first = told(world, plan)
    assert [first[key][0] for key in (a, b, c)] == [ActionResult.PUBLISHED, ActionResult.REFUSED, ActionResult.REFUSED]
    given_up = next(one for one in plan.items if one.match_key == b)
    write_off = WriteOff(by="Carol", reason="paid by hand, by bank transfer", at_utc=datetime.now(UTC))
    write_off_break(world.store, world.contract.name, str(given_up.break_id), write_off)
    world.expire()
    again = told(world, plan)
    assert again == {
        a: (ActionResult.ALREADY_PUBLISHED, ""),
        b: (ActionResult.REFUSED, NOT_OUTSTANDING),
        c: (ActionResult.PUBLISHED, ""),  # one fact away: nobody has given it up
    }
    assert world.copies() == once(rows[2:])


@pytest.mark.parametrize("die_at", ["before commit", "after commit"])
def test_what_was_cleared_while_an_executor_lay_dead_is_told_as_done_or_refused_and_never_paid_again(
    world: Books, die_at: str
) -> None:
    """By hand, before the executor committed; or by the executor, which nobody has heard of since."""
    rows = world.pay(3)
    world.find_missing(rows)
    keys = [str(row.event.event_id) for row in rows]
    plan = world.plan()
    with world.start_executor(plan, die_at=die_at) as killed:
        assert killed.wait(60) == -signal.SIGKILL
    by_hand = die_at == "before commit"
    if by_hand:
        name = f"tallystick-compensation-test-{world.contract.name}"
        open_publisher(world.connections.kafka, transactional_id=name)  # ends what it left open, as the time-out would
        world.publish(rows[0].event)
    clear(world, *(keys[:1] if by_hand else keys), n=2)
    world.expire()
    before = told(world, plan)
    if by_hand:
        assert before == {keys[0]: (ActionResult.REFUSED, NOT_OUTSTANDING)} | dict.fromkeys(
            keys[1:], (ActionResult.PUBLISHED, "")
        )
        assert world.copies() == once(rows[1:])
        assert world.states() == {"done": 2, "refused": 1}
    else:
        assert before == dict.fromkeys(keys, (ActionResult.ALREADY_PUBLISHED, ""))
        assert world.copies() == Counter()
        assert world.states() == {"done": 3}


def test_what_was_cleared_while_an_executor_slept_before_its_first_event_is_not_published_when_it_wakes_up(
    world: Books,
) -> None:
    """No other start has fenced it, and Kafka gives no transaction up that has no record yet."""
    rows = world.pay(2)
    world.find_missing(rows)
    a, b = (str(row.event.event_id) for row in rows)
    plan = world.plan()
    with world.start_executor(plan, die_at="stop before the first event") as sleeping:
        os.waitpid(sleeping.pid, os.WUNTRACED)
        world.publish(rows[0].event)
        clear(world, a, n=2)
        world.expire()
        sleeping.send_signal(signal.SIGCONT)
        _, complaint = sleeping.communicate(timeout=60)
    assert sleeping.returncode == 0, complaint
    assert world.copies() == once(rows[1:])
    assert told(world, plan) == {a: (ActionResult.REFUSED, NOT_OUTSTANDING), b: (ActionResult.ALREADY_PUBLISHED, "")}


@pytest.fixture
def renamed(world: Books, new_contract: Callable[..., Contract]) -> Books:
    """The same sides under another name, as the docs advise for a new meaning."""
    contract = world.contract.model_copy(update={"name": f"{world.contract.name}_new"})
    other = replace(world, contract=contract, runs=replace(world.runs, contract=contract))
    other.runs.commit(world.store, other.runs.result(0))
    return other


def test_two_contracts_over_one_topic_and_table_pay_an_absence_once_between_them(world: Books, renamed: Books) -> None:
    rows = world.pay(3)
    world.find_missing(rows)
    renamed.find_missing(rows)
    keys = [str(row.event.event_id) for row in rows]
    plans = [(world, world.plan()), (renamed, renamed.plan())]
    assert {one.action_id for one in plans[0][1].items}.isdisjoint(one.action_id for one in plans[1][1].items)
    with ThreadPoolExecutor(2) as pool:
        ends = [pool.submit(told, books, plan) for books, plan in plans]
        outcomes = [end.result() for end in ends]
    fates = Counter(fate for outcome in outcomes for fate, _ in outcome.values())
    assert (fates, world.copies()) == ({ActionResult.PUBLISHED: 3, ActionResult.REFUSED: 3}, once(rows))
    world.expire()
    before = world.ends()
    refused = [told(books, plan) for books, plan in plans]
    reasons = {reason for outcome in refused for fate, reason in outcome.values() if fate is ActionResult.REFUSED}
    assert len(reasons) == 1
    assert "has done the same, or is doing it" in reasons.pop()
    assert world.ends() == before
    assert {key for outcome in refused for key in outcome} == set(keys)
    topics = [progress_topic_name(renamed.contract.name)]
    AdminClient({"bootstrap.servers": world.stack.bootstrap_servers}).delete_topics(topics)


def test_what_was_done_before_effects_were_kept_is_known_by_its_plan(world: Books) -> None:
    """By the words of that release, which are asked for as well."""
    world.find_missing(world.pay(2))
    plan = world.plan()
    world.execute(plan)
    asked = text("select action_id, effect from tallystick.compensation_action order by action_id")
    with world.store.begin() as connection:
        kept = connection.execute(asked).all()
        connection.execute(text("update tallystick.compensation_action set effect = null"))
        connection.exec_driver_sql(m0012_effects_of_actions._KNOWN)
        known = connection.execute(asked).all()
    topic_id = world.runs.topic_id
    hashes = {one.action_id: effect_hashes(one, topic_id=topic_id, ledger="") for one in plan.items}
    assert {action_id: (now, then) for (action_id, now), (_, then) in zip(kept, known, strict=True)} == hashes


def test_a_plan_that_was_begun_in_another_environment_is_finished_there(world: Books) -> None:
    """Its executor may be asleep in its transaction, and another transactional id would not fence it."""
    rows = world.pay(1)
    world.find_missing(rows)
    plan = world.plan()
    with world.start_executor(plan, die_at="before commit") as killed:
        killed.wait(60)
    written = world.ends()
    with pytest.raises(PlanRefused, match="expected the same TALLYSTICK_ENVIRONMENT"):
        world.execute(plan, environment="staging")
    assert (world.ends(), world.states()) == (written, {"executing": 1})
    assert told(world, plan)[str(rows[0].event.event_id)][0] is ActionResult.PUBLISHED
    assert world.copies() == once(rows)


def test_an_event_that_expired_before_any_run_judged_it_is_not_taken_for_absent(world: Books) -> None:
    rows = world.pay(1)
    key = str(rows[0].event.event_id)
    world.find_missing(rows)
    plan = world.plan()
    relay = Producer({"bootstrap.servers": world.stack.bootstrap_servers})
    for _ in range(11):  # run 1 has read the first ten
        relay.produce(world.topic, partition=0, key=b"others", value=b"{}")
    relay.flush()
    world.expire()
    unread = f"not provable: {world.topic}[0] begins at 11 by now, and runs have read it up to 10; the next run reads "
    assert told(world, plan)[key] == (ActionResult.REFUSED, unread + "the rest")
    world.runs.save(world.store, world.runs.cut(2, topic_end=11))
    assert told(world, plan)[key] == (ActionResult.REFUSED, unread + "the rest")  # the cut has no verdict yet
    attempt = claim_attempt(world.store, world.contract.name, 2)
    commit_run(world.store, world.runs.result(2), attempt=attempt, alerts=())
    assert told(world, plan)[key] == (ActionResult.PUBLISHED, "")
    assert world.copies() == once(rows)


def test_offsets_that_were_lost_unread_since_keep_a_missing_event_from_being_published(world: Books) -> None:
    rows = world.pay(2)
    world.find_missing(rows)
    plan = world.plan()
    with world.start_executor(plan, die_at="before commit") as killed:
        killed.wait(60)
    world.runs.commit(world.store, world.runs.result(2, verdict=Verdict.INCONCLUSIVE, doubts=(Doubt.LOG_EXPIRED,)))
    assert {reason for _, reason in told(world, plan).values()} == {
        "the newest run's evidence is not clean: log_expired"
    }
    world.runs.commit(world.store, world.runs.result(3))
    again = world.plan(cut_n=3)
    assert [one.reason for one in again.left_out] == [
        "its event may have come since: offsets were lost before cut 2 could read them, or closed unread with it"
    ] * 2
    with pytest.raises(PlanStale):
        world.execute(plan)
    assert (world.copies(), world.states()) == (Counter(), {"refused": 2})


def agree(world: Books, plan: Plan, *, run: str, age: timedelta = timedelta(), lay: timedelta = timedelta()) -> None:
    """What the approval's task keeps of a yes; the trail is append-only, so an old one is written as such.

    lay: how long the scheduler took to resume the task that keeps it.
    """
    if not age:
        append_audit(
            world.store,
            world.contract.name,
            plan_id=plan.plan_id,
            actor="bob",
            event="agreed",
            detail={"scheduler_run_id": run, ANSWERED_AT: (store_now(world.store) - lay).isoformat()},
        )
        return
    row = text(
        "insert into tallystick.audit (contract, plan_id, actor, event, detail, recorded_at) values (:contract, :plan, "
        "'bob', 'agreed', jsonb_build_object('scheduler_run_id', cast(:run as text)), clock_timestamp() - :age)"
    )
    with world.store.begin() as connection:
        connection.execute(row, {"contract": world.contract.name, "plan": plan.plan_id, "run": run, "age": age})


def test_an_approval_holds_for_its_time_and_is_asked_again_then(world: Books) -> None:
    rows = world.pay(2)
    world.find_missing(rows)
    a, b = (str(row.event.event_id) for row in rows)
    plan = world.plan()
    agree(world, plan, run="old", age=timedelta(seconds=86_401))
    agree(world, plan, run="resumed late", lay=timedelta(seconds=86_401))
    asks_again = "start a new run, which asks again"
    for run, said in (("old", asks_again), ("resumed late", asks_again), ("never asked", "nobody is on record")):
        with pytest.raises(ApprovalTooOld, match=said):
            world.execute(plan, approved_in=run)
    assert (world.copies(), world.states()) == (Counter(), Counter())
    unreadable(world, rows[1].event.message_key)
    agree(world, plan, run="new", age=timedelta(seconds=86_000))
    first = told(world, plan, approved_in="new")
    assert [first[key][0] for key in (a, b)] == [ActionResult.PUBLISHED, ActionResult.REFUSED]
    world.expire()
    again = told(world, plan, approved_in="old")
    assert again[a] == (ActionResult.ALREADY_PUBLISHED, "")
    assert (again[b][0], "start a new run" in again[b][1]) == (ActionResult.REFUSED, True)
    agree(world, plan, run="newest", lay=timedelta(seconds=86_000))
    assert told(world, plan, approved_in="newest")[b][0] is ActionResult.PUBLISHED
    assert world.copies() == once(rows[1:])


def with_rules(world: Books, **rules: Any) -> Contract:
    document = world.contract.model_dump(mode="json", exclude_defaults=True)
    return Contract.model_validate(document | {"compensation": document["compensation"] | rules})


def a_day_later(world: Books) -> None:
    with world.store.begin() as connection:
        connection.execute(
            text("update tallystick.compensation_action set recorded_at = recorded_at - interval '1 day'")
        )


def test_a_begun_plan_is_held_against_the_newest_run_and_the_days_caps(world: Books) -> None:
    world.contract = with_rules(world, max_items_per_day=2)
    rows = world.pay(4)
    a, b = (str(row.event.event_id) for row in rows[:2])
    world.find_missing(rows[:2])
    plan = world.plan()
    unreadable(world, rows[1].event.message_key)
    assert {key: fate for key, (fate, _) in told(world, plan).items()} == {
        a: ActionResult.PUBLISHED,
        b: ActionResult.REFUSED,
    }
    a_day_later(world)
    world.find_missing(rows[2:], n=2)
    world.contract = with_rules(world, max_items_per_day=3)
    fates = Counter(fate for fate, _ in told(world, world.plan(cut_n=2)).values())
    assert fates == {ActionResult.PUBLISHED: 2, ActionResult.REFUSED: 1}
    world.contract = with_rules(world, max_items_per_day=2)
    world.expire()
    assert told(world, plan)[b] == (ActionResult.REFUSED, "over the day's cap on the number of events")
    a_day_later(world)
    world.runs.commit(world.store, world.runs.result(3, verdict=Verdict.INCONCLUSIVE, doubts=(Doubt.TORN_CUT,)))
    assert told(world, plan)[b] == (ActionResult.REFUSED, "the newest run's evidence is not clean: torn_cut")
    world.runs.commit(world.store, world.runs.result(4))
    assert told(world, plan)[b] == (ActionResult.PUBLISHED, "")
    assert world.copies() == Counter([b])


def without_repairs(world: Books) -> Contract:
    return world.contract.model_copy(update={"compensation": None})


@pytest.mark.parametrize("die_at", ["before commit", "after commit"])
@pytest.mark.parametrize(
    ("forbid", "told"),
    [
        pytest.param(partial(with_rules, max_items=1), "over the cap on the number of events", id="the cap is lowered"),
        pytest.param(partial(with_rules, max_amount_minor={"USD": 1}), "sets no cap for EUR", id="a cap is gone"),
        pytest.param(partial(with_rules, classes=[ABORTED]), "is not compensated by the contract", id="the class is"),
        pytest.param(without_repairs, "the contract has no compensation", id="the section is"),
    ],
)
def test_what_the_contract_forbids_by_now_ends_what_had_begun_as_done_or_refused(
    world: Books, forbid: Callable[[Books], Contract], told: str, die_at: str
) -> None:
    rows = world.pay(2)
    world.find_missing(rows)
    plan = world.plan()
    with world.start_executor(plan, die_at=die_at) as killed:
        killed.wait(60)
    write_off = WriteOff(by="Carol", reason="paid by hand, by bank transfer", at_utc=datetime.now(UTC))
    give_up = partial(write_off_break, world.store, world.contract.name, str(plan.items[0].break_id), write_off)
    to_end_it = f"tallystick compensation execute CONTRACT_FILE {plan.plan_hash} --by NAME"
    with pytest.raises(WriteOffRefused, match=to_end_it):
        give_up()
    outcomes = world.execute(plan, contract=forbid(world)).outcomes
    if die_at == "after commit":
        assert {one.fate for one in outcomes} == {ActionResult.ALREADY_PUBLISHED}
        assert (world.copies(), world.states()) == (once(rows), {"done": 2})
        return
    assert {one.fate for one in outcomes} == {ActionResult.REFUSED}
    assert [told in one.reason for one in outcomes] == [True, True]
    assert (world.copies(), world.states()) == (Counter(), {"refused": 2})
    assert give_up().outstanding == 1
    assert [item.match_key for item in world.plan().items] == [plan.items[1].match_key]


def test_what_was_claimed_yesterday_and_is_published_today_is_of_todays_caps(world: Books) -> None:
    rows = world.pay(2)
    world.find_missing(rows[:1])
    plan = world.plan()
    with world.start_executor(plan, die_at="before commit") as killed:
        killed.wait(60)
    a_day_later(world)
    world.contract = with_rules(world, max_items_per_day=1)
    assert [fate for fate, _ in told(world, plan).values()] == [ActionResult.PUBLISHED]
    world.find_missing(rows[1:], n=2)
    assert {one.reason for one in world.plan(cut_n=2).left_out} == {
        "another plan has it",
        "over the day's cap on the number of events",
    }


def test_a_break_that_a_verdict_clears_between_the_proof_and_the_transaction_is_not_paid(world: Books) -> None:
    rows = world.pay(2)
    world.find_missing(rows)
    plan = world.plan()
    a, b = (str(row.event.event_id) for row in rows)
    to_clear = [b]

    def clear_once_proved(step: str, figures: object) -> None:
        if step == ExecutorStep.PROVED and to_clear:
            clear(world, to_clear.pop(), n=2)

    outcome = told(world, plan, on_progress=clear_once_proved)
    assert outcome == {a: (ActionResult.PUBLISHED, ""), b: (ActionResult.REFUSED, NOT_OUTSTANDING)}
    assert world.copies() == once(rows[:1])
