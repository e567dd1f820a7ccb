"""On a standalone cluster of two workers the app says what it says in one process, also when a worker dies under it.

The master, the workers and their executors are processes of their own; the app reaches them by spark-submit in client
mode, as Airflow's operator and `tallystick run` submit it.
"""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
from pyspark.sql import SparkSession

from lab.servers.process import REPOSITORY
from lab.servers.spark_cluster import SparkCluster, start_cluster
from tallystick.model.cut import Cut
from tallystick.model.verdict import Verdict
from tallystick.spark.spark_job import run_job, submit_argv
from tests.stack.live_books import LiveBooks, expected, kinds, payment, payments

from .live import SPARK_SETTINGS, NewBooks

pytestmark = pytest.mark.timeout(600)

EVENTS = 20_000
UNPOSTED = payment("unposted")
ON_THE_CLUSTER = {
    **{name: value for name, value in SPARK_SETTINGS.items() if name != "spark.jars"},
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": SPARK_SETTINGS["spark.driver.extraJavaOptions"],
    "spark.sql.adaptive.enabled": "false",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",  # begin with both executors
}

Steps = list[tuple[str, Mapping[str, Any]]]


@dataclass(frozen=True)
class Judged:
    """Two contracts' cuts, judged on the cluster; the first one again while a worker was killed."""

    agreeing: tuple[LiveBooks, Cut]
    broken: tuple[LiveBooks, Cut]
    steps: Steps
    executors: tuple[int, ...]
    """How many each worker had started when the first cut was committed."""
    killed: tuple[psutil.Process, ...]
    """A worker and what it had started."""


@pytest.fixture(scope="module")
def cluster(build_folder: Path) -> Iterator[SparkCluster]:
    with start_cluster(build_folder / "cluster") as running:
        yield running


@pytest.fixture(scope="module")
def judged(new_books: NewBooks, cluster: SparkCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judged]:
    with ExitStack() as opened:
        agreeing, broken = (
            opened.enter_context(new_books(direction="topic_to_ledger", unique_key=True)) for _ in range(2)
        )
        for books in (agreeing, broken):
            books.take_cut()
        agreeing.both(*payments(*map(str, range(EVENTS))))
        broken.both(*payments("a", "b"))
        broken.produce(UNPOSTED)
        cuts = [(books, books.take_cut()) for books in (agreeing, broken)]
        steps: Steps = []
        executors: list[int] = []
        killed: list[psutil.Process] = []

        def watch(step: str, figures: Mapping[str, Any]) -> None:
            steps.append((step, figures))
            if step == "committed" and not executors:
                executors.extend(len(worker.executor_logs) for worker in cluster.workers)
            if step == "scanning" and len(_steps(steps, "committed")) == len(cuts):
                killed.extend(cluster.workers[0].processes)
                cluster.workers[0].kill()

        environment = _environment(agreeing, cluster)
        orders = [(books.contract_file, cut.n) for books, cut in cuts]
        argv = submit_argv([*orders, orders[0]], reread=True, environment=environment)
        run_job(argv, log=tmp_path_factory.mktemp("cluster") / "app.log", environment=environment, observe=watch)
        yield Judged(cuts[0], cuts[1], steps, tuple(executors), tuple(killed))


def test_two_workers_say_what_one_process_says(judged: Judged, spark: SparkSession) -> None:
    assert judged.executors == (1, 1)
    for (books, cut), verdict in ((judged.agreeing, Verdict.MATCHED), (judged.broken, Verdict.BROKEN)):
        run = books.stored_run(cut)
        assert run.result.verdict is verdict
        assert books.judge_again(run).digest == run.result.digest
    books, cut = judged.agreeing
    assert books.stored_run(cut).result.figures.matched_rows == EVENTS
    books, cut = judged.broken
    assert kinds(books.stored_run(cut)) == expected(("missing_in_ledger", UNPOSTED))


def test_a_worker_that_dies_under_the_app_changes_no_digest(judged: Judged, cluster: SparkCluster) -> None:
    assert len(judged.killed) > 1, "it had an executor"
    assert not any(process.is_running() for process in judged.killed)
    assert cluster.workers[1].processes
    (committed, _), (reread,) = (_steps(judged.steps, name) for name in ("committed", "reread"))
    assert (reread["digest"], reread["same"]) == (committed["digest"], True)


def _steps(steps: Steps, name: str) -> list[Mapping[str, Any]]:
    return [figures for step, figures in steps if step == name]


def _environment(books: LiveBooks, cluster: SparkCluster) -> dict[str, str]:
    return {
        **os.environ,  # new_books has put the connections there
        "TALLYSTICK_STORE_DSN": books.store.url.set(drivername="postgresql").render_as_string(hide_password=False),
        "TALLYSTICK_JARS_DIR": str(REPOSITORY / ".jars" / "spark"),
        "TALLYSTICK_SPARK_MASTER": cluster.url,
        "TALLYSTICK_SPARK_CONF": json.dumps(ON_THE_CLUSTER),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
