"""M3, P2, over windows: the cursor of a side has not moved for several windows though more has been written.

Evidence: where the last cuts ended, and their marks. Each of them doubted for itself that the side is held; that it is
the same hold, window after window, is what somebody must act on, so this pages. Not to be mistaken for an idle topic,
whose mark stands still too, or for one long transaction.
"""

from collections.abc import Iterator
from typing import Any

from tallystick.anomalies.doubts.held import describe_holder, describe_horizon_holder, holder_of
from tallystick.contract.contract import Contract
from tallystick.kafka_cluster.cursor_progress import LOOK_BACK_CUTS, WINDOWS_MIN, Trail, trails
from tallystick.kafka_cluster.state import ClusterState
from tallystick.matching.evidence import LookedUp
from tallystick.model.cut import Cut
from tallystick.model.finding_names import Notice
from tallystick.model.findings import NoticeFound
from tallystick.text.plain import format_time


def cursor_stopped(contract: Contract, cut: Cut, looked_up: LookedUp, cluster: ClusterState) -> Iterator[NoticeFound]:
    """Yield one notice per side."""
    for trail in held_trails(contract, cut, cluster):
        if trail.windows_stopped >= WINDOWS_MIN:
            yield NoticeFound(
                notice=Notice.CURSOR_STOPPED,
                sentence=f"{side_text(trail)}: the cursor has stood at {trail.now.cursor} for "
                f"{since_text(trail, trail.windows_stopped)}. {trail.now.waits:,} {unit_text(trail)} wait behind it: "
                f"{holder_text(cut, looked_up, cluster, trail)} holds it.",
                pages=True,
                details=trail_details(cut, looked_up, cluster, trail, trail.windows_stopped),
            )


def held_trails(contract: Contract, cut: Cut, cluster: ClusterState) -> Iterator[Trail]:
    """Return one trail per side that a transaction may hold. An overlap or a quiet time holds a ledger back by the
    contract's own rule, also while it is idle.
    """
    for trail in trails(cut, cluster):
        if trail.topic_partition is not None or not contract.ledger.waits_by_rule:
            yield trail


def side_text(trail: Trail) -> str:
    return str(trail.topic_partition) if trail.topic_partition else "ledger"


def unit_text(trail: Trail) -> str:
    return "offsets" if trail.topic_partition else "transaction ids"


def since_text(trail: Trail, windows: int) -> str:
    """Say how many windows it has lasted, and when the first of them began. Older ones were not looked at."""
    began = format_time(trail.positions[-windows].window_start_utc)
    return f"{windows} windows, since {began}{' or earlier' if windows >= LOOK_BACK_CUTS else ''}"


def holder_text(cut: Cut, looked_up: LookedUp, cluster: ClusterState, trail: Trail) -> str:
    """Say who holds the side now, as far as it is known."""
    if trail.topic_partition is None:
        return describe_horizon_holder(looked_up.horizon_holder)
    slices = {part.offsets.topic_partition: part for part in cut.topic_slices}
    held = slices[trail.topic_partition]
    if held.held_by_replication and not held.held_by_transaction:
        return "a log that too few replicas have"
    return describe_holder(holder_of(cluster, held), cluster)


def trail_details(cut: Cut, looked_up: LookedUp, cluster: ClusterState, trail: Trail, windows: int) -> dict[str, Any]:
    """Return the figures. Unit: offsets, and of the ledger database transaction ids. behind: per window,
    oldest first.
    """
    first = trail.positions[-windows]
    return {
        "topic": trail.topic_partition.topic if trail.topic_partition else None,
        "partition": trail.topic_partition.partition if trail.topic_partition else None,
        "cursor": trail.now.cursor,
        "mark": trail.now.mark,
        "behind": [one.waits for one in trail.positions[-windows - 1 :]],
        "windows": windows,
        "since_utc": format_time(first.window_start_utc),
        "since_cut": first.cut_n,
        "holder": holder_text(cut, looked_up, cluster, trail),
    }
