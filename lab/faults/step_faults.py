"""Doing the planned faults for real, and writing down what each leaves behind.

`anomalies_of` is the lab's whole theory: which disagreement a fault causes under which promise. The tests in tests/lab
hold it against the topics and the ledger.
"""

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from lab.faults.round_plan import PlannedFault
from lab.servers import process
from lab.servers.proxy import ProxyControl
from lab.services.delivery_mode import DeliveryMode
from lab.services.event import Leg
from lab.services.service_protocol import FENCED_EXIT, Barrier
from lab.services.service_slot import ServiceFailed, Slot
from lab.truth.truth import Anomaly, Fault

_OVERTAKERS = 3  # so many messages other posters handle while a late one keeps its transaction open
_OVERTAKING_SECONDS_MAX = 0.5  # unless there are no more


def anomalies_of(mode: DeliveryMode, planned: PlannedFault) -> tuple[Anomaly, ...]:
    """Say what a fault leaves behind once everything has settled. Exactly once: nothing."""
    event, fault = planned.event, planned.fault
    payment_leg, invoice_leg = event.payment.event(Leg.PAYMENT), event.payment.event(Leg.INVOICE)
    in_poster = fault is Fault.CONSUMER_CRASHED and event.leg is not Leg.PAYOUT
    if mode is DeliveryMode.AT_MOST_ONCE:
        if fault is Fault.CLIENT_KILLED:
            return (Anomaly.of(invoice_leg, "torn_transaction", fault),)
        if fault is Fault.CONSUMER_CRASHED:
            return (Anomaly.of(event, "missing_in_ledger" if in_poster else "missing_in_topic_never_produced", fault),)
    if mode is DeliveryMode.AT_LEAST_ONCE:
        if fault is Fault.ACK_LOST:
            return (Anomaly.of(event, "duplicate_in_topic_no_idempotence", fault),)
        if fault is Fault.ZOMBIE:
            return tuple(Anomaly.of(leg, "duplicate_in_topic_reprocessed", fault) for leg in (payment_leg, invoice_leg))
        if fault is Fault.CLIENT_KILLED:
            return (Anomaly.of(payment_leg, "duplicate_in_topic_reprocessed", fault),)
        if fault is Fault.CONSUMER_CRASHED:
            return (Anomaly.of(event, "duplicate_in_ledger" if in_poster else "duplicate_in_topic_reprocessed", fault),)
    return ()


@dataclass
class FiredFaults:
    """What has fired so far, and what it left; filled by the slots' threads."""

    mode: DeliveryMode
    fired: Counter[str] = field(default_factory=Counter)
    anomalies: list[Anomaly] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, planned: PlannedFault) -> None:
        with self._lock:
            self.fired[planned.fault] += 1
            self.anomalies += anomalies_of(self.mode, planned)

    def count(self, fault: Fault, times: int = 1) -> None:
        with self._lock:
            self.fired[fault] += times


@dataclass(frozen=True)
class FaultMaker:
    """Turns planned faults into what a slot does when the barrier is reached."""

    proxy: ProxyControl
    record: FiredFaults
    posters: Sequence[Slot]

    def handler(self, planned: PlannedFault) -> Callable[[Slot], None]:
        make = {
            Fault.ACK_LOST: self._lose_ack,
            Fault.CLIENT_KILLED: self._kill,
            Fault.CONSUMER_CRASHED: self._kill,
            Fault.ZOMBIE: self._make_zombie,
            Fault.SAVEPOINT_ROWS: self._commit_late,
        }[planned.fault]

        def handle(slot: Slot) -> None:
            make(slot, planned)
            self.record.add(planned)

        return handle

    def _lose_ack(self, slot: Slot, planned: PlannedFault) -> None:
        client_id = slot.settings.client_id
        count = self.proxy.fired(client_id)
        self.proxy.arm(client_id)
        slot.let_go()
        self.proxy.wait_fired(client_id, count + 1)

    def _kill(self, slot: Slot, planned: PlannedFault) -> None:
        slot.kill_and_replace()

    def _make_zombie(self, slot: Slot, planned: PlannedFault) -> None:
        """Freeze the worker, let its successor redo the payment where the mode redoes it, then wake the worker."""
        mode = self.record.mode
        redone = mode is not DeliveryMode.AT_MOST_ONCE  # at most once the progress was saved before the work
        zombie = slot.freeze()
        slot.succeed(until=(str(Barrier.AFTER_PROGRESS), planned.subject) if redone else None)
        status = slot.wake(zombie)
        if (status == FENCED_EXIT) != (mode is DeliveryMode.EXACTLY_ONCE):
            raise ServiceFailed(f"{slot.name}: the zombie ended with status {status} in mode {mode}")
        if redone:
            slot.let_go()

    def _commit_late(self, slot: Slot, planned: PlannedFault) -> None:
        """Keep the database transaction open while other posters go on."""
        others = [poster for poster in self.posters if poster is not slot]
        until = sum(poster.count("handled") for poster in others) + _OVERTAKERS
        with suppress(process.NotReadyInTime):  # nothing more came for the others; the row still has its savepoints
            process.wait_until(
                lambda: sum(poster.count("handled") for poster in others) >= until,
                what="other posters",
                deadline_seconds=_OVERTAKING_SECONDS_MAX,
            )
        slot.let_go()
