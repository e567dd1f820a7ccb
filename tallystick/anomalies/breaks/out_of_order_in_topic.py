"""O1: two events of one ordering key stand on their partition in another order than their sequence.

Only within one partition and one slice: Kafka promises no order between partitions, and the last sequence of the slice
before is not kept. An event that stands a second time is a duplicate, and no reordering.
"""

from collections.abc import Iterator, Mapping

from tallystick.anomalies.breaks.make_break import origin_json
from tallystick.contract.contract import Contract
from tallystick.kafka_log.record import LogRecord
from tallystick.matching.evidence import OutOfOrderEvent, ScanOddities, UnmatchedItems
from tallystick.matching.match_case import MatchStatus
from tallystick.matching.scan_result import topic_item_id
from tallystick.model.finding_names import BreakClass
from tallystick.model.findings import Break, break_id
from tallystick.model.open_item import ItemSide


def out_of_order_in_topic(
    contract: Contract, unmatched: UnmatchedItems, record_origins: Mapping[str, LogRecord], oddities: ScanOddities
) -> Iterator[Break]:
    """One break per event whose sequence is below one that stands before it. No money is at stake: nothing is lost."""
    copies = {residue.copy.item_id for residue in unmatched.of(MatchStatus.EXTRA, ItemSide.TOPIC)}
    for event in oddities.out_of_order:
        if topic_item_id(event.topic, event.partition, event.kafka_offset) not in copies:
            yield _break(contract, record_origins, oddities, event)


def _break(
    contract: Contract, record_origins: Mapping[str, LogRecord], oddities: ScanOddities, event: OutOfOrderEvent
) -> Break:
    """The evidence has no "at": the event's own place in the books, matched or not, stays what it is."""
    place = topic_item_id(event.topic, event.partition, event.kafka_offset)
    before = topic_item_id(event.topic, event.partition, event.highest_offset)
    break_class = BreakClass.OUT_OF_ORDER_IN_TOPIC
    return Break(
        break_id=break_id(contract=contract.name, break_class=break_class, match_key=event.match_key, position=place),
        break_class=break_class,
        match_key=event.match_key,
        transaction_key=event.transaction_key,
        leg=event.leg,
        amount_minor=0,
        currency="",
        copies=1,
        story=f"{place} has sequence {event.sequence}, and {before} before it has {event.highest_before} "
        f"under the same ordering key.{_not_named(oddities)}",
        evidence={
            "event": place,
            "sequence": event.sequence,
            "stands_before_it": before,
            "its_sequence": event.highest_before,
            "ordering_key": event.ordering_key,
            "out_of_order_in_slice": oddities.out_of_order_count,
            "identity": origin_json(record_origins.get(place)),
        },
    )


def _not_named(oddities: ScanOddities) -> str:
    named, count = len(oddities.out_of_order), oddities.out_of_order_count
    return f" The slice has {count:,} such events, of which the first {named:,} are named." if count > named else ""
