"""The locks agree with one another and with the lists they were made from."""

import re
from pathlib import Path

import pytest
from jars import read_locks, read_wanted

from tallystick.spark.jars import read_lines, read_lock, spark_jars

REQUIREMENTS = Path(__file__).parents[2] / "requirements"
JAR_LOCKS = {
    "jars": read_locks,
    "old_jars": lambda: read_lock(REQUIREMENTS / "old_jars.lock"),
    "old_postgres": lambda: read_lock(REQUIREMENTS / "old_postgres.lock"),
}
JAR_LISTS = list(JAR_LOCKS)
PYTHON_LOCKS = ["uv.lock", "dev.lock", "runtime.lock", "docs.lock", "fuzz.lock", "mutants.lock"]


def pins(lock: str) -> dict[str, str]:
    """Read name -> version."""
    return dict(re.findall(r"^([a-z0-9_.-]+)==([^\s;]+)", (REQUIREMENTS / lock).read_text(), flags=re.MULTILINE))


def pins_without_hash(text: str) -> list[str]:
    """Name the pins that no --hash line follows."""
    blocks = re.split(r"^(?=[a-z0-9])", text, flags=re.MULTILINE)[1:]
    return [block.split()[0] for block in blocks if "--hash=sha256:" not in block]


def test_the_image_runs_what_the_tests_ran() -> None:
    runtime, dev = pins("runtime.lock"), pins("dev.lock")
    assert len(runtime) > 100
    assert {name: version for name, version in runtime.items() if dev.get(name) != version} == {}


@pytest.mark.parametrize("lock", PYTHON_LOCKS)
def test_every_pin_has_a_hash(lock: str) -> None:
    assert pins_without_hash((REQUIREMENTS / lock).read_text()) == []


def test_a_pin_without_a_hash_is_noticed() -> None:
    assert pins_without_hash("a==1 \\\n    --hash=sha256:00\nb==2\n") == ["b==2"]


@pytest.mark.parametrize("listed", ["uv", "runtime", "dev", "docs", "fuzz", "mutants"])
def test_every_listed_version_is_the_locked_one(listed: str) -> None:
    wanted = re.findall(
        r"^([a-z0-9-]+)(?:\[.*\])?==(\S+)", (REQUIREMENTS / f"{listed}.in").read_text(), flags=re.MULTILINE
    )
    assert wanted
    locked = pins(f"{listed}.lock")
    assert [(name, version) for name, version in wanted if locked.get(name) != version] == []


def test_the_registry_that_is_listed_is_locked() -> None:
    ((_, (configuration, coordinates, _)),) = read_lines(REQUIREMENTS / "registry.in", columns=3)
    (jar,) = read_lock(REQUIREMENTS / "registry.lock")
    assert (jar.configuration, ":".join(jar.coordinates)) == (configuration, coordinates)


def test_both_owners_of_the_pyspark_folder_are_one_version() -> None:
    assert pins("dev.lock")["pyspark"] == pins("dev.lock")["pyspark-client"]


def test_the_spark_kafka_jar_is_of_the_installed_spark() -> None:
    artifacts = {jar.coordinates[1]: jar.coordinates[2] for jar in spark_jars()}
    (version,) = [version for artifact, version in artifacts.items() if artifact.startswith("spark-sql-kafka")]
    assert version == pins("runtime.lock")["pyspark"]


@pytest.mark.parametrize("listed", JAR_LISTS)
def test_every_listed_jar_is_locked_and_no_spark_jar_came_along(listed: str) -> None:
    locked = {(jar.configuration, jar.coordinates) for jar in JAR_LOCKS[listed]()}
    wanted = {(jar.configuration, jar.coordinates) for jar in read_wanted(REQUIREMENTS / f"{listed}.in")}
    assert wanted - locked == set()
    assert {jar for jar in locked - wanted if jar[0] == "spark"} == set()


@pytest.mark.parametrize("listed", JAR_LISTS)
def test_no_configuration_holds_two_versions_of_one_jar(listed: str) -> None:
    names = [(jar.configuration, jar.coordinates[:2]) for jar in JAR_LOCKS[listed]()]
    assert sorted(set(names)) == sorted(names)


def test_what_runs_and_what_is_old_lie_in_no_folder_together() -> None:
    """Setup fetches the first list into .jars; the others are fetched into .jars/old, for what needs them."""
    of_setup, *others = [{jar.configuration for jar in JAR_LOCKS[listed]()} for listed in JAR_LISTS]
    assert all(others)
    assert of_setup & set().union(*others) == set()


def test_a_user_fetches_sparks_jars_alone() -> None:
    assert {jar.configuration for jar in spark_jars()} == {"spark"}
    assert "spark" not in {jar.configuration for jar in read_lock(REQUIREMENTS / "jars.lock")}
