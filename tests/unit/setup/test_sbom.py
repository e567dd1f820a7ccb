"""The list of parts has every part that a lock names."""

import json
import re
from pathlib import Path

import pytest
from cyclonedx.output import make_outputter
from cyclonedx.schema import OutputFormat, SchemaVersion
from jars import read_locks
from sbom import make_sbom

ROOT = Path(__file__).parents[3]
LOCKS = ROOT / "requirements"


@pytest.fixture(scope="module")
def components() -> dict[str, dict]:
    """As the file has them, by their package address; images by their reference."""
    written = make_outputter(make_sbom(ROOT), OutputFormat.JSON, SchemaVersion.V1_6).output_as_string()
    document = json.loads(written)
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.6")
    return {part.get("purl", part["bom-ref"]): part for part in document["components"]}


@pytest.mark.parametrize("lock", ["runtime", "dev", "docs", "uv"])
def test_every_locked_package_is_in_it(components: dict[str, dict], lock: str) -> None:
    pins = re.findall(r"^([a-z0-9_.-]+)==([^\s;]+)", (LOCKS / f"{lock}.lock").read_text(), flags=re.MULTILINE)
    assert pins
    assert {f"pkg:pypi/{name.replace('_', '-')}@{version}" for name, version in pins} - set(components) == set()


def test_every_jar_is_in_it_with_the_hash_of_the_lock(components: dict[str, dict]) -> None:
    jars = {f"pkg:maven/{'/'.join(jar.coordinates[:2])}@{jar.coordinates[2]}": jar for jar in read_locks()}
    assert jars
    assert {purl: components[purl]["hashes"][0]["content"] for purl in jars} == {
        purl: jar.sha256 for purl, jar in jars.items()
    }


def test_what_the_image_runs_is_told_from_what_tests_need(components: dict[str, dict]) -> None:
    def scope(kind: str, name: str) -> str:
        (part,) = [part for purl, part in components.items() if purl.startswith(f"pkg:{kind}/{name}@")]
        return part["scope"]

    assert scope("pypi", "psycopg") == scope("maven", "org.postgresql/postgresql") == "required"
    assert scope("pypi", "pytest") == scope("maven", "org.apache.kafka/kafka_2.13") == "excluded"


def test_every_base_image_is_in_it(components: dict[str, dict]) -> None:
    assert {name for name in components if name.startswith("image:")} == {
        "image:apache/airflow", "image:apache/kafka", "image:postgres"
    }  # fmt: skip
