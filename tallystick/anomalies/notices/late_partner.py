"""L2: items whose partner came after their deadline.

Evidence: an earlier run proved the item to be alone past its deadline, and a partner cleared it now. An item that was
merely open may have had its partner in time, behind a held side or between two cuts, so it is not counted; nor is one
whose row was read from an open transaction, since its event was there all along (open_read_in_ledger).

A partner that is a repair of ours was not late: the store knows its action, and the copy names it.
"""

from collections.abc import Iterator, Mapping

from tallystick.kafka_cluster.state import ClusterState
from tallystick.kafka_log.record import LogRecord
from tallystick.matching.match_case import Entry, MatchResult
from tallystick.model.cut import Cut
from tallystick.model.finding_names import BreakClass, Notice
from tallystick.model.findings import NoticeFound
from tallystick.model.open_item import ItemState
from tallystick.text.verdict_sentence import counted


def late_partner(
    cut: Cut, outcomes: tuple[MatchResult, ...], record_origins: Mapping[str, LogRecord], cluster: ClusterState
) -> Iterator[NoticeFound]:
    """Yield one notice per run. lateness: seconds from the deadline to the end of this window, at most."""
    actions = {(one.item.item_id, str(one.action_id)) for one in cluster.actions}
    late: dict[str, Entry] = {}
    repaired: set[str] = set()
    for topic, ledger in (pair for outcome in outcomes for pair in outcome.agreeing):
        record = record_origins.get(topic.item_id)
        is_ours = ledger.item_id in cluster.posted or (record and (ledger.item_id, record.action_id) in actions)
        for copy in filter(was_alone, (topic, ledger)):
            if is_ours:
                repaired.add(copy.item_id)
            else:
                late[copy.item_id] = copy
    details, said = {}, []
    if dues := [copy.carried.due_utc for copy in late.values() if copy.carried]:
        lateness = int((cut.marked_at_utc - min(dues)).total_seconds())
        details["late_seconds_max"] = lateness
        their = "its" if len(late) == 1 else "their"
        said.append(
            f"{counted(len(late), 'item')} found {their} partner after {their} deadline, the latest up to {lateness} s "
            "late."
        )
    if repaired:
        details["repaired"] = len(repaired)
        said.append(f"{counted(len(repaired), 'broken item')} found our own repair.")
    if said:
        yield NoticeFound(
            notice=Notice.LATE_PARTNER,
            sentence=" ".join(said),
            count=len(late) + len(repaired),
            details=details,
        )


def was_alone(copy: Entry) -> bool:
    """Return whether an earlier run proved that this copy has no partner."""
    item = copy.carried
    proven = item is not None and item.state in (ItemState.BROKEN, ItemState.WRITTEN_OFF)
    return item is not None and proven and item.found_as is not BreakClass.OPEN_READ_IN_LEDGER
