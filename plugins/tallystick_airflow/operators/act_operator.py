"""The operator that carries out an approved plan, and nothing else."""

import os
from typing import TYPE_CHECKING, Any

from airflow.sdk import Context

from tallystick.model.direction import Direction
from tallystick_airflow.approval import approved_plan
from tallystick_airflow.connections import read_acting_connections
from tallystick_airflow.lineage import lineage_of
from tallystick_airflow.operators.contract_operator import ContractOperator, open_verdict_store
from tallystick_airflow.refused_plan import no_retry_for_a_refused_plan

if TYPE_CHECKING:
    from tallystick.connections.connections import Connections
    from tallystick_airflow.lineage import TaskLineage


class ActOperator(ContractOperator):
    """Execute the plan that was shown in the approval, under the approver's name.

    Safe to run again after any failure, and when it is cleared: each event is published once over all plans, and only
    while its break is outstanding. Refuses a plan that is not what the store would plan now, an approval that is too
    old, and, above the contract's limit, an approver who asked for the plan.
    XCom: fate of the events to their count.
    """

    reached: "Connections | None" = None

    def execute(self, context: Context) -> dict[str, int]:
        from tallystick.executor.effects.action_log import ActionResult
        from tallystick.executor.execute_plan import execute_plan
        from tallystick.executor.prove_repairs import contract_to_look_by
        from tallystick.text.plain import story_text

        contract = self.read_contract()
        with open_verdict_store(self.store_conn_id) as engine, no_retry_for_a_refused_plan():
            plan, approver = approved_plan(engine, contract.name, context)
            self.reached = read_acting_connections(contract_to_look_by(engine, contract, plan))
            execution = execute_plan(
                engine,
                contract,
                self.reached,
                plan,
                approved_hash=plan.plan_hash,
                approver=approver,
                approved_in=context["run_id"],
                environment=os.environ.get("TALLYSTICK_ENVIRONMENT", "production"),
            )
        for outcome in execution.outcomes:
            self.log.info("action %s: %s %s", outcome.action_id, outcome.fate, story_text(outcome.reason))
        return {str(fate): execution.count(fate) for fate in ActionResult}

    def get_openlineage_facets_on_complete(self, _: Any) -> "TaskLineage":
        """One side was repaired from the other.

        Asked for by the OpenLineage provider, in a process that may not ask Airflow for connections any more.
        """
        from tallystick.documents.lineage_names import ledger_side, topic_side  # SQLAlchemy: not while parsing

        if self.reached is None:
            return lineage_of(read=(), written=())
        contract, connections = self.read_contract(), self.reached
        sides = topic_side(contract, connections), ledger_side(contract, connections)
        topic_is_first = contract.direction is Direction.TOPIC_TO_LEDGER
        read, written = sides if topic_is_first else reversed(sides)
        return lineage_of(read=read, written=written)
