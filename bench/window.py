"""What does a small window cost, over what Airflow takes for a task that does nothing?

    python -m bench.window --events 1000 --times 5

One Airflow with a Spark Connect server that stays runs in turn a DAG of one empty task and a reconciliation of a
thousand new events, after a warm-up of each. Wall seconds are Airflow's own; CPU seconds are those of each task's
processes and, for a window, what the Spark server used meanwhile. Before that, `tallystick run` reads the first events
by spark-submit and by such a server, in turn. CPU seconds count; wall seconds only where nothing else runs.
Writes build/bench_window.json; ends with 1 when a verdict is not MATCHED.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any

import psutil
import yaml
from rich.table import Table

from bench.arms import FOLDER
from bench.comparison import BROKEN_TABLE, COMMAND, PLANTED, begin_books, contract_document, environment
from bench.data_set import AGREES, DataSize, make_empty, write_ledger, write_topic
from bench.machine import machine
from bench.process_cpu import TaskMeter, children_of, cpu_of_tree, cpu_waited_for
from lab.servers.airflow import AirflowStack, start_airflow
from lab.servers.airflow_environment import SMALL_SPARK, AirflowSettings
from lab.servers.process import REPOSITORY, wait_until
from lab.servers.stack import LabStack, start_stack
from lab.soak.long_run import LongRun
from lab.truth.stored_verdicts import read_runs
from tallystick.spark.spark_server import running_server, start_server, stop_server

FIGURES = REPOSITORY / "build" / "bench_window.json"
WINDOW = "bench_window"
_EMPTY = "bench_empty"
_RUN_SECONDS_MAX = 300
_TOLD_IN = ("reconcile", "report")
"""Tasks whose log says how far they came."""
_SAID = {"Report: ": "page written", '{"contract"': "expectations evaluated", "Task instance in": "ended"}
_TITLES = {
    "scheduler": "-m airflow scheduler",
    "dag-processor": "-m airflow dag-processor",
    "triggerer": "-m airflow triggerer",
    "api-server": "airflow api_server",  # it has a title of its own
}
_IMPORTS = {
    "the DAG file": "tallystick_airflow.operators.finish_operator, tallystick_airflow.sensors.settle_sensor",
    "settle and cut": "tallystick.pipeline.make_cut, tallystick.store.engine",
    "reconcile, as a client": "tallystick_spark.reconcile_app, pyspark.sql.connect.session",
    "report": "tallystick.pipeline.local_run, tallystick.report.write_report",
    "expectations": "tallystick_expectations.evaluation, tallystick_expectations.figures_suite",
}
"""What takes how long to import, by the part of a window that needs it. Airflow's own is there when a task begins."""
_EMPTY_DAG = f'''
"""One task that does nothing: what Airflow itself takes."""

from airflow.sdk import dag, task


@dag(dag_id="{_EMPTY}", schedule=None)
def empty():
    @task
    def nothing() -> None:
        pass

    nothing()


empty()
'''


@dataclass(frozen=True, kw_only=True)
class Machinery:
    """The processes that stay: Airflow's, by component, and the Spark server."""

    components: Mapping[str, int]
    spark_server: int

    @property
    def workers(self) -> list[int]:
        """Airflow's workers, each of which waits for the processes of its tasks."""
        return children_of(self.components["scheduler"])

    def cpu(self) -> dict[str, float]:
        """CPU seconds so far, by part: of the tasks that have ended, of the Spark server, of Airflow's components."""
        tasks = cpu_waited_for(self.workers)
        of_components = {name: cpu_of_tree(pid) for name, pid in self.components.items()}
        of_components["scheduler"] -= tasks
        return {"tasks": tasks, "spark_server": cpu_of_tree(self.spark_server), **of_components}

    def at_rest(self) -> bool:
        """Tell whether no task's process is left."""
        return not any(children_of(worker) for worker in self.workers)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=1000, help="committed events of a window (default 1000)")
    parser.add_argument("--times", type=int, default=5, help="windows, and empty tasks (default 5)")
    parser.add_argument("--seed", type=int, default=1, help="which events are made (default 1)")
    given = parser.parse_args()
    run = LongRun()
    figures = measure(run, DataSize(events=given.events, aborted_percent=0, seed=given.seed), times=given.times)
    FIGURES.write_text(json.dumps(figures | {"seconds": round(run.seconds, 1)}, indent=2) + "\n")
    run.console.print(task_table(figures), part_table(figures), import_table(figures))
    for problem in figures["disagreements"]:
        run.console.print(f"[red]differs:[/red] {problem}", highlight=False)
    sys.exit(1 if figures["disagreements"] else 0)


def measure(run: LongRun, size: DataSize, *, times: int) -> dict[str, Any]:
    """Run all ways in turn, so many times; returns all figures, as `build/` keeps them."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    run.say("starting a broker and two databases")
    with start_stack(FOLDER / "lab") as stack, environment(stack):
        make_empty(stack, size)
        commands = begin_books(stack, 0, without=(PLANTED, BROKEN_TABLE), commands=2 * times + 2)[COMMAND]
        write_topic(stack, size)
        write_ledger(stack, size, (AGREES,))
        imports = import_costs()
        command = run_commands(run, commands)
        with _airflow(stack) as airflow:
            machinery = _find_machinery(airflow)
            runs = run_windows(run, stack, airflow, machinery, size, times=times)
        verdicts = [stored.verdict for stored in read_runs(stack.store_dsn, WINDOW)[1:]]
    return {
        "size": asdict(size),
        "times": times,
        **summary(runs),
        "command": command,
        "imports": imports,
        "runs": runs,
        "disagreements": [f"window {n}: {verdict}" for n, verdict in enumerate(verdicts) if verdict != "MATCHED"],
        **machine(),
    }


def run_commands(run: LongRun, contracts: Sequence[Path]) -> dict[str, Any]:
    """`tallystick run` by spark-submit and by a server that stays, in turn; the first of each warms up."""
    seconds: dict[str, list[dict[str, float]]] = {"spark_submit": [], "spark_server": []}
    settings = {"TALLYSTICK_SPARK_CONF": json.dumps(SMALL_SPARK), "TALLYSTICK_SPARK_MASTER": "local[2]"}
    kept = FOLDER / "kept"
    server = start_server(kept, environment={**os.environ, **settings})
    try:
        for number, contract in enumerate(contracts):
            way, artifacts = ("spark_server", kept) if number % 2 else ("spark_submit", FOLDER / "artifacts")
            own = {**os.environ, **settings, "TALLYSTICK_ARTIFACTS_DIR": str(artifacts)}
            seconds[way].append(_run_command(contract, own, server.pid))
            run.say(f"tallystick run, {way}: {seconds[way][-1]}")
    finally:
        stop_server(kept)
    return {way: {"runs": runs, **_medians(runs[1:])} for way, runs in seconds.items()}


def _run_command(contract: Path, environment: Mapping[str, str], server: int) -> dict[str, float]:
    started, before = time.perf_counter(), _cpu_of_children() + cpu_of_tree(server)
    argv = [sys.executable, "-m", "tallystick", "run", str(contract)]
    done = subprocess.run(argv, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"tallystick run ended with {done.returncode}, expected 0: the sides match\n{done.stderr}")
    wall, cpu = time.perf_counter() - started, _cpu_of_children() + cpu_of_tree(server) - before
    return {"wall_seconds": round(wall, 2), "cpu_seconds": round(cpu, 2)}


def _cpu_of_children() -> float:
    """Seconds of children that have ended, and of theirs."""
    times = os.times()
    return times.children_user + times.children_system


@contextmanager
def _airflow(stack: LabStack) -> Iterator[AirflowStack]:
    """Airflow with its Spark server, our DAG for one contract, and the DAG of one empty task."""
    home, contracts, dags = FOLDER / "airflow", FOLDER / "contracts", FOLDER / "dags"
    for made in (home, contracts):
        made.mkdir()
    shutil.copytree(REPOSITORY / "dags", dags)
    (dags / "empty_dag.py").write_text(_EMPTY_DAG)
    document = contract_document(AGREES, WINDOW) | {
        "schedule": "0 0 29 2 *",  # nobody but the benchmark asks for a window
        "start_date": (datetime.now(UTC) - timedelta(days=1)).isoformat(),
        "kafka": {"connection": "kafka_billing"},
    }
    document["ledger"]["connection"] = "ledger_billing"
    (contracts / f"{WINDOW}.yaml").write_text(yaml.safe_dump(document))
    settings = AirflowSettings(
        home=home,
        contracts=contracts,
        dags=dags,
        artifacts=FOLDER / "airflow_artifacts",
        warm_spark=True,
        look_every_seconds=0.2,
    )
    with start_airflow(settings, stack) as airflow:
        for dag_id in (f"reconcile_{WINDOW}", _EMPTY):
            airflow.wait_dag(dag_id)
        yield airflow


def import_costs() -> dict[str, float]:
    """CPU seconds of each part's imports after Airflow's own, in a process of its own."""
    return {part: _import_cost(modules) for part, modules in _IMPORTS.items()}


def _import_cost(modules: str) -> float:
    words = (
        "import time, airflow.sdk.execution_time.supervisor, airflow.dag_processing.dagbag; "
        f"before = time.process_time(); import {modules}; print('cost', time.process_time() - before)"
    )
    home = {"AIRFLOW_HOME": str(FOLDER / "imports"), "AIRFLOW__CORE__LOAD_EXAMPLES": "False"}
    told = subprocess.run(
        [sys.executable, "-c", words], env=os.environ | home, capture_output=True, text=True, check=True
    )
    return round(float(told.stdout.split("cost ")[-1]), 2)


def _find_machinery(airflow: AirflowStack) -> Machinery:
    server = running_server(airflow.settings.home)
    assert server is not None
    words = {child.pid: " ".join(child.cmdline()) for child in psutil.Process().children()}
    components = {name: pid for pid, said in words.items() for name, title in _TITLES.items() if title in said}
    assert components.keys() == _TITLES.keys(), words
    return Machinery(components=components, spark_server=server.pid)


def run_windows(
    run: LongRun, stack: LabStack, airflow: AirflowStack, machinery: Machinery, size: DataSize, *, times: int
) -> dict[str, list[dict[str, Any]]]:
    """The baseline and a warm-up of each DAG, then each in turn so many times; returns the figures of each run."""
    now = datetime.now(UTC)
    _run_once(airflow, machinery, f"reconcile_{WINDOW}", (now - timedelta(minutes=1), now))
    runs: dict[str, list[dict[str, Any]]] = {_EMPTY: [], WINDOW: []}
    for number in range(1, times + 2):
        of_window = replace(size, seed=size.seed + number)
        write_topic(stack, of_window)
        write_ledger(stack, of_window, (AGREES,))
        runs[_EMPTY].append(_run_once(airflow, machinery, _EMPTY, None))
        start, now = now, datetime.now(UTC)
        runs[WINDOW].append(_run_once(airflow, machinery, f"reconcile_{WINDOW}", (start, now)))
        run.say("; ".join(f"{name}: {_in_words(figures[-1])}" for name, figures in runs.items()))
    return {name: figures[1:] for name, figures in runs.items()}


def _run_once(
    airflow: AirflowStack, machinery: Machinery, dag_id: str, interval: tuple[datetime, datetime] | None
) -> dict[str, Any]:
    """One run: wall seconds, CPU seconds by part, and both of each task."""
    before = machinery.cpu()
    with TaskMeter(machinery.workers).running() as by_task:
        run_id = airflow.trigger(dag_id, interval=interval)
        airflow.wait_run(dag_id, run_id, deadline_seconds=_RUN_SECONDS_MAX)
        wait_until(machinery.at_rest, what="the end of the last task's process")
    used = {part: round(after - before[part], 2) for part, after in machinery.cpu().items()}
    told = airflow.run(dag_id, run_id)
    path = f"/api/v2/dags/{dag_id}/dagRuns/{run_id}/taskInstances?limit=100"
    tasks = {
        task["task_id"]: {
            "began_after": _between(told["queued_at"], task["start_date"]),
            "wall_seconds": round(task["duration"], 2),
            "cpu_seconds": round(by_task.get(task["id"], 0.0), 2),
        }
        for task in airflow.call("GET", path)["task_instances"]
        if task["start_date"]
    }
    return {
        "wall_seconds": _between(told["queued_at"], told["end_date"]),
        "cpu_seconds": round(used["tasks"] + used["spark_server"], 2),
        "cpu": used,
        "tasks": tasks,
        "steps": {task: _steps(airflow, dag_id, run_id, task) for task in tasks if task in _TOLD_IN},
    }


def _steps(airflow: AirflowStack, dag_id: str, run_id: str, task: str) -> dict[str, float]:
    """Seconds from a task's first line to the last of each of its steps, by the clock of its log."""
    path = f"/api/v2/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task}/logs/1?full_content=true"
    lines = [line for line in airflow.call("GET", path)["content"] if line.get("timestamp")]
    return {
        step: _between(lines[0]["timestamp"], line["timestamp"])
        for line in lines
        if (step := _step_in(line["event"])) is not None
    }


def _step_in(event: str) -> str | None:
    if event.startswith('{"step"'):
        return str(json.loads(event)["step"])
    return next((step for words, step in _SAID.items() if event.startswith(words)), None)


def _between(start: str, end: str) -> float:
    return round((datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds(), 2)


def _in_words(figures: Mapping[str, Any]) -> str:
    return f"{figures['wall_seconds']:.1f} s, {figures['cpu_seconds']:.1f} s of CPU"


def summary(runs: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, Any]:
    """Medians of both DAGs, and how many times the empty task's our window takes."""
    medians = {name: _medians(figures) for name, figures in runs.items()}
    ours, empty = medians[WINDOW], medians[_EMPTY]
    return {
        "cpu_over_empty": round(ours["cpu_seconds"] / empty["cpu_seconds"], 2),
        "wall_over_empty": round(ours["wall_seconds"] / empty["wall_seconds"], 2),
        "medians": medians,
    }


def _medians(runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The median of each figure, also of those in a figure."""
    return {
        name: _medians([run[name] for run in runs]) if isinstance(value, Mapping) else round(_median(name, runs), 2)
        for name, value in runs[0].items()
    }


def _median(name: str, runs: Sequence[Mapping[str, Any]]) -> float:
    return median(float(run[name]) for run in runs)


def task_table(figures: Mapping[str, Any]) -> Table:
    """Each task of a window, beside the empty one."""
    table = Table("task", "began after, s", "wall, s", "CPU, s", title="medians")
    for name, of_dag in figures["medians"].items():
        for task, one in sorted(of_dag["tasks"].items(), key=lambda item: item[1]["began_after"]):
            table.add_row(task, *(f"{one[unit]:.2f}" for unit in ("began_after", "wall_seconds", "cpu_seconds")))
        table.add_row(name, "", f"{of_dag['wall_seconds']:.2f}", f"{of_dag['cpu_seconds']:.2f}", end_section=True)
    return table


def part_table(figures: Mapping[str, Any]) -> Table:
    """CPU seconds of either DAG, by who used them."""
    table = Table("CPU, s", *figures["medians"])
    for part in next(iter(figures["medians"].values()))["cpu"]:
        table.add_row(part, *(f"{of_dag['cpu'][part]:.2f}" for of_dag in figures["medians"].values()))
    return table


def import_table(figures: Mapping[str, Any]) -> Table:
    """What the imports of each part take."""
    table = Table("imports", "CPU, s")
    for part, seconds in figures["imports"].items():
        table.add_row(part, f"{seconds:.2f}")
    return table


if __name__ == "__main__":
    main()
