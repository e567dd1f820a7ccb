"""Connections that a contract names, as the lab's Airflow gets them from a person's environment.

TALLYSTICK_CONN_<ID>, which the command line of `tallystick` reads, is turned into what Airflow keeps; AIRFLOW_CONN_<ID>
is passed on as it stands, and goes before it. Names that the lab has itself stay the lab's.
"""

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict

from lab.rounds.own_contracts import Document

AirflowConnection = str | dict[str, Any]
"""As AIRFLOW_CONN_<ID> has it: text, or fields that are written as JSON."""


class ConnectionNotGiven(ValueError):
    """A connection has no value that Airflow could be given."""


@dataclass(frozen=True, kw_only=True)
class OwnConnections:
    """Id to connection, and a sentence for each that a contract names and that Airflow does not get."""

    given: Mapping[str, AirflowConnection] = field(repr=False)
    faults: tuple[str, ...]


def read_connections(
    contracts: Iterable[Document], environment: Mapping[str, str], *, without: Collection[str]
) -> OwnConnections:
    """Read what these contracts name from the environment, but for these ids."""
    given: dict[str, AirflowConnection] = {}
    faults = []
    for contract in contracts:
        for connection_id, kind in _named(contract).items():
            try:
                text = _text(connection_id, kind, environment, lab_has_it=connection_id in without)
            except ConnectionNotGiven as fault:
                faults.append(f"{contract['contract']}, {connection_id}: {fault}")
                continue
            if text is not None:
                given[connection_id] = text
    return OwnConnections(given=given, faults=tuple(faults))


def airflow_variable(connection_id: str) -> str:
    """Name the variable that Airflow reads."""
    return f"AIRFLOW_CONN_{connection_id.upper()}"


def postgres_connection(dsn: str) -> dict[str, Any]:
    """Turn a PostgreSQL URI into Airflow's fields, its parameters into the extra. Raises ConnectionNotGiven."""
    try:
        said = conninfo_to_dict(dsn)
        port = int(str(said.pop("port", 5432)))
    except (ProgrammingError, ValueError):
        raise ConnectionNotGiven(
            "expected one server's PostgreSQL URI, such as postgresql://user:password@host:port/database"
        ) from None
    fields = {"host": "host", "login": "user", "password": "password", "schema": "dbname"}
    named = {name: said.pop(ours, "") for name, ours in fields.items()}
    return {"conn_type": "postgres", "port": port} | named | {"extra": said}


def _named(contract: Document) -> dict[str, str]:
    """Connection id to what is behind it: a kind of ledger or of sink, kafka, schema_registry, or airflow."""
    ledger, rules = contract["ledger"], contract.get("compensation") or {}
    kind = ledger.get("kind", "postgres")
    named = {contract["kafka"]["connection"]: "kafka", ledger["connection"]: "kafka" if kind == "topic" else kind}
    if primary := ledger.get("primary_connection"):
        named[primary] = kind
    if registry := contract["kafka"].get("schema_registry"):
        named[registry] = "schema_registry"
    for part, behind in (("post", "postgres"), ("trigger", "airflow")):
        if rules.get(part):
            named[rules[part]["connection"]] = behind
    sinks = (contract.get("alert") or {}).get("sinks") or ()
    return named | {sink["connection"]: sink["kind"] for sink in sinks if sink.get("connection")}


def _text(
    connection_id: str, kind: str, environment: Mapping[str, str], *, lab_has_it: bool
) -> AirflowConnection | None:
    """None: the lab's is taken, and nobody has given another. Raises ConnectionNotGiven."""
    as_it_stands = environment.get(airflow_variable(connection_id))
    outside = f"TALLYSTICK_CONN_{connection_id.upper()}"
    text = environment.get(outside)
    if lab_has_it:
        if as_it_stands or text:
            raise ConnectionNotGiven("`make up` has its own of this name; call yours by another")
        return None
    if as_it_stands:
        return as_it_stands
    if not text:
        raise ConnectionNotGiven(f"expected the environment variable {outside} or {airflow_variable(connection_id)}")
    return _fields(kind, text)


def _fields(kind: str, text: str) -> AirflowConnection:
    """The connection as Tallystick's plugin reads it in Airflow. Raises ConnectionNotGiven."""
    match kind:
        case "kafka":
            return {"conn_type": "kafka", "extra": _json(text)}
        case "postgres":
            return postgres_connection(text)
        case "jdbc":
            return {"conn_type": "generic", "extra": _json(text) if text.startswith("{") else {"url": text}}
        case "parquet":
            return {"conn_type": "generic", "extra": {"url": text}}
        case "iceberg":
            return {"conn_type": "generic", "extra": _json(text)}
        case "schema_registry":
            return _registry(_json(text))
    given = _json(text) if text.startswith("{") else {"address": text}
    address, login, secret = (given.pop(name, "") for name in ("address", "login", "secret"))
    account = {"login": login, "password": secret}
    match kind:
        case "email":
            server = urlsplit(address)
            return {"conn_type": "smtp", "host": server.hostname, "port": server.port, "extra": given} | account
        case "apprise":
            return {"conn_type": "generic", "password": secret}
        case _:
            return {"conn_type": "http"} | account | _place(address)


def _registry(settings: dict[str, Any]) -> AirflowConnection:
    place = _place(str(settings.pop("url", "")))
    login, _, password = str(settings.pop("basic.auth.user.info", "")).partition(":")
    account = {"login": login, "password": password}
    return {"conn_type": "http", "host": place.get("host", "")} | account | {"extra": settings | place.get("extra", {})}


def _json(text: str) -> dict[str, Any]:
    try:
        given = json.loads(text)
    except json.JSONDecodeError:
        given = None
    if not isinstance(given, dict):
        raise ConnectionNotGiven('expected a JSON object, such as {"bootstrap.servers": "broker:9092"}')
    return given


def _place(address: str) -> dict[str, Any]:
    """Host and path of an HTTP address; nothing of an empty one."""
    parts = urlsplit(address)
    path = f"{parts.path}?{parts.query}" if parts.query else parts.path
    return {"host": f"{parts.scheme}://{parts.netloc}", "extra": {"endpoint": path}} if parts.netloc else {}
