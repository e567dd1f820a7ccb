"""Kafka's own console consumer: a reader that shares no code with anything here."""

import subprocess

from lab.servers.broker import java_command
from lab.servers.stack import LabStack

_IDLE_MILLISECONDS = (4_000, 30_000)
"""A busy machine may take longer than the first to bring any record; no topic that is read here is empty."""


def read_topic(stack: LabStack, topic: str) -> list[str]:
    """JSON values of all committed records of a topic, from its beginning until nothing comes for four seconds.

    Where nothing came at all, it is read again with more patience. The tool logs to the stream that it prints values
    to; its log lines are no JSON objects.
    """
    for idle_milliseconds in _IDLE_MILLISECONDS:
        if values := _read(stack, topic, idle_milliseconds):
            return values
    return []


def _read(stack: LabStack, topic: str, idle_milliseconds: int) -> list[str]:
    command = [
        *java_command(stack.broker.jars),
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        "--bootstrap-server",
        stack.bootstrap_servers,
        "--topic",
        topic,
        "--from-beginning",
        "--isolation-level",
        "read_committed",
        "--timeout-ms",
        str(idle_milliseconds),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=True)
    return [line for line in done.stdout.splitlines() if line.startswith("{")]
