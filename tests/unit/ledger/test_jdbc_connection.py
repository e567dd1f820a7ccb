"""The JDBC side of a database follows from its address, or is given beside it."""

from typing import Any

import psycopg
import pymysql
import pytest

from tallystick.connections.connections import ConnectionNotGiven
from tallystick.ledger.jdbc import open_jdbc_connection
from tallystick.ledger.jdbc_connection import jdbc_settings
from tallystick.ledger.protocol import LedgerUnreachable


def test_the_jdbc_side_of_a_known_database_follows_from_its_address() -> None:
    known = jdbc_settings("postgresql://reader:hunter2@db/billing")
    assert known.for_spark == {
        "url": "jdbc:postgresql://db:5432/billing",
        "driver": "org.postgresql.Driver",
        "user": "reader",
        "password": "hunter2",
        "readOnly": "true",
        "readOnlyMode": "always",
    }
    assert "hunter2" not in repr(known)
    assert jdbc_settings("sqlite:////var/ledger.db").for_spark == {
        "url": "jdbc:sqlite:/var/ledger.db",
        "driver": "org.sqlite.JDBC",
        "sessionInitStatement": "PRAGMA query_only = ON",
    }


def test_the_jdbc_side_of_another_database_is_given_beside_its_address() -> None:
    other = '{"url": "oracle://r:p@db/billing", "jdbc_url": "jdbc:oracle:thin:@db/billing", "driver": "OracleDriver"}'
    assert jdbc_settings(other).for_spark["url"] == "jdbc:oracle:thin:@db/billing"
    for text_given in ("oracle://r:secret@db/billing", "secret", '{"uri": "secret"}', "{secret"):
        with pytest.raises(ConnectionNotGiven, match="of kind jdbc") as refused:
            jdbc_settings(text_given)
        assert "secret" not in str(refused.value)


@pytest.mark.parametrize("name", ["mysql", "mariadb"])
def test_mariadb_is_read_by_pymysql_and_its_own_driver_in_utc_and_may_not_be_written(name: str) -> None:
    known = jdbc_settings(f"{name}://reader:hunter2@db:3307/billing")
    assert known.url.drivername == f"{name}+pymysql"
    assert known.for_spark == {
        "url": "jdbc:mysql://db:3307/billing?permitMysqlScheme&tinyInt1isBit=false&sessionVariables=time_zone='+00:00'",
        "driver": "org.mariadb.jdbc.Driver",
        "sessionInitStatement": "SET SESSION TRANSACTION READ ONLY",
        "user": "reader",
        "password": "hunter2",
    }
    assert jdbc_settings(f"{name}+mysqldb://r@db/billing").url.drivername == f"{name}+mysqldb"


def test_an_address_for_which_spark_reads_names_as_values_is_refused() -> None:
    given = '{"url": "mysql://r:secret@db/b", "jdbc_url": "jdbc:%s://db/b", "driver": "org.mariadb.jdbc.Driver"}'
    with pytest.raises(ConnectionNotGiven, match="expected a jdbc_url that begins with jdbc:mysql:") as refused:
        jdbc_settings(given % "mariadb")
    assert "secret" not in str(refused.value)
    assert jdbc_settings(given % "mysql").jdbc_url.startswith("jdbc:mysql://db/b?")


@pytest.mark.parametrize(
    ("given", "completed"),
    [
        ("", "?tinyInt1isBit=false&sessionVariables=time_zone='+00:00'"),
        ("?sslMode=trust", "?sslMode=trust&tinyInt1isBit=false&sessionVariables=time_zone='+00:00'"),
        (
            "?connectionTimeZone=UTC&forceConnectionTimeZoneToSession=true&tinyInt1isBit=false",
            "?connectionTimeZone=UTC&forceConnectionTimeZoneToSession=true&tinyInt1isBit=false"
            "&sessionVariables=time_zone='+00:00'",
        ),
        ("?tinyInt1isBit=true", "?tinyInt1isBit=true&sessionVariables=time_zone='+00:00'"),
        (
            "?tinyInt1isBit=false&sessionVariables=sql_mode='ANSI'",
            "?tinyInt1isBit=false&sessionVariables=time_zone='+00:00',sql_mode='ANSI'",
        ),
        ("?tinyInt1isBit=false&sessionVariables=time_zone='+00:00'",) * 2,
    ],
)
def test_an_own_address_of_mariadb_is_completed_by_what_python_asks_for(given: str, completed: str) -> None:
    text = '{"url": "mysql://r:secret@db/b", "jdbc_url": "jdbc:mysql://db/b%s"}'
    assert jdbc_settings(text % given).jdbc_url == f"jdbc:mysql://db/b{completed}"


@pytest.mark.parametrize(
    "named", ["timezone=Europe/Berlin", "sessionVariables=time_zone='+02:00'", "connectionTimeZone=LOCAL"]
)
def test_an_own_address_of_mariadb_in_another_zone_is_refused(named: str) -> None:
    text = '{"url": "mysql://r:secret@db/b", "jdbc_url": "jdbc:mysql://db/b?%s"}'
    with pytest.raises(
        ConnectionNotGiven, match=r"names another time zone; expected sessionVariables=time_zone='\+00:00'"
    ):
        jdbc_settings(text % named)


def test_tls_that_only_the_python_side_asks_for_is_refused_for_mariadb_too() -> None:
    url = "mariadb://r:secret@db/b?ssl_ca=/etc/ca.pem"
    with pytest.raises(ConnectionNotGiven, match=r"asks for TLS \(ssl_ca\)"):
        jdbc_settings(url)
    given = '{"url": "%s", "jdbc_url": "jdbc:mysql://db/b?permitMysqlScheme&sslMode=verify-full"}'
    assert "&sslMode=verify-full&" in jdbc_settings(given % url).jdbc_url


@pytest.mark.parametrize(
    ("address", "driver", "seconds"),
    [
        ("postgresql://reader@db/billing", psycopg, 10),
        ("postgresql://reader@db/billing?connect_timeout=30", psycopg, "30"),
        ("mariadb://reader@db/billing", pymysql, 10),
        ("mysql://reader@db/billing?connect_timeout=30", pymysql, 30),
    ],
)
def test_a_server_that_does_not_answer_is_given_up_after_ten_seconds_or_the_addresss_own(
    monkeypatch: pytest.MonkeyPatch, address: str, driver: Any, seconds: int | str
) -> None:
    asked: list[object] = []

    def connect(*_: object, **given: object) -> None:
        asked.append(given.get("connect_timeout"))
        raise driver.OperationalError("timeout")

    monkeypatch.setattr(driver, "connect", connect)
    with pytest.raises(LedgerUnreachable, match="nothing answers there"), open_jdbc_connection(jdbc_settings(address)):
        pass
    assert asked == [seconds]


@pytest.mark.parametrize(
    ("address", "limit"),
    [
        ("mssql+pyodbc://reader@db/billing", {"timeout": 10}),
        ("mysql+mysqlconnector://reader@db/billing", {"connection_timeout": 10}),
        ("oracle+oracledb://reader@db/billing", {}),
        ("sqlite:////var/ledger.db", {}),
    ],
)
def test_a_drivers_time_limit_has_the_name_that_it_knows(address: str, limit: dict[str, int]) -> None:
    given = f'{{"url": "{address}", "jdbc_url": "jdbc:mysql://db/billing", "driver": "Driver"}}'
    assert jdbc_settings(given).time_limit == limit
