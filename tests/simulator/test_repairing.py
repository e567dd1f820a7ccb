"""What an executor does, refuses and says, step by step: in the world, where nothing but the test disturbs it.

One file, since each test is one start of one protocol on the same few books.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from tallystick.compensation.kill_switch import ActingStopped, SwitchSetting
from tallystick.compensation.plan import OnePersonOnly, Plan, PlanRefused, PlanStale
from tallystick.compensation.write_off import WriteOffRefused
from tallystick.executor import draw_plan, execute_plan, post_repairs, publish_repairs
from tallystick.executor.effects import action_log
from tallystick.executor.effects.action_log import ActionResult, ItemOutcome
from tallystick.executor.effects.publish_events import ExecutorFenced
from tallystick.executor.execute_plan import Execution
from tallystick.executor.progress_topic import ProgressHeld, progress_topic_name
from tallystick.kafka_log.log_walk import Outcome, walk_past_lso
from tallystick.kafka_log.open_batch import open_batch
from tallystick.kafka_log.record import ACTION_HEADER, REVERSES_HEADER
from tallystick.ledger.protocol import LedgerUnreachable
from tallystick.model.errors import TallystickError
from tallystick.model.offsets import OffsetRange, TopicPartition
from tallystick.model.open_item import WriteOff
from tallystick.store.plans.approval_store import AGREED, ANSWERED_AT
from tallystick.store.plans.claim_store import NOT_OUTSTANDING
from tallystick.store.plans.plan_store import REOPENED, ActionState
from tests.simulator.schedule.play import Do, Play, Schedule, steps_of
from tests.simulator.standins import plan_functions, run_functions
from tests.simulator.standins.executor import WorldProducer
from tests.simulator.world.batches import Record
from tests.simulator.world.broker import PartitionLog
from tests.simulator.world.config import Config
from tests.simulator.world.contracts import TOPIC
from tests.simulator.world.interleaving import Killed
from tests.simulator.world.truth import Money

ENVIRONMENT, CAROL = "world", "carol"
PROGRESS = TopicPartition(topic=progress_topic_name("books"), partition=0)
CONFIG = Config(direction="ledger_to_topic", producer_mode="plain", carrier_mode="at_most")
LOST = ("window", ("half_trade", 2, 7), ("trade", 1, 1), "window", "window")
"""A row whose event nobody ever publishes, beside a pair."""
TWO_LOST = ("window", ("half_trade", 2, 7), ("half_trade", 2, 8), ("half_trade", 1, 9), "window", "window")
DOUBLED = ("window", ("trade", 1, 5), "window", ("redeliver", 1, 5), "window")


pytestmark = pytest.mark.usefixtures("in_the_world")


@dataclass
class Books:
    """A world whose books have something to repair, and what was told of each start."""

    play: Play
    steps: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.world, self.store = self.play.world, self.play.world.store

    def plan(self, *, dry_run: bool = False, saved: bool = True) -> Plan:
        newest = run_functions.last_cut(self.store, "books")
        assert newest is not None
        drawn = draw_plan.draw_plan(
            self.store,
            self.world.contract,
            self.world,  # type: ignore[arg-type]
            cut_n=newest.n,
            dry_run=dry_run,
        )
        if saved:
            plan_functions.save_plan(self.store, drawn, requested_by="asker")
        return drawn

    def start(self, plan: Plan, **asked: Any) -> Execution:
        asked = {"approved_hash": plan.plan_hash, "approver": CAROL, "environment": ENVIRONMENT} | asked
        asked = {"on_progress": lambda step, figures: self.steps.append((step, dict(figures)))} | asked
        self.steps.clear()
        return execute_plan.execute_plan(
            self.store,
            self.world.contract,
            self.world,  # type: ignore[arg-type]
            plan,
            **asked,
        )

    def audited(self) -> list[str]:
        return [entry.event for entry in self.store.audit if entry.actor == CAROL]

    def detail(self, event: str) -> dict[str, Any]:
        """Of the newest entry of that name."""
        entry = next(one for one in reversed(self.store.audit) if (one.actor, one.event) == (CAROL, event))
        return dict(entry.detail)

    def records(self, topic: str) -> list[tuple[Outcome, bytes, bytes | None, dict[str, bytes]]]:
        """All of a topic: outcome, key, value, headers."""
        found = []
        for log in self.world.broker.logs_of([topic]):
            whole = OffsetRange(
                topic=topic, partition=log.place.partition, kafka_offset_start=log.log_start, kafka_offset_end=log.end
            )
            for batch in walk_past_lso(self.world.fetch, whole, lso=log.lso):
                if batch.outcome is not Outcome.MARKER:
                    found += [(batch.outcome, one.key, one.value, dict(one.headers)) for one in open_batch(batch)]
        return found

    def events(self, key: str) -> list[tuple[Outcome, dict[str, Any], dict[str, bytes]]]:
        """Of one match key: outcome, payload, headers."""
        said = [(outcome, json.loads(value or b"{}"), headers) for outcome, _, value, headers in self.records(TOPIC)]
        return [one for one in said if one[1].get("event_id") == key]

    def state(self, plan: Plan) -> ActionState:
        return self.store.actions[plan.items[0].action_id].stored.state


def books(*steps: Any, config: Config = CONFIG) -> Books:
    play = Play(Schedule(config, ()))
    for step in steps_of(*steps):
        play.do(step)
    return Books(play)


def fates(execution: Execution) -> list[tuple[str, str]]:
    return [(str(one.fate), one.reason) for one in execution.outcomes]


# A missing event.


def test_a_missing_event_is_published_with_its_progress_and_all_is_told() -> None:
    lost = books(*LOST)
    plan = lost.plan()
    (item,) = plan.items
    done = lost.start(plan)
    place = {
        "topic": TOPIC,
        "partition": 1,
        "offset": lost.world.broker.partitions[TopicPartition(topic=TOPIC, partition=1)].end - 2,
    }
    assert done == Execution(
        plan_id=plan.plan_id,
        plan_hash=plan.plan_hash,
        dry_run=False,
        outcomes=(
            ItemOutcome(action_id=item.action_id, match_key=item.match_key, fate=ActionResult.PUBLISHED, place=place),
        ),
    )
    ((outcome, payload, headers),) = lost.events(item.match_key)
    assert outcome is Outcome.COMMITTED
    assert payload == {
        "event_id": item.match_key,
        "payment_id": item.transaction_key,
        "leg": "payout",
        "amount_minor": item.amount_minor,
        "currency": "EUR",
        "occurred_at": "2026-03-01T00:00:00+00:00",
    }
    assert headers[ACTION_HEADER] == str(item.action_id).encode()
    assert [outcome for outcome, *_ in lost.records(PROGRESS.topic)] == [Outcome.COMMITTED]
    assert lost.state(plan) is ActionState.DONE
    assert lost.store.actions[item.action_id].stored.outcome == place


def test_each_step_of_a_repair_is_told_and_audited_in_the_protocols_order() -> None:
    lost = books(*LOST)
    plan = lost.plan()
    (item,) = plan.items
    lost.start(plan)
    action, under = str(item.action_id), "tallystick-compensation-world-books"
    assert lost.steps == [
        ("approved", {}),
        ("executing", {"transactional_id": under}),
        ("fenced", {}),
        ("progress_read", {"published": 0}),
        ("proved", {}),
        ("begun", {}),
        ("produced", {"record": 1, "of": 2, "topic": TOPIC}),
        ("produced", {"record": 2, "of": 2, "topic": PROGRESS.topic}),
        ("flushed", {}),
        ("published", {}),
        ("recorded", {"item": 1, "fate": "published"}),
        (
            "finished",
            {"outcomes": [{"action_id": action, "match_key": item.match_key, "fate": "published", "reason": ""}]},
        ),
    ]
    assert lost.audited() == ["approved", "executing", "publishing", "published", "published", "finished"]
    the_plan = {"plan_hash": plan.plan_hash}
    assert lost.detail("approved") == the_plan | {"approved_hash": plan.plan_hash, "dry_run": False, "items": 1}
    topic_id = lost.world.broker.partitions[PROGRESS].topic_id
    assert lost.detail("executing") == the_plan | {"progress_topic_id": topic_id, "transactional_id": under}
    assert lost.detail("publishing") == the_plan | {"actions": [action], "ends": {TOPIC: {"0": 0, "1": 1}}}
    assert lost.detail("published").items() >= {"action_id": action, "topic": TOPIC}.items()
    counts = {fate: int(fate == "published") for fate in map(str, ActionResult)}
    assert {str(name): value for name, value in lost.detail("finished").items()} == the_plan | counts
    assert {entry.plan_id for entry in lost.store.audit if entry.actor == CAROL} == {plan.plan_id}


def test_a_second_start_publishes_nothing_and_says_that_it_stands() -> None:
    lost = books(*LOST)
    plan = lost.plan()
    lost.start(plan)
    again = lost.start(plan)
    assert fates(again) == [("already_published", "")]
    assert again.outcomes[0].place is not None
    assert len(lost.events(plan.items[0].match_key)) == 1
    assert (again.count(ActionResult.ALREADY_PUBLISHED), again.count(ActionResult.PUBLISHED)) == (1, 0)


def test_the_next_run_clears_what_was_published_and_a_later_plan_is_empty() -> None:
    lost = books(*LOST)
    lost.start(lost.plan())
    for step in steps_of("window", "window"):
        lost.play.do(step)
    assert run_functions.outstanding_breaks(lost.store, "books") == ()
    assert lost.plan().items == ()
    assert lost.play.oracle.violations == []


@pytest.mark.parametrize("together", [1, 2, 500])
def test_several_are_published_in_the_plans_order_in_transactions_of_so_many(
    monkeypatch: pytest.MonkeyPatch, together: int
) -> None:
    monkeypatch.setattr(publish_repairs, "_TOGETHER", together)
    lost = books(*TWO_LOST)
    plan = lost.plan()
    assert len(plan.items) == 3
    done = lost.start(plan)
    assert [one.action_id for one in done.outcomes] == [item.action_id for item in plan.items]
    assert fates(done) == 3 * [("published", "")]
    assert lost.audited().count("publishing") == -(-3 // together)
    for item, one in zip(plan.items, done.outcomes, strict=True):
        ((_, payload, headers),) = lost.events(item.match_key)
        assert (payload["amount_minor"], headers[ACTION_HEADER]) == (
            item.amount_minor,
            str(one.action_id).encode(),
        )
    assert len(lost.records(PROGRESS.topic)) == 3
    assert [figures for step, figures in lost.steps if step == "recorded"] == [
        {"item": n, "fate": "published"} for n in (1, 2, 3)
    ]


def test_a_rehearsal_proves_all_and_writes_nothing() -> None:
    lost = books(*LOST)
    plan = lost.plan(dry_run=True)
    done = lost.start(plan)
    assert (fates(done), done.dry_run) == ([("would_publish", "")], True)
    assert lost.events(plan.items[0].match_key) == []
    assert PROGRESS not in lost.world.broker.partitions
    assert (lost.audited(), lost.store.actions) == (["approved", "finished"], {})
    assert [step for step, _ in lost.steps] == ["approved", "proved", "finished"]


# A copy too many.


def test_a_copy_too_many_is_taken_back_with_the_other_sign_and_its_key() -> None:
    doubled = books(*DOUBLED)
    plan = doubled.plan()
    (item,) = plan.items
    assert (str(item.kind), item.reverses[:6]) == ("reverse", "topic:")
    assert fates(doubled.start(plan)) == [("published", "")]
    one, other, reversal = sorted(doubled.events(item.match_key), key=lambda event: REVERSES_HEADER in event[2])
    assert one[1] == other[1] == reversal[1] | {"amount_minor": item.amount_minor}
    assert reversal[1]["amount_minor"] == -item.amount_minor
    assert reversal[2][REVERSES_HEADER] == item.reverses.encode()
    keys = [key for _, key, value, _ in doubled.records(TOPIC) if item.match_key.encode() in (value or b"")]
    assert (len(keys), len(set(keys))) == (3, 1)
    assert fates(doubled.start(plan)) == [("already_published", "")]


# What is refused as a whole.


def stopped_by(lost: Books, start: Callable[[], object], error: type[TallystickError]) -> str:
    """What it says. Nothing is published, and the stop is told and audited."""
    with pytest.raises(error) as raised:
        start()
    told = {"error": type(raised.value).__name__, "message": str(raised.value)}
    assert lost.steps[-1] == ("stopped", told)
    assert lost.audited()[-1] == "stopped"
    assert lost.detail("stopped").items() >= told.items()
    return str(raised.value)


def test_a_plan_that_was_approved_under_another_hash_is_refused() -> None:
    lost = books(*LOST)
    plan = lost.plan()
    said = stopped_by(lost, lambda: lost.start(plan, approved_hash="another"), PlanStale)
    assert said == f"books: approved was another, the plan is {plan.plan_hash}; ask for a new plan"
    assert lost.events(plan.items[0].match_key) == []


def test_a_plan_that_was_never_stored_is_refused() -> None:
    lost = books(*LOST)
    plan = lost.plan(saved=False)
    said = stopped_by(lost, lambda: lost.start(plan), PlanStale)
    assert said.startswith(f"books: plan {plan.plan_id} was never stored; expected a plan of this verdict store.")


def test_a_plan_whose_row_has_changed_since_is_refused_and_a_new_one_is_asked_for() -> None:
    lost = books(*LOST)
    plan = lost.plan()
    row_id = int(plan.items[0].row_id)
    lost.world.database.update("owner", row_id, amount_minor=1)
    lost.world.database.commit("owner")
    said = stopped_by(lost, lambda: lost.start(plan), PlanStale)
    assert said.startswith(f"books: approved was {plan.plan_hash}, today's plan is ")
    assert said.endswith("have changed since; ask for a new plan")


def throw(lost: Books, *, stopped: bool) -> None:
    at = lost.world.clock.now
    setting = SwitchSetting(contract=None, stopped=stopped, by="dan", because="why", at_utc=at)
    plan_functions.set_switch(lost.store, setting)


def test_while_acting_is_stopped_nothing_is_done_and_afterwards_it_is() -> None:
    lost = books(*LOST)
    plan = lost.plan()
    throw(lost, stopped=True)
    stopped_by(lost, lambda: lost.start(plan), ActingStopped)
    assert fates(lost.start(lost.plan(dry_run=True))) == [("would_publish", "")]
    throw(lost, stopped=False)
    assert fates(lost.start(plan)) == [("published", "")]


def test_a_switch_that_is_thrown_between_two_transactions_leaves_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publish_repairs, "_TOGETHER", 1)
    lost = books(*TWO_LOST)
    plan, together = lost.plan(), publish_repairs.publish_together

    def then_stopped(*given: Any, **named: Any) -> Any:
        places = together(*given, **named)
        throw(lost, stopped=True)
        return places

    monkeypatch.setattr(publish_repairs, "publish_together", then_stopped)
    stopped_by(lost, lambda: lost.start(plan), ActingStopped)
    assert [len(lost.events(item.match_key)) for item in plan.items] == [1, 0, 0]
    states = [lost.store.actions[item.action_id].stored.state for item in plan.items]
    assert states == [ActionState.DONE, ActionState.REFUSED, ActionState.REFUSED]


# What is refused by itself.


def test_an_event_that_stands_by_now_is_not_published_again() -> None:
    lost = books(*LOST)
    plan = lost.plan()
    (item,) = plan.items
    lost.play.services.carry(0, 0, 0)
    lost.play.services.end_carrying(0, commit=True)
    assert len(lost.events(item.match_key)) == 1
    ((fate, reason),) = fates(lost.start(plan))
    assert fate == "refused"
    assert reason.startswith(f"the event stands: {TOPIC}[")
    assert len(lost.events(item.match_key)) == 1
    assert (lost.state(plan), lost.detail("refused")["reason"]) == (ActionState.REFUSED, reason)


def test_while_a_transaction_is_open_on_the_topic_no_absence_is_proven() -> None:
    lost = books(*LOST)
    plan = lost.plan()
    other = lost.world.broker.init("somebody", now_ms=lost.world.clock.now_ms)
    lost.world.broker.write(other, TopicPartition(topic=TOPIC, partition=0), [Record(b"k", b"{}", 1)], now_ms=1)
    assert fates(lost.start(plan)) == [("refused", f"not provable now: an open producer transaction holds {TOPIC}")]
    assert lost.events(plan.items[0].match_key) == []


def test_a_break_that_a_run_has_cleared_since_is_not_repaired_by_a_plan_that_has_begun() -> None:
    lost = books(*LOST)
    plan = lost.plan()
    killed_at(lost, plan, "producer.begin")
    lost.play.services.carry(0, 0, 0)
    lost.play.services.end_carrying(0, commit=True)
    lost.play.do(Do("window"))
    assert fates(lost.start(plan))[0][0] == "refused"
    assert len(lost.events(plan.items[0].match_key)) == 1


def test_a_row_that_is_gone_by_the_time_of_the_last_look_is_not_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    lost = books(*LOST)
    plan, opened = lost.plan(), publish_repairs.open_publisher

    def then_gone(*given: Any, **named: Any) -> Any:
        lost.world.database.delete("owner", int(plan.items[0].row_id))
        lost.world.database.commit("owner")
        return opened(*given, **named)

    monkeypatch.setattr(publish_repairs, "open_publisher", then_gone)
    assert fates(lost.start(plan)) == [("refused", "the ledger row is gone, doubled or changed")]


def test_what_was_cleared_once_the_broker_has_it_is_not_committed(monkeypatch: pytest.MonkeyPatch) -> None:
    lost = books(*LOST)
    plan, flush = lost.plan(), WorldProducer.flush

    def then_cleared(producer: WorldProducer) -> int:
        monkeypatch.setattr(action_log, "outstanding_among", lambda *asked: frozenset())
        return flush(producer)

    monkeypatch.setattr(WorldProducer, "flush", then_cleared)
    assert fates(lost.start(plan)) == [("refused", NOT_OUTSTANDING)]
    assert [outcome for outcome, *_ in lost.events(plan.items[0].match_key)] == [Outcome.ABORTED]
    assert lost.detail("aborted")["attempt"] == 1


def test_a_switch_that_is_thrown_once_the_broker_has_it_keeps_it_from_being_committed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lost = books(*LOST)
    plan, flush = lost.plan(), WorldProducer.flush

    def then_stopped(producer: WorldProducer) -> int:
        throw(lost, stopped=True)
        return flush(producer)

    with monkeypatch.context() as patched:
        patched.setattr(WorldProducer, "flush", then_stopped)
        stopped_by(lost, lambda: lost.start(plan), ActingStopped)
    assert [outcome for outcome, *_ in lost.events(plan.items[0].match_key)] == [Outcome.ABORTED]
    assert lost.state(plan) is ActionState.REFUSED
    throw(lost, stopped=False)
    assert fates(lost.start(plan)) == [("published", "")]


def test_a_switch_that_is_thrown_while_a_post_waits_for_its_key_lets_no_row_be_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lost, plan, _ = a_lost_one()
    post = post_repairs.post_once

    def then_stopped(*given: Any, **named: Any) -> Any:
        throw(lost, stopped=True)
        return post(*given, **named)

    with monkeypatch.context() as patched:
        patched.setattr(post_repairs, "post_once", then_stopped)
        stopped_by(lost, lambda: lost.start(plan), ActingStopped)
    assert (lost.world.database.rows, lost.state(plan)) == ({}, ActionState.REFUSED)
    throw(lost, stopped=False)
    assert fates(lost.start(plan)) == [("published", "")]


def agreed(lost: Books, plan: Plan, by: str, event: str = AGREED, **told: str) -> None:
    detail = {"plan_hash": plan.plan_hash, ANSWERED_AT: lost.world.clock.now.isoformat()} | told
    lost.store.append_audit("books", plan.plan_id, by, event, detail)


def ruled(lost: Books, **rules: Any) -> None:
    """The contract's file has these rules of compensation from now on."""
    contract = lost.world.contract
    assert contract.compensation is not None
    changed = contract.compensation.model_copy(update=rules)
    lost.world.contracts = (contract.model_copy(update={"compensation": changed}),)


@pytest.mark.parametrize(("valid_seconds", "fate"), [(50, "published"), (49, "refused")])
def test_an_approval_that_grows_too_old_while_the_executor_sleeps_is_none(valid_seconds: int, fate: str) -> None:
    lost = books(*LOST)
    ruled(lost, four_eyes_above_minor={"EUR": 0}, approval_valid_seconds=valid_seconds)
    plan = lost.plan()
    agreed(lost, plan, "bob")

    def sleep(step: str, _: Any) -> None:
        if step == "begun":
            lost.world.clock.go(50)

    ((came_to, reason),) = fates(lost.start(plan, on_progress=sleep))
    assert (came_to, reason.startswith("its approval is 50 s old and holds for 49 s")) == (fate, fate == "refused")
    written = [outcome for outcome, *_ in lost.events(plan.items[0].match_key)]
    assert written == [Outcome.ABORTED if fate == "refused" else Outcome.COMMITTED]


def test_a_yes_from_before_a_reopening_does_not_count_for_what_comes_after_it() -> None:
    lost = books(*LOST)
    ruled(lost, four_eyes_above_minor={"EUR": 0})
    plan = lost.plan()
    agreed(lost, plan, "bob")
    assert fates(lost.start(plan)) == [("published", "")]
    assert fates(lost.start(plan)) == [("already_published", "")]
    lost.world.clock.go(60)
    action_id = plan.items[0].action_id
    log = lost.world.broker.partitions[TopicPartition(topic=TOPIC, partition=1)]
    log.truncate_to(log.end - 2)
    row = lost.store.actions[action_id]
    row.stored = replace(row.stored, state=ActionState.REFUSED, reopened=1)
    agreed(lost, plan, "dan", REOPENED, action_id=str(action_id))
    said = stopped_by(lost, lambda: lost.start(plan), OnePersonOnly)
    assert "nobody agreed; dan reopened an action of this plan at " in said and "; ask again; " in said
    assert lost.events(plan.items[0].match_key) == []
    lost.world.clock.go(60)
    agreed(lost, plan, "bob")
    assert fates(lost.start(plan)) == [("published", "")]


# What the contract says otherwise since a plan began.


def test_a_reversal_that_was_approved_by_the_other_sign_never_goes_out_with_the_same_one() -> None:
    doubled = books(*DOUBLED)
    plan = doubled.plan()
    killed_at(doubled, plan, "producer.begin")
    ruled(doubled, reversal="header")
    told = "its plan was approved under compensation.reversal negated, and the contract has header"
    assert fates(doubled.start(plan)) == [("refused", told)]
    assert len(doubled.events(plan.items[0].match_key)) == 2
    assert fates(doubled.start(doubled.plan())) == [("published", "")]


def test_a_reversal_that_stands_is_found_whatever_the_contract_says_by_now() -> None:
    doubled = books(*DOUBLED)
    plan = doubled.plan()
    killed_at(doubled, plan, "producer.commit answered")
    ruled(doubled, reversal="header")
    assert fates(doubled.start(plan)) == [("already_published", "")]
    assert len(doubled.events(plan.items[0].match_key)) == 3


def test_what_was_to_be_posted_in_other_rows_is_refused_and_another_plan_posts_it() -> None:
    lost, plan, _ = a_lost_one()
    killed_at(lost, plan, "poster.commit")
    assert lost.world.contract.compensation is not None
    post = lost.world.contract.compensation.post
    assert post is not None
    ruled(lost, post=post.model_copy(update={"connection": "renamed"}))
    kept, other = lost.world.contracts, {"columns": {**post.columns, "amount_minor": "currency"}}
    ruled(lost, post=post.model_copy(update=other))
    told = "the contract writes other columns, rows or actions_table into the ledger than its plan's did"
    assert fates(lost.start(plan)) == [("refused", told)]
    lost.world.contracts = kept
    assert fates(lost.start(lost.plan())) == [("published", "")]


def test_a_plan_under_rules_that_no_cut_has_is_ended_once_they_are_taken_out_again() -> None:
    lost = books()
    allowed = lost.world.contract
    none = allowed.model_copy(update={"compensation": None})
    lost.world.contracts = (none,)
    for step in steps_of(*LOST):
        lost.play.do(step)
    lost.world.contracts = (allowed,)
    plan = lost.plan()
    killed_at(lost, plan, "producer.begin")
    lost.world.contracts = (none,)
    reason = "books: the contract has no compensation, so nothing may be repaired"
    assert fates(lost.start(plan)) == [("refused", reason)]
    assert (lost.state(plan), lost.events(plan.items[0].match_key)) == (ActionState.REFUSED, [])


# Processes that die.


def killed_at(lost: Books, plan: Plan, question: str) -> None:
    """Start the plan; the process is gone at that question."""
    reached = lost.world.point.reached

    def die(asked: str) -> None:
        if asked == question:
            raise Killed(asked)
        reached(asked)

    lost.world.point.reached = die  # type: ignore[method-assign]
    try:
        with pytest.raises(Killed):
            lost.start(plan)
    finally:
        lost.world.point.reached = reached  # type: ignore[method-assign]


def test_wherever_the_process_dies_the_next_start_publishes_each_event_once() -> None:
    whole = books(*LOST)
    plan, asked = whole.plan(), list[str]()
    reached = whole.world.point.reached
    whole.world.point.reached = lambda question: asked.append(question) or reached(question)  # type: ignore[func-returns-value, method-assign]
    whole.start(plan)
    assert len(asked) > 20
    for n in range(1, len(asked) + 1):
        lost = books(*LOST)
        plan = lost.plan()
        lost.world.point.begin([], kill_at=n)
        with pytest.raises(Killed):
            lost.start(plan)
        lost.world.point.end()
        ((fate, reason),) = fates(lost.start(plan))
        assert (fate in ("published", "already_published"), reason) == (True, ""), asked[n - 1]
        committed = [one for one in lost.events(plan.items[0].match_key) if one[0] is Outcome.COMMITTED]
        assert (len(committed), lost.state(plan)) == (1, ActionState.DONE), asked[n - 1]


def test_of_a_plan_that_has_begun_the_item_whose_row_has_changed_is_refused_and_the_rest_is_done() -> None:
    lost = books(*TWO_LOST)
    plan = lost.plan()
    killed_at(lost, plan, "producer.begin")
    lost.world.database.update("owner", int(plan.items[0].row_id), amount_minor=1)
    lost.world.database.commit("owner")
    changed = "the ledger row is gone, doubled or changed"
    assert fates(lost.start(plan)) == [("refused", changed), ("published", ""), ("published", "")]
    assert [len(lost.events(item.match_key)) for item in plan.items] == [0, 1, 1]
    assert fates(lost.start(plan))[1:] == 2 * [("already_published", "")]


def test_of_a_plan_that_has_begun_nothing_more_is_done_once_the_contract_forbids_it() -> None:
    lost = books(*LOST)
    plan = lost.plan()
    killed_at(lost, plan, "producer.begin")
    contract = lost.world.contract
    assert contract.compensation is not None
    none_at_all = contract.compensation.model_copy(update={"max_items": 0})
    lost.world.contracts = (contract.model_copy(update={"compensation": none_at_all}),)
    ((fate, reason),) = fates(lost.start(plan))
    assert (fate, reason) == ("refused", "over the cap on the number of events")
    assert lost.events(plan.items[0].match_key) == []


def test_one_plan_that_is_under_way_leaves_its_items_out_of_the_next() -> None:
    lost = books(*LOST)
    plan = lost.plan()
    killed_at(lost, plan, "producer.begin")
    assert lost.plan(saved=False).items == ()
    (left_out,) = lost.plan(saved=False).left_out
    assert left_out.match_key == plan.items[0].match_key


def test_a_plan_of_a_cut_without_a_verdict_is_refused() -> None:
    lost = books(*LOST)
    with pytest.raises(PlanRefused, match=r"^books: cut 9 has no verdict$"):
        draw_plan.draw_plan(lost.store, lost.world.contract, lost.world, cut_n=9)  # type: ignore[arg-type]


def test_a_plan_holds_what_the_runs_up_to_its_cut_have_found_and_nothing_later() -> None:
    lost = books(*LOST)
    drawn = [
        draw_plan.draw_plan(lost.store, lost.world.contract, lost.world, cut_n=n).items  # type: ignore[arg-type]
        for n in (1, 2)
    ]
    assert [len(items) for items in drawn] == [0, 1]


def committed_and_not_recorded(lost: Books) -> tuple[Plan, PartitionLog, int]:
    """The process died once its transaction stood; with the event's log, and where the event is."""
    plan = lost.plan()
    killed_at(lost, plan, "producer.commit answered")
    log = lost.world.broker.partitions[TopicPartition(topic=TOPIC, partition=1)]
    return plan, log, log.end - 2


def test_an_event_that_retention_has_taken_since_was_published_as_its_progress_says() -> None:
    lost = books(*LOST)
    plan, log, _ = committed_and_not_recorded(lost)
    log.retain_from(log.end)
    (outcome,) = lost.start(plan).outcomes
    assert (outcome.fate, outcome.place) == (ActionResult.ALREADY_PUBLISHED, {"topic": TOPIC})
    assert ("progress_read", {"published": 1}) in lost.steps
    assert lost.state(plan) is ActionState.DONE


def test_progress_of_an_event_that_the_whole_log_has_not_got_waits_for_a_person() -> None:
    lost = books(*LOST)
    plan, log, at = committed_and_not_recorded(lost)
    log.truncate_to(at)
    (outcome,) = lost.start(plan).outcomes
    assert (outcome.fate, outcome.waits) == (ActionResult.REFUSED, True)
    doubt = f"its progress says that it was published, and {TOPIC} has all events since and none of it"
    assert doubt in outcome.reason
    assert lost.events(plan.items[0].match_key) == []


def test_what_the_store_has_as_done_is_done_though_neither_log_shows_it_any_more() -> None:
    lost = books(*LOST)
    plan = lost.plan()
    (before,) = lost.start(plan).outcomes
    log = lost.world.broker.partitions[TopicPartition(topic=TOPIC, partition=1)]
    log.retain_from(log.end)
    lost.world.broker.create_topic(PROGRESS.topic, 1)
    (outcome,) = lost.start(plan).outcomes
    assert outcome == replace(before, fate=ActionResult.ALREADY_PUBLISHED)


def test_an_action_whose_progress_may_be_gone_with_its_topic_waits_for_a_person() -> None:
    lost = books(*LOST)
    plan = lost.plan()
    killed_at(lost, plan, "producer.begin")
    lost.world.broker.create_topic(PROGRESS.topic, 1)
    (outcome,) = lost.start(plan).outcomes
    assert (outcome.fate, outcome.waits) == (ActionResult.REFUSED, True)
    place = f"{PROGRESS.topic}[0]"
    assert f"an earlier start has begun it, and {place} was made anew since: its record may be gone" in outcome.reason
    assert outcome.seen == {
        "progress_topic_id": lost.world.broker.partitions[PROGRESS].topic_id,
        "progress_end": 0,
    }
    assert lost.state(plan) is ActionState.WAITING
    (still,) = lost.start(plan).outcomes
    assert (still.reason, still.waits, lost.events(plan.items[0].match_key)) == (outcome.reason, True, [])


def test_an_action_whose_progress_may_have_been_deleted_waits_for_a_person() -> None:
    lost = books(*LOST)
    plan = lost.plan()
    killed_at(lost, plan, "producer.begin")
    log = lost.world.broker.partitions[PROGRESS]
    lost.world.broker.write_plain(PROGRESS, [Record(b"not ours", b"", 1)])
    log.retain_from(log.end)
    (outcome,) = lost.start(plan).outcomes
    assert f"records of {PROGRESS.topic}[0] below 1 were deleted since: its own may be gone" in outcome.reason
    assert outcome.waits


def test_records_of_the_progress_topic_that_are_nobodys_are_audited_and_hinder_nothing() -> None:
    lost = books(*LOST)
    lost.world.broker.create_topic(PROGRESS.topic, 1)
    lost.world.broker.write_plain(PROGRESS, [Record(b"not ours", b"", 1)] * 12)
    assert fates(lost.start(lost.plan())) == [("published", "")]
    strays = {name: lost.detail("progress_not_ours")[name] for name in ("place", "records", "first_offsets")}
    assert strays == {"place": f"{PROGRESS.topic}[0]", "records": 12, "first_offsets": list(range(10))}


def test_a_progress_topic_that_another_executor_holds_is_waited_for() -> None:
    lost = books(*LOST)
    plan = lost.plan()
    lost.world.broker.create_topic(PROGRESS.topic, 1)
    other = lost.world.broker.init("somebody", now_ms=1)
    lost.world.broker.write(other, PROGRESS, [Record(b"k", b"{}", 1)], now_ms=1)
    said = stopped_by(lost, lambda: lost.start(plan), ProgressHeld)
    assert said.startswith(f"topic {PROGRESS.topic}: a transaction that began after our init_transactions holds it")


def test_what_was_begun_in_one_environment_is_not_finished_in_another() -> None:
    lost = books(*LOST)
    plan = lost.plan()
    killed_at(lost, plan, "producer.begin")
    said = stopped_by(lost, lambda: lost.start(plan, environment="other"), PlanRefused)
    assert said == (
        "books: the plan was begun under transactional.id tallystick-compensation-world-books, got "
        "tallystick-compensation-other-books; expected the same TALLYSTICK_ENVIRONMENT to finish it"
    )
    assert lost.state(plan) is ActionState.EXECUTING
    assert fates(lost.start(plan)) == [("published", "")]


def test_an_executor_that_another_start_has_overtaken_publishes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    lost = books(*LOST)
    plan, proved = lost.plan(), publish_repairs.prove_actions

    def overtaken(*given: Any, **named: Any) -> Any:
        proof = proved(*given, **named)
        monkeypatch.setattr(publish_repairs, "prove_actions", proved)
        assert fates(Books(lost.play).start(plan)) == [("published", "")]
        return proof

    monkeypatch.setattr(publish_repairs, "prove_actions", overtaken)
    stopped_by(lost, lambda: lost.start(plan), ExecutorFenced)
    assert [outcome for outcome, *_ in lost.events(plan.items[0].match_key)] == [Outcome.COMMITTED]
    assert lost.state(plan) is ActionState.DONE


# What their owners have corrected meanwhile.

IN_LEDGER = Config(carrier_mode="at_least", posts="negated")
ROW_TWICE = ("window", "trade", ("redeliver", 1, 0), "window", "window")


@pytest.mark.parametrize("own_entry", [True, False], ids=["with his entry", "without"])
def test_a_row_that_an_accountant_has_taken_back_in_his_own_way_is_not_taken_back_again(own_entry: bool) -> None:
    """His system knows no column that names it: the entry is a row of the key, with the other sign."""
    twice = books(*ROW_TWICE, config=IN_LEDGER)
    plan, money = twice.plan(), next(iter(twice.world.truth.rows.values())).money
    if own_entry:
        twice.world.post("accountant", replace(money, amount_minor=-money.amount_minor), by="hand")
        twice.world.database.commit("accountant")
        twice.world.look()
        stopped_by(twice, lambda: twice.start(plan), PlanStale)
        (left_out,) = twice.plan().left_out
        assert (
            left_out.reason
            == "rows of its key differ in money, transaction or leg: one may be a correction or a refund"
        )
    else:
        assert fates(twice.start(plan)) == [("published", "")]
    twice.world.look()
    assert sum(one.money.amount_minor for one in twice.world.truth.rows.values()) == money.amount_minor


@pytest.mark.parametrize(("own_event", "fate"), [(True, "refused"), (False, "published")])
def test_an_event_that_its_producer_has_taken_back_in_its_own_way_is_not_taken_back_again(
    own_event: bool, fate: str
) -> None:
    twice = books(*DOUBLED, config=CONFIG._replace(carrier_mode="at_least"))
    plan, money = twice.plan(), next(iter(twice.world.truth.rows.values())).money
    if own_event:
        twice.play.services.publish("carrier", 2, replace(money, amount_minor=-money.amount_minor), partition=0)
        twice.play.services.end(False, 2, commit=True)
    (outcome,) = twice.start(plan).outcomes
    assert outcome.fate == fate
    assert ("events of its key differ in money" in outcome.reason) == own_event


@pytest.mark.parametrize("amount_minor", [20, -100], ids=["amended", "cancelled"])
def test_an_event_that_was_amended_or_cancelled_before_it_was_posted_is_not_posted(amount_minor: int) -> None:
    lost, plan, money = a_lost_one()
    lost.play.services.publish("app", 0, replace(money, amount_minor=amount_minor), partition=0)
    assert [reason for _, reason in fates(lost.start(plan))] == [
        "events of its key differ in money, transaction or leg: one may amend or cancel another"
    ]
    lost.play.product.window()
    (left_out,) = [one for one in lost.plan().left_out if one.break_id == plan.items[0].break_id]
    assert left_out.reason.startswith("its key has a break duplicate_in_topic_no_idempotence too, of other money")


def test_an_event_that_was_cancelled_is_not_posted_once_the_log_has_forgotten_that() -> None:
    lost, plan, money = a_lost_one()
    other = 1 - int(plan.items[0].posts.rpartition(":")[0].rpartition(":")[2])
    lost.play.services.publish("app", 0, replace(money, amount_minor=-money.amount_minor), partition=other)
    lost.play.product.window()
    log = lost.world.broker.partitions[TopicPartition(topic=TOPIC, partition=other)]
    log.log_start = log.end
    lost.play.product.window()
    assert lost.plan().items == ()


CORRECTED = "an event that amends, cancels or takes it back may have come: offsets were lost before cut "
UNREAD = "the next run reads the rest"


def to_post() -> tuple[Books, Plan, Money, str]:
    return *a_lost_one(), "app"


def to_take_back() -> tuple[Books, Plan, Money, str]:
    twice = books(*DOUBLED, config=CONFIG._replace(carrier_mode="at_least", partitions=3))
    return twice, twice.plan(), next(iter(twice.world.truth.rows.values())).money, "carrier"


def expired_beside(broken: Books, key: str, said: Money, by: str, *, read: bool) -> None:
    """It came on a partition that has no event of this key, and retention has taken that: after a run had read it, or
    unread.
    """
    held = {one.place.partition for one in broken.world.truth.events_of(key)}
    other = min({*range(3)} - held)
    broken.play.services.publish(by, 2, said, partition=other)
    broken.play.services.end(by == "app", 2, commit=True)
    if read:
        broken.play.product.window()
    log = broken.world.broker.partitions[TopicPartition(topic=TOPIC, partition=other)]
    assert log.end > 0
    log.log_start = log.end


@pytest.mark.parametrize("made", [to_post, to_take_back])
@pytest.mark.parametrize("told", ["by a run", "by nobody", "by a person, who closed its cut"])
def test_nothing_is_done_beside_an_event_that_may_correct_it_and_expired_unread(
    made: Callable[[], tuple[Books, Plan, Money, str]], told: str
) -> None:
    """Its event had been cancelled, or its copy taken back by hand; then it was paid, or taken back, once more."""
    broken, plan, money, by = made()
    expired_beside(broken, money.match_key, replace(money, amount_minor=-money.amount_minor), by, read=False)
    if told == "by nobody":
        (fate,) = fates(broken.start(plan))
        assert (fate[0], UNREAD in fate[1]) == ("refused", True)
        return
    if told.startswith("by a person"):
        assert close_unread(broken)
    for _ in range(2):
        broken.play.product.window()
    anew = broken.plan()
    assert anew.items == ()
    assert CORRECTED in str([one.reason for one in anew.left_out if one.match_key == money.match_key])


def close_unread(broken: Books) -> tuple[OffsetRange, ...]:
    """The cluster goes while a run judges its cut, which a person closes. Return what its topics had there."""
    for step in steps_of(("cluster_down", 0, 0, 20), "window", "close_cut", "cluster_down"):
        broken.play.do(step)
    newest = run_functions.last_cut(broken.store, "books")
    closed = run_functions.closed_cuts_before(broken.store, "books", 99)
    assert [cut.n for cut in closed] == [newest and newest.n]
    return tuple(part.offsets for part in closed[0].topic_slices if len(part.offsets))


@pytest.mark.parametrize("made", [to_post, to_take_back])
def test_a_cut_that_was_closed_and_had_nothing_of_the_topics_hinders_no_repair(
    made: Callable[[], tuple[Books, Plan, Money, str]],
) -> None:
    """It was said for ever that offsets were lost, while the log had them all."""
    broken, _, _, _ = made()
    assert close_unread(broken) == ()
    for _ in range(2):
        broken.play.product.window()
    assert fates(broken.start(broken.plan())) == [("published", "")]


@pytest.mark.parametrize("on_its_own", [True, False])
def test_only_what_its_own_topic_has_lost_hinders_the_repair_of_a_copy(on_its_own: bool) -> None:
    doubled = books(*DOUBLED, config=CONFIG._replace(carrier_mode="at_least", legs=2, partitions=3))
    (item,) = doubled.plan().items
    moneys = doubled.play.services.new_payment(3)
    (money,) = [one for one in moneys if (one.leg == item.leg) is on_its_own]
    topic = doubled.world.contract.legs[money.leg]
    held = {log.place.partition for log in doubled.world.broker.logs_of([topic]) if log.end}
    other = min({*range(3)} - held)
    doubled.play.services.publish("carrier", 0, money, partition=other)
    log = doubled.world.broker.partitions[TopicPartition(topic=topic, partition=other)]
    log.log_start = log.end
    for _ in range(2):
        doubled.play.product.window()
    plan = doubled.plan()
    assert len(plan.items) == (not on_its_own)
    assert [CORRECTED in one.reason for one in plan.left_out if one.match_key == item.match_key] == [True] * on_its_own
    assert fates(doubled.start(plan)) == [("published", "")] * (not on_its_own)


@pytest.mark.parametrize("lost", ["while it was held", "before it came"])
@pytest.mark.parametrize("windows", [1, 2, 4])
@pytest.mark.parametrize("kind", ["post", "reverse"])
def test_what_was_lost_while_an_event_was_held_may_have_corrected_it(kind: str, windows: int, lost: str) -> None:
    """Another producer's open transaction kept all runs from it. A payment that was cancelled went out."""
    posts, by = kind == "post", "app" if kind == "post" else "carrier"
    shape = {"posts": "negated", "carrier_mode": "at_most"} if posts else {"carrier_mode": "at_least"}
    direction = "topic_to_ledger" if posts else "ledger_to_topic"
    config = Config(direction=direction, producer_mode="transactional", partitions=3, **shape)
    broken = books("window", config=config)
    services, windows_of = broken.play.services, broken.play.product.window
    (money,) = services.new_payment(5)
    if not posts:
        services.write(True, 1, money, partition=0)
        services.end(True, 1, commit=True)
        services.publish(by, 0, money, partition=2)
        services.end(posts, 0, commit=True)
        windows_of()

    def a_correction_is_lost() -> None:
        services.publish(by, 0, replace(money, amount_minor=-money.amount_minor), partition=1, by="hand")
        services.end(posts, 0, commit=True)
        log = broken.world.broker.partitions[TopicPartition(topic=TOPIC, partition=1)]
        log.log_start = log.end

    if lost == "before it came":
        a_correction_is_lost()
        windows_of()
        windows_of()
    services.publish(by, 1, services.new_payment(7)[0], partition=0)
    services.publish(by, 0, money, partition=0)
    services.end(posts, 0, commit=True)
    if lost == "while it was held":
        a_correction_is_lost()
    for _ in range(windows):
        windows_of()
    services.end(posts, 1, commit=False)
    for _ in range(3):
        windows_of()
    plan = broken.plan()
    if lost == "before it came":
        assert [(str(item.kind), item.match_key) for item in plan.items] == [(kind, money.match_key)]
        assert fates(broken.start(plan)) == [("published", "")]
    else:
        assert plan.items == ()
        assert [CORRECTED in one.reason for one in plan.left_out] == [True]


@pytest.mark.parametrize(("windows", "came"), [(3, True), (3, False), (0, False)])
def test_a_row_of_a_held_event_that_came_in_a_closed_cut_and_was_archived_is_not_posted_again(
    windows: int, came: bool
) -> None:
    """came: in that cut. If not, the event itself came behind it."""
    config = Config(posts="negated", producer_mode="transactional", carrier_mode="at_most", partitions=2)
    lost = books("window", config=config)
    services = lost.play.services

    def an_event() -> Money:
        (money,) = services.new_payment(0)
        services.publish("app", 0, money, partition=0)
        services.end(True, 0, commit=True)
        return money

    if came:
        services.publish("app", 1, services.new_payment(7)[0], partition=0)
    money = an_event() if came else services.new_payment(0)[0]
    services.write(False, 0, money, partition=0)
    services.end(False, 0, commit=True)
    close_unread(lost)
    rows_go(lost)
    lost.play.product.window()
    if not came:
        services.publish("app", 1, services.new_payment(7)[0], partition=0)
        money = an_event()
    for _ in range(windows):
        lost.play.product.window()
    services.end(True, 1, commit=False)
    for _ in range(3):
        lost.play.product.window()
    plan = lost.plan()
    assert [item.match_key for item in plan.items] == [money.match_key] * (not came)
    told = "its row may have come and been archived: nobody has read all rows up to cut 1"
    assert [one.reason.split(";")[0] for one in plan.left_out] == [told] * came
    assert fates(lost.start(plan)) == [("published", "")] * (not came)


@pytest.mark.parametrize("made", [to_post, to_take_back])
@pytest.mark.parametrize("windows", [0, 2])
def test_beside_what_expired_once_a_run_had_read_it_all_is_done(
    made: Callable[[], tuple[Books, Plan, Money, str]], windows: int
) -> None:
    broken, _, money, by = made()
    (other,) = broken.play.services.new_payment(1)
    expired_beside(broken, money.match_key, other, by, read=True)
    for _ in range(windows):
        broken.play.product.window()
    found = {one.match_key: (str(one.fate), one.reason) for one in broken.start(broken.plan()).outcomes}
    assert found[money.match_key] == ("published", "")


@pytest.mark.parametrize("expired", [True, False])
def test_of_many_posts_none_is_written_beside_what_came_and_expired_meanwhile(expired: bool) -> None:
    lost, plan, _ = lost_ones(2)
    log = lost.world.broker.partitions[TopicPartition(topic=TOPIC, partition=1)]
    once = [True]

    def meanwhile(step: str, _: object) -> None:
        if step == "recorded" and once:
            once.clear()
            lost.play.services.publish("app", 0, Money("ev-9-payout", "pay-9", "payout", 1, "EUR"), partition=1)
            log.log_start = log.end if expired else 0

    told = "billing.payouts[1] has lost records that came since this was proven; start the plan again"
    first, second = fates(lost.start(plan, on_progress=meanwhile))
    assert (first, second) == (("published", ""), ("refused", told) if expired else ("published", ""))


def a_lost_one() -> tuple[Books, Plan, Money]:
    """Books whose only event has no row, a plan that would post it, and what it says."""
    return lost_ones(1)


def lost_ones(count: int) -> tuple[Books, Plan, Money]:
    """The same of so many events, and what the last one of the plan says."""
    lost = books("window", config=Config(posts="negated", producer_mode="plain", carrier_mode="at_most"))
    moneys = {}
    for _ in range(count):
        (money,) = lost.play.services.new_payment(0)
        lost.play.services.publish("app", 0, money, partition=0)
        moneys[money.match_key] = money
    for _ in range(2):
        lost.play.product.window()
    plan = lost.plan()
    return lost, plan, moneys[plan.items[-1].match_key]


@pytest.mark.parametrize(
    ("befalls", "reason"),
    [
        ("held", "an open producer transaction"),
        ("unreadable", "a record of its message key"),
        ("cut back", "start the plan again"),
    ],
)
def test_of_many_posts_none_is_written_beside_what_the_first_proof_refuses(befalls: str, reason: str) -> None:
    lost, plan, last = lost_ones(2)
    broker, place = lost.world.broker, TopicPartition(topic=TOPIC, partition=0)
    once = [befalls]

    def meanwhile(step: str, _: object) -> None:
        if step != "recorded" or not once:
            return
        match once.pop():
            case "held":
                broker.write(broker.init("cancels", now_ms=0), place, [Record(b"k", b"{}", 0)], now_ms=0)
            case "unreadable":
                broker.write_plain(place, [Record(last.transaction_key.encode(), b"no JSON", 0)])
            case "cut back":
                log = broker.partitions[place]
                log.truncate_to(log.batches[-1].first)

    first, (fate, said) = fates(lost.start(plan, on_progress=meanwhile))
    assert (first, fate) == (("published", ""), "refused")
    assert reason in said


@pytest.mark.parametrize("cancelled", [True, False])
def test_of_many_posts_one_whose_event_is_cancelled_meanwhile_is_not_written(cancelled: bool) -> None:
    """All are proven at once, and written one after the other."""
    lost, plan, last = lost_ones(2)
    other = Money("ev-9-payout", "pay-9", "payout", 1, "EUR")
    since = [replace(last, amount_minor=-last.amount_minor) if cancelled else other]

    def meanwhile(step: str, _: object) -> None:
        if step == "recorded" and since:
            lost.play.services.publish("app", 0, since.pop(), partition=0)

    first, second = fates(lost.start(plan, on_progress=meanwhile))
    came = "an event of its key has come since this was proven; start the plan again"
    assert (first, second) == (("published", ""), ("refused", came) if cancelled else ("published", ""))


def test_what_a_run_judges_while_posts_are_written_is_proven_again_first() -> None:
    lost, plan, money = a_lost_one()

    def judge(step: str, _: object) -> None:
        if step == "proved":
            lost.play.services.publish("app", 0, replace(money, match_key="ev-9-payout"), partition=0)
            lost.play.product.window()

    assert fates(lost.start(plan, on_progress=judge)) == [
        ("refused", "a run has judged since this was proven; start the plan again")
    ]
    assert fates(lost.start(plan)) == [("published", "")]


@pytest.mark.parametrize("dies", ["behind its commit", "before it"])
def test_a_post_that_an_earlier_start_may_still_commit_is_not_refused_since_a_run_has_judged_meanwhile(
    dies: str,
) -> None:
    """It was called refused, and so written off, and paid once more by hand."""
    lost, plan, _ = a_lost_one()
    again: list[Any] = []

    def judge(step: str, _: object) -> None:
        if step == "proved":
            (other,) = lost.play.services.new_payment(0)
            lost.play.services.publish("app", 0, other, partition=0)
            lost.play.product.window()

    def a_second_one_begins(step: str, _: object) -> None:
        if step == "inserted":
            again.append(fates_or_error(lambda: Books(lost.play).start(plan, on_progress=judge)))
        if step == ("posted" if dies == "behind its commit" else "inserted"):
            raise Killed(step)

    with pytest.raises(Killed):
        lost.start(plan, on_progress=a_second_one_begins)
    assert again == ["ledger: canceling statement due to lock timeout"]
    assert lost.state(plan) is ActionState.EXECUTING
    off = WriteOff(by="dan", reason="refused, so paid by hand", at_utc=lost.world.clock.now)
    with pytest.raises(WriteOffRefused):
        plan_functions.write_off_break(lost.store, "books", str(plan.items[0].break_id), off)
    committed = dies == "behind its commit"
    judged = "a run has judged since this was proven; start the plan again"
    assert fates(lost.start(plan, on_progress=judge)) == [
        ("already_published", "") if committed else ("refused", judged)
    ]
    assert len(lost.world.database.rows) == committed


def fates_or_error(start: Callable[[], Execution]) -> Any:
    try:
        return fates(start())
    except LedgerUnreachable as error:
        return str(error)


@pytest.mark.parametrize("version", [1, 2])
def test_a_plan_that_has_not_begun_is_held_against_the_contract_as_it_is_now(version: int) -> None:
    """It was carried out under the rules of the day on which it was made, while its approver read those of today."""
    doubled = books(*DOUBLED)
    plan, contract = doubled.plan(), doubled.world.contract
    assert contract.compensation is not None
    now = "header" if contract.compensation.reversal == "negated" else "negated"
    edited = contract.compensation.model_copy(update={"reversal": now})
    doubled.world.contracts = (contract.model_copy(update={"compensation": edited, "version": version}),)
    with pytest.raises(PlanStale, match="ask for a new plan"):
        doubled.start(plan)
    assert len(doubled.events(plan.items[0].match_key)) == 2


@pytest.mark.parametrize("action_row_stands", [True, False])
def test_a_post_that_was_reopened_since_its_rows_went_waits_until_its_action_row_goes(action_row_stands: bool) -> None:
    """It was called posted already, and so it was never posted again."""
    lost, plan, _ = a_lost_one()
    action_id = plan.items[0].action_id
    assert fates(lost.start(plan)) == [("published", "")]
    database, action = lost.world.database, lost.store.actions[action_id]
    rows_go(lost)
    action.stored = replace(action.stored, state=ActionState.REFUSED, outcome={"reason": "reopened"}, reopened=1)
    if not action_row_stands:
        del database.actions[action_id]
    (outcome,) = lost.start(plan).outcomes
    assert (outcome.fate, outcome.waits) == (
        (ActionResult.REFUSED, True) if action_row_stands else (ActionResult.PUBLISHED, False)
    )
    assert ("delete the action's row there, then reopen it once more" in outcome.reason) is action_row_stands
    assert len(database.rows) == (0 if action_row_stands else 1)


def rows_go(lost: Books) -> None:
    """Their owner takes out what was posted."""
    (row,) = lost.world.database.rows.values()
    lost.world.database.delete("owner", row.row_id)
    lost.world.database.commit("owner")
    lost.world.look()


def test_a_reopened_post_that_its_earlier_start_commits_while_the_next_one_proves_is_done() -> None:
    """Its row stood, and a person was told that it did not, and to delete the action's row."""
    lost, plan, money = a_lost_one()
    action_id = plan.items[0].action_id
    lost.start(plan)
    rows_go(lost)
    database, action = lost.world.database, lost.store.actions[action_id]
    action.stored = replace(action.stored, state=ActionState.REFUSED, outcome={"reason": "reopened"}, reopened=1)
    del database.actions[action_id]
    killed_at(lost, plan, "poster.commit")

    def it_was_committed(step: str, _: object) -> None:
        if step == "proved":
            lost.world.post("the earlier start", money, by="repair")
            database.commit("the earlier start")
            database.actions[action_id] = plan.plan_hash

    assert fates(lost.start(plan, on_progress=it_was_committed)) == [("already_published", "")]
    assert (len(database.rows), lost.state(plan)) == (1, ActionState.DONE)


@pytest.mark.parametrize(
    ("about", "taken_back"), [({}, 1), ({"transaction_key": "pay-9"}, 0)], ids=["its own", "another"]
)
def test_of_two_rows_of_a_key_that_name_two_payments_none_is_taken_back(about: dict[str, str], taken_back: int) -> None:
    """The second may be what somebody booked to set the first one right."""
    twice = books("window", config=Config(posts="negated", carrier_mode="at_least"))
    (money,) = twice.play.services.new_payment(0)
    twice.play.services.write(True, 0, money, partition=0)
    twice.play.services.end(True, 0, commit=True)
    for said in (replace(money, **about), money):
        twice.play.services.write(False, 0, said, partition=0)
        twice.play.services.end(False, 0, commit=True)
    twice.play.product.window()
    assert len(twice.plan().items) == taken_back


def test_no_row_is_taken_back_while_somebody_deletes_it() -> None:
    twice = books("window", config=Config(posts="negated", carrier_mode="at_least"))
    for step in steps_of(("trade", 1, 5), ("redeliver", 1, 5), "window"):
        twice.play.do(step)
    plan, database = twice.plan(), twice.world.database
    database.delete("owner", int(plan.items[0].row_id))
    held = "not provable now: a database transaction that is open in the ledger may hold a row of it"
    assert fates(twice.start(plan)) == [("refused", held)]
    database.rollback("owner")
    assert fates(twice.start(plan)) == [("published", "")]


@pytest.mark.parametrize("written_off", [True, False])
def test_what_stands_alone_of_a_payment_keeps_the_missing_one_from_being_posted_written_off_or_not(
    written_off: bool,
) -> None:
    """Booked by hand under another key: whoever writes that off must not have it paid once more."""
    lost, _, money = a_lost_one()
    lost.play.services.write(False, 0, replace(money, match_key="by hand"), partition=0, by="hand")
    lost.play.services.end(False, 0, commit=True)
    for _ in range(2):
        lost.play.product.window()
    found = {
        str(one.item_break.break_class): one.item_break for one in run_functions.outstanding_breaks(lost.store, "books")
    }
    if written_off:
        off = WriteOff(by="dan", reason="paid by hand", at_utc=lost.world.clock.now)
        plan_functions.write_off_break(lost.store, "books", str(found["phantom_in_ledger"].break_id), off)
    (left_out,) = [one for one in lost.plan().left_out if one.match_key == money.match_key]
    assert left_out.reason.startswith("a break phantom_in_ledger is about the same transaction")
