"""The connection to a ledger of kind jdbc, from Python and from Spark, by one address."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from tallystick.connections.connections import ConnectionNotGiven
from tallystick.connections.postgres_address import JDBC_READ_ONLY, as_asked_of_psycopg, jdbc_options


@dataclass(frozen=True)
class JdbcSettings:
    """Settings that reach a database from Python and from Spark. url: SQLAlchemy's."""

    url: URL = field(repr=False)
    jdbc_url: str = field(repr=False)
    driver: str
    more: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Further options for Spark, so that it asks of the server what Python asks, and only reads."""

    @property
    def time_limit(self) -> dict[str, int]:
        """Return the keyword by which the Python driver gives up on a server that does not answer, and its seconds.

        Empty, where the address has one of its own, or the driver none that is known.
        """
        name = _TIME_LIMITS.get(self.url.get_driver_name())
        return {name: _CONNECT_SECONDS} if name and name not in self.url.query else {}

    @property
    def for_spark(self) -> dict[str, str]:
        """Options of Spark's JDBC source; set on the reader, so that no secret reaches argv."""
        account = {"user": self.url.username, "password": self.url.password}
        named = {key: value for key, value in account.items() if value}
        return {**self.more, "url": self.jdbc_url, "driver": self.driver} | named


def jdbc_settings(text: str) -> JdbcSettings:
    """Read an SQLAlchemy URL, or a JSON object {"url": ..., "jdbc_url": ..., "driver": ...} around one.

    The latter two are known for PostgreSQL, MariaDB, MySQL and SQLite. Raises ConnectionNotGiven, without the value.
    """
    try:
        given = json.loads(text) if text.startswith("{") else {"url": text}
        url = make_url(given["url"])
    except (json.JSONDecodeError, KeyError, ArgumentError):
        raise ConnectionNotGiven(
            "a ledger's connection of kind jdbc: expected an SQLAlchemy URL, such as "
            'mysql+pymysql://user:password@host/database, or a JSON object with it under "url"'
        ) from None
    if url.drivername in ("postgres", "postgresql"):
        url = url.set(drivername="postgresql+psycopg")
    elif url.drivername in MYSQL_FAMILY:
        url = url.set(drivername=f"{url.drivername}+pymysql")
    backend = url.get_backend_name()
    more = dict(_READ_ONLY.get(backend, {}))
    jdbc_url, driver = given.get("jdbc_url"), given.get("driver") or _DRIVERS.get(backend)
    if backend in MYSQL_FAMILY:
        jdbc_url = jdbc_url or _of_mysql(url)
        _refuse_names_as_texts(jdbc_url)
        jdbc_url = _as_python_asks(jdbc_url)
    if jdbc_url:
        _refuse_tls_unsaid(url, jdbc_url)
    elif backend == "postgresql":
        more |= jdbc_options(as_asked_of_psycopg(url))
        jdbc_url = more.pop("url")
    elif backend == "sqlite":
        jdbc_url = f"jdbc:sqlite:{url.database or ''}"
    if not jdbc_url or not driver:
        raise ConnectionNotGiven(
            f"a ledger's connection of kind jdbc to {backend}: expected jdbc_url and driver, the JDBC URL and the "
            f"driver's class, beside the SQLAlchemy URL; known without are only {' and '.join(_DRIVERS)}"
        )
    return JdbcSettings(url=url, jdbc_url=jdbc_url, driver=driver, more=more)


MYSQL_FAMILY = ("mysql", "mariadb")
"""SQLAlchemy's names of databases that are read by PyMySQL and by MariaDB's JDBC driver."""

_DRIVERS = {
    "postgresql": "org.postgresql.Driver",
    **dict.fromkeys(MYSQL_FAMILY, "org.mariadb.jdbc.Driver"),
    "sqlite": "org.sqlite.JDBC",
}
"""The driver's class, by SQLAlchemy's name of the database."""

_CONNECT_SECONDS = 10
_TIME_LIMITS = {
    **dict.fromkeys(("psycopg", "psycopg2", "pymysql", "mysqldb", "mariadbconnector"), "connect_timeout"),
    "mysqlconnector": "connection_timeout",
    "pyodbc": "timeout",
}
"""The keyword for the seconds that a connection may take to be made, by SQLAlchemy's name of the driver."""

_READ_ONLY = {
    "postgresql": JDBC_READ_ONLY,
    **{name: {"sessionInitStatement": "SET SESSION TRANSACTION READ ONLY"} for name in MYSQL_FAMILY},
    "sqlite": {"sessionInitStatement": "PRAGMA query_only = ON"},
}
"""The options that make Spark's sessions refuse to write, by SQLAlchemy's name of the database."""


def _of_mysql(url: URL) -> str:
    """Return the address for MariaDB's driver."""
    return f"{_QUOTED_RIGHT}//{url.host or '127.0.0.1'}:{url.port or 3306}/{url.database or ''}?permitMysqlScheme"


_IN_UTC = "time_zone='+00:00'"
_ZONE = re.compile("time_?zone='?([^&',]*)", re.IGNORECASE)


def _as_python_asks(jdbc_url: str) -> str:
    """Return the address with sessions in UTC, which the server turns a TIMESTAMP into, and with numbers of tinyint(1).

    In another zone Spark would read the rows of other moments than Python asks for. Raises ConnectionNotGiven.
    """
    if not {"+00:00", "UTC"}.issuperset(_ZONE.findall(jdbc_url)):
        raise ConnectionNotGiven(
            "a ledger's connection of kind jdbc to MariaDB or MySQL: its jdbc_url names another time zone; expected "
            f"sessionVariables={_IN_UTC}, or none: the sessions are in UTC"
        )
    address, _, asked = jdbc_url.partition("?")
    options = [one for one in asked.split("&") if one]
    if not any(one.startswith("tinyInt1isBit=") for one in options):
        options.append("tinyInt1isBit=false")
    if _IN_UTC in asked:
        return f"{address}?{'&'.join(options)}"
    if not any(one.startswith("sessionVariables=") for one in options):
        return f"{address}?{'&'.join([*options, f'sessionVariables={_IN_UTC}'])}"
    return f"{address}?{'&'.join(options)}".replace("sessionVariables=", f"sessionVariables={_IN_UTC},")


_QUOTED_RIGHT = "jdbc:mysql:"


def _refuse_names_as_texts(jdbc_url: str) -> None:
    """Refuse an address for which Spark quotes names by double quotes: to these databases they are texts, so that each
    row would say the names of its columns. Source: Spark, MySQLDialect.canHandle. Raises ConnectionNotGiven.
    """
    if not jdbc_url.startswith(_QUOTED_RIGHT):
        raise ConnectionNotGiven(
            "a ledger's connection of kind jdbc to MariaDB or MySQL: expected a jdbc_url that begins with jdbc:mysql:, "
            "with permitMysqlScheme for MariaDB's driver, since Spark quotes the names of columns rightly for no other"
        )


_ABOUT_TLS = re.compile(r"ssl|tls|encrypt", re.IGNORECASE)
_SERVERS = re.compile(r"//[^?;&]*")
"""The hosts and the database of a JDBC URL, whose names ask for nothing."""


def _refuse_tls_unsaid(url: URL, jdbc_url: str) -> None:
    """Refuse an address that asks for TLS where its JDBC part is silent; each database has its own words for it.

    Raises ConnectionNotGiven.
    """
    given = as_asked_of_psycopg(url) if url.get_backend_name() == "postgresql" else url.query
    asked = next((name for name in given if _ABOUT_TLS.search(name)), None)
    if asked and not _ABOUT_TLS.search(_SERVERS.sub("//", jdbc_url)):
        raise ConnectionNotGiven(
            f"a ledger's connection of kind jdbc: its url asks for TLS ({asked}), and its jdbc_url says nothing of it, "
            "so that Spark would read from whoever answers; expected the same there, in the driver's own words"
        )
