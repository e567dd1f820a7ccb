"""What Spark's own event log tells of the programs that are started meanwhile."""

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

Event = Mapping[str, Any]

_SHUFFLED_ROWS = "internal.metrics.shuffle.write.recordsWritten"
_SHUFFLED_BYTES = "internal.metrics.shuffle.write.bytesWritten"


class NothingRan(LookupError):
    """An application had no task."""


@dataclass(frozen=True, kw_only=True)
class SparkCost:
    """Of one application, skipped stages left out. shuffled_rows: records written to any shuffle."""

    jobs: int
    stages: int
    tasks: int
    shuffled_rows: int
    shuffled_bytes: int


@dataclass(frozen=True, kw_only=True)
class SparkMoments:
    """Of one application, in seconds since 1970. session: its executor is there; first_task: the first one begins."""

    session: float
    first_task: float


@contextmanager
def recorded_events() -> Iterator[Callable[[], list[Event]]]:
    """Spark reads its defaults from a folder that a variable names; so the program itself need not know.

    What is yielded reads the events of all programs that have ended since.
    """
    with TemporaryDirectory() as folder:
        events, settings = Path(folder, "events"), Path(folder, "spark-defaults.conf")
        events.mkdir()
        settings.write_text(
            f"spark.eventLog.enabled true\nspark.eventLog.dir {events.as_uri()}\n"
            "spark.eventLog.rolling.enabled false\nspark.eventLog.compress false\n"
        )
        os.environ["SPARK_CONF_DIR"] = folder
        try:
            yield lambda: [json.loads(line) for file in events.iterdir() for line in file.read_text().splitlines()]
        finally:
            del os.environ["SPARK_CONF_DIR"]


def spark_cost(events: Iterable[Event]) -> SparkCost:
    """Add up one application's events."""
    counts: Counter[str] = Counter()
    for event in events:
        if event["Event"] == "SparkListenerJobStart":
            counts["jobs"] += 1
        elif event["Event"] == "SparkListenerStageCompleted":
            stage = event["Stage Info"]
            counts["stages"] += 1
            counts["tasks"] += stage["Number of Tasks"]
            for one in stage["Accumulables"]:
                counts[one["Name"]] += int(one["Value"]) if one["Name"] in (_SHUFFLED_ROWS, _SHUFFLED_BYTES) else 0
    return SparkCost(
        jobs=counts["jobs"],
        stages=counts["stages"],
        tasks=counts["tasks"],
        shuffled_rows=counts[_SHUFFLED_ROWS],
        shuffled_bytes=counts[_SHUFFLED_BYTES],
    )


def spark_moments(events: Iterable[Event]) -> SparkMoments:
    """When one application's session stood, and when its first task began. Raises NothingRan."""
    session, tasks = None, []
    for event in events:
        if event["Event"] == "SparkListenerExecutorAdded":
            session = event["Timestamp"]
        elif event["Event"] == "SparkListenerTaskStart":
            tasks.append(event["Task Info"]["Launch Time"])
    if session is None or not tasks:
        raise NothingRan("Spark's event log has no executor or no task: the program ended before it read anything")
    return SparkMoments(session=session / 1000, first_task=min(tasks) / 1000)
