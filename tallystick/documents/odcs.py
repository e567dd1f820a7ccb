"""A contract as an Open Data Contract (ODCS 3.1), and a first contract out of one.

Source: https://bitol-io.github.io/open-data-contract-standard/. The whole contract stands in a custom property too, so
what was written comes back as it was. A data contract of somebody else names fields, not what they mean to us: roles
are taken by names and types, and what has none is said.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from tallystick.contract.contract import Contract
from tallystick.contract.event import EventFields
from tallystick.contract.field_path import document_of, path_of
from tallystick.contract.ledger import LedgerColumns
from tallystick.contract.sql_names import bare, spelled
from tallystick.model.errors import TallystickError
from tallystick.proposal.fields import ROLE_NAMES, ROLES

API_VERSION = "v3.1.0"
_PROPERTY = "tallystick"
_TOPICS, _TABLES = ("topic", "stream"), ("table", "view")
_TYPES = {"amount_minor": ("integer", "number")}


class OdcsRefused(TallystickError):
    """A data contract has no topic and table that a contract can be made of. One sentence for each thing missing."""


def odcs_document(contract: Contract) -> dict[str, Any]:
    """Return the document: each topic and the ledger's table as a schema, and the reconciliation as their quality."""
    described = {"description": {"purpose": contract.description}} if contract.description else {}
    return {
        "apiVersion": API_VERSION,
        "kind": "DataContract",
        "id": contract.name,
        "name": contract.name,
        "version": str(contract.version),
        "status": "active",
        **described,
        "team": {"name": contract.owner},
        "schema": [
            *(_topic(contract, leg, topic) for leg, topic in contract.legs.items()),
            *([_table(contract)] if contract.ledger.table else []),
        ],
        "customProperties": [
            {"property": _PROPERTY, "value": contract.model_dump(mode="json", exclude_defaults=True)},
        ],
    }


def _topic(contract: Contract, leg: str, topic: str) -> dict[str, Any]:
    names = _named(contract.event)
    major = contract.event.amount_unit == "major"
    return {
        "name": topic,
        "physicalType": "topic",
        "logicalType": "object",
        "description": f"Leg {leg}",
        "properties": _properties(names, amount_type="number" if major else "integer"),
        "quality": [_quality(contract)],
    }


def _table(contract: Contract) -> dict[str, Any]:
    columns = contract.ledger.columns
    names = _named(columns)
    major = contract.ledger.amount_unit == "major"
    key = {"name": bare(columns.row_id), "logicalType": "string", "primaryKey": True, "required": True}
    return {
        "name": contract.ledger.table,
        "physicalType": "table",
        "logicalType": "object",
        "properties": [key, *_nested(_types(names, "number" if major else "integer"))],
        "quality": [_quality(contract)],
    }


def _named(part: EventFields | LedgerColumns) -> dict[str, str]:
    """Return the name for each role; a constant has none, and stands in no record and no row."""
    columns = isinstance(part, LedgerColumns)
    return {role: bare(name) if columns else name for role in ROLES if isinstance(name := getattr(part, role), str)}


def _properties(names: Mapping[str, str], *, amount_type: str) -> list[dict[str, Any]]:
    """One property for each name: two roles may share it. A path has one for each of its keys, inside each other."""
    return _nested(document_of(_types(names, amount_type)))


def _types(names: Mapping[str, str], amount_type: str) -> dict[str, str]:
    """Return the type of each name; where there is no money, no name has it."""
    return {name: amount_type if role == "amount_minor" else "string" for role, name in names.items()}


def _nested(types: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {"name": name, "logicalType": "object", "required": True, "properties": _nested(kind)}
        if isinstance(kind, dict)
        else {"name": name, "logicalType": kind, "required": True}
        for name, kind in types.items()
    ]


def _quality(contract: Contract) -> dict[str, Any]:
    return {
        "name": "exactly_once",
        "type": "custom",
        "engine": "tallystick",
        "implementation": f"tallystick run {contract.name}.yaml",
        "dimension": "completeness",
        "method": "reconciliation",
        "severity": "error",
        "scheduler": "cron",
        "schedule": contract.schedule,
        "description": "Each committed event stands in the ledger once, with the same money, and each row in the log",
    }


def contract_of_odcs(
    document: Mapping[str, Any], *, kafka: str | None, ledger: str | None, now: datetime
) -> dict[str, Any]:
    """Return a contract as a mapping, to be read and checked like any other. Raises OdcsRefused.

    kafka, ledger: connection ids, which a data contract of somebody else does not have.
    """
    if document.get("kind") != "DataContract":
        got = f"got {document['kind']!r}" if "kind" in document else "missing"
        raise OdcsRefused(f"kind: {got}; expected DataContract, an Open Data Contract")
    for custom in _mappings(document.get("customProperties")):
        if custom.get("property") == _PROPERTY and isinstance(custom.get("value"), dict):
            return dict(custom["value"])
    schemas = list(_mappings(document.get("schema")))
    topics = [one for one in schemas if one.get("physicalType") in _TOPICS]
    tables = [one for one in schemas if one.get("physicalType") in _TABLES]
    missing = [
        *(["no schema with physicalType topic; expected one for each leg"] if not topics else []),
        *([f"{len(tables)} schemas with physicalType table; expected one, the ledger's"] if len(tables) != 1 else []),
        *(["no connection of the cluster; expected --kafka CONNECTION_ID"] if not kafka else []),
        *(["no connection of the ledger; expected --ledger CONNECTION_ID"] if not ledger else []),
    ]
    if missing:
        raise OdcsRefused("\n".join(missing))
    return _first_contract(document, topics, tables[0], kafka=str(kafka), ledger=str(ledger), now=now)


def _first_contract(
    document: Mapping[str, Any],
    topics: list[Mapping[str, Any]],
    table: Mapping[str, Any],
    *,
    kafka: str,
    ledger: str,
    now: datetime,
) -> dict[str, Any]:
    said, stored = _fields(topics[0]), _fields(table)
    paired = {role: (_field_of(role, said), _field_of(role, stored)) for role in ROLES}
    row_id = next((name for name, field in stored.items() if field.get("primaryKey")), None)
    missing = [
        f"{role}: no property of {_name_of(side)} is called so; expected one such as {words}"
        for role, pair in paired.items()
        for name, side, words in zip(pair, (topics[0], table), _defaults(role), strict=True)
        if name is None
    ]
    if row_id is None:
        missing.append("row_id: no property of the table has primaryKey; expected one")
    if missing:
        raise OdcsRefused("\n".join(missing))
    name = re.sub(r"[^a-z0-9_]", "_", str(document.get("name") or document.get("id") or "").lower())
    return {
        "contract": name,
        "version": 1,
        "owner": _owner(document) or name,
        "direction": "topic_to_ledger",
        "schedule": "0 * * * *",
        "start_date": now.astimezone(UTC).replace(minute=0, second=0, microsecond=0).isoformat(),
        "kafka": {"connection": kafka},
        "legs": {_leg(topic): _name_of(topic) for topic in topics},
        "event": {role: pair[0] for role, pair in paired.items()},
        "ledger": {
            "connection": ledger,
            "table": _name_of(table),
            "columns": {"row_id": spelled(bare(str(row_id)))}
            | {role: spelled(bare(str(pair[1]))) for role, pair in paired.items()},
        },
    }


def _fields(schema: Mapping[str, Any], *, outside: tuple[str, ...] = ()) -> dict[str, Mapping[str, Any]]:
    """Return the properties by their paths. outside: the names of the objects that they lie in."""
    found: dict[str, Mapping[str, Any]] = {}
    for one in _mappings(schema.get("properties")):
        names = (*outside, _name_of(one))
        found |= _fields(one, outside=names) if one.get("properties") else {path_of(names): one}
    return found


def _field_of(role: str, fields: Mapping[str, Mapping[str, Any]]) -> str | None:
    """The field of a role: by our default name, then by a name that speaks of it."""
    types = _TYPES.get(role)
    fitting = [name for name, field in fields.items() if types is None or field.get("logicalType") in types]
    by_default = next((name for name in _defaults(role) if name in fitting), None)
    return by_default or next((name for name in fitting if ROLE_NAMES[role].search(name.replace(".", "_"))), None)


def _defaults(role: str) -> tuple[str, str]:
    return EventFields.model_fields[role].default, LedgerColumns.model_fields[role].default


def _name_of(schema: Mapping[str, Any]) -> str:
    return str(schema.get("physicalName") or schema.get("name"))


def _leg(topic: Mapping[str, Any]) -> str:
    return re.sub(r"[^a-z0-9_]", "_", _name_of(topic).rpartition(".")[2].lower())


def _owner(document: Mapping[str, Any]) -> str | None:
    team = document.get("team")
    name = team.get("name") if isinstance(team, dict) else None
    return str(name) if name else None


def _mappings(values: Any) -> Iterator[Mapping[str, Any]]:
    for value in values if isinstance(values, list) else ():
        if isinstance(value, dict):
            yield value
