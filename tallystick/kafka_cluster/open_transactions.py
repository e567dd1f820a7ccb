"""The producer transactions that are open on a partition, and what their coordinators know of them.

From the partition outward: a coordinator's own list misses what hangs. Source: KIP-664.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

from kafka import TopicPartition as ClientTopicPartition
from kafka.admin import KafkaAdminClient
from kafka.errors import (
    KafkaError,
    TransactionalIdAuthorizationFailedError,
    TransactionalIdNotFoundError,
    UnsupportedVersionError,
)

from tallystick.kafka_log.fetch import BrokerUnreachable
from tallystick.model.offsets import TopicPartition

COORDINATORS_LOG = "__transaction_state"
_WILL_WRITE_A_MARKER = ("Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence")
"""States in which a coordinator still owes its partitions a marker. Source: Kafka's TransactionState."""


class TransactionsNotTold(BrokerUnreachable):
    """The broker does not know KIP-664's questions: what it holds back is held, and nobody can say by whom."""

    retryable = False


@dataclass(frozen=True, kw_only=True)
class OpenTransaction:
    """A producer transaction that is open on one partition, and what its coordinator knows of it.

    transactional_id "": no coordinator lists the producer id. started_ms and timeout_ms None: nor this transaction.
    lists_partition: is this partition among those that the coordinator's transaction has written to?
    confirmed: it stayed open after every coordinator had answered that it owes the partition no marker.
    coordinator_epoch: of the coordinator that ordered this producer's last marker there; -1: none has yet.
    """

    topic_partition: TopicPartition
    producer_id: int
    producer_epoch: int
    kafka_offset_start: int
    transactional_id: str
    started_ms: int | None
    timeout_ms: int | None
    coordinator_state: str = ""
    lists_partition: bool = False
    confirmed: bool = False
    coordinator_epoch: int = -1

    @property
    def will_end(self) -> bool:
        """Return whether a coordinator still owes this partition a marker."""
        return self.lists_partition and self.coordinator_state in _WILL_WRITE_A_MARKER

    @property
    def hangs(self) -> bool:
        """Nobody will ever end it."""
        return self.confirmed and not self.will_end


def read_open_transactions(
    admin: KafkaAdminClient, partitions: Iterable[TopicPartition]
) -> tuple[OpenTransaction, ...]:
    """All that are open there, in order; asked a second time where one seems to hang.

    Raises BrokerUnreachable; of it TransactionsNotTold where the broker is older than Kafka 3.0, or another product.
    """
    asked = tuple(partitions)
    try:
        first = _ask(admin, asked)
        if all(one.will_end for one in first):
            return first
        may_know = _all_coordinators_answer(admin) and _is_shown_all(admin)
        return confirm(first, _ask(admin, asked)) if may_know else first
    except UnsupportedVersionError as error:
        raise TransactionsNotTold("open transactions: the broker does not name them (KIP-664)") from error
    except KafkaError as error:
        raise BrokerUnreachable(f"open transactions: {type(error).__name__}: {error}") from error


def confirm(first: Iterable[OpenTransaction], second: Iterable[OpenTransaction]) -> tuple[OpenTransaction, ...]:
    """The second answer; a transaction is confirmed where both found it, and no marker on its way to it.

    One answer proves nothing: between its questions, to the partition and then to the coordinators, any transaction may
    end. But a coordinator knows a partition before a record is there, and forgets it after its marker is.
    """
    before = {_identity(one) for one in first if not one.will_end}
    return tuple(replace(one, confirmed=_identity(one) in before) for one in second)


def _identity(one: OpenTransaction) -> tuple[TopicPartition, int, int]:
    return (one.topic_partition, one.producer_id, one.kafka_offset_start)


def _ask(admin: KafkaAdminClient, partitions: Sequence[TopicPartition]) -> tuple[OpenTransaction, ...]:
    described = admin.describe_producers([ClientTopicPartition(part.topic, part.partition) for part in partitions])
    producers = [
        (TopicPartition(topic=part.topic, partition=part.partition), producer)
        for part, state in described.items()
        for producer in state.active_producers
        if producer.current_transaction_start_offset >= 0
    ]
    if not producers:
        return ()
    listings = admin.list_transactions(producer_id_filters=sorted({producer.producer_id for _, producer in producers}))
    ids = {row.producer_id: row.transactional_id for rows in listings.values() for row in rows}
    known = {name: description for name in ids.values() if (description := _describe(admin, name))}
    return tuple(
        _open_transaction(part, producer, ids.get(producer.producer_id, ""), known)
        for part, producer in sorted(producers, key=lambda row: (row[0], row[1].current_transaction_start_offset))
    )


def _describe(admin: KafkaAdminClient, transactional_id: str) -> Any:
    """What the coordinator says; None where the id expired since it was listed."""
    try:
        return admin.describe_transactions([transactional_id])[transactional_id]
    except TransactionalIdNotFoundError:
        return None


def _open_transaction(
    part: TopicPartition, producer: Any, transactional_id: str, known: Mapping[str, Any]
) -> OpenTransaction:
    described: Any = known.get(transactional_id)
    listed = bool(described) and ClientTopicPartition(part.topic, part.partition) in described.topic_partitions
    return OpenTransaction(
        topic_partition=part,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        kafka_offset_start=producer.current_transaction_start_offset,
        transactional_id=transactional_id,
        started_ms=described.transaction_start_time_ms if listed else None,
        timeout_ms=described.transaction_timeout_ms if listed else None,
        coordinator_state=described.state.value if described else "",
        lists_partition=listed,
        coordinator_epoch=producer.coordinator_epoch,
    )


def _all_coordinators_answer(admin: KafkaAdminClient) -> bool:
    """Has every partition of the coordinators' log a leader? What a missing one knows, nobody lists."""
    (log,) = admin.describe_topics([COORDINATORS_LOG])
    return all(part["leader_id"] >= 0 for part in log["partitions"])


def _is_shown_all(admin: KafkaAdminClient) -> bool:
    """Is every transactional id shown to us? Those that we may not DESCRIBE are left out in silence (KIP-664).

    So we ask about one that nobody has: who may describe all is told that there is none, who may describe some or none
    is refused. A rule that denies single ids is not seen this way.
    """
    try:
        admin.describe_transactions([f"tallystick-{uuid4()}"])
    except TransactionalIdNotFoundError:
        return True
    except TransactionalIdAuthorizationFailedError:
        pass
    return False
