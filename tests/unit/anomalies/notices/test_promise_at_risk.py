"""Settings at risk are one notice; on-call hears of it only where acknowledged records may be lost."""

from dataclasses import replace
from typing import Any

import pytest

from tallystick.anomalies.notices.promise_at_risk import promise_at_risk, settings_unseen
from tallystick.anomalies.registry import findings_of
from tallystick.kafka_cluster.state import ClusterState, ServerProof
from tallystick.matching.evidence import Evidence
from tallystick.model.finding_names import Notice
from tests.unit.anomalies.planted import Pair, PlantedCases
from tests.unit.builders import T2L, TOPIC, evidence_of
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


@pytest.mark.parametrize(("timeout_ms", "is_at_risk"), [(BROKER.transaction_max_timeout_ms, False), (2**31 - 1, True)])
def test_what_the_brokers_allow_a_transaction_is_asked_too(timeout_ms: int, is_at_risk: bool) -> None:
    broker = replace(BROKER, transaction_max_timeout_ms=timeout_ms)
    found = findings_of(promise_at_risk, evidence_of(cluster=replace(settings_read(), broker_settings=broker)))
    settings = {line["setting"] for one in found for line in one.details["lines"]}
    assert ("transaction.max.timeout.ms" in settings) is is_at_risk
    assert bool(settings) is is_at_risk


@pytest.mark.parametrize(("proven", "at_risk"), [(True, 0), (False, 1)])
def test_a_server_that_does_not_prove_who_it_is_is_at_risk(proven: bool, at_risk: int) -> None:
    tls = ServerProof(connection="kafka_billing", setting="security.protocol", value="SSL", needs="SSL", proven=proven)
    found = findings_of(promise_at_risk, evidence_of(cluster=replace(settings_read(), server_proofs=(tls,))))
    assert [[line["scope"] for line in one.details["lines"]] for one in found] == [["kafka_billing"]] * at_risk


def test_a_topic_whose_settings_were_not_read_is_unseen_and_one_that_was_read_is_not() -> None:
    assert list(findings_of(settings_unseen, evidence_of())) == [TOPIC]
    assert list(findings_of(settings_unseen, configured(unclean_leader_election=True))) == []
