"""Makes users, and roles with rights on single DAGs, in an Airflow under FAB: `python -m lab.servers.fab_users`.

What to make comes by stdin, as JSON: see lab/servers/fab.py. Runs in Airflow's own environment, before its api-server
starts.
"""

import json
import sys
from typing import Any

from airflow.providers.fab.auth_manager.cli_commands.utils import get_application_builder
from airflow.providers.fab.www.security import permissions as p

READS = [
    (p.ACTION_CAN_READ, resource)
    for resource in (
        p.RESOURCE_WEBSITE,
        p.RESOURCE_DAG_RUN,
        p.RESOURCE_TASK_INSTANCE,
        p.RESOURCE_XCOM,
        p.RESOURCE_HITL_DETAIL,
    )
]
EDITS = [
    (action, resource)
    for action in (p.ACTION_CAN_CREATE, p.ACTION_CAN_EDIT)
    for resource in (p.RESOURCE_DAG_RUN, p.RESOURCE_TASK_INSTANCE, p.RESOURCE_XCOM, p.RESOURCE_HITL_DETAIL)
]
APPROVES = [(p.ACTION_CAN_CREATE, p.RESOURCE_DAG_RUN), (p.ACTION_CAN_EDIT, p.RESOURCE_HITL_DETAIL)]


def of_dag(dag_id: str, *actions: str) -> list[tuple[str, str]]:
    """Rights on one DAG."""
    return [(action, p.resource_name(dag_id, p.RESOURCE_DAG)) for action in actions]


def roles(contract: str, other: str) -> dict[str, list[tuple[str, str]]]:
    """Return those beside FAB's own.

    What may be done to runs, tasks and XComs is one right for all DAGs; each DAG has its own.
    """
    return {
        "other_editor": [
            *READS,
            *EDITS,
            *of_dag(f"reconcile_{other}", p.ACTION_CAN_READ, p.ACTION_CAN_EDIT),
        ],
        "editor": [
            *READS,
            *EDITS,
            *of_dag(f"reconcile_{contract}", p.ACTION_CAN_READ, p.ACTION_CAN_EDIT),
            *of_dag(f"compensate_{contract}", p.ACTION_CAN_READ),
        ],
        "approver": [
            *READS,
            *APPROVES,
            *of_dag(f"reconcile_{contract}", p.ACTION_CAN_READ),
            *of_dag(f"compensate_{contract}", p.ACTION_CAN_READ, p.ACTION_CAN_EDIT),
        ],
    }


def main(told: dict[str, Any]) -> None:
    """Make each role, and each user with theirs."""
    with get_application_builder() as builder:
        manager = builder.sm
        manager.sync_roles()
        for name, rights in roles(told["contract"], told["other"]).items():
            role = manager.add_role(name)
            for action, resource in rights:
                manager.add_permission_to_role(role, manager.create_permission(action, resource))
        for name, password in told["passwords"].items():
            role = manager.find_role(told["roles"][name])
            if not manager.add_user(name, name, "of the lab", f"{name}@example.org", role, password=password):
                sys.exit(f"{name}: FAB made no such user")


if __name__ == "__main__":
    main(json.load(sys.stdin))
