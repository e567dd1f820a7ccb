"""A copy of a ledger's server, as a replica or a restored one would be."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lab.servers.postgres import LEDGER_DATABASE, LEDGER_READER, PostgresServer


@contextmanager
def copy_of(server: PostgresServer, name: str) -> Iterator[PostgresServer]:
    """A hot standby that has replayed all; stopped at the end."""
    copy = server.copy(Path(server.folder).with_name(name))
    try:
        copy.start()
        copy.wait_replayed(server)
        yield copy
    finally:
        copy.stop()


def copy_of_the_disk(server: PostgresServer, name: str) -> PostgresServer:
    """The server as it is now, as a snapshot of a virtual machine is; not started yet, and no standby."""
    copy = server.copy(Path(server.folder).with_name(name))
    (copy.folder / "standby.signal").unlink()
    return copy


def reader_of(server: PostgresServer) -> str:
    return server.dsn(LEDGER_READER, LEDGER_DATABASE)
