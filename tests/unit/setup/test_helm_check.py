"""A rendered chart in which a container lacks its part, or knows too much, is found; a whole one is not."""

from typing import Any

import pytest
import yaml
from helm_check import COMPONENTS, VALUES, faults_of, unknown_names

WANTED = yaml.safe_load(VALUES.read_text())
OWNER = WANTED["migrateDatabaseJob"]["env"]


def container(name: str, **other: Any) -> dict[str, Any]:
    image = WANTED["images"]["airflow"]
    return {
        "name": name,
        "image": f"{image['repository']}:{image['tag']}",
        "envFrom": yaml.safe_load(WANTED["extraEnvFrom"]),
        "env": list(WANTED["env"]),
        "volumeMounts": list(WANTED["volumeMounts"]),
        **other,
    }


def chart(**changed: dict[str, Any]) -> list[Any]:
    """Render what a chart would: a workload for each component, and the tasks' pod as a text."""
    migration = {"args": WANTED["migrateDatabaseJob"]["args"], "env": [*WANTED["env"], *OWNER]}
    parts = {name: container(name) for name in COMPONENTS} | {
        "run-airflow-migrations": container("run-airflow-migrations", **migration)
    }
    for name, other in changed.items():
        parts[name.replace("_", "-")].update(other)
    pod = {"kind": "Pod", "spec": {"containers": [parts.pop("base")]}}
    return [
        None,
        {"kind": "ConfigMap", "data": {"pod_template_file.yaml": yaml.safe_dump(pod), "airflow.cfg": "[core]"}},
        *({"kind": "Deployment", "spec": {"template": {"spec": {"containers": [one]}}}} for one in parts.values()),
    ]


def test_a_whole_chart_has_no_fault() -> None:
    assert faults_of(chart(), WANTED) == []


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({"scheduler": {"envFrom": None}}, "scheduler: expected {'secretRef'"),
        ({"base": {"env": []}}, "base: expected TALLYSTICK_JARS_DIR="),
        ({"api_server": {"volumeMounts": []}}, "api-server: expected the volume tallystick-artifacts"),
        ({"triggerer": {"image": "apache/airflow:3.2.2"}}, "triggerer: expected a container"),
        ({"run_airflow_migrations": {"args": ["airflow db migrate"]}}, "run-airflow-migrations: expected the command"),
        ({"scheduler": {"env": [*WANTED["env"], *OWNER]}}, "the store's owner: expected the migration alone"),
        ({"run_airflow_migrations": {"env": WANTED["env"]}}, "the store's owner: expected the migration alone"),
    ],
)
def test_a_part_that_is_missing_or_too_much_is_found(changed: dict[str, Any], fault: str) -> None:
    assert fault in "\n".join(faults_of(chart(**changed), WANTED))


def test_a_name_that_the_chart_does_not_know_is_found_with_its_place() -> None:
    known = {"executor": "CeleryExecutor", "images": {"airflow": {"tag": None}}, "labels": {}, "env": []}
    values = {"executr": "x", "images": {"airflow": {"tga": "1"}}, "labels": {"any": "name"}, "env": [{"name": "A"}]}
    assert unknown_names(values, known) == [
        "executr: the chart has no such value",
        "images.airflow.tga: the chart has no such value",
    ]
    assert unknown_names({"executor": "x", "images": {"airflow": {"tag": "1"}}}, known) == []
