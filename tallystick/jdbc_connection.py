"""How a ledger of kind jdbc is reached, from Python and from Spark, by one address."""

import json
from dataclasses import dataclass, field

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from tallystick.connections import ConnectionNotGiven


@dataclass(frozen=True)
class JdbcSettings:
    """How to reach a database from Python and from Spark. url: SQLAlchemy's."""

    url: URL = field(repr=False)
    jdbc_url: str = field(repr=False)
    driver: str

    @property
    def for_spark(self) -> dict[str, str]:
        """Options of Spark's JDBC source; set on the reader, so that no secret reaches argv."""
        account = {"user": self.url.username, "password": self.url.password}
        return {"url": self.jdbc_url, "driver": self.driver} | {key: value for key, value in account.items() if value}


def jdbc_settings(text: str) -> JdbcSettings:
    """Read an SQLAlchemy URL, or a JSON object {"url": ..., "jdbc_url": ..., "driver": ...} around one.

    The latter two are known for PostgreSQL and SQLite. Raises ConnectionNotGiven, without the value.
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
    jdbc_url, driver = _JDBC.get(url.get_backend_name(), ("", ""))
    jdbc_url, driver = given.get("jdbc_url") or jdbc_url, given.get("driver") or driver
    if not jdbc_url or not driver:
        raise ConnectionNotGiven(
            f"a ledger's connection of kind jdbc to {url.get_backend_name()}: expected jdbc_url and driver, the JDBC "
            f"URL and the driver's class, beside the SQLAlchemy URL; known without are only {' and '.join(_JDBC)}"
        )
    place = {"host": url.host or "", "port": url.port or 5432, "database": url.database or ""}
    return JdbcSettings(url=url, jdbc_url=jdbc_url.format(**place), driver=driver)


_JDBC = {
    "postgresql": ("jdbc:postgresql://{host}:{port}/{database}", "org.postgresql.Driver"),
    "sqlite": ("jdbc:sqlite:{database}", "org.sqlite.JDBC"),
}
"""By SQLAlchemy's name of the database: the JDBC URL and the driver's class."""
