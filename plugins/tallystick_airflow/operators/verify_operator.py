"""Looks whether a compensation did what it was to do."""

from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from tallystick_airflow.approval import approved_plan
from tallystick_airflow.connections import read_acting_connections
from tallystick_airflow.operators.contract_operator import ContractOperator, open_verdict_store


class NotToBeSeenYet(AirflowException):
    """An open transaction hides what was published, or another Airflow may have a DAG's run; a retry looks again."""


class VerifyOperator(ContractOperator):
    """Read the touched topics again: is each break of the plan cleared, not cleared, or changed?

    No cut and no cursor: the next window clears the items. What an open transaction hides is looked for again. What was
    handed to a DAG whose run has not failed is told, and proves nothing. Each look stands in the store's trail.
    """

    def execute(self, context: Context) -> None:
        from tallystick.compensation.repair_effect import RepairEffect
        from tallystick.executor.prove_repairs import contract_to_look_by
        from tallystick.executor.verify_plan import verify_and_keep
        from tallystick.model.verdict import Verdict
        from tallystick.report.masking import Mask

        contract = self.read_contract()
        mask = Mask(contract)
        with open_verdict_store(self.store_conn_id) as engine:
            plan, approver = approved_plan(engine, contract.name, context)
            connections = read_acting_connections(contract_to_look_by(engine, contract, plan))
            result = verify_and_keep(engine, contract, plan, connections, actor=approver)
        handed = sum(check.effect is RepairEffect.HANDED_OVER for check in result.checks)
        wrong = [
            f"{mask.key(check.match_key)}: {check.effect}" + (f": {check.reason}" if check.reason else "")
            for check in result.checks
            if check.verdict is not Verdict.MATCHED and check.effect is not RepairEffect.HANDED_OVER
        ]
        if result.verdict is Verdict.BROKEN:
            raise AirflowFailException(f"the plan was executed, and yet: {'; '.join(wrong)}")
        if wrong or not result.checks:
            raise NotToBeSeenYet("; ".join(wrong) or "the plan has no action, so nothing is proven")
        self.log.info("All %d breaks of the plan are cleared", len(result.checks) - handed)
        if handed:
            self.log.warning("%d breaks were handed to DAGs: the next run says whether they are cleared", handed)
