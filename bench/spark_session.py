"""The one Spark session that every program of the benchmark gets, and how each of them is timed."""

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pyspark.sql import SparkSession

from lab.servers.class_archives import archive_options
from lab.servers.process import REPOSITORY
from tallystick.spark.spark_job import PYTHON_SETTINGS

JARS = REPOSITORY / ".jars" / "spark"
SETTINGS = {
    "spark.jars": ",".join(str(jar) for jar in sorted(JARS.glob("*.jar"))),
    "spark.driver.memory": "4g",
    "spark.driver.extraJavaOptions": archive_options(),
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.session.timeZone": "UTC",
    **PYTHON_SETTINGS,
}
"""Two cores and few shuffle partitions: what suits this machine is given to all of them alike."""


def open_session(name: str, more: Mapping[str, str] = MappingProxyType({})) -> SparkSession:
    """A session on two cores. more: settings beside those that all have."""
    builder = SparkSession.builder.master("local[2]").appName(name)
    for key, value in {**SETTINGS, **more}.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def time_each(times: int, once: Callable[[], Callable[[], dict[str, Any]]], to: Path) -> None:
    """Run it so many times in this session; writes the seconds of each, and what the last one answered.

    once: does the work, and returns what tells its answer. Telling it is not timed.
    """
    seconds, answer = [], {}
    for _ in range(times):
        started = time.perf_counter()
        on_progress = once()
        seconds.append(time.perf_counter() - started)
        answer = on_progress()
    to.write_text(json.dumps({"seconds": seconds, "answer": answer}))
