"""Waits until neither side can gain a record of the window; `tallystick.pipeline.sources` says what settled means."""

import time
from collections.abc import Callable
from datetime import datetime
from typing import Any, NoReturn

from airflow.sdk import BaseSensorOperator, Context

from tallystick.contract.contract import Contract
from tallystick.pipeline.readiness import Readiness
from tallystick_airflow.connections import STORE_CONNECTION, read_connections
from tallystick_airflow.internals.installed import warn_of_lost_tasks
from tallystick_airflow.operators.contract_operator import open_verdict_store, read_contract_file
from tallystick_airflow.run_window import window_of

POLL_SECONDS = 1.0
"""Between two of the first looks at both sides; later ones are further apart, as `pause_seconds` says."""


class SettleSensor(BaseSensorOperator):
    """Wait until log and ledger have settled past the window's end, or the contract's settle_timeout ends.

    The first look marks both sides. Where they have settled already the task does not defer: the scheduler can lose a
    task that resumes at once. Otherwise the triggerer looks on, and no worker slot is held; or, with deferrable=False,
    this task looks on, and holds its slot.
    Never fails because a side is held back: the run goes on, and its verdict says what it could not see.
    XCom: settled, waits_for.
    """

    def __init__(
        self, *, contract_file: str, store_conn_id: str = STORE_CONNECTION, deferrable: bool = True, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.contract_file = contract_file
        self.store_conn_id = store_conn_id
        self.deferrable = deferrable

    def execute(self, context: Context) -> dict[str, Any]:
        contract = read_contract_file(self.contract_file)
        window_end_utc = window_of(context).end_utc
        look = self._look_at(contract, window_end_utc)
        readiness, now_utc = look()
        if not readiness.settled:
            self.log.info("Not settled, waits for %s", "; ".join(readiness.waits_for))
            give_up_utc = max(window_end_utc, now_utc) + contract.settle_timeout
            if self.deferrable:
                self._park(contract, window_end_utc=window_end_utc, give_up_utc=give_up_utc)
            readiness = _wait_here(look, since=(readiness, now_utc), give_up_utc=give_up_utc)
        return self.resume(context, {"settled": readiness.settled, "waits_for": list(readiness.waits_for)})

    def resume(self, context: Context, event: dict[str, Any]) -> dict[str, Any]:
        """Go on, settled or not."""
        if event["settled"]:
            self.log.info("Settled: neither side can gain a record of this window")
        else:
            self.log.warning("Not settled in time, going on without: %s", "; ".join(event["waits_for"]))
        return event

    def _look_at(self, contract: Contract, window_end_utc: datetime) -> Callable[[], tuple[Readiness, datetime]]:
        """Return what looks at both sides once; it also returns the store's time of the look."""
        from tallystick.pipeline.sources import observe  # Kafka's client: not while parsing
        from tallystick.store.clock import store_now

        connections = read_connections(contract)

        def look() -> tuple[Readiness, datetime]:
            with open_verdict_store(self.store_conn_id) as engine:
                now_utc = store_now(engine)
                return observe(engine, contract, connections, window_end_utc=window_end_utc, now_utc=now_utc), now_utc

        return look

    def _park(self, contract: Contract, *, window_end_utc: datetime, give_up_utc: datetime) -> NoReturn:
        from tallystick_airflow.sensors.settle_trigger import SettleTrigger

        warn_of_lost_tasks(self.log.warning)
        self.defer(
            trigger=SettleTrigger(
                contract_json=contract.model_dump_json(),
                window_end_utc=window_end_utc.isoformat(),
                give_up_utc=give_up_utc.isoformat(),
                poll_seconds=POLL_SECONDS,
                store_conn_id=self.store_conn_id,
            ),
            method_name="resume",
        )


def _wait_here(
    look: Callable[[], tuple[Readiness, datetime]], *, since: tuple[Readiness, datetime], give_up_utc: datetime
) -> Readiness:
    """Look on in this process, as often as the trigger does, until both sides have settled or it is time to go on."""
    from tallystick_airflow.sensors.settle_trigger import pause_seconds  # Kafka's client: not while parsing

    readiness, looked_utc = since
    looks = 1
    while not readiness.settled and looked_utc < give_up_utc:
        time.sleep(pause_seconds(looks, POLL_SECONDS))
        looks += 1
        readiness, looked_utc = look()
    return readiness
