"""Writes what people read about a run."""

import json
import os

from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowSkipException

from tallystick.connections.connections import artifacts_folder
from tallystick.host.extras import is_installed
from tallystick.text.plain import printed_text
from tallystick_airflow.operators.contract_operator import ContractOperator, open_verdict_store

_NICE = 5
"""Of what no verdict waits for: whatever a verdict waits for goes first."""


class ReportOperator(ContractOperator):
    """Write the report page of a cut, then evaluate the expectations about it, where Great Expectations is installed.

    Both read the stored run; neither touches the verdict, and the run is judged whatever becomes of them.
    Skipped for a baseline. XCom: the path of the page.
    """

    def execute(self, context: Context) -> str:
        from tallystick.pipeline.local_run import report_of, stored_run  # plots: not while parsing

        contract, cut_n = self.read_contract(), self.require_cut_n()
        with open_verdict_store(self.store_conn_id) as engine:
            run = stored_run(engine, contract.name, cut_n)
            if run.cut.is_baseline:
                raise AirflowSkipException("a baseline has read nothing: there is nothing to report")
            page = report_of(engine, run, artifacts_folder())
        self.log.info("Report: %s", page)
        if not is_installed("great_expectations"):
            self.log.info("No expectations are evaluated: the extra tallystick[gx] is not installed")
            return str(page)
        os.nice(_NICE)  # this process has nothing else to do
        from tallystick_expectations.evaluate_run import evaluate_run  # three seconds: not before the page is there

        answer = evaluate_run(run, contract, artifacts_folder())
        self.log.info("%s", printed_text(json.dumps(answer)))
        return str(page)
