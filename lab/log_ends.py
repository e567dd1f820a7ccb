"""Where the partitions of the log end, for a committed reader and for any reader."""

from collections.abc import Sequence
from dataclasses import dataclass

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from lab import process

Partition = tuple[str, int]

_TIMEOUT_SECONDS = 30.0
# For a moment after a topic is made, its metadata names a leader that does not yet know of it.
_NOT_YET = (
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.OFFSET_NOT_AVAILABLE,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._UNKNOWN_PARTITION,
    KafkaError._UNKNOWN_TOPIC,
)


@dataclass(frozen=True)
class LogEnds:
    """Asks the broker; one admin client for all questions, since a new one may need seconds to find its way."""

    admin: AdminClient

    def wait_until_served(self, partitions: Sequence[Partition]) -> None:
        """Return once the broker serves every partition: only then is a write without retries safe."""
        process.wait_until(lambda: self._is_served(partitions), what=f"leaders of {len(partitions)} partitions")

    def wait_until_decided(self, partitions: Sequence[Partition]) -> None:
        """Return once LSO and high watermark agree. A commit returns before its markers stand in the log."""
        process.wait_until(
            lambda: (
                self._read(partitions, IsolationLevel.READ_COMMITTED)
                == self._read(partitions, IsolationLevel.READ_UNCOMMITTED)
            ),
            what=f"markers in {len(partitions)} partitions",
        )

    def _is_served(self, partitions: Sequence[Partition]) -> bool:
        try:
            self._read(partitions, IsolationLevel.READ_UNCOMMITTED)
        except KafkaException as exception:
            if exception.args[0].code() in _NOT_YET:
                return False
            raise
        return True

    def _read(self, partitions: Sequence[Partition], isolation: IsolationLevel) -> list[int]:
        newest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        asked = {TopicPartition(*partition): newest for partition in partitions}
        answers = self.admin.list_offsets(asked, isolation_level=isolation, request_timeout=_TIMEOUT_SECONDS)
        return [answer.result(_TIMEOUT_SECONDS).offset for answer in answers.values()]
