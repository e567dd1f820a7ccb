"""Airflow knows Tallystick as a provider: its connection types have forms, and their buttons say what is so."""

import json
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib import metadata
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any, ClassVar
from urllib.parse import urlsplit

import pytest
from airflow.api_fastapi.core_api.services.ui.connections import HookMetaService
from airflow.models.connection import Connection
from airflow.providers_manager import ProvidersManager
from confluent_kafka import admin

from lab.servers.ports import free_port
from lab.servers.postgres import STORE_DATABASE, STORE_OWNER, STORE_ROLE, PostgresServer
from tallystick.store.engine import connect_store, migrate
from tallystick_airflow import provider
from tallystick_airflow.provider import get_provider_info

Press = Callable[..., tuple[bool, str]]


@pytest.fixture
def press(monkeypatch: pytest.MonkeyPatch) -> Press:
    """Press the button of a form as the api-server does."""

    def button(**fields: Any) -> tuple[bool, str]:
        extra = json.dumps(fields.pop("extra", {}))
        connection = Connection(conn_id="being_made", extra=extra, **fields)
        monkeypatch.setenv("AIRFLOW_CONN_BEING_MADE", connection.get_uri())
        answer: tuple[bool, str] = connection.test_connection()
        return answer

    return button


@pytest.fixture(scope="module")
def store(store_server: PostgresServer) -> dict[str, Any]:
    """The fields of a form of a store's working role."""
    owner = connect_store(store_server.dsn(STORE_OWNER, STORE_DATABASE))
    migrate(owner, grant_to=STORE_ROLE)
    owner.dispose()  # others copy this database, which must not be in use
    return fields_of(store_server.dsn(STORE_ROLE, STORE_DATABASE))


def fields_of(dsn: str) -> dict[str, Any]:
    parts = urlsplit(dsn)
    return {
        "host": parts.hostname,
        "port": parts.port,
        "login": parts.username,
        "password": parts.password,
        "schema": parts.path.removeprefix("/"),
    }


def test_airflow_lists_it_with_its_version() -> None:
    found = ProvidersManager().providers["tallystick"]
    assert (found.version, found.data["name"]) == (metadata.version("tallystick"), "Tallystick")


def test_every_hook_is_there_and_is_ours() -> None:
    manager = ProvidersManager()
    for one in get_provider_info()["connection-types"]:
        hook = manager.hooks[one["connection-type"]]
        assert hook is not None
        assert (hook.package_name, hook.hook_class_name, hook.hook_name) == (
            "tallystick",
            one["hook-class-name"],
            one["hook-name"],
        )


def test_the_forms_are_shown() -> None:
    forms = {form.connection_type: form for form in HookMetaService.hook_meta_data()}
    assert {"tallystick_store", "tallystick_ledger", "kafka", "http", "postgres", "smtp", "generic"} <= set(forms)
    ledger = forms["tallystick_ledger"]
    assert set(ledger.extra_fields or {}) == {"sslmode", "sslrootcert", "url", "jdbc_url", "driver"}
    assert ledger.standard_fields is not None
    assert ledger.standard_fields.url_schema.title == "Database"
    kafka = forms["kafka"].standard_fields
    assert kafka is not None
    assert kafka.host.hidden is True


def test_a_type_of_a_provider_that_is_installed_stays_that_providers(monkeypatch: pytest.MonkeyPatch) -> None:
    def types() -> set[str]:
        return {one["connection-type"] for one in get_provider_info()["connection-types"]}

    assert types() == {"tallystick_store", "tallystick_ledger", "kafka", "http"}
    monkeypatch.setattr(provider, "_is_installed", lambda package: package.endswith("kafka"))
    assert types() == {"tallystick_store", "tallystick_ledger", "http"}
    monkeypatch.undo()
    assert provider._is_installed("apache-airflow-providers-postgres")


def test_the_button_of_a_store_says_that_it_may_be_worked_in(press: Press, store: dict[str, Any]) -> None:
    assert press(conn_type="tallystick_store", **store) == (
        True,
        "The verdict store answers, and has the tables of this version",
    )


def test_the_button_of_a_store_says_what_is_wrong(press: Press, store: dict[str, Any]) -> None:
    works, said = press(conn_type="tallystick_store", **store | {"schema": "postgres"})
    assert (works, "expected revision" in said, "tallystick store migrate" in said) == (False, True, True)
    works, said = press(conn_type="tallystick_store", **store | {"port": free_port()})
    assert (works, "nothing listens there" in said) == (False, True)
    works, said = press(conn_type="tallystick_store", **store, extra={"colour": "red"})
    assert (works, "got 'colour' in its extra" in said) == (False, True)


def test_the_button_of_a_ledger_says_what_server_it_is(press: Press, store: dict[str, Any]) -> None:
    works, said = press(conn_type="tallystick_ledger", **store, extra={"sslmode": "prefer", "url": ""})
    assert works
    assert said.startswith("PostgreSQL ")
    assert f"answers to {STORE_ROLE}: a primary; this role lacks pg_read_all_stats" in said
    works, said = press(conn_type="tallystick_ledger", **store | {"port": free_port()})
    assert (works, said.startswith("ledger: "), "nothing listens there" in said) == (False, True, True)


def test_the_button_of_a_ledger_in_another_database_or_in_files_looks_there(press: Press, tmp_path: Path) -> None:
    assert press(conn_type="tallystick_ledger", extra={"url": f"sqlite:///{tmp_path}/books.db"}) == (
        True,
        "sqlite answers; Spark reads it by org.sqlite.JDBC",
    )
    works, said = press(conn_type="tallystick_ledger", extra={"url": f"sqlite:///{tmp_path}/no/books.db"})
    assert (works, "sqlite does not answer: OperationalError" in said) == (False, True)
    oracle = {"url": "oracle+oracledb://db/books", "jdbc_url": "jdbc:x", "driver": "d"}
    works, said = press(conn_type="tallystick_ledger", extra=oracle)
    assert (works, "its Python driver is not installed here" in said) == (False, True)
    (tmp_path / "one.parquet").touch()
    assert press(conn_type="tallystick_ledger", extra={"url": str(tmp_path)}) == (
        True,
        "The folder can be listed: 2 entries",
    )
    works, said = press(conn_type="tallystick_ledger", extra={"url": str(tmp_path / "nothing")})
    assert (works, f"folder {tmp_path / 'nothing'}" in said) == (False, True)


def test_the_button_of_a_broker_says_why_nobody_answers(press: Press) -> None:
    works, said = press(conn_type="kafka", extra={"bootstrap.servers": f"127.0.0.1:{free_port()}"})
    assert (works, "nothing listens there" in said) == (False, True)
    works, said = press(conn_type="kafka", extra={"bootstrap.servers": "b:1", "sasl.pasword": "hunter2"})
    assert (works, "sasl.pasword" in said, "hunter2" in said) == (False, True, False)


class ClusterStandIn:
    """A cluster that answers at once."""

    def __init__(self, settings: dict[str, Any]) -> None:
        assert settings["bootstrap.servers"] == "b:1"

    def list_topics(self, timeout: float) -> Any:
        return SimpleNamespace(brokers={1: "", 2: ""}, topics={"a": "", "b": "", "c": ""})


def test_the_button_of_a_broker_says_what_the_account_sees(press: Press, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admin, "AdminClient", ClusterStandIn)
    assert press(conn_type="kafka", extra={"bootstrap.servers": "b:1"}) == (
        True,
        "Kafka answers: 2 brokers, 3 topics that this account sees",
    )


class Sink(BaseHTTPRequestHandler):
    """A sink that takes alerts by POST, and keeps what it was asked with."""

    asked: ClassVar[list[tuple[str, str | None]]] = []

    def do_HEAD(self) -> None:
        self.asked.append((self.path, self.headers["Authorization"]))
        self.send_error(405)

    def log_message(self, *_: Any) -> None:
        """Keep quiet."""


@pytest.fixture
def sink() -> Iterator[int]:
    with HTTPServer(("127.0.0.1", 0), Sink) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


def test_the_button_of_a_sink_asks_without_the_account_and_sends_nothing(press: Press, sink: int) -> None:
    fields = {"conn_type": "http", "host": "127.0.0.1", "login": "l", "password": "s3cret", "schema": "http"}
    works, said = press(**fields, port=sink, extra={"endpoint": "/v1/alerts"})
    assert (works, said.startswith("Somebody answers there (HTTP 405); `tallystick alert test`")) == (True, True)
    assert Sink.asked == [("/v1/alerts", None)]
    assert press(**fields, port=free_port()) == (False, "Nobody answers there: ConnectError")
    works, said = press(conn_type="http")
    assert (works, said.startswith("The connection has no address")) == (False, True)
