"""PostgreSQL refuses to run as root; its system user is made once, however many servers begin at the same time."""

import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import pytest

from lab.servers import postgres
from lab.servers.process import REPOSITORY

pytestmark = [pytest.mark.stack, pytest.mark.lab]

_BARE = """
set -e
mkdir "$0/etc"
cp -a /etc/. "$0/etc"
sed -i '/^pgserver:/d' "$0"/etc/passwd "$0"/etc/shadow "$0"/etc/group "$0"/etc/gshadow
mount --bind "$0/etc" /etc
! getent passwd pgserver
"$@" "$0/a" & first=$!
"$@" "$0/b" & second=$!
wait $first
wait $second
"""
"""Two processes at once on a machine whose accounts are a copy of this one's, without PostgreSQL's."""

_TWO_SERVERS = """
import sys
from pathlib import Path
from lab.servers.postgres import PostgresServer
from lab.servers.process import in_parallel

servers = [PostgresServer(Path(sys.argv[1]) / name, fsync=False) for name in ("one", "two")]
try:
    in_parallel(*(lambda server=server: (server.initialise(), server.start()) for server in servers))
    for server in servers:
        server.connect().close()
finally:
    in_parallel(*(server.stop for server in servers))
"""


def test_servers_that_begin_at_once_on_a_bare_machine_all_answer(lab_folder: Path) -> None:
    """As root with a mount namespace, the machine is bare; else nothing is made, or what is there is taken."""
    lab_folder.chmod(0o755)
    argv = [sys.executable, "-c", _TWO_SERVERS]
    if _may_have_a_namespace():
        argv = ["unshare", "--mount", "sh", "-c", _BARE, str(lab_folder), *argv]
    else:
        argv.append(str(lab_folder / "a"))
    done = subprocess.run(argv, check=False, cwd=REPOSITORY, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert len({file.stat().st_uid for file in lab_folder.glob("*/*/PG_VERSION")}) == 1


class Made(Exception):
    """The account would have been made here."""


def test_nobody_else_on_the_machine_makes_the_account_meanwhile(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def make(name: str) -> NoReturn:
        with open_folder("/etc") as another, pytest.raises(BlockingIOError):
            fcntl.flock(another, fcntl.LOCK_EX | fcntl.LOCK_NB)
        raise Made(name)

    monkeypatch.setattr(postgres, "ensure_user_exists", make)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(Made, match="pgserver"):
        postgres._account_for(tmp_path, tmp_path)


@contextmanager
def open_folder(path: str) -> Iterator[int]:
    folder = os.open(path, os.O_RDONLY)
    try:
        yield folder
    finally:
        os.close(folder)


def _may_have_a_namespace() -> bool:
    tried = subprocess.run(["unshare", "--mount", "true"], check=False, capture_output=True)
    return os.geteuid() == 0 and tried.returncode == 0
