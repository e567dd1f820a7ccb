"""What only a store's owner may do: tests change by hand what Tallystick never changes."""

from sqlalchemy import Engine

from lab.servers.postgres import STORE_OWNER
from lab.servers.stack import LabStack
from tallystick.store.engine import connect_store


def owner_dsn(stack: LabStack, store: Engine) -> str:
    """Give the address of the same database for its owner."""
    database = store.url.database
    assert database is not None
    return stack.store_server.dsn(STORE_OWNER, database)


def as_owner(stack: LabStack, store: Engine) -> Engine:
    """Open the same database as its owner."""
    return connect_store(owner_dsn(stack, store))
