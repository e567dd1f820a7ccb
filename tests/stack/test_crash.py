"""The crash matrix: an executor is struck at a step and started again, and each effect stands once.

Cells of each kind of repair: five that a seed draws, and those at which a broken rule of a protocol is aimed, unbroken.
Each broken rule then fails its own cell.
"""

import json
import sys
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from threading import Lock
from typing import Any

import pytest
from confluent_kafka.admin import NewTopic
from sqlalchemy import Engine

from lab.clients import new_admin
from lab.command_line import STEP_BY_STEP, TALLYSTICK
from lab.crash_books import (
    CrashBooks,
    counted_partitions,
    crash_contract,
    create_posted_action,
    events_needed,
    leave_hanging,
)
from lab.crash_plan import EVENTS_PER_PLAN, CrashRound, Fault, Kind, Step, plan_crashes
from lab.crash_run import CrashMatrix
from lab.crash_score import RoundEnd, crash_figures
from lab.desk import Desk
from lab.event import Leg, Payment
from lab.ledger import Ledger
from lab.log_ends import LogEnds, Partition
from lab.mode import DeliveryMode
from lab.namespace import Namespace
from lab.raw_produce import RawProducer
from lab.round_contracts import write_contract
from lab.stack import LabStack
from tallystick.break_class import BreakClass
from tallystick.committed_records import read_committed
from tallystick.connections import KafkaSettings
from tallystick.contract import load_contract
from tallystick.log_fetch import open_admin
from tallystick.open_transactions import read_open_transactions
from tallystick.run_result import Break
from tallystick.store.cut_store import claim_attempt
from tallystick.store.run_store import commit_run
from tallystick.surroundings import SURROUNDINGS, Surroundings
from tallystick.topic_settings import read_broker_settings
from tallystick.topic_snapshot import read_topic_snapshot
from tallystick.verdict import Verdict

from . import broken_executor
from .repairs import all_hanging

BROKEN_EXECUTOR = str(Path(__file__).with_name("broken_executor.py"))

ROUNDS = plan_crashes(55188, 5)
"""A round of each kind: broker, store and ledger are killed, the broker right behind a marker and the ledger behind a
commit that nobody heard of; an answer is lost, and an executor dies in its commit."""

AT_ONCE = 4
CLASSES = {
    Kind.REVERSE: BreakClass.DUPLICATE_IN_TOPIC_NEW_SESSION,
    Kind.POST: BreakClass.MISSING_IN_LEDGER,
}
ONE_AT_A_TIME = Lock()
"""Brokers take what hangs while a setting of all of them is off."""

pytestmark = pytest.mark.timeout(900)


@dataclass(frozen=True)
class Mutation:
    """A rule, and the cell of the matrix that has to notice when it is broken, by what becomes of so many events."""

    rule: Callable[[], None]
    step: Step
    fault: Fault
    becomes: str
    kind: Kind = Kind.REPUBLISH
    events: int = EVENTS_PER_PLAN

    @property
    def cell(self) -> CrashRound:
        return CrashRound(
            name=f"{self.kind} {self.step} {self.fault}",
            kind=self.kind,
            step=self.step,
            fault=self.fault,
            record=1,
            second_at=Step.EVENT_PRODUCED,
        )


MUTATIONS = (
    Mutation(broken_executor.transaction_dropped, Step.BEGUN, Fault.FROZEN, "doubled", Kind.REVERSE),
    Mutation(broken_executor.fresh_transactional_id, Step.BEGUN, Fault.FROZEN, "doubled"),
    Mutation(broken_executor.progress_outside_the_transaction, Step.FLUSHED, Fault.KILLED, "lost"),
    Mutation(broken_executor.progress_read_before_fencing, Step.PROVED, Fault.FROZEN, "doubled"),
    Mutation(broken_executor.error_of_a_partition_ignored, Step.BEGUN, Fault.RECORDS_REFUSED, "lost"),
    Mutation(broken_executor.key_of_the_plan, Step.PUBLISHED, Fault.LOG_EXPIRED, "doubled"),
    Mutation(broken_executor.progress_in_group_offsets, Step.PUBLISHED, Fault.LOG_EXPIRED, "doubled"),
    Mutation(broken_executor.refusal_of_the_overtaken, Step.FENCED, Fault.OVERTAKEN, "mistold"),
    Mutation(broken_executor.key_of_the_plan, Step.INSERTED, Fault.PLANNED_AGAIN, "doubled", Kind.POST, events=1),
    Mutation(broken_executor.post_without_a_key, Step.INSERTED, Fault.OVERTAKEN, "doubled", Kind.POST, events=1),
    Mutation(broken_executor.evidence_not_kept, Step.MARKED, Fault.KILLED, "without_evidence", Kind.ABORT),
    Mutation(broken_executor.second_look_left_out, Step.EVIDENCE_KEPT, Fault.RETURNED, "mistold", Kind.ABORT, events=1),
)
AIMED = tuple(dict.fromkeys(one.cell for one in MUTATIONS))

Play = Callable[..., list[RoundEnd]]


@pytest.fixture
def play(stack: LabStack, store: Engine, store_dsn: str, books: Any, tmp_path: Path) -> Play:
    """Play rounds, one after the other, on books of their own."""

    def play_rounds(*rounds: CrashRound, launcher: Sequence[str] = STEP_BY_STEP) -> list[RoundEnd]:
        folder = tmp_path / f"c{uuid.uuid4().hex[:12]}"
        needed = {kind: events_needed(rounds, kind) for kind in Kind}
        crash_books = {
            kind: found(stack, store, type(books), folder, kind, events=events)
            for kind, events in needed.items()
            if events
        }

        def judge(one: CrashBooks) -> None:
            """A literal run that has read the topic up to its end."""
            contract = load_contract(one.contract_file)
            topic = contract.topics[0]
            runs = type(books)(contract, topic_id_of(stack, topic), partitions=one.names.partitions[topic])
            cut = runs.cut(3, topic_end=1_000_000)
            runs.save(store, cut)
            commit_run(store, runs.result(3), attempt=claim_attempt(store, cut.contract, 3), alerts=())

        matrix = CrashMatrix(replace(stack, store_dsn=store_dsn), crash_books, folder, launcher=launcher, judge=judge)
        ends = matrix.count_again([matrix.play(one) for one in rounds])
        print(matrix.log_tail)  # shown where a test fails
        return ends

    return play_rounds


def found(stack: LabStack, store: Engine, new_runs: Any, folder: Path, kind: Kind, *, events: int) -> CrashBooks:
    """Books whose run 1 has found so many events to repair; the runs are literal."""
    names = Namespace(f"{folder.name}_{kind}")
    contract_file = write_contract(folder, crash_contract(kind, names.name))
    contract = load_contract(contract_file)
    admin, topic = new_admin(stack.bootstrap_servers), contract.topics[0]
    admin.create_topics([NewTopic(topic, num_partitions=names.partitions[topic])])[topic].result()
    LogEnds(admin).wait_until_served([place for place in names.places if place[0] == topic])
    runs = new_runs(contract, topic_id_of(stack, topic), partitions=names.partitions[topic])
    with Desk.open(stack, names.name, "relay", folder.name) as desk:
        Ledger(names).create(desk.connection, DeliveryMode.AT_LEAST_ONCE)
        paid = [desk.payment() for _ in range(events)]
        hung, breaks, around = go_wrong(stack, desk, runs, kind, paid)
    items = tuple(runs.item(one, n=1) for one in breaks)
    runs.commit(store, runs.result(0))
    first, second = runs.result(1, verdict=Verdict.BROKEN, breaks=breaks, items=items), runs.result(2)
    runs.commit(store, replace(first, look_ups={"surroundings": around}))
    runs.commit(store, replace(second, look_ups={"surroundings": around}))
    return CrashBooks(
        contract_file=contract_file,
        names=names,
        partitions=counted_partitions(kind, names),
        cut_n=1,
        later_cut_n=2,
        hung=hung,
    )


def go_wrong(
    stack: LabStack, desk: Desk, runs: Any, kind: Kind, paid: Sequence[Payment]
) -> tuple[Mapping[int, RawProducer], tuple[Break, ...], Any]:
    """Write what there is to repair, and say it as a run would: what hangs, the breaks, and what stood around."""
    leg = Leg.PAYOUT if kind in (Kind.REPUBLISH, Kind.REVERSE) else Leg.PAYMENT
    events = [payment.event(leg) for payment in paid]
    found = [
        replace(
            runs.missing(str(event.event_id), amount_minor=event.payment.amount_minor, currency=event.payment.currency),
            transaction_key=str(event.payment.payment_id),
        )
        for event in events
    ]
    if kind is Kind.ABORT:
        with ONE_AT_A_TIME:
            hung = leave_hanging(stack, desk.names, *events)
        return hung, (), surroundings(stack, runs)
    if kind in (Kind.REPUBLISH, Kind.REVERSE):
        for payment in paid:
            desk.add_payout(payment)
    if kind is Kind.POST:
        create_posted_action(stack, desk.names)
        desk.publish(*events)
    if kind is Kind.REVERSE:
        desk.publish(*events)
        desk.publish(*events)
    if kind is not Kind.REPUBLISH:
        of_kind, at = CLASSES[kind], places(stack, counted_partitions(kind, desk.names))
        found = [replace(one, break_class=of_kind, evidence={"at": at[one.match_key]}) for one in found]
    return {}, tuple(found), SURROUNDINGS.dump_python(Surroundings(), mode="json")


def topic_id_of(stack: LabStack, topic: str) -> str:
    with open_admin(KafkaSettings({"bootstrap.servers": stack.bootstrap_servers})) as admin:
        (topic_id,) = {part.topic_id for part in read_topic_snapshot(admin, [topic])}
    return topic_id


def places(stack: LabStack, partitions: Sequence[Partition]) -> dict[str, str]:
    """Where the newest copy of each event stands."""
    LogEnds(new_admin(stack.bootstrap_servers)).wait_until_decided(partitions)
    kafka = KafkaSettings({"bootstrap.servers": stack.bootstrap_servers})
    with open_admin(kafka) as admin:
        parts = read_topic_snapshot(admin, {topic for topic, _ in partitions})
    return {
        json.loads(record.value)["event_id"]: f"topic:{record.topic}:{record.partition}:{record.kafka_offset}"
        for record in read_committed(kafka, parts)
    }


def surroundings(stack: LabStack, runs: Any) -> Any:
    """What hangs, as a run says it that has seen it first two hours before, which no time-out outlasts."""
    with open_admin(KafkaSettings({"bootstrap.servers": stack.bootstrap_servers})) as admin:
        settings = read_broker_settings(admin)
        hanging = read_open_transactions(
            admin, [part.topic_partition for part in read_topic_snapshot(admin, runs.contract.topics)]
        )
    around = all_hanging(hanging, settings, first_seen_utc=runs.cut(1).now_utc - timedelta(hours=2))
    return SURROUNDINGS.dump_python(around, mode="json")


def test_each_event_stands_once_whatever_is_struck(play: Play) -> None:
    ends = play(*ROUNDS)
    assert {one.fault for one in ROUNDS} >= {
        Fault.BROKER_KILLED,
        Fault.STORE_KILLED,
        Fault.LEDGER_KILLED,
        Fault.ANSWER_LOST,
    }
    assert {one.kind for one in ROUNDS} == set(Kind)
    figures = crash_figures(ends)
    assert figures["differs"] == []
    refused = sum(one.may_refuse for one in ROUNDS)
    assert (figures["exactly_once"], figures["refused"]) == (len(ROUNDS) * EVENTS_PER_PLAN - refused, refused)


def test_each_broken_rule_is_noticed_by_the_cell_aimed_at_it_and_each_cell_passes_unbroken(play: Play) -> None:
    def play_broken(mutation: Mutation) -> list[RoundEnd]:
        return play(mutation.cell, launcher=(sys.executable, BROKEN_EXECUTOR, mutation.rule.__name__, TALLYSTICK))

    with ThreadPoolExecutor(AT_ONCE) as pool:
        unbroken, broken = pool.map(play, AIMED), pool.map(play_broken, MUTATIONS)
        right, wrong = [end for (end,) in unbroken], [end for (end,) in broken]
    assert crash_figures(right)["differs"] == []
    assert [end.counts["exactly_once"] for end in right] == [
        one.plans * EVENTS_PER_PLAN - one.may_refuse for one in AIMED
    ]
    assert {one.rule.__name__ for one in MUTATIONS} == set(broken_executor.RULES)
    assert [end.counts[one.becomes] for one, end in zip(MUTATIONS, wrong, strict=True)] == [
        one.events for one in MUTATIONS
    ]
    assert all(end.differs for end in wrong)
