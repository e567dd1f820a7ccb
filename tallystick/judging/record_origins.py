"""The writers of the topic copies that breaks are about: which are needed, and one pass per partition that reads them.

Cost grows with breaks, not with rows. A function of the log; but the log forgets, and then a copy has no origin.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from types import MappingProxyType

from tallystick.anomalies.breaks.duplicate_in_topic import original_item_id
from tallystick.anomalies.breaks.torn_transaction import absent_legs, judge_legs
from tallystick.contract.contract import Contract
from tallystick.contract.event import EventFields
from tallystick.kafka_log.fetch import Fetch
from tallystick.kafka_log.header_cache import NO_HEADS, KeptHeads
from tallystick.kafka_log.record import LogRecord, PackedRecords, packed, read_with_spans
from tallystick.kafka_log.transaction_span import TransactionSpan
from tallystick.matching.evidence import LegsCase, bled_item_ids
from tallystick.matching.match_case import Deadlines, MatchResult, MatchStatus, RecordLocation, UnmatchedItem
from tallystick.matching.scan_result import topic_place
from tallystick.model.census_values import PartitionCensus
from tallystick.model.offsets import TopicPartition
from tallystick.model.open_item import ItemSide

_BREAKS = frozenset(
    {
        MatchStatus.EXTRA,
        MatchStatus.ORIGIN_ABSENT,
        MatchStatus.FOLLOWER_ABSENT,
        MatchStatus.UNEQUAL,
        MatchStatus.SUM_DIFFERS,
        MatchStatus.MISROUTED,
        MatchStatus.ORIGIN_OPEN,
    }
)
_WITHOUT_READER = frozenset({RecordLocation.ABORTED, RecordLocation.OPEN, RecordLocation.STRAY})


def origins_needed(
    contract: Contract,
    outcomes: Iterable[MatchResult],
    legs: Iterable[LegsCase],
    census: Iterable[PartitionCensus],
    deadlines: Deadlines,
    *,
    repaired: Collection[str] = (),
) -> frozenset[str]:
    """Return the item ids of the topic copies whose writers a class may ask for. repaired: items of executed actions,
    whose partner may be a repair of ours.
    """
    wanted = {
        item_id
        for outcome in outcomes
        for residue in outcome.residues
        if residue.fate in _BREAKS
        for item_id in _of_residue(residue)
    }
    for case in legs:
        if absent_legs(case, contract.legs) and judge_legs(case, deadlines) is MatchStatus.FOLLOWER_ABSENT:
            wanted.update(_of_legs(case))
    wanted.update(bled_item_ids(census))
    if repaired:
        wanted.update(topic.item_id for one in outcomes for topic, other in one.agreeing if other.item_id in repaired)
    return frozenset(item_id for item_id in wanted if item_id.startswith("topic:"))


def _of_residue(residue: UnmatchedItem) -> Iterator[str]:
    """Return the copy, and the copy it doubles or is paired with; for a row without event, the last record that no
    reader may see.
    """
    yield residue.copy.item_id
    if residue.partner is not None:
        yield residue.partner.item_id
    if residue.fate is MatchStatus.EXTRA:
        yield original_item_id(residue)
    if residue.copy.side is ItemSide.LEDGER:
        hidden = [seen.item_id for seen in residue.lookup_hits if seen.place in _WITHOUT_READER]
        yield from hidden[-1:]


def _of_legs(case: LegsCase) -> Iterator[str]:
    for _, _, item_id in case.seen.values():
        yield item_id
    for lookup_hits in case.lookup_hits.values():
        yield from (seen.item_id for seen in lookup_hits)


def read_record_origins(
    fetch: Fetch,
    item_ids: Iterable[str],
    event_on: Callable[[str], EventFields],
    decoded: Mapping[str, LogRecord] = MappingProxyType({}),
    heads: KeptHeads = NO_HEADS,
) -> PackedRecords:
    """Read the record behind each item id, with its transaction's span. Planted copies, of no partition, have none.

    event_on: the fields of an event, by its topic. decoded: records that were read before, by item id; of these only
    the spans are read, and one that has left the log since has none. heads: of slices that need not be fetched for it.
    """
    offsets: dict[TopicPartition, dict[int, str]] = {}
    for item_id in item_ids:
        part, offset = topic_place(item_id)
        if part.partition >= 0:
            offsets.setdefault(part, {})[offset] = item_id
    found: dict[str, tuple[bytes, TransactionSpan | None]] = {}
    for part, wanted in sorted(offsets.items()):
        known = {offset for offset, item_id in wanted.items() if item_id in decoded}
        for one, span in read_with_spans(fetch, part, wanted, event_on(part.topic), known, heads):
            if isinstance(one, int):
                found[wanted[one]] = (_packed(decoded, wanted[one]), span)
            else:
                found[one.item_id] = (packed(one), span)
        for item_id in wanted.values():
            if item_id in decoded and item_id not in found:
                found[item_id] = (_packed(decoded, item_id), None)
    return PackedRecords(found)


def _packed(decoded: Mapping[str, LogRecord], item_id: str) -> bytes:
    return decoded.packed(item_id) if isinstance(decoded, PackedRecords) else packed(decoded[item_id])
