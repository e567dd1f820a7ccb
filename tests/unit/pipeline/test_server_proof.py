"""Each connection says in the config check whether its server is proven; in clear text it is at risk, but locally."""

import json
from pathlib import Path
from typing import Any

import pytest

from tallystick.anomalies.notices.promise_at_risk import promise_at_risk
from tallystick.anomalies.registry import findings_of
from tallystick.connections.connections import Connections, KafkaSettings
from tallystick.kafka_cluster.config_check import CheckResult, config_check
from tallystick.kafka_cluster.state import ClusterState, ServerProof
from tallystick.pipeline.server_proof import proofs_from_environment, proofs_of_run
from tests.unit.builders import L2T, contract_of, evidence_of

CONTRACT = contract_of(L2T)
TLS = {
    "bootstrap.servers": "broker:9093",
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "PLAIN",
    "sasl.username": "reader",
    "sasl.password": "hunter2",
}
PROVEN = "postgresql://r:hunter2@db/books?sslmode=verify-full"


def standing_of(found: tuple[ServerProof, ...]) -> dict[str, tuple[str, CheckResult]]:
    lines = config_check(CONTRACT, topics=(), broker=None, census=(), server_proofs=found)
    assert "hunter2" not in str(lines)
    of = {proof.connection for proof in found}
    return {line.scope: (line.value, line.standing) for line in lines if line.scope in of}


def of_run(kafka: dict[str, str], ledger: str, **side: Any) -> dict[str, tuple[str, CheckResult]]:
    stated = {"connection": "ledger_billing", "table": "billing.payout"} | side
    contract = contract_of(L2T, ledger=stated)
    return standing_of(proofs_of_run(contract, Connections(kafka=KafkaSettings(kafka), ledger_dsn=ledger)))


@pytest.mark.parametrize(
    ("settings", "value", "standing"),
    [
        (TLS, "SASL_SSL", CheckResult.OK),
        (TLS | {"security.protocol": "ssl"}, "SSL", CheckResult.OK),
        (
            TLS | {"ssl.endpoint.identification.algorithm": "none"},
            "SASL_SSL for a host of any name",
            CheckResult.AT_RISK,
        ),
        (TLS | {"security.protocol": "SASL_PLAINTEXT"}, "SASL_PLAINTEXT", CheckResult.AT_RISK),
        ({"bootstrap.servers": "broker:9092"}, "PLAINTEXT", CheckResult.AT_RISK),
        ({"bootstrap.servers": "127.0.0.1:9092,broker:9092"}, "PLAINTEXT", CheckResult.AT_RISK),
        ({"bootstrap.servers": "PLAINTEXT://127.0.0.1:9092,[::1]:9092"}, "PLAINTEXT, on this machine", CheckResult.OK),
    ],
)
def test_kafka_without_tls_is_at_risk(settings: dict[str, str], value: str, standing: CheckResult) -> None:
    assert of_run(settings, PROVEN)["kafka_billing"] == (value, standing)


@pytest.mark.parametrize(
    ("address", "value", "standing"),
    [
        (PROVEN, "verify-full", CheckResult.OK),
        ("postgresql://db/books?sslmode=verify-ca", "verify-ca", CheckResult.OK),
        ("postgresql://db/books?sslmode=require&sslrootcert=/ca.pem", "require", CheckResult.OK),
        ("postgresql://db/books?sslmode=require", "require", CheckResult.AT_RISK),
        ("postgresql://db/books", "prefer", CheckResult.AT_RISK),
        ("postgresql://127.0.0.1,db/books", "prefer", CheckResult.AT_RISK),
        ("postgresql://127.0.0.1/books", "prefer, on this machine", CheckResult.OK),
        ("postgresql:///books?host=/run/postgresql", "prefer, on this machine", CheckResult.OK),
    ],
)
def test_a_postgresql_that_is_not_proven_is_at_risk(
    monkeypatch: pytest.MonkeyPatch, address: str, value: str, standing: CheckResult
) -> None:
    monkeypatch.setenv("HOME", "/nowhere")
    assert of_run(TLS, address)["ledger_billing"] == (value, standing)
    if "host=/" not in address:
        by_column = {"kind": "jdbc", "order_by": "n", "overlap": 0}
        assert of_run(TLS, address, **by_column)["ledger_billing"] == (value, standing)


def test_the_primary_of_a_standby_has_a_line_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/nowhere")
    section = {"connection": "ledger_billing", "table": "billing.payout", "primary_connection": "ledger_primary"}
    contract, clear = contract_of(L2T, ledger=section), "postgresql://db/books"
    expected = {"ledger_billing": CheckResult.OK, "ledger_primary": CheckResult.AT_RISK}
    connections = Connections(kafka=KafkaSettings(TLS), ledger_dsn=PROVEN, primary_dsn=clear)
    of_run = standing_of(proofs_of_run(contract, connections))
    assert {name: of_run[name][1] for name in expected} == expected
    there = {"TALLYSTICK_CONN_LEDGER_BILLING": PROVEN, "TALLYSTICK_CONN_LEDGER_PRIMARY": clear}
    by_environment = standing_of(proofs_from_environment(contract, there))
    assert {name: by_environment[name][1] for name in expected} == expected


@pytest.mark.parametrize(
    ("address", "standing"),
    [
        ("host=localhost hostaddr=203.0.113.5 dbname=books", CheckResult.AT_RISK),
        ("host=db hostaddr=127.0.0.1 dbname=books", CheckResult.OK),
        ("service=books", CheckResult.AT_RISK),
    ],
)
def test_a_postgresql_is_on_this_machine_only_where_libpq_goes_to_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, address: str, standing: CheckResult
) -> None:
    """A file of services names the host, and is read when the connection is made."""
    services = tmp_path / "services"
    services.write_text("[books]\nhost=db\n")
    monkeypatch.setenv("HOME", "/nowhere")
    monkeypatch.setenv("PGSERVICEFILE", str(services))
    assert of_run(TLS, address)["ledger_billing"][1] is standing


@pytest.mark.parametrize(
    ("mode", "value", "standing"),
    [
        ("sslmode=verify-full", "verify-full", CheckResult.OK),
        ("ssl=true", "verify-full", CheckResult.OK),
        ("sslmode=disable", "disable", CheckResult.AT_RISK),
        ("ssl=true&sslmode=require", "require", CheckResult.AT_RISK),
        ("sslfactory=x", "not said by jdbc_url", CheckResult.AT_RISK),
    ],
)
def test_a_server_is_proven_only_where_spark_proves_it_too(mode: str, value: str, standing: CheckResult) -> None:
    both = {"url": PROVEN, "jdbc_url": f"jdbc:postgresql://db/books?user=r&{mode}"}
    by_column = {"kind": "jdbc", "order_by": "n", "overlap": 0}
    assert of_run(TLS, json.dumps(both), **by_column)["ledger_billing"] == (value, standing)


def test_of_another_database_nobody_knows_and_a_file_is_on_no_network() -> None:
    by_column = {"kind": "jdbc", "order_by": "n", "overlap": 0}
    other = '{"url": "mysql+pymysql://r@db/books", "jdbc_url": "jdbc:mysql://db/books", "driver": "d"}'
    assert of_run(TLS, other, **by_column)["ledger_billing"] == ("not read", CheckResult.UNKNOWN)
    assert "ledger_billing" not in of_run(TLS, "sqlite:////ledger.db", **by_column)


SINKS = [
    {"kind": "webhook", "connection": "pager"},
    {"kind": "pagerduty", "connection": "duty"},
    {"kind": "email", "connection": "mail"},
    {"kind": "apprise", "connection": "any"},
    {"kind": "file", "path": "alerts.jsonl"},
]
ENVIRONMENT = {
    "TALLYSTICK_CONN_KAFKA_BILLING": json.dumps(TLS),
    "TALLYSTICK_CONN_LEDGER_BILLING": PROVEN,
    "TALLYSTICK_CONN_PAGER": "http://pager/hunter2",
    "TALLYSTICK_CONN_DUTY": '{"secret": "hunter2"}',
    "TALLYSTICK_CONN_MAIL": '{"address": "smtp://mail", "encryption": "none"}',
    "TALLYSTICK_CONN_ANY": "json://hunter2",
}


def test_every_connection_that_the_contract_names_has_its_line() -> None:
    contract = contract_of(L2T, alert={"sinks": SINKS})
    assert standing_of(proofs_from_environment(contract, ENVIRONMENT)) == {
        "kafka_billing": ("SASL_SSL", CheckResult.OK),
        "ledger_billing": ("verify-full", CheckResult.OK),
        "pager": ("http", CheckResult.AT_RISK),
        "mail": ("none", CheckResult.AT_RISK),
    }
    better = {"TALLYSTICK_CONN_PAGER": "https://pager/x", "TALLYSTICK_CONN_MAIL": '{"address": "smtp://mail"}'}
    found = standing_of(proofs_from_environment(contract, ENVIRONMENT | better))
    assert {standing for _, standing in found.values()} == {CheckResult.OK}


def test_a_connection_that_is_not_to_be_seen_is_unknown_and_never_ok() -> None:
    contract = contract_of(L2T, alert={"sinks": SINKS[:1]})
    found = standing_of(proofs_from_environment(contract, {}))
    assert found == dict.fromkeys(["kafka_billing", "ledger_billing", "pager"], ("not read", CheckResult.UNKNOWN))


def test_an_account_of_airflow_in_clear_text_is_at_risk() -> None:
    trigger = {"connection": "their_airflow", "dags": {"missing_in_topic_never_produced": "repost"}}
    contract = contract_of(compensation={"max_amount_minor": {"EUR": 1}, "trigger": trigger})
    for scheme, standing in (("http", CheckResult.AT_RISK), ("https", CheckResult.OK)):
        account = {"address": f"{scheme}://airflow.example.org", "login": "l", "secret": "hunter2"}
        given = ENVIRONMENT | {"TALLYSTICK_CONN_THEIR_AIRFLOW": json.dumps(account)}
        assert standing_of(proofs_from_environment(contract, given))["their_airflow"] == (scheme, standing)


def test_a_run_over_clear_text_is_told_of_and_pages_nobody() -> None:
    plain = ServerProof(connection="kafka_billing", setting="security.protocol", value="PLAINTEXT", needs="SSL")
    (found,) = findings_of(promise_at_risk, evidence_of(cluster=ClusterState(server_proofs=(plain,))))
    assert found.sentence == "1 setting does not keep what exactly-once needs: security.protocol."
    assert not found.pages
    here = ServerProof(connection="k", setting="security.protocol", value="PLAINTEXT", needs="SSL", is_local=True)
    assert list(findings_of(promise_at_risk, evidence_of(cluster=ClusterState(server_proofs=(here,))))) == []
