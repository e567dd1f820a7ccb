"""The rights of Tallystick's role in the verdict store, table by table.

Decides no shape: schema.py does. Such a role reads all tables. It owns nothing, so it changes no table, trigger or
function, and no APPEND_ONLY row. What triggers keep is written by the triggers alone, as the owner of the schema.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from psycopg import sql
from sqlalchemy import Connection, text

from tallystick.model.errors import TallystickError
from tallystick.store.schema import SCHEMA, VERSION_TABLE


class RoleRefused(TallystickError):
    """The rights cannot be given to this role, or would be no limit for it."""


@dataclass(frozen=True, kw_only=True)
class Rights:
    """The rights beside reading. may_update: columns."""

    may_insert: bool = False
    may_update: tuple[str, ...] = ()


_READ = Rights()
_APPEND = Rights(may_insert=True)

RIGHTS: Mapping[str, Rights] = {
    "contract_version": _APPEND,
    "sample": _APPEND,
    "cut": Rights(may_insert=True, may_update=("attempt", "open")),
    "cut_slice": _APPEND,
    "verdict": _APPEND,
    "expectations_outcome": _APPEND,
    "item_break": _APPEND,
    "break_total": _READ,
    "open_item": _APPEND,
    "item_life": _READ,
    "standing_item": _READ,
    "standing_total": _READ,
    "alert": _APPEND,
    "alert_delivery": _APPEND,
    "compensation_plan": _APPEND,
    "compensation_action": Rights(
        may_insert=True,
        may_update=("plan_id", "state", "outcome", "recorded_at", "effect", "source", "reopened", "void_progress"),
    ),
    "acting_switch": _APPEND,
    "audit": _APPEND,
    "executor_key": _READ,
    "served_revision": _READ,
    "prune_mark": _READ,
    VERSION_TABLE: _READ,
}
"""Every table of the schema. A table that is not here is closed to the role."""

_FUNCTIONS = ("plan_in_short(jsonb)",)
"""That an INSERT of the role computes a column by. Triggers fire without a right to call their function."""


def grant(connection: Connection, role: str) -> None:
    """Give a role these rights and no other ones here. Raises RoleRefused. Safe to do again."""
    _refuse_owner(connection, role)
    for statement in grants(role):
        connection.exec_driver_sql(statement.replace("%", "%%"))
    _refuse_more(connection, role)


def granted_roles(connection: Connection) -> list[str]:
    """Name the roles that have these rights from an earlier grant: whoever but the owner may INSERT into audit."""
    statement = (
        "select r.rolname from pg_class as c cross join lateral aclexplode(c.relacl) as a "
        "join pg_roles as r on r.oid = a.grantee "
        "where c.oid = to_regclass(:audit) and a.privilege_type = 'INSERT' and a.grantee <> c.relowner"
    )
    return sorted(connection.scalars(text(statement), {"audit": f"{SCHEMA}.audit"}))


def grants(role: str) -> list[str]:
    """Write the statements. The first ones take away what was there, so that all together leave exactly RIGHTS."""
    named = _quoted(role)
    return [
        f"revoke all on all functions in schema {SCHEMA} from public",
        *(f"revoke all on {what} from {named}" for what in _everything()),
        f"grant usage on schema {SCHEMA} to {named}",
        *(f"grant {_privileges(rights)} on {SCHEMA}.{table} to {named}" for table, rights in RIGHTS.items()),
        *(f"grant execute on function {SCHEMA}.{function} to {named}" for function in _FUNCTIONS),
    ]


def _everything() -> tuple[str, ...]:
    kinds = ("tables", "sequences", "functions")
    return (f"schema {SCHEMA}", *(f"all {kind} in schema {SCHEMA}" for kind in kinds))


def _privileges(rights: Rights) -> str:
    insert = ("insert",) if rights.may_insert else ()
    update = (f"update ({', '.join(map(_quoted, rights.may_update))})",) if rights.may_update else ()
    return ", ".join(("select", *insert, *update))


def _quoted(name: str) -> str:
    return sql.Identifier(name).as_string()


def _refuse_owner(connection: Connection, role: str) -> None:
    """Raise RoleRefused where the role is not there, or may do all that the owner may."""
    statement = (
        "select pg_has_role(r.oid, n.nspowner, 'member') or pg_has_role(r.oid, d.datdba, 'member') "
        "from pg_roles as r, pg_namespace as n, pg_database as d "
        "where r.rolname = :role and n.nspname = :schema and d.datname = current_database()"
    )
    is_owner = connection.scalar(text(statement), {"role": role, "schema": SCHEMA})
    if is_owner is None:
        raise RoleRefused(f"--grant-to {role}: there is no such role; create it: CREATE ROLE {_quoted(role)} LOGIN")
    if is_owner:
        raise RoleRefused(
            f"--grant-to {role}: it owns the database or schema {SCHEMA}, is a member of the role that does, or a "
            "superuser, so no grant limits it; expected another role, as which Tallystick then connects"
        )


def _refuse_more(connection: Connection, role: str) -> None:
    """Raise RoleRefused where the role has by others what no grant here gives, as a member or as PUBLIC."""
    statement = (
        "select c.relname from pg_class as c, pg_roles as r where r.rolname = :role and c.relkind = 'r' "
        "and c.relnamespace = to_regnamespace(:schema) "
        "and has_table_privilege(r.oid, c.oid, 'UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER') order by 1 limit 1"
    )
    table = connection.scalar(text(statement), {"role": role, "schema": SCHEMA})
    if table is not None:
        raise RoleRefused(
            f"--grant-to {role}: as a member of another role, or as PUBLIC, it may do more to {SCHEMA}.{table} than "
            "add and read; expected a role without that"
        )
