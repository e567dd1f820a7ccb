"""What holds for every reader of a ledger, libpq's, COPY on the executors, and Spark's JDBC: TLS as the address asks,
and that the server refuses whatever would write.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import pytest
from psycopg.errors import ReadOnlySqlTransaction
from pyspark.sql import SparkSession

from lab.doors.certificates import Certificates, make_certificates
from lab.doors.tls_front import tls_in_front_of
from lab.servers.postgres import PostgresServer
from tallystick.connections.connections import Connections, KafkaSettings
from tallystick.contract.ledger import LedgerSection
from tallystick.contract.sql_condition import why_no_condition
from tallystick.executor.effects.post_to_ledger import current_rows
from tallystick.ledger.jdbc import JdbcLedger, open_jdbc_ledger
from tallystick.ledger.jdbc_connection import jdbc_settings
from tallystick.ledger.postgres import PostgresLedger
from tallystick.ledger.postgres_connection import open_ledger, scan_address
from tallystick.ledger.postgres_table import describe_table
from tallystick.ledger.protocol import LedgerRefused
from tallystick.model.cut import LedgerSlice
from tallystick.store.engine import connect_store
from tallystick_spark.readers.ledger_frame import read_ledger, slice_queries
from tallystick_spark.readers.postgres_rows import read_rows

LEDGER = LedgerSection(connection="ledger", table="books.entry")
BY_COLUMN = LedgerSection(connection="ledger", kind="jdbc", table="books.entry", order_by="entry_id", overlap=0)
NOON = datetime(2026, 3, 1, tzinfo=UTC)
KAFKA = KafkaSettings({"bootstrap.servers": "nobody:9092"})


@dataclass(frozen=True)
class Secured:
    """A ledger with one row, in the database `postgres`, behind two ports that speak TLS; and a Spark session.

    certified_port: asks its clients for a certificate.
    """

    server: PostgresServer
    port: int
    certified_port: int
    certificates: Certificates
    spark: SparkSession

    def dsn(self, *, host: str = "127.0.0.1", port: int | None = None, **asked: object) -> str:
        named = "&".join(f"{name}={value}" for name, value in asked.items())
        return self.server.dsn().replace(f"@127.0.0.1:{self.server.port}", f"@{host}:{port or self.port}") + f"?{named}"

    @property
    def proven(self) -> str:
        return self.dsn(sslmode="verify-full", sslrootcert=self.certificates.ca)


@pytest.fixture(scope="module")
def secured(
    store_server: PostgresServer, tmp_path_factory: pytest.TempPathFactory, spark: SparkSession
) -> Iterator[Secured]:
    certificates = make_certificates(tmp_path_factory.mktemp("certificates"))
    with store_server.connect() as admin:
        admin.execute(
            "CREATE SCHEMA books CREATE TABLE entry (entry_id bigint PRIMARY KEY, event_id text, payment_id text, "
            "leg text, amount_minor bigint, currency text, occurred_at timestamptz)"
        )
        admin.execute("INSERT INTO books.entry VALUES (1, 'a', 'p', 'payment', 10, 'EUR')")
        admin.execute("CREATE TABLE books.note (said text)")
        admin.execute(
            "CREATE FUNCTION books.noted(text) RETURNS bool LANGUAGE sql VOLATILE "
            "AS 'INSERT INTO books.note VALUES ($1) RETURNING true'"
        )
        with (
            tls_in_front_of(store_server.port, certificates) as port,
            tls_in_front_of(store_server.port, certificates, asks_clients=True) as certified_port,
        ):
            yield Secured(store_server, port, certified_port, certificates, spark)
        admin.execute("DROP SCHEMA books CASCADE")


def by_psycopg(secured: Secured, dsn: str, where: str | None = None) -> int:
    with open_ledger(dsn) as connection:
        ledger = PostgresLedger(connection=connection, ledger=LEDGER.model_copy(update={"where": where}))
        return len(ledger.look_up_rows(["a"], whole(ledger)))


def by_copy(secured: Secured, dsn: str, where: str | None = None) -> int:
    with held(secured, where) as (ledger, snapshot):
        (query,) = slice_queries(ledger, ledger.describe(), whole(ledger))
        return sum(len(batch) for batch in read_rows(scan_address(dsn), query, snapshot=snapshot))


def by_spark(secured: Secured, dsn: str, where: str | None = None) -> int:
    with held(secured, where) as (ledger, snapshot):
        connections = Connections(kafka=KAFKA, ledger_dsn=dsn)
        rows = read_ledger(secured.spark, connections, ledger, whole(ledger), ledger.describe(), snapshot)
        return len(rows.collect())


def whole(ledger: PostgresLedger | JdbcLedger) -> LedgerSlice:
    now = ledger.read_snapshot()
    return LedgerSlice(
        position_start=0, position_end=now.low_mark, snapshot=now, mark=now.high_mark, baseline_position=0
    )


@contextmanager
def held(secured: Secured, where: str | None) -> Iterator[tuple[PostgresLedger, str]]:
    """A snapshot, held by a connection that is proven: the reader alone is asked about."""
    with open_ledger(secured.proven) as connection:
        ledger = PostgresLedger(connection=connection, ledger=LEDGER.model_copy(update={"where": where}))
        with ledger.held_snapshot() as snapshot:
            yield ledger, snapshot


def by_sqlalchemy(secured: Secured, dsn: str, where: str | None = None) -> int:
    with open_by_column(dsn, where) as ledger:
        return len(ledger.look_up_rows(["a"], whole(ledger)))


def by_spark_of_kind_jdbc(secured: Secured, dsn: str, where: str | None = None) -> int:
    with open_by_column(secured.proven, where) as ledger:
        asked = replace(ledger, settings=jdbc_settings(dsn))
        connections = Connections(kafka=KAFKA, ledger_dsn=dsn)
        return len(read_ledger(secured.spark, connections, asked, whole(ledger), ledger.describe(), None).collect())


def open_by_column(dsn: str, where: str | None) -> AbstractContextManager[JdbcLedger]:
    ledger = BY_COLUMN.model_copy(update={"where": where})
    return open_jdbc_ledger(
        jdbc_settings(dsn), ledger, read_before=tuple, sum_before=lambda one: None, now=lambda: NOON
    )


def by_the_stores_engine(secured: Secured, dsn: str) -> int:
    with connect_store(dsn).connect() as connection:
        return len(connection.exec_driver_sql("SELECT FROM books.entry").fetchall())


OF_LEDGERS = (by_psycopg, by_copy, by_spark, by_sqlalchemy, by_spark_of_kind_jdbc)
READERS = (*OF_LEDGERS, by_the_stores_engine)
Reader = Callable[[Secured, str], int]


@pytest.mark.parametrize("reader", READERS)
def test_the_server_that_the_address_names_is_read_and_no_other(secured: Secured, reader: Reader) -> None:
    assert reader(secured, secured.proven) == 1
    certificates = secured.certificates
    for refused in (
        secured.dsn(sslmode="verify-full", sslrootcert=certificates.other_ca),
        secured.dsn(sslmode="require", sslrootcert=certificates.other_ca),
        secured.dsn(host="localhost", sslmode="verify-full", sslrootcert=certificates.ca),
    ):
        with pytest.raises(Exception, match=UNPROVEN):
            reader(secured, refused)
    with pytest.raises(Exception, match=HUNG_UP):  # in clear text, which that port does not speak
        reader(secured, secured.dsn(sslmode="disable"))
    assert reader(secured, secured.dsn(host="localhost", sslmode="verify-ca", sslrootcert=certificates.ca)) == 1


@pytest.mark.parametrize("reader", READERS)
def test_a_clients_certificate_is_shown_to_a_server_that_asks_for_one(secured: Secured, reader: Reader) -> None:
    certificates = secured.certificates
    proven = {"sslmode": "verify-full", "sslrootcert": certificates.ca}
    shown = {"sslcert": certificates.client, "sslkey": certificates.client_key}
    assert reader(secured, secured.dsn(port=secured.certified_port, **proven, **shown)) == 1
    with pytest.raises(Exception, match=HUNG_UP):
        reader(secured, secured.dsn(port=secured.certified_port, **proven))


@pytest.mark.parametrize("reader", OF_LEDGERS)
def test_a_condition_is_read_as_it_is_written(secured: Secured, reader: Callable[..., int]) -> None:
    where = """'{"a": 1}'::jsonb ? 'a' AND event_id LIKE 'a%' AND leg <> '100%s?' AND NOT '[]'::jsonb ?| ARRAY['a']"""
    assert why_no_condition(where, ["postgresql"]) is None
    assert reader(secured, secured.proven, where) == 1
    assert reader(secured, secured.proven, f"{where} AND NOT event_id LIKE '%a'") == 0


@pytest.mark.parametrize("reader", OF_LEDGERS)
def test_a_condition_that_writes_is_refused_by_the_server(secured: Secured, reader: Callable[..., int]) -> None:
    with pytest.raises(Exception, match="read-only transaction"):
        reader(secured, secured.proven, f"books.noted('{reader.__name__}')")
    with secured.server.connect() as admin:
        assert admin.execute("SELECT FROM books.note WHERE said = %s", [reader.__name__]).fetchall() == []


def test_a_posters_look_before_it_writes_may_only_read_too(secured: Secured) -> None:
    ledger = LEDGER.model_copy(update={"where": "books.noted('poster')"})
    with open_ledger(secured.proven, may_write=True) as connection:
        with pytest.raises(ReadOnlySqlTransaction), connection.transaction():
            current_rows(connection, ledger, "a")
        with connection.transaction(force_rollback=True):
            assert len(current_rows(connection, LEDGER, "a")) == 1
            connection.execute("INSERT INTO books.note VALUES ('what is posted')")


def test_a_statement_behind_a_condition_is_refused_by_the_server(secured: Secured) -> None:
    ledger = LEDGER.model_copy(update={"where": "true) LIMIT 0; DELETE FROM books.entry; SELECT (1"})
    refused = pytest.raises(LedgerRefused, match="cannot execute DELETE in a read-only transaction")
    with refused, open_ledger(secured.proven) as connection:
        describe_table(connection, ledger)
    with secured.server.connect() as admin:
        assert admin.execute("SELECT entry_id FROM books.entry").fetchall() == [(1,)]


UNPROVEN = re.compile(
    "certificate verify failed|unable to find valid certification path|Path does not chain|does not match host name|"
    "could not be verified by hostnameverifier"
)
HUNG_UP = re.compile("closed the connection|unexpected eof|connection attempt failed|[Cc]ertificate.required")
