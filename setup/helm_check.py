"""Renders docs/examples/helm/values.yaml by Helm and Airflow's own chart: `make helm-check`.

The chart is asked of its own address, or is the folder or archive that CHART names. Helm refuses values of a wrong
type. A name that the chart does not know it lets pass, so names are compared with the chart's own values. Then each
container of Airflow, that of the tasks too, must have the image, the secret, the variables and the artifacts; and the
migration must make the pool and migrate the store as its owner.

Exit 0: so it is. 1: it is not, and each fault is on stderr. 2: Helm could not be built. 3: NOT CHECKED, since the chart
could not be had.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path
from typing import Any, Iterator

import yaml
from go_tool import HELM, ToolNotBuilt, build

ROOT = Path(__file__).resolve().parent.parent
VALUES = ROOT / "docs" / "examples" / "helm" / "values.yaml"
CHART_FROM, CHART_VERSION = "https://airflow.apache.org", "1.22.0"
COMPONENTS = {"api-server", "dag-processor", "scheduler", "triggerer", "run-airflow-migrations", "base"}
"""Containers that must be there; the chart calls a task's own `base`."""

Document = Any


def faults_of(documents: list[Document], values: Document) -> list[str]:
    """Compare the rendered documents with what the values ask for."""
    image = "{repository}:{tag}".format(**values["images"]["airflow"])
    containers = [one for document in documents for one in _containers(document) if one["image"] == image]
    names = {one["name"] for one in containers}
    faults = [f"{name}: expected a container of {image}, got none" for name in sorted(COMPONENTS - names)]
    for one in containers:
        if one["name"] in COMPONENTS:
            faults += [f"{one['name']}: {fault}" for fault in _lacks(one, values)]
    (migration,) = [one for one in containers if one["name"] == "run-airflow-migrations"] or [{}]
    if migration.get("args") != values["migrateDatabaseJob"]["args"]:
        faults.append(f"run-airflow-migrations: expected the command of the values, got {migration.get('args')}")
    owner = [one for one in containers if any(_is_owner(variable) for variable in one.get("env", []))]
    if [one["name"] for one in owner] != ["run-airflow-migrations"]:
        faults.append(
            f"the store's owner: expected the migration alone to know it, got {[one['name'] for one in owner]}"
        )
    return faults


def unknown_names(values: Document, known: Document, place: str = "") -> list[str]:
    """Name what the chart's own values have no such name for. Below an empty or listed value any name goes."""
    if not isinstance(values, dict) or not isinstance(known, dict) or not known:
        return []
    strange = [f"{place}{name}: the chart has no such value" for name in values if name not in known]
    both = [name for name in values if name in known]
    return strange + [fault for name in both for fault in unknown_names(values[name], known[name], f"{place}{name}.")]


def _is_owner(variable: Document) -> bool:
    reference = variable.get("valueFrom", {}).get("secretKeyRef", {})
    return bool(reference.get("name") == "tallystick-store-owner")


def _lacks(container: Document, values: Document) -> Iterator[str]:
    """Name what one container has not got."""
    for source in yaml.safe_load(values["extraEnvFrom"]):
        if source not in (container.get("envFrom") or []):
            yield f"expected {source} in envFrom, got {container.get('envFrom')}"
    given = {one["name"]: one.get("value") for one in container.get("env", [])}
    for variable in values["env"]:
        if given.get(variable["name"]) != variable["value"]:
            yield f"expected {variable['name']}={variable['value']}, got {given.get(variable['name'])}"
    for mount in values["volumeMounts"]:
        if mount not in container.get("volumeMounts", []):
            yield f"expected the volume {mount['name']} at {mount['mountPath']}"


def _containers(document: Document) -> Iterator[Document]:
    """Yield the containers of a workload, and of the pods that a configuration map describes for tasks."""
    if not document:
        return
    specification = document.get("spec", {})
    pod = document if document.get("kind") == "Pod" else specification.get("template", {})
    yield from pod.get("spec", {}).get("containers", [])
    if document.get("kind") == "ConfigMap":
        for name, text in (document.get("data") or {}).items():
            if name.startswith("pod_template"):
                yield from _containers(yaml.safe_load(text))


def main() -> int:
    """Build Helm where it is missing, render, and compare."""
    parser = argparse.ArgumentParser(description="Render the example of values by Airflow's chart.")
    parser.add_argument("--chart", help="folder or archive of the chart; without it, it is asked of its address")
    chart = parser.parse_args().chart
    try:
        program = build(HELM)
    except ToolNotBuilt as fault:
        print(f"helm-check: {fault}", file=sys.stderr)
        return 2
    place = [chart] if chart else ["airflow", "--repo", CHART_FROM, "--version", CHART_VERSION]
    shown = subprocess.run([program, "show", "values", *place], capture_output=True, text=True, check=False)
    if shown.returncode and chart:
        print(f"helm-check: {chart} is no chart: {shown.stderr.strip()}", file=sys.stderr)
        return 1
    if shown.returncode:
        print(f"helm-check: NOT CHECKED: {CHART_FROM} did not give the chart; CHART=DIR names a copy", file=sys.stderr)
        return 3
    rendered = subprocess.run(
        [program, "template", "airflow", *place, "--values", VALUES], capture_output=True, text=True, check=False
    )
    if rendered.returncode:
        print(f"helm-check: Helm refuses the values: {rendered.stderr.strip()}", file=sys.stderr)
        return 1
    documents = list(yaml.safe_load_all(rendered.stdout))
    values = yaml.safe_load(VALUES.read_text())
    faults = unknown_names(values, yaml.safe_load(shown.stdout)) + faults_of(documents, values)
    for found in faults:
        print(f"helm-check: {found}", file=sys.stderr)
    if not faults:
        print(f"helm-check: Helm {HELM.version} renders {len(documents)} documents, and each container has its part")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
