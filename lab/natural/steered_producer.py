"""Kafka's own Java producer of any version, driven from Python: it does not wait, and says what failed.

A process of its own (lab/natural/java/SteeredProducer.java, compiled as it starts).
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.servers.log_ends import Partition
from lab.services.event import Event
from lab.services.java_producer import JavaChild, open_java_child

_SOURCE = Path(__file__).with_name("java") / "SteeredProducer.java"


class NotAsExpected(RuntimeError):
    """The producer succeeded where it had to fail, or the other way round."""


@dataclass(frozen=True)
class SteeredProducer:
    """One producer, transactional where its settings say so."""

    java: JavaChild
    session: str

    def begin(self) -> None:
        self._must(do="begin")

    def send(self, place: Partition, event: Event, *, source: str = "plant") -> int:
        """Hand one event over; give the number to ask for its outcome by. Its timestamp is the event's own."""
        return self.send_text(
            place,
            key=event.message_key.decode(),
            value=event.to_value().decode(),
            timestamp_ms=int(event.payment.occurred_at.timestamp() * 1000),
            headers={"session": self.session, "source": source},
        )

    def send_text(
        self, place: Partition, *, key: str, value: str, timestamp_ms: int, headers: Mapping[str, str]
    ) -> int:
        """The same, with whatever it says."""
        told = {"topic": place[0], "partition": place[1], "key": key, "value": value, "headers": dict(headers)}
        return int(self._must(do="send", timestamp=timestamp_ms, **told)["number"])

    def offset_of(self, number: int) -> int:
        """Wait until one that was sent is acknowledged; give its offset. Raises NotAsExpected."""
        return int(self._must(do="outcome", number=number)["kafka_offset"])

    def failure_of(self, number: int) -> str:
        """Wait until one that was sent has failed; say how. Raises NotAsExpected."""
        return self._must_fail(do="outcome", number=number)

    def commit(self) -> None:
        self._must(do="commit")

    def fail_to_commit(self) -> str:
        """Commit, which must fail; say how. Raises NotAsExpected."""
        return self._must_fail(do="commit")

    def abort(self) -> None:
        self._must(do="abort")

    def _must(self, **command: object) -> dict[str, Any]:
        answer = self.java.ask(**command)
        if "failed" in answer:
            raise NotAsExpected(f"{command['do']}: {answer['failed']}: {answer['why']}")
        return answer

    def _must_fail(self, **command: object) -> str:
        answer = self.java.ask(**command)
        if "failed" not in answer:
            raise NotAsExpected(f"{command['do']}: expected a failure, got {answer}")
        return str(answer["failed"])


@contextmanager
def open_steered_producer(
    settings: Mapping[str, str], *, session: str, jars: Path, log: Path
) -> Iterator[SteeredProducer]:
    """Start a producer of the version in `jars`; it ends with the block. session: of all events that it sends."""
    told = [f"{name}={value}" for name, value in settings.items()]
    with open_java_child(_SOURCE, *told, log=log, jars=jars) as java:
        yield SteeredProducer(java, session)
