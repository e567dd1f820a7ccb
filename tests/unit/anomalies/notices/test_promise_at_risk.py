"""Settings at risk are one notice; on-call hears of it only where acknowledged records may be lost."""

from dataclasses import replace
from typing import Any

import pytest

from tallystick.anomalies.notices.promise_at_risk import promise_at_risk
from tallystick.anomalies.registry import findings_of
from tallystick.kafka_cluster.state import ClusterState
from tallystick.matching.evidence import Evidence
from tallystick.model.finding_names import Notice
from tests.unit.anomalies.planted import Pair, PlantedCases
from tests.unit.builders import T2L, evidence_of
from tests.unit.cluster_settings import BROKER, KEPT


def configured(**changes: Any) -> Evidence:
    """A topic whose settings keep the promise, but for these."""
    return evidence_of(cluster=ClusterState(topic_settings=(replace(KEPT, **changes),)))


class TestPlanted(PlantedCases):
    pairs = (
        Pair(
            name=Notice.PROMISE_AT_RISK,
            fires=configured(min_insync_replicas=1),
            twin=configured(min_insync_replicas=2),
        ),
    )


def settings_read(**changes: Any) -> ClusterState:
    return ClusterState(topic_settings=(replace(KEPT, **changes),), broker_settings=BROKER)


def test_one_notice_names_every_setting_at_risk() -> None:
    evidence = evidence_of(cluster=settings_read(replication_factor=1, in_sync_replicas=1, min_insync_replicas=1))
    (found,) = findings_of(promise_at_risk, evidence)
    assert found.count == 2
    assert found.sentence == (
        "2 settings do not keep what exactly-once needs: replication factor, min.insync.replicas."
    )
    assert [line["setting"] for line in found.details["lines"]] == ["replication factor", "min.insync.replicas"]


@pytest.mark.parametrize(
    ("changes", "pages"),
    [
        ({"replication_factor": 1, "in_sync_replicas": 1, "min_insync_replicas": 1}, False),
        ({"unclean_leader_election": True}, True),
        (
            {
                "replication_factor": 1,
                "in_sync_replicas": 1,
                "min_insync_replicas": 1,
                "unclean_leader_election": True,
            },
            False,
        ),
    ],
    ids=["a single broker", "an unclean election may cut records off", "no replica to elect"],
)
def test_on_call_is_told_only_where_acknowledged_records_may_be_lost(changes: dict[str, Any], pages: bool) -> None:
    (found,) = findings_of(promise_at_risk, evidence_of(cluster=settings_read(**changes)))
    assert found.pages is pages


def test_settings_that_nobody_could_read_are_no_finding() -> None:
    assert list(findings_of(promise_at_risk, evidence_of(direction=T2L))) == []
