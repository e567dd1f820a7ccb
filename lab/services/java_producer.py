"""Apache Kafka's own Java producer, driven from Python: it speaks transaction.version 2, which librdkafka does not.

A process of its own (lab/java/TransactionalProducer.java, compiled as it starts), told by JSON lines what to do.
"""

import json
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any

from lab.servers import process
from lab.servers.broker import DEFAULT_JARS, java_command
from lab.servers.log_ends import Partition

_SOURCE = Path(__file__).with_name("java") / "TransactionalProducer.java"
_TIMEOUT_SECONDS = 60.0
_PATIENCE_SECONDS = 10.0


class JavaProducerFailed(RuntimeError):
    """The Java process ended, or did not answer in time; the message carries the end of its log."""


@dataclass(frozen=True)
class JavaChild:
    """A Java program that is told by JSON lines what to do, and answers each with a line."""

    child: "subprocess.Popen[bytes]"
    log: Path
    answers: "SimpleQueue[bytes]"

    def ask(self, **command: object) -> dict[str, Any]:
        """Say what to do, and wait for the answer. Raises JavaProducerFailed."""
        assert self.child.stdin is not None
        self.child.stdin.write(json.dumps(command).encode() + b"\n")
        self.child.stdin.flush()
        return self.read_answer()

    def read_answer(self) -> dict[str, Any]:
        """Wait for the next answer. Raises JavaProducerFailed."""
        try:
            line = self.answers.get(timeout=_TIMEOUT_SECONDS)
        except Empty:
            line = b""
        if not line:
            log = self.log.read_text(errors="replace")[-2000:] if self.log.exists() else "no log"
            raise JavaProducerFailed(f"no answer of the Java producer\n{log}")
        answer: dict[str, Any] = json.loads(line)
        return answer


@dataclass(frozen=True)
class JavaProducer:
    """One transactional producer. Every call returns once it is done."""

    java: JavaChild

    def begin(self) -> None:
        self.java.ask(do="begin")

    def send(self, place: Partition, *, key: str, value: str, headers: Mapping[str, str]) -> int:
        """Write one record of the open transaction; give its offset."""
        fields = {"topic": place[0], "partition": place[1], "key": key, "value": value, "headers": dict(headers)}
        return int(self.java.ask(do="send", **fields)["kafka_offset"])

    def commit(self) -> None:
        self.java.ask(do="commit")

    def abort(self) -> None:
        self.java.ask(do="abort")


@contextmanager
def open_java_producer(
    bootstrap_servers: str, transactional_id: str, *, log: Path, jars: Path = DEFAULT_JARS
) -> Iterator[JavaProducer]:
    """Start the producer and return once it has its producer id; it ends with the block, and aborts what is open."""
    with open_java_child(_SOURCE, bootstrap_servers, transactional_id, log=log, jars=jars) as java:
        yield JavaProducer(java)


@contextmanager
def open_java_child(source: Path, *arguments: str, log: Path, jars: Path) -> Iterator[JavaChild]:
    """Compile and start a program, and return once it has said that it is open; it ends with the block."""
    argv = [*java_command(jars), str(source), *arguments]
    child = process.spawn(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, log=log)
    answers: SimpleQueue[bytes] = SimpleQueue()
    Thread(target=_read, args=(child, answers), daemon=True).start()
    java = JavaChild(child, log, answers)
    try:
        java.read_answer()
        yield java
    finally:
        assert child.stdin is not None
        child.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            child.wait(_PATIENCE_SECONDS)
        process.kill_tree(child)


def _read(child: "subprocess.Popen[bytes]", answers: "SimpleQueue[bytes]") -> None:
    assert child.stdout is not None
    for line in child.stdout:
        if line.startswith(b"{"):
            answers.put(line)
    answers.put(b"")
