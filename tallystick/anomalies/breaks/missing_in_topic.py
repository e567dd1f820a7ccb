"""M1 and M2: the ledger has the row, the topic never showed its event to a read_committed reader.

Evidence: the row's transaction has ended; its deadline has passed; the LSO has passed every mark taken by then; and no
record of the key is committed or open anywhere on the retained log, nor on the contract's stray topics. Not to be
mistaken for an event behind the LSO (it waits), before the baseline (undecidable), on a stray topic
(misrouted_in_topic), or one whose acknowledgement the row holds (lost_acknowledged_write).
"""

from collections.abc import Iterator

from tallystick.anomalies.breaks.lost_acknowledged_write import is_lost
from tallystick.anomalies.breaks.make_break import break_of
from tallystick.anomalies.breaks.misrouted_in_topic import is_astray
from tallystick.contract.contract import Contract
from tallystick.matching.evidence import UnmatchedItems
from tallystick.matching.match_case import MatchStatus, RecordLocation, UnmatchedItem
from tallystick.model.finding_names import BreakClass
from tallystick.model.findings import Break
from tallystick.model.open_item import ItemSide


def missing_in_topic_never_produced(contract: Contract, unmatched: UnmatchedItems) -> Iterator[Break]:
    """M1: no record of the key on the retained log, whatever its outcome."""
    for residue in _absent(contract, unmatched):
        if not _aborted(residue):
            story = (
                f"The ledger committed {residue.copy.item_id}, and no record of this event lies anywhere on the "
                "retained log: it was never produced."
            )
            yield break_of(contract, residue, BreakClass.MISSING_IN_TOPIC_NEVER_PRODUCED, story)


def missing_in_topic_aborted_only(contract: Contract, unmatched: UnmatchedItems) -> Iterator[Break]:
    """M2: records of the key exist, and each belongs to a producer transaction that was aborted."""
    for residue in _absent(contract, unmatched):
        aborted = _aborted(residue)
        if aborted:
            story = (
                f"The ledger committed {residue.copy.item_id}; the event was written at {', '.join(aborted)}, "
                "but that producer transaction was aborted and nobody wrote it again."
            )
            yield break_of(contract, residue, BreakClass.MISSING_IN_TOPIC_ABORTED_ONLY, story)


def _absent(contract: Contract, unmatched: UnmatchedItems) -> tuple[UnmatchedItem, ...]:
    if not contract.direction.topic_follows:
        return ()
    rows = unmatched.of(MatchStatus.FOLLOWER_ABSENT, ItemSide.LEDGER)
    return tuple(residue for residue in rows if not is_astray(residue) and not is_lost(residue))


def _aborted(residue: UnmatchedItem) -> list[str]:
    return [seen.item_id for seen in residue.lookup_hits if seen.place is RecordLocation.ABORTED]
