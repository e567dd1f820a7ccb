"""Contracts that read one table by its two sides, debit and credit, take a doubled posting back once between them."""

import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any

import psycopg
import pytest

from lab.servers.process import wait_until
from lab.servers.stack import LabStack
from tallystick.compensation.plan import CurrentRow, PlanItem, RepairKind, SourceRow
from tallystick.compensation.repair_effect import RepairEffect, effect_of
from tallystick.contract.contract import Contract
from tallystick.executor.effects.post_to_ledger import Posted, counterpost_once
from tallystick.executor.effects.source_rows import read_source_rows
from tallystick.executor.effects.step import ExecutorStep
from tallystick.ledger.postgres_connection import open_ledger
from tallystick.model.finding_names import BreakClass

KEY = "twice"
BOTH_SIDES = [{"side": "debit"}, {"side": "credit"}]
_TABLES = """
CREATE SCHEMA {schema};
CREATE TABLE {schema}.posting (
    entry_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, event_id text NOT NULL, payment_id text NOT NULL,
    leg text NOT NULL, side text NOT NULL, amount_minor bigint NOT NULL, currency text NOT NULL,
    occurred_at timestamptz NOT NULL DEFAULT now(), reverses_entry bigint);
CREATE TABLE {schema}.posted_action (action_id uuid PRIMARY KEY, plan_hash text NOT NULL);
"""


@dataclass(frozen=True)
class DoubleEntry:
    """A table whose every posting is two rows, in a schema of its own."""

    schema: str
    dsn: str = field(repr=False)
    owner: psycopg.Connection = field(repr=False)
    new_contract: Callable[..., Contract] = field(repr=False)

    def book(self, times: int) -> None:
        """Post the one payment of 7.00 EUR so often."""
        posting = (
            f"INSERT INTO {self.schema}.posting (event_id, payment_id, leg, side, amount_minor, currency) "
            "VALUES (%s, 'p1', 'payout', %s, 700, 'EUR')"
        )
        for _ in range(times):
            for side in ("debit", "credit"):
                self.owner.execute(posting, (KEY, side))

    def sums(self) -> dict[str, int]:
        asked = f"SELECT side, sum(amount_minor)::bigint FROM {self.schema}.posting GROUP BY side"
        return dict(self.owner.execute(asked).fetchall())

    def contract(self, side: str, rows: list[dict[str, str]]) -> Contract:
        """Reads that side alone, and takes back by these rows."""
        return self.new_contract(
            contract=side,
            direction="topic_to_ledger",
            ledger={
                "connection": "ledger_billing",
                "table": f"{self.schema}.posting",
                "where": f"side = '{side}'",
                "columns": {"reverses": "reverses_entry"},
            },
            compensation={
                "classes": ["duplicate_in_ledger"],
                "reversal": "negated",
                "post": {
                    "connection": "ledger_poster",
                    "actions_table": f"{self.schema}.posted_action",
                    "columns": {n: n for n in ("event_id", "payment_id", "leg", "amount_minor", "currency")},
                    "rows": {"payout": rows},
                },
                "max_amount_minor": {"EUR": 10_000},
            },
        )

    def rows(self, contract: Contract) -> tuple[CurrentRow, ...]:
        """Those that the contract reads of the key."""
        with open_ledger(self.dsn) as connection:
            return read_source_rows(connection, contract.ledger, [KEY])[KEY]

    def surplus(self, contract: Contract, *, last: int = 1) -> PlanItem:
        """The item that takes the contract's newest row back, or one before it."""
        row = [one for one in self.rows(contract) if not one.takes_back][-last]
        return PlanItem(
            kind=RepairKind.COUNTERPOST,
            action_id=uuid.uuid4(),
            break_id=uuid.uuid4(),
            break_class=BreakClass.DUPLICATE_IN_LEDGER,
            topic="payouts",
            reverses=f"ledger:{row.row_id}",
            **{column.name: getattr(row, column.name) for column in fields(SourceRow)},
        )

    def take_back(self, contract: Contract, item: PlanItem, **how: Any) -> Posted:
        return counterpost_once(self.dsn, contract, item, plan_hash="h", may_write=lambda: None, **how)


@pytest.fixture
def table(stack: LabStack, new_contract: Callable[..., Contract]) -> Iterator[DoubleEntry]:
    schema = f"sides_{uuid.uuid4().hex[:8]}"
    with psycopg.connect(stack.ledger_owner_dsn, autocommit=True) as owner:
        for statement in _TABLES.format(schema=schema).strip().split(";\n"):
            owner.execute(statement)
        yield DoubleEntry(schema, stack.ledger_owner_dsn, owner, new_contract)
        owner.execute(f"DROP SCHEMA {schema} CASCADE")


def refused_beside(item: PlanItem) -> str:
    return (
        f"of its key takes row {item.row_id} back, which is none of the contract's: look whether that took back the "
        "same posting"
    )


def test_a_doubled_posting_is_taken_back_by_one_of_them_and_verified_by_that_one(table: DoubleEntry) -> None:
    table.book(2)
    credit, debit = (table.contract(side, BOTH_SIDES) for side in ("credit", "debit"))
    items = table.surplus(credit), table.surplus(debit)
    assert table.take_back(credit, items[0]) == Posted()
    assert table.take_back(debit, items[1]).refused.endswith(refused_beside(items[0]))
    assert table.sums() == {"debit": 700, "credit": 700}
    effects = [
        effect_of(item, (), table.rows(one), one.event) for one, item in zip((credit, debit), items, strict=True)
    ]
    assert effects == [RepairEffect.CLEARED, RepairEffect.NOT_CLEARED]


def test_the_same_where_the_other_ones_row_is_not_read_by_the_contract(table: DoubleEntry) -> None:
    """Each writes its own side alone, so nobody can say whether the other one is to follow."""
    table.book(2)
    credit, debit = (table.contract(side, [{"side": side}]) for side in ("credit", "debit"))
    taken = table.surplus(credit)
    assert table.take_back(credit, taken) == Posted()
    assert table.take_back(debit, table.surplus(debit)).refused.endswith(refused_beside(taken))
    assert table.sums() == {"debit": 1400, "credit": 700}


def test_of_two_at_once_the_second_sees_what_the_first_takes_back(table: DoubleEntry) -> None:
    table.book(2)
    credit, debit = (table.contract(side, BOTH_SIDES) for side in ("credit", "debit"))
    items = table.surplus(credit), table.surplus(debit)
    waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    with ThreadPoolExecutor(1) as pool:
        others: list[Any] = []

        def start_the_other(step: str, figures: object) -> None:
            if step == ExecutorStep.INSERTED:
                others.append(pool.submit(partial(table.take_back, debit, items[1])))
                wait_until(lambda: table.owner.execute(waiting).fetchone() == (1,), what="the other one to wait")

        assert table.take_back(credit, items[0], on_progress=start_the_other) == Posted()
        assert others[0].result().refused.endswith(refused_beside(items[0]))
    assert table.sums() == {"debit": 700, "credit": 700}


def test_one_contract_takes_back_as_many_as_are_too_many(table: DoubleEntry) -> None:
    table.book(3)
    credit = table.contract("credit", BOTH_SIDES)
    items = table.surplus(credit), table.surplus(credit, last=2)
    assert [table.take_back(credit, item) for item in items] == [Posted(), Posted()]
    assert table.sums() == {"debit": 700, "credit": 700}
    assert [effect_of(one, (), table.rows(credit), credit.event) for one in items] == [RepairEffect.CLEARED] * 2
