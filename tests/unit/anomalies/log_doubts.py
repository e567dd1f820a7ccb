"""What a log that is not as it was may be: the doubts that must be told apart, asked together."""

from tallystick.anomalies.doubts.log_compacted import log_compacted
from tallystick.anomalies.doubts.log_expired import log_expired
from tallystick.anomalies.doubts.log_rewritten import log_rewritten
from tallystick.anomalies.doubts.topic_recreated import log_truncated, topic_recreated
from tallystick.anomalies.doubts.torn_cut import torn_cut
from tallystick.anomalies.registry import findings_of
from tallystick.kafka_cluster.state import ClusterState
from tallystick.matching.evidence import Evidence
from tallystick.model.cut import Cut, PartitionSnapshot, without_expired
from tallystick.model.findings import DoubtFound
from tests.unit.builders import cut_of, evidence_of

LOG_RULES = (log_expired, log_compacted, log_rewritten, topic_recreated, log_truncated, torn_cut)


def seen_around(
    *before: PartitionSnapshot, after: tuple[PartitionSnapshot, ...] | None = None, cut: Cut | None = None
) -> Evidence:
    """The cut as it was judged: between these two looks at the topics."""
    stood = ClusterState(partitions_before=before, partitions_after=before if after is None else after)
    return evidence_of(cut=without_expired(cut or cut_of(), before), cluster=stood)


def log_doubts_of(evidence: Evidence) -> list[DoubtFound]:
    return [found for rule in LOG_RULES for found in findings_of(rule, evidence)]
