"""Each missing event is published once, whatever is killed, repeated or run twice. Counted by a reader of its own.

One file, since each case makes one plan on the same servers and counts with the same reader.
"""

import json
import os
import signal
import uuid
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from sqlalchemy import text
from typer.testing import CliRunner, Result

from lab.crash.server_faults import StruckServers
from lab.faults.swollen_batch import ZSTD, produce_batch, swollen_batch
from lab.faults.topic_configs import configure_topic
from lab.rounds.second_person import SecondPerson
from lab.services.event import Leg
from lab.services.kafka_clients import new_admin
from lab.services.raw_producer import open_raw_admin
from tallystick.cli.app import app
from tallystick.compensation.approval_rules import machine_of
from tallystick.compensation.caps import refuse_over_caps
from tallystick.compensation.kill_switch import ActingStopped, OutsideActingHours, SwitchSetting
from tallystick.compensation.plan import CapsExceeded, CompensationOff, DailyUsage, OnePersonOnly, PlanStale
from tallystick.compensation.repair_effect import RepairEffect
from tallystick.contract.change import ContractChangeRefused
from tallystick.contract.contract import Contract
from tallystick.executor import progress_topic, prove_repairs, publish_repairs
from tallystick.executor.draw_plan import draw_plan
from tallystick.executor.effects.action_log import ActionResult
from tallystick.executor.effects.publish_events import (
    OutgoingRecord,
    TransactionAborted,
    open_publisher,
    publish_together,
)
from tallystick.executor.effects.step import ExecutorStep
from tallystick.executor.progress_topic import ProgressLost, progress_topic_name
from tallystick.executor.verify_plan import verify_and_keep, verify_plan
from tallystick.host.terminal_user import AT_TERMINAL, Terminal, this_terminal
from tallystick.model.finding_names import Doubt
from tallystick.model.open_item import ItemState
from tallystick.model.verdict import Verdict
from tallystick.store.plans.approval_store import REJECTED, requesters
from tallystick.store.plans.claim_store import claim_actions
from tallystick.store.plans.plan_store import (
    append_audit,
    open_actions,
    read_audit,
    read_plan,
    record_done,
    record_refusal,
    save_plan,
)
from tallystick.store.plans.switch_store import set_switch
from tallystick.store.runs.outstanding_store import outstanding_breaks

from .payout_world import NOON, Books, once, world
from .repairs import agree, delete_progress_topic

__all__ = ["world"]  # a fixture


def test_missing_events_are_published_again_once(world: Books) -> None:
    rows = world.pay(3)
    world.find_missing(rows)
    plan = world.plan()
    done = world.execute(plan)
    assert done.count(ActionResult.PUBLISHED) == 3
    assert world.copies() == once(rows)
    assert world.states() == {"done": 3}
    assert verify_plan(world.contract, plan, world.connections).verdict is Verdict.MATCHED


def test_a_republished_event_is_the_original_down_to_its_partition(world: Books) -> None:
    rows = world.pay(8)
    world.find_missing(rows)
    world.execute(world.plan())
    made = {record.key: record for record in world.records()}
    for row in rows:
        world.publish(row.event)
    original = {record.key: record for record in world.records() if not record.headers}
    assert len(made) == len(original) == 8
    for key, record in made.items():
        assert json.loads(record.value) == json.loads(original[key].value)
        assert record.partition == original[key].partition
        assert [name for name, _ in record.headers] == ["tallystick-action-id", "session"]


def test_the_trail_says_who_approved_what_and_what_came_of_it(world: Books) -> None:
    rows = world.pay(1)
    world.find_missing(rows)
    plan = world.plan()
    world.execute(plan)
    trail = read_audit(world.store, world.contract.name, plan_id=plan.plan_id)
    assert [entry.event for entry in trail] == [
        "planned",
        "approved",
        "executing",
        "publishing",
        "published",
        "published",
        "finished",
    ]
    assert [entry.actor for entry in trail] == ["ada", *["bob"] * 6]
    assert {entry.detail["plan_hash"] for entry in trail} == {plan.plan_hash}
    (record,) = world.records()
    (action,) = open_actions(world.store, world.contract.name).values()
    assert action.outcome == {"topic": world.topic, "partition": record.partition, "offset": record.offset}


def test_executing_a_plan_again_publishes_nothing_more(world: Books) -> None:
    rows = world.pay(3)
    world.find_missing(rows)
    plan = world.plan()
    world.execute(plan)
    again = world.execute(plan)
    assert again.count(ActionResult.ALREADY_PUBLISHED) == 3
    assert world.copies() == once(rows)
    assert [world.events().count(event) for event in ("approved", "publishing", "finished")] == [2, 1, 2]


def test_two_executors_at_once_have_one_effect_and_each_its_own_trail(world: Books) -> None:
    rows = world.pay(3)
    world.find_missing(rows)
    plan = world.plan()
    with ThreadPoolExecutor(2) as pool:
        ends = [pool.submit(world.execute, plan) for _ in range(2)]
        failed = [type(error).__name__ for end in ends if (error := end.exception())]
    assert set(failed) <= {"ExecutorFenced", "TransactionAborted"}
    world.execute(plan)
    assert world.copies() == once(rows)
    assert world.states() == {"done": 3}
    assert world.events().count("approved") == 3
    assert world.events().count("finished") + world.events().count("stopped") == 3


def test_above_the_limit_a_second_person_has_to_agree_who_is_known(world: Books) -> None:
    """Bob carries it out, and asked for it too; nobody else's name is believed before it stands in the trail."""
    world.contract = without_limit(world.contract)
    rows = world.pay(2)
    world.find_missing(rows)
    plan = world.plan()
    save_plan(world.store, plan, requested_by="Bob", terminal=Terminal(os_user="robert", host="desk"))
    for who in ("bob", "Robert"):
        agree(world, plan, who)
        with pytest.raises(OnePersonOnly, match=r"it moves 2\.01 EUR.*expected the approval of somebody else"):
            world.execute(plan)
    agree(world, plan, "grace")
    no = {"plan_hash": plan.plan_hash}
    append_audit(world.store, plan.contract, plan_id=plan.plan_id, actor="eve", event=REJECTED, detail=no)
    with pytest.raises(OnePersonOnly):
        world.execute(plan)
    assert world.copies() == Counter()
    agree(world, plan, "grace")
    world.execute(plan)
    assert world.copies() == once(rows)


def test_above_the_limit_what_the_reconciliation_asked_for_needs_two_people_who_agree(world: Books) -> None:
    """Its name is no person's, and one person's name in other letters is no second one."""
    world.contract = without_limit(world.contract)
    rows = world.pay(1)
    world.find_missing(rows)
    plan = draw_plan(world.store, world.contract, world.connections, cut_n=1, dry_run=False)
    save_plan(world.store, plan, requested_by=machine_of(plan.contract), scheduler_run_id="cut_1")
    assert requesters(world.store, plan) == frozenset()
    agree(world, plan, "grace")
    agree(world, plan, "Grace ")
    with pytest.raises(OnePersonOnly, match=r"nobody asked for it.*expected the approval of two people"):
        world.execute(plan)
    assert world.copies() == Counter()
    agree(world, plan, "eve")
    world.execute(plan)
    assert world.copies() == once(rows)
    save_plan(world.store, plan, requested_by="Ada")
    assert requesters(world.store, plan) == {"Ada"}


def without_limit(contract: Contract) -> Contract:
    assert contract.compensation is not None
    rules = contract.compensation.model_copy(update={"four_eyes_above_minor": {}})
    return contract.model_copy(update={"compensation": rules})


def test_a_plan_of_what_was_repaired_is_empty(world: Books) -> None:
    world.find_missing(world.pay(2))
    world.execute(world.plan())
    again = world.plan()
    assert (again.items, {one.reason for one in again.left_out}) == ((), {"another plan has it"})


def test_a_plan_is_stale_once_a_later_run_doubts_the_log(world: Books) -> None:
    world.find_missing(world.pay(1))
    plan = world.plan()
    world.runs.commit(world.store, world.runs.result(2, verdict=Verdict.INCONCLUSIVE, doubts=(Doubt.LOG_REWRITTEN,)))
    with pytest.raises(PlanStale, match="ask for a new plan"):
        world.execute(plan)
    assert world.copies() == Counter()
    assert world.events() == ["planned", "approved", "stopped"]


@pytest.mark.parametrize("die_at", ["after the first event", "before commit", "in commit", "after commit"])
def test_an_executor_killed_at_any_step_is_finished_by_the_next(world: Books, die_at: str) -> None:
    rows = world.pay(3)
    world.find_missing(rows)
    plan = world.plan()
    with world.start_executor(plan, die_at=die_at) as killed:
        assert killed.wait(60) == -signal.SIGKILL, killed.stderr.read() if killed.stderr else ""
    assert world.states() == {"executing": 3}
    world.execute(plan)
    assert world.copies() == once(rows)
    assert world.states() == {"done": 3}
    places = [set(action.outcome) for action in open_actions(world.store, world.contract.name).values()]
    assert places == [{"topic", "partition", "offset"}] * 3


@pytest.mark.parametrize("die_at", ["stop before the first event", "stop before commit"])
def test_an_executor_that_wakes_up_behind_another_is_fenced(world: Books, die_at: str) -> None:
    rows = world.pay(3)
    world.find_missing(rows)
    plan = world.plan()
    with world.start_executor(plan, die_at=die_at) as stopped:
        os.waitpid(stopped.pid, os.WUNTRACED)
        assert world.execute(plan).count(ActionResult.PUBLISHED) == 3
        stopped.send_signal(signal.SIGCONT)
        _, complaint = stopped.communicate(timeout=60)
    assert "tallystick.executor.effects.publish_events.ExecutorFenced" in complaint.splitlines()[-1], complaint
    assert world.copies() == once(rows)
    assert world.states() == {"done": 3}


def test_a_transaction_that_kafka_cannot_take_is_aborted_whole_and_tried_again(
    world: Books, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publish_repairs, "_ATTEMPTS", 2)
    rows = world.pay(3)
    world.find_missing(rows)
    plan = world.plan()
    with StruckServers(world.stack).refusing_events([(world.topic, 0)]):
        with pytest.raises(TransactionAborted):
            world.execute(plan)
        assert world.events().count("publishing") == 2
        assert world.copies() == Counter()
        assert world.states() == {"executing": 3}
    assert world.execute(plan).count(ActionResult.PUBLISHED) == 3
    assert world.copies() == once(rows)


@pytest.mark.parametrize("answered", [0, 1, 2, 3])
def test_a_record_that_is_refused_aborts_whichever_is_handed_over_when_the_answer_comes(
    world: Books, answered: int
) -> None:
    """answered: so many records are handed over by then; with 0 none of them is waited for."""
    records = [OutgoingRecord(topic=world.topic, key=b"k", value=b"v" * 400) for _ in range(3)]
    transactional_id = f"refused-{uuid.uuid4()}"

    def publish() -> list[int]:
        producer = open_publisher(world.connections.kafka, transactional_id=transactional_id)

        def wait_for_answers(step: ExecutorStep, figures: Mapping[str, Any]) -> None:
            if step is ExecutorStep.PRODUCED and figures["record"] == answered:
                producer.flush()

        return [int(place["offset"]) for place in publish_together(producer, records, on_progress=wait_for_answers)]

    refusing = StruckServers(world.stack).refusing_events([(world.topic, 0)])
    with refusing, pytest.raises(TransactionAborted, match=r"\[\d\]: Broker: Message size too large"):
        publish()
    first, second, third = publish()
    assert first < second < third


@pytest.mark.parametrize("limit", [None, 1_000], ids=["the topic's", "the connection's"])
def test_how_large_a_record_may_be_is_said_by_the_topic_or_by_the_connection(world: Books, limit: int | None) -> None:
    admin = new_admin(world.stack.bootstrap_servers)
    configure_topic(admin, world.topic, {"max.message.bytes": str(4 << 20)}, deadline_seconds=30)
    kafka = world.connections.kafka
    if limit:
        kafka = replace(kafka, settings={**kafka.settings, "message.max.bytes": str(limit)})
    publisher = open_publisher(kafka, transactional_id=f"large-{uuid.uuid4()}")
    large = OutgoingRecord(topic=world.topic, key=b"k", value=b"v" * (3 << 19))
    if limit:
        with pytest.raises(TransactionAborted, match="Message size too large"):
            publish_together(publisher, [large])
    else:
        (place,) = publish_together(publisher, [large])
        assert place["topic"] == world.topic
    small = replace(large, value=b"v")
    assert len(publish_together(publisher, [small, small])) == 2


def test_when_the_stores_outcome_is_lost_progress_decides(world: Books) -> None:
    rows = world.pay(3)
    world.find_missing(rows)
    plan = world.plan()
    world.execute(plan)
    world.forget_actions()
    assert world.execute(plan).count(ActionResult.ALREADY_PUBLISHED) == 3
    assert world.copies() == once(rows)
    assert world.states() == {"done": 3}


def test_when_retention_took_the_event_progress_decides(world: Books) -> None:
    rows = world.pay(3)
    world.find_missing(rows)
    plan = world.plan()
    world.execute(plan)
    world.expire()
    world.forget_actions()
    assert world.execute(plan).count(ActionResult.ALREADY_PUBLISHED) == 3
    assert world.copies() == Counter()


def test_when_outcome_and_progress_are_lost_the_log_decides(world: Books) -> None:
    rows = world.pay(3)
    world.find_missing(rows)
    plan = world.plan()
    world.execute(plan)
    delete_progress_topic(world)
    world.forget_actions()
    assert world.execute(plan).count(ActionResult.ALREADY_PUBLISHED) == 3
    assert world.copies() == once(rows)


def test_a_progress_topic_that_forgets_is_refused(world: Books) -> None:
    world.find_missing(world.pay(1))
    name = progress_topic_name(world.contract.name)
    admin = AdminClient({"bootstrap.servers": world.stack.bootstrap_servers})
    admin.create_topics([NewTopic(name, num_partitions=1, config={"cleanup.policy": "delete"})])[name].result()
    with pytest.raises(ProgressLost, match=r"cleanup\.policy is 'delete', expected 'compact'"):
        world.execute(world.plan())
    assert world.copies() == Counter()


def test_a_broker_that_has_not_heard_of_the_new_progress_topic_is_asked_again(
    world: Books, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = [KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART))] * 2
    read_settings = progress_topic._read_settings

    def hears_late(*arguments: Any) -> dict[str, str]:
        if answers:
            raise answers.pop()
        return read_settings(*arguments)

    monkeypatch.setattr(progress_topic, "_read_settings", hears_late)
    rows = world.pay(1)
    world.find_missing(rows)
    world.execute(world.plan())
    assert (answers, world.copies()) == ([], once(rows))


def test_another_hash_than_the_approved_one_is_refused(world: Books) -> None:
    world.find_missing(world.pay(1))
    with pytest.raises(PlanStale, match="approved was 0000"):
        world.execute(world.plan(), approved_hash="0000")
    assert world.copies() == Counter()
    assert world.events() == ["planned", "approved", "stopped"]


def test_a_plan_is_stale_once_the_reconciler_has_cleared_one_of_its_breaks(world: Books) -> None:
    rows = world.pay(2)
    world.find_missing(rows)
    plan = world.plan()
    cleared = outstanding_breaks(world.store, world.contract.name)[0].item_break
    item = world.runs.item(cleared, n=2, state=ItemState.CLEARED)
    world.runs.commit(world.store, world.runs.result(2, items=(item,)))
    with pytest.raises(PlanStale, match="today's plan is"):
        world.execute(plan)
    assert world.copies() == Counter()


def test_a_plan_is_not_stale_because_a_later_run_found_more(world: Books) -> None:
    rows = world.pay(2)
    world.find_missing(rows[:1])
    plan = world.plan()
    world.find_missing(rows[1:], n=2)
    assert world.execute(plan).count(ActionResult.PUBLISHED) == 1
    assert world.copies() == once(rows[:1])
    assert [item.match_key for item in world.plan(cut_n=2).items] == [str(rows[1].event.event_id)]


def test_a_plan_that_was_never_stored_is_refused(world: Books) -> None:
    world.find_missing(world.pay(1))
    plan = draw_plan(world.store, world.contract, world.connections, cut_n=1, dry_run=False)
    with pytest.raises(PlanStale, match="was never stored"):
        world.execute(plan)


def test_a_stored_plan_comes_back_as_it_was(world: Books) -> None:
    world.find_missing(world.pay(12))
    plan = world.plan()
    assert (len(plan.items), len(plan.left_out)) == (10, 2)
    assert read_plan(world.store, plan.plan_id) == plan
    assert read_plan(world.store, uuid.uuid4()) is None


def test_taking_compensation_out_of_the_contract_stops_an_approved_plan(world: Books) -> None:
    world.find_missing(world.pay(1))
    off = world.contract.model_copy(update={"compensation": None})
    with pytest.raises(CompensationOff):
        world.execute(world.plan(), contract=off)
    assert world.copies() == Counter()


def test_a_contract_of_another_meaning_plans_nothing_and_stops_an_approved_plan_also_half_way(world: Books) -> None:
    world.find_missing(world.pay(2))
    plan = world.plan()
    event = world.contract.event.model_copy(update={"match_key": "payment_id"})
    other = world.contract.model_copy(update={"event": event})
    with pytest.raises(ContractChangeRefused, match=r"event\.match_key"):
        draw_plan(world.store, other, world.connections, cut_n=1)
    with world.start_executor(plan, die_at="before commit") as killed:
        killed.wait(60)
    with pytest.raises(ContractChangeRefused, match=r"event\.match_key"):
        world.execute(plan, contract=other)
    assert world.events()[-1] == "stopped"
    assert world.states() == {"executing": 2}
    world.execute(plan, contract=world.contract.model_copy(update={"owner": "others"}))
    assert set(world.copies().values()) == {1}


def test_a_cap_that_was_lowered_stops_an_approved_plan_also_half_way(world: Books) -> None:
    world.find_missing(world.pay(2))
    plan = world.plan()
    with world.start_executor(plan, die_at="before commit") as killed:
        killed.wait(60)
    assert world.contract.compensation is not None
    rules = world.contract.compensation.model_copy(update={"max_items": 1})
    lowered = world.contract.model_copy(update={"compensation": rules})
    assert {one.fate for one in world.execute(plan, contract=lowered).outcomes} == {ActionResult.REFUSED}
    assert world.events()[-3:] == ["refused", "refused", "finished"]
    assert (world.copies(), world.states()) == (Counter(), {"refused": 2})
    with pytest.raises(CapsExceeded):
        world.execute(plan, contract=lowered)


def with_rules(contract: Contract, **rules: Any) -> Contract:
    document = contract.model_dump(mode="json", exclude_defaults=True)
    return Contract.model_validate(document | {"compensation": document["compensation"] | rules})


def test_a_days_cap_holds_over_plans_and_between_executors(world: Books) -> None:
    world.contract = with_rules(world.contract, max_items_per_day=3, max_amount_minor_per_day={"EUR": 10_000})
    rows = world.pay(4)
    world.find_missing(rows[:2])
    first = world.plan()
    world.find_missing(rows[2:], n=2)
    both = world.plan(cut_n=2)
    assert [len(both.items), both.left_out[0].reason] == [3, "over the day's cap on the number of events"]
    world.execute(first)
    rest = world.plan(cut_n=2)
    assert len(rest.items) == 1
    assert rest.items[0].match_key in once(rows[2:])
    with pytest.raises(CapsExceeded, match="over the day's cap"):
        world.execute(both)
    with pytest.raises(CapsExceeded, match="over the day's cap"):
        claim_actions(
            world.store,
            both,
            both.items,
            executor="late",
            outcome={},
            allow=lambda actions, spent: refuse_over_caps(world.contract, both, spent=spent),
        )
    world.execute(rest)
    assert world.copies() == once(rows[:2]) + Counter([rest.items[0].match_key])
    with world.store.begin() as connection:
        connection.execute(
            text("update tallystick.compensation_action set recorded_at = recorded_at - interval '1 day'")
        )
    assert len(world.plan(cut_n=2).items) == 1


def test_outside_the_contracts_minutes_an_approved_plan_waits_for_them(world: Books) -> None:
    world.contract = with_rules(world.contract, acting_minutes="* 6-17 * * *")
    rows = world.pay(1)
    world.find_missing(rows)
    plan = world.plan()
    with pytest.raises(OutsideActingHours):
        world.execute(plan, now=lambda: NOON.replace(hour=18))
    assert (world.copies(), world.states()) == (Counter(), Counter())
    assert world.events() == ["planned", "approved", "stopped"]
    world.execute(plan, now=lambda: NOON)
    assert world.copies() == once(rows)


def test_a_switch_thrown_in_the_middle_of_a_plan_keeps_what_was_committed_and_does_no_more(
    world: Books, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publish_repairs, "_TOGETHER", 1)
    publish = publish_repairs._publish_batch

    def turn(contract: str | None, *, stopped: bool) -> None:
        setting = SwitchSetting(contract=contract, stopped=stopped, by="eve", because="wait", at_utc=NOON)
        set_switch(world.store, setting)

    def then_stop(*arguments: Any) -> Any:
        done = publish(*arguments)
        turn(None, stopped=True)
        return done

    monkeypatch.setattr(publish_repairs, "_publish_batch", then_stop)
    rows = world.pay(3)
    world.find_missing(rows)
    plan = world.plan()
    with pytest.raises(ActingStopped, match="eve stopped all compensations"):
        world.execute(plan)
    assert sum(world.copies().values()) == 1
    assert world.states() == {"done": 1, "refused": 2}
    assert world.events() == [
        "planned", "approved", "executing", "publishing", "published", "published", "refused", "refused", "stopped"
    ]  # fmt: skip
    monkeypatch.setattr(publish_repairs, "_publish_batch", publish)
    with pytest.raises(ActingStopped):
        world.execute(plan)
    turn(world.contract.name, stopped=True)
    turn(None, stopped=False)
    with pytest.raises(ActingStopped, match=f"stopped the compensations of {world.contract.name}"):
        world.execute(plan)
    turn(world.contract.name, stopped=False)
    world.execute(plan)
    assert world.copies() == once(rows)
    assert world.states() == {"done": 3}


def test_by_the_command_line_one_asks_another_approves_and_either_can_stop_it(
    world: Books, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.contract = without_limit(world.contract)
    file = tmp_path / "contract.yaml"
    file.write_text(world.contract.model_dump_json(exclude_defaults=True))
    monkeypatch.setenv("TALLYSTICK_STORE_DSN", world.store_dsn)
    monkeypatch.setenv(
        "TALLYSTICK_CONN_KAFKA_BILLING", json.dumps({"bootstrap.servers": world.stack.bootstrap_servers})
    )
    monkeypatch.setenv("TALLYSTICK_CONN_LEDGER_BILLING", world.stack.ledger_reader_dsn)

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(app, ["compensation", *arguments])

    second = SecondPerson(tmp_path)
    for name, value in second.environment.items():
        monkeypatch.setenv(name, value)
    rows = world.pay(2)
    world.find_missing(rows)
    shown = run("plan", str(file))
    assert (shown.exit_code, world.events()) == (0, [])
    assert "Dry run, nothing is published: would publish 2 events again" in shown.stdout
    plan_hash = json.loads(run("plan", str(file), "--by", "ada", "--json").stdout)["plan_hash"]
    assert "was never kept" in run("execute", str(file), "0000", "--by", "bob").stderr
    alone = run("execute", str(file), plan_hash, "--by", "bob").stderr
    assert f"ada, {this_terminal().os_user} asked for it, nobody agreed" in alone
    assert "no cut of it is stored" in run("stop", "payots", "--by", "eve", "--reason", "wait").stderr
    assert run("stop", "--by", "eve", "--reason", "wait").exit_code == 0
    sheet = tmp_path / "sheet.json"
    sheet.write_text(run("sheet", str(file), plan_hash).stdout)
    unsigned = run("execute", str(file), plan_hash, "--by", "bob", "--approval", str(sheet))
    assert (unsigned.exit_code, "sheet.json.sig: No such file" in unsigned.stderr) == (2, True)
    second.sign(sheet)
    asked = ("execute", str(file), plan_hash, "--by", "bob", "--approval", str(sheet))
    stopped = run(*asked)
    assert (stopped.exit_code, "eve stopped all compensations" in stopped.stderr) == (2, True)
    assert world.copies() == Counter()
    assert run("allow", "--by", "eve", "--reason", "go on").exit_code == 0
    done = run(*asked)
    assert (done.exit_code, done.stdout.count(": published, cleared.")) == (0, 2), done.stderr
    assert world.copies() == once(rows)
    assert [entry.event for entry in read_audit(world.store, "*")] == ["acting_stopped", "acting_allowed"]
    here = this_terminal().as_json()
    at_desk = {entry.event for entry in read_audit(world.store, world.contract.name) if AT_TERMINAL in entry.detail}
    assert at_desk == {"planned", "agreed", "approved"}
    (kept,) = {entry.actor for entry in read_audit(world.store, world.contract.name) if entry.event == "agreed"}
    assert (kept, read_audit(world.store, "*")[0].detail[AT_TERMINAL]) == ("grace", here)


def test_an_event_that_came_meanwhile_is_not_published_again(world: Books) -> None:
    rows = world.pay(2)
    world.find_missing(rows)
    plan = world.plan()
    world.publish(rows[0].event)
    done = {outcome.match_key: outcome for outcome in world.execute(plan).outcomes}
    arrived = done[str(rows[0].event.event_id)]
    assert (arrived.fate, arrived.reason.split(":")[0]) == (ActionResult.REFUSED, "the event stands")
    assert world.copies() == once(rows)
    assert verify_plan(world.contract, plan, world.connections).verdict is Verdict.MATCHED


def test_what_an_open_transaction_may_hide_is_refused_for_now(world: Books, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prove_repairs, "SETTLE_SECONDS", 0.3)
    rows = world.pay(2)
    world.find_missing(rows)
    plan = world.plan()
    relay = world.publish(rows[0].event, transactional_id=f"relay-{world.names.name}")
    refused = world.execute(plan)
    assert {outcome.reason for outcome in refused.outcomes} == {
        f"not provable now: an open producer transaction holds {world.topic}"
    }
    assert world.states() == {"refused": 2}
    assert verify_plan(world.contract, plan, world.connections).verdict is Verdict.INCONCLUSIVE
    relay.commit_transaction()
    monkeypatch.undo()
    world.execute(plan)
    assert world.copies() == once(rows)
    assert world.states() == {"refused": 1, "done": 1}


def test_an_absence_behind_an_unreadable_record_of_the_same_key_is_not_provable(world: Books) -> None:
    rows = world.pay(2)
    world.find_missing(rows)
    producer = Producer({"bootstrap.servers": world.stack.bootstrap_servers})
    producer.produce(world.topic, key=rows[0].event.message_key, value=b"\xff not JSON")
    producer.flush()
    done = {outcome.match_key: outcome for outcome in world.execute(world.plan()).outcomes}
    assert "is unreadable" in done[str(rows[0].event.event_id)].reason
    assert done[str(rows[1].event.event_id)].fate is ActionResult.PUBLISHED


@pytest.mark.parametrize("moment", ["infinity", "-infinity", "0044-03-15 BC", "12026-01-01"])
def test_a_row_of_a_moment_that_no_calendar_of_python_has_is_repaired_like_any_other(world: Books, moment: str) -> None:
    rows = world.pay(2)
    with world.ledger as connection:
        table, key = world.contract.ledger.table, str(rows[0].event.event_id)
        connection.execute(f"UPDATE {table} SET occurred_at = %s WHERE event_id = %s", [moment, key])
    world.find_missing(rows)
    assert world.execute(world.plan()).count(ActionResult.PUBLISHED) == 2
    assert world.copies() == once(rows)


def test_no_absence_is_provable_beside_a_batch_that_nobody_gets_to_read(world: Books) -> None:
    rows = world.pay(1)
    world.find_missing(rows)
    plan = world.plan()
    with open_raw_admin(world.stack.bootstrap_servers) as admin:
        offset = produce_batch(admin, world.topic, 0, swollen_batch(ZSTD, 1 << 30))
    (outcome,) = world.execute(plan).outcomes
    assert outcome.fate is ActionResult.REFUSED
    assert f"not provable: any event may stand in {world.topic}[0] at {offset}, where its batch of" in outcome.reason


def test_an_event_that_only_an_aborted_transaction_wrote_is_published(world: Books) -> None:
    rows = world.pay(1)
    world.find_missing(rows)
    relay = world.publish(rows[0].event, transactional_id=f"relay-{world.names.name}")
    relay.abort_transaction()
    assert world.execute(world.plan()).count(ActionResult.PUBLISHED) == 1
    assert world.copies() == once(rows)


def test_a_ledger_row_that_changed_after_the_executor_began_is_not_published(world: Books) -> None:
    rows = world.pay(2)
    world.find_missing(rows)
    plan = world.plan()
    with world.start_executor(plan, die_at="before commit") as killed:
        killed.wait(60)
    with world.ledger as connection:
        change = f"update {world.names.schema}.payout set amount_minor = 99 where entry_id = %s"
        connection.execute(change, (rows[0].entry_id,))
    done = {outcome.match_key: outcome for outcome in world.execute(plan).outcomes}
    assert done[str(rows[0].event.event_id)].reason == "the ledger row is gone, doubled or changed"
    assert world.copies() == once(rows[1:])


def test_a_ledger_row_that_changed_before_makes_the_plan_stale(world: Books) -> None:
    rows = world.pay(1)
    world.find_missing(rows)
    plan = world.plan()
    with world.ledger as connection:
        connection.execute(f"update {world.names.schema}.payout set amount_minor = 99")
    with pytest.raises(PlanStale):
        world.execute(plan)


def test_of_two_plans_of_one_break_the_second_is_stale(world: Books) -> None:
    rows = world.pay(2)
    world.find_missing(rows[:1])
    first = world.plan()
    world.find_missing(rows[1:], n=2)
    second = world.plan(cut_n=2)
    assert len(second.items) == 2
    world.execute(first)
    with pytest.raises(PlanStale):
        world.execute(second)
    third = world.plan(cut_n=2)
    assert [one.reason for one in third.left_out] == ["another plan has it"]
    world.execute(third)
    assert world.copies() == once(rows)


def test_a_dry_run_proves_everything_and_publishes_nothing(world: Books) -> None:
    rows = world.pay(2)
    world.find_missing(rows)
    plan = world.plan(dry_run=True)
    world.publish(rows[0].event)
    done = {outcome.match_key: outcome.fate for outcome in world.execute(plan).outcomes}
    assert done == {
        str(rows[0].event.event_id): ActionResult.REFUSED,
        str(rows[1].event.event_id): ActionResult.WOULD_PUBLISH,
    }
    assert world.copies() == once(rows[:1])
    assert world.states() == Counter()
    topics = AdminClient({"bootstrap.servers": world.stack.bootstrap_servers}).list_topics().topics
    assert progress_topic_name(world.contract.name) not in topics
    assert world.events() == ["planned", "approved", "finished"]


def test_verifying_sees_a_second_copy_and_a_missing_one(world: Books) -> None:
    rows = world.pay(2)
    world.find_missing(rows)
    plan = world.plan()
    missing = verify_plan(world.contract, plan, world.connections)
    assert [check.verdict for check in missing.checks] == [Verdict.BROKEN, Verdict.BROKEN]
    world.execute(plan)
    world.publish(rows[0].event)
    verified = verify_plan(world.contract, plan, world.connections)
    assert verified.verdict is Verdict.BROKEN
    copies = {check.match_key: len(check.places) for check in verified.checks}
    assert copies == {str(rows[0].event.event_id): 2, str(rows[1].event.event_id): 1}


def test_verifying_sees_a_row_or_an_event_that_says_something_else_now(world: Books) -> None:
    rows = world.pay(4)
    world.find_missing(rows)
    plan = world.plan()
    other = replace(rows[0].payment, amount_minor=9_999).event(Leg.PAYOUT)
    world.publish(other)
    assert world.execute(plan).count(ActionResult.REFUSED) == 1
    with world.ledger as connection:
        change = f"update {world.names.schema}.payout set {{}} where entry_id = %s"
        connection.execute(change.format("amount_minor = 1"), (rows[1].entry_id,))
        connection.execute(change.format("sent = true"), (rows[2].entry_id,))
    result = verify_and_keep(world.store, world.contract, plan, world.connections, actor="bob")
    effects = {check.match_key: check.effect for check in result.checks}
    assert effects == dict(
        zip(
            [str(row.event.event_id) for row in rows],
            [RepairEffect.CHANGED, RepairEffect.CHANGED, RepairEffect.CLEARED, RepairEffect.CLEARED],
            strict=True,
        )
    )
    kept = read_audit(world.store, world.contract.name, plan_id=plan.plan_id)[-1]
    assert (kept.event, kept.actor, kept.detail["verdict"]) == ("verified", "bob", "BROKEN")
    assert kept.detail["effects"] == {str(item.action_id): effects[item.match_key] for item in plan.items}


def test_verifying_a_plan_without_items_proves_nothing(world: Books) -> None:
    world.find_missing([])
    assert verify_plan(world.contract, world.plan(), world.connections).verdict is Verdict.INCONCLUSIVE


def test_an_action_that_is_done_stays_done(world: Books) -> None:
    world.find_missing(world.pay(1))
    plan = world.plan()
    world.execute(plan)
    (item,) = plan.items
    assert not record_refusal(world.store, item.action_id, executor="late", outcome={"reason": "late"})
    assert world.states() == {"done": 1}


def anything(actions: object, spent: DailyUsage) -> None:
    """No caps."""


def test_only_the_start_that_has_claimed_an_action_last_may_refuse_it(world: Books) -> None:
    world.find_missing(world.pay(1))
    plan = world.plan()
    (item,) = plan.items
    for start in ("first", "second"):
        claim_actions(
            world.store, plan, plan.items, executor=start, outcome={"progress_topic_id": "topic-1"}, allow=anything
        )
    assert not record_refusal(world.store, item.action_id, executor="first", outcome={"reason": "held"})
    assert world.states() == {"executing": 1}
    assert record_refusal(world.store, item.action_id, executor="second", outcome={"reason": "held"})
    assert world.states() == {"refused": 1}
    record_done(world.store, item.action_id, outcome={"topic": world.topic})
    assert world.states() == {"done": 1}
