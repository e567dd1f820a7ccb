"""The daemon that forks Spark's workers."""

import sys
from pathlib import Path

import pyarrow as pa
import pyspark
from pyspark.sql import SparkSession

from tallystick_spark.python_daemon import without_archives

CARRIED = Path(pyspark.__file__).parent
ARCHIVES = [str(CARRIED / "python" / "lib" / "pyspark.zip"), str(CARRIED / "jars" / "spark-core.jar")]
INSTALLED = str(CARRIED.parent)


def test_archives_of_the_installed_package_are_left_out() -> None:
    assert without_archives(["here", *ARCHIVES, INSTALLED]) == ["here", INSTALLED]


def test_archives_of_another_spark_stay(tmp_path: Path) -> None:
    other = str(tmp_path / "spark" / "python" / "lib" / "pyspark.zip")
    assert without_archives(["here", other, INSTALLED]) == ["here", other, INSTALLED]


def test_archives_stay_where_python_has_no_pyspark_of_its_own() -> None:
    assert without_archives([*ARCHIVES, "here"]) == [*ARCHIVES, "here"]


def test_an_environment_by_another_name_is_the_same(tmp_path: Path) -> None:
    link = tmp_path / "environment"
    link.symlink_to(Path(INSTALLED), target_is_directory=True)
    assert without_archives([*ARCHIVES, str(link)]) == [str(link)]


def test_a_session_that_names_it_has_workers_without_archives(spark: SparkSession) -> None:
    def on_progress(batches: object) -> object:
        yield pa.RecordBatch.from_pydict({"place": sys.path})

    told = {row["place"] for row in spark.range(1).mapInArrow(on_progress, "place string").collect()}  # type: ignore[arg-type]
    assert not [place for place in told if place.startswith(f"{CARRIED}/") and place.endswith((".zip", ".jar"))]
    assert INSTALLED in told


def test_its_workers_find_the_decoder_of_records_loaded(spark: SparkSession) -> None:
    def found(batches: object) -> object:
        yield pa.RecordBatch.from_pydict({"loaded": ["aiokafka.record.default_records" in sys.modules]})

    told = {row["loaded"] for row in spark.range(1).mapInArrow(found, "loaded boolean").collect()}  # type: ignore[arg-type]
    assert told == {True}
