"""Runs on machines that share no folder, with a real store of objects between them; and with that store gone."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from lab.servers.object_store import ObjectStoreServer
from lab.servers.process import REPOSITORY
from tallystick.documents.breaks_parquet import breaks_place
from tallystick.host.artifacts import (
    ArtifactsUnreachable,
    ObjectPlace,
    copies_of,
    delete_folder,
    is_there,
    names_below,
    read_bytes,
)
from tallystick.ledger.key_index import commit_index, index_folder, readable_indexes
from tallystick.model.finding_names import Doubt
from tallystick.model.verdict import Verdict
from tallystick.report.write_report import report_path
from tallystick.store.runs.run_store import read_run
from tallystick_spark import reconcile_app
from tallystick_spark.readers.key_index_frame import index_of, keys_in_indexes, write_index
from tests.stack.live import NO_SPARK, SPARK_SETTINGS
from tests.stack.live_books import LiveBooks, doubts, expected, kinds, payment, payments
from tests.stack.retention import SENT_AGAIN, expire

NewBooks = Callable[..., AbstractContextManager[LiveBooks]]
SECONDS_MAX = 240
KEYS = ["a", "b", "", "ü", "with space"]
SHAPE = "topic string, partition int, kafka_offset bigint, match_key string, readable boolean"

pytestmark = pytest.mark.timeout(900)


@pytest.fixture
def on_objects(settings: dict[str, str], spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """The app in this process: its tasks get the account with their plan, as none of them has it in its environment."""
    for name, value in settings.items():
        monkeypatch.setenv(name, value)


@dataclass(frozen=True)
class Machine:
    """A machine of one run alone: a folder of its own to work in, and the account in its environment."""

    folder: Path
    environment: dict[str, str]

    def run(self, *arguments: str) -> tuple[int, str, str]:
        done = subprocess.run(
            [sys.executable, "-m", "tallystick", *arguments],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=SECONDS_MAX,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr


@pytest.fixture
def new_machine(s3: ObjectStoreServer, settings: dict[str, str], tmp_path: Path) -> Callable[..., Machine]:
    """Called with books, and with where their run finds Spark; without, it starts one."""
    conf = {name: value for name, value in SPARK_SETTINGS.items() if name != "spark.jars"}

    def make(books: LiveBooks, spark: Mapping[str, str] = NO_SPARK) -> Machine:
        folder = tmp_path / f"machine-{len(list(tmp_path.iterdir()))}"
        folder.mkdir()
        return Machine(
            folder,
            {
                **os.environ,  # new_books has put the connections there
                **s3.environment(),
                "PYTHONPATH": str(REPOSITORY),
                "TALLYSTICK_STORE_DSN": books.store.url.render_as_string(hide_password=False),
                "TALLYSTICK_ARTIFACTS_DIR": settings["TALLYSTICK_ARTIFACTS_DIR"],
                "TALLYSTICK_JARS_DIR": str(REPOSITORY / ".jars" / "spark"),
                "TALLYSTICK_SPARK_MASTER": "local[2]",
                "TALLYSTICK_SPARK_CONF": json.dumps(conf),
                **spark,
            },
        )

    return make


@contextmanager
def gone(s3: ObjectStoreServer) -> Iterator[None]:
    s3.stop()
    try:
        yield
    finally:
        s3.start()


def files_of(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_machines_without_a_shared_folder_leave_all_in_the_store_and_a_run_without_it_is_judged_by_the_next(
    new_books: NewBooks,
    new_machine: Callable[..., Machine],
    warm_spark: dict[str, str],
    place: ObjectPlace,
    s3: ObjectStoreServer,
) -> None:
    with new_books(direction="topic_to_ledger") as books:
        name, file = books.contract.name, str(books.contract_file)
        assert new_machine(books, warm_spark).run("run", file)[0] == 3
        books.both(payment("a"))
        lost = payment("lost")
        books.produce(lost)
        machine = new_machine(books)
        code, stdout, stderr = machine.run("run", file, "--json")
        assert code == 1, stderr
        assert json.loads(stdout)["report"] == str(report_path(place, name, 1))
        assert b"BROKEN" in read_bytes(report_path(place, name, 1))
        rows = pq.read_table(BytesIO(read_bytes(breaks_place(place, name, 1)))).to_pylist()
        assert [row["transaction_key"] for row in rows] == [lost.payment_id]
        assert files_of(machine.folder) == [f"build/artifacts/logs/{name}/1.log"]
        assert is_there(place / f"logs/{name}/1.log")
        assert any(one.startswith(f"key_index/{name}/cut=1/attempt=1/") for one in names_below(place))

        books.both(payment("later"))
        kept = names_below(place)
        with gone(s3):
            code, stdout, stderr = new_machine(books).run("run", file)
        assert (code, stdout) == (2, "")
        assert "the store of artifacts did not do what it was asked" in stderr, stderr
        assert s3.secret_key not in stderr
        assert read_run(books.store, name, 2) is None
        assert names_below(place) == kept
        books.both(payment("latest"))
        code, stdout, stderr = new_machine(books).run("run", file)
        assert code == 0, stderr
        assert "Cut 2 of an earlier run has no verdict yet and goes first" in stderr
        assert is_there(report_path(place, name, 2))
        assert is_there(report_path(place, name, 3))


@pytest.mark.usefixtures("on_objects")
def test_what_log_and_ledger_have_forgotten_the_index_in_the_store_still_knows(
    new_books: NewBooks, place: ObjectPlace
) -> None:
    both, event = payments("paid again", "sent again")
    with new_books(direction="ledger_to_topic", ledger={"slice_by": "written_xid"}) as books:
        books.take_cut()
        books.both(both, event)
        assert books.next_run().result.verdict is Verdict.MATCHED
        expire(books)
        books.ledger.execute(f"DELETE FROM {books.table}")
        books.both(both)
        books.produce(event)
        again = books.next_run()
        assert kinds(again) == expected((SENT_AGAIN, both), (SENT_AGAIN, event))
        assert books.judge_again(again).digest == again.result.digest
        delete_folder(place / "key_index" / books.contract.name / "cut=1")
        books.both(payment("later"))
        lost = books.next_run()
        assert (lost.result.verdict, doubts(lost)) == (Verdict.INCONCLUSIVE, [Doubt.KEY_INDEX_LOST])


@pytest.mark.usefixtures("on_objects")
def test_a_store_that_goes_before_the_commit_leaves_no_verdict_and_the_next_attempt_reads_the_same_cut(
    new_books: NewBooks, s3: ObjectStoreServer, place: ObjectPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    with new_books(direction="topic_to_ledger") as books:
        books.take_cut()
        books.both(payment("a"))
        cut = books.take_cut()
        opened = reconcile_app.open_indexes

        def then_gone(*arguments: Any) -> Any:
            s3.stop()
            return opened(*arguments)

        with monkeypatch.context() as patched:
            patched.setattr(reconcile_app, "open_indexes", then_gone)
            try:
                with pytest.raises(ArtifactsUnreachable, match="key_index"):
                    books.judge(cut)
            finally:
                s3.start()
        assert read_run(books.store, books.contract.name, cut.n) is None
        assert names_below(place) == []
        assert books.judge(cut).result.verdict is Verdict.MATCHED


@pytest.mark.usefixtures("on_objects")
def test_a_store_that_goes_at_the_commit_costs_no_verdict_and_what_it_missed_is_written_later(
    new_books: NewBooks,
    new_machine: Callable[[LiveBooks], Machine],
    s3: ObjectStoreServer,
    place: ObjectPlace,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with new_books(direction="topic_to_ledger") as books:
        books.take_cut()
        books.both(payment("a"))
        books.produce(payment("lost"))
        cut = books.take_cut()
        commit = reconcile_app.commit_run

        def then_gone(*arguments: Any, **named: Any) -> None:
            commit(*arguments, **named)
            s3.stop()

        with monkeypatch.context() as patched:
            patched.setattr(reconcile_app, "commit_run", then_gone)
            try:
                run = books.judge(cut)
            finally:
                s3.start()
        assert run.result.verdict is Verdict.BROKEN
        (owed,) = [line for line in capsys.readouterr().out.splitlines() if '"artifacts_owed"' in line]
        assert "breaks.parquet: the store of artifacts did not do what it was asked" in json.loads(owed)["why"]
        name = books.contract.name
        assert not is_there(breaks_place(place, name, cut.n))
        code, stdout, stderr = new_machine(books).run("report", f"{name}/{cut.n}")
        assert (code, stdout) == (0, f"{report_path(place, name, cut.n)}\n"), stderr
        assert pq.read_table(BytesIO(read_bytes(breaks_place(place, name, cut.n)))).num_rows == 1


def events(spark: SparkSession, topic: str, keys: list[str]) -> DataFrame:
    rows = [(topic, number % 2, number, key, True) for number, key in enumerate(keys)]
    return spark.createDataFrame(rows, SHAPE)


def test_an_index_of_both_sides_is_written_and_asked_by_tasks(spark: SparkSession, place: ObjectPlace) -> None:
    """As a contract topic_to_topic has it."""
    folder = index_folder(place, "billing", 1, attempt=1)
    write_index(index_of(events(spark, "out", KEYS), events(spark, "in", KEYS[:2])), folder)
    with copies_of(place) as copies:
        index = commit_index(copies.folder, copies.fetch_folder(folder), copies=len(KEYS) + 2, kept_from=1)
        asked = readable_indexes(copies.folder, {1: index})
        assert set(asked.look_up([*KEYS, "nowhere"])) == set(KEYS)
        files = [copies.origin_of(path) for path in asked.paths]
    assert keys_in_indexes(spark, events(spark, "in", ["b", "new"]), files) == {"b"}
