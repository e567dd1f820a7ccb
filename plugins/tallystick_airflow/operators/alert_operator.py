"""Tells on-call."""

from airflow.sdk import Context

from tallystick_airflow.alert_sinks import deliver
from tallystick_airflow.operators.contract_operator import ContractOperator, open_verdict_store


class AlertOperator(ContractOperator):
    """Deliver what the contract's outbox still owes its sinks; a task, since what a callback fails to do nobody sees.

    Runs whatever became of the tasks before it, so a run without a verdict is told of as well, unless its window is
    judged, and one with a verdict ends such a page. Decides nothing else about who is told what: the other alerts were
    written with the verdict.
    What was not delivered fails the task; a retry, or the next run, delivers it. What a sink refuses is not retried:
    a person must change its connection first, and the next run sends it.
    """

    def execute(self, context: Context) -> None:
        from tallystick.pipeline.missing_verdict_alert import (  # SQLAlchemy: not while parsing
            page_no_verdict,
            resolve_silences,
        )
        from tallystick.store.clock import store_now
        from tallystick.store.runs.run_store import read_run

        contract = self.read_contract()
        with open_verdict_store(self.store_conn_id) as engine:
            cut_n = int(self.cut_n) if self.cut_n.isdigit() else None
            if cut_n is None or read_run(engine, contract.name, cut_n) is None:
                told = page_no_verdict(
                    engine,
                    contract,
                    scheduler_run_id=context["run_id"],
                    cut_n=cut_n,
                    window_end_utc=context.get("data_interval_end"),
                )
                where = "on-call is told" if told else "its window is judged by a later one, so nobody is told"
                self.log.warning("No verdict is stored for this run: %s", where)
            elif over := resolve_silences(engine, contract, now_utc=store_now(engine)):
                self.log.info("Verdicts are back: on-call is told that this is over: %s", ", ".join(over))
            summary = deliver(engine, contract, dag_id=self.dag_id)
        self.log.info("%d alerts delivered", summary.delivered)
