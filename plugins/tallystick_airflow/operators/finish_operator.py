"""Judges what an earlier run left unjudged, so that windows are judged in order and each has its own verdict."""

from typing import Any

from airflow.sdk import Context

from tallystick_airflow.operators.contract_operator import open_verdict_store, read_contract_file
from tallystick_airflow.operators.reconcile_operator import ReconcileOperator


class FinishOperator(ReconcileOperator):
    """Read and judge the contract's unfinished cut, if there is one.

    An unfinished cut is left by a run that was killed or gave up between its cut and its verdict. A run that is still
    at it is fenced by this one, and finds the verdict stored when it tries again. The cut task closes a baseline.
    XCom: the verdict of that cut; nothing where there was none.
    """

    def __init__(self, *, contract_file: str, **kwargs: Any) -> None:
        super().__init__(contract_file=contract_file, cut_n="", **kwargs)

    def execute(self, context: Context) -> str | None:  # type: ignore[override]
        from tallystick.store.runs.cut_store import open_cut  # SQLAlchemy: not while parsing

        contract = read_contract_file(self.contract_file)
        with open_verdict_store(self.store_conn_id) as engine:
            cut = open_cut(engine, contract.name)
        if cut is None or cut.is_baseline:
            self.log.info("%s has no unfinished cut", contract.name)
            return None
        self.log.warning("Cut %d of window [%s, %s) first", cut.n, cut.window_start_utc, cut.window_end_utc)
        self.cut_n = str(cut.n)
        self.application_args = ["--contract", self.contract_file, "--cut", self.cut_n]
        return super().execute(context)
