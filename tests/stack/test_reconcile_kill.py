"""Killed at any step, the job leaves nothing behind; the next attempt stores what a job that nobody killed stores.

One set of books. Its cut is judged twice: undisturbed in a copy of the store, and here after many killed attempts.
"""

import json
import os
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest
from pyspark.sql import SparkSession
from sqlalchemy.exc import OperationalError

from lab.servers import process
from lab.servers.process import wait_until
from tallystick.ledger.postgres import read_ledger_snapshot
from tallystick.ledger.postgres_connection import open_ledger
from tallystick.ledger.protocol import LedgerUnreachable
from tallystick.model.cut import Cut
from tallystick.model.run_result import RunResult
from tallystick.model.verdict import Verdict
from tallystick.spark.spark_job import submit_argv
from tallystick.store.runs.cut_store import open_cut
from tallystick.store.runs.run_store import read_run
from tallystick_spark import reconcile_app
from tests.stack.live_books import (
    TWO_LEGS,
    LiveBooks,
    both_legs,
    copy_of_store,
    invoice,
    payment,
    payments,
    table_contents,
)

from .live import NO_SPARK, RUN_SETTINGS, NewBooks
from .store_owner import owner_dsn

pytestmark = [pytest.mark.timeout(900), pytest.mark.usefixtures("spark")]

STEPS = ("claimed", "scanning", "scanned", "census_taken", "investigated", "judged", "committing")
STEP_SECONDS_MAX = 240
"""A JVM starts slowly where tests share two cores."""

CHANGES_BY_ATTEMPT = ("attempt", "recorded_at", "alert_id", "key_index")
"""A key index is named by its attempt, and the seed of its hashes is drawn by the first one."""


class Attempt:
    """The app in a process of its own, which is our child: a client of a Spark that stays, where `remote` names one,
    or else a real spark-submit: a JVM, and the Python driver, which is the JVM's child.
    """

    def __init__(
        self,
        books: LiveBooks,
        cut: Cut,
        log: Path,
        *,
        remote: Mapping[str, str] = NO_SPARK,
        master: str = "local[2]",
        reread: bool = False,
    ) -> None:
        environment = {
            **os.environ,  # new_books has put the connections there
            **spark_environment(master),
            **remote,
            "TALLYSTICK_STORE_DSN": _store_dsn(books),
        }
        argv = submit_argv([(books.contract_file, cut.n)], reread=reread, environment=environment)
        self.log = log
        self.child = process.spawn(argv, log=log, stdout=subprocess.PIPE, environment=environment)

    def wait_for(self, step: str) -> dict[str, Any]:
        """Read what it reports until it reaches the step."""
        timer = threading.Timer(STEP_SECONDS_MAX, self.end)
        timer.start()
        try:
            assert self.child.stdout is not None
            for line in self.child.stdout:
                if line.startswith(b'{"step": '):
                    report: dict[str, Any] = json.loads(line)
                    if report["step"] == step:
                        return report
        finally:
            timer.cancel()
        raise AssertionError(f"it ended before {step}: {self.log.read_text(errors='replace')[-3000:]}")

    def kill(self) -> None:
        """Kill our child. A driver outlives its JVM by no more than the kernel's signal."""
        drivers = self._drivers()
        self.child.kill()
        assert self.child.wait() != 0
        psutil.wait_procs(drivers, timeout=STEP_SECONDS_MAX)

    def kill_driver(self) -> None:
        """Kill the driver of a spark-submit; its JVM ends by itself."""
        (driver,) = self._drivers()
        driver.kill()
        assert self.child.wait(STEP_SECONDS_MAX) != 0

    def end(self) -> None:
        process.kill_tree(self.child)

    def _drivers(self) -> list[psutil.Process]:
        """Give the JVM's Python process that runs the application; its other one serves Spark's Python workers."""
        children = psutil.Process(self.child.pid).children()
        return [child for child in children if "python" in child.name() and child.cmdline()[1:2] != ["-m"]]


def spark_environment(master: str) -> dict[str, str]:
    return {
        **RUN_SETTINGS,
        "TALLYSTICK_SPARK_MASTER": master,
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }


@contextmanager
def attempt(books: LiveBooks, cut: Cut, folder: Path, **how: Any) -> Iterator[Attempt]:
    running = Attempt(books, cut, folder / f"{uuid.uuid4().hex}.log", **how)
    try:
        yield running
    finally:
        running.end()


@dataclass(frozen=True)
class Twins:
    """The same stored cut in two stores; in the untouched one it is judged by nobody who is killed."""

    untouched: LiveBooks
    killed: LiveBooks
    cut: Cut

    def contents(self, books: LiveBooks) -> dict[str, Any]:
        """All rows about this contract, but for what counts attempts and moments."""
        contents = table_contents(books.store, contract=self.cut.contract, leave_out=CHANGES_BY_ATTEMPT)
        ours = ("contract", self.cut.contract)
        return {name: [row for row in rows if ours in row] for name, rows in contents.items()}


@pytest.fixture(scope="module")
def twins(new_books: NewBooks, spark: SparkSession) -> Iterator[Twins]:
    sinks = [{"kind": "file", "path": "alerts.jsonl"}]
    with new_books(direction="topic_to_ledger", legs=TWO_LEGS, alert={"sinks": sinks}) as books:
        books.take_cut()
        books.produce(*both_legs("a", "b", "c"), abort=True)
        books.both(*both_legs("a", "b", "c"))
        books.produce(payment("a"))
        books.produce(*both_legs("unposted"))
        books.post(invoice("unposted"))
        books.both(payment("torn"))
        cut = books.take_cut()
        with copy_of_store(books) as killed:
            yield Twins(books, killed, cut)


def without_index(result: RunResult) -> RunResult:
    """The key index names its attempt's folder."""
    return replace(result, key_index=None)


SUBMITTED: Mapping[str, Callable[[Attempt], None]] = {"investigated": Attempt.kill_driver, "committing": Attempt.kill}
"""What is killed of a spark-submit, and at which step; at the others a client of a Spark that stays is killed."""


def test_killed_at_any_step_it_stores_nothing_and_the_next_attempt_stores_what_its_twin_did(
    twins: Twins, warm_spark: Mapping[str, str], tmp_path: Path
) -> None:
    """A lock on the open items keeps an attempt from getting past its commit, so that none is killed too late."""
    cut, books = twins.cut, twins.killed
    assert twins.untouched.judge(cut).result.verdict is Verdict.BROKEN
    before = twins.contents(books)
    for step in STEPS:
        remote = NO_SPARK if step in SUBMITTED else warm_spark
        with closing(_lock_open_items(books)), attempt(books, cut, tmp_path, remote=remote) as running:
            running.wait_for(step)
            if step == "committing":
                wait_until(partial(_is_committing, books), what="a commit that has begun")
            SUBMITTED.get(step, Attempt.kill)(running)
        books.store.dispose()  # the test's own session
        wait_until(partial(_has_no_session, books), what="the server to drop the killed sessions")
        assert read_run(books.store, cut.contract, cut.n) is None, step
        assert open_cut(books.store, cut.contract) == cut, step
        assert twins.contents(books) == before, step

    with attempt(books, cut, tmp_path, remote=warm_spark) as last:
        committed = last.wait_for("committed")
        last.end()  # killed too late to matter
        stored = books.stored_run(cut)
        assert (committed["verdict"], committed["digest"]) == (stored.result.verdict, stored.result.digest)
        assert without_index(stored.result) == without_index(twins.untouched.stored_run(cut).result)
        assert stored.attempt == len(STEPS) + 1
        assert twins.contents(books) == twins.contents(twins.untouched) != before


def test_an_attempt_after_the_commit_and_a_reread_on_one_core_change_nothing(
    twins: Twins, warm_spark: Mapping[str, str], tmp_path: Path
) -> None:
    books, cut = twins.untouched, twins.cut
    before, digest = table_contents(books.store), books.stored_run(cut).result.digest
    with (
        attempt(books, cut, tmp_path, remote=warm_spark) as again,
        attempt(books, cut, tmp_path, master="local[1]", reread=True) as reread,
    ):
        assert again.wait_for("already_judged")["digest"] == digest
        assert reread.wait_for("reread") == {"step": "reread", "verdict": "BROKEN", "digest": digest, "same": True}
        assert (again.child.wait(STEP_SECONDS_MAX), reread.child.wait(STEP_SECONDS_MAX)) == (0, 0)
    assert table_contents(books.store) == before


def test_a_store_that_dies_in_the_middle_of_the_commit_has_nothing_of_it(new_books: NewBooks) -> None:
    with new_books(direction="topic_to_ledger") as books:
        books.take_cut()
        books.both(*payments("a", "b"))
        books.produce(payment("unposted"))
        cut = books.take_cut()
        with copy_of_store(books) as untouched:
            twins = Twins(untouched, books, cut)
            untouched.judge(cut)
            before = twins.contents(books)

            def kill_the_store_mid_commit() -> None:
                wait_until(partial(_is_committing, books), what="a commit that has begun", deadline_seconds=120)
                books.stack.store_server.kill()

            with closing(_lock_open_items(books)):
                killer = threading.Thread(target=kill_the_store_mid_commit)
                killer.start()
                with pytest.raises(OperationalError):
                    books.judge(cut)
                killer.join()
            books.stack.store_server.restart()
            assert twins.contents(books) == before
            books.judge(cut)
            assert twins.contents(books) == twins.contents(untouched)


@pytest.mark.parametrize("step", ["scanning", "census_taken"])
def test_a_ledger_that_dies_under_the_job_leaves_the_cut_to_the_next_attempt(
    new_books: NewBooks, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    with new_books(direction="topic_to_ledger") as books:
        books.take_cut()
        books.both(*payments("a", "b"))
        books.produce(payment("unposted"))
        cut = books.take_cut()
        announce = reconcile_app.announce

        def die_at(reached: str, **figures: object) -> None:
            announce(reached, **figures)
            if reached == step:
                books.stack.ledger_server.kill()

        with monkeypatch.context() as patch:
            patch.setattr(reconcile_app, "announce", die_at)
            with pytest.raises(LedgerUnreachable, match="ledger: "):
                books.judge(cut)
        books.stack.ledger_server.restart()
        assert open_cut(books.store, cut.contract) == cut
        run = books.judge(cut)
        found = [(one.break_class, one.match_key) for one in run.result.breaks]
        assert found == [("missing_in_ledger", payment("unposted").event_id)]


def test_a_ledger_that_crashes_right_after_a_cut_gives_no_transaction_id_away_again(new_books: NewBooks) -> None:
    """Writers that do not wait for the disk lose their last commits in a crash; the cut's horizon was flushed first."""
    with new_books(direction="topic_to_ledger") as books:
        server = books.stack.ledger_server
        books.take_cut()
        books.both(*payments("a", "b"))
        with books.connect() as hasty:
            hasty.execute("SET synchronous_commit = off")
            for _ in range(20):
                hasty.execute("SELECT pg_current_xact_id()")
            books.post(payment("c"), connection=hasty)
            cut = books.take_cut(settled=False)
            server.kill()
        server.restart()
        with open_ledger(books.stack.ledger_reader_dsn) as reader:
            assert read_ledger_snapshot(reader).low_mark >= cut.ledger_slice.position_end
        with books.connect() as writer:
            books.post(payment("d"), connection=writer)
        books.produce(*payments("c", "d"))
        runs = [books.judge(cut), books.next_run()]
        assert [run.result.verdict for run in runs] == [Verdict.MATCHED, Verdict.MATCHED]
        assert sum(run.result.figures.ledger_rows for run in runs) == len(payments("a", "b", "c", "d"))


def _lock_open_items(books: LiveBooks) -> psycopg.Connection:
    """Let nobody write open items, which a commit writes after verdict and breaks, until the connection is closed."""
    holder = psycopg.connect(owner_dsn(books.stack, books.store), application_name="lock")
    holder.execute("LOCK TABLE tallystick.open_item IN SHARE MODE")
    return holder


def _is_committing(books: LiveBooks) -> bool:
    """Does a commit wait for the lock, with verdict and breaks written?"""
    return _count_sessions(books, "wait_event_type = 'Lock' AND query ILIKE 'copy%open_item%'") == 1


def _has_no_session(books: LiveBooks) -> bool:
    return _count_sessions(books, "application_name = 'tallystick'") == 0


def _count_sessions(books: LiveBooks, condition: str) -> int:
    with books.stack.store_server.connect() as admin:
        count = admin.execute(
            f"SELECT count(*) FROM pg_stat_activity WHERE datname = %s AND {condition.replace('%', '%%')}",
            [books.store.url.database],
        ).fetchone()
    assert count is not None
    return int(count[0])


def _store_dsn(books: LiveBooks) -> str:
    return books.store.url.set(drivername="postgresql").render_as_string(hide_password=False)
