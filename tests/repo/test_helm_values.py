"""The Helm example names what is there: the locked Airflow, our variables, and secrets by their names alone.

Whether Airflow's chart takes it is asked by `make helm-check`, which needs the chart.
"""

import re
import shlex
from pathlib import Path
from typing import Any

import yaml

from tests.repo.image_facts import CODE_FOLDERS, locked_version, variables_in
from tests.unit.cli.command_line import COMMANDS

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "examples" / "helm" / "values.yaml").read_text()
VALUES: dict[str, Any] = yaml.safe_load(TEXT)
GIVEN = {one["name"]: one["value"] for one in VALUES["env"]}


def test_it_is_the_locked_airflow() -> None:
    assert VALUES["images"]["airflow"]["tag"] == VALUES["airflowVersion"] == locked_version("apache-airflow")
    assert VALUES["images"]["pod_template"] == VALUES["images"]["airflow"]


def test_each_variable_is_one_that_the_code_or_airflow_reads() -> None:
    ours = {name for name in GIVEN if not name.startswith("AIRFLOW__")}
    assert ours
    assert ours - variables_in(*CODE_FOLDERS) == set()


def test_the_pool_of_spark_is_made() -> None:
    command = VALUES["migrateDatabaseJob"]["args"][-1]
    assert f"airflow pools set {GIVEN['TALLYSTICK_SPARK_POOL']} " in command


def test_artifacts_lie_on_the_volume() -> None:
    assert GIVEN["TALLYSTICK_ARTIFACTS_DIR"] == VALUES["volumeMounts"][0]["mountPath"]
    assert VALUES["volumeMounts"][0]["name"] == VALUES["volumes"][0]["name"]


def test_each_command_of_ours_is_there() -> None:
    commands = [shlex.split(one) for one in re.split(r"&&", VALUES["migrateDatabaseJob"]["args"][-1])]
    ours = [words[1:] for words in commands if words[0] == "tallystick"]
    assert ours
    for words in ours:
        assert any(tuple(words[: len(command)]) == command for command in COMMANDS), words


def test_each_secret_is_explained_and_none_is_given() -> None:
    named = set(re.findall(r"(?:secretRef|secretKeyRef):\n\s+name: (\S+)", TEXT))
    assert named == set(re.findall(r"^#   (tallystick-\S+) ", TEXT, flags=re.MULTILINE))
    assert re.findall(r"(?i)(password|token|fernetKey|dsn): *\S", re.sub(r"#.*|key: dsn", "", TEXT)) == []
