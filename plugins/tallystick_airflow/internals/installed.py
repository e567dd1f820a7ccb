"""The Airflow that is installed here, and a setting of it that parked tasks need. Imports nothing that is heavy."""

import sys
from collections.abc import Callable
from importlib.metadata import version

from airflow.sdk.configuration import conf

HEARTBEAT_SECONDS_MAX = 1
"""Of [workers] min_heartbeat_interval, with which no parked task was lost in a hundred."""


def airflow_minor() -> tuple[int, int]:
    """Return major and minor version."""
    major, minor, *_ = version("apache-airflow-core").split(".")
    return int(major), int(minor)


def lost_tasks() -> str:
    """Return what is wrong with the setting by which a worker sees that a task has parked; empty if nothing is.

    The worker looks so often whether a task's process has ended. Where the task has resumed before that, the scheduler
    takes the late message for a failure. Airflow's default is 5 s. Sources: apache/airflow #66374, #71580, #72716.
    """
    seconds = conf.getint("workers", "min_heartbeat_interval", fallback=5)
    if seconds <= HEARTBEAT_SECONDS_MAX:
        return ""
    return (
        f"[workers] min_heartbeat_interval is {seconds} s: Airflow may fail a task that parks and resumes within that "
        "time, such as settle and approvals. Set AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL=1 for scheduler and workers; "
        "settle also waits without parking: deferrable=False"
    )


def warn_of_lost_tasks(warn: Callable[[str, str], None]) -> None:
    """Write it into a log, where something is wrong. warn: a logger's `warning`."""
    if said := lost_tasks():
        warn("%s", said)


def runs_tasks() -> bool:
    """Tell by its command whether this process starts tasks: a scheduler, or a worker of Celery."""
    return sys.argv[1:2] == ["scheduler"] or sys.argv[1:3] == ["celery", "worker"]
