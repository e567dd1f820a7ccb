"""Who is let in where: each route of the pages, and Airflow's own calls that matter to money, by kind of user.

On a live api-server under each of Airflow's two managers of rights. A route that stands in no table fails. What was
measured is written to build/routes/, which `make routes` prints. Let in means that the door opened, whatever lay
behind it; Airflow's own calls are asked with a body that changes nothing.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from lab.servers import fab
from lab.servers.airflow import AirflowStack, start_airflow
from lab.servers.airflow_client import TLS
from lab.servers.airflow_environment import AirflowSettings
from lab.servers.postgres import AIRFLOW_DATABASE, STORE_OWNER, STORE_ROLE, PostgresServer
from lab.servers.process import REPOSITORY
from lab.servers.stack import LabAddresses
from tallystick.report.write_report import write_report
from tallystick.store.engine import connect_store, migrate, open_store
from tallystick.store.runs.run_store import read_run
from tests.stored_books import CONTRACTS, LAST_BROKEN, fill, missing, payouts, waiting_plan

pytestmark = pytest.mark.timeout(900)

TABLES = REPOSITORY / "build" / "routes"
ROLES = ("anonymous", "viewer", "other_editor", "editor", "approver", "admin")
MANAGERS = {
    "SimpleAuthManager": "airflow.api_fastapi.auth.managers.simple.simple_auth_manager.SimpleAuthManager",
    "FAB": fab.MANAGER,
}
USERS = {"viewer": "viewer", "other_editor": "user", "editor": "user", "approver": "op", "admin": "admin"}
"""User to SimpleAuthManager's role. It knows no rights on single DAGs: both editors edit all."""

FAB_ROLES = {"viewer": "Viewer", "admin": "Admin"} | {name: name for name in ("other_editor", "editor", "approver")}

RECONCILE, COMPENSATE = "reconcile_billing_payouts", "compensate_billing_payouts"
RUN = "triggered__2026-03-02T18:15:00+00:00"
BREAK = missing(payouts(), "pay-1", 125_000).break_id
PLAN = waiting_plan(payouts()).plan_id


class Door(Enum):
    """What a route asks of whoever knocks."""

    LOGGED_IN = "anybody who is logged in"
    READS = "may read the contract's reconcile DAG"
    ACTS = "may read it, and start the contract's compensation"
    READS_REPAIR = "may read the compensation"
    STARTS_REPAIR = "may start the compensation"
    ANSWERS = "may answer what the compensation asks"
    EDITS_TASKS = "may clear and mark tasks of the compensation"
    EDITS_XCOM = "may rewrite XComs of the compensation"
    EDITS_OTHER_XCOM = "may rewrite XComs of the reconciliation"
    SECRETS = "may read connections"
    MENU = "may read plugins"


_USERS = {"other_editor", "editor", "approver", "admin"}
LET_IN: Mapping[str, Mapping[Door, set[str]]] = {
    "SimpleAuthManager": {
        Door.LOGGED_IN: {"viewer", *_USERS},
        Door.READS: {"viewer", *_USERS},
        Door.READS_REPAIR: {"viewer", *_USERS},
        Door.ACTS: _USERS,
        Door.STARTS_REPAIR: _USERS,
        Door.ANSWERS: _USERS,
        Door.EDITS_TASKS: _USERS,
        Door.EDITS_XCOM: _USERS,
        Door.EDITS_OTHER_XCOM: _USERS,
        Door.SECRETS: {"approver", "admin"},
        Door.MENU: {"viewer", *_USERS},
    },
    "FAB": {
        Door.LOGGED_IN: {"viewer", *_USERS},
        Door.READS: {"viewer", "editor", "approver", "admin"},
        Door.READS_REPAIR: {"viewer", "editor", "approver", "admin"},
        Door.ACTS: {"approver", "admin"},
        Door.STARTS_REPAIR: {"approver", "admin"},
        Door.ANSWERS: {"approver", "admin"},
        Door.EDITS_TASKS: {"admin"},
        Door.EDITS_XCOM: {"admin"},
        Door.EDITS_OTHER_XCOM: {"editor", "admin"},
        Door.SECRETS: {"admin"},
        Door.MENU: {"admin"},
    },
}


@dataclass(frozen=True, kw_only=True)
class Call:
    """One request. form: what a page sends, and the page that has the form's token; json: the body of a call."""

    door: Door
    method: str = "GET"
    address: str
    form: Mapping[str, str] = field(default_factory=dict)
    page: str = ""
    json: Any = None


_READS = partial(Call, door=Door.READS)
_ACTS = partial(Call, door=Door.ACTS, method="POST")
PAGES: Mapping[str, Call] = {
    "GET /": Call(door=Door.LOGGED_IN, address="/"),
    "GET /assets/{name}": Call(door=Door.LOGGED_IN, address="/assets/pages.css"),
    "GET /trace": Call(door=Door.LOGGED_IN, address="/trace"),
    "POST /trace": Call(door=Door.LOGGED_IN, method="POST", address="/trace", form={"key": "nowhere"}, page="/trace"),
    "GET /contract/{contract_name}": _READS(address="/contract/billing_payouts"),
    "GET /run/{contract_name}/{cut_n}": _READS(address=f"/run/billing_payouts/{LAST_BROKEN}"),
    "GET /break/{break_id}": _READS(address=f"/break/{BREAK}"),
    "GET /plan/{plan_id}": _READS(address=f"/plan/{PLAN}"),
    "GET /dag/{dag_id}": _READS(address=f"/dag/{RECONCILE}"),
    "GET /dag-run/{dag_id}/{run_id:path}": _READS(address=f"/dag-run/{COMPENSATE}/{RUN}"),
    "GET /report/{contract_name}/{cut_n}": _READS(address=f"/report/billing_payouts/{LAST_BROKEN}"),
    "GET /data-docs/{contract_name}/{path:path}": _READS(address="/data-docs/billing_payouts/index.html"),
    "POST /contract/{contract_name}/acknowledge": _ACTS(
        address="/contract/billing_payouts/acknowledge", form={"alert": "nothing"}, page="/contract/billing_payouts"
    ),
    "POST /contract/{contract_name}/plan": _ACTS(
        address="/contract/billing_payouts/plan", page="/contract/billing_payouts"
    ),
    "POST /break/{break_id}/write-off": _ACTS(
        address=f"/break/{BREAK}/write-off", form={"reason": "as asked"}, page="/contract/billing_payouts"
    ),
    "POST /run/{contract_name}/{cut_n}/close": _ACTS(
        address=f"/run/billing_payouts/{LAST_BROKEN}/close",
        form={"reason": "as asked"},
        page="/contract/billing_payouts",
    ),
}
"""By method and path, as the app has them."""

_API = "/api/v2"
_TASK = f"{_API}/dags/{COMPENSATE}/dagRuns/{RUN}/taskInstances/approve"
_OTHER_TASK = f"{_API}/dags/{RECONCILE}/dagRuns/{RUN}/taskInstances/settle"
_NOT_A_BODY = {"nothing": "that Airflow takes"}
_CHANGES = partial(Call, json=_NOT_A_BODY)
AIRFLOW: Mapping[str, Call] = {
    "read an XCom": Call(door=Door.READS_REPAIR, address=f"{_TASK}/xcomEntries/return_value"),
    "add an XCom": _CHANGES(door=Door.EDITS_XCOM, method="POST", address=f"{_TASK}/xcomEntries"),
    "rewrite an XCom": _CHANGES(door=Door.EDITS_XCOM, method="PATCH", address=f"{_TASK}/xcomEntries/return_value"),
    "rewrite an XCom of the reconciliation": _CHANGES(
        door=Door.EDITS_OTHER_XCOM, method="PATCH", address=f"{_OTHER_TASK}/xcomEntries/return_value"
    ),
    "read the question": Call(door=Door.READS_REPAIR, address=f"{_TASK}/-1/hitlDetails"),
    "answer it": _CHANGES(door=Door.ANSWERS, method="PATCH", address=f"{_TASK}/-1/hitlDetails"),
    "clear tasks": _CHANGES(
        door=Door.EDITS_TASKS, method="POST", address=f"{_API}/dags/{COMPENSATE}/clearTaskInstances"
    ),
    "mark a task as done": _CHANGES(door=Door.EDITS_TASKS, method="PATCH", address=_TASK),
    "start a repair": _CHANGES(door=Door.STARTS_REPAIR, method="POST", address=f"{_API}/dags/{COMPENSATE}/dagRuns"),
    "have Tallystick in Airflow's menu": Call(door=Door.MENU, address=f"{_API}/plugins"),
    "read connections": Call(door=Door.SECRETS, address=f"{_API}/connections"),
}


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Who was let in where, under one manager: route to roles."""

    manager: str
    pages: dict[str, set[str]]
    airflow: dict[str, set[str]]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """Method and path of all that the plugin mounts; asked in a process that may load Airflow."""
    script = (
        "from tallystick_airflow.pages.app import app\n"
        "from tallystick_airflow.plugin import TallystickPlugin as plugin\n"
        "assert [one['url_prefix'] for one in plugin.fastapi_apps] == ['/tallystick']\n"
        "print(*(f'{method} {route.path}' for route in app.routes for method in route.methods), sep='\\n')"
    )
    environment = os.environ | {"AIRFLOW_HOME": str(tmp_path_factory.mktemp("airflow"))}
    argv = [sys.executable, "-c", script]
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=True, timeout=120)
    return {line for line in done.stdout.splitlines() if re.match(r"[A-Z]+ /", line)}


@pytest.fixture(scope="module", params=MANAGERS)
def measured(request: pytest.FixtureRequest, build_folder: Path, store_server: PostgresServer) -> Iterator[Measured]:
    folder = build_folder / f"routes-{request.param}"
    (folder / "home").mkdir(parents=True)
    addresses = new_books(folder, store_server, name=f"routes_{request.param.lower()}")
    settings = AirflowSettings(
        home=folder / "home",
        contracts=CONTRACTS,
        artifacts=folder / "artifacts",
        users=USERS,
        auth_manager=MANAGERS[request.param],
    )
    make_users = (
        partial(fab.make_users, settings, roles=FAB_ROLES, contract="billing_payouts", other="billing_payments")
        if request.param == "FAB"
        else None
    )
    with start_airflow(
        settings, addresses, components=("api-server",), make_users=make_users, deadline_seconds=240
    ) as airflow:
        yield Measured(
            manager=request.param,
            pages={name: let_in(airflow, call, below="/tallystick") for name, call in PAGES.items()},
            airflow={name: let_in(airflow, call) for name, call in AIRFLOW.items()},
        )


def new_books(folder: Path, server: PostgresServer, *, name: str) -> LabAddresses:
    """Databases of this Airflow's own, the store with the windows of the payouts, a report and Data Docs."""
    with server.connect() as admin:
        admin.execute(f"create database {name} owner {STORE_OWNER}")
        admin.execute(f"create database {name}_airflow owner {AIRFLOW_DATABASE}")
    migrate(connect_store(server.dsn(STORE_OWNER, name)), grant_to=STORE_ROLE)
    store = open_store(server.dsn(STORE_ROLE, name))
    fill(store, payouts())
    run = read_run(store, payouts().name, LAST_BROKEN)
    assert run is not None
    write_report(run, payouts(), folder / "artifacts")
    docs = folder / "artifacts" / "data_docs" / payouts().name
    docs.mkdir(parents=True)
    (docs / "index.html").write_text("<p>docs</p>")
    nowhere = "postgresql://nobody:none@127.0.0.1:9/none"
    return LabAddresses(
        folder=str(folder),
        bootstrap_servers="127.0.0.1:9",
        proxied_bootstrap_servers="127.0.0.1:9",
        ledger_owner_dsn=nowhere,
        ledger_reader_dsn=nowhere,
        ledger_admin_dsn=nowhere,
        store_dsn=server.dsn(STORE_ROLE, name),
        store_owner_dsn=server.dsn(STORE_OWNER, name),
        airflow_dsn=server.dsn(AIRFLOW_DATABASE, f"{name}_airflow"),
        proxy_control_port=9,
    )


def let_in(airflow: AirflowStack, call: Call, *, below: str = "") -> set[str]:
    """The roles that the door opens to."""
    return {role for role in ROLES if is_let_in(airflow, call, role, below=below)}


def is_let_in(airflow: AirflowStack, call: Call, role: str, *, below: str) -> bool:
    headers = {} if role == "anonymous" else {"Authorization": f"Bearer {airflow.token(role)}"}
    with httpx.Client(base_url=f"{airflow.base_url}{below}", headers=headers, timeout=30, verify=TLS) as client:
        sent: dict[str, Any] = {"json": call.json} if call.json is not None else {}
        if call.page:
            found = re.search(r'name="token" value="([^"]+)"', client.get(call.page).text)
            sent = {"data": {**call.form, "token": found[1] if found else "none"}}
        status = client.request(call.method, call.address, **sent).status_code
    assert status < 500, f"{call.method} {call.address} as {role}: {status}"
    # A break or a plan that somebody may not see looks like one that is not there; these are there.
    hidden = bool(below) and status == 404
    return status not in (401, 403) and not hidden


def test_every_route_that_is_served_stands_in_the_table(served: set[str]) -> None:
    assert served == set(PAGES)


def test_each_door_opens_to_whom_it_should(measured: Measured) -> None:
    expected = LET_IN[measured.manager]
    assert measured.pages == {name: expected[call.door] for name, call in PAGES.items()}
    assert measured.airflow == {name: expected[call.door] for name, call in AIRFLOW.items()}


def test_what_was_measured_is_written_down(measured: Measured) -> None:
    table = table_of(measured)
    TABLES.mkdir(parents=True, exist_ok=True)
    (TABLES / f"{list(MANAGERS).index(measured.manager)}.md").write_text(table)
    other_editor = "-" if measured.manager == "FAB" else "yes"
    assert f"| `GET /contract/{{contract_name}}` | - | yes | {other_editor} |" in table


def table_of(measured: Measured) -> str:
    rows = {f"`{name}`": roles for name, roles in measured.pages.items()} | measured.airflow
    head = f"## {measured.manager}\n\n| | {' | '.join(role.replace('_', ' ') for role in ROLES)} |\n"
    head += f"|---|{'---|' * len(ROLES)}\n"
    return head + "".join(
        f"| {name} | {' | '.join('yes' if role in roles else '-' for role in ROLES)} |\n"
        for name, roles in rows.items()
    )
