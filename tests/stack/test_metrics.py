"""The metrics of real books: what a run says, served to a scraper and pushed to a receiver."""

import gzip
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import Engine, make_url
from sqlalchemy.exc import OperationalError
from typer.testing import CliRunner

from lab.servers.stack import LabStack
from tallystick.alerting.alert import AlertAction
from tallystick.cli.app import app
from tallystick.contract.contract import Contract
from tallystick.model.verdict import Verdict
from tallystick.store.alerts.alert_store import firing_alerts, record_delivery
from tallystick.store.views import metric_store
from tallystick.store.views.metric_store import read_figures
from tests.metric_recording import BOOKS, FOLDER, moments
from tests.stack.live_books import environment_of, open_live_books

from .alerts import alert
from .conftest import Books


def samples(text: str) -> dict[tuple[str, str], float | None]:
    """Series to value; None for what the clock makes of it."""
    return {
        (one.name, str(sorted(one.labels.items()))): None if one.name.endswith("_seconds") else one.value
        for family in text_string_to_metric_families(text)
        for one in family.samples
    }


@pytest.mark.usefixtures("spark")
def test_a_real_run_says_what_was_recorded(
    stack: LabStack, store: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So the recordings that the sample rules are tried on are what the metrics say today."""
    for variable, value in environment_of(stack, tmp_path).items():
        monkeypatch.setenv(variable, value)
    with open_live_books(stack, store, tmp_path, **BOOKS) as books:
        said = dict(moments(books))
    assert {name: samples(text) for name, text in said.items()} == {
        file.stem: samples(file.read_text()) for file in FOLDER.iterdir()
    }


@pytest.fixture
def filled(store: Engine, books: Any, store_dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A matched window and a broken one."""
    monkeypatch.setenv("TALLYSTICK_STORE_DSN", store_dsn)
    found = books.missing("ev-7", amount_minor=1250, currency="EUR")
    books.commit(store, books.result(0))
    books.commit(store, books.result(1, verdict=Verdict.BROKEN, breaks=(found,), items=(books.item(found, n=1),)))


MONEY = 'tallystick_money_at_risk_minor_units{contract="payouts",currency="EUR"} 1250.0'


@pytest.mark.usefixtures("filled")
def test_metrics_are_served_but_not_while_the_store_is_away_and_stop(stack: LabStack, store_dsn: str) -> None:
    command = [sys.executable, "-m", "tallystick", "metrics", "serve", "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stderr is not None
            address = server.stderr.readline().split()[-1]
            for _ in range(2):
                assert MONEY in _get(address)
            name = make_url(store_dsn).database
            with stack.store_server.connect() as admin:
                admin.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
                admin.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'")
                with pytest.raises(urllib.error.HTTPError, match="503") as refused:
                    _get(address)
                assert refused.value.read() == b"the verdict store does not answer\n"
                admin.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
            assert MONEY in _get(address)
            server.send_signal(signal.SIGINT)
            assert (server.wait(60), server.stderr.read()) == (0, "stopped\n")
        finally:
            server.kill()


@pytest.mark.usefixtures("filled")
def test_metrics_are_shown_once_and_pushed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = CliRunner().invoke(app, ("metrics", "show"))
    assert (shown.exit_code, MONEY in shown.stdout) == (0, True)
    with receiver(200) as (address, taken):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
        pushed = CliRunner().invoke(app, ("metrics", "push"))
    ((path, body),) = taken
    assert path == "/v1/metrics"
    (resource,) = ExportMetricsServiceRequest.FromString(body).resource_metrics
    metrics = {metric.name: metric for metric in resource.scope_metrics[0].metrics}
    assert metrics["tallystick.cursor.lag"].unit == "s"
    (money,) = metrics["tallystick.money_at_risk.minor_units"].gauge.data_points
    assert (money.as_int, {one.key: one.value.string_value for one in money.attributes}) == (
        1250,
        {"contract": "payouts", "currency": "EUR"},
    )
    sent = sum(len(metric.gauge.data_points) + len(metric.sum.data_points) for metric in metrics.values())
    assert (pushed.exit_code, pushed.stdout) == (0, f"{sent} series sent\n")


def test_a_contract_that_makes_no_figures_takes_no_others_away(
    store: Engine, new_contract: Callable[..., Contract], caplog: pytest.LogCaptureFixture
) -> None:
    too_late = new_contract(contract="too_late", verdict_within_seconds=400_000_000_000)
    for contract in (new_contract(), too_late):
        books = Books(contract)
        books.commit(store, books.result(0))
    assert [one.contract for one in read_figures(store)] == ["payouts"]
    assert "too_late: its metrics are missing" in caplog.text


def test_a_store_that_does_not_answer_is_no_contract_without_figures(
    store: Engine, books: Books, monkeypatch: pytest.MonkeyPatch
) -> None:
    books.commit(store, books.result(0))

    def fails(*_: Any) -> None:
        raise OperationalError("select", {}, Exception("gone"))

    monkeypatch.setattr(metric_store, "contract_of", fails)
    with pytest.raises(OperationalError):
        read_figures(store)


def owed(store: Engine) -> dict[str, int]:
    (figures,) = read_figures(store)
    return {one.sink: one.owed for one in figures.sinks}


@pytest.mark.parametrize("sinks", [("file:old",), ("file:old", "file:new")], ids=str)
def test_owed_is_what_the_contracts_own_sinks_have_not_taken(
    store: Engine, new_contract: Callable[..., Contract], sinks: tuple[str, ...]
) -> None:
    books = Books(new_contract(alert={"sinks": [{"kind": "file", "path": "new"}]}))
    books.commit(store, books.result(0))
    told = alert(1, sinks=sinks)
    over = [replace(told, name="amount_mismatch", action=one) for one in (AlertAction.TRIGGER, AlertAction.RESOLVE)]
    books.commit(store, books.result(1), alerts=(told, *(replace(one, sinks=("file:old",)) for one in over)))
    assert owed(store) == {"file:new": 1}
    record_delivery(store, firing_alerts(store, "payouts")[told.name], sink="file:new", delivered=True, detail="")
    assert owed(store) == {"file:new": 0}


@pytest.mark.usefixtures("filled")
def test_a_receiver_that_refuses_is_told_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    with receiver(400) as (address, _):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
        pushed = CliRunner().invoke(app, ("metrics", "push"))
    assert (pushed.exit_code, pushed.stdout) == (2, "")
    assert "the receiver of the metrics did not take them" in pushed.stderr


def _get(address: str) -> str:
    with urllib.request.urlopen(address, timeout=60) as answer:
        text: str = answer.read().decode()
    return text


@contextmanager
def receiver(status: int) -> Iterator[tuple[str, list[tuple[str, bytes]]]]:
    """An HTTP server that answers everything so; its address, and what it was sent."""
    taken: list[tuple[str, bytes]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            packed = self.headers.get("Content-Encoding") == "gzip"
            taken.append((self.path, gzip.decompress(body) if packed else body))
            self.send_response(status)
            self.end_headers()

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", taken
        finally:
            server.shutdown()
            thread.join(60)
