"""A1 and A2: the ledger has a row for an event that no read_committed reader can have seen.

A1, aborted: the row is past its deadline, the topics have settled past it, and every record of its key on the retained
log belongs to a producer transaction that was aborted. Not to be mistaken for a row without any record (a phantom), nor
for one whose event was written again and committed (a pair), nor for a ledger row that was never sent (missing).

A2, open: the row was committed below the ledger's horizon, and when it was looked up afterwards its only record lay in
a producer transaction that was open still. A reader that keeps to the LSO shows a record only once its transaction has
ended (KIP-98), so this needs no deadline: it is judged as soon as it is looked up, which is from the row's deadline on,
since the log is too long to be asked about what is merely in flight. Not to be mistaken for an event that is committed
and lies beyond the cut, or behind somebody else's open transaction: those wait.
The row's item stays pairable. If the transaction commits, it is cleared; if it aborts, the break stays what it is: the
same row is not broken twice.
"""

from collections.abc import Iterator

from tallystick.anomalies.breaks.make_break import break_of
from tallystick.contract.contract import Contract
from tallystick.matching.evidence import UnmatchedItems
from tallystick.matching.match_case import MatchStatus, RecordLocation, UnmatchedItem
from tallystick.model.finding_names import BreakClass
from tallystick.model.findings import Break
from tallystick.model.open_item import ItemSide


def aborted_read_in_ledger(contract: Contract, unmatched: UnmatchedItems) -> Iterator[Break]:
    """Yield an A1 break per row."""
    for residue in unmatched.of(MatchStatus.ORIGIN_ABSENT, ItemSide.LEDGER):
        if was_aborted_only(residue):
            story = (
                f"The ledger has {residue.copy.item_id}, and its event was only ever written at "
                f"{', '.join(seen_at(residue, RecordLocation.ABORTED))}, in a producer transaction that was "
                f"aborted: its "
                "consumer read uncommitted data."
            )
            yield break_of(contract, residue, BreakClass.ABORTED_READ_IN_LEDGER, story)


def open_read_in_ledger(contract: Contract, unmatched: UnmatchedItems) -> Iterator[Break]:
    """Yield an A2 break per row."""
    for residue in unmatched.of(MatchStatus.ORIGIN_OPEN, ItemSide.LEDGER):
        story = (
            f"The ledger committed {residue.copy.item_id} while its event at "
            f"{', '.join(seen_at(residue, RecordLocation.OPEN))} was in a producer transaction that is "
            f"still open: its consumer "
            "read uncommitted data, and the event may yet be aborted."
        )
        yield break_of(contract, residue, BreakClass.OPEN_READ_IN_LEDGER, story)


def was_aborted_only(residue: UnmatchedItem) -> bool:
    """Return whether a row without event has records, each of them aborted."""
    places = {seen.place for seen in residue.lookup_hits if seen.side is ItemSide.TOPIC}
    return RecordLocation.ABORTED in places and RecordLocation.STRAY not in places


def seen_at(residue: UnmatchedItem, place: RecordLocation) -> list[str]:
    """Return the hits of a look-up in one location."""
    return [seen.item_id for seen in residue.lookup_hits if seen.place is place]
