"""The crash matrix: an executor is struck at a step and started again, and each event stands once.

Eleven cells: five that a seed draws, and six at which a broken rule of the protocol is aimed, unbroken. Each broken
rule then fails its own cell.
"""

import sys
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest
from confluent_kafka.admin import NewTopic
from sqlalchemy import Engine

from lab.clients import new_admin
from lab.crash_books import CrashBooks, crash_contract, events_needed
from lab.crash_plan import EVENTS_PER_PLAN, CrashRound, Fault, Step, plan_crashes
from lab.crash_run import STEP_BY_STEP, TALLYSTICK, CrashMatrix
from lab.crash_score import RoundEnd, crash_figures
from lab.event import Leg, Payment
from lab.ledger import Ledger
from lab.log_ends import LogEnds
from lab.mode import DeliveryMode
from lab.namespace import Namespace
from lab.round_contracts import write_contract
from lab.stack import LabStack
from tallystick.contract import load_contract
from tallystick.verdict import Verdict

from . import broken_executor

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
BROKEN_EXECUTOR = str(Path(__file__).with_name("broken_executor.py"))

ROUNDS = plan_crashes(39613, 5)
"""Broker, store and ledger are killed, an answer is lost, and an executor dies in its commit."""

AT_ONCE = 4

pytestmark = pytest.mark.timeout(900)


@dataclass(frozen=True)
class Mutation:
    """A rule, and the cell of the matrix that has to notice when it is broken, by what becomes of the events there."""

    rule: Callable[[], None]
    step: Step
    fault: Fault
    becomes: str

    @property
    def cell(self) -> CrashRound:
        return CrashRound(name="aimed", step=self.step, fault=self.fault, record=1, second_at=Step.EVENT_PRODUCED)


MUTATIONS = (
    Mutation(broken_executor.transaction_dropped, Step.BEGUN, Fault.FROZEN, "doubled"),
    Mutation(broken_executor.fresh_transactional_id, Step.BEGUN, Fault.FROZEN, "doubled"),
    Mutation(broken_executor.progress_outside_the_transaction, Step.FLUSHED, Fault.KILLED, "lost"),
    Mutation(broken_executor.progress_read_before_fencing, Step.PROVED, Fault.FROZEN, "doubled"),
    Mutation(broken_executor.error_of_a_partition_ignored, Step.BEGUN, Fault.RECORDS_REFUSED, "lost"),
    Mutation(broken_executor.key_of_the_plan, Step.PUBLISHED, Fault.LOG_EXPIRED, "doubled"),
    Mutation(broken_executor.progress_in_group_offsets, Step.PUBLISHED, Fault.LOG_EXPIRED, "doubled"),
    Mutation(broken_executor.refusal_of_the_overtaken, Step.FENCED, Fault.OVERTAKEN, "mistold"),
)
AIMED = tuple(dict.fromkeys(one.cell for one in MUTATIONS))

Play = Callable[..., list[RoundEnd]]


@pytest.fixture
def play(stack: LabStack, store: Engine, store_dsn: str, books: Any, tmp_path: Path) -> Play:
    """Play rounds, one after the other, on books of their own."""

    def play_rounds(*rounds: CrashRound, launcher: Sequence[str] = STEP_BY_STEP) -> list[RoundEnd]:
        folder = tmp_path / f"c{uuid.uuid4().hex[:12]}"
        crash_books = found_missing(stack, store, type(books), folder, events=events_needed(rounds))
        matrix = CrashMatrix(replace(stack, store_dsn=store_dsn), crash_books, folder, launcher=launcher)
        ends = matrix.count_again([matrix.play(one) for one in rounds])
        print(matrix.log_tail)  # shown where a test fails
        return ends

    return play_rounds


def found_missing(stack: LabStack, store: Engine, new_runs: Any, folder: Path, *, events: int) -> CrashBooks:
    """Books whose run 1 has found so many events missing; the runs are literal."""
    names = Namespace(folder.name)
    topic = names.topic(Leg.PAYOUT)
    contract_file = write_contract(folder, crash_contract(names.name))
    admin = new_admin(stack.bootstrap_servers)
    admin.create_topics([NewTopic(topic, num_partitions=2)])[topic].result()
    partitions = ((topic, 0), (topic, 1))
    LogEnds(admin).wait_until_served(partitions)
    ledger, runs = Ledger(names), new_runs(load_contract(contract_file))
    with psycopg.connect(stack.ledger_owner_dsn, autocommit=True) as connection:
        ledger.create(connection, DeliveryMode.EXACTLY_ONCE)
        paid = [
            Payment(payment_id=uuid.uuid4(), amount_minor=100 + n, currency="EUR", occurred_at=NOON)
            for n in range(events)
        ]
        rows = [ledger.add_payout(connection, payment) for payment in paid]
    found = tuple(
        replace(
            runs.missing(str(row.event.event_id), amount_minor=row.payment.amount_minor),
            transaction_key=str(row.payment.payment_id),
        )
        for row in rows
    )
    items = tuple(runs.item(one, n=1) for one in found)
    runs.commit(store, runs.result(0))
    runs.commit(store, runs.result(1, verdict=Verdict.BROKEN, breaks=found, items=items))
    runs.commit(store, runs.result(2))
    return CrashBooks(contract_file=contract_file, partitions=partitions, cut_n=1, later_cut_n=2)


def test_each_event_stands_once_whatever_is_struck(play: Play) -> None:
    ends = play(*ROUNDS)
    assert {one.fault for one in ROUNDS} >= {
        Fault.BROKER_KILLED,
        Fault.STORE_KILLED,
        Fault.LEDGER_KILLED,
        Fault.ANSWER_LOST,
    }
    figures = crash_figures(ends)
    assert figures["differs"] == []
    assert (figures["exactly_once"], figures["refused"]) == (len(ROUNDS) * EVENTS_PER_PLAN, 0)


def test_each_broken_rule_is_noticed_by_the_cell_aimed_at_it_and_each_cell_passes_unbroken(play: Play) -> None:
    def play_broken(mutation: Mutation) -> list[RoundEnd]:
        return play(mutation.cell, launcher=(sys.executable, BROKEN_EXECUTOR, mutation.rule.__name__, TALLYSTICK))

    with ThreadPoolExecutor(AT_ONCE) as pool:
        unbroken, broken = pool.map(play, AIMED), pool.map(play_broken, MUTATIONS)
        right, wrong = [end for (end,) in unbroken], [end for (end,) in broken]
    assert crash_figures(right)["differs"] == []
    assert [end.counts["exactly_once"] for end in right] == [events_needed((one,)) for one in AIMED]
    noticed = {one.rule.__name__: end.counts[one.becomes] for one, end in zip(MUTATIONS, wrong, strict=True)}
    assert noticed == dict.fromkeys(broken_executor.RULES, EVENTS_PER_PLAN)
    assert all(end.differs for end in wrong)
