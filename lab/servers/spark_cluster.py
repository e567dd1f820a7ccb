"""A Spark standalone cluster as real processes on this machine: one master, and workers that start executors.

`start_cluster` runs it for the length of a `with`; `python -m lab.servers.spark_cluster` runs it until SIGINT or
SIGTERM. All come from pyspark's own jars. They are given as little of our environment as servers on other machines
would have: what an executor needs beyond that, the job has to bring along or find installed.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psutil

from lab.servers import process
from lab.servers.class_archives import SMALL_JVM
from lab.servers.ports import free_port

_HOST = "127.0.0.1"
_READY_SECONDS_MAX = 120.0  # JVMs start slowly beside others on two cores
_PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "JAVA_HOME", "USER")
_DAEMON_HEAP = "192m"


@dataclass
class SparkWorker:
    """One worker and the executors that it starts. Its log and its work lie in a folder of its own."""

    folder: Path
    master_url: str
    cores: int
    memory_mib: int
    server: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.server = _spawn(
            "org.apache.spark.deploy.worker.Worker",
            *("--host", _HOST, "--port", str(free_port()), "--webui-port", str(free_port())),
            *("--cores", str(self.cores), "--memory", f"{self.memory_mib}M", "--work-dir", str(self.folder / "work")),
            self.master_url,
            folder=self.folder,
        )

    def kill(self) -> None:
        """SIGKILL it and its executors; returns once they are gone."""
        process.kill_tree(self.server)

    @property
    def processes(self) -> list[psutil.Process]:
        """Itself and all that it has started, while it lives."""
        if self.server is None or self.server.poll() is not None:
            return []
        worker = psutil.Process(self.server.pid)
        return [worker, *worker.children(recursive=True)]

    @property
    def executor_logs(self) -> list[Path]:
        """Standard error of each executor that it ever started."""
        return sorted((self.folder / "work").glob("app-*/*/stderr"))


@dataclass
class SparkCluster:
    """The servers, to kill and start again. url: what a job names as its master."""

    folder: Path
    url: str
    state_url: str
    workers: list[SparkWorker] = field(default_factory=list)

    def state(self) -> dict[str, Any]:
        """What the master says of its workers and applications. Raises OSError while it does not answer."""
        with urllib.request.urlopen(self.state_url, timeout=10) as answer:
            found: dict[str, Any] = json.load(answer)
        return found

    def wait_for_workers(self) -> None:
        """Until the master knows all of them. Raises NotReadyInTime."""
        process.wait_until(self._all_known, what="Spark's workers", deadline_seconds=_READY_SECONDS_MAX)

    def _all_known(self) -> bool:
        try:
            return int(self.state()["aliveworkers"]) >= len(self.workers)
        except OSError:
            return False


@contextmanager
def start_cluster(folder: Path, *, workers: int = 2, cores: int = 1, memory_mib: int = 1024) -> Iterator[SparkCluster]:
    """Run a master and so many workers; cores and memory_mib: what each worker may give to executors.

    All are killed when the block ends, however it ends, and their executors with them. The folder begins empty.
    """
    folder = folder.resolve()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    port, page = free_port(), free_port()
    cluster = SparkCluster(folder, f"spark://{_HOST}:{port}", f"http://{_HOST}:{page}/json/")
    master = None
    try:
        master = _spawn(
            "org.apache.spark.deploy.master.Master",
            *("--host", _HOST, "--port", str(port), "--webui-port", str(page)),
            folder=folder / "master",
        )
        for number in range(1, workers + 1):
            worker = SparkWorker(folder / f"worker_{number}", cluster.url, cores, memory_mib)
            cluster.workers.append(worker)
            worker.start()
        cluster.wait_for_workers()
        yield cluster
    finally:
        for worker in cluster.workers:
            worker.kill()
        process.kill_tree(master)


def _spawn(server: str, *arguments: str, folder: Path) -> subprocess.Popen[bytes]:
    folder.mkdir(parents=True, exist_ok=True)
    environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ} | {
        # Settings of the machine's own Spark do not count. An empty folder would: no archive fits a class path with it.
        "SPARK_CONF_DIR": str(folder / "no_conf"),
        "SPARK_DAEMON_MEMORY": _DAEMON_HEAP,
        "SPARK_DAEMON_JAVA_OPTS": SMALL_JVM,
        "SPARK_LOCAL_DIRS": str(folder / "local"),
        "SPARK_LOCAL_IP": _HOST,
    }
    argv = [str(_spark_home() / "bin" / "spark-class"), server, *arguments]
    return process.spawn(argv, log=folder / "server.log", environment=environment, cwd=folder)


def _spark_home() -> Path:
    """Where pyspark lies; it is not imported for that."""
    spec = find_spec("pyspark")
    assert spec is not None and spec.origin is not None  # the lab's own environment has it
    return Path(spec.origin).parent


def main() -> None:
    """Run a cluster until SIGINT or SIGTERM."""
    parser = argparse.ArgumentParser(description="Run a Spark standalone cluster on this machine until Ctrl-C.")
    parser.add_argument("--folder", type=Path, default=process.REPOSITORY / "build" / "cluster", help="for its files")
    parser.add_argument("--workers", type=int, default=2, help="how many (default 2)")
    parser.add_argument("--cores", type=int, default=1, help="that each worker gives to executors (default 1)")
    parser.add_argument("--memory-mib", type=int, default=2048, help="that each gives to executors (default 2048)")
    given = parser.parse_args()
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    with start_cluster(given.folder, workers=given.workers, cores=given.cores, memory_mib=given.memory_mib) as cluster:
        print(f"ready: {cluster.url}", flush=True)
        stopped.wait()


if __name__ == "__main__":
    main()
