"""The Spark session of an app: of the Spark that spark-submit started for it, or of a Spark Connect server that lives.

SPARK_REMOTE names such a server, and SPARK_CONNECT_AUTHENTICATE_TOKEN its token: Spark's own variables. With them an
app is a client, which needs no Java: neither SparkContext nor the JVM's objects are there to be asked.
"""

import importlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import lru_cache
from threading import Event, Thread
from typing import Any, cast
from uuid import NAMESPACE_URL, uuid4, uuid5

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tallystick.model.errors import TallystickError
from tallystick.spark.spark_job import REMOTE_VARIABLE

_WORKERS_PYTHON = "PYSPARK_PYTHON"
_LOOK_EVERY_SECONDS = 0.5
_CORES_MAX = 4096
_SESSIONS_MAX = 100
_RUN = uuid4()
"""Of this process: its operations on the server are told from those of other clients by it."""

OnTasks = Callable[[int, int], None]
"""(ended, of) -> None; told while jobs run."""


class SparkServerLost(TallystickError):
    """The Spark Connect server does not answer, or was started again while it read for us."""

    retryable = True


class SparkServerRefused(TallystickError):
    """The Spark Connect server does not take this client's token."""


def is_client() -> bool:
    """Return whether this process is the client of a Spark Connect server."""
    return bool(os.environ.get(REMOTE_VARIABLE))


def load_client() -> None:
    """Import what the first session of a client would, while nobody waits for it."""
    importlib.import_module("pyspark.sql.connect.session")


@contextmanager
def open_session(name: str) -> Iterator[SparkSession]:
    """Open a session for one cut. Raises SparkServerLost where a server does not answer, or not any more."""
    if not is_client():
        yield _submitted_session(name)
        return
    with _told_when_lost():
        session = _client_session()
        try:
            yield session
        except BaseException:
            with suppress(Exception):
                session.interruptTag(_tag())  # what nobody waits for any more
            raise


def _submitted_session(name: str) -> SparkSession:
    """Open the session of spark-submit. Its tasks on this machine run this process's Python, unless told otherwise."""
    from pyspark import SparkConf

    if _WORKERS_PYTHON not in os.environ and str(SparkConf().get("spark.master", "")).startswith("local"):
        os.environ[_WORKERS_PYTHON] = sys.executable
    return SparkSession.builder.appName(name).getOrCreate()


def _client_session() -> SparkSession:
    """Join the session that all clients of a server share, for each new one has to start Python workers of its own.

    A server ends a session that nobody has used for a while, and gives its number out no more: the next one is taken.
    """
    from pyspark.sql.connect.client.retries import DefaultPolicy

    address, _, parameters = os.environ[REMOTE_VARIABLE].partition("/;")
    for number in range(_SESSIONS_MAX):
        shared = uuid5(NAMESPACE_URL, f"tallystick {datetime.now(UTC):%Y-%m-%d} {number}")
        joined = ";".join([*filter(None, [parameters]), f"session_id={shared}"])
        session: Any = SparkSession.builder.remote(f"{address}/;{joined}").create()
        session.client.set_retry_policies([DefaultPolicy(max_retries=5, max_backoff=2_000)])
        session.addTag(_tag())
        try:
            session.conf.set("spark.sql.session.timeZone", "UTC")
        except PySparkException as error:
            if error.getCondition() != _CLOSED:
                raise
        else:
            return cast(SparkSession, session)
    raise _lost()


def _tag() -> str:
    return f"tallystick-{os.getpid()}-{_RUN}"


@contextmanager
def _told_when_lost() -> Iterator[None]:
    from grpc import StatusCode  # type: ignore[import-untyped]
    from pyspark.errors.exceptions.connect import SparkConnectGrpcException

    try:
        yield
    except SparkConnectGrpcException as error:
        code = error.getGrpcStatusCode()
        if code is StatusCode.UNAUTHENTICATED:
            raise SparkServerRefused(
                f"{_server()}: the Spark Connect server refuses the token; expected the one it was started with"
            ) from error
        if code is StatusCode.UNAVAILABLE or error.getCondition() in _LOST:
            raise _lost() from error
        raise


_CLOSED = "INVALID_HANDLE.SESSION_CLOSED"
_LOST = {_CLOSED, "INVALID_HANDLE.SESSION_CHANGED", "INVALID_HANDLE.SESSION_NOT_FOUND"}


def _lost() -> SparkServerLost:
    return SparkServerLost(
        f"{_server()}: the Spark Connect server does not answer, or was started again; expected the one that this "
        "attempt began with. Nothing of the attempt is kept: a retry reads the same cut"
    )


def _server() -> str:
    return os.environ[REMOTE_VARIABLE].partition("/;")[0]  # parameters may hold a token


@lru_cache(maxsize=1)
def cores(spark: SparkSession) -> int:
    """Return how many tasks run at once, as Spark splits what has no parts of its own (spark.default.parallelism)."""
    parts = spark.range(_CORES_MAX).select(F.spark_partition_id().alias("part")).toArrow()
    return 1 + int(max(parts["part"].to_pylist()))


def tasks_for(spark: SparkSession, wanted: int, *, per_core: int = 1) -> int:
    """Return how many tasks work is split into: as many as wanted, and of more than two so many for each core at most.

    For two nobody asks: to learn the cores is a job of its own.
    """
    return wanted if wanted <= 2 else min(wanted, per_core * cores(spark))


@contextmanager
def telling_tasks(spark: SparkSession, on_tasks: OnTasks) -> Iterator[None]:
    """Tell how many tasks have ended, as they end, of those that are known of."""
    if is_client():
        with _told_by_server(spark, on_tasks):
            yield
    else:
        with _asked_of_driver(spark, on_tasks):
            yield


@contextmanager
def _told_by_server(spark: SparkSession, on_tasks: OnTasks) -> Iterator[None]:
    """The server tells of each operation by itself, every other second."""
    by_operation: dict[str, tuple[int, int]] = {}

    def handler(stages: Iterable[Any] | None, inflight_tasks: int, operation_id: str, done: bool) -> None:
        if stages is None:
            return
        some = list(stages)
        by_operation[operation_id] = sum(one.num_completed_tasks for one in some), sum(one.num_tasks for one in some)
        on_tasks(*_sums(by_operation.values()))

    spark.registerProgressHandler(handler)
    try:
        yield
    finally:
        spark.removeProgressHandler(handler)


@contextmanager
def _asked_of_driver(spark: SparkSession, on_tasks: OnTasks) -> Iterator[None]:
    tracker, over, by_stage = spark.sparkContext.statusTracker(), Event(), dict[int, tuple[int, int]]()

    def look() -> None:
        for stage in tracker.getActiveStageIds():
            known = tracker.getStageInfo(stage)
            if known is not None:
                by_stage[stage] = known.numCompletedTasks, known.numTasks

    def watch() -> None:
        told = (0, 0)
        while not over.wait(_LOOK_EVERY_SECONDS):
            look()
            now = _sums(by_stage.values()) if by_stage else told
            if now != told:
                told = now
                on_tasks(*told)

    watcher = Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


def _sums(some: Iterable[tuple[int, int]]) -> tuple[int, int]:
    firsts, seconds = zip(*some, strict=True)
    return sum(firsts), sum(seconds)
