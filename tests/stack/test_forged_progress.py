"""Whoever may write the progress topic, the business topic or the ledger's table of actions can make a person look, and
no more: nothing is done, published or stopped by what they write or delete.

One file, since each forgery is tried in the same world of one begun plan.
"""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from confluent_kafka import OFFSET_END, KafkaError, Producer
from confluent_kafka import TopicPartition as ConfluentPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType
from sqlalchemy import text
from typer.testing import CliRunner, Result

from lab.rounds.second_person import SecondPerson
from lab.servers.process import wait_until
from lab.services.event import Leg
from lab.services.ledger import PayoutRow
from tallystick.cli.app import app
from tallystick.compensation.plan import Plan, PlanItem
from tallystick.compensation.progress_record import action_of_key, progress_record
from tallystick.compensation.write_off import WriteOffRefused
from tallystick.executor.effects.action_log import LOOK, ActionResult, ItemOutcome
from tallystick.executor.progress_topic import ensure_progress_topic, progress_topic_name
from tallystick.host.terminal_user import AT_TERMINAL, this_terminal
from tallystick.kafka_log.committed_records import CommittedRecord, read_committed
from tallystick.kafka_log.fetch import open_admin
from tallystick.kafka_log.record import ACTION_HEADER
from tallystick.kafka_log.topic_snapshot import read_topic_snapshot
from tallystick.model.open_item import ItemState, WriteOff
from tallystick.store.breaks.write_off_store import write_off_break
from tallystick.store.plans.executor_key_store import read_executor_key
from tallystick.store.plans.plan_store import executed_actions, open_actions, read_audit, record_done
from tallystick.store.plans.reopen_store import ReopenRefused, reopen_action
from tallystick.store.runs.outstanding_store import outstanding_breaks

from .payout_world import NOON, Books, once, world
from .repairs import delete_progress_topic

__all__ = ["world"]  # a fixture

DEEP = b'{"zz":' + b"[" * 50_000 + b"]" * 50_000 + b"}"
VALUES = (None, b"", b"hello", b"{}", b"[]", b"null", b"\xff\xfe", DEEP)


def unsealed(plan: Plan, topic: str = "anything") -> bytes:
    """As release 0.1.0 wrote it, and as anybody may."""
    return json.dumps({"plan_id": str(plan.plan_id), "plan_hash": plan.plan_hash, "topic": topic}).encode()


def sealed(world: Books, plan: Plan, item: PlanItem, *, reopened: int = 0) -> bytes:
    return progress_record(read_executor_key(world.store), plan, item, reopened=reopened)[1]


def write(world: Books, topic: str, key: bytes, value: bytes | None, **how: Any) -> int:
    """Give the record's offset."""
    producer = Producer({"bootstrap.servers": world.stack.bootstrap_servers, "partitioner": "murmur2_random"})
    offsets: list[int] = []
    producer.produce(topic, key=key, value=value, on_delivery=lambda _, sent: offsets.append(sent.offset()), **how)
    producer.flush()
    return offsets[0]


def write_progress(world: Books, key: UUID | bytes, value: bytes | None) -> int:
    as_key = key if isinstance(key, bytes) else str(key).encode()
    return write(world, progress_topic_name(world.contract.name), as_key, value)


def delete_progress(world: Books, *, before: int = OFFSET_END) -> None:
    """Kafka deletes no records of a topic that is only compacted, so whoever does it has to set that too."""
    name = progress_topic_name(world.contract.name)
    admin = AdminClient({"bootstrap.servers": world.stack.bootstrap_servers})

    def set_policy(policy: str) -> None:
        entry = ConfigEntry("cleanup.policy", policy, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, name, incremental_configs=[entry])
        admin.incremental_alter_configs([resource])[resource].result()
        asked = ConfigResource(ResourceType.TOPIC, name)
        wait_until(
            lambda: admin.describe_configs([asked])[asked].result()["cleanup.policy"].value == policy,
            what=f"{name} to have cleanup.policy {policy}",
        )

    def is_deleted() -> bool:
        (deleted,) = admin.delete_records([ConfluentPartition(name, 0, before)]).values()
        error = deleted.exception()
        if (
            error is not None and error.args[0].code() != KafkaError.POLICY_VIOLATION
        ):  # its log has the old policy still
            raise error
        return error is None

    set_policy("compact,delete")
    wait_until(is_deleted, what=f"records of {name} to be deleted")
    set_policy("compact")


def committed(world: Books, name: str) -> list[CommittedRecord]:
    with open_admin(world.connections.kafka) as admin:
        return list(read_committed(world.connections.kafka, read_topic_snapshot(admin, [name])))


def compact_up_to(world: Books, name: str, kafka_offset: int) -> None:
    """Have the cleaner at work until the record at this offset is gone, and then no more."""
    admin = AdminClient({"bootstrap.servers": world.stack.bootstrap_servers})

    def set_to(**settings: str) -> None:
        entries = [
            ConfigEntry(setting.replace("_", "."), value, incremental_operation=AlterConfigOpType.SET)
            for setting, value in settings.items()
        ]
        resource = ConfigResource(ResourceType.TOPIC, name, incremental_configs=entries)
        admin.incremental_alter_configs([resource])[resource].result()

    def is_gone() -> bool:
        write_progress(world, b"closes the segment before it", b"x")
        return kafka_offset not in {one.kafka_offset for one in committed(world, name)}

    set_to(min_cleanable_dirty_ratio="0.0", segment_ms="100", max_compaction_lag_ms="100")
    wait_until(is_gone, what=f"the cleaner of {name}", every_seconds=0.5)
    set_to(min_cleanable_dirty_ratio="0.5", segment_ms="604800000", max_compaction_lag_ms=str(2**63 - 1))


def outcomes(world: Books, plan: Plan, **how: Any) -> dict[str, ItemOutcome]:
    return {one.match_key: one for one in world.execute(plan, **how).outcomes}


def key_of(row: PayoutRow) -> str:
    return str(row.event.event_id)


def items_of(plan: Plan) -> Mapping[str, PlanItem]:
    return {item.match_key: item for item in plan.items}


def killed_after_commit(world: Books, plan: Plan) -> None:
    """Its events and records stand, the store does not know; retention has taken the events."""
    with world.start_executor(plan, die_at="after commit") as killed:
        killed.wait(60)
    world.expire()


def reopen(world: Books, item: PlanItem) -> None:
    reopen_action(world.store, world.contract.name, item.action_id, by="eve", reason="nothing was paid, case 7")


def test_whatever_stands_under_an_actions_key_makes_a_person_look_at_that_one_alone(world: Books) -> None:
    world.contract = world.contract.model_copy(
        update={"compensation": world.contract.compensation.model_copy(update={"max_items": 20})}
    )
    rows = world.pay(len(VALUES) + 3)
    world.find_missing(rows)
    plan = world.plan()
    ensure_progress_topic(world.connections.kafka, world.contract.name)
    items = [items_of(plan)[key_of(row)] for row in rows]
    forged = [*VALUES, unsealed(plan), sealed(world, plan, items[0])]
    name = progress_topic_name(world.contract.name)
    offsets = [write_progress(world, item.action_id, value) for item, value in zip(items, forged, strict=False)]
    stray = write_progress(world, b"\xff\xfe", b"hello")
    for _ in range(2):
        told = outcomes(world, plan)
        honest = told.pop(key_of(rows[-1]))
        assert honest.fate in (ActionResult.PUBLISHED, ActionResult.ALREADY_PUBLISHED)
        assert {one.fate for one in told.values()} == {ActionResult.REFUSED}
        for row, offset in zip(rows[:-1], offsets, strict=True):
            reason = told[key_of(row)].reason
            assert reason.startswith(f"{LOOK}: {name}[0] at {offset} has the action's key and "), reason
        assert world.copies() == once(rows[-1:])
        assert world.states() == {"waiting": len(forged), "done": 1}
    trail = read_audit(world.store, world.contract.name, plan_id=plan.plan_id)
    assert [entry.detail["first_offsets"] for entry in trail if entry.event == "progress_not_ours"] == [[stray]] * 2
    assert [entry.event for entry in trail].count("refused") == 2 * len(forged)
    assert {one.reason for one in world.plan().left_out} == {"another plan has it"}
    write_off = WriteOff(by="Carol", reason="paid by hand", at_utc=NOON)
    with pytest.raises(WriteOffRefused, match=f"tallystick compensation reopen CONTRACT_FILE {items[0].action_id}"):
        write_off_break(world.store, world.contract.name, str(items[0].break_id), write_off)


def test_a_record_of_ours_counts_whatever_was_written_behind_it_and_its_loss_is_seen(world: Books) -> None:
    """Compaction leaves of a key its newest record; here all before that is deleted, and the store forgets again."""
    rows = world.pay(4)
    world.find_missing(rows[:3])
    plan = world.plan()
    killed_after_commit(world, plan)
    a, b, c = (items_of(plan)[key_of(row)] for row in rows[:3])
    forged = write_progress(world, a.action_id, unsealed(plan))
    begun = "update tallystick.compensation_action set state = 'executing', outcome = cast(:outcome as jsonb)"
    outcome = open_actions(world.store, world.contract.name)[a.action_id].outcome
    assert world.execute(plan).count(ActionResult.ALREADY_PUBLISHED) == 3
    with world.store.begin() as connection:
        connection.execute(text(begun), {"outcome": json.dumps(dict(outcome))})
    delete_progress(world, before=forged)
    told = outcomes(world, plan)
    name = progress_topic_name(world.contract.name)
    assert f"{LOOK}: {name}[0] at {forged} has the action's key and no seal" in told[a.match_key].reason
    for item in (b, c):
        assert f"records of {name}[0] below {forged} were deleted since" in told[item.match_key].reason
    assert (world.copies(), world.states()) == (Counter(), {"waiting": 3})
    world.find_missing(rows[3:], n=2)
    assert [one.fate for one in world.execute(world.plan(cut_n=2)).outcomes] == [ActionResult.PUBLISHED]
    assert world.copies() == once(rows[3:])


def test_a_batch_that_nobody_reads_may_be_all_that_compaction_left_of_a_record_of_ours(world: Books) -> None:
    """It has the action's key, so the cleaner takes what stood before; nobody sees the key, since it swells."""
    rows = world.pay(3)
    world.find_missing(rows[:2])
    plan = world.plan()
    killed_after_commit(world, plan)
    name = progress_topic_name(world.contract.name)
    a, b = (items_of(plan)[key_of(row)] for row in rows[:2])
    sealed_at = {action_of_key(one.key): one.kafka_offset for one in committed(world, name)}
    producer = Producer({"bootstrap.servers": world.stack.bootstrap_servers, "compression.codec": "zstd"})
    producer.produce(name, key=str(a.action_id), value=bytes(900_000))
    producer.flush()
    compact_up_to(world, name, sealed_at[a.action_id])
    told = outcomes(world, plan)
    assert f"{LOOK}: an earlier start has begun it, and its record may be hidden" in told[a.match_key].reason
    assert told[b.match_key].fate is ActionResult.ALREADY_PUBLISHED
    assert (world.copies(), world.states()) == (Counter(), {"waiting": 1, "done": 1})
    world.find_missing(rows[2:], n=2)
    assert [one.fate for one in world.execute(world.plan(cut_n=2)).outcomes] == [ActionResult.PUBLISHED]
    assert world.copies() == once(rows[2:])


def test_a_copy_of_a_sealed_record_whose_transaction_was_aborted_proves_nothing_while_the_log_tells(
    world: Books,
) -> None:
    rows = world.pay(2)
    world.find_missing(rows)
    plan = world.plan()
    with world.start_executor(plan, die_at="before commit") as killed:
        killed.wait(60)
    copied = items_of(plan)[key_of(rows[0])]
    write_progress(world, copied.action_id, sealed(world, plan, copied))
    told = outcomes(world, plan)
    doubt = f"{LOOK}: its progress says that it was published, and {world.topic} has all events since and none of it"
    assert told[copied.match_key].reason.startswith(doubt)
    assert told[key_of(rows[1])].fate is ActionResult.PUBLISHED
    assert world.copies() == once(rows[1:])
    reopen(world, copied)
    assert world.execute(plan).count(ActionResult.PUBLISHED) == 1
    assert (world.copies(), world.states()) == (once(rows), {"done": 2})


def test_a_truncated_progress_topic_holds_up_only_what_was_begun_before(world: Books) -> None:
    rows = world.pay(2)
    world.find_missing(rows[:1])
    world.execute(world.plan())
    delete_progress(world)
    world.find_missing(rows[1:], n=2)
    plan = world.plan(cut_n=2)
    with world.start_executor(plan, die_at="before commit") as killed:
        killed.wait(60)
    assert [one.fate for one in world.execute(plan).outcomes] == [ActionResult.PUBLISHED]
    assert world.copies() == once(rows)


def test_a_deletion_from_a_progress_topic_of_before_stays_to_be_seen_from_now_on(world: Books) -> None:
    name = progress_topic_name(world.contract.name)
    admin = AdminClient({"bootstrap.servers": world.stack.bootstrap_servers})
    admin.create_topics([NewTopic(name, num_partitions=1, config={"cleanup.policy": "compact", "retention.ms": "-1"})])[
        name
    ].result()
    ensure_progress_topic(world.connections.kafka, world.contract.name)
    resource, century_ms = ConfigResource(ResourceType.TOPIC, name), 100 * 365 * 86_400_000
    wait_until(
        lambda: int(admin.describe_configs([resource])[resource].result()["delete.retention.ms"].value) == century_ms,
        what="deletions to be kept",
    )


@pytest.mark.parametrize("on_log", [True, False])
def test_a_progress_topic_that_was_made_anew_holds_up_only_what_was_begun_with_the_old_one(
    world: Books, on_log: bool
) -> None:
    rows = world.pay(2)
    world.find_missing(rows[:1])
    plan = world.plan()
    with world.start_executor(plan, die_at="after commit") as killed:
        killed.wait(60)
    if not on_log:
        world.expire()
    delete_progress_topic(world)
    for _ in range(2):
        (told,) = world.execute(plan).outcomes
        if on_log:
            assert (told.fate, world.states()) == (ActionResult.ALREADY_PUBLISHED, {"done": 1})
        else:
            assert (told.fate, world.states()) == (ActionResult.REFUSED, {"waiting": 1})
            assert f"{LOOK}: an earlier start has begun it, and " in told.reason
    world.find_missing(rows[1:], n=2)
    assert [one.fate for one in world.execute(world.plan(cut_n=2)).outcomes] == [ActionResult.PUBLISHED]
    assert world.copies() == once(rows if on_log else rows[1:])


def test_an_event_with_our_header_that_says_something_else_is_neither_ours_nor_a_reason_to_pay(world: Books) -> None:
    rows = world.pay(3)
    world.find_missing(rows)
    plan = world.plan()
    items = [items_of(plan)[key_of(row)] for row in rows]
    changed = replace(rows[0].payment, amount_minor=1).event(Leg.PAYOUT)
    headers = [{ACTION_HEADER: str(item.action_id).encode()} for item in items]
    offset = write(world, world.topic, changed.message_key, changed.to_value(), headers=headers[0], partition=0)
    write(world, world.topic, rows[1].event.message_key, rows[1].event.to_value(), headers=headers[1])
    told = outcomes(world, plan)
    assert [told[key_of(row)].fate for row in rows] == [
        ActionResult.REFUSED,
        ActionResult.ALREADY_PUBLISHED,  # it says what ours would: the money was paid, once
        ActionResult.PUBLISHED,
    ]
    doubt = f"{LOOK}: {world.topic}[0] at {offset} has the action's header and does not say what the plan says"
    assert told[key_of(rows[0])].reason.startswith(doubt)
    assert (world.copies(), world.states()) == (once(rows), {"waiting": 1, "done": 2})


def test_records_of_before_seals_count_where_the_store_says_the_same(world: Books) -> None:
    """What release 0.1.0 had done is done; what it had begun is, if its event stands; else a person has to look."""
    rows = world.pay(2)
    world.find_missing(rows)
    plan = world.plan()
    world.execute(plan)
    for item in plan.items:
        write_progress(world, item.action_id, unsealed(plan, item.topic))
    delete_progress(world, before=3)
    first = items_of(plan)[key_of(rows[0])]
    with world.store.begin() as connection:
        begun = text("update tallystick.compensation_action set state = 'executing' where action_id = :one")
        connection.execute(begun, {"one": first.action_id})
    assert world.execute(plan).count(ActionResult.ALREADY_PUBLISHED) == 2
    world.expire()
    assert world.execute(plan).count(ActionResult.ALREADY_PUBLISHED) == 2
    with world.store.begin() as connection:
        connection.execute(begun, {"one": first.action_id})
    told = outcomes(world, plan)
    assert "no seal of an executor, as anybody may write it, and release 0.1.0 did" in told[first.match_key].reason
    assert (world.copies(), world.states()) == (Counter(), {"waiting": 1, "done": 1})


@pytest.mark.parametrize("late", [False, True])
def test_a_reopened_action_is_done_once_by_the_next_plan_unless_a_record_comes_late(world: Books, late: bool) -> None:
    rows = world.pay(1)
    world.find_missing(rows)
    plan = world.plan()
    (item,) = plan.items
    ensure_progress_topic(world.connections.kafka, world.contract.name)
    write_progress(world, item.action_id, b"hello")
    world.execute(plan)
    reopen(world, item)
    assert world.states() == {"refused": 1}
    if late:  # of an executor that everybody took for dead: nobody has looked at this one
        offset = write_progress(world, item.action_id, sealed(world, plan, item))
        (again,) = world.execute(world.plan()).outcomes
        assert (again.fate, f"[0] at {offset} has the action's key" in again.reason) == (ActionResult.REFUSED, True)
        assert (world.copies(), world.states()) == (Counter(), {"waiting": 1})
        reopen(world, item)
    assert [one.fate for one in world.execute(world.plan()).outcomes] == [ActionResult.PUBLISHED]
    world.expire()
    with world.store.begin() as connection:
        connection.execute(text("update tallystick.compensation_action set state = 'executing'"))
    assert [one.fate for one in world.execute(plan).outcomes] == [ActionResult.ALREADY_PUBLISHED]
    assert (world.copies(), world.states()) == (Counter(), {"done": 1})


def test_what_a_forged_record_had_made_done_before_is_reopened_by_a_person(world: Books) -> None:
    rows = world.pay(2)
    world.find_missing(rows)
    plan = world.plan()
    with world.start_executor(plan, die_at="before commit") as killed:
        killed.wait(60)
    a, b = plan.items
    with pytest.raises(ReopenRefused, match="was begun and has not ended"):
        reopen(world, a)
    write_progress(world, a.action_id, unsealed(plan))
    with world.store.begin() as connection:
        done = "update tallystick.compensation_action set state = 'done', outcome = '{}' where action_id = :a"
        connection.execute(text(done), {"a": a.action_id})
    first = {one.match_key: one.fate for one in world.execute(plan).outcomes}
    assert first == {a.match_key: ActionResult.ALREADY_PUBLISHED, b.match_key: ActionResult.PUBLISHED}
    reopen(world, a)
    record_done(world.store, a.action_id, outcome={})  # by a start that had claimed it before
    with pytest.raises(ReopenRefused, match="was refused, so the next plan may take its break already"):
        reopen(world, a)
    with pytest.raises(ReopenRefused, match="no plan of it has begun action"):
        reopen_action(world.store, "another", b.action_id, by="eve", reason="mistyped")
    assert a.action_id not in open_actions(world.store, world.contract.name)
    (item,) = world.plan().items
    assert item.action_id == a.action_id
    assert world.execute(world.plan()).count(ActionResult.PUBLISHED) == 1
    assert (world.copies(), world.states()) == (once(rows), {"done": 2})
    (line,) = (one for one in read_audit(world.store, world.contract.name) if one.event == "reopened")
    assert (line.actor, line.detail["was"], line.detail["reason"]) == ("eve", "done", "nothing was paid, case 7")
    assert executed_actions(world.store, world.contract.name)[a.break_id].known_utc > line.recorded_at
    cleared = world.runs.item(outstanding_breaks(world.store, world.contract.name)[0].item_break, n=2)
    world.runs.commit(world.store, world.runs.result(2, items=(replace(cleared, state=ItemState.CLEARED),)))
    gone = a if a.match_key == cleared.match_key else b
    with pytest.raises(ReopenRefused, match=f"break {gone.break_id} is not outstanding any more"):
        reopen(world, gone)


def test_what_was_signed_before_an_action_was_reopened_reopens_it_no_second_time(world: Books) -> None:
    """Two commands may read one sheet at once, and the action be done again between them."""
    world.find_missing(world.pay(1))
    plan = world.plan()
    world.execute(plan)
    (item,) = plan.items
    asked = {"by": "ada", "reason": "it was forged", "before": 0}
    assert reopen_action(world.store, world.contract.name, item.action_id, **asked).times == 1
    record_done(world.store, item.action_id, outcome={}, reopened=1)
    with pytest.raises(ReopenRefused, match="was reopened 1 times by now; expected 0"):
        reopen_action(world.store, world.contract.name, item.action_id, **asked)
    assert reopen_action(world.store, world.contract.name, item.action_id, **asked | {"before": 1}).times == 2


def test_two_people_reopen_an_action_on_the_command_line(
    world: Books, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = world.pay(1)
    world.find_missing(rows)
    plan = world.plan()
    action_id = plan.items[0].action_id
    ensure_progress_topic(world.connections.kafka, world.contract.name)
    write_progress(world, action_id, b"hello")
    world.execute(plan)
    assert world.states() == {"waiting": 1}
    file, sheet, second = tmp_path / "contract.yaml", tmp_path / "sheet.json", SecondPerson(tmp_path)
    file.write_text(world.contract.model_dump_json(exclude_defaults=True))
    for name, value in (second.environment | {"TALLYSTICK_STORE_DSN": world.store_dsn}).items():
        monkeypatch.setenv(name, value)

    def reopened(by: str = "ada", reason: str = "it was forged", *more: str, action: UUID = action_id) -> Result:
        asked = ("reopen", str(file), str(action), "--by", by, "--reason", reason, *more)
        return CliRunner().invoke(app, ["compensation", *asked])

    def signed(*asked: str) -> tuple[str, str]:
        sheet.write_text(reopened(*asked).stdout)
        second.sign(sheet)
        return "--approval", str(sheet)

    alone = reopened("grace", "it was forged", *signed("grace"))
    assert (alone.exit_code, "expected the signature of somebody else" in alone.stderr) == (2, True), alone.stderr
    other = reopened("ada", "another reason", *signed())
    assert (other.exit_code, "does not say what would be done now" in other.stderr) == (2, True)
    unknown = reopened(action=plan.plan_id)
    assert (unknown.exit_code, "no action that is done or waits" in unknown.stderr) == (2, True)
    assert world.states() == {"waiting": 1}
    done = reopened("ada", "it was forged", *signed())
    assert (done.exit_code, done.stdout.startswith(f"action {action_id}: reopened, was waiting")) == (0, True)
    assert reopened("ada", "it was forged", "--approval", str(sheet)).exit_code == 2
    (entry,) = [one for one in read_audit(world.store, world.contract.name) if one.event == "reopened"]
    assert (entry.actor, entry.detail["agreed"], entry.detail[AT_TERMINAL]) == (
        "ada",
        "grace",
        this_terminal().as_json(),
    )
    world.execute(world.plan())
    assert world.copies() == once(rows)
