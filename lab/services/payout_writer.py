"""The payout desk: several sessions write outbox rows at once, batch by batch when the lab asks. One process.

Some rows are written under savepoints, next to rows that are rolled back, in transactions that commit late: after
others that began later. So neither entry ids nor times are in commit order.
"""

import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import psycopg

from lab.services.event import Payment
from lab.services.ledger import Ledger
from lab.services.service_protocol import Control

_PUNCTUAL_SESSIONS = 3
_OVERTAKERS = 3  # so many rows of other sessions commit before a late one
_DEADLINE_SECONDS = 20.0


@dataclass
class PunctualSessions:
    """How many rows the punctual sessions have committed, and whether any of them still works."""

    working: int
    committed: int = 0
    changed: threading.Condition = field(default_factory=threading.Condition)

    def add(self, *, committed: int = 0, finished: int = 0) -> None:
        with self.changed:
            self.committed += committed
            self.working -= finished
            self.changed.notify_all()

    def wait_to_be_overtaken(self) -> None:
        """Return once others committed a few rows more, or have no more to commit."""
        with self.changed:
            until = self.committed + _OVERTAKERS
            self.changed.wait_for(lambda: self.committed >= until or self.working == 0, _DEADLINE_SECONDS)


def main() -> None:
    control = Control.open()
    control.report("ready")
    while not control.stopping:
        for command in control.take("write"):
            _write_batch(control, control.settings.work[command["batch"]])
            control.report("written", batch=command["batch"])
        control.wait_for_command()


def _write_batch(control: Control, batch: tuple[dict[str, Any], ...]) -> None:
    """Share the rows among the sessions; the late ones have a session of their own."""
    punctual = [fields for fields in batch if not fields["late"]]
    late = [fields for fields in batch if fields["late"]]
    progress = PunctualSessions(working=_PUNCTUAL_SESSIONS)
    with ThreadPoolExecutor(_PUNCTUAL_SESSIONS + 1) as pool:
        futures = [
            pool.submit(_write_punctual, control, punctual[number::_PUNCTUAL_SESSIONS], progress)
            for number in range(_PUNCTUAL_SESSIONS)
        ]
        futures.append(pool.submit(_write_late, control, late, progress))
    for future in futures:
        future.result()


def _write_punctual(control: Control, rows: list[dict[str, Any]], progress: PunctualSessions) -> None:
    try:
        with _connect(control) as connection:
            for fields in rows:
                with connection.transaction():
                    Ledger(control.settings.names).add_payout(connection, Payment.from_fields(fields))
                progress.add(committed=1)
    finally:
        progress.add(finished=1)


def _write_late(control: Control, rows: list[dict[str, Any]], progress: PunctualSessions) -> None:
    """Write a row that is rolled back to a savepoint, then the real one under another savepoint; commit late."""
    ledger = Ledger(control.settings.names)
    with _connect(control) as connection:
        for fields in rows:
            payment = Payment.from_fields(fields)
            with connection.transaction():
                with connection.transaction(force_rollback=True):
                    ledger.add_payout(connection, replace(payment, payment_id=uuid.uuid4()))
                with connection.transaction():
                    ledger.add_payout(connection, payment)
                progress.wait_to_be_overtaken()


def _connect(control: Control) -> psycopg.Connection:
    return psycopg.connect(control.settings.ledger_dsn, autocommit=True, application_name=control.settings.name)


if __name__ == "__main__":
    main()
