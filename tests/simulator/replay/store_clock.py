"""A real verdict store whose clock is the schedule's: it asks its server for the time, and is told the simulated one.

The store's SQL stays as it is. In its database `clock_timestamp` is found in a schema that comes before PostgreSQL's
own; each call is a microsecond later than the last, as a clock's would be.
"""

import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import datetime

import psycopg
from sqlalchemy import Engine

from lab.servers.postgres import STORE_OWNER, STORE_ROLE, PostgresServer
from tallystick.store.engine import connect_store, migrate, open_store
from tests.simulator.world.clock import Clock

_CLOCK = """
CREATE SCHEMA replay;
CREATE SEQUENCE replay.tick;
CREATE TABLE replay.told AS SELECT '2026-03-01T12:00Z'::timestamptz AS now;
CREATE FUNCTION replay.clock_timestamp() RETURNS timestamptz VOLATILE LANGUAGE sql SECURITY DEFINER
RETURN (SELECT now + nextval('replay.tick') * interval '1 microsecond' FROM replay.told);
GRANT USAGE ON SCHEMA replay TO public;
"""


@dataclass
class ToldClock(Clock):
    """Each step of the clock is told to a store."""

    admin: psycopg.Connection | None = field(default=None, repr=False)

    def go(self, seconds: float) -> None:
        super().go(seconds)
        self.tell()

    def go_to(self, moment: datetime) -> None:
        super().go_to(moment)
        self.tell()

    def tell(self) -> None:
        assert self.admin is not None
        self.admin.execute("UPDATE replay.told SET now = %s", (self.now,))


def make_template(server: PostgresServer) -> str:
    """A migrated database to be copied: its columns' defaults ask the schedule's clock too."""
    name = f"replay_template_{uuid.uuid4().hex[:8]}"
    with server.connect() as admin:
        admin.execute(f"CREATE DATABASE {name} OWNER {STORE_OWNER}")
        _look_here_first(admin, name)
    with server.connect(database=name) as inside:
        inside.execute(_CLOCK)
    engine = connect_store(server.dsn(STORE_OWNER, name))
    migrate(engine, grant_to=STORE_ROLE)
    engine.dispose()
    return name


def _look_here_first(admin: psycopg.Connection, name: str) -> None:
    admin.execute(f"ALTER DATABASE {name} SET search_path = replay, pg_catalog, public")


@contextmanager
def open_told_store(server: PostgresServer, template: str) -> Iterator[tuple[Engine, ToldClock]]:
    """A store of one schedule's own, and its clock; gone at the end."""
    name = f"replay_{uuid.uuid4().hex[:12]}"
    with server.connect() as admin:
        admin.execute(f"CREATE DATABASE {name} TEMPLATE {template} OWNER {STORE_OWNER}")
        _look_here_first(admin, name)
        engine = open_store(server.dsn(STORE_ROLE, name))
        try:
            with closing(server.connect(database=name)) as inside:
                clock = ToldClock(admin=inside)
                clock.tell()
                yield engine, clock
        finally:
            engine.dispose()
            admin.execute(f"DROP DATABASE {name} WITH (FORCE)")
