"""What the first reader brings back from a cut: totals, and copies that are not simply one event and one equal row."""

from collections.abc import Mapping
from dataclasses import dataclass

from tallystick.evidence import UnreadableRecord
from tallystick.pairing import Copy

UNREADABLE_SAMPLE = 5


@dataclass(frozen=True, kw_only=True)
class SliceScan:
    """Counts are of readable records and of rows that the contract's condition picks.

    copies: every copy of each exceptional key. incomplete: the slice's copies of transactions that lack a leg in it.
    content_digests: order-free figures over each side's rows; the same bytes give the same figures.
    """

    rows_by_partition: Mapping[tuple[str, int], int]
    ledger_rows: int
    matched_rows: int
    matched_money: Mapping[str, int]
    copies: tuple[Copy, ...]
    incomplete: tuple[Copy, ...]
    unreadable_count: int
    unreadable_sample: tuple[UnreadableRecord, ...]
    content_digests: Mapping[str, str]

    @property
    def topic_rows(self) -> int:
        return sum(self.rows_by_partition.values()) - self.unreadable_count


def topic_item_id(topic: str, partition: int, kafka_offset: int) -> str:
    return f"topic:{topic}:{partition}:{kafka_offset}"


def ledger_item_id(row_id: str) -> str:
    return f"ledger:{row_id}"


def place_in_order(item_id: str) -> int:
    """Offset or row id that an item id ends with; 0 for a row id that is no number."""
    last = item_id.rpartition(":")[2]
    return int(last) if last.isdecimal() else 0
