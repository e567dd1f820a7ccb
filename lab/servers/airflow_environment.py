"""The one environment that all processes of the lab's Airflow share: settings, connections, secrets.

What differs between two of them differs silently: a wrong signature here, a wrong database there. So it is built once.
"""

import base64
import json
import os
import secrets
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lab.servers.airflow_connections import AirflowConnection, airflow_variable, postgres_connection
from lab.servers.class_archives import SMALL_JVM
from lab.servers.ports import free_port
from lab.servers.process import REPOSITORY
from lab.servers.stack import LabAddresses

USERS = {"admin": "admin", "operator": "op", "approver": "op", "viewer": "viewer"}
"""User to role. An op may start runs and approve, though not approve what it asked for; a viewer may only look."""

SPARK_POOL = "spark"
"""Pool of one slot, where each task starts a JVM: two at once take two cores longer than one after the other."""

LAB_CONNECTIONS = ("spark_default", "kafka_billing", "ledger_billing", "tallystick_store", "alert_webhook")
"""Ids of the connections that every Airflow of the lab has."""

_PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "JAVA_HOME", "PYTHONPATH", "USER")

SMALL_SPARK = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "600m",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    # To compile a plan, or to plan it anew after each stage, costs more than to walk it over a few rows.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.driver.extraJavaOptions": SMALL_JVM,
}
"""For a few thousand rows on two cores: fewer partitions, and a third of the CPU time; most was the compilers'."""


@dataclass(frozen=True, kw_only=True)
class AirflowSettings:
    """What one Airflow of the lab is made of. The webhook is the address that alerts are posted to.

    warm_spark: its tasks are clients of a Spark Connect server; otherwise each submits an app of its own.
    look_every_seconds: how long the scheduler rests where it found nothing to do; 0.2 costs a quarter of a core.
    """

    home: Path
    contracts: Path
    artifacts: Path
    webhook: str = "http://127.0.0.1:9/nobody-listens"  # the discard port
    dags: Path = REPOSITORY / "dags"
    spark_conf: Mapping[str, str] = field(default_factory=lambda: dict(SMALL_SPARK))
    connections: Mapping[str, AirflowConnection] = field(default_factory=dict, repr=False)  # beside LAB_CONNECTIONS
    users: Mapping[str, str] = field(default_factory=lambda: dict(USERS))
    auth_manager: str = "airflow.api_fastapi.auth.managers.simple.simple_auth_manager.SimpleAuthManager"
    warm_spark: bool = False
    look_every_seconds: float = 1.0  # as Airflow does
    jars: Path = REPOSITORY / ".jars" / "spark"
    port: int = field(default_factory=free_port)
    worker_log_port: int = field(default_factory=free_port)
    trigger_log_port: int = field(default_factory=free_port)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def passwords_file(self) -> Path:
        return self.home / "passwords.json"

    def passwords(self) -> dict[str, str]:
        """Read each user's password."""
        found: dict[str, str] = json.loads(self.passwords_file.read_text())
        return found


def build_environment(settings: AirflowSettings, addresses: LabAddresses) -> dict[str, str]:
    """Build the environment and write the users' passwords, new ones each time. All values are plain strings."""
    write_secret(settings.passwords_file, json.dumps({user: secrets.token_urlsafe(12) for user in settings.users}))
    binaries = Path(sys.executable).parent
    passed_on = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    return (
        passed_on
        | {"PATH": f"{binaries}{os.pathsep}{passed_on.get('PATH', os.defpath)}", "TZ": "UTC"}
        | _airflow(settings, addresses.airflow_dsn)
        | {airflow_variable(name): _written(value) for name, value in _connections(settings, addresses).items()}
        | _tallystick(settings)
        | {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    )


def write_secret(path: Path, text: str) -> None:
    """Write a file that only its owner reads."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600)
    path.chmod(0o600)
    path.write_text(text)


def _airflow(settings: AirflowSettings, database_dsn: str) -> dict[str, str]:
    sections = {
        "CORE": {
            "LOAD_EXAMPLES": "False",
            "DAGS_ARE_PAUSED_AT_CREATION": "False",
            "DAGS_FOLDER": str(settings.dags),
            "PLUGINS_FOLDER": str(REPOSITORY / "plugins"),
            "EXECUTION_API_SERVER_URL": f"{settings.base_url}/execution/",
            "FERNET_KEY": base64.urlsafe_b64encode(secrets.token_bytes(32)).decode(),
            "AUTH_MANAGER": settings.auth_manager,
            "SIMPLE_AUTH_MANAGER_USERS": ",".join(f"{user}:{role}" for user, role in settings.users.items()),
            "SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(settings.passwords_file),
            "PARALLELISM": "4",  # the stock 32 forks 32 workers at once
            "MIN_SERIALIZED_DAG_UPDATE_INTERVAL": "1",
        },
        "DATABASE": {"SQL_ALCHEMY_CONN": database_dsn.replace("postgresql://", "postgresql+psycopg2://", 1)},
        "API": {
            "HOST": "127.0.0.1",
            "PORT": str(settings.port),
            "BASE_URL": settings.base_url,
            "SECRET_KEY": secrets.token_hex(32),
        },
        "API_AUTH": {"JWT_SECRET": secrets.token_hex(64)},
        # At the stock 5 s a task that resumes soon after it has parked fails: its first exit is seen too late.
        # On a busy machine the api-server takes longer than the stock 5 s to answer, and the task would fail.
        "WORKERS": {"MIN_HEARTBEAT_INTERVAL": "1", "EXECUTION_API_TIMEOUT": "60"},
        "SCHEDULER": {"SCHEDULER_IDLE_SLEEP_TIME": str(settings.look_every_seconds)},
        "DAG_PROCESSOR": {
            "REFRESH_INTERVAL": "5",
            "BUNDLE_REFRESH_CHECK_INTERVAL": "1",
            "PARSING_PROCESSES": "1",
        },
        "LOGGING": {
            "BASE_LOG_FOLDER": str(settings.home / "logs"),
            "WORKER_LOG_SERVER_PORT": str(settings.worker_log_port),
            "TRIGGER_LOG_SERVER_PORT": str(settings.trigger_log_port),
        },
    }
    return {"AIRFLOW_HOME": str(settings.home)} | {
        f"AIRFLOW__{section}__{name}": value for section, values in sections.items() for name, value in values.items()
    }


def _connections(settings: AirflowSettings, addresses: LabAddresses) -> dict[str, AirflowConnection]:
    of_lab: dict[str, AirflowConnection] = {
        "spark_default": {"conn_type": "spark", "host": "local[2]"},
        "kafka_billing": {"conn_type": "kafka", "extra": {"bootstrap.servers": addresses.bootstrap_servers}},
        "ledger_billing": postgres_connection(addresses.ledger_reader_dsn),
        "tallystick_store": postgres_connection(addresses.store_dsn),
        "alert_webhook": {"conn_type": "http", "host": settings.webhook},
    }
    assert set(of_lab) == set(LAB_CONNECTIONS)
    return {**settings.connections, **of_lab}


def _written(connection: AirflowConnection) -> str:
    return connection if isinstance(connection, str) else json.dumps(connection)


def _tallystick(settings: AirflowSettings) -> dict[str, str]:
    return {
        "TALLYSTICK_CONTRACTS_DIR": str(settings.contracts),
        "TALLYSTICK_ARTIFACTS_DIR": str(settings.artifacts),
        "TALLYSTICK_JARS_DIR": str(settings.jars),
        "TALLYSTICK_SPARK_POOL": SPARK_POOL,
        "TALLYSTICK_ENVIRONMENT": "lab",
        "TALLYSTICK_SPARK_CONF": json.dumps(dict(settings.spark_conf)),
    }
