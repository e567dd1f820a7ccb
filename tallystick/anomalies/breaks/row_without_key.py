"""M6: a ledger row whose key is null or empty.

Evidence: the row itself. Nothing can be its partner, so nothing is looked up and no deadline is waited for.
An event without a key is no event of the contract: unreadable_payload.
"""

from collections.abc import Iterator

from tallystick.anomalies.breaks.make_break import break_of
from tallystick.contract.contract import Contract
from tallystick.matching.evidence import UnmatchedItems
from tallystick.matching.match_case import MatchStatus
from tallystick.model.finding_names import BreakClass
from tallystick.model.findings import Break
from tallystick.model.open_item import ItemSide


def row_without_key(contract: Contract, unmatched: UnmatchedItems) -> Iterator[Break]:
    """One break per row."""
    for residue in unmatched.of(MatchStatus.WITHOUT_KEY, ItemSide.LEDGER):
        story = f"The ledger has {residue.copy.item_id}, and it has no match key: no event can be its partner."
        yield break_of(contract, residue, BreakClass.ROW_WITHOUT_KEY, story)
