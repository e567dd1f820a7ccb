"""A window of a round's contracts, judged by their DAGs in an Airflow that knows the servers by its connections."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import yaml

from lab.product.command_line import CommandLine
from lab.servers.airflow import start_airflow
from lab.servers.airflow_connections import read_connections
from lab.servers.airflow_environment import LAB_CONNECTIONS, AirflowSettings

_DEADLINE_SECONDS = 900.0
_START_SECONDS = 300.0


def judge_by_dag(command_line: CommandLine, contracts: Sequence[Path]) -> None:
    """Let one run of each contract's DAG end, however it ends. The files lie in one folder. Raises NotReadyInTime."""
    documents = [yaml.safe_load(path.read_text()) for path in contracts]
    own = read_connections(documents, command_line.environment(), without=LAB_CONNECTIONS)
    if own.faults:
        raise ValueError("; ".join(own.faults))
    home = command_line.folder / "airflow"
    home.mkdir()
    settings = AirflowSettings(
        home=home,
        contracts=contracts[0].parent,
        artifacts=command_line.folder / "artifacts",
        connections=own.given,
        warm_spark=True,
    )
    with start_airflow(settings, command_line.addresses, deadline_seconds=_START_SECONDS) as airflow:
        dag_ids = [f"reconcile_{path.stem}" for path in contracts]
        for dag_id in dag_ids:
            airflow.wait_dag(dag_id, deadline_seconds=_START_SECONDS)
        now = datetime.now(UTC)
        interval = (now - timedelta(minutes=1), now)
        runs = [(dag_id, airflow.trigger(dag_id, interval=interval)) for dag_id in dag_ids]
        for dag_id, run_id in runs:
            airflow.wait_run(dag_id, run_id, deadline_seconds=_DEADLINE_SECONDS)
