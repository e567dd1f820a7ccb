"""A store of many contracts and windows: upgraded from the revision before, and pruned.

The windows of one contract are committed as runs commit them. The other contracts are copies of them in SQL, under
their own names. Times are printed (pytest -s) and no measure of success: what a migration may write, and a transaction
of a pruning may delete, is.
"""

import time
from collections.abc import Callable
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, text

from tallystick.alerting.alert import AlertAction
from tallystick.model.open_item import ItemState
from tallystick.model.verdict import Verdict
from tallystick.store.engine import downgrade, migrate, open_store
from tallystick.store.retention.prune_store import prune
from tallystick.store.runs.run_store import list_runs, read_run
from tallystick.store.runs.sample_store import append_sample
from tallystick.store.schema import alert, contract_version, cut, cut_slice, item_break, open_item, sample
from tallystick.store.schema import verdict as verdict_table

from .aged_books import ADA, date_back, deliver_all
from .aged_books import alert as alert_of
from .aged_books import sample as sample_at
from .conftest import NOON, Books

WINDOWS, WHOLE = 365, 90
PRUNED = 3
"""Contracts that lose their oldest runs."""
BREAKS = 5
"""Of each window; the next one clears them."""
WRITTEN_MAX = 10
"""Rows that a migration of a store of any size may write or change."""

AT_ONCE = 500
"""Keys that one transaction of the pruning deletes at most, fewer than a contract has to lose."""
_NOTHING = ("", "", 0, 0.0)

_COPIED = (contract_version, sample, cut, cut_slice, verdict_table, item_break, open_item, alert)


@pytest.fixture(params=[5, pytest.param(50, marks=pytest.mark.lab)], ids=lambda contracts: f"{contracts} contracts")
def year(request: pytest.FixtureRequest, store: Engine, owned_store: Engine, books: Books) -> int:
    """Fill the store with a year of so many contracts."""
    contracts: int = request.param
    for n in range(WINDOWS):
        append_sample(store, "payouts", sample_at(n))
        found = tuple(books.missing(f"{n}-{k}") for k in range(BREAKS))
        before = tuple(books.missing(f"{n - 1}-{k}") for k in range(BREAKS if n else 0))
        items = (
            *(books.item(one, n=n) for one in found),
            *(books.item(one, n=n, state=ItemState.CLEARED) for one in before),
        )
        told = alert_of(n, AlertAction.RESOLVE if n % 2 else AlertAction.TRIGGER)
        books.commit(store, books.result(n, verdict=Verdict.BROKEN, breaks=found, items=items), (told,))
    deliver_all(store)
    for k in range(1, contracts):
        with owned_store.begin() as connection:
            copy_contract(connection, f"payouts_{k}")
    date_back(owned_store)
    with owned_store.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("analyze"))
    return contracts


def copy_contract(connection: Connection, name: str) -> None:
    """Copy the books of payouts under another name. Triggers keep what they keep."""
    for table in _COPIED:
        columns = [one.name for one in table.columns if one.computed is None and one.identity is None]
        values = ", ".join(map(_value, columns))
        statement = (
            f"insert into tallystick.{table.name} ({', '.join(columns)}) "
            f"select {values} from tallystick.{table.name} where contract = 'payouts'"
        )
        connection.execute(text(statement), {"name": name})
    deliveries = """
    insert into tallystick.alert_delivery (alert_id, sink, delivered, detail)
    select mine.alert_id, d.sink, d.delivered, d.detail
    from tallystick.alert as mine
    join tallystick.alert as theirs using (cut_n, dedup_key, action)
    join tallystick.alert_delivery as d on d.alert_id = theirs.alert_id
    where mine.contract = :name and theirs.contract = 'payouts'
    """
    connection.execute(text(deliveries), {"name": name})


def _value(column: str) -> str:
    of_copy = {"contract": "cast(:name as text)", "break_id": "cast(md5(:name || break_id::text) as uuid)"}
    return of_copy.get(column, column)


def relations(owned: Engine) -> dict[str, int]:
    """Tables and indexes, by name, to the file that each is in: one that is written anew has another."""
    asked = (
        "select relname, pg_relation_filenode(oid) as filenode from pg_class "
        "where relnamespace = 'tallystick'::regnamespace and relkind in ('r', 'i')"
    )
    with owned.connect() as connection:
        return {row.relname: row.filenode for row in connection.execute(text(asked))}


def written_by_the_migration(owned: Engine) -> int:
    """Rows of the whole schema that its transaction has written: the one that wrote the revision."""
    with owned.connect() as connection:
        xid = connection.scalar(text("select xmin::text from tallystick.alembic_version"))
        names = connection.scalars(text("select tablename from pg_tables where schemaname = 'tallystick'")).all()
        counted = (
            connection.scalar(text(f"select count(*) from tallystick.{name} where xmin::text = :xid"), {"xid": xid})
            for name in names
        )
        return sum(map(int, filter(None, counted)))


def timed(what: str, act: Callable[[], Any]) -> Any:
    begun = time.perf_counter()
    answer = act()
    print(f"\n{what}: {time.perf_counter() - begun:.2f} s")
    return answer


def test_a_year_of_many_contracts_is_upgraded_and_pruned(
    year: int, store: Engine, owned_store: Engine, store_dsn: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with capsys.disabled():
        upgrade_it(owned_store, store_dsn, contracts=year)
        prune_it(store, owned_store)


def upgrade_it(owned: Engine, store_dsn: str, *, contracts: int) -> None:
    """Each file stays, and no more than a few rows are written, whatever the store holds."""
    with owned.connect() as connection:
        assert connection.scalar(text("select count(*) from tallystick.verdict")) == contracts * WINDOWS
        assert connection.scalar(text("select count(*) from tallystick.item_break")) == contracts * WINDOWS * BREAKS
    now = relations(owned)
    timed("one revision back", lambda: downgrade(owned))
    before = relations(owned)
    timed("upgrade from the revision before", lambda: migrate(owned))
    after = relations(owned)
    assert after.keys() == now.keys()
    assert {name for name in before if after[name] != before[name]} == set()
    assert 1 <= written_by_the_migration(owned) <= WRITTEN_MAX
    open_store(store_dsn).dispose()


def prune_it(store: Engine, owned: Engine) -> None:
    """The first WINDOWS - WHOLE runs of each of these contracts go, and no transaction deletes more than AT_ONCE."""
    older_than = NOON + timedelta(hours=WINDOWS - WHOLE)
    names = ["payouts", *(f"payouts_{k}" for k in range(1, PRUNED))]
    seen: list[tuple[str, str, int, float]] = []

    def prune_all() -> None:
        for name in names:
            found = prune(
                owned,
                name,
                older_than_utc=older_than,
                terminal=ADA,
                on_batch=lambda *told: seen.append((*told, time.perf_counter())),
                batch=AT_ONCE,
            )
            ended = WINDOWS - WHOLE - 1
            assert (found.first_cut_n, found.kept_from_cut_n) == (0, WINDOWS - WHOLE)
            assert (found.gone["items"], found.gone["breaks"]) == (ended * BREAKS, ended * BREAKS)
            assert found.gone["alerts"] > ended - 3

    sizes(owned, "before")
    timed(f"{PRUNED * (WINDOWS - WHOLE):,} runs pruned", prune_all)
    longest = max(b[3] - a[3] for a, b in pairwise(seen))
    print(f"{len(seen)} transactions, the longest with what lay between {longest:.3f} s")
    steps = [after[2] - (before[2] if before[:2] == after[:2] else 0) for before, after in pairwise([_NOTHING, *seen])]
    assert max(steps) == AT_ONCE
    sizes(owned, "after, with what autovacuum has not given back")
    whole = read_run(store, "payouts", WINDOWS - WHOLE)
    assert whole is not None
    assert len(whole.result.breaks) == BREAKS
    assert len(list_runs(store, f"payouts_{PRUNED}", limit=1000)) == WINDOWS


def sizes(owned: Engine, when: str) -> None:
    """Print bytes by what prunes and what stays."""
    asked = (
        "select relname, pg_total_relation_size(oid) from pg_class "
        "where relnamespace = 'tallystick'::regnamespace and relkind = 'r' order by 2 desc"
    )
    with owned.connect() as connection:
        found = connection.execute(text(asked)).all()
    print(f"{when}: " + ", ".join(f"{name} {size / 1e6:.1f} MB" for name, size in found if size > 1e6))
