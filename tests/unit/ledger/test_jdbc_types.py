"""What the columns of each database are good for, by the types of SQLAlchemy's dialects, and the SQL that follows.

No server runs it. The dialects of Snowflake, BigQuery and Databricks are packages of their own: their SQL is looked at
where they are installed.
"""

from importlib import import_module
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import Column, MetaData, Table, types
from sqlalchemy.dialects import mssql, mysql, oracle, postgresql

from tallystick.contract.ledger import LedgerSection
from tallystick.ledger.jdbc import JdbcLedger
from tallystick.ledger.jdbc_types import has_zone, is_exact_number, is_integer, is_moment
from tests.unit.builders import NOON, ledger_slice_of


@pytest.mark.parametrize(
    ("dialect", "column_type", "exact"),
    [
        ("mysql", mysql.DECIMAL(18, 2), True),
        ("mysql", mysql.BIGINT(unsigned=True), True),
        ("mysql", mysql.DOUBLE(), False),
        ("mysql", mysql.FLOAT(), False),
        ("mysql", types.VARCHAR(20), False),
        ("oracle", oracle.NUMBER(18, 2), True),
        ("oracle", oracle.BINARY_DOUBLE(), False),
        ("oracle", oracle.FLOAT(), False),
        ("mssql", mssql.MONEY(), True),
        ("mssql", mssql.SMALLMONEY(), True),
        ("mssql", mssql.REAL(), False),
        ("postgresql", postgresql.NUMERIC(), True),
        ("postgresql", postgresql.DOUBLE_PRECISION(), False),
        ("postgresql", postgresql.MONEY(), False),
        ("sqlite", types.Integer(), True),
        ("sqlite", types.DECIMAL(18, 2), False),
    ],
    ids=str,
)
def test_money_in_major_units_is_read_from_exact_columns_alone(
    dialect: str, column_type: types.TypeEngine[Any], exact: bool
) -> None:
    assert is_exact_number(column_type, dialect=dialect) is exact


class TIMESTAMP_NTZ(types.TypeEngine[Any]):
    """A stand-in for Snowflake's type of this name, which is made of no other."""


class TIMESTAMP_LTZ(types.TypeEngine[Any]):
    """The same of its moments."""


class TIMESTAMP(types.TypeDecorator[Any]):
    """A stand-in for Databricks's type of this name."""

    impl = types.DateTime
    cache_ok = True


@pytest.mark.parametrize(
    ("dialect", "column_type", "whole", "moment", "zone"),
    [
        ("mysql", mysql.BIGINT(unsigned=True), True, False, False),
        ("mysql", mysql.DATETIME(fsp=6), False, True, False),
        ("mysql", mysql.DECIMAL(18, 2), False, False, False),
        ("mysql", mysql.YEAR(), False, False, False),
        ("oracle", oracle.NUMBER(19, 0), True, False, False),
        ("oracle", oracle.NUMBER(18, 2), False, False, False),
        ("oracle", oracle.NUMBER(), False, False, False),
        ("oracle", oracle.DATE(), False, True, False),
        ("oracle", oracle.TIMESTAMP(), False, True, False),
        ("oracle", oracle.TIMESTAMP(timezone=True), False, True, True),
        ("oracle", oracle.TIMESTAMP(local_timezone=True), False, True, True),
        ("mssql", mssql.BIGINT(), True, False, False),
        ("mssql", mssql.DATETIME2(), False, True, False),
        ("mssql", mssql.DATETIMEOFFSET(), False, True, True),
        ("mssql", mssql.DATETIME(), False, False, False),
        ("mssql", mssql.SMALLDATETIME(), False, False, False),
        ("mssql", mssql.TIMESTAMP(), False, False, False),
        ("snowflake", types.DECIMAL(38, 0), True, False, False),
        ("snowflake", types.DECIMAL(18, 2), False, False, False),
        ("snowflake", TIMESTAMP_NTZ(), False, True, False),
        ("snowflake", TIMESTAMP_LTZ(), False, True, True),
        ("databricks", types.BigInteger(), True, False, False),
        ("databricks", TIMESTAMP(), False, True, True),
        ("bigquery", types.Integer(), True, False, False),
        ("bigquery", types.TIMESTAMP(), False, True, False),
        ("bigquery", types.Numeric(), False, False, False),
        ("postgresql", postgresql.TIMESTAMP(timezone=True), False, True, True),
        ("sqlite", types.TIMESTAMP(), False, False, False),
        ("sqlite", types.Float(), False, False, False),
    ],
    ids=str,
)
def test_a_ledger_is_ordered_by_whole_numbers_and_by_moments_of_microseconds(
    dialect: str, column_type: types.TypeEngine[Any], whole: bool, moment: bool, zone: bool
) -> None:
    found = (is_integer(column_type), is_moment(column_type, dialect=dialect), has_zone(column_type, dialect=dialect))
    assert found == (whole, moment, zone)


DIALECTS = {
    "oracle": ("sqlalchemy.dialects.oracle.oracledb", "OracleDialect_oracledb"),
    "mssql": ("sqlalchemy.dialects.mssql.pyodbc", "MSDialect_pyodbc"),
    "snowflake": ("snowflake.sqlalchemy.snowdialect", "dialect"),
    "bigquery": ("sqlalchemy_bigquery.base", "BigQueryDialect"),
    "databricks": ("databricks.sqlalchemy.base", "DatabricksDialect"),
}
INSTALLED = [name for name, (module, _) in DIALECTS.items() if find_spec(module.partition(".")[0])]
MOMENT = 1_767_236_584_123_456
"""2026-01-01 03:03:04.123456 UTC."""


def ledger_of(database: str, order_by: types.TypeEngine[Any]) -> JdbcLedger:
    """A ledger whose table was reflected, and whose connection is a stand-in: it has a dialect and asks nothing."""
    module, name = DIALECTS[database]
    dialect = getattr(import_module(module), name)()
    section = LedgerSection(
        connection="l", table="billing.posting", kind="jdbc", order_by="n", overlap=0, where="side = 'credit'"
    )
    columns = ("entry_id", "event_id", "payment_id", "leg", "amount_minor", "currency")
    table = Table("posting", MetaData(), *(Column(each, types.String(40)) for each in columns), schema="billing")
    table.append_column(Column("n", order_by))
    stand_in: Any = SimpleNamespace(dialect=dialect)
    ledger = JdbcLedger(
        connection=stand_in,
        settings=stand_in,
        ledger=section,
        read_before=tuple,
        sum_before=lambda one: None,
        now=lambda: NOON,
    )
    ledger.__dict__["_table"] = table
    return ledger


def condition_of(database: str, order_by: types.TypeEngine[Any], start: int, end: int) -> str:
    query = ledger_of(database, order_by).slice_query(ledger_slice_of(start, end))
    return " ".join(query.replace("`", "").split()).partition(" WHERE ")[2].replace("billing.posting.", "")


@pytest.mark.parametrize("database", INSTALLED)
def test_a_slice_of_numbers_is_a_range_and_the_contracts_condition_as_it_stands(database: str) -> None:
    found = condition_of(database, types.BigInteger(), 5, 9)
    assert found.replace("posting.", "") == "n >= 5 AND n < 9 AND (side = 'credit')"


BOUNDS: list[tuple[str, types.TypeEngine[Any] | str, str]] = [
    ("oracle", oracle.TIMESTAMP(), "TO_TIMESTAMP('2026-01-01 03:03:04.123456', 'YYYY-MM-DD HH24:MI:SS.FF')"),
    (
        "oracle",
        oracle.TIMESTAMP(timezone=True),
        "from_tz(CAST(TO_TIMESTAMP('2026-01-01 03:03:04.123456', 'YYYY-MM-DD HH24:MI:SS.FF') AS TIMESTAMP), 'UTC')",
    ),
    ("mssql", mssql.DATETIME2(), "'2026-01-01 03:03:04.123456'"),
    ("mssql", mssql.DATETIMEOFFSET(), "'2026-01-01 03:03:04.123456+00:00'"),
    ("snowflake", "snowflake.sqlalchemy.TIMESTAMP_NTZ", "'2026-01-01 03:03:04.123456'"),
    ("snowflake", "snowflake.sqlalchemy.TIMESTAMP_LTZ", "'2026-01-01 03:03:04.123456+00:00'"),
    ("bigquery", types.TIMESTAMP(), "TIMESTAMP '2026-01-01 03:03:04.123456'"),
    ("databricks", "databricks.sqlalchemy.TIMESTAMP", "'2026-01-01 03:03:04.123456+00:00'"),
    ("databricks", "databricks.sqlalchemy.TIMESTAMP_NTZ", "'2026-01-01 03:03:04.123456'"),
]


@pytest.mark.parametrize(
    ("database", "order_by", "bound"), [bound for bound in BOUNDS if bound[0] in INSTALLED], ids=str
)
def test_a_moment_is_said_to_the_microsecond_and_with_its_zone_where_the_column_has_one(
    database: str, order_by: types.TypeEngine[Any] | str, bound: str
) -> None:
    if isinstance(order_by, str):
        module, _, name = order_by.rpartition(".")
        order_by = getattr(import_module(module), name)()
    assert not isinstance(order_by, str)
    found = condition_of(database, order_by, MOMENT, MOMENT + 1)
    first, second = f"n >= {bound}", f"n < {bound}".replace("123456", "123457")
    assert found.replace("posting.", "") == f"{first} AND {second} AND (side = 'credit')"
