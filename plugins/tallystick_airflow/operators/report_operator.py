"""Writes what people read about a run."""

import json
import os
from dataclasses import replace
from typing import TYPE_CHECKING

from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowSkipException

from tallystick.alerting.alert import OWN_EXPECTATIONS
from tallystick.contract.contract import Contract
from tallystick.host.artifacts import Place
from tallystick.host.extras import is_installed, not_installed
from tallystick.text.plain import printed_text
from tallystick_airflow.alert_sinks import deliver
from tallystick_airflow.connections import read_artifacts_place
from tallystick_airflow.operators.contract_operator import ContractOperator, open_verdict_store

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from tallystick.model.stored_run import ExpectationsOutcome, StoredRun

_GX = "great_expectations"
_NICE = 5
"""Of what no verdict waits for: whatever a verdict waits for goes first."""


class ReportOperator(ContractOperator):
    """Write the report page of a cut, then evaluate the expectations about it: the contract's own, and Tallystick's.

    Breaks that Spark's app could send to no store are written here. All read the stored run; none touches the verdict,
    and the run is judged whatever becomes of them. The alerts of the contract's own are delivered here, since the task
    `alert` does not wait for a report; what stays owed the next run's delivers. Skipped for a baseline. XCom: the place
    of the page.
    """

    def execute(self, context: Context) -> str:
        from tallystick.documents.breaks_parquet import add_breaks_file
        from tallystick.pipeline.local_run import report_of, stored_run
        from tallystick.store.runs.contract_store import read_contract  # plots, database clients: not while parsing

        contract, cut_n = self.read_contract(), self.require_cut_n()
        with open_verdict_store(self.store_conn_id) as engine:
            run = stored_run(engine, contract.name, cut_n)
            if run.cut.is_baseline:
                raise AirflowSkipException("a baseline has read nothing: there is nothing to report")
            artifacts = read_artifacts_place()
            page = report_of(engine, run, artifacts)
            self.log.info("Report: %s", page)
            add_breaks_file(run.result, read_contract(engine, contract.name, cut_n) or contract, artifacts)
            os.nice(_NICE)  # this process has nothing else to do
            self._hold_against_own(engine, contract, run, artifacts)
            try:
                self._hold_against_ours(run, contract, artifacts)
            finally:
                if contract.expectations is not None:
                    deliver(engine, contract, dag_id=self.dag_id, only=OWN_EXPECTATIONS)
        return str(page)

    def _hold_against_own(self, engine: "Engine", contract: Contract, run: "StoredRun", artifacts: Place) -> None:
        from tallystick.pipeline.local_run import report_of
        from tallystick.pipeline.own_expectations import are_due
        from tallystick.store.runs.expectations_store import store_outcome
        from tallystick.text.expectation_words import outcome_text

        if contract.expectations is None or not are_due(contract, run):
            return
        outcome = store_outcome(engine, contract, run, _outcome(run, contract.expectations, artifacts))
        self.log.info("Expectations of %s", printed_text(outcome_text(outcome)))
        report_of(engine, replace(run, expectations=outcome), artifacts)

    def _hold_against_ours(self, run: "StoredRun", contract: Contract, artifacts: Place) -> None:
        if not is_installed(_GX):
            self.log.info("No expectations of Tallystick are evaluated: the extra tallystick[gx] is not installed")
            return
        from tallystick_expectations.evaluate_run import evaluate_run  # three seconds: not before the page is there

        answer = evaluate_run(run, contract, artifacts)
        self.log.info("%s", printed_text(json.dumps(answer)))


def _outcome(run: "StoredRun", module: str, artifacts: Place) -> "ExpectationsOutcome":
    if not is_installed(_GX):
        from tallystick.model.stored_run import unevaluated

        return unevaluated(module, what=module, why=not_installed(_GX))
    from tallystick_expectations.own_suites import evaluate_own_suites  # three seconds: only for those who have any

    return evaluate_own_suites(run, module, artifacts)
