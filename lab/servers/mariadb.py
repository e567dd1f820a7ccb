"""A real MariaDB of Debian's package (`make mariadb-setup`), on 127.0.0.1, with passwords.

Decides nothing about schemas: a test makes its databases, tables and accounts.
"""

import os
import secrets
import shutil
import signal
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import pymysql
from pymysql.constants import CR

from lab.servers import process
from lab.servers.ports import free_port

_SERVER = Path("/usr/sbin/mariadbd")
_MAKE_DATA = "mariadb-install-db"
_NO_SETTINGS_OF_THE_MACHINE = "--no-defaults"

READER = "tallystick_reader"


class MariadbDidNotStart(RuntimeError):
    """The server is not installed, or ended before it answered; the message carries the end of its log."""


@dataclass
class MariadbServer:
    """One server with a data folder, a port and a socket of its own. A commit reaches the disk before it returns."""

    folder: Path
    port: int = field(default_factory=free_port)
    passwords: dict[str, str] = field(default_factory=lambda: {"root": secrets.token_urlsafe(18)}, repr=False)
    child: subprocess.Popen[bytes] | None = None

    def url(self, role: str, database: str = "") -> str:
        """Return SQLAlchemy's address of a database for a role, password included."""
        return f"mariadb+pymysql://{role}:{self.passwords[role]}@127.0.0.1:{self.port}/{database}"

    def initialise(self) -> None:
        """Make the data folder. Raises MariadbDidNotStart."""
        if not _SERVER.exists() or not shutil.which(_MAKE_DATA):
            raise MariadbDidNotStart(f"no {_SERVER}; `make mariadb-setup` installs it")
        self.folder.mkdir(parents=True)
        argv = [_MAKE_DATA, _NO_SETTINGS_OF_THE_MACHINE, f"--datadir={self.folder}", *_as_root()]
        argv += ["--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve"]
        if process.spawn(argv, log=self.log).wait(120) != 0:
            raise MariadbDidNotStart(_tail(self.log))
        self._init_file.touch(mode=0o600)
        self._init_file.write_text(
            f"ALTER USER root@localhost IDENTIFIED BY '{self.passwords['root']}';\n"
            f"CREATE OR REPLACE USER root@'127.0.0.1' IDENTIFIED BY '{self.passwords['root']}';\n"
            "GRANT ALL ON *.* TO root@'127.0.0.1' WITH GRANT OPTION;\n"
        )

    def start(self) -> None:
        """Start the server and return once it answers. Raises MariadbDidNotStart."""
        argv = [str(_SERVER), _NO_SETTINGS_OF_THE_MACHINE, f"--datadir={self.folder}", *_as_root()]
        argv += [f"--port={self.port}", "--bind-address=127.0.0.1", f"--socket={self.folder / 'server.sock'}"]
        argv += ["--innodb-buffer-pool-size=64M", "--innodb-flush-log-at-trx-commit=1", "--skip-name-resolve"]
        argv += [f"--init-file={self._init_file}"]
        self.child = process.spawn(argv, log=self.log, death_signal=signal.SIGKILL)
        process.wait_until(self._answers, what=f"MariaDB on port {self.port}", deadline_seconds=60)

    def kill(self) -> None:
        """SIGKILL the server, as a power cut would."""
        process.kill_tree(self.child)

    def stop(self) -> None:
        """Shut down; safe to call again, and when the server never started."""
        process.stop(self.child)
        self._init_file.unlink(missing_ok=True)

    def connect(
        self, role: str = "root", *, database: str | None = None
    ) -> "pymysql.Connection[pymysql.cursors.Cursor]":
        """Open an autocommit connection."""
        return pymysql.connect(
            host="127.0.0.1",
            port=self.port,
            user=role,
            password=self.passwords[role],
            database=database,
            autocommit=True,
            connect_timeout=5,
        )

    @property
    def log(self) -> Path:
        """The file that the server and its setup write to."""
        return self.folder.with_suffix(".log")

    @property
    def _init_file(self) -> Path:
        return self.folder.with_suffix(".init.sql")

    def _answers(self) -> bool:
        if self.child is None or self.child.poll() is not None:
            raise MariadbDidNotStart(_tail(self.log))
        try:
            self.connect().close()
        except pymysql.err.OperationalError as error:
            if error.args[0] != CR.CR_CONN_HOST_ERROR:  # that nothing listens yet
                raise
            return False
        return True


def _as_root() -> tuple[str, ...]:
    """MariaDB runs as root only where it is told to."""
    return ("--user=root",) if os.geteuid() == 0 else ()


def _tail(log: Path) -> str:
    return log.read_text(errors="replace")[-2000:] if log.exists() else "no log"
