"""Ends a hanging transaction by an ABORT marker on its one partition, and looks what stands there. Source: KIP-664.

What it cannot do. The broker knows a producer id and an epoch, not which transaction is meant. A client that speaks an
old protocol (before transaction.version 2) and begins its next transaction on that partition in the moment between our
last proof and the marker loses what it has written there by then. So its producer must be stopped first.
"""

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from kafka import TopicPartition as ClientTopicPartition
from kafka.admin import AbortTransactionSpec, KafkaAdminClient
from kafka.errors import (
    ClusterAuthorizationFailedError,
    InvalidProducerEpochError,
    KafkaError,
    TransactionCoordinatorFencedError,
)

from tallystick.compensation.abort_plan import AbortItem, why_too_young
from tallystick.compensation.plan import PlanRefused
from tallystick.kafka_cluster.open_transactions import OpenTransaction, read_open_transactions
from tallystick.kafka_cluster.settings import read_broker_settings
from tallystick.kafka_log.batch_header import Marker, checksum
from tallystick.kafka_log.fetch import BrokerUnreachable, Fetch, fetcher
from tallystick.kafka_log.log_walk import DecidedBatch, walk_batches
from tallystick.kafka_log.topic_snapshot import read_topic_snapshot
from tallystick.model.cut import PartitionSnapshot
from tallystick.model.offsets import OffsetRange

_BATCHES_KEPT = 1000
"""Of the transaction's own batches, as evidence; how many there are is told beside them."""
_LOOK_AGAIN_SECONDS = 0.1
_UNANSWERED = "not provable now: not every coordinator answers, or this account may not DESCRIBE all transactional ids"


class MarkerRefused(PlanRefused):
    """The broker does not let us write a marker, or not for this producer. Nothing was written."""


class State(StrEnum):
    """The state of the planned transaction. ended: by a marker that is not the planned one.

    unanswered: the cluster did not say all that a proof needs, and may a moment later.
    """

    HANGS = "hangs"
    UNANSWERED = "unanswered"
    UNPROVEN = "unproven"
    ABORTED = "aborted"
    ENDED = "ended"


@dataclass(frozen=True, kw_only=True)
class TransactionState:
    """The planned transaction as the cluster has it now. reason: why it may not be ended; "" where it hangs.

    place: the marker that ended it, as JSON. stable: has the LSO passed its beginning?
    """

    state: State
    reason: str = ""
    place: Mapping[str, Any] | None = None
    stable: bool = False


def look_at(admin: KafkaAdminClient, item: AbortItem) -> TransactionState:
    """Prove once more that it hangs, or find what ended it. Raises BrokerUnreachable, TopicNotFound."""
    part = item.topic_partition
    found = next(
        (transaction for transaction in read_open_transactions(admin, [part]) if item.is_same(transaction)), None
    )
    if found is None:
        return _ended(admin, item)
    if reason := _why_not_hanging(item, found):
        return TransactionState(state=State.UNPROVEN, reason=reason)
    if not found.confirmed:
        return TransactionState(state=State.UNANSWERED, reason=_UNANSWERED)
    reason = why_too_young(item.age_seconds, read_broker_settings(admin))
    return TransactionState(state=State.UNPROVEN if reason else State.HANGS, reason=reason or "")


def read_evidence(admin: KafkaAdminClient, item: AbortItem) -> dict[str, Any]:
    """Read what is there before it is ended, as JSON: the partition, its open transactions, its batches; no payload.

    Raises BrokerUnreachable, OffsetNotInLog.
    """
    now = _snapshot(admin, item)
    batches = [_batch(batch) for batch in _batches(fetcher(admin), item, now) if not batch.header.is_control]
    return {
        "partition": asdict(now),
        "open_transactions": [
            asdict(transaction) | {"topic_partition": str(transaction.topic_partition)}
            for transaction in read_open_transactions(admin, [item.topic_partition])
        ],
        "batches": len(batches),
        "records": sum(batch["records"] for batch in batches),
        "first_batches": batches[:_BATCHES_KEPT],
    }


def write_abort(admin: KafkaAdminClient, item: AbortItem) -> None:
    """Write the marker. Raises MarkerRefused; BrokerUnreachable, where only another look can tell what stands.

    A producer that no coordinator has ordered a marker for has no coordinator epoch there, and gets 0, which is none's
    future. Source: Kafka's TransactionsCommand.
    """
    spec = AbortTransactionSpec(
        ClientTopicPartition(item.topic, item.partition),
        item.producer_id,
        item.producer_epoch,
        max(0, item.coordinator_epoch),
    )
    try:
        admin.abort_transaction(spec)
    except ClusterAuthorizationFailedError as error:
        raise MarkerRefused(
            f"{item.place}: the account may not end transactions; expected ALTER on the cluster"
        ) from error
    except (InvalidProducerEpochError, TransactionCoordinatorFencedError) as error:
        raise MarkerRefused(
            f"{item.place}: {type(error).__name__}: its producer or coordinator has gone on since; ask for a new plan"
        ) from error
    except KafkaError as error:
        raise BrokerUnreachable(f"{item.place}: ABORT marker: {type(error).__name__}: {error}") from error


def wait_ended(admin: KafkaAdminClient, item: AbortItem, *, wait_seconds: float) -> TransactionState:
    """Look until it is no longer open and the LSO has passed its beginning, or the wait is over."""
    deadline = time.monotonic() + wait_seconds
    while True:
        standing = look_at(admin, item)
        if standing.stable or time.monotonic() >= deadline:
            return standing
        time.sleep(_LOOK_AGAIN_SECONDS)


def _why_not_hanging(item: AbortItem, found: OpenTransaction) -> str | None:
    if found.producer_epoch != item.producer_epoch:
        return f"its producer's epoch is {found.producer_epoch} now, the plan has {item.producer_epoch}"
    if found.will_end:
        return f"the coordinator of {found.transactional_id} will end it ({found.coordinator_state})"
    return None


def _ended(admin: KafkaAdminClient, item: AbortItem) -> TransactionState:
    now = _snapshot(admin, item)
    marker = next((batch.header for batch in _batches(fetcher(admin), item, now) if batch.header.is_control), None)
    if marker is None:
        return TransactionState(
            state=State.UNPROVEN, reason="it is not open any more, and its marker is not to be found"
        )
    place = {
        "topic": item.topic,
        "partition": item.partition,
        "kafka_offset": marker.base_offset,
        "marker": str(marker.marker),
        "producer_epoch": marker.producer_epoch,
        "lso": now.lso,
    }
    aborted = marker.marker is Marker.ABORT and marker.producer_epoch == item.producer_epoch
    said = f"it has ended: {marker.marker} of epoch {marker.producer_epoch} at {marker.base_offset}"
    return TransactionState(
        state=State.ABORTED if aborted else State.ENDED,
        reason=said,
        place=place,
        stable=now.lso > item.kafka_offset_start,
    )


def _batches(fetch: Fetch, item: AbortItem, now: PartitionSnapshot) -> list[DecidedBatch]:
    """Its producer's batches from its beginning up to the first marker, or up to the high watermark."""
    offsets = OffsetRange(
        topic=item.topic,
        partition=item.partition,
        kafka_offset_start=max(item.kafka_offset_start, now.log_start),
        kafka_offset_end=max(item.kafka_offset_start, now.log_start, now.high_watermark),
    )
    found = []
    for batch in walk_batches(fetch, offsets, read_committed=False):
        if batch.header.producer_id == item.producer_id:
            found.append(batch)
            if batch.header.is_control:
                break
    return found


def _batch(batch: DecidedBatch) -> dict[str, int]:
    header = batch.header
    return {
        "kafka_offset_start": header.base_offset,
        "kafka_offset_end": header.next_offset,
        "records": header.record_count,
        "producer_epoch": header.producer_epoch,
        "base_sequence": header.base_sequence,
        "max_timestamp_ms": header.max_timestamp_ms,
        "crc32c": checksum(batch.raw),
    }


def _snapshot(admin: KafkaAdminClient, item: AbortItem) -> PartitionSnapshot:
    return next(
        part for part in read_topic_snapshot(admin, [item.topic]) if part.topic_partition == item.topic_partition
    )
