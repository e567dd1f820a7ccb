"""A company's Airflow, as `make adopt` uses it: its DAG folder, its contract, its connections, and no checkout.

The environment is built anew, without PYTHONPATH; the working folder is the company's. The shop that publishes orders
and books them is docs/examples/walk, copied, with another start and schedule in its contract; the jars of Spark are
fetched by the package itself. Its connections are those of docs/install.md, with other addresses, imported as that page
says. Airflow's own processes run the DAG (setup/own_airflow.py).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from pathlib import Path
from urllib.parse import unquote, urlsplit

from own_airflow import AirflowFailed, OwnAirflow, own_airflow

ROOT = Path(__file__).resolve().parent.parent
INSTALL_PAGE = ROOT / "docs" / "install.md"
CONTRACT = "shop_orders"
DAG = f"reconcile_{CONTRACT}"
PASSED_ON = ("HOME", "LANG", "LC_ALL", "TMPDIR", "JAVA_HOME", "USER")
MINUTES_MAX = 30
_LAST_LINES = 12
_POOL = "spark"
_SHOP = ROOT / "docs" / "examples" / "walk"
_SCHEDULE, _START = 'schedule: "0 * * * *"', "start_date: 2026-01-01T00:00:00Z"
_DAG_FILE = """from tallystick_airflow import reconcile_dags

globals().update(reconcile_dags("contracts"))
"""
_LOOK = """
import importlib.util, sys, tallystick
inside = tallystick.__file__.startswith(sys.prefix)
print("no checkout" if inside and importlib.util.find_spec("lab") is None else f"imported from {tallystick.__file__}")
"""


class AdoptionFailed(Exception):
    """A step did not do what it should; the message has what it said last."""


class Adopter:
    """Its folder, its Python with Airflow, and the addresses of broker and databases."""

    def __init__(self, folder: Path, python: Path, servers: Mapping[str, str]) -> None:
        self.folder, self.python, self.servers = folder, python, servers
        self.environment = self._environment()

    def listed(self, *command: str) -> str:
        """Return that Tallystick is in what `airflow COMMAND` lists. Raises AdoptionFailed."""
        told = self._airflow(*command, "--output", "json")
        names = [line for line in told.splitlines() if "tallystick" in line]
        if not names:
            raise AdoptionFailed("tallystick is not listed")
        return "lists tallystick"

    def judge_own_contract(self) -> str:
        """Let the DAG judge three windows of a shop: a baseline, a match and a lost order. Raises AdoptionFailed."""
        self._lay_out(datetime.now(UTC))
        seen = self._run(str(self.python), "-c", _LOOK).strip()
        if seen != "no checkout":
            raise AdoptionFailed(seen)
        owner = {"TALLYSTICK_STORE_DSN": self.servers["store_owner_dsn"]}
        self._run(self._tool("tallystick"), "store", "migrate", "--grant-to", "tallystick", more=owner)
        self._shop("open")
        self._airflow("db", "migrate")
        self._import_connections()
        self._airflow("pools", "set", _POOL, "1", "Spark drivers")
        try:
            with own_airflow(self._tool("airflow"), self.folder, self.environment) as airflow:
                airflow.wait_dag(DAG)
                said = self._judge_three_windows(airflow)
        except AirflowFailed as failed:
            raise AdoptionFailed(str(failed)) from failed
        return f"no checkout in sight; {said}"

    def _judge_three_windows(self, airflow: OwnAirflow) -> str:
        """The scheduler starts the first, a person the next two. Raises AdoptionFailed and AirflowFailed."""
        airflow.unpause(DAG)
        seen = [self._seen(airflow, airflow.scheduled(DAG), 0)]
        start = datetime.now(UTC)
        for n, sold in ((1, ["20"]), (2, ["20", "--forget", "1"])):
            self._shop("sell", *sold)
            end = datetime.now(UTC)
            seen.append(self._seen(airflow, airflow.trigger(DAG, start, end), n))
            start = end
        if seen != [("success", "INCONCLUSIVE"), ("success", "MATCHED"), ("failed", "BROKEN")]:
            raise AdoptionFailed(f"the runs and verdicts are {seen}")
        if (status := airflow.page("/tallystick/")) != HTTPStatus.OK:
            raise AdoptionFailed(f"the overview page answers with {status}")
        return "a scheduled baseline; MATCHED; BROKEN and a red run for a lost order; the overview page is shown"

    def _seen(self, airflow: OwnAirflow, run_id: str, n: int) -> tuple[str, str]:
        """Return how a run ended, and the verdict that it stored. Raises AdoptionFailed where it stored none."""
        state = airflow.state(DAG, run_id)
        try:
            shown = self._run(self._tool("tallystick"), "show", f"{CONTRACT}/{n}", "--json", codes=(0, 1, 3))
        except AdoptionFailed as failed:
            raise AdoptionFailed(f"{failed}; the run is {state}: {airflow.failed_logs(DAG, run_id)}") from failed
        return state, str(json.loads(shown)["verdict"])

    def _lay_out(self, now_utc: datetime) -> None:
        """Write what a company writes itself, a DAG file and its contract, and fetch the jars."""
        dags = self.folder / "dags"
        (dags / "contracts").mkdir(parents=True)
        (dags / "reconcile.py").write_text(_DAG_FILE)
        (dags / "contracts" / f"{CONTRACT}.yaml").write_text(own_contract(now_utc))
        shutil.copy(_SHOP / "shop.py", self.folder)
        self._run(self._tool("tallystick"), "jars", "fetch", str(self.folder / "jars"))

    def _import_connections(self) -> None:
        file = self.folder / "connections.json"
        file.touch(mode=0o600)
        file.write_text(json.dumps(own_connections(INSTALL_PAGE.read_text(), self.servers)))
        self._airflow("connections", "import", str(file))
        file.unlink()

    def _environment(self) -> dict[str, str]:
        self.folder.mkdir(parents=True, exist_ok=True)
        servers, binaries = self.servers, self.python.parent
        return {
            **{name: os.environ[name] for name in PASSED_ON if name in os.environ},
            "PATH": f"{binaries}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
            "AIRFLOW_HOME": str(self.folder / "airflow"),
            "AIRFLOW__CORE__DAGS_FOLDER": str(self.folder / "dags"),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": servers["airflow_dsn"].replace("://", "+psycopg2://", 1),
            "AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL": "1",
            "TALLYSTICK_JARS_DIR": str(self.folder / "jars"),
            "TALLYSTICK_ARTIFACTS_DIR": str(self.folder / "artifacts"),
            "TALLYSTICK_SPARK_POOL": _POOL,
            "TALLYSTICK_STORE_DSN": servers["store_dsn"],
            "TALLYSTICK_CONN_SHOP_KAFKA": json.dumps({"bootstrap.servers": servers["bootstrap_servers"]}),
            "TALLYSTICK_CONN_SHOP_LEDGER": servers["ledger_reader_dsn"],
            "SHOP_BROKER": servers["bootstrap_servers"],
            "SHOP_DATABASE": servers["ledger_owner_dsn"],
            "SPARK_LOCAL_IP": "127.0.0.1",
            "TZ": "UTC",
        }

    def _airflow(self, *arguments: str) -> str:
        return self._run(self._tool("airflow"), *arguments)

    def _shop(self, *arguments: str) -> str:
        return self._run(str(self.python), "shop.py", *arguments)

    def _tool(self, name: str) -> str:
        return str(self.python.with_name(name))

    def _run(self, *command: str, codes: tuple[int, ...] = (0,), more: Mapping[str, str] | None = None) -> str:
        return run(list(command), cwd=self.folder, environment={**self.environment, **(more or {})}, codes=codes)


def own_contract(now_utc: datetime) -> str:
    """Return the contract of the shop with another schedule: one window ended an hour ago, the next does in 23 hours.

    So the scheduler starts one run, and what follows it is started by hand.
    """
    ended = (now_utc - timedelta(hours=1)).replace(second=0, microsecond=0)
    written = (_SHOP / f"{CONTRACT}.yaml").read_text()
    for line, instead in (
        (_SCHEDULE, f'schedule: "{ended.minute} {ended.hour} * * *"'),
        (_START, f"start_date: {ended - timedelta(days=1):%Y-%m-%dT%H:%M:%SZ}"),
    ):
        assert written.count(line) == 1, line
        written = written.replace(line, instead)
    return written


def own_connections(page: str, servers: Mapping[str, str]) -> dict[str, dict[str, object]]:
    """Return the connections that a page has as its only block of JSON, with the addresses of these servers."""
    (block,) = re.findall(r"^```json\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL)
    found: dict[str, dict[str, object]] = json.loads(block)
    found["shop_kafka"]["extra"] = {"bootstrap.servers": servers["bootstrap_servers"]}
    for name, dsn in (("shop_ledger", servers["ledger_reader_dsn"]), ("tallystick_store", servers["store_dsn"])):
        parts = urlsplit(dsn)
        account = {"login": unquote(parts.username or ""), "password": unquote(parts.password or "")}
        place = {"host": parts.hostname, "port": parts.port, "schema": parts.path.removeprefix("/")}
        assert found[name].keys() == {"conn_type", *account, *place}, name
        found[name] = {**found[name], **account, **place}
    return found


def run(
    command: list[str],
    *,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
    codes: tuple[int, ...] = (0,),
) -> str:
    """Return the output of a command. Raises AdoptionFailed with its last lines unless it ends with one of codes."""
    given = {name: value for name, value in (environment or os.environ).items() if name != "PYTHONPATH"}
    done = subprocess.run(
        command, cwd=cwd, env=given, capture_output=True, text=True, timeout=MINUTES_MAX * 60, check=False
    )
    if done.returncode not in codes:
        last = "\n".join(f"{done.stdout}\n{done.stderr}".strip().splitlines()[-_LAST_LINES:])
        raise AdoptionFailed(f"`{Path(command[0]).name} {' '.join(command[1:4])}` ended with {done.returncode}: {last}")
    return done.stdout
