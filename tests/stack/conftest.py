"""One stack for the session, and a fresh migrated store for each test that asks for one.

Every test here runs against a real broker and a real PostgreSQL.
"""

import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from lab.servers.postgres import AIRFLOW_DATABASE, STORE_OWNER, STORE_ROLE
from lab.servers.process import REPOSITORY
from lab.servers.stack import LabAddresses, LabStack, start_stack
from tallystick.alerting.alert import Alert
from tallystick.contract.contract import Contract
from tallystick.model.census_values import PartitionCensus
from tallystick.model.cut import Cut, LedgerSlice, LedgerSnapshot, PartitionSnapshot, TopicSlice
from tallystick.model.finding_names import BreakClass, Doubt
from tallystick.model.findings import Break, DoubtFound, break_id
from tallystick.model.item_reason import read_reason
from tallystick.model.offsets import OffsetRange
from tallystick.model.open_item import ItemSide, ItemState, OpenItem
from tallystick.model.run_result import RunFigures, RunResult
from tallystick.model.verdict import Verdict
from tallystick.store.engine import connect_store, migrate, open_store
from tallystick.store.runs.cut_store import claim_attempt, save_cut
from tallystick.store.runs.run_store import commit_run
from tests.object_store.conftest import place, settings
from tests.run_results import run_figures, run_result

from .live import new_books, spark, warm_spark
from .store_owner import as_owner

__all__ = ["new_books", "place", "settings", "spark", "warm_spark"]  # fixtures

_TEMPLATE = "store_template"

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.stack)


@pytest.fixture(scope="session")
def stack() -> Iterator[LabStack]:
    """Broker, ledger and store on data of their own. Under build/: PostgreSQL's user may not enter pytest's folders."""
    parent = REPOSITORY / "build" / "tests"
    parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="stack-", dir=parent))
    try:
        with start_stack(folder) as running:
            yield running
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def store_template(stack: LabStack) -> str:
    """Name of a migrated database that nobody connects to, to be copied."""
    _create_database(stack, _TEMPLATE)
    engine = connect_store(stack.store_server.dsn(STORE_OWNER, _TEMPLATE))
    migrate(engine, grant_to=STORE_ROLE)
    engine.dispose()
    return _TEMPLATE


@pytest.fixture(scope="module")
def airflow_stack(stack: LabStack) -> Iterator[LabAddresses]:
    """The stack's addresses, with a database of the module's own for Airflow: two in one stack do not meet."""
    name = f"airflow_{uuid.uuid4().hex}"
    _create_database(stack, name, owner=AIRFLOW_DATABASE)
    yield replace(stack.addresses(), airflow_dsn=stack.store_server.dsn(AIRFLOW_DATABASE, name))
    with stack.store_server.connect() as admin:
        admin.execute(f"drop database {name} with (force)")


@pytest.fixture
def empty_store_dsn(stack: LabStack) -> Iterator[str]:
    """Address of a database that was never migrated, for its owner."""
    yield from _database(stack, template="template1", role=STORE_OWNER)


@pytest.fixture
def store_dsn(stack: LabStack, store_template: str) -> Iterator[str]:
    """Address of a migrated store of this test's own, for the role that Tallystick works as."""
    yield from _database(stack, template=store_template, role=STORE_ROLE)


@pytest.fixture
def store(store_dsn: str) -> Engine:
    """A migrated store of this test's own, opened as Tallystick does."""
    return open_store(store_dsn)


@pytest.fixture
def owned_store(stack: LabStack, store: Engine) -> Iterator[Engine]:
    """The same store, opened as its owner."""
    engine = as_owner(stack, store)
    yield engine
    engine.dispose()


@pytest.fixture
def new_contract() -> Callable[..., Contract]:
    """Make a valid contract; keywords replace whole keys of its document."""

    def make(**changes: Any) -> Contract:
        document = {
            "contract": "payouts",
            "version": 1,
            "owner": "payouts-team",
            "direction": "ledger_to_topic",
            "schedule": "0 * * * *",
            "start_date": datetime(2026, 1, 1, tzinfo=UTC),
            "kafka": {"connection": "kafka_billing"},
            "legs": {"payout": "billing.payouts"},
            "ledger": {"connection": "ledger_billing", "table": "billing.payout", "slice_by": "written_xid"},
        }
        return Contract.model_validate(document | changes)

    return make


@pytest.fixture
def books(new_contract: Callable[..., Contract]) -> "Books":
    """The plain contract and values that fit it."""
    return Books(new_contract())


@dataclass(frozen=True)
class Books:
    """Makes cuts that tile, and literal results, for one contract. topic_id, partitions: of its first topic."""

    contract: Contract
    topic_id: str = "topic-1"
    partitions: int = 1

    def cut(self, n: int, *, topic_end: int | None = None, position_end: int | None = None) -> Cut:
        """Cut n reads offsets [10n - 10, 10n) of each partition and transaction ids [100n - 100, 100n)."""
        topic, start = self.contract.topics[0], max(0, 10 * n - 10)
        end = 10 * n if topic_end is None else topic_end
        position_start = max(0, 100 * n - 100)
        stop = 100 * n if position_end is None else position_end
        hour = NOON + timedelta(hours=n)
        return Cut(
            contract=self.contract.name,
            n=n,
            window_start_utc=hour - timedelta(hours=1),
            window_end_utc=hour,
            marked_at_utc=hour + timedelta(seconds=30),
            now_utc=hour + timedelta(minutes=1),
            topic_slices=tuple(
                TopicSlice(
                    offsets=OffsetRange(topic=topic, partition=part, kafka_offset_start=start, kafka_offset_end=end),
                    snapshot=PartitionSnapshot(
                        topic=topic,
                        partition=part,
                        topic_id=self.topic_id,
                        leader_epoch=0,
                        log_start=0,
                        lso=end,
                        high_watermark=end + 2,
                    ),
                    mark=end,
                    expired=0,
                )
                for part in range(self.partitions)
            ),
            ledger_slice=LedgerSlice(
                position_start=position_start,
                position_end=stop,
                snapshot=LedgerSnapshot(
                    low_mark=stop,
                    high_mark=2**40,
                    system_identifier="7400000000000000001",
                    timeline=1,
                    lsn="0/1A2B3C",
                ),
                mark=stop,
                baseline_position=0,
            ),
        )

    def result(
        self,
        n: int,
        *,
        verdict: Verdict = Verdict.MATCHED,
        doubts: tuple[Doubt, ...] = (),
        breaks: tuple[Break, ...] = (),
        items: tuple[OpenItem, ...] = (),
        digest: str = "",
        ledger_rows: int = 0,
        ledger_older_rows: int | None = None,
    ) -> RunResult:
        return run_result(
            self.contract.name,
            n,
            verdict=verdict,
            doubts=tuple(DoubtFound(doubt=doubt, sentence=f"{doubt}.", details={"n": n}) for doubt in doubts),
            breaks=breaks,
            items=items,
            figures=_figures(self.contract.topics[0], ledger_rows, ledger_older_rows),
            digest=digest or f"digest-{n}",
            look_ups={"rows": [n]},
        )

    def missing(self, key: str, *, amount_minor: int = 1250, currency: str = "EUR") -> Break:
        """A ledger row whose event was never produced."""
        break_class = BreakClass.MISSING_IN_TOPIC_NEVER_PRODUCED
        return Break(
            break_id=break_id(contract=self.contract.name, break_class=break_class, match_key=key, position=""),
            break_class=break_class,
            match_key=key,
            transaction_key=f"transaction-{key}",
            leg=next(iter(self.contract.legs)),
            amount_minor=amount_minor,
            currency=currency,
            copies=1,
            story="The row stands, the event does not.",
            evidence={"row_id": 7, "offsets": [1, 2**53 + 1]},
        )

    def item(self, found: Break, *, n: int, state: ItemState = ItemState.BROKEN, pairable: bool = True) -> OpenItem:
        """The open item of a break, as of cut n."""
        return OpenItem(
            item_id=f"ledger:{found.match_key}",
            side=ItemSide.LEDGER,
            match_key=found.match_key,
            transaction_key=found.transaction_key,
            leg=found.leg,
            amount_minor=found.amount_minor,
            currency=found.currency,
            first_seen_cut=1,
            first_seen_utc=NOON,
            due_utc=NOON + timedelta(seconds=60),
            state=state,
            reason=read_reason("no event"),
            pairable=pairable,
            break_id=found.break_id,
            found_as=found.break_class,
            cleared_by="the event came" if state is ItemState.CLEARED else "",
        )

    def save(self, store: Engine, cut: Cut) -> Cut:
        save_cut(store, self.contract, cut, scheduler_run_id=f"run-{cut.n}")
        return cut

    def commit(self, store: Engine, result: RunResult, alerts: tuple[Alert, ...] = ()) -> None:
        """Save the cut of a result and commit it."""
        self.save(store, self.cut(result.cut_n))
        attempt = claim_attempt(store, result.contract, result.cut_n)
        commit_run(store, result, attempt=attempt, alerts=alerts)


def _figures(topic: str, ledger_rows: int, ledger_older_rows: int | None) -> RunFigures:
    census = PartitionCensus(
        topic=topic,
        partition=0,
        kafka_offset_start=0,
        kafka_offset_end=10,
        committed=7,
        aborted=1,
        plain=0,
        commit_markers=1,
        abort_markers=1,
        unexplained=0,
        without_producer_id=0,
        log_start=0,
        lso=10,
        high_watermark=12,
        spark_rows=7,
    )
    return run_figures(
        topic_rows=7,
        ledger_rows=ledger_rows,
        matched_rows=7,
        matched_money={"EUR": 2**53 + 1, "JPY": 3},
        ledger_older_rows=ledger_older_rows,
        census=(census,),
    )


def _database(stack: LabStack, *, template: str, role: str) -> Iterator[str]:
    name = f"store_{uuid.uuid4().hex}"
    _create_database(stack, name, template=template)
    yield stack.store_server.dsn(role, name)
    with stack.store_server.connect() as admin:
        admin.execute(f"drop database {name} with (force)")


def _create_database(stack: LabStack, name: str, *, template: str = "template1", owner: str = STORE_OWNER) -> None:
    with stack.store_server.connect() as admin:
        admin.execute(f"create database {name} template {template} owner {owner}")
