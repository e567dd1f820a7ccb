"""The SQL that Spark is given for databases whose servers nobody here has, by SQLAlchemy's dialects alone.

No server runs it. The dialects of Snowflake, BigQuery and Databricks are packages of their own; where they are not
installed, their cases are skipped.
"""

from importlib import import_module
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import Column, MetaData, Table, types
from sqlalchemy.dialects import mssql, oracle

from tallystick.contract.ledger import LedgerSection
from tallystick.ledger.jdbc import JdbcLedger
from tests.unit.builders import NOON, ledger_slice_of

DIALECTS = {
    "oracle": ("sqlalchemy.dialects.oracle.oracledb", "OracleDialect_oracledb"),
    "mssql": ("sqlalchemy.dialects.mssql.pyodbc", "MSDialect_pyodbc"),
    "snowflake": ("snowflake.sqlalchemy.snowdialect", "dialect"),
    "bigquery": ("sqlalchemy_bigquery.base", "BigQueryDialect"),
    "databricks": ("databricks.sqlalchemy.base", "DatabricksDialect"),
}
MOMENT = 1_767_236_584_123_456
"""2026-01-01 03:03:04.123456 UTC."""


def ledger_of(database: str, order_by: types.TypeEngine[Any]) -> JdbcLedger:
    """A ledger whose table was reflected, and whose connection is a stand-in: it has a dialect and asks nothing."""
    module, name = DIALECTS[database]
    dialect = getattr(pytest.importorskip(module.partition(".")[0]) and import_module(module), name)()
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


@pytest.mark.parametrize("database", DIALECTS)
def test_a_slice_of_numbers_is_a_range_and_the_contracts_condition_as_it_stands(database: str) -> None:
    found = condition_of(database, types.BigInteger(), 5, 9)
    assert found.replace("posting.", "") == "n >= 5 AND n < 9 AND (side = 'credit')"


@pytest.mark.parametrize(
    ("database", "order_by", "bound"),
    [
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
    ],
    ids=str,
)
def test_a_moment_is_said_to_the_microsecond_and_with_its_zone_where_the_column_has_one(
    database: str, order_by: types.TypeEngine[Any] | str, bound: str
) -> None:
    if isinstance(order_by, str):
        module, _, name = order_by.rpartition(".")
        order_by = getattr(pytest.importorskip(module), name)()
    assert not isinstance(order_by, str)
    found = condition_of(database, order_by, MOMENT, MOMENT + 1)
    first, second = f"n >= {bound}", f"n < {bound}".replace("123456", "123457")
    assert found.replace("posting.", "") == f"{first} AND {second} AND (side = 'credit')"
