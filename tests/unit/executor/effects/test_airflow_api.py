"""A DAG's run is started once, whatever Airflow answered the first time; what Airflow refuses is told."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

from tallystick.compensation.plan import PlanRefused
from tallystick.connections.connections import ConnectionNotGiven, HttpAccount, connections_from_environment
from tallystick.executor.effects.airflow_api import AirflowRefused, AirflowUnreachable, DagRun, Started, open_airflow

CONF = {"plan_hash": "h", "items": [{"match_key": "a", "amount_minor": 100}]}
STARTABLE = {"is_paused": False, "is_stale": False, "has_import_errors": False}
RUN = "/api/v2/dags/by_hand/dagRuns/action-1"


@dataclass
class Airflow:
    """What its interface would answer. fails: method and path to a status instead; loses: its answer to a start."""

    dags: dict[str, dict[str, bool]] = field(default_factory=lambda: {"by_hand": dict(STARTABLE)})
    runs: dict[str, dict[str, Any]] = field(default_factory=dict)
    fails: dict[tuple[str, str], int] = field(default_factory=dict)
    loses: bool = False
    meanwhile: dict[str, dict[str, Any]] = field(default_factory=dict)
    address: str = ""

    def answer(self, method: str, path: str, body: Any, token: str) -> tuple[int, Any]:
        if status := self.fails.get((method, path)):
            return status, {"detail": f"quoted: {body}"}
        if path == "/auth/token":
            return (201, {"access_token": "t"}) if body == {"username": "tally", "password": "secret"} else (401, {})
        if token != "Bearer t":
            return 401, {}
        if method == "POST":
            return self._start(path, body)
        found = self.runs.get(path) or self.dags.get(path.rpartition("/")[2])
        return (200, found) if found else (404, {})

    def _start(self, path: str, body: Any) -> tuple[int, Any]:
        self.runs |= self.meanwhile
        run = f"{path}/{body['dag_run_id']}"
        if run in self.runs:
            return 409, {}
        self.runs[run] = {"conf": body["conf"], "state": "queued"}
        return (503, {}) if self.loses else (200, self.runs[run])


@pytest.fixture
def airflow() -> Iterator[Airflow]:
    fake = Airflow()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.do_POST()

        def do_POST(self) -> None:
            sent = self.rfile.read(int(self.headers.get("content-length", 0)))
            token = self.headers.get("authorization", "")
            status, document = fake.answer(self.command, self.path, json.loads(sent or b"null"), token)
            self.send_response(status)
            self.end_headers()
            self.wfile.write(document if isinstance(document, bytes) else json.dumps(document).encode())

        def log_message(self, *_: Any) -> None:
            """Quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        fake.address = f"http://127.0.0.1:{server.server_port}/"
        thread = Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield fake
        server.shutdown()
        thread.join()


def start(airflow: Airflow, conf: Any = CONF, *, dag_id: str = "by_hand", secret: str = "secret") -> Started:
    with open_airflow(HttpAccount(address=airflow.address, login="tally", secret=secret)) as api:
        return api.start_once(dag_id, "action-1", conf)


def test_a_run_is_started_with_the_plan_and_the_actions_id_and_the_second_start_finds_it(airflow: Airflow) -> None:
    assert start(airflow) == Started()
    assert airflow.runs == {RUN: {"conf": CONF, "state": "queued"}}
    assert start(airflow) == Started(already=True)
    assert len(airflow.runs) == 1
    with open_airflow(HttpAccount(address=airflow.address, login="tally", secret="secret")) as api:
        assert api.find_run("by_hand", "action-1") == DagRun(conf=CONF, state="queued")
        assert api.find_run("by_hand", "action-2") is None


def test_a_start_whose_answer_was_lost_is_found_by_the_next(airflow: Airflow) -> None:
    airflow.loses = True
    with pytest.raises(AirflowUnreachable, match="503"):
        start(airflow)
    assert start(airflow) == Started(already=True)


def test_of_two_that_start_at_once_the_second_is_refused_by_airflow_and_finds_the_first(airflow: Airflow) -> None:
    airflow.meanwhile = {RUN: {"conf": CONF, "state": "queued"}}
    assert start(airflow) == Started(already=True)
    airflow.runs.clear()
    airflow.meanwhile = {RUN: {"conf": CONF | {"plan_hash": "other"}, "state": "queued"}}
    assert "with another conf" in start(airflow).refused


@pytest.mark.parametrize("conf", [CONF | {"plan_hash": "other"}, {}, None])
def test_a_run_of_that_id_with_another_conf_is_not_ours(airflow: Airflow, conf: Any) -> None:
    airflow.runs[RUN] = {"conf": conf, "state": "success"}
    assert start(airflow).refused == "a run action-1 stands there with another conf: it is not of this plan"


@pytest.mark.parametrize(
    ("dag", "reason"),
    [
        ({"is_paused": True}, "the DAG by_hand is paused"),
        ({"is_stale": True}, "the DAG by_hand is gone from its file"),
        ({"has_import_errors": True}, "the DAG by_hand is gone from its file"),
    ],
)
def test_a_dag_whose_run_would_not_begin_is_not_started(airflow: Airflow, dag: Any, reason: str) -> None:
    airflow.dags["by_hand"] |= dag
    assert start(airflow).refused.startswith(reason)
    assert airflow.runs == {}


def test_a_dag_that_was_paused_after_its_run_was_started_has_its_run(airflow: Airflow) -> None:
    start(airflow)
    airflow.dags["by_hand"]["is_paused"] = True
    assert start(airflow) == Started(already=True)


def test_a_dag_that_is_not_there_is_refused(airflow: Airflow) -> None:
    assert start(airflow, dag_id="gone").refused == "Airflow has no DAG gone, or does not show it to this account"


@pytest.mark.parametrize("status", [400, 404, 422])
def test_a_dag_that_does_not_take_the_plan_refuses_this_break_alone(airflow: Airflow, status: int) -> None:
    airflow.fails = {("POST", "/api/v2/dags/by_hand/dagRuns"): status}
    assert start(airflow).refused == (
        f"Airflow answered {status} to a start of by_hand; expected a DAG that allows manual runs, and takes the plan "
        "as conf"
    )


@pytest.mark.parametrize("status", [401, 403])
def test_what_airflow_refuses_no_retry_cures_and_its_words_are_not_repeated(airflow: Airflow, status: int) -> None:
    airflow.fails = {("POST", "/api/v2/dags/by_hand/dagRuns"): status}
    with pytest.raises(AirflowRefused, match=f"answered {status} when asked to start by_hand") as refused:
        start(airflow)
    assert isinstance(refused.value, PlanRefused)
    assert "quoted" not in str(refused.value)


@pytest.mark.parametrize("status", [429, 500, 502, 503])
def test_what_airflow_fails_a_retry_may_cure(airflow: Airflow, status: int) -> None:
    airflow.fails = {("GET", RUN): status}
    with pytest.raises(AirflowUnreachable, match=str(status)):
        start(airflow)


def test_a_wrong_password_and_a_page_that_is_no_airflow_are_refused_without_the_secret(airflow: Airflow) -> None:
    with pytest.raises(AirflowRefused, match="asked to log in") as refused:
        start(airflow, secret="wr0ng-secret")
    assert "wr0ng-secret" not in str(refused.value)
    airflow.runs[RUN] = b"<html>"  # type: ignore[assignment]
    with pytest.raises(AirflowRefused, match="no JSON"):
        start(airflow)


@pytest.mark.parametrize(
    ("address", "error"),
    [("http://127.0.0.1:9", AirflowUnreachable), ("ftp://host", AirflowRefused), ("no address", AirflowRefused)],
)
def test_an_address_where_nobody_answers_is_told_from_one_that_is_none(address: str, error: type[Exception]) -> None:
    with pytest.raises(error) as refused, open_airflow(HttpAccount(address=address, login="tally", secret="s3cret")):
        pass
    assert "s3cret" not in str(refused.value)


KAFKA = {"TALLYSTICK_CONN_KAFKA": '{"bootstrap.servers": "broker:9092"}'}


def test_airflows_account_is_read_from_the_environment_and_never_shown() -> None:
    account = '{"address": "https://airflow", "login": "tally", "secret": "s3cret"}'
    found = connections_from_environment(
        kafka_id="kafka", ledger_id="", airflow_id="airflow", environment=KAFKA | {"TALLYSTICK_CONN_AIRFLOW": account}
    )
    assert found.airflow == HttpAccount(address="https://airflow", login="tally", secret="s3cret")
    assert "s3cret" not in repr(found)
    assert connections_from_environment(kafka_id="kafka", ledger_id="", environment=KAFKA).airflow is None


@pytest.mark.parametrize(
    "text", ["s3cret", '["s3cret"]', '{"address": "s3cret"}', '{"address": "a", "login": "", "secret": "s3cret"}']
)
def test_an_account_that_lacks_something_is_refused_without_its_value(text: str) -> None:
    with pytest.raises(ConnectionNotGiven, match="connection airflow: expected a JSON object") as refused:
        connections_from_environment(
            kafka_id="kafka", ledger_id="", airflow_id="airflow", environment=KAFKA | {"TALLYSTICK_CONN_AIRFLOW": text}
        )
    assert "s3cret" not in str(refused.value)
