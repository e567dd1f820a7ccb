"""Makes a skipped test fail the run: what was not tried proved nothing. And a folder and a store for who asks."""

import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.postgres import PostgresServer, create_store
from lab.process import REPOSITORY

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # by a shell's `&`; a test's processes would inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def build_folder() -> Iterator[Path]:
    """Under build/: PostgreSQL's system user may not enter pytest's folders."""
    parent = REPOSITORY / "build" / "tests"
    parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(prefix="session-", dir=parent))
    yield made
    shutil.rmtree(made, ignore_errors=True)


@pytest.fixture(scope="session")
def store_server(build_folder: Path) -> Iterator[PostgresServer]:
    """PostgreSQL on data of its own, with an empty store."""
    server = PostgresServer(build_folder / "store", fsync=False)
    try:
        server.initialise()
        server.start()
        create_store(server)
        yield server
    finally:
        server.stop()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    skipped = len(reporter.stats.get("skipped", [])) if reporter else 0
    if skipped and exitstatus == pytest.ExitCode.OK:
        reporter.write_line(
            f"\n{skipped} skipped: a test that did not run proved nothing, so this run fails.", red=True
        )
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
