"""FAB, the other manager of logins and rights that Airflow has: its users and roles stand in Airflow's database."""

import json
import subprocess
import sys
from collections.abc import Mapping

from lab.servers.airflow_environment import AirflowSettings
from lab.servers.process import REPOSITORY

MANAGER = "airflow.providers.fab.auth_manager.fab_auth_manager.FabAuthManager"


def make_users(
    settings: AirflowSettings,
    environment: Mapping[str, str],
    *,
    roles: Mapping[str, str],
    contract: str,
    other: str,
) -> None:
    """Make the users of these settings. roles: user to one of FAB's own roles, or of lab/servers/fab_users.py.

    contract, other: whose DAGs those roles are about. What FAB says to it, a line for each right, is kept in a log.
    Raises CalledProcessError.
    """
    told = {"passwords": settings.passwords(), "roles": dict(roles), "contract": contract, "other": other}
    argv = [sys.executable, "-m", "lab.servers.fab_users"]
    with (settings.home / "fab_users.log").open("wb") as log:
        subprocess.run(
            argv,
            input=json.dumps(told).encode(),
            stdout=log,
            stderr=subprocess.STDOUT,
            env=dict(environment),
            cwd=REPOSITORY,
            check=True,
            timeout=120,
        )
