"""Writes what people read about a run."""

import os
import subprocess
import sys
from typing import Any

from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowException, AirflowSkipException

from tallystick.connections.connections import artifacts_folder
from tallystick.text.plain import printed_text
from tallystick_airflow.connections import read_store_dsn
from tallystick_airflow.operators.contract_operator import ContractOperator, open_verdict_store

_SECONDS_FOR_EXPECTATIONS_MAX = 600


class ExpectationsFailed(AirflowException):
    """The process that evaluates the expectations ended badly; its output stands in the log above."""


class ReportOperator(ContractOperator):
    """Write the report page of a cut, then evaluate the expectations about it.

    Both read the stored run; neither touches the verdict, and the run is judged whatever becomes of them.
    Great Expectations runs in a process of its own: it takes seconds to import and keeps state of its own.
    Skipped for a baseline. XCom: the path of the page.
    """

    def execute(self, context: Context) -> str:
        from tallystick.pipeline.local_run import report_of, stored_run  # plots: not while parsing

        cut_n = self.require_cut_n()
        with open_verdict_store() as engine:
            run = stored_run(engine, self.read_contract().name, cut_n)
            if run.cut.is_baseline:
                raise AirflowSkipException("a baseline has read nothing: there is nothing to report")
            page = report_of(engine, run, artifacts_folder())
        self.log.info("Report: %s", page)
        self._evaluate_expectations(cut_n)
        return str(page)

    def _evaluate_expectations(self, cut_n: int) -> None:
        argv = [sys.executable, "-m", "tallystick_expectations.evaluate_app"]
        argv += ["--contract", self.contract_file, "--cut", str(cut_n)]
        environment: dict[str, Any] = os.environ | {"TALLYSTICK_STORE_DSN": read_store_dsn()}
        done = subprocess.run(
            argv,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_SECONDS_FOR_EXPECTATIONS_MAX,
            check=False,
        )
        for line in done.stdout.splitlines():
            self.log.info("%s", printed_text(line))
        if done.returncode != 0:
            raise ExpectationsFailed(f"expectations of cut {cut_n}: exit {done.returncode}")
