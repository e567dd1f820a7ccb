"""Airflow's connections become what tallystick takes, or are refused with what was expected.

One file, since each connection is told from the others by the same few fields.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import BaseHook

from lab.servers.airflow_connections import airflow_variable
from lab.servers.airflow_connections import read_connections as read_own
from lab.servers.airflow_environment import LAB_CONNECTIONS
from tallystick.alerting.sinks.connection import SinkConnection
from tallystick.alerting.sinks.file import FileSink
from tallystick.alerting.sinks.registry import UnusableSink
from tallystick.connections.connections import HttpAccount, connections_from_environment, environment_variable
from tallystick.connections.schema_registry import registry_of
from tallystick.contract.contract import Contract, load_contract
from tallystick.host.artifacts import ArtifactsRefused, ObjectPlace
from tallystick.ledger.input_topics import input_kafka
from tallystick.ledger.jdbc_connection import jdbc_settings
from tallystick_airflow.alert_sinks import read_sinks
from tallystick_airflow.connections import (
    SPARK_CONNECTION,
    ConnectionRefused,
    check_spark_connection,
    get_connection,
    http_address,
    kafka_settings,
    postgres_dsn,
    read_acting_connections,
    read_artifacts_place,
    read_connections,
    read_spark_environment,
    sink_connection,
)

PAYMENTS = load_contract(Path(__file__).parents[2] / "dags" / "contracts" / "billing_payments.yaml")


def test_a_kafka_connection_works_without_kafkas_provider() -> None:
    assert BaseHook.get_connection("kafka_billing").conn_type == "kafka"
    assert read_connections(PAYMENTS).kafka.bootstrap_servers == "broker:9093"


def test_a_password_is_quoted_in_the_dsn() -> None:
    assert read_connections(PAYMENTS).ledger_dsn == "postgresql://reader:led%2Fger%20secret@db:5432/ledger"


def test_the_spark_app_gets_every_address_it_reads() -> None:
    from tallystick.connections.connections import connections_from_environment, store_dsn

    environment = read_spark_environment(PAYMENTS)
    read_back = connections_from_environment(
        kafka_id="kafka_billing", ledger_id="ledger_billing", environment=environment
    )
    assert read_back == read_connections(PAYMENTS)
    assert store_dsn(environment) == "postgresql://ts:store-secret@db:5433/ts"


def test_the_spark_app_gets_the_primarys_address_where_rows_are_read_on_a_standby(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from tallystick.connections.connections import connections_from_environment

    monkeypatch.setenv("AIRFLOW_CONN_LEDGER_PRIMARY", "postgres://reader:secret@first:5432/ledger")
    section = PAYMENTS.ledger.model_copy(update={"primary_connection": "ledger_primary"})
    contract = PAYMENTS.model_copy(update={"ledger": section})
    read = read_connections(contract)
    assert read.primary_dsn == "postgresql://reader:secret@first:5432/ledger"
    read_back = connections_from_environment(
        kafka_id="kafka_billing",
        ledger_id="ledger_billing",
        primary_id="ledger_primary",
        environment=read_spark_environment(contract),
    )
    assert read_back == read
    assert read_connections(PAYMENTS).primary_dsn is None


BY_COLUMN = {"kind": "jdbc", "order_by": "entry_id", "overlap": 0}
JDBC = PAYMENTS.model_copy(update={"ledger": PAYMENTS.ledger.model_copy(update=BY_COLUMN)})


def of_avro() -> Contract:
    document = PAYMENTS.model_dump(mode="json", exclude_defaults=True) | {"event": {"format": "avro"}}
    return Contract.model_validate(
        document | {"kafka": document["kafka"] | {"schema_registry": "schemas"}, "compensation": None}
    )


def test_the_spark_app_gets_the_schema_registry_and_this_task_knows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    extra = {"ssl.ca.location": "/ca.pem"}
    connection = {"conn_type": "http", "schema": "https", "host": "registry", "login": "reader", "password": "p:w"}
    monkeypatch.setenv("AIRFLOW_CONN_SCHEMAS", json.dumps(connection | {"extra": extra}))
    environment = read_spark_environment(of_avro())
    assert json.loads(environment[environment_variable("schemas")]) == {
        "url": "https://registry/",
        "basic.auth.user.info": "reader:p:w",
        **extra,
    }
    assert registry_of("schemas").host == "registry"


def test_a_schema_registry_of_another_kind_is_refused_without_its_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SCHEMAS", json.dumps({"conn_type": "postgres", "host": "registry"}))
    with pytest.raises(ConnectionRefused, match="connection schemas: got type 'postgres'"):
        read_connections(of_avro())
    insecure = {"conn_type": "http", "host": "registry", "login": "reader", "password": "hidden"}
    monkeypatch.setenv("AIRFLOW_CONN_SCHEMAS", json.dumps(insecure))
    with pytest.raises(ConnectionRefused, match="expected https") as refused:
        read_connections(of_avro())
    assert "hidden" not in str(refused.value)


def test_a_ledger_behind_jdbc_is_given_by_its_extra_or_is_a_postgres_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert read_connections(JDBC).ledger_dsn == read_connections(PAYMENTS).ledger_dsn
    extra = {
        "url": "mysql+pymysql://db/ledger",
        "jdbc_url": "jdbc:mysql://db/ledger?tinyInt1isBit=false&sessionVariables=time_zone='+00:00'",
        "driver": "com.mysql.jdbc.Driver",
    }
    given = {"conn_type": "mysql", "login": "reader", "password": "hunter/2", "extra": extra}
    monkeypatch.setenv("AIRFLOW_CONN_LEDGER_BILLING", json.dumps(given))
    settings = jdbc_settings(read_connections(JDBC).ledger_dsn)
    assert (settings.url.drivername, settings.jdbc_url) == ("mysql+pymysql", extra["jdbc_url"])
    assert (settings.for_spark["user"], settings.for_spark["password"]) == ("reader", "hunter/2")


def test_a_ledger_of_files_is_given_by_its_folder_and_refused_without(monkeypatch: pytest.MonkeyPatch) -> None:
    files = PAYMENTS.ledger.model_copy(update={"kind": "parquet", "quiet_seconds": 60})
    contract = PAYMENTS.model_copy(update={"ledger": files})
    monkeypatch.setenv("AIRFLOW_CONN_LEDGER_BILLING", '{"conn_type": "aws", "extra": {"url": "s3://bucket/ledger"}}')
    assert read_connections(contract).ledger_dsn == "s3://bucket/ledger"
    monkeypatch.setenv("AIRFLOW_CONN_LEDGER_BILLING", '{"conn_type": "aws"}')
    with pytest.raises(ConnectionRefused, match="connection ledger_billing: expected a folder in its extra"):
        read_connections(contract)


def test_a_ledger_behind_jdbc_without_an_address_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_LEDGER_BILLING", '{"conn_type": "mysql", "host": "db", "extra": {"url": "mysql"}}')
    with pytest.raises(ConnectionRefused, match="connection ledger_billing: expected an SQLAlchemy URL without user"):
        read_connections(JDBC)


def test_the_spark_app_gets_the_address_of_input_topics(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"bootstrap.servers": "inputs:9092"}
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_IN", json.dumps({"conn_type": "kafka", "extra": settings}))
    inputs = {"kind": "topic", "connection": "kafka_in", "topics": ["billing.requests"]}
    stated = PAYMENTS.model_dump(mode="json") | {"direction": "topic_to_topic", "ledger": inputs}
    contract = Contract.model_validate(stated)
    read_back = connections_from_environment(
        kafka_id="kafka_billing", ledger_id="kafka_in", environment=read_spark_environment(contract)
    )
    assert read_back == read_connections(contract)
    assert input_kafka(contract, read_back).bootstrap_servers == "inputs:9092"


@pytest.mark.parametrize(
    "connection",
    [
        '{"conn_type": "http", "host": "pager", "port": 8443, "schema": "https", "extra": {"endpoint": "/v1/alerts"}}',
        '{"conn_type": "http", "host": "https://pager", "port": 8443, "extra": {"endpoint": "v1/alerts"}}',
        "https://pager:8443/v1/alerts",  # Airflow keeps the path in the schema
    ],
)
def test_a_webhook_address_is_read_however_it_was_written(monkeypatch: pytest.MonkeyPatch, connection: str) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_ALERT_WEBHOOK", connection)
    assert http_address(get_connection("alert_webhook")) == "https://pager:8443/v1/alerts"


@pytest.mark.parametrize(
    ("kind", "connection", "expected"),
    [
        ("webhook", "https://:whsec_abc@pager/v1", SinkConnection(address="https://pager/v1", secret="whsec_abc")),
        ("pagerduty", {"conn_type": "http", "password": "key"}, SinkConnection(secret="key")),
        (
            "alertmanager",
            {"conn_type": "http", "schema": "https", "host": "am", "login": "l", "password": "p"},
            SinkConnection(address="https://am/", login="l", secret="p"),
        ),
        (
            "email",
            {"conn_type": "smtp", "host": "mail", "port": 25, "extra": {"from": "a@b", "to": "c@d"}},
            SinkConnection(address="smtp://mail:25", settings={"from": "a@b", "to": "c@d"}),
        ),
        ("apprise", {"conn_type": "generic", "password": "json://h"}, SinkConnection(secret="json://h")),
    ],
)
def test_a_sinks_connection_is_read(
    monkeypatch: pytest.MonkeyPatch, kind: str, connection: object, expected: SinkConnection
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_PAGER", connection if isinstance(connection, str) else json.dumps(connection))
    assert sink_connection(get_connection("pager"), kind) == expected


@pytest.mark.parametrize(("kind", "wanted"), [("webhook", "http"), ("email", "smtp"), ("apprise", "generic")])
def test_a_sinks_connection_of_another_type_is_refused(monkeypatch: pytest.MonkeyPatch, kind: str, wanted: str) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_PAGER", json.dumps({"conn_type": "postgres", "host": "s3cret"}))
    with pytest.raises(ConnectionRefused, match=f"connection pager: got type 'postgres'; expected '{wanted}'$"):
        sink_connection(get_connection("pager"), kind)


def test_a_sink_whose_connection_is_missing_leaves_the_others_usable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AIRFLOW_CONN_ALERT_WEBHOOK", raising=False)
    webhook, file = read_sinks(PAYMENTS)
    assert isinstance(webhook, UnusableSink)
    assert "connection alert_webhook: not defined in Airflow" in webhook.fault
    assert isinstance(file, FileSink)


@pytest.mark.parametrize("host", ["local[2]", "spark://master"])
def test_a_master_that_starts_its_driver_here_is_accepted(monkeypatch: pytest.MonkeyPatch, host: str) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps({"conn_type": "spark", "host": host}))
    check_spark_connection(SPARK_CONNECTION)


@pytest.mark.parametrize(
    ("connection", "message"),
    [
        ({"conn_type": "http", "host": "local[2]"}, "got type 'http'"),
        ({"conn_type": "spark"}, "host None"),
        ({"conn_type": "spark", "host": "k8s://https://k"}, "pip install apache-airflow-providers-cncf-kubernetes"),
        ({"conn_type": "spark", "host": "yarn", "extra": {"deploy-mode": "cluster"}}, "got master 'yarn', deploy mode"),
        ({"conn_type": "spark", "host": "spark://m", "extra": {"deploy-mode": "cluster"}}, "deploy mode 'cluster'"),
    ],
)
def test_a_master_that_would_show_secrets_is_refused(
    monkeypatch: pytest.MonkeyPatch, connection: dict[str, object], message: str
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps(connection))
    with pytest.raises(ConnectionRefused) as refusal:
        check_spark_connection(SPARK_CONNECTION)
    assert message in str(refusal.value)


def test_a_missing_spark_connection_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AIRFLOW_CONN_SPARK_DEFAULT")
    with pytest.raises(ConnectionRefused, match=r"connection spark_default: not defined .* AIRFLOW_CONN_SPARK_DEFAULT"):
        check_spark_connection(SPARK_CONNECTION)


def test_a_connection_of_another_type_is_refused() -> None:
    with pytest.raises(ConnectionRefused, match="got type 'kafka'; expected 'postgres'"):
        postgres_dsn(get_connection("kafka_billing"))
    with pytest.raises(ConnectionRefused, match="got type 'postgres'; expected 'kafka'"):
        kafka_settings(get_connection("ledger_billing"))


def test_an_unknown_kafka_setting_is_refused_without_its_value(monkeypatch: pytest.MonkeyPatch) -> None:
    extra = {"bootstrap.servers": "b:1", "sasl.pasword": "hunter2"}
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_BILLING", json.dumps({"conn_type": "kafka", "extra": extra}))
    with pytest.raises(ConnectionRefused, match=r"connection kafka_billing: .*sasl\.pasword") as refusal:
        read_connections(PAYMENTS)
    assert "hunter2" not in str(refusal.value)


def test_a_connection_of_airflows_kafka_provider_is_taken_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    shared = {
        "bootstrap.servers": "b:1",
        "group.id": "shop",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "session.timeout.ms": 6000,
        "socket.keepalive.enable": True,
    }
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_BILLING", json.dumps({"conn_type": "kafka", "extra": shared}))
    taken = {"bootstrap.servers": "b:1", "socket.keepalive.enable": "true"}
    assert read_connections(PAYMENTS).kafka.settings == taken


HANDS_OVER = Contract.model_validate(
    PAYMENTS.model_dump(mode="json", exclude_defaults=True)
    | {
        "compensation": {
            "trigger": {"connection": "airflow_itself", "dags": {"phantom_in_ledger": "by_hand"}},
            "max_amount_minor": {"EUR": 1},
        }
    }
)


def test_airflows_own_interface_is_read_with_its_account_and_only_to_act(monkeypatch: pytest.MonkeyPatch) -> None:
    account = {"conn_type": "http", "host": "airflow", "port": 8080, "login": "tally", "password": "s3cret"}
    monkeypatch.setenv("AIRFLOW_CONN_AIRFLOW_ITSELF", json.dumps(account))
    found = read_acting_connections(HANDS_OVER).airflow
    assert found == HttpAccount(address="http://airflow:8080/", login="tally", secret="s3cret")
    assert read_connections(HANDS_OVER).airflow is None
    assert read_acting_connections(PAYMENTS).airflow is None


def test_airflows_interface_without_an_account_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_AIRFLOW_ITSELF", json.dumps({"conn_type": "http", "host": "airflow"}))
    with pytest.raises(ConnectionRefused, match="connection airflow_itself: expected a host, a login and a password"):
        read_acting_connections(HANDS_OVER)


def own_contract(**parts: object) -> Contract:
    """The shipped one, with connections of other names."""
    document = PAYMENTS.model_dump(mode="json")
    document["kafka"]["connection"], document["ledger"]["connection"] = "my_kafka", "my_ledger"
    document["alert"] = {"sinks": []}
    return Contract.model_validate(document | parts)


def document(contract: Contract) -> dict[str, Any]:
    """As its file has it."""
    return contract.model_dump(mode="json")


def give(monkeypatch: pytest.MonkeyPatch, contract: Contract, texts: dict[str, str]) -> None:
    """Give Airflow what `make up` reads from the environment."""
    outside = {environment_variable(connection_id): text for connection_id, text in texts.items()}
    own = read_own([document(contract)], outside, without=LAB_CONNECTIONS)
    assert own.faults == ()
    assert set(own.given) == set(texts)
    for connection_id, value in own.given.items():
        monkeypatch.setenv(airflow_variable(connection_id), value if isinstance(value, str) else json.dumps(value))


@pytest.mark.parametrize(
    "registry",
    [
        {"url": "http://localhost:8081"},
        {"url": "https://registry/apis", "basic.auth.user.info": "reader:p:w", "ssl.ca.location": "/ca.pem"},
    ],
)
def test_a_schema_registry_comes_from_make_up(monkeypatch: pytest.MonkeyPatch, registry: dict[str, str]) -> None:
    give(monkeypatch, of_avro(), {"schemas": json.dumps(registry)})
    read = json.loads(read_spark_environment(of_avro())[environment_variable("schemas")])
    assert read | {"url": read["url"].rstrip("/")} == registry


def test_the_primary_of_a_standby_comes_from_make_up(monkeypatch: pytest.MonkeyPatch) -> None:
    on_standby = PAYMENTS.ledger.model_copy(update={"primary_connection": "ledger_primary"})
    contract = PAYMENTS.model_copy(update={"ledger": on_standby})
    give(monkeypatch, contract, {"ledger_primary": "postgresql://reader:s3cret@primary:5432/ledger"})
    assert read_connections(contract).primary_dsn == "postgresql://reader:s3cret@primary:5432/ledger"


def test_an_iceberg_catalog_is_given_by_its_properties_and_refused_without(monkeypatch: pytest.MonkeyPatch) -> None:
    contract = PAYMENTS.model_copy(update={"ledger": PAYMENTS.ledger.model_copy(update={"kind": "iceberg"})})
    given = {"conn_type": "generic", "login": "tally", "password": "hunter/2", "extra": {"type": "rest", "uri": "u"}}
    monkeypatch.setenv("AIRFLOW_CONN_LEDGER_BILLING", json.dumps(given))
    read = json.loads(read_connections(contract).ledger_dsn)
    assert read == {"type": "rest", "uri": "u", "credential": "tally:hunter/2"}
    monkeypatch.setenv("AIRFLOW_CONN_LEDGER_BILLING", '{"conn_type": "generic"}')
    with pytest.raises(ConnectionRefused, match="expected the properties of an Iceberg catalog in its extra"):
        read_connections(contract)


KAFKA_TEXT = json.dumps({"bootstrap.servers": "b:1", "security.protocol": "SSL", "ssl.ca.location": "/ca.pem"})


@pytest.mark.parametrize(
    ("ledger", "text"),
    [
        ({}, "postgresql://reader:p%2Fw%40@db:5433/books?sslmode=verify-full&sslrootcert=%2Fca.pem"),
        ({}, "postgresql://reader:pw@db:5432/books"),
        ({"kind": "parquet", "quiet_seconds": 60}, "/srv/ledger"),
        ({"kind": "iceberg"}, '{"type": "sql", "uri": "sqlite:///lake.db"}'),
    ],
)
def test_airflow_gets_from_make_up_what_the_command_line_reads(
    monkeypatch: pytest.MonkeyPatch, ledger: dict[str, object], text: str
) -> None:
    contract = own_contract()
    contract = contract.model_copy(update={"ledger": contract.ledger.model_copy(update=ledger)})
    texts = {"my_kafka": KAFKA_TEXT, "my_ledger": text}
    give(monkeypatch, contract, texts)
    outside = {environment_variable(connection_id): text for connection_id, text in texts.items()}
    read = read_connections(contract)
    assert read == connections_from_environment(kafka_id="my_kafka", ledger_id="my_ledger", environment=outside)


def test_a_ledger_behind_jdbc_comes_from_make_up_with_its_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    contract = own_contract()
    contract = contract.model_copy(update={"ledger": contract.ledger.model_copy(update=BY_COLUMN)})
    for text in (
        "postgresql://reader:pw@db:5433/books",
        '{"url": "mysql+pymysql://reader:pw@db/books", "jdbc_url": "jdbc:mysql://db/books", "driver": "mysql.Driver"}',
    ):
        give(monkeypatch, contract, {"my_kafka": KAFKA_TEXT, "my_ledger": text})
        assert jdbc_settings(read_connections(contract).ledger_dsn) == jdbc_settings(text)


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("webhook", "https://pager:8443/v1/alerts?a=b", SinkConnection(address="https://pager:8443/v1/alerts?a=b")),
        (
            "slack",
            '{"address": "https://hooks/services", "secret": "s"}',
            SinkConnection(address="https://hooks/services", secret="s"),
        ),
        ("pagerduty", '{"secret": "key"}', SinkConnection(secret="key")),
        ("apprise", '{"secret": "json://h"}', SinkConnection(secret="json://h")),
        (
            "email",
            '{"address": "smtp://mail:25", "login": "l", "secret": "p", "from": "a@b", "to": "c@d"}',
            SinkConnection(address="smtp://mail:25", login="l", secret="p", settings={"from": "a@b", "to": "c@d"}),
        ),
    ],
)
def test_a_sinks_connection_comes_from_make_up(
    monkeypatch: pytest.MonkeyPatch, kind: str, text: str, expected: SinkConnection
) -> None:
    contract = own_contract(alert={"sinks": [{"kind": kind, "connection": "my_pager"}]})
    texts = {"my_kafka": KAFKA_TEXT, "my_ledger": "postgresql://db/books", "my_pager": text}
    give(monkeypatch, contract, texts)
    assert sink_connection(get_connection("my_pager"), kind) == expected


def test_make_up_names_each_connection_that_it_does_not_pass_on() -> None:
    outside = {"TALLYSTICK_CONN_MY_KAFKA": "nonsense", "AIRFLOW_CONN_MY_LEDGER": "postgres://u:p@db/books"}
    own = read_own([document(own_contract())], outside, without=LAB_CONNECTIONS)
    assert own.given == {"my_ledger": "postgres://u:p@db/books"}
    assert own.faults[0].startswith("billing_payments, my_kafka: expected a JSON object, such as")
    missing = read_own([document(own_contract())], {}, without=LAB_CONNECTIONS).faults
    assert missing[1] == (
        "billing_payments, my_ledger: expected the environment variable TALLYSTICK_CONN_MY_LEDGER "
        "or AIRFLOW_CONN_MY_LEDGER"
    )
    assert read_own([document(PAYMENTS)], {}, without=LAB_CONNECTIONS).faults == ()
    taken = read_own([document(PAYMENTS)], {"TALLYSTICK_CONN_KAFKA_BILLING": KAFKA_TEXT}, without=LAB_CONNECTIONS)
    assert taken.given == {}
    assert taken.faults == (
        "billing_payments, kafka_billing: `make up` has its own of this name; call yours by another",
    )


AWS = {"conn_type": "aws", "login": "key", "password": "s3cret/+", "extra": {"region_name": "eu-west-1"}}
PYARROWS = {"conn_type": "generic", "extra": {"account_key": "s3cret"}}


@pytest.mark.parametrize(
    ("connection", "expected"),
    [
        (AWS, {"access_key": "key", "secret_key": "s3cret/+", "region": "eu-west-1"}),
        ({"conn_type": "aws", "extra": {"role_arn": "arn:x"}}, {"role_arn": "arn:x"}),
        (PYARROWS, {"account_key": "s3cret"}),
    ],
)
def test_the_account_for_artifacts_reaches_the_spark_app_and_the_pages(
    monkeypatch: pytest.MonkeyPatch, connection: dict[str, Any], expected: dict[str, str]
) -> None:
    monkeypatch.setenv("TALLYSTICK_ARTIFACTS_DIR", "s3://bucket/x")
    assert "TALLYSTICK_CONN_ARTIFACTS_S3" not in read_spark_environment(PAYMENTS)
    monkeypatch.setenv("TALLYSTICK_ARTIFACTS_CONN_ID", "artifacts_s3")
    monkeypatch.setenv("AIRFLOW_CONN_ARTIFACTS_S3", json.dumps(connection))
    assert json.loads(read_spark_environment(PAYMENTS)["TALLYSTICK_CONN_ARTIFACTS_S3"]) == expected
    place = read_artifacts_place()
    assert isinstance(place, ObjectPlace)
    assert dict(place.store.options) == expected


@pytest.mark.parametrize(
    ("connection", "message"),
    [
        (None, "connection artifacts_s3: not defined in Airflow"),
        ({"conn_type": "aws", "extra": {"profile_name": "x"}}, "the extra has profile_name; expected at most"),
    ],
)
def test_a_refused_account_for_artifacts_stops_only_the_sinks_that_write_there(
    monkeypatch: pytest.MonkeyPatch, connection: object, message: str
) -> None:
    monkeypatch.setenv("TALLYSTICK_ARTIFACTS_DIR", "s3://bucket/x")
    monkeypatch.setenv("TALLYSTICK_ARTIFACTS_CONN_ID", "artifacts_s3")
    if connection:
        monkeypatch.setenv("AIRFLOW_CONN_ARTIFACTS_S3", json.dumps(connection))
    with pytest.raises(ArtifactsRefused, match=message):
        read_artifacts_place()
    monkeypatch.setenv("AIRFLOW_CONN_ALERT_WEBHOOK", json.dumps({"conn_type": "http", "host": "https://h"}))
    webhook, file = read_sinks(PAYMENTS)
    assert not isinstance(webhook, UnusableSink)
    assert isinstance(file, UnusableSink)
    assert "the place of artifacts is refused" in file.fault
