"""Tells Airflow that Tallystick is here. Found by the package's entry point, so it is there wherever the package is.

Operators, sensor and trigger need no registration: DAGs import them. What a deadline is counted from does: without it
the scheduler could make no run of a DAG that names it.
"""

from typing import ClassVar

from airflow.plugins_manager import AirflowPlugin

from tallystick_airflow.window_end import WindowEnd


class TallystickPlugin(AirflowPlugin):
    """Listed under Admin, Plugins."""

    name = "tallystick"
    deadline_references: ClassVar = [WindowEnd]
