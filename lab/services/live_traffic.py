"""Ordinary traffic of one book that goes on beside everything else, and outlives its servers' crashes.

A thread writes batch after batch, both sides of each. Between two batches it can be stopped for a moment: whoever holds
`between_batches` knows that no payment is written half. When the ledger goes away it connects again, and writes again
only what the ledger does not have.
"""

import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

import psycopg

from lab.servers import process
from lab.services.event import Event, Leg, Payment
from lab.services.ledger import Ledger, PayoutRow
from lab.services.workload import Traffic, Workload

_PAUSE_SECONDS = 0.4  # between two batches: the machine has other work
_LEDGER_BACK_SECONDS = 60.0

T = TypeVar("T")


class LiveTraffic:
    """Use it in a `with`; at its end the last batch is whole. `batches` counts those that are."""

    def __init__(self, desk: Workload) -> None:
        self.between_batches = threading.RLock()
        self.batches = 0
        self._traffic = Traffic(desk)
        self._ledger = Ledger(desk.names)
        self._connection = psycopg.connect(desk.addresses.ledger_owner_dsn, autocommit=True)
        self._stopped = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._work, name=f"traffic of {desk.contract}", daemon=True)

    def __enter__(self) -> "LiveTraffic":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._connection.close()

    def stop(self) -> None:
        """Write no more by itself. Safe to call again. Raises what the thread failed with."""
        self._stopped.set()
        self._thread.join()
        self._raise()

    def wait_for_batch(self) -> None:
        """Return once a batch is whole that began after this call."""
        with self.between_batches:
            before = self.batches
        process.wait_until(lambda: self._is_past(before), what="a batch of traffic", deadline_seconds=120)

    def write_batch(self, amid: Callable[[], object] = lambda: None) -> None:
        """Write one batch, both sides. amid: done while its producer transaction is open, before the commit."""
        with self.between_batches:
            batch = self._traffic.draw_batch()
            if self._traffic.desk.service == "relay":
                rows = [self._with_ledger(partial(self._add_once, payment)) for payment in batch]
                self._traffic.publish([(row.event, row.source) for row in rows], amid)
            else:
                legs = [payment.event(leg) for payment in batch for leg in (Leg.PAYMENT, Leg.INVOICE)]
                self._traffic.publish([(event, self._traffic.desk.source()) for event in legs], amid)
                self._with_ledger(partial(self._post_once, legs))
            self.batches += 1

    def _work(self) -> None:
        try:
            while not self._stopped.wait(_PAUSE_SECONDS):
                self.write_batch()
        except BaseException as failure:  # handed to whoever waits for a batch, or stops
            self._failure = failure

    def _is_past(self, batches: int) -> bool:
        self._raise()
        return self.batches > batches

    def _raise(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _add_once(self, payment: Payment) -> PayoutRow:
        return self._ledger.find_payout(self._connection, payment) or self._ledger.add_payout(self._connection, payment)

    def _post_once(self, legs: Sequence[Event]) -> None:
        """All in one database transaction, so that the first one stands for all."""
        with self._connection.transaction():
            if not self._ledger.is_posted(self._connection, legs[0]):
                for event in legs:
                    self._ledger.post(self._connection, event, once=False)

    def _with_ledger(self, write: Callable[[], T]) -> T:
        """Write again where the ledger went away: its answer may have been lost, so each write looks first."""
        while True:
            try:
                return write()
            except psycopg.OperationalError:
                process.wait_until(self._connects, what="the ledger", deadline_seconds=_LEDGER_BACK_SECONDS)

    def _connects(self) -> bool:
        try:
            self._connection = psycopg.connect(self._traffic.desk.addresses.ledger_owner_dsn, autocommit=True)
        except psycopg.OperationalError:
            return False
        return True
