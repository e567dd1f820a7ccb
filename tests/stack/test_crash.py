"""The crash matrix: an executor is struck at a step and started again, and each effect stands once.

Cells of each kind of repair: a few, and those at which a broken rule of a protocol is aimed, unbroken.
Each broken rule then fails its own cell.
"""

import json
import sys
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from threading import Lock
from typing import Any

import pytest
from confluent_kafka.admin import NewTopic
from sqlalchemy import Engine

from lab.crash.books import (
    CrashBooks,
    by_match_key,
    counted_partitions,
    events_needed,
    leave_hanging,
    leg_of,
    prepare_posting,
    rounds_of,
    write_contracts,
)
from lab.crash.plan import EVENTS_PER_PLAN, CrashFault, CrashRound, PlanKind, Step
from lab.crash.run import CrashMatrix
from lab.crash.score import RoundEnd, crash_figures
from lab.product.command_line import STEP_BY_STEP, TALLYSTICK
from lab.servers.log_ends import LogEnds, Partition
from lab.servers.stack import LabStack
from lab.services.delivery_mode import DeliveryMode
from lab.services.event import Payment
from lab.services.kafka_clients import new_admin
from lab.services.ledger import Ledger
from lab.services.namespace import Namespace
from lab.services.raw_producer import RawProducer
from lab.services.workload import Workload
from tallystick.connections.connections import KafkaSettings
from tallystick.contract.contract import load_contract
from tallystick.kafka_cluster.open_transactions import read_open_transactions
from tallystick.kafka_cluster.settings import read_broker_settings
from tallystick.kafka_cluster.state import CLUSTER_STATE, ClusterState
from tallystick.kafka_log.committed_records import read_committed
from tallystick.kafka_log.fetch import open_admin
from tallystick.kafka_log.topic_snapshot import read_topic_snapshot
from tallystick.model.finding_names import BreakClass
from tallystick.model.findings import Break
from tallystick.model.open_item import ItemState
from tallystick.model.verdict import Verdict
from tallystick.store.runs.cut_store import claim_attempt
from tallystick.store.runs.outstanding_store import outstanding_breaks
from tallystick.store.runs.run_store import commit_run

from . import broken_executor
from .repairs import all_hanging

BROKEN_EXECUTOR = ("-m", "tests.stack.broken_executor")


def cell(kind: PlanKind, step: Step, fault: CrashFault) -> CrashRound:
    name = f"{kind} {step} {fault}"
    return CrashRound(name=name, kind=kind, step=step, fault=fault, record=1, second_at=Step.EVENT_PRODUCED)


ROUNDS = (
    cell(PlanKind.ABORT, Step.MARKED, CrashFault.BROKER_KILLED),
    cell(PlanKind.POST, Step.COMMITTING, CrashFault.LEDGER_KILLED),
    cell(PlanKind.REVERSE, Step.COMMITTING, CrashFault.ANSWER_LOST),
    cell(PlanKind.REPUBLISH, Step.COMMITTING, CrashFault.KILLED),
    cell(PlanKind.REPUBLISH, Step.FLUSHED, CrashFault.STORE_KILLED),
    cell(PlanKind.REPUBLISH, Step.APPROVED, CrashFault.WRITTEN_OFF),
)

AT_ONCE = 4
CLASSES = {
    PlanKind.REVERSE: BreakClass.DUPLICATE_IN_TOPIC_NEW_SESSION,
    PlanKind.POST: BreakClass.MISSING_IN_LEDGER,
}
ONE_AT_A_TIME = Lock()
"""Brokers take what hangs while a setting of all of them is off."""

pytestmark = pytest.mark.timeout(900)


@dataclass(frozen=True)
class Mutation:
    """A rule, and the cell of the matrix that has to notice when it is broken, by what becomes of so many events."""

    rule: Callable[[], None]
    step: Step
    fault: CrashFault
    becomes: str
    kind: PlanKind = PlanKind.REPUBLISH
    events: int = EVENTS_PER_PLAN

    @property
    def cell(self) -> CrashRound:
        return cell(self.kind, self.step, self.fault)


ASKS = broken_executor.outstanding_not_asked
OTHERS = broken_executor.other_contracts_not_asked

MUTATIONS = (
    Mutation(ASKS, Step.FLUSHED, CrashFault.CLEARED, "doubled", events=1),
    Mutation(ASKS, Step.INSERTED, CrashFault.CLEARED, "doubled", PlanKind.POST, events=1),
    Mutation(OTHERS, Step.PROVED, CrashFault.CONTRACTS_RACE, "doubled"),
    Mutation(broken_executor.transaction_dropped, Step.BEGUN, CrashFault.FROZEN, "doubled", PlanKind.REVERSE),
    Mutation(broken_executor.fresh_transactional_id, Step.BEGUN, CrashFault.FROZEN, "doubled"),
    # not lost: the log, which has all that came since, lacks what progress says, so a person has to look
    Mutation(broken_executor.progress_outside_the_transaction, Step.FLUSHED, CrashFault.KILLED, "refused"),
    Mutation(broken_executor.progress_read_before_fencing, Step.PROVED, CrashFault.FROZEN, "doubled"),
    Mutation(broken_executor.error_of_a_partition_ignored, Step.BEGUN, CrashFault.RECORDS_REFUSED, "lost"),
    Mutation(broken_executor.key_of_the_plan, Step.PUBLISHED, CrashFault.LOG_EXPIRED, "doubled"),
    Mutation(broken_executor.progress_in_group_offsets, Step.PUBLISHED, CrashFault.LOG_EXPIRED, "doubled"),
    Mutation(broken_executor.refusal_of_the_overtaken, Step.FENCED, CrashFault.OVERTAKEN, "mistold"),
    Mutation(
        broken_executor.key_of_the_plan, Step.INSERTED, CrashFault.PLANNED_AGAIN, "doubled", PlanKind.POST, events=1
    ),
    Mutation(
        broken_executor.post_without_a_key, Step.INSERTED, CrashFault.OVERTAKEN, "doubled", PlanKind.POST, events=1
    ),
    Mutation(broken_executor.evidence_not_kept, Step.MARKED, CrashFault.KILLED, "without_evidence", PlanKind.ABORT),
    Mutation(
        broken_executor.second_look_left_out,
        Step.EVIDENCE_KEPT,
        CrashFault.RETURNED,
        "mistold",
        PlanKind.ABORT,
        events=1,
    ),
)
AIMED = tuple(dict.fromkeys(one.cell for one in MUTATIONS))

Play = Callable[..., list[RoundEnd]]


@pytest.fixture
def play(stack: LabStack, store: Engine, store_dsn: str, books: Any, tmp_path: Path) -> Play:
    """Play rounds, one after the other, on books of their own."""

    def play_rounds(*rounds: CrashRound, launcher: Sequence[str] = STEP_BY_STEP) -> list[RoundEnd]:
        folder = tmp_path / f"c{uuid.uuid4().hex[:12]}"
        crash_books = {
            name: found(stack, store, type(books), folder, name, some) for name, some in rounds_of(rounds).items()
        }
        judged: Counter[Path] = Counter()

        def judge(one: CrashBooks, standing: Collection[str]) -> None:
            """A literal run of each contract that has read the topic up to its end, and clears what stands."""
            for file in one.contract_files:
                contract, n = load_contract(file), 3 + judged[file]
                judged[file] += 1
                topic = contract.topics[0]
                runs = type(books)(contract, topic_id_of(stack, topic), partitions=one.names.partitions[topic])
                outstanding = [found.item_break for found in outstanding_breaks(store, contract.name)]
                cleared = [found for found in outstanding if found.match_key in standing]
                items = tuple(runs.item(found, n=n, state=ItemState.CLEARED) for found in cleared)
                runs.save(store, runs.cut(n, topic_end=1_000_000))
                attempt = claim_attempt(store, contract.name, n)
                commit_run(store, runs.result(n, items=items), attempt=attempt, alerts=())

        matrix = CrashMatrix(replace(stack, store_dsn=store_dsn), crash_books, folder, launcher=launcher, judge=judge)
        ends = matrix.count_again([matrix.play(one) for one in rounds])
        print(matrix.log_tail)  # shown where a test fails
        return ends

    return play_rounds


def found(
    stack: LabStack, store: Engine, new_runs: Any, folder: Path, name: str, rounds: Sequence[CrashRound]
) -> CrashBooks:
    """Books whose run 1 has found as many events to repair as the rounds need; the runs are literal."""
    kind, names = rounds[0].kind, Namespace(f"{folder.name}_{name}")
    files = write_contracts(folder, kind, names, twice=rounds[0].has_two_contracts)
    contracts = [load_contract(file) for file in files]
    admin, topic = new_admin(stack.bootstrap_servers), contracts[0].topics[0]
    admin.create_topics([NewTopic(topic, num_partitions=names.partitions[topic])])[topic].result()
    LogEnds(admin).wait_until_served([place for place in names.places if place[0] == topic])
    topic_id = topic_id_of(stack, topic)
    with Workload.open(stack, names.name, "relay", folder.name) as desk:
        Ledger(names).create(desk.connection, DeliveryMode.AT_LEAST_ONCE)
        paid = [desk.payment() for _ in range(events_needed(rounds))]
        hung = go_wrong(stack, desk, kind, paid)
    for contract in contracts:
        runs = new_runs(contract, topic_id, partitions=names.partitions[topic])
        commit_runs(store, runs, *what_is_wrong(stack, names, runs, kind, paid))
    return CrashBooks(
        kind=kind,
        contract_file=files[0],
        names=names,
        partitions=counted_partitions(kind, names),
        cut_n=1,
        later_cut_n=2,
        paid=by_match_key(kind, paid),
        hung=hung,
        other_file=files[1] if len(files) > 1 else None,
    )


def commit_runs(store: Engine, runs: Any, breaks: tuple[Break, ...], around: Any) -> None:
    """The baseline, a run that found these breaks, and another one."""
    items = tuple(runs.item(one, n=1) for one in breaks)
    runs.commit(store, runs.result(0))
    first, second = runs.result(1, verdict=Verdict.BROKEN, breaks=breaks, items=items), runs.result(2)
    runs.commit(store, replace(first, look_ups={"surroundings": around}))
    runs.commit(store, replace(second, look_ups={"surroundings": around}))


def go_wrong(stack: LabStack, desk: Workload, kind: PlanKind, paid: Sequence[Payment]) -> Mapping[int, RawProducer]:
    """Write what there is to repair; give the producers of what hangs."""
    events = [payment.event(leg_of(kind)) for payment in paid]
    if kind is PlanKind.ABORT:
        with ONE_AT_A_TIME:
            return leave_hanging(stack, desk.names, *events)
    if kind in (PlanKind.REPUBLISH, PlanKind.REVERSE):
        for payment in paid:
            desk.add_payout(payment)
    if kind is PlanKind.POST:
        prepare_posting(stack, desk.names)
        desk.publish(*events)
    if kind is PlanKind.REVERSE:
        desk.publish(*events)
        desk.publish(*events)
    return {}


def what_is_wrong(
    stack: LabStack, names: Namespace, runs: Any, kind: PlanKind, paid: Sequence[Payment]
) -> tuple[tuple[Break, ...], Any]:
    """The same as a run would say it: the breaks, and what stood around."""
    if kind is PlanKind.ABORT:
        return (), cluster_state(stack, runs)
    found = [
        replace(
            runs.missing(match_key, amount_minor=payment.amount_minor, currency=payment.currency),
            transaction_key=str(payment.payment_id),
        )
        for match_key, payment in by_match_key(kind, paid).items()
    ]
    if kind is not PlanKind.REPUBLISH:
        of_kind, at = CLASSES[kind], places(stack, counted_partitions(kind, names))
        found = [replace(one, break_class=of_kind, evidence={"at": at[one.match_key]}) for one in found]
    return tuple(found), CLUSTER_STATE.dump_python(ClusterState(), mode="json", by_alias=True)


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


def cluster_state(stack: LabStack, runs: Any) -> Any:
    """What hangs, as a run says it that has seen it first two hours before, which no time-out outlasts."""
    with open_admin(KafkaSettings({"bootstrap.servers": stack.bootstrap_servers})) as admin:
        settings = read_broker_settings(admin)
        hanging = read_open_transactions(
            admin, [part.topic_partition for part in read_topic_snapshot(admin, runs.contract.topics)]
        )
    around = all_hanging(hanging, settings, first_seen_utc=runs.cut(1).now_utc - timedelta(hours=2))
    return CLUSTER_STATE.dump_python(around, mode="json", by_alias=True)


def test_each_event_stands_once_whatever_is_struck(play: Play) -> None:
    ends = play(*ROUNDS)
    assert {one.kind for one in ROUNDS} == set(PlanKind)
    figures = crash_figures(ends)
    assert figures["differs"] == []
    right = figures["exactly_once"], figures["refused_rightly"], figures["refused"]
    refused, by_another = sum(one.may_refuse for one in ROUNDS), sum(one.by_another for one in ROUNDS)
    assert right[1:] == (by_another, refused)
    assert right[0] >= len(ROUNDS) * EVENTS_PER_PLAN - refused - by_another  # a plan that is made again has other ones


@pytest.mark.lab
def test_each_broken_rule_is_noticed_by_the_cell_aimed_at_it_and_each_cell_passes_unbroken(play: Play) -> None:
    def play_broken(mutation: Mutation) -> list[RoundEnd]:
        return play(mutation.cell, launcher=(sys.executable, *BROKEN_EXECUTOR, mutation.rule.__name__, TALLYSTICK))

    with ThreadPoolExecutor(AT_ONCE) as pool:
        unbroken, broken = pool.map(play, AIMED), pool.map(play_broken, MUTATIONS)
        right, wrong = [end for (end,) in unbroken], [end for (end,) in broken]
    assert crash_figures(right)["differs"] == []
    assert [end.counts["exactly_once"] for end in right] == [
        one.plans * EVENTS_PER_PLAN - one.may_refuse - one.by_another for one in AIMED
    ]
    assert {one.rule.__name__ for one in MUTATIONS} == set(broken_executor.RULES)
    assert [end.counts[one.becomes] for one, end in zip(MUTATIONS, wrong, strict=True)] == [
        one.events for one in MUTATIONS
    ]
    assert all(end.differs for end in wrong)
