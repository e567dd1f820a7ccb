"""Writers of a ledger, in transactions of every shape that PostgreSQL knows."""

import itertools
import threading
from collections.abc import Callable
from functools import partial

import psycopg

from .ledger_table import Table


def write_all_shapes(table: Table, worker: int, *, until: threading.Event) -> list[str]:
    """Transactions of every shape, at least one round of them. Gives back the keys that were committed."""
    committed: list[str] = []
    with table.connect() as connection:
        for number in itertools.count():
            key = partial("{0}-{1}-{2}".format, worker, number)
            committed += _savepoints(table, connection, key)
            committed += _copied(table, connection, key)
            committed += _prepared(table, connection, key)
            committed += _caught(table, connection, key)
            connection.execute("BEGIN")
            table.insert(connection, key("rolled back"))
            connection.execute("ROLLBACK")
            table.insert(connection, key("plain"))
            committed.append(key("plain"))
            if until.is_set():
                return committed


def _savepoints(table: Table, connection: psycopg.Connection, key: Callable[[str], str]) -> list[str]:
    connection.execute("BEGIN")
    connection.execute("SAVEPOINT kept")  # before the parent has an id of its own
    table.insert(connection, key("kept"))
    connection.execute("RELEASE SAVEPOINT kept")
    connection.execute("SAVEPOINT undone")
    table.insert(connection, key("undone"))
    connection.execute("ROLLBACK TO SAVEPOINT undone")
    table.insert(connection, key("parent"))
    connection.execute("COMMIT")
    return [key("kept"), key("parent")]


def _copied(table: Table, connection: psycopg.Connection, key: Callable[[str], str]) -> list[str]:
    keys = [key("copied 1"), key("copied 2")]
    with connection.cursor() as cursor, cursor.copy(f"COPY {table.name} (event_id) FROM STDIN") as copy:
        for one in keys:
            copy.write_row([one])
    return keys


def _prepared(table: Table, connection: psycopg.Connection, key: Callable[[str], str]) -> list[str]:
    """Two phases; another transaction commits between them."""
    name = f"{table.name}-{key('prepared')}"
    connection.execute("BEGIN")
    table.insert(connection, key("prepared"))
    connection.execute(f"PREPARE TRANSACTION '{name}'")
    table.insert(connection, key("between"))
    connection.execute(f"COMMIT PREPARED '{name}'")
    connection.execute("BEGIN")
    table.insert(connection, key("prepared, rolled back"))
    connection.execute(f"PREPARE TRANSACTION '{name}'")
    connection.execute(f"ROLLBACK PREPARED '{name}'")
    return [key("prepared"), key("between")]


def _caught(table: Table, connection: psycopg.Connection, key: Callable[[str], str]) -> list[str]:
    """A PL/pgSQL exception block is a savepoint in disguise."""
    connection.execute(
        f"""DO $$ BEGIN
            BEGIN
                INSERT INTO {table.name} (event_id) VALUES ('{key("failed")}');
                RAISE EXCEPTION 'no';
            EXCEPTION WHEN raise_exception THEN
                INSERT INTO {table.name} (event_id) VALUES ('{key("caught")}');
            END;
        END $$"""
    )
    return [key("caught")]
