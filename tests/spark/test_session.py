"""How many tasks work is split into."""

from typing import Any

import pytest
from pyspark.sql import SparkSession

from tallystick_spark.session import cores, tasks_for

NOBODY: Any = None
"""In the place of a session: whoever asks it fails."""


@pytest.mark.parametrize("wanted", [0, 1, 2])
def test_two_are_as_many_as_are_wanted_and_spark_is_not_asked(wanted: int) -> None:
    assert tasks_for(NOBODY, wanted) == wanted


def test_more_are_so_many_for_each_core(spark: SparkSession) -> None:
    assert cores(spark) >= 1
    assert tasks_for(spark, 1_000) == cores(spark)
    assert tasks_for(spark, 1_000, per_core=3) == 3 * cores(spark)
    assert tasks_for(spark, 3, per_core=3) == 3
    cores.cache_clear()
    with pytest.raises(AttributeError):
        tasks_for(NOBODY, 3)
