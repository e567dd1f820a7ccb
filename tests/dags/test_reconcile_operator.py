"""The command that reaches spark-submit: understood by the app, without a secret, not given twice for one verdict."""

import json
import os
import stat
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.providers.apache.spark.hooks import spark_submit
from airflow.sdk.exceptions import AirflowFailException

from tallystick.model.verdict import Verdict
from tallystick.spark.spark_job import JAVA_OPTIONS
from tallystick_airflow import connections
from tallystick_airflow.connections import ConnectionRefused
from tallystick_airflow.operators import reconcile_operator
from tallystick_airflow.operators.contract_operator import NoCut
from tallystick_airflow.operators.reconcile_operator import NoVerdictStored, ReconcileOperator

CONTRACT_FILE = str(Path(__file__).parents[2] / "dags" / "contracts" / "billing_payments.yaml")
SECRETS = ("broker-secret", "led/ger", "led%2Fger", "store-secret")

FAKE_SPARK_SUBMIT = """#!{python}
import json, os, sys
with open({answer!r}, "w") as answer:
    json.dump({{"argv": sys.argv[1:], "environment": dict(os.environ)}}, answer)
print("a line of the app, by which the provider sees that something ran on Kubernetes")
"""


class Submissions:
    """A spark-submit on PATH that writes down how it was called; the verdicts the store will say it has; and what the
    assets were told.
    """

    def __init__(self, folder: Path, verdicts: list[str | None]) -> None:
        self.answer = folder / "submitted.json"
        self.verdicts = verdicts
        self.told: list[str] = []

    def stored_run(self, *_: Any) -> Any:
        verdict = self.verdicts.pop(0)
        return verdict and SimpleNamespace(result=SimpleNamespace(verdict=Verdict(verdict)))

    def announce(self, _: Any, run: Any) -> bool:
        self.told.append(str(run.result.verdict))
        return True

    @property
    def call(self) -> dict[str, Any] | None:
        return json.loads(self.answer.read_text()) if self.answer.exists() else None


@pytest.fixture
def submissions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Submissions:
    fake = Submissions(tmp_path, verdicts=[None, "MATCHED"])
    binary = tmp_path / "spark-submit"
    binary.write_text(FAKE_SPARK_SUBMIT.format(python=sys.executable, answer=str(fake.answer)))
    binary.chmod(binary.stat().st_mode | stat.S_IXUSR)
    (tmp_path / "a.jar").touch()
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setenv("TALLYSTICK_JARS_DIR", str(tmp_path))
    monkeypatch.setattr(ReconcileOperator, "_stored_run", fake.stored_run)
    monkeypatch.setattr(reconcile_operator, "announce", fake.announce)
    monkeypatch.setattr(reconcile_operator, "open_verdict_store", nullcontext)
    return fake


def operator(cut_n: str = "7") -> ReconcileOperator:
    """As it is after its templates were rendered."""
    return ReconcileOperator(task_id="reconcile", contract_file=CONTRACT_FILE, cut_n=cut_n, name="tallystick")


def test_the_app_understands_its_arguments(submissions: Submissions) -> None:
    from tallystick_spark.reconcile_app import parse_arguments

    assert operator().execute({}) == "MATCHED"
    assert submissions.call is not None
    argv = submissions.call["argv"]
    application = next(number for number, word in enumerate(argv) if word.endswith("reconcile_app.py"))
    assert Path(argv[application]).is_file()
    arguments = parse_arguments(argv[application + 1 :])
    assert ([str(path) for path in arguments.contract], arguments.cut, arguments.reread) == (
        [CONTRACT_FILE],
        [7],
        False,
    )


@pytest.mark.parametrize("master", ["local[2]", "spark://master:7077", "yarn", "k8s://https://cluster:6443"])
def test_secrets_reach_the_app_by_its_environment_only(
    submissions: Submissions, monkeypatch: pytest.MonkeyPatch, master: str
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps({"conn_type": "spark", "host": master}))
    # A stand-in for the provider of Kubernetes, which is not installed: in client mode it is asked nothing.
    monkeypatch.setattr(connections, "_is_distributed", lambda package: True)
    monkeypatch.setattr(spark_submit, "kube_client", object(), raising=False)
    before = dict(os.environ)
    operator().execute({})
    assert dict(os.environ) == before
    assert submissions.call is not None
    argv = submissions.call["argv"]
    assert argv[argv.index("--master") + 1] == master
    environment = submissions.call["environment"]
    assert "broker-secret" in environment["TALLYSTICK_CONN_KAFKA_BILLING"]
    assert "store-secret" in environment["TALLYSTICK_STORE_DSN"]
    for secret in SECRETS:
        assert secret not in " ".join(submissions.call["argv"])


def test_no_rendered_field_holds_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    task = operator()  # rendered fields are stored before the task executes
    assert task.env_vars is None
    fields = " ".join(str(getattr(task, name)) for name in task.template_fields)
    assert not [secret for secret in SECRETS if secret in fields]


def test_the_labs_settings_go_before_ours(submissions: Submissions, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TALLYSTICK_SPARK_CONF", json.dumps({"spark.driver.memory": "600m", "spark.x": "1"}))
    operator().execute({})
    assert submissions.call is not None
    argv = submissions.call["argv"]
    assert {"spark.driver.memory=600m", "spark.x=1", "spark.ui.enabled=false"} <= set(argv)
    assert "spark.driver.memory=2g" not in argv
    (java,) = (part for part in argv if part.startswith("spark.driver.defaultJavaOptions="))
    assert JAVA_OPTIONS in java
    assert "-Dlog4j2.configurationFile=" in java


def test_a_stored_verdict_is_not_computed_again(submissions: Submissions) -> None:
    submissions.verdicts[:] = ["BROKEN"]
    assert operator().execute({}) == "BROKEN"
    assert submissions.call is None
    assert submissions.told == ["BROKEN"]  # its first attempt may have been lost before the assets were told


def test_a_job_that_ends_well_without_a_verdict_fails(submissions: Submissions) -> None:
    submissions.verdicts[:] = [None, None]
    with pytest.raises(NoVerdictStored, match="billing_payments cut 7"):
        operator().execute({})
    assert submissions.told == []


def test_without_a_spark_connection_nothing_is_submitted(
    submissions: Submissions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AIRFLOW_CONN_SPARK_DEFAULT")  # the provider would go on, to YARN
    with pytest.raises(ConnectionRefused):
        operator().execute({})
    assert submissions.call is None


def test_without_jars_nothing_is_submitted(submissions: Submissions, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TALLYSTICK_JARS_DIR", "elsewhere")
    with pytest.raises(AirflowFailException, match="TALLYSTICK_JARS_DIR: elsewhere has no jars"):
        operator().execute({})
    assert submissions.call is None


def test_without_a_cut_nothing_is_submitted(submissions: Submissions) -> None:
    with pytest.raises(NoCut):
        operator(cut_n="None").execute({})
    assert submissions.call is None


def test_over_a_spark_that_lives_the_task_itself_is_the_client(
    submissions: Submissions, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = {"conn_type": "spark_connect", "host": "localhost", "port": 15002, "password": "spark-secret"}
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps(connection))
    monkeypatch.setenv("SPARK_REMOTE", "")
    judged: list[tuple[str, int, str, str]] = []

    def judge(engine: Any, contract: Any, connections: Any, cut_n: int) -> None:
        judged.append((contract.name, cut_n, connections.ledger_dsn, os.environ["SPARK_REMOTE"]))

    monkeypatch.setattr("tallystick_spark.reconcile_app.judge_stored", judge)
    assert operator().execute({}) == "MATCHED"
    assert submissions.call is None, "no Java is started"
    ((name, cut_n, ledger_dsn, remote),) = judged
    assert (name, cut_n) == ("billing_payments", 7)
    assert "led%2Fger" in ledger_dsn
    assert remote == "sc://localhost:15002/;token=spark-secret"


def test_a_server_that_was_lost_is_tried_again_and_one_that_refuses_is_not(
    submissions: Submissions, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tallystick_spark.session import SparkServerLost, SparkServerRefused

    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps({"conn_type": "spark_connect", "host": "localhost"}))
    monkeypatch.setenv("SPARK_REMOTE", "")
    for fault, raised in ((SparkServerLost("gone"), SparkServerLost), (SparkServerRefused("no"), AirflowFailException)):
        submissions.verdicts[:] = [None, "MATCHED"]

        def judge(*_: Any, fault: Exception = fault) -> None:
            raise fault

        monkeypatch.setattr("tallystick_spark.reconcile_app.judge_stored", judge)
        with pytest.raises(raised):
            operator().execute({})
