"""Any database provider's connection is a ledger's address through its own hook, or is refused in words.

The hook of PostgreSQL is the real one. Those of providers that are not installed here are stand-ins, named so.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.postgres.hooks.postgres import PostgresHook
from airflow.sdk import Connection
from sqlalchemy import URL

from tallystick.contract.contract import load_contract
from tallystick.ledger.jdbc_connection import jdbc_settings
from tallystick_airflow.connections import postgres_dsn, read_connections
from tallystick_airflow.hooks.database_address import AIRFLOWS_OWN
from tallystick_airflow.hooks.refusal import AccountNotGiven, ConnectionRefused

PAYMENTS = load_contract(Path(__file__).parents[2] / "dags" / "contracts" / "billing_payments.yaml")
BY_COLUMN = {"kind": "jdbc", "order_by": "entry_id", "overlap": 0}
JDBC = PAYMENTS.model_copy(update={"ledger": PAYMENTS.ledger.model_copy(update=BY_COLUMN)})
POSTGRES = {"conn_type": "postgres", "host": "db", "login": "reader", "password": "s3cret", "schema": "books"}


@pytest.fixture
def give(monkeypatch: pytest.MonkeyPatch) -> Any:
    def give_ledger(connection: dict[str, Any], **extra: Any) -> None:
        monkeypatch.setenv("AIRFLOW_CONN_LEDGER_BILLING", json.dumps(connection | {"extra": extra}))

    return give_ledger


def test_what_only_airflows_own_hook_reads_is_left_out_of_the_address(give: Any) -> None:
    give(POSTGRES, cursor="dictcursor", aws_conn_id="a", iam=False, sqlalchemy_scheme="postgresql", sslmode="require")
    assert read_connections(PAYMENTS).ledger_dsn == "postgresql://reader:s3cret@db:5432/books?sslmode=require"


def test_the_extras_that_are_airflows_are_those_of_the_real_hook() -> None:
    assert PostgresHook.ignored_extra_options == AIRFLOWS_OWN


def test_parameters_of_sqlalchemy_and_of_libpq_are_kept_and_empty_fields_of_a_form_are_not(give: Any) -> None:
    give(
        POSTGRES,
        sqlalchemy_query={"sslmode": "verify-full"},
        keepalives=True,
        keepalives_idle=30,
        sslcert="",
        options=None,
    )
    assert read_connections(PAYMENTS).ledger_dsn == (
        "postgresql://reader:s3cret@db:5432/books?sslmode=verify-full&keepalives=1&keepalives_idle=30"
    )


def test_a_token_of_rds_is_asked_for_by_the_real_hook(give: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def token(_: PostgresHook, connection: Connection) -> tuple[str, str, int]:
        asked.append(connection.extra_dejson["aws_conn_id"])
        return "iam_reader", "token/of+15=minutes", 6543

    monkeypatch.setattr(PostgresHook, "get_iam_token", token)
    give(POSTGRES, iam=True, aws_conn_id="aws_books", sslmode="verify-full")
    assert read_connections(PAYMENTS).ledger_dsn == (
        "postgresql://iam_reader:token%2Fof%2B15%3Dminutes@db:6543/books?sslmode=verify-full"
    )
    assert asked == ["aws_books"]
    assert jdbc_settings(read_connections(JDBC).ledger_dsn).for_spark["password"] == "token/of+15=minutes"
    assert len(asked) == 2


def test_a_token_without_amazons_provider_is_refused_in_words(give: Any) -> None:
    give(POSTGRES, iam=True)
    with pytest.raises(ConnectionRefused, match="ledger_billing: PostgresHook needs a package that is not here: "):
        read_connections(PAYMENTS)


def test_a_hook_that_fails_may_be_asked_again_and_its_words_are_not_repeated(
    give: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def token(_: PostgresHook, __: Connection) -> None:
        raise RuntimeError("no answer for reader:s3cret")

    monkeypatch.setattr(PostgresHook, "get_iam_token", token)
    give(POSTGRES, iam=True)
    with pytest.raises(AccountNotGiven, match="PostgresHook gives no address: RuntimeError; see that") as failure:
        read_connections(PAYMENTS)
    assert "s3cret" not in str(failure.value)
    assert not isinstance(failure.value, ConnectionRefused)


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ({"iam": True, "redshift": True}, "got redshift in its extra"),
        ({"redshift-serverless": "true"}, "got redshift-serverless in its extra"),
        ({"application": "x"}, "got 'application' in its extra, which PostgreSQL's client does not know"),
    ],
)
def test_what_cannot_be_used_is_refused_by_name(give: Any, extra: dict[str, Any], message: str) -> None:
    give(POSTGRES, **extra)
    with pytest.raises(ConnectionRefused) as refusal:
        read_connections(PAYMENTS)
    assert message in str(refusal.value)
    assert "s3cret" not in str(refusal.value)


class HookStandIn:
    """In the place of a database's hook, whose provider is not installed here."""

    sqlalchemy_url = URL.create("sqlite", database="/books.db", query={"jdbc_url": "j", "driver": "d", "timeout": "5"})


class OlderHookStandIn:
    """As hooks were before they had URLs: the extra's fields are in the text."""

    @property
    def sqlalchemy_url(self) -> URL:
        raise NotImplementedError

    def get_uri(self) -> str:
        return "sqlite:////older.db?driver=d"


class MySqlHookStandIn:
    """Its URL asks for a client that is not installed here."""

    sqlalchemy_url = "mysql+mysqldb://reader:s3cret@db/books"


class SnowflakeHookStandIn:
    """Its URL asks for a dialect that is not installed here."""

    sqlalchemy_url = "snowflake://reader:s3cret@account/books"


class DruidHookStandIn:
    """Of a provider that misses a part of its own."""

    @property
    def sqlalchemy_url(self) -> URL:
        raise ImportError("no module named 'pydruid'\nand more")


class S3HookStandIn:
    """No database."""


def stand_in(monkeypatch: pytest.MonkeyPatch, hook: type) -> None:
    monkeypatch.setattr(Connection, "get_hook", lambda _: hook())


@pytest.mark.parametrize(
    ("hook", "url"), [(HookStandIn, "sqlite:////books.db?timeout=5"), (OlderHookStandIn, "sqlite:////older.db")]
)
def test_a_databases_connection_is_a_ledgers_address(
    give: Any, monkeypatch: pytest.MonkeyPatch, hook: type, url: str
) -> None:
    stand_in(monkeypatch, hook)
    give({"conn_type": "some_database"}, jdbc_url="jdbc:sqlite:/books.db", driver="org.sqlite.JDBC", warehouse="w")
    assert json.loads(read_connections(JDBC).ledger_dsn) == {
        "url": url,
        "jdbc_url": "jdbc:sqlite:/books.db",
        "driver": "org.sqlite.JDBC",
    }


@pytest.mark.parametrize("url", ["mariadb://reader:s3cret@db/books", "mysql+pymysql://reader:s3cret@db/books"])
def test_a_ledger_in_mariadb_needs_no_more_than_its_url(give: Any, url: str) -> None:
    give({"conn_type": "tallystick_ledger"}, url=url)
    settings = jdbc_settings(read_connections(JDBC).ledger_dsn)
    assert settings.url.get_driver_name() == "pymysql"
    assert settings.for_spark["driver"] == "org.mariadb.jdbc.Driver"
    assert settings.for_spark["password"] == "s3cret"


@pytest.mark.parametrize(
    ("hook", "message"),
    [
        (MySqlHookStandIn, "the Python client of 'mysql+mysqldb' is not installed where tasks run: No module named"),
        (SnowflakeHookStandIn, "SQLAlchemy has no dialect 'snowflake' here; expected the package"),
        (DruidHookStandIn, "DruidHookStandIn needs a package that is not here: no module named 'pydruid'"),
        (S3HookStandIn, "S3HookStandIn gives no SQLAlchemy URL; expected a database's connection"),
    ],
)
def test_a_connection_that_cannot_be_used_here_says_why(
    give: Any, monkeypatch: pytest.MonkeyPatch, hook: type, message: str
) -> None:
    stand_in(monkeypatch, hook)
    give({"conn_type": "some_database"})
    with pytest.raises(ConnectionRefused) as refusal:
        read_connections(JDBC)
    assert str(refusal.value).startswith(f"connection ledger_billing: {message}")
    assert "s3cret" not in str(refusal.value)


@pytest.mark.parametrize("conn_type", ["mysql", "snowflake", "mssql", "oracle"])
def test_a_type_whose_provider_is_missing_is_refused_with_what_to_install(give: Any, conn_type: str) -> None:
    give({"conn_type": conn_type, "host": "db"})
    with pytest.raises(ConnectionRefused, match=f"no provider here has a hook for type '{conn_type}'; expected the"):
        read_connections(JDBC)


def test_a_ledger_of_kind_postgres_takes_no_other_database(give: Any) -> None:
    give({"conn_type": "mysql", "host": "db"})
    with pytest.raises(ConnectionRefused, match="got type 'mysql'; expected 'postgres'"):
        read_connections(PAYMENTS)


def test_a_store_may_be_given_by_any_of_its_types(give: Any) -> None:
    for conn_type in ("postgres", "postgresql", "tallystick_store", "tallystick_ledger"):
        connection = Connection(conn_id="c", **(POSTGRES | {"conn_type": conn_type}))
        assert postgres_dsn(connection) == "postgresql://reader:s3cret@db:5432/books"
