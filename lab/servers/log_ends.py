"""Where the partitions of the log end, for a committed reader and for any reader."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from lab.servers import process

Partition = tuple[str, int]

_TIMEOUT_SECONDS = 30.0
_ANSWER_SECONDS = 5.0  # a question to a broker that was just killed is never answered
_MARKERS_SECONDS = 60.0  # a partition's leader may be down for a while
# For a moment after a topic is made, its metadata names a leader that does not yet know of it; and after a broker was
# killed, a client's metadata names an older leader epoch, or comes from a broker that has just started and does not
# name the partition at all.
NOT_YET = (
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.OFFSET_NOT_AVAILABLE,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._UNKNOWN_PARTITION,
    KafkaError._UNKNOWN_TOPIC,
    KafkaError._NOENT,
    KafkaError._TIMED_OUT,
    KafkaError._TRANSPORT,
    KafkaError._DESTROY_BROKER,
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
        try:
            process.wait_until(
                lambda: self.are_decided(partitions),
                what=f"markers in {len(partitions)} partitions",
                deadline_seconds=_MARKERS_SECONDS,
            )
        except process.NotReadyInTime as late:
            stable = self._read(partitions, IsolationLevel.READ_COMMITTED)
            ends = self._read(partitions, IsolationLevel.READ_UNCOMMITTED)
            raise process.NotReadyInTime(f"{late}; {list(partitions)}: last stable {stable}, ends {ends}") from late

    def stable_ends(self, partitions: Sequence[Partition]) -> dict[Partition, int]:
        """Each partition's last stable offset: what a transaction holds open lies behind it."""
        ends: list[int] = []

        def are_known() -> bool:
            ends[:] = self._read(partitions, IsolationLevel.READ_COMMITTED) or []
            return bool(ends)

        process.wait_until(are_known, what=f"last stable offsets of {len(partitions)} partitions")
        return dict(zip(partitions, ends, strict=True))

    def expire(self, ends: Mapping[Partition, int]) -> None:
        """Retention takes what stands below these offsets. A broker that is killed within a minute has it again."""
        before = [TopicPartition(*place, end) for place, end in ends.items()]
        for taken in self.admin.delete_records(before).values():
            taken.result(_TIMEOUT_SECONDS)

    def _is_served(self, partitions: Sequence[Partition]) -> bool:
        return self._read(partitions, IsolationLevel.READ_UNCOMMITTED) is not None

    def are_decided(self, partitions: Sequence[Partition]) -> bool:
        """Do LSO and high watermark agree? False also while a leader is not yet to be found."""
        stable = self._read(partitions, IsolationLevel.READ_COMMITTED)
        return stable is not None and stable == self._read(partitions, IsolationLevel.READ_UNCOMMITTED)

    def _read(self, partitions: Sequence[Partition], isolation: IsolationLevel) -> list[int] | None:
        """The end of each partition; None while a leader is not yet to be found."""
        newest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        asked = {TopicPartition(*partition): newest for partition in partitions}
        answers = self.admin.list_offsets(asked, isolation_level=isolation, request_timeout=_ANSWER_SECONDS)
        try:
            return [answer.result(_TIMEOUT_SECONDS).offset for answer in answers.values()]
        except KafkaException as exception:
            if exception.args[0].code() not in NOT_YET:
                raise
            self.admin.list_topics(timeout=_TIMEOUT_SECONDS)  # the answer alone does not make the client ask again
            return None
