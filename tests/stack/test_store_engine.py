"""Opening the store and migrating it."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, Engine, bindparam, make_url, select, text, update
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.exc import OperationalError
from typer.testing import CliRunner

from lab.servers.ports import free_port
from lab.servers.postgres import STORE_OWNER, STORE_ROLE
from lab.servers.process import wait_until
from lab.servers.stack import LabStack
from tallystick.cli.app import app
from tallystick.connections.connections import ConnectionNotGiven
from tallystick.model.verdict import Verdict
from tallystick.store.downgrade_refused import DowngradeRefused
from tallystick.store.engine import (
    StoreNotMigrated,
    StoreUnreachable,
    connect_store,
    downgrade,
    migrate,
    open_store,
    open_store_to_read,
)
from tallystick.store.schema import OLDEST_SERVED, REVISION, SCHEMA, VERSION_TABLE, metadata, served_revision

from .conftest import Books

PREVIOUS = f"{int(REVISION) - 1:04d}"


def differences(store_dsn: str) -> list[Any]:
    """What Alembic would change. The search path leaves our schema out, or reflection would not name it."""
    engine = connect_store(f"{store_dsn}?options=-csearch_path%3Dpublic")
    with engine.connect() as connection:
        options = {
            "include_schemas": True,
            "include_name": lambda name, kind, _: kind != "schema" or name == SCHEMA,
            "compare_type": True,
            "compare_server_default": True,
            "version_table": VERSION_TABLE,
            "version_table_schema": SCHEMA,
        }
        context = MigrationContext.configure(connection, opts=options)
        return list(compare_metadata(context, metadata))


def test_the_migrations_give_the_shape_that_the_schema_states(store_dsn: str) -> None:
    assert differences(store_dsn) == []


def test_the_comparison_sees_a_missing_column(store_dsn: str, owned_store: Engine) -> None:
    with owned_store.begin() as connection:
        connection.execute(text("alter table tallystick.sample drop column ledger_xmax"))
    assert [difference[0] for difference in differences(store_dsn)] == ["add_column"]


_OF_AN_OLDER_STORE = """
insert into tallystick.contract_version values ('payouts', 'f', 1, '{}');
insert into tallystick.cut values ('payouts', 0, now(), now(), now(), now(), 'f', 'run-0', 1, false);
insert into tallystick.verdict values ('payouts', 0, 'MATCHED', '[]', '{}', 'd', '{}', 1);
insert into tallystick.open_item values
    ('payouts', 'ledger:1', 0, 'ledger', 'k', 't', 'l', 1, 'EUR', 0, now(), now(), 'open', 'waits', true, null, '')
"""


def test_the_items_of_an_older_store_are_kept_as_their_runs_wrote_them(
    empty_store_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, upgrade = connect_store(empty_store_dsn), command.upgrade
    with monkeypatch.context() as older:
        older.setattr(command, "upgrade", lambda config, _: upgrade(config, "0002"))
        migrate(store)
    with store.begin() as connection:
        connection.execute(text(_OF_AN_OLDER_STORE))
    migrate(store)
    with store.connect() as connection:
        rows = connection.execute(text("select item_id, state, step, written_off_by from tallystick.open_item")).all()
    assert [tuple(row) for row in rows] == [("ledger:1", "open", 0, "")]


def test_a_store_says_which_older_version_it_serves(store_dsn: str, owned_store: Engine) -> None:
    with owned_store.connect() as connection:
        assert connection.scalar(select(served_revision.c.oldest)) == OLDEST_SERVED


@pytest.mark.parametrize(("oldest", "served"), [("0019", True), (REVISION, False)])
def test_a_newer_store_serves_an_older_version_where_it_says_so(
    store_dsn: str, owned_store: Engine, monkeypatch: pytest.MonkeyPatch, oldest: str, served: bool
) -> None:
    with owned_store.begin() as connection:
        connection.execute(update(served_revision).values(oldest=oldest))
    monkeypatch.setattr("tallystick.store.engine.REVISION", "0019")
    if served:
        open_store(store_dsn)
    else:
        with pytest.raises(StoreNotMigrated, match=f"expected revision 0019, got {REVISION}; upgrade this Tallystick"):
            open_store(store_dsn)


def whole_shape(store: Engine) -> dict[str, list[Any]]:
    """Columns, constraints, triggers, functions, indexes and rights, as the server has them."""
    asked = {
        "columns": "select table_name, column_name, data_type, column_default, is_nullable "
        "from information_schema.columns where table_schema = 'tallystick' order by 1, 2",
        "constraints": "select conrelid::regclass::text, conname, pg_get_constraintdef(oid) from pg_constraint "
        "where connamespace = 'tallystick'::regnamespace order by 1, 2",
        "triggers": "select tgrelid::regclass::text, tgname, pg_get_triggerdef(oid) from pg_trigger "
        "where not tgisinternal order by 1, 2",
        "functions": "select oid::regprocedure::text, pg_get_functiondef(oid) from pg_proc "
        "where pronamespace = 'tallystick'::regnamespace order by 1",
        "indexes": "select tablename, indexdef from pg_indexes where schemaname = 'tallystick' order by 1, 2",
        "rights": "select relname, relacl::text from pg_class "
        "where relnamespace = 'tallystick'::regnamespace and relkind = 'r' order by 1",
        "served": "select oldest from tallystick.served_revision",
        "revision": "select version_num from tallystick.alembic_version",
    }
    with store.connect() as connection:
        return {name: [tuple(row) for row in connection.execute(text(question))] for name, question in asked.items()}


def test_a_downgrade_leaves_what_the_version_before_had_made(
    empty_store_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, upgrade = connect_store(empty_store_dsn), command.upgrade
    with monkeypatch.context() as older:
        older.setattr(command, "upgrade", lambda config, _: upgrade(config, PREVIOUS))
        migrate(store, grant_to=STORE_ROLE)
    made = whole_shape(store)
    monkeypatch.setenv("TALLYSTICK_STORE_DSN", empty_store_dsn)
    said = CliRunner().invoke(app, ["store", "migrate"]).stdout
    assert said == (
        f"the verdict store is upgraded from revision {PREVIOUS} to {REVISION}, the schema of this version\n"
    )
    migrated = whole_shape(store)
    assert migrated != made
    assert downgrade(store) == PREVIOUS
    assert whole_shape(store) == made
    with pytest.raises(StoreNotMigrated, match=f"expected revision {REVISION}, got {PREVIOUS}; run: tallystick store"):
        open_store(empty_store_dsn)
    with pytest.raises(DowngradeRefused, match=f"expected revision {REVISION}.*got {PREVIOUS}; there is nothing to"):
        downgrade(store)
    migrate(store)
    assert whole_shape(store) == migrated


def with_compared_text(store: Engine, books: Books) -> Callable[[Connection], object]:
    """Give the statement by which a run says something in a compared column."""
    found = books.missing("a")
    books.commit(store, books.result(0))
    books.commit(store, books.result(1, verdict=Verdict.BROKEN, breaks=(found,), items=(books.item(found, n=1),)))
    written_off = {"written_off_by": "Ada", "written_off_because": "paid", "written_off_at": "2026-03-01T12:00:00Z"}
    anew = {"step": 1, "state": "written_off", **written_off, "compared_text": "{}"}
    again = "insert into tallystick.open_item select (jsonb_populate_record(i, :anew)).* from tallystick.open_item i"
    return lambda connection: connection.execute(text(again).bindparams(bindparam("anew", anew, JSONB)))


@pytest.fixture
def at_0022(monkeypatch: pytest.MonkeyPatch) -> Callable[[Engine], None]:
    """Takes a store back to what the version had that brought compared columns, which takes it back from there."""

    def go_back(owned_store: Engine) -> None:
        for revision in ("0023", "0022"):
            assert downgrade(owned_store) == revision
            monkeypatch.setattr("tallystick.store.engine.REVISION", revision)

    return go_back


def test_a_store_whose_items_hold_compared_columns_does_not_go_back(
    store: Engine, owned_store: Engine, books: Books, at_0022: Callable[[Engine], None]
) -> None:
    say = with_compared_text(store, books)
    at_0022(owned_store)
    with owned_store.begin() as connection:
        say(connection)
    with pytest.raises(DowngradeRefused, match=r"items of payouts hold columns that it compares, and revision 0021"):
        downgrade(owned_store)
    with owned_store.connect() as connection:
        assert connection.scalar(text("select count(*) from tallystick.open_item where compared_text = '{}'")) == 1
        assert connection.scalar(text("select version_num from tallystick.alembic_version")) == "0022"


def test_a_downgrade_waits_for_a_run_that_is_about_to_commit_and_is_refused_then(
    store: Engine, owned_store: Engine, books: Books, at_0022: Callable[[Engine], None]
) -> None:
    say = with_compared_text(store, books)
    at_0022(owned_store)
    waits = text("select count(*) from pg_locks where not granted and relation = 'tallystick.open_item'::regclass")
    with ThreadPoolExecutor(1) as beside, owned_store.connect() as running, owned_store.connect() as other:
        say(running)
        going_back = beside.submit(downgrade, owned_store)
        wait_until(lambda: bool(other.scalar(waits)), what="a downgrade that waits", deadline_seconds=30)
        running.commit()
        with pytest.raises(DowngradeRefused, match=r"items of payouts hold columns"):
            going_back.result(timeout=30)


def test_only_the_owner_takes_a_migration_back_and_only_what_this_version_made(
    store_dsn: str, owned_store: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(StoreUnreachable, match=r"role tallystick: .*; expected the role that owns the store"):
        downgrade(connect_store(store_dsn))
    open_store(store_dsn)
    monkeypatch.setattr("tallystick.store.engine.REVISION", "0019")
    with pytest.raises(DowngradeRefused, match=f"got {REVISION}; take it back with the version that migrated it"):
        downgrade(owned_store)


def test_readers_go_on_with_a_password_that_was_changed(stack: LabStack, store_dsn: str) -> None:
    database, role = make_url(store_dsn).database, "reader_of_pages"
    server = stack.store_server
    with server.connect() as admin:
        server.create_role(role, admin)
        migrate(connect_store(server.dsn(STORE_OWNER, str(database))), grant_to=role)
        reader = open_store_to_read(lambda: server.dsn(role, str(database)), connections_max=1)
        question = text("select count(*) from tallystick.verdict")
        with reader.connect() as connection:
            assert connection.scalar(question) == 0
        server.passwords[role] = "another"
        admin.execute(f"ALTER ROLE {role} PASSWORD 'another'")
        admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s", [role])
        with reader.connect() as connection:
            assert connection.scalar(question) == 0
            assert connection.scalar(text("show default_transaction_read_only")) == "on"
        server.passwords[role] = "wrong"
        admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s", [role])
        with pytest.raises(OperationalError, match="password authentication failed"):
            reader.connect()


def test_two_migrations_at_once_are_safe(empty_store_dsn: str) -> None:
    engines = [connect_store(empty_store_dsn) for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(migrate, engines))
    open_store(empty_store_dsn)


def test_migrating_does_not_depend_on_the_working_directory(
    empty_store_dsn: str, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    migrate(connect_store(empty_store_dsn))
    open_store(empty_store_dsn)


def test_a_store_that_was_never_migrated_names_the_command(empty_store_dsn: str) -> None:
    with pytest.raises(StoreNotMigrated, match="run: tallystick store migrate"):
        open_store(empty_store_dsn)


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg"])
def test_the_uri_may_be_written_either_way(store_dsn: str, scheme: str) -> None:
    open_store(store_dsn.replace("postgresql", scheme, 1))


def test_a_store_that_does_not_answer_is_named_without_its_password() -> None:
    port = free_port()
    with pytest.raises(StoreUnreachable) as raised:
        open_store(f"postgresql://tallystick:s3cret@127.0.0.1:{port}/books")
    assert f"127.0.0.1:{port}/books" in str(raised.value)
    assert "s3cret" not in str(raised.value)


def test_a_wrong_password_is_not_shown(store_dsn: str, stack: LabStack) -> None:
    wrong = store_dsn.replace(stack.store_server.passwords["tallystick"], "wr0ng-s3cret")
    with pytest.raises(StoreUnreachable, match="password authentication failed") as raised:
        open_store(wrong)
    assert "wr0ng-s3cret" not in str(raised.value)


@pytest.mark.parametrize("dsn", ["mysql://user:s3cret@host/books", "s3cret", ""])
def test_an_address_that_is_no_postgresql_uri_is_refused_unseen(dsn: str) -> None:
    with pytest.raises(ConnectionNotGiven, match="expected postgresql://") as raised:
        open_store(dsn)
    assert "s3cret" not in str(raised.value)
