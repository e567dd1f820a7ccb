"""What the columns of each database are good for, by the types of SQLAlchemy's own dialects."""

from typing import Any

import pytest
from sqlalchemy import types
from sqlalchemy.dialects import mssql, mysql, oracle, postgresql

from tallystick.ledger.jdbc_types import is_exact_number


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
