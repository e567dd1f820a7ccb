"""Draws up what a compensation would do."""

from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowSkipException

from tallystick_airflow.connections import read_connections
from tallystick_airflow.operators.contract_operator import ContractOperator, open_verdict_store, require_cut_n
from tallystick_airflow.refused_plan import no_retry_for_a_refused_plan


class PlanOperator(ContractOperator):
    """Plan the repair of the breaks found up to a cut, and keep the plan in the verdict store.

    Touches neither side. Skips, and with it all that follows, where nothing may be repaired.
    XCom: plan_id, plan_hash, contract, for whoever looks; the tasks that follow ask the store.
    """

    def execute(self, context: Context) -> dict[str, str]:
        from tallystick.compensation.approval_rules import machine_of
        from tallystick.compensation.plan_text import describe_plan
        from tallystick.executor.draw_plan import draw_plan  # database clients: not while parsing
        from tallystick.report.masking import Mask
        from tallystick.store.plans.plan_store import save_plan

        contract, cut_n = self.read_contract(), require_cut_n(self.cut_n)
        requested_by = context["dag_run"].triggering_user_name or machine_of(contract.name)
        with open_verdict_store(self.store_conn_id) as engine:
            with no_retry_for_a_refused_plan():
                plan = draw_plan(engine, contract, read_connections(contract), cut_n=cut_n, dry_run=False)
            self.log.info("%s", describe_plan(plan, shown_key=Mask(contract).key, allowed=contract.compensation))
            if not plan.actions:
                raise AirflowSkipException(f"cut {cut_n}: nothing is to be repaired")
            save_plan(engine, plan, requested_by=requested_by, scheduler_run_id=context["run_id"])
        return {"plan_id": str(plan.plan_id), "plan_hash": plan.plan_hash, "contract": contract.name}
