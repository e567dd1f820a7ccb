"""What a scheduler imports ahead of its tasks: all that they need, and nothing that a fork would break."""

import ast
import json
import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.configuration import conf

from tallystick_airflow import warm_imports
from tallystick_airflow.plugin import TallystickPlugin

PLUGIN = Path(warm_imports.__file__).parent
RUN_IN_A_WINDOW = (
    "operators/alert_operator.py",
    "operators/contract_operator.py",
    "operators/cut_operator.py",
    "operators/finish_operator.py",
    "operators/judge_operator.py",
    "operators/offer_compensation_operator.py",
    "operators/reconcile_operator.py",
    "operators/report_operator.py",
    "sensors/settle_sensor.py",
    "alert_sinks.py",
    "verdict_assets.py",
)
FOR_LINEAGE_ALONE = {"tallystick.documents.lineage_names"}
"""Asked for where the OpenLineage provider is installed."""


def imported_when_a_task_runs(source: str) -> set[str]:
    """Modules that functions import."""
    return {
        node.module
        for function in ast.walk(ast.parse(source))
        if isinstance(function, ast.FunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.ImportFrom) and node.module
    }


@pytest.fixture(scope="module")
def warmed() -> dict[str, Any]:
    """What a fresh interpreter tells once it has warmed up: its modules, its threads, and how a child of it ended."""
    code = (
        "import json, os, sys, threading\n"
        "from tallystick_airflow import plugin, warm_imports\n"
        "warm_imports.warm_up()\n"
        "modules = sorted(sys.modules)\n"
        "names = [open(f'/proc/self/task/{one}/comm').read().strip() for one in os.listdir('/proc/self/task')]\n"
        "names.remove(open('/proc/self/comm').read().strip())\n"
        "threads = threading.active_count()\n"
        "import grpc, numpy, pandas, pyarrow.compute\n"
        "child = os.fork()\n"
        "if not child:\n"
        "    grpc.insecure_channel('localhost:9').close()\n"
        "    summed = pyarrow.compute.sum(pyarrow.array(range(1_000_000))).as_py()\n"
        "    table = pandas.DataFrame({'a': [1, 1, 2]}).groupby('a').size().to_dict()\n"
        "    product = float((numpy.ones((200, 200)) @ numpy.ones((200, 200)))[0, 0])\n"
        "    os._exit(0 if (summed, table, product) == (499_999_500_000, {1: 2, 2: 1}, 200.0) else 1)\n"
        "ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])\n"
        "print(json.dumps({'modules': modules, 'threads': threads, 'others': names, 'child': ended}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    told: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return told


def test_a_task_of_a_window_finds_every_module_that_it_imports(warmed: dict[str, Any]) -> None:
    needed = set().union(*(imported_when_a_task_runs((PLUGIN / file).read_text()) for file in RUN_IN_A_WINDOW))
    assert len(needed) > 10
    assert needed - FOR_LINEAGE_ALONE - set(warmed["modules"]) == set()


def test_modules_that_a_function_imports_are_told_from_those_of_the_file() -> None:
    assert imported_when_a_task_runs("from a import b\ndef f():\n    if f:\n        from c.d import e\n") == {"c.d"}


def test_nothing_that_a_fork_would_break_is_there(warmed: dict[str, Any]) -> None:
    """No thread of Python's, gRPC's or OpenBLAS's, which have no names of their own; jemalloc's may be forked."""
    assert (warmed["threads"], set(warmed["others"]) - {"jemalloc_bg_thd"}) == (1, set())


def test_a_child_uses_what_was_imported_before_it_was_forked(warmed: dict[str, Any]) -> None:
    assert warmed["child"] == 0


@pytest.mark.parametrize(
    ("command", "executor", "warm"),
    [
        (["airflow", "scheduler"], "LocalExecutor", True),
        (["airflow", "scheduler", "--skip-serve-logs"], "CeleryExecutor,LocalExecutor", True),
        (["airflow", "scheduler"], "CeleryExecutor", False),
        (["airflow", "triggerer"], "LocalExecutor", False),
        (["airflow", "dags", "list"], "LocalExecutor", False),
        (["airflow"], "LocalExecutor", False),
    ],
)
def test_a_scheduler_that_forks_its_tasks_imports_and_no_other_process_does(
    monkeypatch: pytest.MonkeyPatch, command: list[str], executor: str, warm: bool
) -> None:
    warmed: list[bool] = []
    monkeypatch.setattr(sys, "argv", command)
    monkeypatch.setattr(conf, "get", lambda section, name: {("core", "executor"): executor}[section, name])
    monkeypatch.setattr("tallystick_airflow.plugin.runs_tasks", lambda: False)
    monkeypatch.setattr("tallystick_airflow.plugin.warm_up", lambda: warmed.append(True))
    TallystickPlugin.on_load()
    assert warmed == [True] * warm


def test_a_module_that_is_not_installed_is_named_and_stops_no_scheduler(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(warm_imports, "TASKS_NEED", ("no_such_client", "json"))
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "7")
    with caplog.at_level(logging.WARNING, logger=warm_imports.__name__):
        warm_imports.warm_up()
    (record,) = caplog.records
    assert record.getMessage() == "no_such_client is not imported ahead of the tasks: No module named 'no_such_client'"
    assert warm_imports.os.environ["OPENBLAS_NUM_THREADS"] == "7"


def test_an_extra_that_is_not_installed_is_no_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(warm_imports, "TASKS_NEED", ("great_expectations", "json"))
    monkeypatch.setitem(sys.modules, "great_expectations", None)  # as if it were not installed
    with caplog.at_level(logging.INFO, logger=warm_imports.__name__):
        warm_imports.warm_up()
    (record,) = caplog.records
    assert record.levelno == logging.INFO
    assert record.getMessage().endswith("expected it from `pip install 'tallystick[gx]'`")
