"""The result of the scan of a cut: totals, and the copies that are not simply one event and one equal row."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tallystick.kafka_cluster.state import BatchFingerprint
from tallystick.kafka_log.header_cache import BatchHeads
from tallystick.kafka_log.record import LogRecord
from tallystick.matching.evidence import OutOfOrderEvent, RecordTimes, SecondReading, UnreadableRecord
from tallystick.matching.match_case import Entry
from tallystick.model.findings import Money
from tallystick.model.offsets import TopicPartition
from tallystick.model.open_item import ItemSide
from tallystick.model.partner_lag import TopicLag
from tallystick.model.run_result import PartitionSummary, SideSummary, WindowSummary

UNREADABLE_SAMPLE = 5

OUT_OF_ORDER_MAX = 10_000
"""A producer that counts from 1 again puts all that follows out of order; its first ten thousand events say enough."""

CANARY = "tallystick-canary-"
"""How the match keys of planted copies begin. Nothing is told by it: a real copy may have such a key too."""

REPEATED_IDS_MAX = 5
"""So many ids that rows share are named."""

CANARY_PARTITION = -1
"""Where planted events lie: no topic has such a partition."""


@dataclass(frozen=True, kw_only=True)
class CanaryScan:
    """The planted copies that the scan returned; the same words as in SliceScan."""

    copies: tuple[Entry, ...]
    incomplete: tuple[Entry, ...]
    unreadable: int


@dataclass(frozen=True, kw_only=True)
class SliceScan:
    """Counts are of readable records and of rows that the contract's condition picks.

    copies: every copy of each exceptional key. incomplete: the slice's copies of transactions that lack a leg in it.
    differently_written: simple pairs whose currencies are equal only by the contract's rule. out_of_order: the first
    OUT_OF_ORDER_MAX by place; out_of_order_count counts all. record_times: none where no times were asked about.
    content_digests: order-free figures over each side's rows; the same bytes give the same figures. lags: of the pairs
    that are simply one event and one equal row, where the contract names the column that says when a row was written.
    second_readings: where the first reader is our own.
    """

    rows_by_partition: Mapping[tuple[str, int], int]
    ledger_rows: int
    matched_rows: int
    matched_money: Mapping[str, int]
    copies: tuple[Entry, ...]
    incomplete: tuple[Entry, ...]
    unreadable_count: int
    unreadable_sample: tuple[UnreadableRecord, ...]
    content_digests: Mapping[str, str]
    topic_money: Money = field(default_factory=dict)
    ledger_money: Money = field(default_factory=dict)
    differently_written: int = 0
    out_of_order: tuple[OutOfOrderEvent, ...] = ()
    out_of_order_count: int = 0
    record_times: tuple[RecordTimes, ...] = ()
    lags: tuple[TopicLag, ...] = ()
    second_readings: tuple[SecondReading, ...] = ()
    canaries: CanaryScan
    input_rows_by_partition: Mapping[tuple[str, int], int] = field(default_factory=dict)
    """Records of the topics that play the ledger's part, readable or not."""
    input_unreadable_count: int = 0
    repeated_row_ids: tuple[str, ...] = ()
    """Ids that more than one row of the slice has, the first REPEATED_IDS_MAX; none where the database rules it out."""
    row_ids_repeat: bool = False
    """May rows share a row id, in this slice or over several, by the ledger's own word?"""
    log_records: Mapping[str, LogRecord] = field(default_factory=dict)
    """What the log says of copies that came home, by item id, without spans; of none but where our own reader read."""
    heads: Mapping[TopicPartition, BatchHeads] = field(default_factory=dict)
    """Of the slices that it walked, where it kept them."""
    last_batches: Mapping[TopicPartition, Sequence[BatchFingerprint]] = field(default_factory=dict)
    """Of each slice, as they were read; oldest first."""

    @property
    def matched_keys(self) -> int:
        """Return the number of keys that the scan matched by itself: of one side each has a single copy."""
        exceptional = sum(copy.side is ItemSide.TOPIC for copy in self.copies)
        return min(self.matched_rows, self.topic_rows - exceptional)

    @property
    def topic_rows(self) -> int:
        return sum(self.rows_by_partition.values()) - self.unreadable_count


def summary_of(scan: SliceScan) -> WindowSummary:
    """Sum up both sides. A key of a simple pair is once on each side, so only the other copies' keys are compared."""
    times = {(one.topic, one.partition): (one.earliest_ms, one.latest_ms) for one in scan.record_times}
    rows = sorted({**scan.rows_by_partition, **scan.input_rows_by_partition}.items())
    return WindowSummary(
        topic=SideSummary(rows=scan.topic_rows, keys=_keys(scan, ItemSide.TOPIC), money=scan.topic_money),
        ledger=SideSummary(rows=scan.ledger_rows, keys=_keys(scan, ItemSide.LEDGER), money=scan.ledger_money),
        partitions=tuple(
            PartitionSummary(
                topic=topic,
                partition=partition,
                rows=count,
                earliest_ms=times.get((topic, partition), (None, None))[0],
                latest_ms=times.get((topic, partition), (None, None))[1],
            )
            for (topic, partition), count in rows
        ),
    )


def _keys(scan: SliceScan, side: ItemSide) -> int:
    return scan.matched_keys + len({copy.match_key for copy in scan.copies if copy.side is side and copy.match_key})


def topic_item_id(topic: str, partition: int, kafka_offset: int) -> str:
    return f"topic:{topic}:{partition}:{kafka_offset}"


def topic_place(item_id: str) -> tuple[TopicPartition, int]:
    """Return the partition and offset that `topic_item_id` made one text of."""
    topic, partition, offset = item_id.removeprefix("topic:").rsplit(":", 2)
    return TopicPartition(topic=topic, partition=int(partition)), int(offset)


def input_row_id(topic: str, partition: int, kafka_offset: int) -> str:
    """Return what names an input where a topic plays the ledger's part."""
    return f"{topic}:{partition}:{kafka_offset}"


def input_place(item_id: str) -> tuple[TopicPartition, int]:
    """Return the partition and offset of an input, by its item id."""
    return topic_place(item_id.removeprefix("ledger:"))


def ledger_item_id(row_id: str) -> str:
    return f"ledger:{row_id}"


def place_in_order(item_id: str) -> int:
    """Return the offset or row id that an item id ends with; 0 for a row id that is no number."""
    last = item_id.rpartition(":")[2].partition("#")[0]
    return int(last) if last.isdecimal() else 0
