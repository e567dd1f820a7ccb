"""Fixes what a run reads, before anything is read."""

from airflow.sdk import Context

from tallystick_airflow.connections import read_connections
from tallystick_airflow.operators.contract_operator import ContractOperator, open_verdict_store
from tallystick_airflow.run_window import window_of


class CutOperator(ContractOperator):
    """Save the cut of this run's window, or find it where it was saved before.

    Fails while another window's cut is unfinished: the finish task judges that one first.
    XCom: the cut's number, nothing else; the cut itself lies in the verdict store.
    """

    template_fields = ()

    def execute(self, context: Context) -> int:
        from tallystick.pipeline.make_cut import resolve_cut  # Kafka's client: not while parsing
        from tallystick.store.clock import read_clock

        contract = self.read_contract()
        window = window_of(context)
        with open_verdict_store(self.store_conn_id) as engine:
            clock = read_clock(engine)
            cut = resolve_cut(
                engine,
                contract,
                read_connections(contract),
                window_start_utc=window.start_utc,
                window_end_utc=window.end_utc,
                now_utc=clock.now_utc,
                scheduler_run_id=context["run_id"],
                host_ahead=clock.host_ahead,
            )
        self.log.info("Cut %d: window [%s, %s)", cut.n, cut.window_start_utc, cut.window_end_utc)
        return cut.n
