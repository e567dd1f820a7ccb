"""D7 in the ledger: a compensation posted the event's row, and its consumer's own came after all.

Evidence: of two rows with the same money, one holds the id of an action of ours (`ledger.columns.action_id`), and no
row takes it back. Not to be mistaken for a row that its consumer posts twice; nor for one of another amount, which says
something else than our repair: both are duplicate_in_ledger.
"""

from collections.abc import Iterator

from tallystick.anomalies.breaks.make_break import break_of
from tallystick.contract.contract import Contract
from tallystick.matching.evidence import UnmatchedItems
from tallystick.matching.match_case import MatchStatus, UnmatchedItem
from tallystick.matching.reversals import rows_of_ours
from tallystick.model.finding_names import BreakClass
from tallystick.model.findings import Break
from tallystick.model.open_item import ItemSide


def duplicate_in_ledger_compensated(contract: Contract, unmatched: UnmatchedItems) -> Iterator[Break]:
    """Yield a break per row of ours that is doubled. ours, action_id: the row to take back, and the action that posted
    it.
    """
    doubled = rows_behind_ours(unmatched)
    for residue in unmatched.of(MatchStatus.EXTRA, ItemSide.LEDGER):
        if residue.copy.item_id not in doubled:
            continue
        ours, action_id = doubled[residue.copy.item_id]
        yield break_of(
            contract,
            residue,
            BreakClass.DUPLICATE_IN_LEDGER_COMPENSATED,
            f"{residue.copy.item_id} is one row too many: compensation {action_id} posted {ours}, and the other row of "
            "the event came too.",
            evidence={"ours": ours, "action_id": action_id},
        )


def rows_behind_ours(unmatched: UnmatchedItems) -> dict[str, tuple[str, str]]:
    """Return, per item id of such an extra row, the row of ours and its action. One row of ours answers for one extra
    row.
    """
    found: dict[str, tuple[str, str]] = {}
    for residue in unmatched.of(MatchStatus.EXTRA, ItemSide.LEDGER):
        row = _row_of_ours(residue)
        if row is not None and row not in found.values():
            found[residue.copy.item_id] = row
    return found


def _row_of_ours(residue: UnmatchedItem) -> tuple[str, str] | None:
    """Return item id and action id of the one of the two rows that a compensation posted; None where none did."""
    copy, original = residue.copy, residue.original
    if copy.reverses:
        return None
    if copy.action_id:
        return copy.item_id, copy.action_id
    if original is not None and original.action_id and original.money == copy.money:
        return original.item_id, original.action_id
    seen = next(iter(rows_of_ours(residue.lookup_hits, copy)), None)
    return (seen.item_id, str(seen.detail["action_id"])) if seen else None
