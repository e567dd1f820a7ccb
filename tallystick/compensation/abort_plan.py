"""Hanging transactions that may be aborted, by the cluster state that a stored run kept. Pure.

Only one that a run proved to hang, that the newest run still saw, that has stood since longer than any time-out, and
whose records were all counted. abort_marker.py proves it again, and ends it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID, uuid5

from tallystick.kafka_cluster.open_transactions import OpenTransaction
from tallystick.kafka_cluster.state import BlockedEvents, BrokerSettings, ClusterState
from tallystick.model.findings import total_money
from tallystick.model.offsets import TopicPartition
from tallystick.text.money import format_money
from tallystick.text.plain import format_time
from tallystick.text.verdict_sentence import counted

_NAMESPACE = UUID("8f3f6f0e-7a2b-5b0c-9d53-3f7f0d6f9a11")
_SLACK_SECONDS = 300
"""Beyond transaction.max.timeout.ms, for coordinators that move and clocks that differ. Source: KIP-664."""


@dataclass(frozen=True, kw_only=True)
class AbortItem:
    """One hanging transaction to end. own: its records, which count as aborted then. waiting: what stands behind it.

    age_seconds: from the first run that saw it up to the run that the plan is drawn from. coordinator_epoch -1: no
    coordinator has ever ordered a marker of this producer there. Money in integer minor units.
    """

    action_id: UUID
    topic: str
    partition: int
    producer_id: int
    producer_epoch: int
    kafka_offset_start: int
    coordinator_epoch: int
    transactional_id: str
    first_seen_utc: str
    age_seconds: int
    own_events: int
    own_money_minor: dict[str, int]
    waiting_events: int
    waiting_money_minor: dict[str, int]

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(topic=self.topic, partition=self.partition)

    @property
    def place(self) -> str:
        """Return where it begins, for people."""
        return f"{self.topic}:{self.partition} at offset {self.kafka_offset_start}"

    @property
    def moved_minor(self) -> dict[str, int]:
        """Return the money that an abort takes from the readers for good, without signs."""
        return {currency: abs(money) for currency, money in self.own_money_minor.items()}

    def is_same(self, transaction: OpenTransaction) -> bool:
        """Return whether this is the planned transaction, whatever its state is now."""
        return (transaction.topic_partition, transaction.producer_id, transaction.kafka_offset_start) == (
            self.topic_partition,
            self.producer_id,
            self.kafka_offset_start,
        )


def abort_items(contract_name: str, around: ClusterState, *, now_utc: datetime) -> tuple[AbortItem, ...]:
    """Return one item per transaction that this run proved to hang, in the log's order. now_utc: the run's."""
    return tuple(
        _item(contract_name, transaction, around, now_utc=now_utc)
        for transaction in around.open_transactions
        if transaction.hangs
    )


def why_not_abort(item: AbortItem, *, topics: Sequence[str], around: ClusterState, newest: ClusterState) -> str | None:
    """Return the reason not to abort it; None: there is none. topics: those of the legs. newest: of the newest run."""
    if item.topic not in topics:
        return "it stands on no topic of the contract's legs"
    if not any(item.is_same(transaction) and transaction.hangs for transaction in newest.open_transactions):
        return "the newest run does not find it any more"
    own, waiting = _held(item.topic_partition, item.producer_id, around)
    if not own or not all(blocked.complete for blocked in (*own, *waiting)):
        return "its records could not all be counted"
    return why_too_young(item.age_seconds, around.broker_settings)


def why_too_young(age_seconds: int, settings: BrokerSettings | None) -> str | None:
    """Return why a client or a coordinator may still end it. None: every time-out that the brokers allow is over."""
    if settings is None:
        return "the brokers' transaction.max.timeout.ms may not be described, so nobody can say that it is over"
    limit = settings.transaction_max_timeout_ms // 1000 + _SLACK_SECONDS
    if age_seconds < limit:
        return (
            f"it was first seen {age_seconds} s before; expected at least {limit} s, the brokers' "
            f"transaction.max.timeout.ms and {_SLACK_SECONDS} s more"
        )
    return None


def abort_words(item: AbortItem) -> str:
    """Return the words that a person agrees to."""
    coordinator = f"coordinator epoch {item.coordinator_epoch}" if item.coordinator_epoch >= 0 else "no coordinator"
    return (
        f"{item.place}: producer {item.producer_id}, epoch {item.producer_epoch}, {coordinator}; first seen "
        f"{item.first_seen_utc}, {item.age_seconds} s before the run. {counted(item.own_events, 'record')} of its own, "
        f"{format_money(item.own_money_minor)}, will count as aborted; {counted(item.waiting_events, 'event')} behind "
        f"it, {format_money(item.waiting_money_minor)}, can be read again"
    )


def _item(contract_name: str, transaction: OpenTransaction, around: ClusterState, *, now_utc: datetime) -> AbortItem:
    part, first_seen_utc = transaction.topic_partition, around.first_seen_utc(transaction) or now_utc
    identity = (
        part.topic,
        part.partition,
        transaction.producer_id,
        transaction.producer_epoch,
        transaction.kafka_offset_start,
    )
    own, waiting = _held(transaction.topic_partition, transaction.producer_id, around)
    return AbortItem(
        action_id=uuid5(_NAMESPACE, "\x1f".join(map(str, (contract_name, *identity)))),
        topic=part.topic,
        partition=part.partition,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        kafka_offset_start=transaction.kafka_offset_start,
        coordinator_epoch=transaction.coordinator_epoch,
        transactional_id=transaction.transactional_id,
        first_seen_utc=format_time(first_seen_utc),
        age_seconds=max(0, int((now_utc - first_seen_utc).total_seconds())),
        own_events=sum(held.events for held in own),
        own_money_minor=_money(own),
        waiting_events=sum(held.events for held in waiting),
        waiting_money_minor=_money(waiting),
    )


def _held(
    part: TopicPartition, producer_id: int, around: ClusterState
) -> tuple[list[BlockedEvents], list[BlockedEvents]]:
    """Return what is above the partition's LSO: of this producer, and of all others."""
    held = around.held_on(part)
    own = [blocked for blocked in held if blocked.producer_id == producer_id]
    return own, [blocked for blocked in held if blocked.producer_id != producer_id]


def _money(held: Sequence[BlockedEvents]) -> dict[str, int]:
    return total_money(pair for blocked in held for pair in blocked.money.items())
