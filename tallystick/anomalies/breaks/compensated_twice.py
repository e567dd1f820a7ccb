"""C1: one compensating action stands on the topic more than once.

Evidence: two committed events of one key carry the same action id header. Not to be mistaken for a compensation whose
original came after all, which is one copy with the header and one without (duplicate_in_topic_compensated); nor for two
actions, each of which stands once.
"""

from collections.abc import Iterator, Mapping

from tallystick.anomalies.breaks.duplicate_in_topic import extra_copy, published_twice
from tallystick.contract.contract import Contract
from tallystick.kafka_log.record import LogRecord
from tallystick.matching.evidence import UnmatchedItems
from tallystick.model.finding_names import BreakClass
from tallystick.model.findings import Break


def compensated_twice(
    contract: Contract, unmatched: UnmatchedItems, record_origins: Mapping[str, LogRecord]
) -> Iterator[Break]:
    """Yield a break per copy beyond the action's first."""
    for residue in published_twice(unmatched, record_origins).values():
        yield extra_copy(contract, record_origins, residue, BreakClass.COMPENSATED_TWICE)
