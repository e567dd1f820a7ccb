"""Fixtures for judging real books: one Spark session, one store, and a way to open books of a test's own."""

import json
import os
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from sqlalchemy import Engine

from lab.servers.airflow_environment import SMALL_SPARK
from lab.servers.postgres import STORE_OWNER, STORE_ROLE
from lab.servers.process import REPOSITORY
from lab.servers.stack import LabStack
from lab.servers.warm_python import spawn_piped
from tallystick.spark.spark_job import PYTHON_SETTINGS
from tallystick.spark.spark_server import start_server, stop_server
from tallystick.store.engine import open_store
from tests.stack.live_books import LiveBooks, environment_of, open_live_books

os.environ["PYSPARK_PYTHON"] = sys.executable

SPARK_SETTINGS = {
    "spark.jars": ",".join(str(jar) for jar in sorted((REPOSITORY / ".jars" / "spark").glob("*.jar"))),
    **SMALL_SPARK,
    "spark.driver.memory": "1g",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    **PYTHON_SETTINGS,
}
"""For small data in a test; the app itself leaves these to whoever submits it."""

RUN_SETTINGS = {
    "TALLYSTICK_JARS_DIR": str(REPOSITORY / ".jars" / "spark"),
    "TALLYSTICK_SPARK_MASTER": "local[2]",
    "TALLYSTICK_SPARK_CONF": json.dumps(
        {name: value for name, value in SPARK_SETTINGS.items() if name != "spark.jars"}
    ),
}
"""What `tallystick run` and `tallystick spark start` are told of Spark by their environment."""

COMMAND_SECONDS_MAX = 240
"""A JVM starts slowly where tests share two cores."""

NewBooks = Callable[..., AbstractContextManager[LiveBooks]]
"""open_live_books without its first three arguments."""


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One session for the test process; the app's getOrCreate finds it."""
    builder = SparkSession.builder.master("local[2]").appName("tests")
    for name, value in SPARK_SETTINGS.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


NO_SPARK: Mapping[str, str] = {}
"""In the place of what `warm_spark` gives: the run starts a Spark of its own."""


@pytest.fixture(scope="session")
def warm_spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """A Spark Connect server for the test process; gives the environment of its clients, whose runs start no Java."""
    folder = tmp_path_factory.mktemp("spark")
    server = start_server(folder, environment={**os.environ, **RUN_SETTINGS})
    try:
        yield server.for_clients()
    finally:
        stop_server(folder)


def run_contract(
    books: LiveBooks, artifacts: Path, spark: Mapping[str, str], *arguments: str, **environment: str
) -> tuple[int, str, str]:
    """`tallystick run` as a process of its own. spark: where it finds its Spark."""
    artifacts.mkdir(parents=True, exist_ok=True)
    errors = artifacts / f"{uuid.uuid4().hex}.stderr"
    child = spawn_piped(
        [sys.executable, "-m", "tallystick", "run", str(books.contract_file), *arguments],
        log=errors,
        environment={
            **os.environ,  # new_books has put the connections there
            "TALLYSTICK_STORE_DSN": books.store.url.render_as_string(hide_password=False),
            "TALLYSTICK_ARTIFACTS_DIR": str(artifacts),
            **RUN_SETTINGS,
            **spark,
            **environment,
        },
    )
    said = child.read(COMMAND_SECONDS_MAX)
    return child.wait(), said.decode(), errors.read_text()


@pytest.fixture(scope="session")
def new_books(stack: LabStack, store_template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[NewBooks]:
    """Open books of a contract of its own. All share one store, where contracts do not meet."""
    folder = tmp_path_factory.mktemp("books")
    name = f"books_{uuid.uuid4().hex}"
    with stack.store_server.connect() as admin:
        admin.execute(f"CREATE DATABASE {name} TEMPLATE {store_template} OWNER {STORE_OWNER}")
    store: Engine = open_store(stack.store_server.dsn(STORE_ROLE, name))
    with pytest.MonkeyPatch.context() as patch:
        for variable, value in environment_of(stack, folder).items():
            patch.setenv(variable, value)
        yield partial(open_live_books, stack, store, folder)
    with stack.store_server.connect() as admin:
        admin.execute(f"DROP DATABASE {name} WITH (FORCE)")
