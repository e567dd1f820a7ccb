"""The use of a column of any database, by the type that SQLAlchemy's dialect reflects. Asks no database."""

from typing import Any

from sqlalchemy import BindParameter, ColumnElement, cast, types

_EXACT_BY_NAME = (("mssql", "MONEY"), ("mssql", "SMALLMONEY"))
"""Database and type: of four decimals; the dialect calls them no numbers. PostgreSQL's MONEY is said with a sign of its
locale, such as $1,234.50.
"""

_MOMENTS_BY_NAME = ("TIMESTAMP_NTZ", "TIMESTAMP_LTZ", "TIMESTAMP_TZ")
"""Snowflake's; its dialect calls them no timestamps."""

_WITH_ZONE_BY_NAME = (
    ("snowflake", "TIMESTAMP_LTZ"),
    ("snowflake", "TIMESTAMP_TZ"),
    ("databricks", "TIMESTAMP"),
    ("mssql", "DATETIMEOFFSET"),
)
"""Database and type: moments that are told apart from a wall clock's, though their dialects do not say so."""

_ROUNDED = (("mssql", "DATETIME"), ("mssql", "SMALLDATETIME"))
"""They keep no microseconds: of DATETIME the server takes no text that has them, and what it says back is rounded."""


class InItsCharacters(types.TypeDecorator[str]):
    """Texts in a set of characters and a collation of MariaDB's or MySQL's: what the set lacks becomes `?`."""

    impl = types.String
    cache_ok = True

    def __init__(self, characters: str, collation: str) -> None:
        super().__init__()
        self.characters, self.collation = characters, collation

    def bind_expression(self, bindparam: BindParameter[str]) -> ColumnElement[str]:
        """Return the value as the server has to write it."""
        from sqlalchemy.dialects import mysql

        return cast(bindparam, mysql.CHAR(charset=self.characters)).collate(self.collation)


def is_integer(column_type: types.TypeEngine[Any]) -> bool:
    """Return whether the column holds whole numbers alone: Oracle's NUMBER and Snowflake's DECIMAL by their scale."""
    inner = _decorated(column_type)
    if isinstance(inner, types.Numeric):  # Oracle's NUMBER is an Integer too, whatever its scale
        return inner.scale == 0
    return isinstance(inner, types.Integer)


def is_moment(column_type: types.TypeEngine[Any], *, dialect: str) -> bool:
    """Return whether the column holds timestamps that are compared to the microsecond.

    SQLite keeps a timestamp as any text.
    """
    name = _name_of(column_type)
    if dialect == "sqlite" or (dialect, name) in _ROUNDED:
        return False
    return isinstance(_decorated(column_type), types.DateTime) or name in _MOMENTS_BY_NAME


def has_zone(column_type: types.TypeEngine[Any], *, dialect: str) -> bool:
    """Return whether a timestamp is a moment, and not what a clock on some wall said."""
    says_so = getattr(column_type, "timezone", False) or getattr(column_type, "local_timezone", False)
    return bool(says_so) or (dialect, _name_of(column_type)) in _WITH_ZONE_BY_NAME


def is_exact_number(column_type: types.TypeEngine[Any], *, dialect: str) -> bool:
    """Return whether the column holds decimals or integers as they were written: no floating point, and no text.

    SQLite keeps a decimal as floating point, whatever its type says.
    """
    inner = _decorated(column_type)
    if isinstance(inner, types.Float):
        return False
    if dialect == "sqlite":
        return isinstance(inner, types.Integer)
    return isinstance(inner, types.Numeric | types.Integer) or (dialect, _name_of(inner)) in _EXACT_BY_NAME


def _decorated(column_type: types.TypeEngine[Any]) -> types.TypeEngine[Any]:
    """Return the type that a dialect's own type is made of."""
    return column_type.impl_instance if isinstance(column_type, types.TypeDecorator) else column_type


def _name_of(column_type: types.TypeEngine[Any]) -> str:
    """Return the type's name: dialects call the class as SQL does."""
    return type(column_type).__name__.upper()
