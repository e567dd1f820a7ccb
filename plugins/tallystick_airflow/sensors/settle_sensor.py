"""Waits until neither side can gain a record of the window; `tallystick.pipeline.sources` says what settled means."""

from datetime import datetime
from typing import Any, NoReturn

from airflow.sdk import BaseSensorOperator, Context

from tallystick.contract.contract import Contract
from tallystick_airflow.connections import read_connections
from tallystick_airflow.operators.contract_operator import open_verdict_store, read_contract_file
from tallystick_airflow.run_window import window_of

POLL_SECONDS = 1.0
"""Between two of the triggerer's first looks at both sides; later ones are further apart, as the trigger says."""


class SettleSensor(BaseSensorOperator):
    """Wait until log and ledger have settled past the window's end, or the contract's settle_timeout ends.

    The first look marks both sides. Where they have settled already the task does not defer: the scheduler can lose a
    task that resumes at once. Otherwise the triggerer looks on, and no worker slot is held.
    Never fails because a side is held back: the run goes on, and its verdict says what it could not see.
    XCom: settled, waits_for.
    """

    def __init__(self, *, contract_file: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.contract_file = contract_file

    def execute(self, context: Context) -> dict[str, Any]:
        from tallystick.pipeline.sources import observe  # Kafka's client: not while parsing
        from tallystick.store.clock import store_now

        contract = read_contract_file(self.contract_file)
        window_end_utc = window_of(context).end_utc
        with open_verdict_store() as engine:
            now_utc = store_now(engine)
            readiness = observe(
                engine, contract, read_connections(contract), window_end_utc=window_end_utc, now_utc=now_utc
            )
        if readiness.settled:
            return self.resume(context, {"settled": True, "waits_for": []})
        self.log.info("Not settled, waits for %s", "; ".join(readiness.waits_for))
        give_up_utc = max(window_end_utc, now_utc) + contract.settle_timeout
        self._wait(contract, window_end_utc=window_end_utc, give_up_utc=give_up_utc)

    def resume(self, context: Context, event: dict[str, Any]) -> dict[str, Any]:
        """Go on, settled or not."""
        if event["settled"]:
            self.log.info("Settled: neither side can gain a record of this window")
        else:
            self.log.warning("Not settled in time, going on without: %s", "; ".join(event["waits_for"]))
        return event

    def _wait(self, contract: Contract, *, window_end_utc: datetime, give_up_utc: datetime) -> NoReturn:
        from tallystick_airflow.sensors.settle_trigger import SettleTrigger

        self.defer(
            trigger=SettleTrigger(
                contract_json=contract.model_dump_json(),
                window_end_utc=window_end_utc.isoformat(),
                give_up_utc=give_up_utc.isoformat(),
                poll_seconds=POLL_SECONDS,
            ),
            method_name="resume",
        )
