"""The simulated world's place, taken by real servers: the same scheduler and the same people drive the product on them.

Where `standins/seams.py` binds names of the product to stand-ins, this binds the simulator's own to the real functions.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from confluent_kafka import Producer
from sqlalchemy import Engine

from tallystick.connections.connections import KafkaSettings
from tallystick.contract.contract import Contract
from tallystick.executor.effects import publish_events
from tallystick.kafka_log import committed_records
from tallystick.store.breaks.write_off_store import write_off_break
from tallystick.store.clock import StoreClock
from tallystick.store.plans.plan_store import save_plan
from tallystick.store.plans.switch_store import set_switch
from tallystick.store.runs.cut_store import last_cut, open_cut
from tallystick.store.runs.outstanding_store import outstanding_breaks
from tallystick.store.runs.run_store import list_runs, read_run
from tests.simulator.replay.store_clock import ToldClock
from tests.simulator.schedule import people_steps, product
from tests.simulator.standins.executor import WorldTime
from tests.simulator.world.broker import Broker
from tests.simulator.world.clock import Clock
from tests.simulator.world.config import Config
from tests.simulator.world.interleaving import Interleaving
from tests.simulator.world.truth import Truth


@dataclass(kw_only=True)
class RealWorld:
    """As scheduler and people ask a World; and connections, as the product asks for them.

    truth, broker: empty ones, which nobody here writes to. config: of none. told: the story of what the product did.
    """

    contracts: tuple[Contract, ...]
    store: Engine
    clock: ToldClock
    kafka: KafkaSettings
    ledger_dsn: str
    poster_dsn: None = None
    airflow: None = None
    point: Interleaving = field(default_factory=Interleaving)
    truth: Truth = field(default_factory=Truth)
    broker: Broker = field(default_factory=Broker)
    config: Config = field(default_factory=Config)
    told: list[str] = field(default_factory=list)

    @property
    def contract(self) -> Contract:
        return self.contracts[0]

    def look(self) -> None:
        """There is no truth that could."""

    def tell(self, line: str) -> None:
        self.told.append(f"{self.clock.now:%d %H:%M:%S}  {line}")


def _producer_by(clock: Clock) -> type[Producer]:
    class ToldProducer(Producer):
        """The executor's client: its records have the schedule's time, since the machine's would be skewed."""

        def produce(self, topic: str, *given: Any, **named: Any) -> None:
            super().produce(topic, *given, timestamp=clock.now_ms, **named)

    return ToldProducer


def _nothing(*arguments: Any) -> None:
    pass


def _schedules_clock(_: Any, *, host_now: Callable[[], datetime]) -> StoreClock:
    """The told store's own is some microseconds further with each question."""
    return StoreClock(now_utc=host_now(), host_ahead=timedelta())


@contextmanager
def real_functions(world: RealWorld, environment: dict[str, str]) -> Iterator[None]:
    """Scheduler and people call the store's own functions, and who waits for a log waits by the schedule's clock."""
    store: dict[Any, dict[str, Any]] = {
        product: {
            "last_cut": last_cut,
            "open_cut": open_cut,
            "read_run": read_run,
            "expire_transactions": _nothing,
            "read_clock": _schedules_clock,
        },
        people_steps: {
            "list_runs": list_runs,
            "open_cut": open_cut,
            "outstanding_breaks": outstanding_breaks,
            "read_run": read_run,
            "plan_functions": SimpleNamespace(
                save_plan=save_plan, write_off_break=write_off_break, set_switch=set_switch
            ),
        },
        publish_events: {"Producer": _producer_by(world.clock)},
        committed_records: {"time": WorldTime(SimpleNamespace(it=world))},
    }
    with ExitStack() as bound:
        for module, names in store.items():
            bound.enter_context(patch.multiple(module, **names))
        bound.enter_context(patch.dict(os.environ, environment))
        yield
