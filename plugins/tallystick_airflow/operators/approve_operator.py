"""The operator that asks a person."""

from datetime import datetime
from typing import TYPE_CHECKING, Any

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowFailException

from tallystick.contract.contract import Contract
from tallystick_airflow.approval import NotApproved, read_plan_of
from tallystick_airflow.connections import STORE_CONNECTION
from tallystick_airflow.internals.installed import warn_of_lost_tasks
from tallystick_airflow.operators.contract_operator import open_verdict_store, read_contract_file

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from tallystick.store.plans.approval_store import ApprovalStep


class ApprovePlanOperator(ApprovalOperator):
    """Show the plan and park until a person approves or rejects it. Nobody answering in time is a no, and fails.

    No default answer: Airflow would take it for a yes. Rejected: what follows is skipped.
    What is shown is made from the stored plan that this run has asked for, never from XCom.
    Asks once per run: Airflow keeps the first text of a task that is cleared, so a second question would show the old
    plan under a new one's name.
    What was shown, every answer, that there was none, and that it was not asked again stand in the store's trail with
    the plan's hash: the tasks that follow go by that. XCom: Airflow's own answer, which nothing goes by.
    """

    def __init__(self, *, contract_file: str, store_conn_id: str = STORE_CONNECTION, **kwargs: Any) -> None:
        super().__init__(subject="{{ dag.dag_id }}: carry out this plan?", retries=0, **kwargs)
        self.contract_file = contract_file
        self.store_conn_id = store_conn_id

    def execute(self, context: Context) -> Any:
        from tallystick.store.plans.approval_store import plan_asked_in  # SQLAlchemy: not while parsing

        contract, run_id = read_contract_file(self.contract_file), context["run_id"]
        with open_verdict_store(self.store_conn_id) as engine:
            asked = plan_asked_in(engine, contract.name, scheduler_run_id=run_id)
            if asked is None:
                raise NotApproved(f"the verdict store has no plan that run {run_id} has asked for; start a new run")
            self.show(engine, contract, context, asked)
        return super().execute(context)

    def show(
        self, engine: "Engine", contract: Contract, context: Context, asked: "ApprovalStep", word: str = ""
    ) -> None:
        """Put a plan before a person, after a word of ours, and keep that. Raises where it was shown already."""
        from tallystick.compensation.plan_text import describe_plan
        from tallystick.report.masking import Mask
        from tallystick.store.plans.approval_store import SHOWN

        run_id = context["run_id"]
        if context["ti"].try_number > 1:
            _keep(engine, contract.name, run_id, asked, actor="airflow", event="not_asked_again")
            raise AirflowFailException("an approval is asked once per run: start a new run for a new plan")
        warn_of_lost_tasks(self.log.warning)
        self.body = word + describe_plan(
            read_plan_of(engine, asked), shown_key=Mask(contract).key, allowed=contract.compensation
        )
        _keep(engine, contract.name, run_id, asked, actor="airflow", event=SHOWN)

    def execute_complete(self, context: Context, event: dict[str, Any]) -> Any:
        from tallystick.compensation.approval_rules import may_approve
        from tallystick.store.plans.approval_store import AGREED, FAILED, SHOWN, last_approval_step

        contract, run_id = read_contract_file(self.contract_file), context["run_id"]
        answer, who = _answer_of(event)
        stranger = answer == AGREED and not may_approve(contract, who)
        with open_verdict_store(self.store_conn_id) as engine:
            shown = last_approval_step(engine, contract.name, scheduler_run_id=run_id)
            if shown is None or shown.event != SHOWN:
                raise NotApproved(f"the verdict store has no plan that run {run_id} shows; start a new run")
            kept = FAILED if stranger else answer
            responded_at = event.get("responded_at")
            _keep(engine, contract.name, run_id, shown, actor=who, event=kept, responded_at=responded_at)
        if stranger:
            raise NotApproved(f"{who} agreed, whom compensation.approvers does not name; start a new run, which asks")
        return super().execute_complete(context, event)


class SecondApprovalOperator(ApprovePlanOperator):
    """Ask a second person where one is not enough; pass at once where it is. approval_rules decides.

    So the reconciliation's own plan gets two approvals above the contract's limit, and whoever agreed to a plan that
    they had asked for themselves need not start again.
    """

    def execute(self, context: Context) -> Any:
        from tallystick.compensation.approval_rules import refuse_too_few_people
        from tallystick.compensation.plan import OnePersonOnly
        from tallystick.compensation.plan_text import plain_markdown
        from tallystick.store.plans.approval_store import agreements_in, last_approval_step, requesters

        contract, run_id = read_contract_file(self.contract_file), context["run_id"]
        with open_verdict_store(self.store_conn_id) as engine:
            last = last_approval_step(engine, contract.name, scheduler_run_id=run_id)
            if last is None:
                raise NotApproved(f"the verdict store has no approval in run {run_id}; start a new run")
            plan = read_plan_of(engine, last)
            agreed = [step.actor for step in agreements_in(engine, contract.name, scheduler_run_id=run_id)]
            try:
                refuse_too_few_people(contract, plan, asked=requesters(engine, plan), agreed=agreed[:1])
            except OnePersonOnly as reason:
                self.log.info("%s", reason)
                word = f"**Another person has to agree too**, beside {plain_markdown(', '.join(agreed[:1]))}.\n\n"
                self.show(engine, contract, context, last, word)
            else:
                self.log.info("One person's approval is enough for this plan")
                return None
        return ApprovalOperator.execute(self, context)


def _keep(
    engine: "Engine",
    contract_name: str,
    run_id: str,
    step: "ApprovalStep",
    *,
    actor: str,
    event: str,
    responded_at: datetime | None = None,
) -> None:
    """Append one line to the trail of a plan. responded_at: when the person answered, as Airflow's API server says."""
    from tallystick.store.clock import dated_by_store, read_clock
    from tallystick.store.plans.approval_store import ANSWERED_AT
    from tallystick.store.plans.plan_store import append_audit

    detail = {"plan_hash": step.plan_hash, "scheduler_run_id": run_id}
    if responded_at is not None:
        answered_at = dated_by_store(read_clock(engine), responded_at, not_before=step.recorded_at)
        detail[ANSWERED_AT] = answered_at.isoformat()
    append_audit(engine, contract_name, plan_id=step.plan_id, actor=actor, event=event, detail=detail)


def _answer_of(event: dict[str, Any]) -> tuple[str, str]:
    """What the trail says of an answer, and whose it is."""
    from tallystick.store.plans.approval_store import AGREED, FAILED, REJECTED, UNANSWERED

    if "error" in event:
        return (UNANSWERED if event["error_type"] == "timeout" else FAILED), "airflow"
    who = (event["responded_by_user"] or {}).get("name")
    if event["chosen_options"] != [ApprovePlanOperator.APPROVE]:
        return REJECTED, who or "nobody"
    return (AGREED, who) if who else (FAILED, "nobody")
