"""Makes users, and roles with rights on single DAGs, in an Airflow under FAB: `python -m tests.browser.fab_users`.

Passwords come by stdin, as JSON. Runs in Airflow's own environment, before its api-server starts.
"""

import json
import sys

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


ROLES = {
    "other_editor": [
        *READS,
        *EDITS,
        *of_dag("reconcile_billing_payments", p.ACTION_CAN_READ, p.ACTION_CAN_EDIT),
    ],
    "editor": [
        *READS,
        *EDITS,
        *of_dag("reconcile_billing_payouts", p.ACTION_CAN_READ, p.ACTION_CAN_EDIT),
        *of_dag("compensate_billing_payouts", p.ACTION_CAN_READ),
    ],
    "approver": [
        *READS,
        *APPROVES,
        *of_dag("reconcile_billing_payouts", p.ACTION_CAN_READ),
        *of_dag("compensate_billing_payouts", p.ACTION_CAN_READ, p.ACTION_CAN_EDIT),
    ],
}
"""Beside FAB's own. What may be done to runs, tasks and XComs is one right for all DAGs; each DAG has its own."""
STOCK = {"viewer": "Viewer", "admin": "Admin"}


def main(passwords: dict[str, str]) -> None:
    """Make each role, and a user of its name."""
    with get_application_builder() as builder:
        manager = builder.sm
        manager.sync_roles()
        for name, rights in ROLES.items():
            role = manager.add_role(name)
            for action, resource in rights:
                manager.add_permission_to_role(role, manager.create_permission(action, resource))
        for name, password in passwords.items():
            role = manager.find_role(STOCK.get(name, name))
            if not manager.add_user(name, name, "of the test", f"{name}@example.org", role, password=password):
                sys.exit(f"{name}: FAB made no such user")


if __name__ == "__main__":
    main(json.load(sys.stdin))
