"""Trails of a cursor over windows, and what the two notices say of them."""

from tallystick.anomalies.notices.backlog_grows import backlog_grows
from tallystick.anomalies.notices.cursor_stopped import cursor_stopped
from tallystick.anomalies.registry import findings_of
from tallystick.kafka_cluster.open_transactions import OpenTransaction
from tallystick.kafka_cluster.state import ClusterState
from tallystick.matching.evidence import Evidence
from tallystick.model.finding_names import Notice
from tallystick.model.findings import NoticeFound
from tests.unit.builders import HOUR, NOON, PART, cut_of, evidence_of, positions_of, slice_of

HOLDER = OpenTransaction(
    topic_partition=PART,
    producer_id=4001,
    producer_epoch=3,
    kafka_offset_start=20,
    transactional_id="payout-relay-3",
    started_ms=int((NOON - 4 * HOUR).timestamp() * 1000),
    timeout_ms=60_000,
    coordinator_state="Ongoing",
    lists_partition=True,
    confirmed=True,
)


def held_trail(cursor: int, mark: int, *earlier: tuple[int, int], **around: object) -> Evidence:
    """One partition's trail: this cut, then those before it, oldest first, each as (cursor, mark)."""
    cluster = ClusterState(cursor_positions=positions_of(*earlier), open_transactions=(HOLDER,))
    return evidence_of(cut=cut_of(slice_of(min(10, cursor), cursor, mark=mark), n=30), cluster=cluster, **around)


def progress_notices(evidence: Evidence) -> list[Notice]:
    return [one.notice for rule in (cursor_stopped, backlog_grows) for one in findings_of(rule, evidence)]


def the_notice(evidence: Evidence) -> NoticeFound:
    (notice,) = (one for rule in (cursor_stopped, backlog_grows) for one in findings_of(rule, evidence))
    assert notice.pages
    return notice
