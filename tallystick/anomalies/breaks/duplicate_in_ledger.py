"""D5, K2: the ledger has a row more than once.

topic_to_ledger: more rows than the topic has copies; rows that follow a doubled event are that event's duplicate, not
this. So is a row that says that it takes another one back, and does not. Not to be mistaken for one that comes behind a
row that a compensation posted, see duplicate_in_ledger_compensated.
ledger_to_topic: the ledger itself wrote the key twice.
"""

from collections.abc import Iterator

from tallystick.anomalies.breaks.duplicate_in_ledger_compensated import rows_behind_ours
from tallystick.anomalies.breaks.make_break import break_of
from tallystick.contract.contract import Contract
from tallystick.matching.evidence import UnmatchedItems
from tallystick.matching.match_case import MatchStatus
from tallystick.model.finding_names import BreakClass
from tallystick.model.findings import Break
from tallystick.model.open_item import ItemSide
from tallystick.text.reason_texts import reason_text


def duplicate_in_ledger(contract: Contract, unmatched: UnmatchedItems) -> Iterator[Break]:
    """Yield a break per extra row."""
    behind_ours = rows_behind_ours(unmatched)
    for residue in unmatched.of(MatchStatus.EXTRA, ItemSide.LEDGER):
        if residue.copy.item_id in behind_ours:
            continue
        original = residue.original.item_id if residue.original else "an earlier row"
        story = f"{residue.copy.item_id} repeats {original}: {reason_text(residue.reason)}."
        yield break_of(
            contract,
            residue,
            BreakClass.DUPLICATE_IN_LEDGER,
            story,
            evidence={"original": original, "partner": residue.partner.item_id if residue.partner else None},
        )
