"""Ledger rows that are read by COPY are hashed as those that Spark reads."""

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from tallystick_spark.matching.keyed_hash import new_secret
from tallystick_spark.matching.row_hashes import hashed_rows, rows_to_hash
from tallystick_spark.readers.ledger_frame import LEDGER_ROWS
from tallystick_spark.readers.postgres_rows import hashed_row_batch

LONGS = st.integers(-(2**63), 2**63 - 1)
TEXT = st.text(max_size=70)
ROWS = st.fixed_dictionaries(
    {
        "row_id": st.integers(1, 2**63 - 1).map(str),
        "match_key": TEXT,
        "transaction_key": TEXT,
        "leg": st.sampled_from(["", "payment"]),
        "amount_minor": LONGS,
        "currency": st.sampled_from(["", "EUR", "JPY"]),
        "written_ms": st.none() | LONGS,
    }
)


@pytest.mark.parametrize("placed", [True, False])
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(ROWS, min_size=1, max_size=40))
def test_every_column_is_as_spark_has_it(spark: SparkSession, rows: list[dict[str, object]], placed: bool) -> None:
    table = pa.Table.from_pylist(rows, schema=LEDGER_ROWS)
    secret, by_spark = new_secret(), rows_to_hash(spark.createDataFrame(table), placed=placed).toArrow()
    (batch,) = table.to_batches()
    expected = [row for one in hashed_rows(by_spark.to_batches(), secret) for row in one.to_pylist()]
    assert hashed_row_batch(batch, secret, placed=placed).to_pylist() == expected
