"""What the columns of each database are good for, by the types of SQLAlchemy's own dialects."""

from typing import Any

import pytest
from sqlalchemy import types
from sqlalchemy.dialects import mssql, mysql, oracle, postgresql

from tallystick.ledger.jdbc_types import has_zone, is_exact_number, is_integer, is_moment


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
