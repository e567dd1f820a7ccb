"""P1: the follower has what the origin never had.

Evidence: the copy's deadline has passed, the origin's side has settled past it, and a look-up over all that is retained
finds no copy of the key there: for a row, no record of it, whatever its outcome, on the topics of the legs or on the
stray ones. Not to be mistaken for a row whose only records were aborted (aborted_read_in_ledger), or lie on a stray
topic (misrouted_in_topic), nor for an event of an unknown writer (foreign_in_topic).
"""

from collections.abc import Iterator, Mapping

from tallystick.anomalies.breaks.aborted_read import was_aborted_only
from tallystick.anomalies.breaks.foreign_in_topic import is_foreign
from tallystick.anomalies.breaks.make_break import break_of
from tallystick.anomalies.breaks.misrouted_in_topic import is_astray
from tallystick.contract.contract import Contract
from tallystick.kafka_log.record import LogRecord
from tallystick.matching.evidence import UnmatchedItems
from tallystick.matching.match_case import LookupHit, MatchStatus, RecordLocation
from tallystick.model.finding_names import BreakClass
from tallystick.model.findings import Break
from tallystick.model.open_item import ItemSide


def phantom_in_topic(
    contract: Contract, unmatched: UnmatchedItems, record_origins: Mapping[str, LogRecord]
) -> Iterator[Break]:
    """An event that no ledger row stands behind."""
    for residue in unmatched.of(MatchStatus.ORIGIN_ABSENT, ItemSide.TOPIC):
        if not is_foreign(contract, record_origins, residue):
            story = f"The event at {residue.copy.item_id} is committed, and the ledger never had a row for it."
            aborted = [seen.item_id for seen in residue.lookup_hits if _is_aborted_row(seen)]
            if aborted:
                story += (
                    f" What stands there, {', '.join(aborted)}, is in a producer transaction that was aborted: the "
                    "event's service reads uncommitted data."
                )
            yield break_of(contract, residue, BreakClass.PHANTOM_IN_TOPIC, story)


def _is_aborted_row(seen: LookupHit) -> bool:
    """An input event, where a topic plays the ledger's part."""
    return seen.side is ItemSide.LEDGER and seen.place is RecordLocation.ABORTED


def phantom_in_ledger(contract: Contract, unmatched: UnmatchedItems) -> Iterator[Break]:
    """A ledger row that no event stands behind."""
    for residue in unmatched.of(MatchStatus.ORIGIN_ABSENT, ItemSide.LEDGER):
        if not was_aborted_only(residue) and not is_astray(residue):
            story = f"The ledger has {residue.copy.item_id}, and the retained log holds no record of it."
            yield break_of(contract, residue, BreakClass.PHANTOM_IN_LEDGER, story)
