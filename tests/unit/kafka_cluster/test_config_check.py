"""The config check: each setting is ok, at risk, or unknown, and unknown is never ok."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tallystick.contract.contract import Contract
from tallystick.kafka_cluster.config_check import (
    CheckResult,
    ConfigLine,
    config_check,
    longest_interval,
    reconciliation_horizon,
)
from tallystick.kafka_cluster.state import BrokerSettings, TopicSettings
from tallystick.model.census_values import PartitionCensus
from tests.unit.builders import HOUR, L2T, NOON, T2L, TOPIC, census_of, contract_of, slice_of
from tests.unit.cluster_settings import BROKER, KEPT

CENSUS = replace(census_of(slice_of(10, 20)), plain=0, committed=9, without_producer_id=0)
CONTRACT = contract_of(L2T)


def lines(
    *,
    contract: Contract = CONTRACT,
    topics: tuple[TopicSettings, ...] = (KEPT,),
    broker: BrokerSettings | None = BROKER,
    census: tuple[PartitionCensus, ...] = (CENSUS,),
) -> dict[str, ConfigLine]:
    return {line.setting: line for line in config_check(contract, topics=topics, broker=broker, census=census)}


def standings(**given: Any) -> dict[str, CheckResult]:
    """The settings that are not ok."""
    return {name: line.standing for name, line in lines(**given).items() if line.standing is not CheckResult.OK}


def test_a_cluster_that_keeps_the_promise_is_ok_in_every_line() -> None:
    assert standings() == {}


@pytest.mark.parametrize(
    ("setting", "changes"),
    [
        ("replication factor", {"replication_factor": 2, "in_sync_replicas": 2, "min_insync_replicas": 1}),
        ("min.insync.replicas", {"min_insync_replicas": 1}),
        ("min.insync.replicas", {"min_insync_replicas": 3}),
        ("in-sync replicas", {"in_sync_replicas": 1}),
        ("unclean.leader.election.enable", {"unclean_leader_election": True}),
        ("cleanup.policy", {"cleanup_policy": ("compact",)}),
        ("cleanup.policy", {"cleanup_policy": ("compact", "delete")}),
        ("retention.ms", {"retention_ms": 3_600_000}),
    ],
)
def test_a_topic_setting_that_does_not_keep_it_is_at_risk(setting: str, changes: dict[str, Any]) -> None:
    found = lines(topics=(replace(KEPT, **changes),))[setting]
    assert found.standing is CheckResult.AT_RISK
    assert found.do


@pytest.mark.parametrize(
    ("setting", "changes"),
    [
        ("replication factor", {"replication_factor": 5}),
        ("in-sync replicas", {"in_sync_replicas": 2}),
        ("retention.ms", {"retention_ms": -1}),
        ("retention.ms", {"retention_ms": 3_600_000 + 600_000 + 60_000}),
    ],
)
def test_a_setting_just_at_what_is_needed_is_ok(setting: str, changes: dict[str, Any]) -> None:
    assert lines(topics=(replace(KEPT, **changes),))[setting].standing is CheckResult.OK


def test_a_limit_by_size_is_unknown_since_nobody_knows_the_traffic() -> None:
    assert standings(topics=(replace(KEPT, retention_bytes=1_000_000_000),)) == {"retention.bytes": CheckResult.UNKNOWN}


@pytest.mark.parametrize(
    ("setting", "changes"),
    [
        ("transaction.max.timeout.ms", {"transaction_max_timeout_ms": 600_001}),
        ("transactional.id.expiration.ms", {"transactional_id_expiration_ms": 3_599_999}),
        ("producer.id.expiration.ms", {"producer_id_expiration_ms": 599_999}),
    ],
)
def test_a_broker_setting_that_does_not_keep_it_is_at_risk(setting: str, changes: dict[str, int]) -> None:
    assert standings(broker=replace(BROKER, **changes)) == {setting: CheckResult.AT_RISK}


def test_a_repair_that_waits_for_its_approval_is_the_longest_pause() -> None:
    rules = {"classes": ["missing_in_topic_never_produced"], "max_amount_minor": {"EUR": 1}}
    waits = contract_of(compensation=rules | {"approval_timeout_seconds": 604_801})
    assert standings(contract=waits) == {"transactional.id.expiration.ms": CheckResult.AT_RISK}


def test_what_nobody_could_read_is_unknown_and_never_ok() -> None:
    unread = lines(topics=(), broker=None, census=())
    assert {line.standing for line in unread.values()} == {CheckResult.UNKNOWN}
    assert {line.value for line in unread.values()} == {"not read"}
    assert set(unread) == set(lines())


@pytest.mark.parametrize(
    ("declared", "counts", "at_risk"),
    [
        ("any", {"plain": 9, "without_producer_id": 9}, set()),
        ("idempotent", {"plain": 9, "without_producer_id": 0}, set()),
        ("idempotent", {"plain": 9, "without_producer_id": 1}, {"records without a producer id"}),
        ("transactional", {"plain": 0, "without_producer_id": 0}, set()),
        ("transactional", {"plain": 1, "without_producer_id": 0}, {"records outside a transaction"}),
    ],
)
def test_records_are_held_against_what_the_contract_declares_of_its_producers(
    declared: str, counts: dict[str, int], at_risk: set[str]
) -> None:
    contract = contract_of(kafka={"connection": "kafka_billing", "producers": declared})
    assert set(standings(contract=contract, census=(replace(CENSUS, **counts),))) == at_risk


@pytest.mark.parametrize(
    ("fencings", "markers", "churns"),
    [(2, 4, False), (3, 29, True), (3, 30, False), (40, 100, True)],
)
def test_epochs_that_churn_are_told_from_a_crash_and_its_restart(fencings: int, markers: int, churns: bool) -> None:
    census = replace(CENSUS, fencings=fencings, abort_markers=fencings, commit_markers=markers - fencings)
    assert bool(standings(census=(census,))) is churns


def test_every_topic_of_the_contract_has_its_lines() -> None:
    both = contract_of(legs={"payout": TOPIC, "fee": "billing.fees"})
    found = config_check(both, topics=(KEPT,), broker=BROKER, census=(CENSUS,))
    assert {line.scope for line in found} == {TOPIC, "billing.fees", "cluster"}
    assert {line.standing for line in found if line.scope == "billing.fees"} == {CheckResult.UNKNOWN}


@pytest.mark.parametrize(
    ("schedule", "longest"),
    [
        ("0 * * * *", HOUR),
        ("0 9,11 * * *", 22 * HOUR),
        ("* * * * 1-5", 48 * HOUR + timedelta(minutes=1)),
        ("0 9 * * 1-5", 72 * HOUR),
        ("0 0 1 * *", timedelta(days=31)),
    ],
)
def test_the_longest_pause_of_a_schedule_counts_weekends_and_months(schedule: str, longest: timedelta) -> None:
    assert longest_interval(schedule, NOON) == longest


def test_the_horizon_is_interval_settling_and_grace() -> None:
    assert reconciliation_horizon(CONTRACT) == timedelta(hours=1, minutes=10, seconds=60)


@pytest.mark.parametrize(
    ("declared", "standing"),
    [
        ("read_committed", CheckResult.OK),
        ("read_uncommitted", CheckResult.AT_RISK),
        (None, CheckResult.UNKNOWN),
    ],
)
def test_the_ledgers_consumer_is_what_its_owner_declares(declared: str | None, standing: CheckResult) -> None:
    ledger = {"connection": "ledger_billing", "table": "billing.payout", "consumer_isolation": declared}
    assert lines(contract=contract_of(T2L, ledger=ledger))["ledger.consumer_isolation"].standing is standing
    assert "ledger.consumer_isolation" not in lines()


def test_a_long_horizon_is_said_in_days_and_the_rest() -> None:
    leap_day = lines(contract=contract_of(L2T, schedule="0 0 29 2 *"))["retention.ms"]
    assert leap_day.needs == "1,461 days 11 min or more: interval, settling and grace"
    assert lines()["retention.ms"].needs == "71 min or more: interval, settling and grace"
