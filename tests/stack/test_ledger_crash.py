"""A crash of the ledger's server gives no transaction id below a horizon that was read away again."""

from contextlib import suppress

import psycopg

from lab.servers.process import wait_until
from lab.servers.stack import LabStack
from tallystick.ledger import postgres
from tallystick.ledger.postgres_connection import open_ledger
from tallystick.ledger.protocol import LedgerUnreachable


def test_a_crash_right_after_a_horizon_was_read_takes_none_of_its_ids_back(stack: LabStack) -> None:
    """The ids are given to commits that do not wait for the disk, and the log's background writer sleeps."""
    server = stack.ledger_server
    with server.connect() as admin:
        admin.execute("ALTER SYSTEM SET wal_writer_delay = '10s'")
        admin.execute("SELECT pg_reload_conf()")
    try:
        with psycopg.connect(stack.ledger_owner_dsn, autocommit=True) as hasty, suppress(LedgerUnreachable):
            hasty.execute("SET synchronous_commit = off")
            wait_until(lambda: _is_unwritten_after_a_commit(hasty), what="the background writer to sleep")
            for _ in range(20):
                hasty.execute("SELECT pg_current_xact_id()")
            with open_ledger(stack.ledger_reader_dsn) as reader:
                before = postgres.read_ledger_snapshot(reader)
                server.kill()
    finally:
        server.restart()
        with server.connect() as admin:
            admin.execute("ALTER SYSTEM RESET wal_writer_delay")
            admin.execute("SELECT pg_reload_conf()")
    with open_ledger(stack.ledger_reader_dsn) as reader:
        after = postgres.read_ledger_snapshot(reader)
    assert (after.system_identifier, after.timeline) == (before.system_identifier, before.timeline)
    assert after.low_mark >= before.low_mark


def _is_unwritten_after_a_commit(hasty: psycopg.Connection) -> bool:
    """Give an id away and look whether its commit is still in memory only."""
    hasty.execute("SELECT pg_current_xact_id()")
    row = hasty.execute("SELECT pg_current_wal_lsn() < pg_current_wal_insert_lsn()").fetchone()
    return row == (True,)
