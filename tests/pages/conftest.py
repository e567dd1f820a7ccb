"""Airflow's own doors in this process, and a real verdict store that was filled once. Nothing here starts Airflow.

The environment is set before anything imports Airflow: a home, a database and an auth manager of this run's own.
"""

import atexit
import json
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from lab.servers.postgres import STORE_DATABASE, STORE_OWNER, STORE_ROLE, PostgresServer

_HOME = Path(tempfile.mkdtemp(prefix="tallystick-pages-"))
atexit.register(shutil.rmtree, _HOME, ignore_errors=True)
os.environ |= {
    "AIRFLOW_HOME": str(_HOME),
    "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{_HOME / 'airflow.db'}",
    "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
    "AIRFLOW__CORE__AUTH_MANAGER": "tests.pages.readers.ReadersAuthManager",
    "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": (
        "viewer:viewer,stranger:viewer,op:op,other_op:op,blind_op:op,reading_op:op"
    ),
    "AIRFLOW__API_AUTH__JWT_SECRET": secrets.token_hex(64),
    "TALLYSTICK_ARTIFACTS_DIR": str(_HOME / "artifacts"),
}


@pytest.fixture(scope="session")
def home() -> Path:
    return _HOME


@pytest.fixture(scope="session")
def store_dsn(store_server: PostgresServer) -> str:
    return store_server.dsn(STORE_ROLE, STORE_DATABASE)


@pytest.fixture(scope="session")
def store(store_server: PostgresServer, store_dsn: str) -> Any:
    """A store with the windows of both examples."""
    from tallystick.store.engine import connect_store, migrate, open_store
    from tests.stored_books import fill, payments, payouts

    migrate(connect_store(store_server.dsn(STORE_OWNER, STORE_DATABASE)), grant_to=STORE_ROLE)
    engine = open_store(store_dsn)
    fill(engine, payouts())
    fill(engine, payments(), windows=3)
    return engine


@pytest.fixture(scope="session")
def app(store: Any, store_dsn: str) -> Any:
    """The pages below /tallystick in an app with Airflow's auth manager, as the api-server mounts them."""
    from airflow.api_fastapi.app import init_auth_manager
    from airflow.utils.db import initdb
    from fastapi import FastAPI

    from tallystick_airflow.plugin import TallystickPlugin
    from tests.pages.readers import add_dags

    initdb()
    add_dags("reconcile_billing_payouts", "reconcile_billing_payments", "compensate_billing_payouts", "other")
    os.environ["AIRFLOW_CONN_TALLYSTICK_STORE"] = airflow_connection(store_dsn)
    outer = FastAPI()
    init_auth_manager(outer)
    for mounted in TallystickPlugin.fastapi_apps:
        outer.mount(mounted["url_prefix"], mounted["app"])
    return outer


def airflow_connection(store_dsn: str) -> str:
    """The store as an Airflow connection."""
    parts = urlsplit(store_dsn)
    connection = {
        "conn_type": "postgres",
        "host": parts.hostname,
        "port": parts.port,
        "login": parts.username,
        "password": parts.password,
        "schema": parts.path.removeprefix("/"),
    }
    return json.dumps(connection)


@pytest.fixture(scope="module")
def own_store(app: Any, store: Any, store_server: PostgresServer) -> Iterator[Any]:
    """A copy of the filled store that the pages read and write for one module of tests."""
    from tallystick.store.engine import open_store
    from tallystick_airflow.pages import app as pages_app

    store.dispose()
    pages_app.STORES.clear()
    with store_server.connect() as admin:
        admin.autocommit = True
        ended = "select pg_terminate_backend(pid) from pg_stat_activity where datname = %s and pid <> pg_backend_pid()"
        admin.execute(ended, (STORE_DATABASE,))
        admin.execute(f"create database own template {STORE_DATABASE} owner {STORE_OWNER}")
    engine = open_store(store_server.dsn(STORE_ROLE, "own"))
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("AIRFLOW_CONN_TALLYSTICK_STORE", airflow_connection(store_server.dsn(STORE_ROLE, "own")))
        yield engine
    pages_app.store().dispose()
    pages_app.STORES.clear()
    engine.dispose()
    with store_server.connect() as admin:
        admin.autocommit = True
        admin.execute("drop database own with (force)")


@pytest.fixture(scope="session")
def client(app: Any) -> Any:
    """Nobody in particular: what anonymous gets."""
    from fastapi.testclient import TestClient

    return TestClient(app, follow_redirects=False)


@pytest.fixture(scope="session")
def as_user(app: Any) -> Any:
    """Make a client that is logged in by Airflow's own cookie."""
    from airflow.api_fastapi.app import get_auth_manager
    from airflow.api_fastapi.auth.managers.base_auth_manager import COOKIE_NAME_JWT_TOKEN
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
    from fastapi.testclient import TestClient

    def make(name: str, role: str = "VIEWER") -> Any:
        token = get_auth_manager().generate_jwt(SimpleAuthManagerUser(username=name, role=role))
        return TestClient(app, follow_redirects=False, cookies={COOKIE_NAME_JWT_TOKEN: token})

    return make


@pytest.fixture(scope="session")
def viewer(as_user: Any) -> Any:
    """May read both reconciliations."""
    return as_user("viewer")


@pytest.fixture(scope="session")
def op(as_user: Any) -> Any:
    """May trigger every DAG, so may act."""
    return as_user("op", "OP")


@pytest.fixture(scope="session")
def other_op(as_user: Any) -> Any:
    return as_user("other_op", "OP")


@pytest.fixture(scope="session")
def blind_op(as_user: Any) -> Any:
    """May trigger the compensation of the payouts, and not read their books."""
    return as_user("blind_op", "OP")


@pytest.fixture(scope="session")
def reading_op(as_user: Any) -> Any:
    """May trigger every DAG but the compensation of the payouts."""
    return as_user("reading_op", "OP")


@pytest.fixture(scope="session")
def stranger(as_user: Any) -> Any:
    """May read the payments, and not the payouts."""
    return as_user("stranger")
