"""The crash matrix: an executor is struck at one step, started again, and each event stands exactly once."""

import sys
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest
from confluent_kafka.admin import NewTopic
from sqlalchemy import Engine

from lab.clients import new_admin
from lab.crash_books import CrashBooks, crash_contract
from lab.crash_plan import EVENTS_PER_PLAN, CrashRound, Fault, Step
from lab.crash_run import STEP_BY_STEP, TALLYSTICK, CrashMatrix
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

BROKEN_EXECUTOR = Path(__file__).with_name("broken_executor.py")
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
EVENTS = 60


@pytest.fixture
def new_matrix(
    stack: LabStack, store: Engine, store_dsn: str, books: Any, tmp_path: Path
) -> Callable[..., CrashMatrix]:
    names = Namespace(f"c{uuid.uuid4().hex[:12]}")
    topic = names.topic(Leg.PAYOUT)
    contract_file = write_contract(tmp_path, crash_contract(names.name))
    contract = load_contract(contract_file)
    admin = new_admin(stack.bootstrap_servers)
    admin.create_topics([NewTopic(topic, num_partitions=2)])[topic].result()
    partitions = ((topic, 0), (topic, 1))
    LogEnds(admin).wait_until_served(partitions)
    ledger = Ledger(names)
    with psycopg.connect(stack.ledger_owner_dsn, autocommit=True) as connection:
        ledger.create(connection, DeliveryMode.EXACTLY_ONCE)
        rows = [
            ledger.add_payout(
                connection, Payment(payment_id=uuid.uuid4(), amount_minor=100 + n, currency="EUR", occurred_at=NOON)
            )
            for n in range(EVENTS)
        ]
    runs = type(books)(contract)
    runs.commit(store, runs.result(0))
    found = tuple(
        replace(
            runs.missing(str(row.event.event_id), amount_minor=row.payment.amount_minor),
            transaction_key=str(row.payment.payment_id),
        )
        for row in rows
    )
    items = tuple(runs.item(one, n=1) for one in found)
    runs.commit(store, runs.result(1, verdict=Verdict.BROKEN, breaks=found, items=items))
    runs.commit(store, runs.result(2))
    crash_books = CrashBooks(contract_file=contract_file, partitions=partitions, cut_n=1, later_cut_n=2)

    def make(launcher: Sequence[str] = STEP_BY_STEP) -> CrashMatrix:
        return CrashMatrix(replace(stack, store_dsn=store_dsn), crash_books, tmp_path, launcher=launcher)

    return make


@dataclass(frozen=True)
class Mutation:
    """A rule, and the cell of the matrix that has to notice when it is broken, by what becomes of the events there."""

    rule: Callable[[], None]
    step: Step
    fault: Fault
    becomes: str


MUTATIONS = (
    Mutation(broken_executor.transaction_dropped, Step.BEGUN, Fault.FROZEN, "doubled"),
    Mutation(broken_executor.fresh_transactional_id, Step.BEGUN, Fault.FROZEN, "doubled"),
    Mutation(broken_executor.progress_outside_the_transaction, Step.FLUSHED, Fault.KILLED, "lost"),
    Mutation(broken_executor.progress_read_before_fencing, Step.PROVED, Fault.FROZEN, "doubled"),
    Mutation(broken_executor.error_of_a_partition_ignored, Step.BEGUN, Fault.RECORDS_REFUSED, "lost"),
    Mutation(broken_executor.key_of_the_plan, Step.PUBLISHED, Fault.LOG_EXPIRED, "doubled"),
    Mutation(broken_executor.progress_in_group_offsets, Step.PUBLISHED, Fault.LOG_EXPIRED, "doubled"),
)


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda one: one.rule.__name__)
def test_the_aimed_cell_notices_the_broken_rule(new_matrix: Callable[..., CrashMatrix], mutation: Mutation) -> None:
    matrix = new_matrix((sys.executable, str(BROKEN_EXECUTOR), mutation.rule.__name__, TALLYSTICK))
    crash = CrashRound(name="1.1", step=mutation.step, fault=mutation.fault, record=1)
    end = matrix.play(crash)
    assert end.counts[mutation.becomes] == EVENTS_PER_PLAN, (end, matrix.log_tail)
    assert len(end.differs) >= EVENTS_PER_PLAN
