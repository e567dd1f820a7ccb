"""The operator that makes Airflow's grid show the verdict."""

import logging
import os
from collections import Counter

from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowFailException

from tallystick.host.artifacts import CONNECTION_VARIABLE, artifacts_place
from tallystick_airflow.operators.contract_operator import ContractOperator, open_verdict_store


class BooksDisagree(AirflowFailException):
    """The verdict is BROKEN. Not retried: the same cut gives the same verdict."""


class NoVerdict(AirflowFailException):
    """The run ended without a verdict, so nothing is proven."""


class JudgeOperator(ContractOperator):
    """Fail when the stored verdict is BROKEN, or when there is none. INCONCLUSIVE is a warning in the log, and so
    is a notice that pages.

    Reads the row, not the states of the tasks before it: a run whose tasks all went well has proven nothing by that.
    """

    def execute(self, context: Context) -> None:
        from tallystick.model.findings import money_at_stake
        from tallystick.model.verdict import Verdict
        from tallystick.report.write_report import report_path
        from tallystick.store.runs.run_store import read_run
        from tallystick.text.money import format_money  # database clients, plots: not while parsing
        from tallystick.text.plain import escape_untrusted, story_text

        name = self.read_contract().name
        cut_n = self.require_cut_n()
        with open_verdict_store(self.store_conn_id) as engine:
            run = read_run(engine, name, cut_n)
        if run is None:
            raise NoVerdict(f"{name} cut {cut_n}: no verdict is stored, so nothing is proven; see the task 'reconcile'")
        verdict, breaks, doubts = run.result.verdict, run.result.breaks, run.result.doubts
        for notice in run.result.notices:
            self.log.log(
                logging.WARNING if notice.pages else logging.INFO, "%s: %s", notice.notice, story_text(notice.sentence)
            )
        if verdict is Verdict.BROKEN:
            found = Counter(str(item_break.break_class) for item_break in breaks)
            counts = ", ".join(f"{count} {break_class}" for break_class, count in sorted(found.items()))
            for doubt in doubts:
                self.log.warning("besides: %s: %s", doubt.doubt, story_text(doubt.sentence))
            page = report_path(artifacts_place({**os.environ, CONNECTION_VARIABLE: ""}), name, cut_n)
            raise BooksDisagree(
                f"{name} cut {cut_n}: BROKEN: {counts}; {escape_untrusted(format_money(money_at_stake(breaks)))} "
                f"at stake; "
                f"see {page}"
            )
        if verdict is Verdict.INCONCLUSIVE:
            sentences = "; ".join(story_text(doubt.sentence) for doubt in doubts)
            self.log.warning("%s cut %d: INCONCLUSIVE: %s", name, cut_n, sentences)
        else:
            self.log.info("%s cut %d: MATCHED", name, cut_n)
