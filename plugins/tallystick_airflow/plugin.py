"""Tells Airflow that Tallystick is here. Found by the package's entry point, so it is there wherever the package is.

Operators, sensor and trigger need no registration: DAGs import them. What a deadline is counted from does: without it
the scheduler could make no run of a DAG that names it. The pages are mounted by the api-server; their addresses are
relative, as Airflow may itself be served below a path.

Loading it imports what the DAG files import, too; and in a scheduler that forks its tasks, all that they need. Airflow
loads plugins before it forks.
"""

import logging
from typing import Any

from airflow.plugins_manager import AirflowPlugin

import tallystick_airflow.dags.factory  # noqa: F401
from tallystick_airflow.internals.installed import runs_tasks, warn_of_lost_tasks
from tallystick_airflow.lazy_pages import pages
from tallystick_airflow.sensors.window_end import WindowEnd
from tallystick_airflow.warm_imports import forks_tasks, warm_up

_log = logging.getLogger(__name__)

_ICONS = {"icon": "tallystick/assets/icon.svg", "icon_dark_mode": "tallystick/assets/icon-dark.svg"}
_DEADLINES = [WindowEnd]
_APPS: list[dict[str, Any]] = [{"app": pages, "url_prefix": "/tallystick", "name": "Tallystick"}]
_VIEWS: list[dict[str, Any]] = [
    {
        "name": "Tallystick",
        "href": "tallystick/",
        "destination": "nav",
        "category": "browse",
        "url_route": "tallystick",
        **_ICONS,
    },
    {
        "name": "Tallystick",
        "href": "tallystick/dag/{DAG_ID}",
        "destination": "dag",
        "url_route": "tallystick-contract",
        **_ICONS,
    },
    {
        "name": "Tallystick",
        "href": "tallystick/dag-run/{DAG_ID}/{RUN_ID}",
        "destination": "dag_run",
        "url_route": "tallystick-run",
        **_ICONS,
    },
]


class TallystickPlugin(AirflowPlugin):
    """Listed under Admin, Plugins."""

    name = "tallystick"
    deadline_references = _DEADLINES
    fastapi_apps = _APPS
    external_views = _VIEWS

    @classmethod
    def on_load(cls, *_args: Any, **_kwargs: Any) -> None:
        """Say which setting is not as tasks need it, and import ahead of them.

        Called once in each process of Airflow that loads plugins.
        """
        if runs_tasks():
            warn_of_lost_tasks(_log.warning)
        if forks_tasks():
            warm_up()
