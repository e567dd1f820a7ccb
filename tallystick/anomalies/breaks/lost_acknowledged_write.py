"""M7: the broker acknowledged the event, and the log no longer has it.

Evidence: the row is past its deadline and has no event; it holds the acknowledgement that its producer stored
(`ledger.columns.receipt_partition`, `receipt_offset`); no record of its key is committed or open anywhere on the
retained log; and the log still covers the acknowledged offset, where another event stands, or none, or where the log
has ended since. Source: KIP-101, KIP-279.
Not to be mistaken for a row without receipt (never produced), nor for one whose own record stands at its receipt,
aborted (aborted only: a producer is acknowledged before it aborts). Nobody can say what was lost where the receipt lies
below the log start, the topic compacts or was created anew: there the row is undecidable (partner_not_settled).
"""

from collections.abc import Iterator

from tallystick.anomalies.breaks.make_break import break_of, seen_as_json
from tallystick.anomalies.breaks.misrouted_in_topic import is_astray
from tallystick.contract.contract import Contract
from tallystick.matching.evidence import UnmatchedItems
from tallystick.matching.match_case import MatchStatus, RecordLocation, UnmatchedItem
from tallystick.model.finding_names import BreakClass
from tallystick.model.findings import Break
from tallystick.model.open_item import ItemSide


def lost_acknowledged_write(contract: Contract, unmatched: UnmatchedItems) -> Iterator[Break]:
    """One break per row."""
    for residue in unmatched.of(MatchStatus.FOLLOWER_ABSENT, ItemSide.LEDGER):
        if is_lost(residue):
            receipt = next(seen for seen in residue.lookup_hits if seen.place is RecordLocation.LOST)
            story = (
                f"The broker acknowledged the event of {residue.copy.item_id} at {receipt.item_id}; there stands "
                f"{receipt.detail['stands_there']}, and no other record of it is committed on the retained log."
            )
            yield break_of(
                contract,
                residue,
                BreakClass.LOST_ACKNOWLEDGED_WRITE,
                story,
                evidence={"receipt": seen_as_json(receipt)},
            )


def is_lost(residue: UnmatchedItem) -> bool:
    """Return whether an acknowledgement proves that the event of this row was there."""
    return any(seen.place is RecordLocation.LOST for seen in residue.lookup_hits) and not is_astray(residue)
