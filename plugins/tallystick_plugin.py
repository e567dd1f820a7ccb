"""Tells Airflow that Tallystick is here. Airflow runs this file under its bare name, so it holds nothing else.

Operators, sensor and trigger need no registration: DAGs import them from the installed package `tallystick_airflow`.
"""

from airflow.plugins_manager import AirflowPlugin


class TallystickPlugin(AirflowPlugin):
    """Listed under Admin, Plugins: seen there, the plugins folder is in use."""

    name = "tallystick"
