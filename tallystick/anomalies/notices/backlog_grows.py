"""M3, P2, over windows: the cursor of a side moves, but what waits behind it has grown in each of the last windows.

Evidence: where the last cuts ended, and their marks. Not to be mistaken for a busy topic, of which whole cuts are read;
for a backlog that shrinks or stays; or for a cursor that has stopped, which says so itself. Where it stops behind a
backlog that goes on growing, nothing here is over: what was told before stands beside the stopped cursor.
"""

from collections.abc import Iterator

from tallystick.anomalies.notices.cursor_stopped import (
    held_trails,
    holder_text,
    side_text,
    since_text,
    trail_details,
    unit_text,
)
from tallystick.contract.contract import Contract
from tallystick.kafka_cluster.cursor_progress import WINDOWS_MIN
from tallystick.kafka_cluster.state import ClusterState
from tallystick.matching.evidence import LookedUp
from tallystick.model.cut import Cut
from tallystick.model.finding_names import Notice
from tallystick.model.findings import NoticeFound


def backlog_grows(contract: Contract, cut: Cut, looked_up: LookedUp, cluster: ClusterState) -> Iterator[NoticeFound]:
    """Yield one notice per side."""
    for trail in held_trails(contract, cut, cluster):
        windows = trail.windows_growing
        if windows >= WINDOWS_MIN and trail.windows_stopped < WINDOWS_MIN:
            before = trail.positions[-windows - 1].waits
            yield NoticeFound(
                notice=Notice.BACKLOG_GROWS,
                sentence=f"{side_text(trail)}: what waits behind the cursor has grown in each of "
                f"{since_text(trail, windows)}: from {before:,} to {trail.now.waits:,} {unit_text(trail)}. "
                f"{holder_text(cut, looked_up, cluster, trail)} holds it.",
                pages=True,
                details=trail_details(cut, looked_up, cluster, trail, windows),
            )


def backlog_told_as_stopped(contract: Contract, cut: Cut, cluster: ClusterState) -> Iterator[str]:
    """Yield the sides whose backlog still grows behind a cursor that has stopped, of which only that is told."""
    for trail in held_trails(contract, cut, cluster):
        if min(trail.windows_growing, trail.windows_stopped) >= WINDOWS_MIN:
            yield side_text(trail)
