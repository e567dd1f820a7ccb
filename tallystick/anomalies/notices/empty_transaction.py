"""T7: producer transactions that ended on a partition without a record in it.

Evidence: a marker of a producer id without data of it since its last marker. Kafka allows it: a partition is added to a
transaction before its first record is sent, and an ABORT by an administrator leaves the coordinator's own marker empty.
Counted, no break. Not to be mistaken for a marker whose data lies before the window.
"""

from collections.abc import Iterator

from tallystick.model.census_values import PartitionCensus
from tallystick.model.finding_names import Notice
from tallystick.model.findings import NoticeFound


def empty_transaction(census: tuple[PartitionCensus, ...]) -> Iterator[NoticeFound]:
    """Yield one notice for all partitions."""
    empty = {f"{part.topic}[{part.partition}]": part.empty_transactions for part in census}
    count = sum(empty.values())
    if count:
        yield NoticeFound(
            notice=Notice.EMPTY_TRANSACTION,
            sentence=f"{count:,} producer transactions ended on a partition without a record in it.",
            count=count,
            details={"by_partition": {name: number for name, number in sorted(empty.items()) if number}},
        )
