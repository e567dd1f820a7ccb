"""Imports what the tasks of a window need, once, in the scheduler that forks them.

A LocalExecutor forks its workers from the scheduler and each task from a worker, so a task has every module that the
scheduler had. Without this each window imports for seconds what the window before it had imported too.

Modules are loaded and nothing is opened: a connection, a gRPC channel or a thread of Python's would be shared by all
children, or be missing in them.
"""

import importlib
import logging
import os
import sys

from airflow.sdk.configuration import conf

from tallystick.host.extras import missing_extra

TASKS_NEED = (
    "pyspark.sql.connect.session",
    "tallystick_spark.reconcile_app",
    "aiokafka.record.default_records",
    "tallystick.pipeline.make_cut",
    "tallystick.pipeline.sources",
    "tallystick.pipeline.local_run",
    "tallystick.pipeline.deliver_alerts",
    "tallystick.pipeline.missing_verdict_alert",
    "tallystick.alerting.sinks.registry",
    "tallystick.documents.lineage_assertions",
    "tallystick.documents.run",
    "tallystick.executor.draw_plan",
    "tallystick.report.write_report",
    "tallystick_airflow.sensors.settle_trigger",
    "tallystick_expectations.evaluate_run",
    "tallystick_expectations.own_suites",
)
"""What the operators import when they run; tests hold it against a task's imports."""

_POOL_SIZE = "OPENBLAS_NUM_THREADS"
"""numpy starts that many threads less one when it is loaded, for matrices that no task has."""

_log = logging.getLogger(__name__)


def forks_tasks() -> bool:
    """Tell whether this process is a scheduler whose tasks are its children's children.

    By its command, since Airflow loads plugins before it says which of its jobs a process is for.
    """
    return "scheduler" in sys.argv[1:2] and "LocalExecutor" in conf.get("core", "executor")


def warm_up() -> None:
    """Import it all. A module that is not installed here is left to the task that needs it.

    Warns of it, unless it comes with an extra that somebody does without.
    """
    given = os.environ.get(_POOL_SIZE)
    os.environ[_POOL_SIZE] = "1"
    try:
        for module in TASKS_NEED:
            try:
                importlib.import_module(module)
            except ImportError as error:
                left_out = missing_extra(error)
                level = logging.INFO if left_out else logging.WARNING
                _log.log(level, "%s is not imported ahead of the tasks: %s", module, left_out or error)
    finally:
        if given is None:
            del os.environ[_POOL_SIZE]
        else:
            os.environ[_POOL_SIZE] = given
