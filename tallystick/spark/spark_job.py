"""Runs the Spark app of one cut as a child process and listens to it. The child leaves with us, whatever stops us.

Addresses and secrets reach it by the environment only; argv shows them to every user of the machine.
"""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any, Protocol

from tallystick.host.extras import require
from tallystick.host.private_files import private_file, private_folder
from tallystick.model.errors import TallystickError
from tallystick.spark.jars import has_kafka_source

_CLIENT, APP = "tallystick_spark.reconcile_app_client", "tallystick_spark.reconcile_app"
_SECONDS_TO_STOP = 10
_LAST_WORDS_BYTES = 1 << 20
"""An error that stands further from a log's end is not its last one."""
_DOTTED_NAME = re.compile(r"[\w.]+")
_CAPITAL = re.compile(r"[A-Z]")
_UNCAUGHT = 'Exception in thread "main" '
"""What Java writes before an error that ends its program."""

REMOTE_VARIABLE, TOKEN_VARIABLE = "SPARK_REMOTE", "SPARK_CONNECT_AUTHENTICATE_TOKEN"
"""Spark's own variables: where a Spark Connect server is, and the token that it asks for."""

PYTHON_SETTINGS = {
    "spark.python.daemon.module": "tallystick_spark.python_daemon",
    "spark.python.sql.dataFrameDebugging.enabled": "false",
}
"""Settings of a session's Python: its workers are forked by our daemon, which Spark reads before its first Python task,
and no operator on columns notes which line called it: that took more than half of an operator's time.
"""

JAVA_OPTIONS = (
    "-XX:Tier4InvocationThreshold=200000 -XX:Tier4MinInvocationThreshold=24000 "
    "-XX:Tier4CompileThreshold=600000 -XX:Tier4BackEdgeThreshold=1600000"
)
"""Forty times Java's own thresholds: its slow compiler takes loops over rows, and leaves the code of a plan alone.

A run makes a few plans and ends; compiling them for good took a fifth of the CPU time of a run over 300,000 events.
Source: HotSpot's compilation policy, where tier 4 is C2.
"""

SCAN_VARIABLE, BY_CLIENT, PAIR_BY_PAIR = "TALLYSTICK_SCAN", "by_client", "pair_by_pair"
"""The variable, and its values that turn the quick ways off: the first one, or both. Kafka's client reads all of
the log then, and bounds nothing that it unpacks."""

Observer = Callable[[str, Mapping[str, Any]], None]
"""(step, figures) -> None; called for each step that is reached."""


class SparkJob(Protocol):
    """A process of ours that leads a session, as `subprocess.Popen` has it; no pipe where it is given none."""

    pid: int

    @property
    def stdin(self) -> IO[Any] | None: ...

    @property
    def stdout(self) -> IO[Any] | None: ...

    def poll(self) -> int | None: ...

    def wait(self, timeout: float | None = None) -> int: ...


class SparkAppFailed(TallystickError):
    """The app ended without a verdict. The message has its last words and where its log lies."""

    retryable = True


class SparkNotReady(TallystickError):
    """spark-submit, the app or its jars are not where they should be."""


def way_of_scanning(environment: Mapping[str, str]) -> str:
    """Return the way of scanning that is asked for; empty: the quick ones. Raises SparkNotReady for any other word."""
    way = environment.get(SCAN_VARIABLE, "")
    if way not in ("", BY_CLIENT, PAIR_BY_PAIR):
        raise SparkNotReady(f"{SCAN_VARIABLE}: got {way!r}; expected {BY_CLIENT!r}, {PAIR_BY_PAIR!r} or nothing")
    return way


def submit_argv(cuts: Iterable[tuple[Path, int]], *, reread: bool, environment: Mapping[str, str]) -> list[str]:
    """Return the command line that judges these cuts, each a contract's file and a number.

    Raises SparkNotReady, LibraryMissing.

    SPARK_REMOTE: a Spark Connect server, whose client the app is then, with Python alone. TALLYSTICK_SPARK_MASTER:
    where spark-submit runs it otherwise; default local[*].
    """
    require("pyspark")
    way_of_scanning(environment)
    asked = [
        *(part for contract_file, n in cuts for part in ("--contract", str(contract_file), "--cut", str(n))),
        *(["--reread"] if reread else []),
    ]
    if environment.get(REMOTE_VARIABLE):
        return [sys.executable, "-m", _CLIENT, *asked]
    return [*submit_with(spark_settings(environment), environment), str(find_app()), *asked]


def submit_with(settings: Mapping[str, str], environment: Mapping[str, str], *options: str) -> list[str]:
    """Return the command line of spark-submit up to what it runs. Raises SparkNotReady, LibraryMissing."""
    require("pyspark")
    return [
        str(_spark_submit()),
        *options,
        "--master",
        environment.get("TALLYSTICK_SPARK_MASTER") or "local[*]",
        *(["--jars", ",".join(str(jar) for jar in jars)] if (jars := find_jars(environment)) else []),
        *(part for name, value in sorted(settings.items()) for part in ("--conf", f"{name}={value}")),
    ]


def spark_settings(environment: Mapping[str, str], *, java_options: str = "") -> dict[str, str]:
    """Ours, and before them those of TALLYSTICK_SPARK_CONF, a JSON object. Raises SparkNotReady.

    java_options: more of them for the driver; what spark.driver.extraJavaOptions says stands behind all of ours.
    """
    return {
        "spark.driver.defaultJavaOptions": f"{JAVA_OPTIONS} {java_options}".rstrip(),
        **lasting_settings(environment),
    }


def lasting_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the same without Java's options for a driver that ends soon. Raises SparkNotReady."""
    return {
        "spark.ui.enabled": "false",
        "spark.driver.memory": "2g",
        "spark.sql.session.timeZone": "UTC",
        **PYTHON_SETTINGS,
        **_own_settings(environment),
    }


def run_job(argv: list[str], *, log: Path, environment: Mapping[str, str], observe: Observer) -> None:
    """Run the app to its end, telling each step it reports. Raises SparkAppFailed.

    Interrupted, it stops the child and all of its children before the interrupt goes on.
    """
    private_folder(log.parent)
    with (
        private_file(log).open("w", encoding="utf-8") as errors,
        child(argv, environment, errors) as job,
    ):
        listen(job, errors, log=log, observe=observe)


def listen(job: SparkJob, errors: IO[str], *, log: Path, observe: Observer) -> None:
    """Tell each step that a child reports, to its end; all else it prints goes to its log. Raises SparkAppFailed."""
    assert job.stdout is not None
    for line in job.stdout:
        step = _step(line)
        if step:
            observe(step.pop("step"), step)
        else:
            errors.write(line)
    code = job.wait()
    errors.flush()
    if code:
        raise SparkAppFailed(f"the Spark app ended with exit code {code}: {last_words(log)}; its log is {log}")


@contextmanager
def child(argv: list[str], environment: Mapping[str, str], errors: IO[str]) -> Iterator[SparkJob]:
    """Start a process in a session of its own, so that Ctrl-C reaches it through us, and all of it at once."""
    job = subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=errors,
        text=True,
        encoding="utf-8",
        errors="replace",
        env=child_environment(environment),
        start_new_session=True,
    )
    try:
        yield job
    finally:
        end_session(job)


def child_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of the app: Spark takes this Python for it and for its workers."""
    return {**environment, "PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}


def end_session(job: SparkJob) -> None:
    """End the session of a child that still runs: SIGTERM, and SIGKILL for what is left of it."""
    if job.poll() is None:
        _signal_session(job, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            job.wait(_SECONDS_TO_STOP)
        _signal_session(job, signal.SIGKILL)
        job.wait()
    for pipe in filter(None, (job.stdin, job.stdout)):
        with suppress(BrokenPipeError):
            pipe.close()


def _signal_session(job: SparkJob, how: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(job.pid, how)


def _step(line: str) -> dict[str, Any] | None:
    """The step of one line of the app's output; None for a line that Spark or a library wrote."""
    try:
        document = json.loads(line)
    except ValueError:
        return None
    return document if isinstance(document, dict) and isinstance(document.get("step"), str) else None


def last_words(log: Path) -> str:
    """The last error that the log names, without its module."""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - _LAST_WORDS_BYTES))
        lines = file.read().decode(errors="replace").split("\n")
    return next(filter(None, map(_error_in, reversed(lines))), "it named no error")


def _error_in(line: str) -> str:
    """What a traceback's line says that names an error; "" of any other. Spark's own lines begin with a date.

    Each part is looked at once: a line may be as long as a payload.
    """
    name, colon, words = line.removeprefix(_UNCAUGHT).partition(": ")
    error = name.rpartition(".")[2]
    return f"{error}: {words}" if colon and _DOTTED_NAME.fullmatch(name) and _CAPITAL.search(error) else ""


def _own_settings(environment: Mapping[str, str]) -> dict[str, str]:
    text = environment.get("TALLYSTICK_SPARK_CONF") or "{}"
    try:
        settings = json.loads(text)
    except ValueError:
        settings = None
    if not isinstance(settings, dict):
        raise SparkNotReady('TALLYSTICK_SPARK_CONF: expected a JSON object such as {"spark.driver.memory": "4g"}')
    return {str(name): str(value) for name, value in settings.items()}


def _spark_submit() -> Path:
    path = Path(sys.executable).parent / "spark-submit"
    if not path.is_file():
        raise SparkNotReady(f"{path}: not there; expected it from `pip install 'tallystick[spark]'`")
    return path


def find_app() -> Path:
    """The app's file; not imported, since it needs Spark. Raises SparkNotReady."""
    spec = find_spec(APP)
    if spec is None or spec.origin is None:
        raise SparkNotReady(f"{APP}: not installed; expected it beside tallystick, in the same wheel")
    return Path(spec.origin)


def find_jars(environment: Mapping[str, str]) -> list[Path]:
    """Return the jars to hand to Spark: those of TALLYSTICK_JARS_DIR, default .jars/spark. Raises SparkNotReady.

    None, where Spark has its Kafka source from elsewhere: TALLYSTICK_SPARK_CONF names spark.jars or
    spark.jars.packages, or the folder jars of SPARK_HOME or pyspark holds it.
    """
    named = environment.get("TALLYSTICK_JARS_DIR")
    folder = Path(named or ".jars/spark")
    jars = sorted(folder.glob("*.jar"))
    if not jars and (named or not _spark_has_jars(environment)):
        raise SparkNotReady(
            f"TALLYSTICK_JARS_DIR: {folder} has no jars; expected Spark's jars for Kafka, databases and Iceberg there: "
            f"fetch them with `tallystick jars fetch {folder}`, or let TALLYSTICK_SPARK_CONF name them as "
            "spark.jars.packages"
        )
    return jars


def _spark_has_jars(environment: Mapping[str, str]) -> bool:
    if {"spark.jars", "spark.jars.packages"} & _own_settings(environment).keys():
        return True
    home = environment.get("SPARK_HOME")
    spec = None if home else find_spec("pyspark")
    folder = Path(home) if home else Path(spec.origin).parent if spec and spec.origin else None
    return folder is not None and has_kafka_source(folder / "jars")
