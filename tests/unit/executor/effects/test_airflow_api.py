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
    """What its interface would answer. fails: method and path to a status instead; loses: its answer to a start;
    answers_start: instead of starting.
    """

    dags: dict[str, dict[str, bool]] = field(default_factory=lambda: {"by_hand": dict(STARTABLE)})
    runs: dict[str, dict[str, Any]] = field(default_factory=dict)
    fails: dict[tuple[str, str], int] = field(default_factory=dict)
    loses: bool = False
    meanwhile: dict[str, dict[str, Any]] = field(default_factory=dict)
    answers_start: tuple[int, Any] | None = None
    address: str = ""

    def answer(self, method: str, path: str, body: Any, token: str) -> tuple[int, Any]:
        if status := self.fails.get((method, path)):
            return status, {"detail": f"quoted: {body}"}
        if path == "/auth/token":
            return (201, {"access_token": "t"}) if body == {"username": "tally", "password": "secret"} else (401, {})
        if token != "Bearer t":
            return 401, {}
        if method == "POST":
            return self.answers_start or self._start(path, body)
        found = self.runs.get(path) or self.dags.get(path.rpartition("/")[2])
        return (200, found) if found else (404, {})

    def _start(self, path: str, body: Any) -> tuple[int, Any]:
        self.runs |= self.meanwhile
        run = f"{path}/{body['dag_run_id']}"
        if run in self.runs:
            return 409, {}
        self.runs[run] = {"dag_run_id": body["dag_run_id"], "conf": body["conf"], "state": "queued"}
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


def run_with(conf: Any) -> dict[str, Any]:
    return {"dag_run_id": "action-1", "conf": conf, "state": "queued"}


def start(airflow: Airflow, *, dag_id: str = "by_hand", secret: str = "secret", asked_before: bool = False) -> Started:
    with open_airflow(HttpAccount(address=airflow.address, login="tally", secret=secret)) as api:
        return api.start_once(dag_id, "action-1", CONF, asked_before=asked_before)


def test_a_run_is_started_with_the_plan_and_the_actions_id_and_the_second_start_finds_it(airflow: Airflow) -> None:
    assert start(airflow) == Started()
    assert airflow.runs == {RUN: run_with(CONF)}
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
    airflow.meanwhile = {RUN: run_with(CONF)}
    assert start(airflow) == Started(already=True)
    airflow.runs.clear()
    airflow.meanwhile = {RUN: run_with(CONF | {"plan_hash": "other"})}
    assert "with another conf" in start(airflow).doubt


@pytest.mark.parametrize("conf", [CONF | {"plan_hash": "other"}, {}, None])
def test_a_run_of_that_id_with_another_conf_is_a_doubt(airflow: Airflow, conf: Any) -> None:
    airflow.runs[RUN] = run_with(conf)
    assert start(airflow) == Started(
        doubt="Airflow has a run action-1 of by_hand with another conf: an earlier plan's, or not ours; Airflow starts "
        "no second run of that id before that one is deleted there"
    )


@pytest.mark.parametrize("dag_id", ["by_hand", "gone"])
def test_a_run_that_was_asked_for_and_is_not_there_is_a_doubt_and_is_not_started(airflow: Airflow, dag_id: str) -> None:
    assert start(airflow, dag_id=dag_id, asked_before=True) == Started(
        doubt=f"an earlier start may have asked Airflow for run action-1 of {dag_id}, and Airflow has none: it was "
        "deleted, or never began"
    )
    assert airflow.runs == {}


def test_a_run_that_was_asked_for_and_is_there_is_found(airflow: Airflow) -> None:
    start(airflow)
    assert start(airflow, asked_before=True) == Started(already=True)


@pytest.mark.parametrize("state", ["queued", "running", "success", "failed"])
def test_a_run_has_ended_by_its_state(state: str) -> None:
    assert DagRun(conf={}, state=state).has_ended is (state in ("success", "failed"))


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


def test_a_start_that_a_limit_of_requests_turned_away_is_refused(airflow: Airflow) -> None:
    airflow.answers_start = (429, {})
    assert start(airflow) == Started(
        refused="Airflow answered 429 when asked to start by_hand: a limit of requests turned it away"
    )
    airflow.answers_start = None
    assert start(airflow) == Started()


@pytest.mark.parametrize("status", [408, 500, 502, 503, 504])
def test_a_start_of_which_the_answer_tells_nothing_is_not_refused(airflow: Airflow, status: int) -> None:
    airflow.answers_start = (status, {})
    with pytest.raises(AirflowUnreachable, match=f"answered {status} when asked to start by_hand"):
        start(airflow)


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


def test_a_wrong_password_is_refused_without_the_secret(airflow: Airflow) -> None:
    with pytest.raises(AirflowRefused, match="asked to log in") as refused:
        start(airflow, secret="wr0ng-secret")
    assert "wr0ng-secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("document", "what"), [(b"<html>", "no JSON object"), ({"error": "a"}, "without access_token")]
)
def test_a_page_that_is_no_airflow_is_refused_at_the_log_in(
    airflow: Airflow, monkeypatch: pytest.MonkeyPatch, document: Any, what: str
) -> None:
    monkeypatch.setattr(airflow, "answer", lambda *_: (200, document))
    with pytest.raises(AirflowRefused, match=f"asked to log in, .*{what}"):
        start(airflow)


@pytest.mark.parametrize(
    ("document", "what"),
    [
        (b"<html>", "and it is no JSON object"),
        ([], "and it is no JSON object"),
        ({"error": "session expired"}, "without dag_run_id, conf, state"),
        ({"dag_run_id": "action-1", "conf": CONF}, "without state"),
        ({"dag_run_id": "another", "conf": CONF, "state": "queued"}, "and told of another run than action-1"),
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_an_answer_that_tells_nothing_of_the_run_is_none(
    airflow: Airflow, monkeypatch: pytest.MonkeyPatch, method: str, document: Any, what: str
) -> None:
    ask = airflow.answer

    def strange(sent: str, path: str, *rest: Any) -> tuple[int, Any]:
        return (200, document) if sent == method and "/dagRuns" in path else ask(sent, path, *rest)

    monkeypatch.setattr(airflow, "answer", strange)
    with pytest.raises(AirflowUnreachable, match=f"answered 200 when asked to .*{what}"):
        start(airflow)
    assert airflow.runs == {}


def test_a_start_that_took_another_conf_is_not_told_as_done(airflow: Airflow) -> None:
    airflow.answers_start = (200, run_with({}))
    with pytest.raises(AirflowUnreachable, match="asked to start by_hand, with another conf than was sent"):
        start(airflow)


def test_what_says_nothing_of_a_dag_does_not_start_it(airflow: Airflow) -> None:
    airflow.dags["by_hand"] = {"is_paused": False}
    with pytest.raises(AirflowUnreachable, match="look at by_hand, without is_stale, has_import_errors"):
        start(airflow)
    assert airflow.runs == {}


def test_an_answer_from_elsewhere_to_a_start_tells_nothing(airflow: Airflow) -> None:
    airflow.answers_start = (302, {})
    with pytest.raises(AirflowUnreachable, match="answered 302"):
        start(airflow)


def test_a_conflict_of_a_run_that_nobody_finds_is_a_doubt_and_one_that_may_not_be_seen_is_not_refused(
    airflow: Airflow, monkeypatch: pytest.MonkeyPatch
) -> None:
    airflow.answers_start = (409, {})
    assert "Airflow has none" in start(airflow).doubt
    ask = airflow.answer

    def hides_it(method: str, *rest: Any) -> tuple[int, Any]:
        if method == "POST" and rest[0] != "/auth/token":
            airflow.fails = {("GET", RUN): 403}
        return ask(method, *rest)

    monkeypatch.setattr(airflow, "answer", hides_it)
    with pytest.raises(AirflowUnreachable, match="answered 403"):
        start(airflow)


@pytest.mark.parametrize(
    ("address", "error"),
    [
        ("http://127.0.0.1:9", AirflowUnreachable),
        ("ftp://host", AirflowRefused),
        ("no address", AirflowRefused),
        ("http://host:not_a_port", AirflowRefused),
        ("http://[::1", AirflowRefused),
        ("http://.host", AirflowRefused),
    ],
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
