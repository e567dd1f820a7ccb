"""Opens the verdict store and brings it to this version's shape.

Knows no table: schema.py says what the shape is, the migrations how it came about.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from psycopg.errors import InsufficientPrivilege
from sqlalchemy import URL, Connection, Dialect, Engine, create_engine, event, make_url, select, text
from sqlalchemy.exc import ArgumentError, OperationalError, ProgrammingError

from tallystick.connections.connections import ConnectionNotGiven
from tallystick.connections.postgres_failures import what_to_do
from tallystick.model.errors import TallystickError
from tallystick.store.downgrade_refused import DowngradeRefused
from tallystick.store.rights import grant, granted_roles
from tallystick.store.schema import REVISION, SCHEMA, VERSION_TABLE, served_revision

_MIGRATIONS = Path(__file__).parent / "migrations"
_DRIVERS = ("postgres", "postgresql", "postgresql+psycopg")
_CONNECTION_SECONDS = 30
"""How long a connection is used again: a run asks dozens of times, and a firewall forgets who is silent for long."""
_MIGRATION_LOCK = 0x7A11_571C
"""Key of the PostgreSQL advisory lock that lets one migration run at a time; any constant will do."""


class StoreUnreachable(TallystickError, ConnectionError):
    """The store does not answer, or lets us not in. The message has host, port and database, never the password."""

    retryable = True


class StoreNotMigrated(TallystickError, RuntimeError):
    """The store has another shape than this version of Tallystick knows."""


@dataclass(frozen=True, kw_only=True)
class Migrated:
    """A store that has this version's shape. before: its revision until then; None: it had none. granted: the roles
    that may work in it.
    """

    before: str | None
    granted: list[str]


def open_store(dsn: str) -> Engine:
    """Connect to a store of this version's shape, or of a newer one that says it serves this version too.

    So the store is migrated first, and who works in it is upgraded one by one, or goes back. Raises StoreUnreachable,
    StoreNotMigrated, ConnectionNotGiven.
    """
    engine = connect_store(dsn)
    with engine.connect() as connection:
        found = _revision(connection, engine.url)
        if found != REVISION and not (found and _serves_us(connection, found)):
            what_to_do = "upgrade this Tallystick" if found and found > REVISION else "run: tallystick store migrate"
            raise StoreNotMigrated(
                f"{_place(engine.url)}: expected revision {REVISION}, got {found or 'none'}; {what_to_do}"
            )
    return engine


def open_store_to_read(read_dsn: Callable[[], str], *, connections_max: int) -> Engine:
    """Connect readers who ask often to a migrated store: a pool, and a server that refuses every write.

    A question is given up after 5 s, so that no page can hold the store. Raises as open_store does.
    read_dsn: asked for the address again whenever a connection is made, so that a password may change meanwhile.
    """
    dsn = read_dsn()
    open_store(dsn).dispose()
    engine = create_engine(
        _url(dsn),
        pool_size=connections_max,
        max_overflow=0,
        pool_timeout=5,
        pool_pre_ping=True,
        isolation_level="AUTOCOMMIT",
        hide_parameters=True,
        connect_args={
            "connect_timeout": 5,
            "application_name": "tallystick pages",
            "options": "-c default_transaction_read_only=on -c statement_timeout=5000",
        },
    )

    @event.listens_for(engine, "do_connect")
    def take_todays_address(dialect: Dialect, _: Any, __: Any, parameters: dict[str, Any]) -> None:
        parameters |= dialect.create_connect_args(_url(read_dsn()))[1]

    return engine


def connect_store(dsn: str) -> Engine:
    """Connect to a store, migrated or not. Raises StoreUnreachable, ConnectionNotGiven.

    One connection is kept while it is young. Who waits for long, or may be forked, disposes of the engine first.
    """
    engine = create_engine(
        _url(dsn),
        pool_size=1,
        max_overflow=-1,
        pool_pre_ping=True,
        pool_recycle=_CONNECTION_SECONDS,
        hide_parameters=True,
        # Whatever the database's default: what is read behind a lock must be what stood there once it was taken.
        isolation_level="READ COMMITTED",
        connect_args={"connect_timeout": 5, "application_name": "tallystick"},
    )
    try:
        engine.connect().close()
    except OperationalError as error:
        raise StoreUnreachable(f"{_place(engine.url)}: {_reason(error, engine.url)}") from None
    return engine


def migrate(engine: Engine, *, grant_to: str | None = None) -> Migrated:
    """Bring the store to this version's shape, in one transaction. Quiet when it is there; two at once are safe.

    grant_to: a role that gets the rights to work in it. Whoever has them already gets them for the new shape too.
    Raises RoleRefused, and StoreUnreachable where we are not the owner.
    """
    from alembic import command  # who only opens a store need not wait for it

    with _shape_changed(engine) as connection:
        before = _newest_migration(connection)
        if connection.scalar(text("select to_regnamespace(:schema) is null"), {"schema": SCHEMA}):
            connection.execute(text(f"create schema {SCHEMA}"))
        command.upgrade(_alembic_config(connection), "head")
        for role in {*granted_roles(connection), *([grant_to] if grant_to else ())}:
            grant(connection, role)
        return Migrated(before=before, granted=granted_roles(connection))


def downgrade(engine: Engine) -> str:
    """Take the newest migration back, in one transaction, and give the revision that the store has then.

    One revision only, and only where nothing is lost: the version before works in it as before. Raises
    DowngradeRefused, and StoreUnreachable where we are not the owner.
    """
    from alembic import command

    with _shape_changed(engine) as connection:
        found = _revision(connection, engine.url)
        if found != REVISION:
            is_newer = bool(found and found > REVISION)
            hint = "take it back with the version that migrated it" if is_newer else "there is nothing to take back"
            raise DowngradeRefused(
                f"{_place(engine.url)}: expected revision {REVISION}, which this version takes back, got "
                f"{found or 'none'}; {hint}"
            )
        command.downgrade(_alembic_config(connection), "-1")
        return str(_revision(connection, engine.url))


@contextmanager
def _shape_changed(engine: Engine) -> Iterator[Connection]:
    """Change the shape in one transaction, one at a time. Raises StoreUnreachable where we are not the owner."""
    try:
        with engine.begin() as connection:
            connection.execute(text("select pg_advisory_xact_lock(:key)"), {"key": _MIGRATION_LOCK})
            yield connection
    except ProgrammingError as error:
        if not isinstance(error.orig, InsufficientPrivilege):
            raise
        raise _refused(error.orig, engine.url, "expected the role that owns the store") from None


def _alembic_config(connection: Connection) -> Any:
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


def _url(dsn: str) -> URL:
    try:
        url = make_url(dsn)
    except (ArgumentError, ValueError):  # the latter of several hosts, which the store cannot be on
        url = None
    if url is None or url.drivername not in _DRIVERS:
        raise ConnectionNotGiven(
            "the verdict store's address is no PostgreSQL URI: expected postgresql://user:password@host:port/database"
        )
    return url.set(drivername="postgresql+psycopg")


def _place(url: URL) -> str:
    return f"verdict store at {url.host or 'local socket'}:{url.port or 5432}/{url.database or url.username or ''}"


def _reason(error: OperationalError, url: URL) -> str:
    """The first line of what was said, and what to do about it."""
    lines = [line for line in str(error.orig).splitlines() if line.strip()]
    reason = lines[0].strip() + what_to_do(str(error.orig)) if lines else "no answer"
    return reason.replace(url.password, "***") if isinstance(url.password, str) and url.password else reason


def _revision(connection: Connection, url: URL) -> str | None:
    """The newest migration that the store has; None where there was none. Raises StoreUnreachable."""
    try:
        return _newest_migration(connection)
    except ProgrammingError as error:
        if not isinstance(error.orig, InsufficientPrivilege):
            raise
        owner_does = f"run as the store's owner: tallystick store migrate --grant-to {url.username or 'ROLE'}"
        raise _refused(error.orig, url, owner_does) from None


def _newest_migration(connection: Connection) -> str | None:
    table = f"{SCHEMA}.{VERSION_TABLE}"
    if connection.scalar(text("select to_regclass(:version_table) is null"), {"version_table": table}):
        return None
    found: str | None = connection.scalar(text(f"select version_num from {table}"))
    return found


def _serves_us(connection: Connection, found: str) -> bool:
    """Return whether a store of another revision is a newer one that serves this version."""
    return found > REVISION and str(connection.scalar(select(served_revision.c.oldest))) <= REVISION


def _refused(error: InsufficientPrivilege, url: URL, what_to_do: str) -> StoreUnreachable:
    return StoreUnreachable(f"{_place(url)}: role {url.username}: {error.diag.message_primary}; {what_to_do}")
