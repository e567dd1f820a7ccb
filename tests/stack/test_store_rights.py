"""The role that Tallystick works as in the verdict store: what it needs works, and all else is refused.

That it has what it needs is shown by every other test here, which opens its store as that role.
"""

import re
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DatabaseError
from typer.testing import CliRunner

from lab.servers.postgres import STORE_OWNER, STORE_ROLE
from lab.servers.stack import LabStack
from tallystick.cli.app import app
from tallystick.store.engine import Migrated, StoreUnreachable, connect_store, migrate, open_store
from tallystick.store.rights import RIGHTS
from tallystick.store.schema import APPEND_ONLY, REVISION
from tests.unit.store.kept_tables import KEPT_BY_TRIGGERS

_PRIVILEGES = ("INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER")
_ODD = 'Tally "of":x 50%s'
"""A role's name may hold all that a statement gives a meaning."""


CLOSED = [
    *(f"update tallystick.{table.name} set {table.columns.keys()[1]} = null" for table in APPEND_ONLY),
    *(f"delete from tallystick.{name}" for name in RIGHTS),
    *(f"truncate tallystick.{name}" for name in RIGHTS),
    "insert into tallystick.standing_total values ('payouts', 'open', '', 'EUR', now(), -1, -100)",
    "update tallystick.item_life set ended_cut_n = 0",
    "update tallystick.cut set window_end_utc = window_start_utc",
    "update tallystick.alembic_version set version_num = '0001'",
    "alter table tallystick.audit disable trigger append_only",
    "alter table tallystick.audit disable trigger all",
    "alter table tallystick.audit add column more text",
    "alter table tallystick.audit rename to trail",
    "alter table tallystick.audit owner to current_user",
    "drop trigger append_only on tallystick.audit",
    "drop table tallystick.audit",
    "drop schema tallystick cascade",
    "create trigger mine before insert on tallystick.audit execute function tallystick.refuse_change()",
    "create rule mine as on insert to tallystick.audit do instead nothing",
    "create policy mine on tallystick.audit",
    "create index mine on tallystick.audit (event)",
    "create table tallystick.mine (id int)",
    "create function tallystick.mine() returns int language sql as 'select 1'",
    "create schema mine",
    "create or replace function tallystick.refuse_change() returns trigger language plpgsql "
    "as 'begin return null; end'",
    "select tallystick.add_standing('payouts', 'open', '', 'EUR', now(), 1, 100)",
    "create temp table fresh_items (like tallystick.open_item); create trigger mine after insert on fresh_items "
    "referencing new table as fresh for each statement execute function tallystick.keep_item_life()",
    "set session_replication_role = replica",
    "set role tallystick_owner",
    "copy tallystick.audit to program 'cat'",
]
"""What whoever wants to change the trail would try."""


@pytest.fixture
def role(store: Engine) -> Iterator[Connection]:
    """A connection of the role that everything works as; what it does is taken back."""
    with store.connect() as connection:
        yield connection
        connection.rollback()


def test_the_trail_and_what_guards_it_are_closed_to_the_role(role: Connection) -> None:
    refusal = re.compile("permission denied|must be (able to SET ROLE|owner)")
    answers = {statement: answer_to(role, statement) for statement in CLOSED}
    assert {statement: answer for statement, answer in answers.items() if not refusal.search(answer)} == {}


def answer_to(connection: Connection, statement: str) -> str:
    """What the server said; what it did is taken back."""
    with connection.begin_nested() as taken_back:
        try:
            connection.exec_driver_sql(statement)
        except DatabaseError as error:
            return str(error.orig)
        finally:
            taken_back.rollback()
    return "done"


def test_the_role_has_what_the_table_says_on_the_server_too(role: Connection) -> None:
    """Every table of the schema, those too that nobody listed."""
    names = role.scalars(text("select tablename from pg_tables where schemaname = 'tallystick'")).all()
    asked = text("select has_table_privilege(cast(:table as text), :privilege)")
    held = {
        name: {one for one in _PRIVILEGES if role.scalar(asked, {"table": f"tallystick.{name}", "privilege": one})}
        for name in names
    }
    assert held == {name: {"INSERT"} if rights.may_insert else set() for name, rights in RIGHTS.items()}
    assert role.scalar(text("select has_schema_privilege('tallystick', 'CREATE')")) is False


def test_what_triggers_keep_is_kept_though_the_role_may_not_write_it(store: Engine, books: Any) -> None:
    found = books.missing("a")
    books.commit(store, books.result(0, breaks=(found,), items=(books.item(found, n=0),)))
    with store.connect() as connection:
        kept = {name: connection.scalar(text(f"select count(*) from tallystick.{name}")) for name in KEPT_BY_TRIGGERS}
    assert set(kept.values()) == {1}


def test_a_role_that_was_granted_has_its_rights_after_each_migration(empty_store_dsn: str) -> None:
    """A store of an older version: what came since then is granted too, and what is too much is taken away."""
    owned = connect_store(empty_store_dsn)
    migrate(owned, grant_to=STORE_ROLE)
    with owned.begin() as connection:
        connection.exec_driver_sql("revoke all on tallystick.verdict from tallystick")
        connection.exec_driver_sql("grant all on all tables in schema tallystick to tallystick")
        connection.exec_driver_sql("grant update (detail) on tallystick.audit to tallystick")
    assert migrate(owned) == Migrated(before=REVISION, granted=[STORE_ROLE])
    with owned.connect() as connection:
        asked = text("select has_any_column_privilege('tallystick', 'tallystick.' || :table, :privilege)")
        may = {
            (table, privilege): connection.scalar(asked, {"table": table, "privilege": privilege})
            for table in ("verdict", "audit")
            for privilege in ("INSERT", "UPDATE")
        }
    assert may == {(table, one): one == "INSERT" for table in ("verdict", "audit") for one in ("INSERT", "UPDATE")}


def test_a_role_that_was_granted_nothing_is_told_what_to_ask_for(
    stack: LabStack, empty_store_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_role = stack.store_server.dsn(STORE_ROLE, make_url(empty_store_dsn).database or "")
    refusal = "role tallystick: permission denied for schema tallystick; run as the store's owner: tallystick store"
    migrate(connect_store(empty_store_dsn))
    with pytest.raises(StoreUnreachable, match=refusal):
        open_store(as_role)
    monkeypatch.setenv("TALLYSTICK_STORE_DSN", as_role)
    refused = CliRunner().invoke(app, ["store", "migrate"])
    assert (refused.exit_code, "expected the role that owns the store" in refused.stderr) == (2, True)


def test_a_role_of_any_name_is_granted_and_one_that_no_grant_limits_is_refused(
    stack: LabStack, empty_store_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TALLYSTICK_STORE_DSN", empty_store_dsn)

    def granted(role: str) -> tuple[int, str]:
        done = CliRunner().invoke(app, ["store", "migrate", "--grant-to", role])
        return done.exit_code, done.stdout + done.stderr

    odd = f"{_ODD} {uuid.uuid4().hex}"
    quoted = odd.replace('"', '""')
    with stack.store_server.connect() as admin:
        admin.execute(f'create role "{quoted}"')
        made = f"the verdict store is made, with the schema of this version: revision {REVISION}\n"
        assert granted(odd) == (0, made)
        already = f"the verdict store has the schema of this version already: revision {REVISION}\n"
        assert granted(odd) == (0, already)
        with connect_store(empty_store_dsn).connect() as connection:
            asked = text("select has_table_privilege(:role, 'tallystick.audit', 'INSERT')")
            assert connection.scalar(asked, {"role": odd}) is True
        admin.execute(f'grant pg_write_all_data to "{quoted}"')
        code, said = granted(odd)
        assert (code, "it may do more to tallystick.acting_switch than add and read" in said) == (2, True)
        admin.execute(f'revoke pg_write_all_data from "{quoted}"')
    assert granted("nobody_at_all")[0] == 2
    for powerful in (STORE_OWNER, "postgres"):
        code, said = granted(powerful)
        assert (code, "no grant limits it" in said) == (2, True)
