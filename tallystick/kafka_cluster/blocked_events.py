"""The events above a partition's LSO: whose, how many and how much, and the transaction that holds them back.

For people: nothing is judged by it. Reads uncommitted, up to a limit a partition.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from tallystick.contract.event import EventFields
from tallystick.kafka_cluster.open_transactions import OpenTransaction
from tallystick.kafka_cluster.state import BlockedEvents
from tallystick.kafka_log.batch_header import Marker
from tallystick.kafka_log.fetch import Fetch
from tallystick.kafka_log.log_walk import DecidedBatch, walk_batches
from tallystick.kafka_log.record import records_of
from tallystick.model.findings import total_money
from tallystick.model.offsets import OffsetRange

HELD_BYTES_MAX = 64 << 20
"""Enough to name who waits, and how much, when a transaction hung for hours."""


@dataclass
class _Group:
    """One producer's events so far, as currency and minor units. pending: of a transaction without its marker yet."""

    producer_epoch: int
    kafka_offset_start: int
    decided: list[tuple[str, int]] = field(default_factory=list)
    pending: list[tuple[str, int]] = field(default_factory=list)

    def end(self, marker: Marker | None) -> None:
        if marker is Marker.COMMIT:
            self.decided += self.pending
        self.pending.clear()


def read_held_events(
    fetch: Fetch,
    above_lso: OffsetRange,
    fields: EventFields,
    open_transactions: Iterable[OpenTransaction],
    *,
    bytes_max: int = HELD_BYTES_MAX,
) -> tuple[BlockedEvents, ...]:
    """Group the events of [LSO, high watermark) by producer id, in log order of their first.

    An event of a transaction that was aborted meanwhile is not held. The holder is the one whose transaction is open
    from the LSO on. Raises OffsetNotInLog.
    """
    groups: dict[int, _Group] = {}
    read, complete = 0, True
    for batch in walk_batches(fetch, above_lso, read_committed=False):
        read += len(batch.raw)
        if read > bytes_max:
            complete = False
            break
        _count(groups, batch, above_lso, fields)
    holders = {
        one.producer_id
        for one in open_transactions
        if one.topic_partition == above_lso.topic_partition and one.kafka_offset_start == above_lso.kafka_offset_start
    }
    return tuple(
        BlockedEvents(
            topic_partition=above_lso.topic_partition,
            producer_id=producer_id,
            producer_epoch=group.producer_epoch,
            kafka_offset_start=group.kafka_offset_start,
            events=len(group.decided) + len(group.pending),
            money=total_money((currency, amount) for currency, amount in group.decided + group.pending if currency),
            holds=producer_id in holders,
            complete=complete,
        )
        for producer_id, group in groups.items()
        if group.decided or group.pending
    )


def _count(groups: dict[int, _Group], batch: DecidedBatch, above_lso: OffsetRange, fields: EventFields) -> None:
    header = batch.header
    if header.is_control:
        if header.producer_id in groups:
            groups[header.producer_id].end(header.marker)
        return
    first = max(header.base_offset, above_lso.kafka_offset_start)
    group = groups.setdefault(
        header.producer_id, _Group(producer_epoch=header.producer_epoch, kafka_offset_start=first)
    )
    (group.pending if header.is_transactional else group.decided).extend(
        (record.currency, record.amount_minor) if record.amount_minor is not None else ("", 0)
        for record in records_of(batch, above_lso.topic_partition, fields, lambda offset: offset >= first)
    )
