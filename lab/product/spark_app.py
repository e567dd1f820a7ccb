"""The reconciler's Spark app as a process of its own, given its cuts one after the other while its session lives."""

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Collection
from pathlib import Path
from typing import Any, Literal

import psutil

from lab.product.command_line import CommandLine
from lab.servers import process
from lab.servers.airflow_environment import SMALL_SPARK
from lab.servers.process import REPOSITORY

STEPS = ("claimed", "scanning", "scanned", "census_taken", "investigated", "judged", "committing")
"""What the app announces of each cut before its commit."""
ENDS = ("committed", "already_judged", "reread", "failed")
"""With one of them it has done with a cut."""

_STEP_SECONDS_MAX = 240.0  # a JVM starts slowly beside others on two cores
_APP = REPOSITORY / "spark_apps" / "reconcile_app.py"


class SparkAppEnded(RuntimeError):
    """It ended though nobody ended it; the message carries the end of its log."""


class SparkApp:
    """One spark-submit: a JVM, which is our child, and the Python driver, which is the JVM's."""

    def __init__(self, command_line: CommandLine, name: str) -> None:
        self.log = command_line.folder / f"{name}.log"
        pipe = command_line.folder / f"{name}.pipe"
        pipe.unlink(missing_ok=True)
        os.mkfifo(pipe, mode=0o600)
        self._orders = os.open(pipe, os.O_RDWR)  # for reading too, so that nobody waits for the other end
        self.jvm = process.spawn(
            _argv(pipe, command_line.folder / "spark"),
            log=self.log,
            stdout=subprocess.PIPE,
            environment=_environment(command_line),
        )
        self._steps: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        threading.Thread(target=self._listen, name=name, daemon=True).start()

    def order(self, contract_file: Path, cut_n: int, *, reread: bool = False) -> None:
        """Let it judge a stored cut; it begins once it has done with those before."""
        line = json.dumps({"contract": str(contract_file), "cut": cut_n, "reread": reread})
        os.write(self._orders, line.encode() + b"\n")

    def wait_for(self, steps: Collection[str]) -> dict[str, Any]:
        """The next of these steps that it announces. Raises SparkAppEnded, NotReadyInTime."""
        while True:
            try:
                step = self._steps.get(timeout=_STEP_SECONDS_MAX)
            except queue.Empty:
                raise process.NotReadyInTime(
                    f"the Spark app: {', '.join(steps)} not in time: {self.log_tail}"
                ) from None
            if step is None:
                raise SparkAppEnded(f"the Spark app ended before {', '.join(steps)}: {self.log_tail}")
            if step["step"] in steps:
                return step

    def kill(self, part: Literal["driver", "jvm"]) -> None:
        """SIGKILL one of its two processes; returns once the other has gone by itself, too."""
        family = psutil.Process(self.jvm.pid).children(recursive=True)
        if part == "jvm":
            self.jvm.kill()
        for member in family if part == "driver" else ():
            if member.ppid() == self.jvm.pid:
                member.kill()
        self.jvm.wait(_STEP_SECONDS_MAX)
        _, left = psutil.wait_procs(family, timeout=_STEP_SECONDS_MAX)
        if left:
            raise process.NotReadyInTime(f"the Spark app's {part} was killed, and {left} lives on")
        os.close(self._orders)

    def end(self) -> None:
        """Stop it, whatever it does; nothing of it is left. Safe to call again."""
        if self.jvm.poll() is None:
            process.stop(self.jvm)  # by SIGTERM first, so that Spark removes its files; the driver leaves with its JVM
            os.close(self._orders)

    @property
    def log_tail(self) -> str:
        return self.log.read_text(errors="replace")[-3000:]

    def _listen(self) -> None:
        assert self.jvm.stdout is not None
        with self.log.open("ab", buffering=0) as log:
            for line in self.jvm.stdout:
                if line.startswith(b'{"step": '):
                    self._steps.put(json.loads(line))
                else:
                    log.write(line)  # the JVM hands on what its driver says last on either stream
        self._steps.put(None)


def _argv(pipe: Path, spark_folder: Path) -> list[str]:
    jars = ",".join(str(jar) for jar in sorted((REPOSITORY / ".jars" / "spark").glob("*.jar")))
    settings = {"spark.ui.enabled": "false", "spark.local.dir": str(spark_folder), **SMALL_SPARK}
    return [
        str(Path(sys.executable).with_name("spark-submit")),
        *("--master", "local[2]", "--jars", jars),
        *(part for name, value in settings.items() for part in ("--conf", f"{name}={value}")),
        *(str(_APP), "--follow", str(pipe)),
    ]


def _environment(command_line: CommandLine) -> dict[str, str]:
    return command_line.environment() | {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
