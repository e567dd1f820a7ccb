"""Lineage names the sides as OpenLineage's naming rules do, and holds no account."""

from typing import Any

import pytest

from tallystick.connections.connections import Connections, KafkaSettings
from tallystick.contract.contract import Contract
from tallystick.documents.lineage_names import DatasetName, ledger_side, store_tables, topic_side
from tests.unit.builders import contract_of

POSTGRES = "postgresql://reader:s3cret@db:5433/billing?sslmode=require"


def sides(contract: Contract, *, servers: str = "broker:9093", address: str = POSTGRES) -> Any:
    connections = Connections(kafka=KafkaSettings({"bootstrap.servers": servers}), ledger_dsn=address)
    return topic_side(contract, connections), ledger_side(contract, connections)


def of_kind(**ledger: Any) -> Contract:
    contract = contract_of()
    return contract.model_copy(update={"ledger": contract.ledger.model_copy(update=ledger)})


@pytest.mark.parametrize(
    ("servers", "namespace"),
    [
        ("broker:9093", "kafka://broker:9093"),
        ("one:9092,two:9092", "kafka://one:9092"),
        ("SASL_SSL://broker:9093", "kafka://broker:9093"),
        ("broker", "kafka://broker:9092"),
        ("[::1]", "kafka://[::1]:9092"),
        ("[::1]:9093", "kafka://[::1]:9093"),
    ],
)
def test_a_topic_is_named_by_its_cluster(servers: str, namespace: str) -> None:
    contract = contract_of()
    topics, _ = sides(contract, servers=servers)
    assert topics == tuple(DatasetName(namespace, topic) for topic in contract.topics)


@pytest.mark.parametrize(
    ("ledger", "address", "name"),
    [
        ({}, POSTGRES, DatasetName("postgres://db:5433", "billing.billing.payout")),
        ({}, "postgresql://db/billing", DatasetName("postgres://db:5432", "billing.billing.payout")),
        ({"kind": "jdbc"}, POSTGRES, DatasetName("postgres://db:5433", "billing.billing.payout")),
        (
            {"kind": "jdbc"},
            '{"url": "mysql+pymysql://reader:s3cret@db/other", "jdbc_url": "jdbc:mysql://db/other", "driver": "d"}',
            DatasetName("mysql://db:3306", "billing.payout"),
        ),
        ({"kind": "jdbc"}, "mariadb://reader:s3cret@db/other", DatasetName("mysql://db:3306", "billing.payout")),
        (
            {"kind": "jdbc"},
            '{"url": "snowflake://reader:s3cret@account/db", "jdbc_url": "jdbc:x", "driver": "d"}',
            DatasetName("snowflake://account", "db.billing.payout"),
        ),
        ({"kind": "parquet"}, "/data/ledger/", DatasetName("file", "/data/ledger/billing/payout")),
        ({"kind": "parquet"}, "file:///data/ledger", DatasetName("file", "/data/ledger/billing/payout")),
        ({"kind": "parquet"}, "s3://bucket/ledger", DatasetName("s3://bucket", "ledger/billing/payout")),
        (
            {"kind": "iceberg"},
            '{"type": "rest", "warehouse": "s3://bucket/lake"}',
            DatasetName("s3://bucket", "lake/billing/payout"),
        ),
        ({"kind": "parquet"}, "s3://bucket", DatasetName("s3://bucket", "billing/payout")),
        (
            {"kind": "topic", "table": "", "topics": ("billing.requests",)},
            '{"bootstrap.servers": "elsewhere:9092"}',
            DatasetName("kafka://elsewhere:9092", "billing.requests"),
        ),
    ],
)
def test_a_ledger_is_named_by_what_it_is(ledger: dict[str, Any], address: str, name: DatasetName) -> None:
    _, named = sides(of_kind(**{"table": "billing.payout"} | ledger), address=address)
    assert named == (name,)


def test_a_database_in_a_file_has_no_name() -> None:
    _, named = sides(of_kind(kind="jdbc", table="main.payout"), address="sqlite:////data/ledger.db")
    assert named == ()


def test_the_store_is_named_by_the_tables_a_run_writes() -> None:
    assert store_tables("postgresql://ts:s3cret@db:5433/ts") == (
        DatasetName("postgres://db:5433", "ts.tallystick.verdict"),
        DatasetName("postgres://db:5433", "ts.tallystick.item_break"),
    )
