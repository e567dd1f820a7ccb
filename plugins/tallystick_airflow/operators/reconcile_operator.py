"""Judges one cut in Spark: submits the app, or runs it as the client of a Spark Connect server that lives already."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.providers.apache.spark.hooks.spark_connect import SparkConnectHook
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from tallystick.connections.connections import Connections, connections_from_environment, store_dsn
from tallystick.contract.contract import Contract
from tallystick.spark.spark_job import REMOTE_VARIABLE, SparkNotReady, find_app, find_jars, spark_settings
from tallystick_airflow.connections import (
    SPARK_CONNECTION,
    STORE_CONNECTION,
    SparkWay,
    check_spark_connection,
    read_artifacts_account,
    read_spark_environment,
)
from tallystick_airflow.internals.dag_parts import NOT_RESUMED
from tallystick_airflow.lineage import lineage_of
from tallystick_airflow.operators.contract_operator import CUT_N, open_verdict_store, read_contract_file, require_cut_n
from tallystick_airflow.verdict_assets import announce, verdicts_of

if TYPE_CHECKING:
    from tallystick.model.stored_run import StoredRun
    from tallystick_airflow.lineage import TaskLineage

_QUIET_LOG = f"-Dlog4j2.configurationFile=file:{Path(__file__).with_name('spark_log4j2.properties')}"


class NoVerdictStored(AirflowException):
    """The app ended well and yet its verdict is not in the store. A retry reads the same cut again."""


class ReconcileOperator(SparkSubmitOperator):
    """Read both sides of one stored cut in Spark, and return its verdict.

    Does not judge: a BROKEN verdict is a run that worked. Where the verdict is stored already, Spark is not started:
    a re-run, or the baseline, which the cut task closes itself.
    Connection spark_conn_id, type spark: the app is submitted. Type spark_connect: this task is the app. A submitted
    app gets contract and cut as arguments, and addresses with their secrets in its environment only.
    They are read when the task runs, so no rendered field ever holds them.
    The verdict updates the contract's assets, once.
    Pool: what is asked for; else TALLYSTICK_SPARK_POOL; else that of the DAG.
    XCom: the verdict; it is the run's result.
    """

    template_fields: Sequence[str] = (*SparkSubmitOperator.template_fields, "cut_n")

    def __init__(
        self,
        *,
        contract_file: str,
        cut_n: str = CUT_N,
        store_conn_id: str = STORE_CONNECTION,
        spark_conn_id: str = SPARK_CONNECTION,
        **kwargs: Any,
    ) -> None:
        if pool := os.environ.get("TALLYSTICK_SPARK_POOL"):
            kwargs.setdefault("pool", pool)
        told = verdicts_of(read_contract_file(contract_file).name)
        super().__init__(
            application=str(find_app()),
            application_args=["--contract", contract_file, "--cut", cut_n],
            conn_id=spark_conn_id,
            inlets=[told],  # to see what was told before
            outlets=[told],
            **NOT_RESUMED,  # a driver in client mode dies with its task; the retry reads the same cut
            **kwargs,
        )
        self.contract_file = contract_file
        self.cut_n = cut_n
        self.store_conn_id = store_conn_id
        self.spark_conn_id = spark_conn_id
        self.judged: StoredRun | None = None
        self.given: Mapping[str, str] | None = None

    def execute(self, context: Context) -> str:  # type: ignore[override]
        contract = read_contract_file(self.contract_file)
        cut_n = require_cut_n(self.cut_n)
        run = self._stored_run(contract.name, cut_n)
        if run is None:
            run = self._judge(context, contract, cut_n)
        else:
            self.log.info("Cut %d of %s has its verdict already: Spark is not started", cut_n, contract.name)
        self.judged = run
        if not announce(context, run):
            self.log.info("The assets were told of it before, and are not told again")
        return str(run.result.verdict)

    def get_openlineage_facets_on_complete(self, _: Any) -> "TaskLineage":
        """Both sides were read, with what was found there, verdict and breaks written.

        Nothing, where the verdict was stored already. Asked for by the OpenLineage provider, in a process that may not
        ask Airflow for connections any more.
        """
        from tallystick.documents.lineage_assertions import assertions_of
        from tallystick.documents.lineage_names import ledger_side, store_tables, topic_side

        if self.given is None:
            return lineage_of(read=(), written=())
        contract = read_contract_file(self.contract_file)
        connections = _connections_in(self.given, contract)
        return lineage_of(
            read=[*topic_side(contract, connections), *ledger_side(contract, connections)],
            written=store_tables(store_dsn(self.given)),
            asserted=assertions_of(self.judged.result) if self.judged else (),
        )

    def _judge(self, context: Context, contract: Contract, cut_n: int) -> "StoredRun":
        way = check_spark_connection(self.spark_conn_id)
        self.given = read_spark_environment(contract, self.store_conn_id)
        if way is SparkWay.CLIENT:
            os.environ.update(read_artifacts_account())
            self._judge_as_client(contract, _connections_in(self.given, contract), cut_n)
        else:
            self._submit(context, self.given)
        run = self._stored_run(contract.name, cut_n)
        if run is None:
            raise NoVerdictStored(f"{contract.name} cut {cut_n}: the Spark app ended well, and stored no verdict")
        return run

    def _stored_run(self, contract_name: str, cut_n: int) -> "StoredRun | None":
        from tallystick.store.runs.run_store import read_run  # SQLAlchemy: not while parsing

        with open_verdict_store(self.store_conn_id) as engine:
            return read_run(engine, contract_name, cut_n)

    def _submit(self, context: Context, environment: Mapping[str, str]) -> None:
        """Submit the app, which inherits this task's environment.

        Not by the operator's env_vars: on YARN and Kubernetes the provider writes those into the command line.
        """
        try:
            self.conf = spark_settings(os.environ, java_options=_QUIET_LOG)
            self.jars = ",".join(str(jar) for jar in find_jars(os.environ)) or None
        except SparkNotReady as fault:
            raise AirflowFailException(str(fault)) from None
        with _inherited(environment):
            super().execute(context)

    def _judge_as_client(self, contract: Contract, connections: Connections, cut_n: int) -> None:
        """Run the app here. What it asks the environment for, only this task's process has."""
        from tallystick_spark.reconcile_app import judge_stored  # PySpark and Arrow: not while parsing
        from tallystick_spark.session import SparkServerRefused

        os.environ[REMOTE_VARIABLE] = SparkConnectHook(self.spark_conn_id).get_connection_url()
        with open_verdict_store(self.store_conn_id) as engine:
            try:
                judge_stored(engine, contract, connections, cut_n)
            except SparkServerRefused as fault:
                raise AirflowFailException(str(fault)) from None


@contextmanager
def _inherited(environment: Mapping[str, str]) -> Iterator[None]:
    """Lay this over the process's environment while a child is started and runs."""
    before = dict(os.environ)
    os.environ.update(environment)
    try:
        yield
    finally:
        for name in environment:
            os.environ.pop(name, None)
            if name in before:
                os.environ[name] = before[name]


def _connections_in(environment: Mapping[str, str], contract: Contract) -> Connections:
    return connections_from_environment(
        kafka_id=contract.kafka.connection,
        ledger_id=contract.ledger.connection,
        primary_id=contract.ledger.primary_connection,
        environment=environment,
    )
