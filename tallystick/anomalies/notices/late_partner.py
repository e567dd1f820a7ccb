"""L2: items whose partner came after their deadline.

Evidence: an earlier run proved the item to be alone past its deadline, and a partner cleared it now. An item that was
merely open may have had its partner in time, behind a held side or between two cuts, so it is not counted; nor is one
whose row was read from an open transaction, since its event was there all along (open_read_in_ledger).
"""

from collections.abc import Iterator

from tallystick.matching.match_case import Entry, MatchResult
from tallystick.model.cut import Cut
from tallystick.model.finding_names import BreakClass, Notice
from tallystick.model.findings import NoticeFound
from tallystick.model.open_item import ItemState


def late_partner(cut: Cut, outcomes: tuple[MatchResult, ...]) -> Iterator[NoticeFound]:
    """Yield one notice per run. lateness: seconds from the deadline to the end of this window, at most."""
    agreeing = (copy for outcome in outcomes for pair in outcome.agreeing for copy in pair)
    late = {copy.item_id: copy for copy in agreeing if was_alone(copy)}.values()
    if late:
        first_due = min(copy.carried.due_utc for copy in late if copy.carried)
        lateness = int((cut.marked_at_utc - first_due).total_seconds())
        yield NoticeFound(
            notice=Notice.LATE_PARTNER,
            sentence=f"{len(late)} items found their partner after their deadline, the latest up to {lateness} s late.",
            count=len(late),
            details={"late_seconds_max": lateness},
        )


def was_alone(copy: Entry) -> bool:
    """Return whether an earlier run proved that this copy has no partner."""
    item = copy.carried
    proven = item is not None and item.state in (ItemState.BROKEN, ItemState.WRITTEN_OFF)
    return item is not None and proven and item.found_as is not BreakClass.OPEN_READ_IN_LEDGER
