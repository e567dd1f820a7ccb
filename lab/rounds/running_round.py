"""A round at work: the services' processes, the order in which they are driven, and the transactions held open."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import psycopg

from lab.faults.open_transactions import Held, OpenDatabaseTransaction, OpenProducerTransaction
from lab.faults.round_plan import RELAY_SLOT, Batch, Plan
from lab.faults.step_faults import FaultMaker, FiredFaults
from lab.servers.log_ends import LogEnds
from lab.servers.process import wait_until
from lab.servers.stack import LabAddresses
from lab.services.delivery_mode import DeliveryMode
from lab.services.event import Payment
from lab.services.kafka_clients import new_admin
from lab.services.ledger import horizon_xid, next_xid
from lab.services.namespace import PAYMENT_PARTITIONS, REQUEST_PARTITIONS, Namespace
from lab.services.service_protocol import ServiceSettings
from lab.services.service_slot import Slot
from lab.services.totals import total
from lab.truth.truth import Fault, Truth

Progress = Callable[[str], None]
FIRST_HOLDS_ENDED = "drained; what was held open first has ended"
"""Told between the two pairs of holds, when no transaction is open or being committed."""
Hold = OpenProducerTransaction | OpenDatabaseTransaction


@dataclass(frozen=True, kw_only=True)
class Round:
    """A namespace that traffic can run in. Traffic may run again in it, with another seed."""

    addresses: LabAddresses
    mode: DeliveryMode
    seed: int
    namespace: str = "billing"

    @property
    def names(self) -> Namespace:
        return Namespace(self.namespace)


class RunningRound:
    """Services at work, and the transactions held open. Use it in a `with`, or call `release` or `close`."""

    def __init__(self, round_: Round, plan: Plan, progress: Progress) -> None:
        self.round = round_
        self.plan = plan
        self.progress = progress
        self.record = FiredFaults(round_.mode)
        self.holds: list[Hold] = []
        self.log_ends = LogEnds(new_admin(round_.addresses.bootstrap_servers))
        self._build_slots()

    @property
    def held(self) -> tuple[Held, ...]:
        """Describe what is held open now."""
        return tuple(hold.held for hold in self.holds)

    def run(self, *, holds: bool) -> None:
        """Traffic with faults under a first pair of holds, then traffic behind a second pair."""
        self._start(self._all_slots)
        self._open_holds(0)
        self._write(0)
        self._end_holds(OpenDatabaseTransaction)
        self._sync(self.billing)
        self._end_holds(OpenProducerTransaction)
        self._drain()
        self.progress(FIRST_HOLDS_ENDED)
        self._open_holds(1)
        self._write(1)
        self._sync(self.billing)
        if not holds:
            self._end_holds(OpenDatabaseTransaction, OpenProducerTransaction)
        self._drain()
        self.progress(f"drained; held open: {', '.join(held.holder for held in self.held) or 'nothing'}")

    def release(self) -> Truth:
        """End the holds, drain the rest, stop the services, and tell what really happened."""
        try:
            self._end_holds(OpenDatabaseTransaction, OpenProducerTransaction)
            self._drain()
            aborted = sum(slot.count("aborted") for slot in self._all_slots)
        finally:
            self.close()
        if aborted:
            self.record.count(Fault.ABORTED_TRANSACTIONS, aborted)
        self._check_fired()
        truth = self._truth()
        self.progress(f"faults fired: {_counts(truth.faults_fired)}")
        self.progress(f"released; {len(truth.anomalies)} disagreements are real")
        return truth

    def close(self) -> None:
        """Stop the services; a hold that is still open ends without effect. Safe to call again."""
        with ThreadPoolExecutor(len(self._all_slots)) as pool:
            stopping = [pool.submit(slot.stop) for slot in self._all_slots]
            for hold in self.holds:
                hold.give_up()
            self.holds.clear()
        for stopped in stopping:
            stopped.result()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _build_slots(self) -> None:
        requests = (_fields(self.plan.before.requests), _fields(self.plan.behind.requests))
        payouts = (_payout_fields(self.plan.before), _payout_fields(self.plan.behind))
        self.writers = [
            self._slot("lab.services.request_writer", "request-writer", 0, work=requests),
            self._slot("lab.services.payout_writer", "payout-writer", 0, work=payouts),
        ]
        self.billing = [
            self._slot("lab.services.billing_service", f"billing-{number}", number)
            for number in range(REQUEST_PARTITIONS)
        ]
        self.posters = [
            self._slot("lab.services.poster", f"poster-{number}", number) for number in range(PAYMENT_PARTITIONS)
        ]
        self.relays = [self._slot("lab.services.relay", RELAY_SLOT, 0)]
        self._all_slots = self.writers + self.billing + self.posters + self.relays
        maker = FaultMaker(self.round.addresses.proxy, self.record, self.posters)
        for slot in self._all_slots:
            for planned in self.plan.faults:
                if planned.slot == slot.name:
                    slot.on_barrier[str(planned.barrier), planned.subject] = maker.handler(planned)
            slot.settings = replace(slot.settings, armed=tuple(slot.on_barrier))

    def _slot(self, module: str, name: str, index: int, *, work: tuple[tuple[dict[str, Any], ...], ...] = ()) -> Slot:
        addresses = self.round.addresses
        settings = ServiceSettings(
            name=name,
            index=index,
            mode=self.round.mode,
            namespace=self.round.namespace,
            bootstrap_servers=addresses.bootstrap_servers,
            output_bootstrap_servers=addresses.proxied_bootstrap_servers,
            ledger_dsn=addresses.ledger_owner_dsn,
            abort_first=tuple(self.plan.aborted_first),
            savepoints=tuple(self.plan.savepoints),
            work=work,
        )
        folder = Path(addresses.folder) / "services"
        folder.mkdir(parents=True, exist_ok=True)
        return Slot(module, settings, folder / f"{self.round.namespace}.{name}.log")

    def _start(self, slots: Sequence[Slot]) -> None:
        for slot in slots:
            slot.start()
        for slot in slots:
            slot.wait_for("ready")
        self.progress(f"{len(slots)} services are at work, {self.round.mode}")

    def _open_holds(self, number: int) -> None:
        names, addresses = self.round.names, self.round.addresses
        if self.plan.open_payments:
            payment = self.plan.open_payments[number]
            self.holds.append(OpenProducerTransaction(addresses, names, payment, number))
            self.record.count(Fault.OPEN_TRANSACTION)
        self.holds.append(OpenDatabaseTransaction(addresses, names, self.plan.open_payouts[number], number))
        self.record.count(Fault.LONG_DATABASE_TRANSACTION)

    def _end_holds(self, *kinds: type[Hold]) -> None:
        for hold in [hold for hold in self.holds if isinstance(hold, kinds)]:
            hold.commit()
            self.holds.remove(hold)

    def _write(self, batch: int) -> None:
        for writer in self.writers:
            writer.tell(do="write", batch=batch)
        for writer in self.writers:
            writer.wait_for("written", batch=batch)
        written = (self.plan.before, self.plan.behind)[batch]
        self.record.count(Fault.SAVEPOINT_ROWS, len(written.late_payouts))
        count = len(written.payouts) + len(written.late_payouts)
        self.progress(f"written: {len(written.requests)} requests, {count} payouts")

    def _drain(self) -> None:
        """Let posters and relay handle all they can see: up to the LSO, and up to the ledger horizon."""
        self._wait_for_markers()
        self._wait_for_horizon()
        self._sync(self.posters + self.relays)

    def _sync(self, slots: Sequence[Slot]) -> None:
        numbers = [slot.ask_sync() for slot in slots]
        for slot, number in zip(slots, numbers, strict=True):
            slot.wait_for("synced", number=number)

    def _wait_for_markers(self) -> None:
        """Wait until only the holds hold a partition back."""
        held = {place for hold in self.holds if isinstance(hold, OpenProducerTransaction) for place in hold.partitions}
        self.log_ends.wait_until_decided([place for place in self.round.names.places if place not in held])

    def _wait_for_horizon(self) -> None:
        """Wait until only the holds hold the ledger's horizon back, and no transaction of another book."""
        if any(isinstance(hold, OpenDatabaseTransaction) for hold in self.holds):
            return
        dsn = self.round.addresses.ledger_owner_dsn
        with psycopg.connect(dsn, autocommit=True, application_name=self.round.names.group("drain")) as connection:
            end = next_xid(connection)
            wait_until(lambda: horizon_xid(connection) >= end, what="the ledger horizon")

    def _check_fired(self) -> None:
        """A fault that did not fire makes the round worthless as a test."""
        planned = Counter(str(fault.fault) for fault in self.plan.faults)
        missed = {fault: count for fault, count in planned.items() if self.record.fired[fault] < count}
        if missed:
            raise RuntimeError(f"planned faults did not all fire: {missed}")
        for slot in self._all_slots:
            if slot.failure is not None:
                raise slot.failure

    def _truth(self) -> Truth:
        anomalies = sorted(self.record.anomalies, key=lambda item: (item.contract, item.break_class, item.event_id))
        return Truth(
            mode=self.round.mode,
            seed=self.round.seed,
            namespace=self.round.namespace,
            faults_fired={str(fault): count for fault, count in sorted(self.record.fired.items())},
            anomalies=tuple(anomalies),
            totals=total(self.plan, anomalies, self.round.names),
        )


def _fields(payments: Sequence[Payment], **extra: object) -> tuple[dict[str, Any], ...]:
    return tuple(payment.to_fields() | extra for payment in payments)


def _payout_fields(batch: Batch) -> tuple[dict[str, Any], ...]:
    return _fields(batch.payouts, late=False) + _fields(batch.late_payouts, late=True)


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))
