"""K1: the topic committed the event, the ledger has no row for it.

Evidence: the event is committed below the LSO; its deadline has passed; the ledger's horizon has passed every mark
taken by then; and no row of the key is visible anywhere in the ledger. Not to be mistaken for a row behind the horizon,
for an event on the wrong topic (misrouted_in_topic), nor for one of an unknown writer (foreign_in_topic).
"""

from collections.abc import Iterator, Mapping

from tallystick.anomalies.breaks.foreign_in_topic import is_foreign
from tallystick.anomalies.breaks.make_break import break_of
from tallystick.contract.contract import Contract
from tallystick.kafka_log.record import LogRecord
from tallystick.matching.evidence import UnmatchedItems
from tallystick.matching.match_case import MatchStatus
from tallystick.model.direction import Direction
from tallystick.model.finding_names import BreakClass
from tallystick.model.findings import Break
from tallystick.model.open_item import ItemSide


def missing_in_ledger(
    contract: Contract, unmatched: UnmatchedItems, record_origins: Mapping[str, LogRecord]
) -> Iterator[Break]:
    """Judge topic_to_ledger contracts only: the other way round the topic is the follower."""
    if contract.direction is not Direction.TOPIC_TO_LEDGER:
        return
    for residue in unmatched.of(MatchStatus.FOLLOWER_ABSENT, ItemSide.TOPIC):
        if not is_foreign(contract, record_origins, residue):
            story = f"The event at {residue.copy.item_id} is committed, and the ledger has no row for it, anywhere."
            yield break_of(contract, residue, BreakClass.MISSING_IN_LEDGER, story)
