"""Executes a stored plan and dies where it is told to: python killed_executor.py '<JSON>'.

Not a test: test_compensation.py runs it as a process of its own, since only a process can be killed with SIGKILL.
"""

import json
import os
import signal
import sys
import threading
import time
from typing import Any
from uuid import UUID

from confluent_kafka import Producer

from tallystick.connections.connections import Connections, KafkaSettings
from tallystick.contract.contract import Contract
from tallystick.executor.effects import publish_events
from tallystick.executor.execute_plan import execute_plan
from tallystick.store.engine import open_store
from tallystick.store.plans.plan_store import read_plan


class DyingProducer(Producer):
    """Ends or stops its process at one step of the protocol."""

    die_at = ""

    def produce(self, *arguments: Any, **keywords: Any) -> None:
        if self.die_at == "stop before the first event":
            DyingProducer.die_at = ""  # of the next attempt's producer too
            os.kill(os.getpid(), signal.SIGSTOP)
        super().produce(*arguments, **keywords)
        if self.die_at == "after the first event":
            self.flush()
            os.kill(os.getpid(), signal.SIGKILL)

    def commit_transaction(self, *arguments: Any) -> None:
        if self.die_at == "before commit":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.die_at == "stop before commit":
            os.kill(os.getpid(), signal.SIGSTOP)
        if self.die_at == "in commit":
            threading.Thread(target=super().commit_transaction, args=arguments).start()
            time.sleep(0.001)
            os.kill(os.getpid(), signal.SIGKILL)
        super().commit_transaction(*arguments)
        if self.die_at == "after commit":
            os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    told = json.loads(sys.argv[1])
    DyingProducer.die_at = told["die_at"]
    publish_events.Producer = DyingProducer  # type: ignore[misc]
    store = open_store(told["store_dsn"])
    plan = read_plan(store, UUID(told["plan_id"]))
    assert plan is not None
    execute_plan(
        store,
        Contract.model_validate(told["contract"]),
        Connections(
            kafka=KafkaSettings({"bootstrap.servers": told["bootstrap_servers"]}), ledger_dsn=told["ledger_dsn"]
        ),
        plan,
        approved_hash=plan.plan_hash,
        approver="killed",
        environment="test",
    )


if __name__ == "__main__":
    main()
