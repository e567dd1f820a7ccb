"""A ledger's server of another version than the stack's own."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from lab.servers.postgres import (
    LEDGER_DATABASE,
    LEDGER_OWNER,
    LEDGER_READER,
    NEWEST,
    OLDEST,
    PostgresServer,
    binaries_of,
    create_ledger,
)
from lab.servers.stack import LabStack

BETWEEN = 16
"""A version that lacks some of what the newest has, and has some of what the oldest lacks."""


@pytest.fixture(scope="module", params=[NEWEST, OLDEST, BETWEEN])
def versioned(stack: LabStack, request: pytest.FixtureRequest) -> Iterator[LabStack]:
    """The stack, with a ledger of each version in turn; its own is of the newest."""
    if request.param == NEWEST:
        yield stack
        return
    with with_ledger_of(stack, request.param) as older:
        yield older


@contextmanager
def with_ledger_of(stack: LabStack, version: int) -> Iterator[LabStack]:
    """The same stack with a running ledger of that major version, which is gone at the end."""
    folder = Path(stack.folder) / f"ledger-{version}-{uuid.uuid4().hex[:8]}"
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
