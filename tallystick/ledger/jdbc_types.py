"""Uses that a column of any database is good for, by the type that SQLAlchemy's dialect reflects. Asks no database."""

from typing import Any

from sqlalchemy import types

_EXACT_BY_NAME = ("MONEY", "SMALLMONEY")
"""SQL Server's, of four decimals; its dialect calls them no numbers."""


def is_exact_number(column_type: types.TypeEngine[Any], *, dialect: str) -> bool:
    """Return whether the column holds decimals or integers as they were written: no floating point, and no text.

    SQLite keeps a decimal as floating point, whatever its type says.
    """
    inner = decorated(column_type)
    if isinstance(inner, types.Float):
        return False
    if dialect == "sqlite":
        return isinstance(inner, types.Integer)
    return isinstance(inner, types.Numeric | types.Integer) or name_of(inner) in _EXACT_BY_NAME


def decorated(column_type: types.TypeEngine[Any]) -> types.TypeEngine[Any]:
    """Return the type that a dialect's own type is made of."""
    return column_type.impl_instance if isinstance(column_type, types.TypeDecorator) else column_type


def name_of(column_type: types.TypeEngine[Any]) -> str:
    """Return the name by which SQL says the type, in capitals."""
    return column_type.__visit_name__.upper()
