"""A long run that a maker target starts: when it says what, that it unwinds when told to stop, and what it ran on."""

import os
import signal
import sys
import time
from importlib.metadata import version
from typing import Any

import confluent_kafka
from rich.console import Console

from lab.servers.broker import DEFAULT_JARS

_PACKAGES = (
    "tallystick",
    "apache-airflow",
    "pyspark",
    "confluent-kafka",
    "kafka-python",
    "psycopg",
    "sqlalchemy",
    "great-expectations",
)


class LongRun:
    """Make one at the start of `main`. SIGTERM ends the process by SystemExit, which stops the servers it started."""

    def __init__(self) -> None:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        self.console = Console()
        self._started = time.monotonic()

    @property
    def seconds(self) -> float:
        """Since it began."""
        return time.monotonic() - self._started

    def say(self, text: str) -> None:
        """A line for people, behind the seconds so far."""
        self.console.print(f"[dim]{self.seconds:6.1f} s[/dim]  {text}", highlight=False, soft_wrap=True)


def measured_on() -> dict[str, Any]:
    """What the figures of every long run end with: versions by package, and the machine's cores."""
    packages = {package: version(package) for package in _PACKAGES}
    kafka = next(DEFAULT_JARS.glob("kafka_*.jar")).stem.partition("-")[2]  # the broker's own jar
    librdkafka, _ = confluent_kafka.libversion()
    return {"versions": packages | {"kafka": kafka, "librdkafka": librdkafka}, "cores": os.cpu_count()}
