"""A PostgreSQL address as libpq reads it, and the same said to Spark's JDBC driver.

Decides what that driver can be told of it. What it cannot is refused before anything is read: otherwise psycopg and
COPY would hold the server to one thing, and Spark would read the same rows from whoever answers. Opens nothing.
Sources: PostgreSQL manual, 32.1.2 and 32.19; pgjdbc 42.7, org.postgresql.PGProperty and ssl.LibPQFactory.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

import psycopg
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import Conninfo
from sqlalchemy import URL

from tallystick.connections.connections import ConnectionNotGiven

JDBC_READ_ONLY = {"readOnly": "true", "readOnlyMode": "always"}
"""What makes Spark's sessions refuse to write. Not by default_transaction_read_only: the driver takes a server whose
sessions begin read-only for a standby.
"""

_SAME_FOR_BOTH = {
    "user": "user",
    "password": "password",
    "options": "options",
    "sslmode": "sslmode",
    "sslrootcert": "sslrootcert",
    "sslcert": "sslcert",
    "sslkey": "sslkey",
    "sslnegotiation": "sslNegotiation",
    "channel_binding": "channelBinding",
    "require_auth": "requireAuth",
}
"""libpq's parameter to the driver's property that takes the same words."""

_PLACE = ("host", "port", "dbname")

_WITHOUT_WEIGHT = (
    "application_name",
    "fallback_application_name",
    "connect_timeout",
    "client_encoding",
    "keepalives",
    "keepalives_idle",
    "keepalives_interval",
    "keepalives_count",
    "tcp_user_timeout",
    "load_balance_hosts",
    "target_session_attrs",
    "sslsni",
)
"""They change neither who is believed nor who sees what is sent. Readers ask for a primary themselves."""

_BY_DEFAULT = {"gssencmode": ("disable", "prefer"), "sslcompression": ("0",), "gssdelegation": ("0",)}
"""Values that ask for nothing that the driver would not do as well."""

_SYSTEMS_CAS = "system"


def as_asked(dsn: str) -> dict[str, str]:
    """Return the parameters of an address for libpq: the address's own, and those of the environment (PGSSLMODE).

    Said outright, so that an executor with another environment asks the same. Raises ConnectionNotGiven, without value.
    """
    try:
        given = conninfo_to_dict(dsn)
    except psycopg.ProgrammingError:
        raise ConnectionNotGiven(
            "a PostgreSQL address is none that libpq reads: expected postgresql://user:password@host:port/database, "
            "with parameters such as ?sslmode=verify-full behind it"
        ) from None
    return _of_environment() | {name: str(value) for name, value in given.items()}


def as_asked_of_psycopg(url: URL) -> dict[str, str]:
    """The same of an SQLAlchemy URL whose driver is psycopg."""
    _, given = url.get_dialect()().create_connect_args(url)
    return _of_environment() | {name: str(value) for name, value in given.items()}


def proves_server(asked: Mapping[str, str]) -> bool:
    """Return whether libpq checks the server's certificate. With a file of CAs it does so also where sslmode is only
    require.
    """
    mode = asked.get("sslmode")
    if mode != "require":
        return mode in ("verify-ca", "verify-full")
    return bool(asked.get("sslrootcert")) or (Path.home() / ".postgresql" / "root.crt").exists()


def first_server(dsn: str) -> URL:
    """The server that an address names first, without the account. Raises ConnectionNotGiven."""
    asked = as_asked(dsn)
    host, port = (asked.get(name, "").split(",")[0] for name in ("host", "port"))
    return URL.create("postgresql", host=host or None, port=int(port) if port else None, database=asked.get("dbname"))


def with_settings(asked: Mapping[str, str], *settings: str) -> dict[str, str]:
    """The same, and every session begins with these settings, `name=value`, behind those that the address sets."""
    ours = (f"-c {setting}" for setting in settings)
    return {**asked, "options": " ".join([*filter(None, [asked.get("options")]), *ours])}


def jdbc_options(asked: Mapping[str, str]) -> dict[str, str]:
    """Return `as_asked` as options of Spark's JDBC source: set on the reader, so that no secret reaches argv.

    Raises ConnectionNotGiven with the parameter that Spark's driver cannot be told, and what to do.
    """
    _refuse_untold(asked)
    told = {theirs: asked[name] for name, theirs in _SAME_FOR_BOTH.items() if asked.get(name)}
    if told.get("sslmode") == "require" and proves_server(asked):
        told["sslmode"] = "verify-ca"
    if key := asked.get("sslkey"):
        told["pemKeyAlgorithm"] = _algorithm_of(Path(key))
    return {"url": _jdbc_url(asked)} | told


def _of_environment() -> dict[str, str]:
    """libpq's own parameters that the environment states."""
    known = ((one.keyword.decode(), one.envvar, one.val) for one in Conninfo.get_defaults())
    return {name: value.decode() for name, variable, value in known if variable and value and _is_set(variable)}


def _is_set(variable: bytes) -> bool:
    return variable.decode() in os.environ


def _jdbc_url(asked: Mapping[str, str]) -> str:
    hosts = asked.get("host", "").split(",")
    ports = asked.get("port", "").split(",")
    ports = ports * len(hosts) if len(ports) == 1 else ports
    places = (f"{_bracketed(host)}:{port or 5432}" for host, port in zip(hosts, ports, strict=True))
    return f"jdbc:postgresql://{','.join(places)}/{quote(asked.get('dbname') or asked.get('user', ''), safe='')}"


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _refuse_untold(asked: Mapping[str, str]) -> None:
    hosts = asked.get("host", "").split(",")
    if not all(hosts) or any(host.startswith(("/", "@")) for host in hosts):
        raise _refused("host", "the name of a host: Spark's JDBC driver knows no socket in a folder")
    if len(asked.get("port", "").split(",")) not in (1, len(hosts)):
        raise _refused("port", "one port, or one for each host")
    if asked.get("sslrootcert") == _SYSTEMS_CAS:
        raise _refused(
            "sslrootcert=system",
            "a file of certificates, such as /etc/ssl/certs/ca-certificates.crt: Java believes CAs of its own",
        )
    for name, value in asked.items():
        known = name in _SAME_FOR_BOTH or name in _PLACE or name in _WITHOUT_WEIGHT
        if not known and value and value not in _BY_DEFAULT.get(name, ()):
            raise _refused(name, _INSTEAD.get(name, "an address without it"))


_INSTEAD = {
    "service": "its parameters written out in the address",
    "servicefile": "the service's parameters written out in the address",
    "passfile": "the password in the connection",
    "hostaddr": "host alone",
    "sslpassword": "a key without a password, in a file that only this user reads",
    "sslcrl": "an address without it: that driver asks no list of revoked certificates",
    "sslcrldir": "an address without it: that driver asks no list of revoked certificates",
    "gssencmode": "sslmode=verify-full, by which that driver encrypts",
}
"""What to write in place of a parameter, where there is something."""


def _refused(name: str, expected: str) -> ConnectionNotGiven:
    return ConnectionNotGiven(
        f"a ledger's PostgreSQL address: {name} cannot be told to Spark's JDBC driver, which reads rows of this ledger "
        f"too, and leaving it out would ask less of the server than the connection does; expected {expected}"
    )


def _algorithm_of(key: Path) -> str:
    """Of a client's key that libpq and the driver both read: PEM, PKCS#8, not encrypted. Raises ConnectionNotGiven."""
    try:
        text = key.read_bytes()
    except OSError as error:
        raise ConnectionNotGiven(f"a ledger's PostgreSQL address: sslkey: {key}: {error.strerror}") from None
    try:
        read = serialization.load_pem_private_key(text, password=None) if b"BEGIN PRIVATE KEY" in text else None
    except ValueError:
        read = None
    match read:
        case rsa.RSAPrivateKey():
            return "RSA"
        case ec.EllipticCurvePrivateKey():
            return "EC"
    raise ConnectionNotGiven(
        f"a ledger's PostgreSQL address: sslkey: {key} is no key that both libpq and Spark's JDBC driver read; "
        "expected "
        "RSA or an elliptic curve in PKCS#8, PEM, not encrypted: openssl pkcs8 -topk8 -nocrypt -in OLD -out NEW"
    )
