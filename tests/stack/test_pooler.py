"""A PgBouncer before the ledger: it hands no settings of a session on, so it is refused, whatever it says of them."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lab.servers.ports import free_port
from lab.servers.postgres import LEDGER_DATABASE, LEDGER_READER, PostgresServer
from lab.servers.process import REPOSITORY, port_answers, spawn, stop, wait_until
from lab.servers.stack import LabStack
from tallystick.ledger.postgres_connection import LedgerBehindPooler, open_ledger
from tallystick.ledger.protocol import LedgerUnreachable

TOOLS = REPOSITORY / ".tools"


@pytest.fixture(scope="module")
def pgbouncer() -> Path:
    subprocess.run([sys.executable, REPOSITORY / "setup" / "pgbouncer.py"], check=True)
    return TOOLS / "pgbouncer"


@contextmanager
def pooled(program: Path, server: PostgresServer, folder: Path, *, mode: str, ignored: str) -> Iterator[str]:
    """The reader's address of the ledger's database by a pooler, which is gone at the end."""
    port, accounts, settings = free_port(), folder / "accounts", folder / "pgbouncer.ini"
    accounts.write_text("".join(f'"{name}" "{secret}"\n' for name, secret in server.passwords.items()))
    settings.write_text(
        f"[databases]\n* = host=127.0.0.1 port={server.port}\n[pgbouncer]\nlisten_addr = 127.0.0.1\n"
        f"listen_port = {port}\nunix_socket_dir =\nauth_type = scram-sha-256\nauth_file = {accounts}\n"
        f"pool_mode = {mode}\nignore_startup_parameters = {ignored}\n"
        + ("user = nobody\n" if os.geteuid() == 0 else "")
    )
    for made in (folder, accounts, settings):
        made.chmod(0o755)
    environment = {"LD_LIBRARY_PATH": str(TOOLS)}
    child = spawn([str(program), str(settings)], log=folder / "pgbouncer.log", environment=environment)
    try:
        wait_until(lambda: port_answers(port), what="PgBouncer")
        yield server.dsn(LEDGER_READER, LEDGER_DATABASE).replace(f":{server.port}/", f":{port}/")
    finally:
        stop(child)


@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_a_pooler_that_drops_the_settings_of_a_session_is_refused_and_the_server_behind_it_is_read(
    stack: LabStack, pgbouncer: Path, build_folder: Path, mode: str
) -> None:
    folder = build_folder / f"pooler-{mode}"
    folder.mkdir(exist_ok=True)
    with pooled(pgbouncer, stack.ledger_server, folder, mode=mode, ignored="options") as dsn:
        said = r"got row_security=on; expected off, .* PgBouncer .* lead past the pooler"
        with pytest.raises(LedgerBehindPooler, match=said), open_ledger(dsn):
            pass
        with pytest.raises(LedgerBehindPooler, match=said), open_ledger(dsn, may_write=True):
            pass
    with open_ledger(stack.ledger_reader_dsn) as direct:
        assert direct.execute("SELECT current_setting('row_security')").fetchone() == ("off",)


def test_a_pooler_that_refuses_the_settings_says_that_it_is_one(
    stack: LabStack, pgbouncer: Path, build_folder: Path
) -> None:
    folder = build_folder / "pooler"
    folder.mkdir(exist_ok=True)
    with pooled(pgbouncer, stack.ledger_server, folder, mode="transaction", ignored="") as dsn:
        said = "unsupported startup parameter.*; a pooler such as PgBouncer is in between"
        with pytest.raises(LedgerUnreachable, match=said), open_ledger(dsn):
            pass
