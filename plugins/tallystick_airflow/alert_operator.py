"""Tells on-call."""

from airflow.sdk import Context
from airflow.sdk.configuration import conf

from tallystick.connections import artifacts_folder
from tallystick.contract import Contract
from tallystick_airflow.connections import get_connection, http_address
from tallystick_airflow.contract_operator import ContractOperator, open_verdict_store


class AlertOperator(ContractOperator):
    """Deliver what the contract's outbox still owes its sinks; a task, since what a callback fails to do nobody sees.

    Runs whatever became of the tasks before it, so a run without a verdict is told of as well.
    Decides nothing about who is told what: the alerts were written with the verdict. What was not delivered fails the
    task; a retry, or the next run, delivers it.
    """

    def execute(self, context: Context) -> None:
        from tallystick.delivery import deliver_pending, sinks_for  # SQLAlchemy, httpx: not while parsing
        from tallystick.no_verdict_alert import page_no_verdict, resolve_no_verdict
        from tallystick.store.run_store import read_run

        contract = self.read_contract()
        sinks = sinks_for(contract, webhook_addresses=_addresses(contract), artifacts_folder=artifacts_folder())
        with open_verdict_store() as engine:
            cut_n = int(self.cut_n) if self.cut_n.isdigit() else None
            if cut_n is None or read_run(engine, contract.contract, cut_n) is None:
                page_no_verdict(engine, contract, sinks, scheduler_run_id=context["run_id"], cut_n=cut_n)
                self.log.warning("No verdict is stored for this run: on-call was told")
            elif resolve_no_verdict(engine, contract, sinks):
                self.log.info("Verdicts are back: on-call was told")
            summary = deliver_pending(engine, contract.contract, sinks, links=_links())
        self.log.info("%d alerts delivered", summary.delivered)


def _addresses(contract: Contract) -> dict[str, str]:
    ids = {sink.connection for sink in contract.alert.sinks if sink.connection}
    return {connection_id: http_address(get_connection(connection_id)) for connection_id in sorted(ids)}


def _links() -> dict[str, str]:
    base_url = conf.get("api", "base_url", fallback="")
    return {"runs": f"{base_url.rstrip('/')}/dags/reconcile_{{contract}}"} if base_url else {}
