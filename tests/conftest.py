"""Makes a skipped test fail the run: what was not tried proved nothing. And a folder and a store for who asks."""

import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

from lab.servers.object_store import ObjectStoreServer, object_store
from lab.servers.postgres import PostgresServer, create_store
from lab.servers.process import REPOSITORY

STARTS_AIRFLOW = (
    "tests/stack/test_airflow.py",
    "tests/browser/test_pages_in_airflow.py",
    "tests/browser/test_routes.py",
)
LONGEST = (
    *STARTS_AIRFLOW,
    "tests/soak/test_soak.py",
    "tests/lab/test_mixed_round.py",
    "tests/stack/test_crash.py",
    "tests/stack/test_reconcile_kill.py",
    "tests/stack/test_cli_run.py",
    "tests/stack/test_many_to_one.py",
    "tests/stack/test_repeated_row_ids.py",
    "tests/stack/test_object_store_runs.py",
    "tests/stack/test_spark_server.py",
    "tests/stack/test_spark_cluster.py",
    "tests/stack/test_shop.py",
)
"""They go first, lest one process is at work on them when the others have nothing left to do."""

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # by a shell's `&`; a test's processes would inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)


class OneAirflowAtATime(LoadFileScheduling):
    """A file's tests run in one process; so do those of all that start an Airflow: two at once starve each other."""

    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        return "airflow" if file in STARTS_AIRFLOW else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadFileScheduling | None:
    return OneAirflowAtATime(config, log) if config.getvalue("dist") == "loadfile" else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    order = {file: place for place, file in enumerate(LONGEST)}
    items.sort(key=lambda item: order.get(item.nodeid.split("::")[0], len(LONGEST)))


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


@pytest.fixture(scope="session")
def s3(build_folder: Path) -> Iterator[ObjectStoreServer]:
    """A real server of S3's interface, with an empty bucket. A test may stop it, and starts it again then."""
    with object_store(build_folder / "s3") as running:
        yield running


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    skipped = len(reporter.stats.get("skipped", [])) if reporter else 0
    if skipped and exitstatus == pytest.ExitCode.OK:
        reporter.write_line(
            f"\n{skipped} skipped: a test that did not run proved nothing, so this run fails.", red=True
        )
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
