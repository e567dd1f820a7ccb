"""A company's Airflow, as `make adopt` uses it: its DAG folder, its contract, its connections, and no checkout.

The environment is built anew, without PYTHONPATH; the working folder is the company's. The shop that publishes orders
and books them is docs/examples/walk, copied; the jars of Spark are fetched by the package itself.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CONTRACT = "shop_orders"
PASSED_ON = ("HOME", "LANG", "LC_ALL", "TMPDIR", "JAVA_HOME", "USER")
MINUTES_MAX = 30
_LAST_LINES = 12
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
        self._lay_out()
        seen = self._run(str(self.python), "-c", _LOOK).strip()
        if seen != "no checkout":
            raise AdoptionFailed(seen)
        self._airflow("db", "migrate")
        owner = {"TALLYSTICK_STORE_DSN": self.servers["store_owner_dsn"]}
        self._run(self._tool("tallystick"), "store", "migrate", "--grant-to", "tallystick", more=owner)
        self._shop("open")
        verdicts = [self._window(0, ok=True)]
        self._shop("sell", "20")
        verdicts.append(self._window(1, ok=True))
        self._shop("sell", "20", "--forget", "1")
        verdicts.append(self._window(2, ok=False))
        if verdicts != ["INCONCLUSIVE", "MATCHED", "BROKEN"]:
            raise AdoptionFailed(f"the verdicts are {', '.join(verdicts)}")
        return "no checkout in sight; a baseline, MATCHED, and BROKEN for a lost order"

    def _window(self, n: int, *, ok: bool) -> str:
        """Run the DAG for one hour, as a process of Airflow's own, and return the verdict that is stored."""
        try:
            self._airflow("dags", "test", f"reconcile_{CONTRACT}", f"2026-01-01T0{n + 1}:00:00+00:00")
        except AdoptionFailed:
            if ok:
                raise
        shown = self._run(self._tool("tallystick"), "show", f"{CONTRACT}/{n}", "--json", codes=(0, 1, 3))
        return str(json.loads(shown)["verdict"])

    def _lay_out(self) -> None:
        """Write what a company writes itself, a DAG file and its contract, and fetch the jars."""
        dags = self.folder / "dags"
        (dags / "contracts").mkdir(parents=True)
        (dags / "reconcile.py").write_text(_DAG_FILE)
        shutil.copy(ROOT / "docs" / "examples" / "walk" / f"{CONTRACT}.yaml", dags / "contracts")
        shutil.copy(ROOT / "docs" / "examples" / "walk" / "shop.py", self.folder)
        self._run(self._tool("tallystick"), "jars", "fetch", str(self.folder / "jars"))

    def _environment(self) -> dict[str, str]:
        self.folder.mkdir(parents=True, exist_ok=True)
        servers, binaries = self.servers, self.python.parent
        connections = {
            "SPARK_DEFAULT": {"conn_type": "spark", "host": "local[2]"},
            "SHOP_KAFKA": {"conn_type": "kafka", "extra": {"bootstrap.servers": servers["bootstrap_servers"]}},
            "SHOP_LEDGER": servers["ledger_reader_dsn"],
            "TALLYSTICK_STORE": servers["store_dsn"],
        }
        return {
            **{name: os.environ[name] for name in PASSED_ON if name in os.environ},
            "PATH": f"{binaries}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
            "AIRFLOW_HOME": str(self.folder / "airflow"),
            "AIRFLOW__CORE__DAGS_FOLDER": str(self.folder / "dags"),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            **{
                f"AIRFLOW_CONN_{name}": given if isinstance(given, str) else json.dumps(given)
                for name, given in connections.items()
            },
            "TALLYSTICK_JARS_DIR": str(self.folder / "jars"),
            "TALLYSTICK_ARTIFACTS_DIR": str(self.folder / "artifacts"),
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
