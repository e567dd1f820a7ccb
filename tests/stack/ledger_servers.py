"""A ledger's server of another version than the stack's own."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from lab.servers.postgres import (
    LEDGER_DATABASE,
    LEDGER_OWNER,
    LEDGER_READER,
    PostgresServer,
    binaries_of,
    create_ledger,
)
from lab.servers.stack import LabStack


@contextmanager
def with_ledger_of(stack: LabStack, version: int) -> Iterator[LabStack]:
    """The same stack with a running ledger of that major version, which is gone at the end."""
    folder = Path(stack.folder) / f"ledger-{version}"
    server = PostgresServer(folder, fsync=True, binaries=binaries_of(version))
    try:
        server.initialise()
        server.start()
        create_ledger(server)
        yield with_ledger(stack, server)
    finally:
        server.stop()


def with_ledger(stack: LabStack, server: PostgresServer) -> LabStack:
    """The same stack with another ledger, whose database and roles are there."""
    owner, reader = (server.dsn(role, LEDGER_DATABASE) for role in (LEDGER_OWNER, LEDGER_READER))
    return replace(stack, ledger_server=server, ledger_owner_dsn=owner, ledger_reader_dsn=reader)
