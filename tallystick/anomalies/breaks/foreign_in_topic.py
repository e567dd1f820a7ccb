"""P3: an event that pairs with nothing, and that a producer wrote which the contract does not know.

Evidence: the event is unpaired past its deadline, and its header `event.origin_header` names none of
`event.known_origins`, or is not there: who writes without the header is unknown too. Both directions: such an event is
neither the ledger's omission (missing_in_ledger) nor a rolled back row's (phantom_in_topic). Not to be mistaken for an
event of a known writer, which is one of the two; nor for one that has left the log, whose writer nobody can tell.
A paired event is not asked where it comes from.
"""

from collections.abc import Iterator, Mapping

from tallystick.anomalies.breaks.make_break import break_of
from tallystick.contract.contract import Contract
from tallystick.kafka_log.record import LogRecord
from tallystick.matching.evidence import UnmatchedItems
from tallystick.matching.match_case import MatchStatus, UnmatchedItem
from tallystick.model.finding_names import BreakClass
from tallystick.model.findings import Break
from tallystick.model.open_item import ItemSide


def foreign_in_topic(
    contract: Contract, unmatched: UnmatchedItems, record_origins: Mapping[str, LogRecord]
) -> Iterator[Break]:
    """Yield a break per event."""
    for fate in (MatchStatus.ORIGIN_ABSENT, MatchStatus.FOLLOWER_ABSENT):
        for residue in unmatched.of(fate, ItemSide.TOPIC):
            if is_foreign(contract, record_origins, residue):
                yield _foreign(contract, record_origins, residue)


def is_foreign(contract: Contract, record_origins: Mapping[str, LogRecord], residue: UnmatchedItem) -> bool:
    """Return whether an unknown writer wrote this event. Never, where the contract does not name the known ones."""
    header = contract.event.origin_header
    if not header:
        return False
    record = record_origins.get(residue.copy.item_id)
    return record is not None and record.header(header) not in contract.event.known_origins


def _foreign(contract: Contract, record_origins: Mapping[str, LogRecord], residue: UnmatchedItem) -> Break:
    header = contract.event.origin_header
    assert header is not None
    record = record_origins[residue.copy.item_id]
    origin = record.header(header)
    writer = f"written by {origin!r}" if origin is not None else f"written without the header {header!r}"
    known = ", ".join(contract.event.known_origins)
    story = (
        f"The event at {residue.copy.item_id} was {writer}; the contract knows {known}, and no row stands behind it."
    )
    return break_of(
        contract,
        residue,
        BreakClass.FOREIGN_IN_TOPIC,
        story,
        evidence={"origin_header": header, "origin": origin, "producer_id": record.producer_id},
    )
