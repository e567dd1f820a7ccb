"""Addresses of databases from Airflow's connections: their own fields, or what their provider's hook makes of them.

Decides which of a connection's extras are the database's. What only Airflow's own clients know is left out, and what
would change who is believed or asked is refused by name.
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

from airflow.sdk import Connection
from airflow.sdk.exceptions import AirflowException
from airflow.sdk.log import mask_secret
from sqlalchemy import URL, make_url
from sqlalchemy.exc import NoSuchModuleError

from tallystick_airflow.hooks.refusal import AccountNotGiven, ConnectionRefused

STORE_TYPE, LEDGER_TYPE = "tallystick_store", "tallystick_ledger"
POSTGRES_TYPES = ("postgres", "postgresql", STORE_TYPE, LEDGER_TYPE)

AIRFLOWS_OWN = frozenset(
    {
        "iam",
        "redshift",
        "redshift-serverless",
        "cursor",
        "cluster-identifier",
        "workgroup-name",
        "aws_conn_id",
        "sqlalchemy_scheme",
        "sqlalchemy_query",
        "azure_conn_id",
    }
)
"""Extras of a postgres connection that its hook reads, and libpq does not know."""

OURS = ("jdbc_url", "driver")
"""Extras that stand beside an SQLAlchemy URL for Spark."""


def postgres_address(connection: Connection) -> str:
    """Write a connection as a PostgreSQL URI, its extra as parameters.

    An extra `iam` has the hook of Airflow's postgres provider ask for the token. Raises ConnectionRefused,
    AccountNotGiven.
    """
    extra = given(connection.extra_dejson)
    for name in ("redshift", "redshift-serverless"):
        if is_true(extra.get(name)):
            raise refused(
                connection, f"got {name} in its extra; Redshift has no log of PostgreSQL's; expected PostgreSQL"
            )
    login, password, port = connection.login or "", connection.password or "", connection.port or 5432
    if is_true(extra.get("iam")):
        url = url_of_hook(connection)
        login, password, port = url.username or "", str(url.password or ""), url.port or port
    query = extra.get("sqlalchemy_query")
    own = {name: value for name, value in extra.items() if name not in AIRFLOWS_OWN}
    parameters = {
        name: _libpq_text(value) for name, value in ((query if isinstance(query, dict) else {}) | own).items()
    }
    _refuse_unknown_to_libpq(connection, parameters)
    secret = quote(password, safe="")
    mask_secret(secret)  # Airflow knows the plain form only
    account = f"{quote(login, safe='')}:{secret}"
    place = f"{connection.host}:{port}/{quote(connection.schema or '', safe='')}"
    return f"postgresql://{account}@{place}{'?' if parameters else ''}{urlencode(parameters)}"


def url_of_hook(connection: Connection) -> URL:
    """Return the SQLAlchemy URL that the hook of a connection's type makes of it, without what is for Spark alone.

    Raises ConnectionRefused where there is no such hook, dialect or client here, and AccountNotGiven where the hook
    fails. The words of its failure are not repeated: they may hold a password.
    """
    try:
        hook: Any = connection.get_hook()  # type: ignore[no-untyped-call] # Airflow gave it no types
    except (AirflowException, ImportError):
        raise refused(
            connection,
            f"no provider here has a hook for type {connection.conn_type!r}; expected the provider of that database "
            "installed where tasks run, or an SQLAlchemy URL without user and password in its extra, such as "
            '{"url": "mysql+pymysql://host/database"}',
        ) from None
    name = type(hook).__name__
    try:
        url = _ask(hook)
    except ImportError as missing:
        raise refused(connection, f"{name} needs a package that is not here: {_first_line(missing)}") from None
    except Exception as error:  # whatever a provider raises
        if "Optional" in type(error).__name__:
            raise refused(connection, f"{name} needs a package that is not here: {_first_line(error)}") from None
        raise AccountNotGiven(
            f"connection {connection.conn_id}: {name} gives no address: {type(error).__name__}; see that the "
            "connection works in Airflow, by its test button"
        ) from None
    if url is None:
        raise refused(
            connection,
            f"{name} gives no SQLAlchemy URL; expected a database's connection, or one with a URL in its extra",
        )
    return url.difference_update_query(OURS)


def require_client(connection: Connection, url: URL) -> None:
    """Refuse a URL whose dialect or Python client is not installed here. Raises ConnectionRefused."""
    try:
        url.get_dialect().import_dbapi()
    except NoSuchModuleError:
        raise refused(
            connection,
            f"SQLAlchemy has no dialect {url.drivername!r} here; expected the package that brings it installed where "
            "tasks run",
        ) from None
    except ImportError as missing:
        raise refused(
            connection,
            f"the Python client of {url.drivername!r} is not installed where tasks run: {_first_line(missing)}",
        ) from None


def given(extra: Mapping[str, Any]) -> dict[str, Any]:
    """Return what an extra has a value for: a form leaves empty fields in it."""
    return {name: value for name, value in extra.items() if value not in (None, "")}


def is_true(value: object) -> bool:
    """Tell whether an extra is switched on, as JSON or as text."""
    return value is True or str(value).lower() in ("true", "1", "yes", "on")


def refused(connection: Connection, message: str) -> ConnectionRefused:
    """Return the refusal of a connection."""
    return ConnectionRefused(f"connection {connection.conn_id}: {message}")


def _ask(hook: Any) -> URL | None:
    """By its property, or, of older hooks, by their text; None where it has neither."""
    try:
        return make_url(hook.sqlalchemy_url)
    except (AttributeError, NotImplementedError):
        get_uri = getattr(hook, "get_uri", None)
        return make_url(get_uri()) if get_uri else None


def _libpq_text(value: object) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


def _refuse_unknown_to_libpq(connection: Connection, parameters: Mapping[str, str]) -> None:
    from psycopg.pq import Conninfo  # PostgreSQL's client: not while parsing

    known = {one.keyword.decode() for one in Conninfo.get_defaults()}
    for name in sorted(set(parameters) - known):
        raise refused(
            connection,
            f"got {name!r} in its extra, which PostgreSQL's client does not know; expected its parameters, such as "
            "sslmode and sslrootcert, and those of Airflow's postgres hook",
        )


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
