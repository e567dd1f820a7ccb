"""Kafka's own console consumer: a reader that shares no code with anything here."""

import subprocess

from lab.servers.broker import java_command
from lab.servers.stack import LabStack

_IDLE_MILLISECONDS = 4000


def read_topic(stack: LabStack, topic: str) -> list[str]:
    """JSON values of all committed records of a topic, from its beginning until nothing comes for four seconds.

    The tool logs to the stream that it prints values to; its log lines are no JSON objects.
    """
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
        str(_IDLE_MILLISECONDS),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=True)
    return [line for line in done.stdout.splitlines() if line.startswith("{")]
