"""The waiting part of the settle sensor; runs in the triggerer."""

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from tallystick.contract.contract import Contract
from tallystick.pipeline.readiness import Readiness
from tallystick.pipeline.sources import observe
from tallystick.store.clock import store_now
from tallystick.store.engine import open_store
from tallystick_airflow.connections import STORE_CONNECTION, read_connections, read_store_dsn

QUICK_LOOKS = 10
"""Most windows settle within so many looks."""
SLOWER = 5


class SettleTrigger(BaseTrigger):
    """Look at both sides until they have settled, or until `give_up_utc` by the verdict store's clock.

    Takes the contract itself, not its file: the triggerer may run where the DAGs do not lie. Holds no secret; the
    connections are read where it runs. An error that a look raises fails the task, and its retry starts afresh.
    poll_seconds: between two of the first looks, as settle_sensor.py says. The defaults are for a wait that began
    before an upgrade.
    Event: settled, waits_for.
    """

    def __init__(
        self,
        *,
        contract_json: str,
        window_end_utc: str,
        give_up_utc: str,
        poll_seconds: float = 1.0,
        store_conn_id: str = STORE_CONNECTION,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call] # Airflow gave its constructor no types
        self.contract_json = contract_json
        self.window_end_utc = window_end_utc
        self.give_up_utc = give_up_utc
        self.poll_seconds = poll_seconds
        self.store_conn_id = store_conn_id

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return (
            "tallystick_airflow.sensors.settle_trigger.SettleTrigger",
            {
                "contract_json": self.contract_json,
                "window_end_utc": self.window_end_utc,
                "give_up_utc": self.give_up_utc,
                "poll_seconds": self.poll_seconds,
                "store_conn_id": self.store_conn_id,
            },
        )

    async def run(self) -> AsyncIterator[TriggerEvent]:
        give_up_utc = datetime.fromisoformat(self.give_up_utc)
        contract = Contract.model_validate_json(self.contract_json)
        connections = await asyncio.to_thread(read_connections, contract)
        engine = open_store(await asyncio.to_thread(read_store_dsn, self.store_conn_id))

        def look() -> tuple[Readiness, datetime]:
            window_end_utc = datetime.fromisoformat(self.window_end_utc)
            try:
                now_utc = store_now(engine)
                return observe(engine, contract, connections, window_end_utc=window_end_utc, now_utc=now_utc), now_utc
            finally:
                engine.dispose()  # a hundred waiting windows hold no connection between their looks

        readiness, looked_utc = await asyncio.to_thread(look)
        looks = 1
        while not readiness.settled and looked_utc < give_up_utc:
            await asyncio.sleep(pause_seconds(looks, self.poll_seconds))
            looks += 1
            readiness, looked_utc = await asyncio.to_thread(look)
        told = {"settled": readiness.settled, "waits_for": list(readiness.waits_for)}
        yield TriggerEvent(told)  # type: ignore[no-untyped-call] # Airflow gave its constructor no types


def pause_seconds(looks: int, poll_seconds: float) -> float:
    """Return how long to wait after so many looks: as asked for at first, then five times as long."""
    return poll_seconds if looks <= QUICK_LOOKS else SLOWER * poll_seconds
