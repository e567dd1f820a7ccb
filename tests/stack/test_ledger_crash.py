"""A crash of the ledger's server gives no transaction id below a horizon that was read away again."""

import os
import signal
from contextlib import suppress

import psutil
import psycopg
import pytest

from lab.servers.postgres import LEDGER_READER
from lab.servers.process import wait_until
from lab.servers.stack import LabStack
from tallystick.ledger import postgres
from tallystick.ledger.postgres_connection import open_ledger
from tallystick.ledger.protocol import LedgerUnreachable

from .ledger_servers import versioned

__all__ = ["versioned"]  # a fixture

_WRITERS = ("walwriter", "background writer", "checkpointer", "autovacuum launcher")


@pytest.mark.parametrize("waits", ["on", "off"])
def test_a_crash_right_after_a_horizon_was_read_takes_none_of_its_ids_back(versioned: LabStack, waits: str) -> None:
    """The ids are given to commits that do not wait for the disk, and nobody else writes the log there: all stand.

    waits: whether commits of the reader's role wait for the disk.
    """
    stack, server = versioned, versioned.ledger_server
    with server.connect() as admin:
        admin.execute(f"ALTER ROLE {LEDGER_READER} SET synchronous_commit = {waits}")
    try:
        with (
            server.connect() as admin,
            psycopg.connect(stack.ledger_owner_dsn, autocommit=True) as hasty,
            suppress(LedgerUnreachable),
        ):
            admin.execute("CHECKPOINT")  # one that is under way takes its time, and so minutes, else
            wait_until(lambda: _are_stopped_at_rest(admin), what="PostgreSQL's writers to stand at rest")
            hasty.execute("SET synchronous_commit = off")
            for _ in range(20):
                hasty.execute("SELECT pg_current_xact_id()")
            assert _is_unwritten(hasty)
            with open_ledger(stack.ledger_reader_dsn) as reader:
                before = postgres.read_ledger_snapshot(reader)
                server.kill()
    finally:
        server.restart()
        with server.connect() as admin:
            admin.execute(f"ALTER ROLE {LEDGER_READER} RESET synchronous_commit")
    with open_ledger(stack.ledger_reader_dsn) as reader:
        after = postgres.read_ledger_snapshot(reader)
    assert (after.system_identifier, after.timeline) == (before.system_identifier, before.timeline)
    assert after.low_mark >= before.low_mark


def _are_stopped_at_rest(admin: psycopg.Connection) -> bool:
    """Stop whatever writes the log beside its sessions; let all go on where one held something, or vacuums."""
    pids = [pid for pid, kind, _ in _background(admin) if kind in _WRITERS]
    assert len(pids) == len(_WRITERS)
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: all(psutil.Process(pid).status() == psutil.STATUS_STOPPED for pid in pids), what="a stop")
    found = _background(admin)
    if all(waits == "Activity" for _, kind, waits in found if kind in _WRITERS) and not any(
        kind == "autovacuum worker" for _, kind, _ in found
    ):
        return True
    for pid in pids:
        os.kill(pid, signal.SIGCONT)
    return False


def _background(admin: psycopg.Connection) -> list[tuple[int, str, str | None]]:
    """List process id, kind and what it waits for."""
    query = "SELECT pid, backend_type, wait_event_type FROM pg_stat_activity WHERE backend_type <> 'client backend'"
    return admin.execute(query).fetchall()


def _is_unwritten(hasty: psycopg.Connection) -> bool:
    """Tell whether the last commits are still in memory only."""
    return hasty.execute("SELECT pg_current_wal_lsn() < pg_current_wal_insert_lsn()").fetchone() == (True,)
