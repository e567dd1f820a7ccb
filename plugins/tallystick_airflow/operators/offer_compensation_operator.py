"""Starts the compensation DAG, which asks a person before it does anything."""

from typing import Any

from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowSkipException

from tallystick_airflow.connections import STORE_CONNECTION
from tallystick_airflow.operators.contract_operator import CUT_N, open_verdict_store, read_contract_file, require_cut_n


class OfferCompensationOperator(TriggerDagRunOperator):
    """Start `<dag_id_prefix>compensate_<contract>` for a cut in which breaks were found that the contract lets be
    repaired, or a hanging transaction that it lets be ended.

    Does not wait: a parked approval must not hold up the next windows. Started once per cut: a re-run of the cut, which
    finds the same breaks, is skipped; and once per hanging transaction, which every run finds again until it is ended.
    After a refusal a person starts the DAG by hand. Repairs nothing.
    """

    template_fields = (*TriggerDagRunOperator.template_fields, "cut_n")

    def __init__(
        self,
        *,
        contract_file: str,
        cut_n: str = CUT_N,
        store_conn_id: str = STORE_CONNECTION,
        dag_id_prefix: str = "",
        **kwargs: Any,
    ) -> None:
        name = read_contract_file(contract_file).name
        compensation = f"{dag_id_prefix}compensate_{name}"
        super().__init__(trigger_dag_id=compensation, skip_when_already_exists=True, **kwargs)
        self.contract_file = contract_file
        self.cut_n = cut_n
        self.store_conn_id = store_conn_id

    def execute(self, context: Context) -> None:
        from tallystick.executor import draw_plan  # SQLAlchemy: not while parsing
        from tallystick.store.runs.run_store import read_run

        contract, cut_n = read_contract_file(self.contract_file), require_cut_n(self.cut_n)
        with open_verdict_store(self.store_conn_id) as engine:
            run = read_run(engine, contract.name, cut_n)
            hanging = draw_plan.endable_transactions(engine, contract, run) if run else ()
        allowed = contract.compensation.acted_on if contract.compensation else ()
        found = [item_break for item_break in run.result.breaks if item_break.break_class in allowed] if run else []
        if not found and not hanging:
            raise AirflowSkipException(f"cut {cut_n}: nothing that {contract.name} lets be repaired or ended")
        self.log.info(
            "Cut %d: %d breaks may be repaired, %d transactions be ended, if a person agrees",
            cut_n,
            len(found),
            len(hanging),
        )
        self.trigger_run_id = f"cut_{cut_n}" if found else f"hanging_{hanging[-1].action_id}"
        self.conf = {"cut_n": cut_n}
        super().execute(context)
