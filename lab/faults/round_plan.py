"""What a round will do, decided before it begins: which payments, and which fault hits which one at which step.

A pure function of seed, namespace and mode. No payment is hit twice. The number of firings is the same for every seed
and mode; only the faults that need producer transactions are absent where there are none.
"""

import random
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from lab.services.delivery_mode import DeliveryMode
from lab.services.event import Event, Leg, Payment, partition_of
from lab.services.namespace import INVOICE_PARTITIONS, PAYMENT_PARTITIONS, PAYOUT_PARTITIONS
from lab.services.service_protocol import Barrier
from lab.truth.truth import Fault

PAYMENTS_MIN, PAYOUTS_MIN = 30, 20  # fewer leave no payment of its own for some fault
_LATE_PAYOUTS = 3
_BEHIND_PERCENT = 20  # of the traffic is written behind the held transactions
_CURRENCIES = ("EUR", "USD", "JPY")

RELAY_SLOT = "relay-0"


@dataclass(frozen=True, kw_only=True)
class PlannedFault:
    """One firing: when the service in `slot` reaches `barrier` with `subject`, `fault` happens to it."""

    fault: Fault
    slot: str
    barrier: Barrier
    subject: str  # a payment id; for the poster an event id
    event: Event  # what is at stake


@dataclass(frozen=True, kw_only=True)
class Batch:
    """What is written in one go. Late payouts are written under savepoints and commit after others."""

    requests: tuple[Payment, ...]
    payouts: tuple[Payment, ...]
    late_payouts: tuple[Payment, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Plan:
    """All of one round's traffic."""

    mode: DeliveryMode
    seed: int
    before: Batch  # while services are killed and revived
    behind: Batch  # while transactions are held open
    open_payments: tuple[Payment, ...]  # each written by a producer transaction that stays open (exactly_once)
    open_payouts: tuple[Payment, ...]  # each written by a database transaction that stays open
    faults: tuple[PlannedFault, ...]
    aborted_first: frozenset[str]  # payment ids whose first producer transaction is aborted and redone
    savepoints: frozenset[str]  # event ids posted under savepoints


def make_plan(
    *,
    mode: DeliveryMode,
    seed: int,
    namespace: str,
    payments: int,
    payouts: int,
    now_utc: datetime,
    faults: bool = True,
) -> Plan:
    """Decide a round. Raises ValueError where it is too small to give every fault payments of its own."""
    if faults and (payments < PAYMENTS_MIN or payouts < PAYOUTS_MIN):
        raise ValueError(f"expected at least {PAYMENTS_MIN} payments and {PAYOUTS_MIN} payouts with faults")
    dice = random.Random(f"{namespace}:{seed}")
    # Keys that fill every pair of a payments and an invoices partition alike, so that each worker gets its faults.
    requests = list(_draw(dice, now_utc, payments, _pair_of_partitions, PAYMENT_PARTITIONS * INVOICE_PARTITIONS))
    outbox = list(_draw(dice, now_utc, payouts, _payout_partition, PAYOUT_PARTITIONS))
    open_payments = tuple(_draw(dice, now_utc, 2, _pair_of_partitions, PAYMENT_PARTITIONS * INVOICE_PARTITIONS))
    open_payouts = tuple(_draw(dice, now_utc, 2, _payout_partition, PAYOUT_PARTITIONS))
    first_request, first_payout = (count * (100 - _BEHIND_PERCENT) // 100 for count in (payments, payouts))
    choice = _Choice(mode, dice, requests[:first_request], outbox[:first_payout])
    aborted_first, late_payouts, planned = choice.all_faults() if faults else (frozenset[str](), (), ())
    before = Batch(
        requests=tuple(requests[:first_request]),
        payouts=tuple(payout for payout in outbox[:first_payout] if payout not in late_payouts),
        late_payouts=late_payouts,
    )
    return Plan(
        mode=mode,
        seed=seed,
        before=before,
        behind=Batch(requests=tuple(requests[first_request:]), payouts=tuple(outbox[first_payout:])),
        open_payments=open_payments if mode is DeliveryMode.EXACTLY_ONCE else (),
        open_payouts=open_payouts,
        faults=planned,
        aborted_first=aborted_first if mode is DeliveryMode.EXACTLY_ONCE else frozenset(),
        savepoints=frozenset(fault.subject for fault in planned if fault.fault is Fault.SAVEPOINT_ROWS),
    )


class _Choice:
    """Hands out payments to faults, each payment once."""

    def __init__(
        self, mode: DeliveryMode, dice: random.Random, requests: list[Payment], payouts: list[Payment]
    ) -> None:
        self.mode = mode
        self.requests = dice.sample(requests, len(requests))
        self.payouts = dice.sample(payouts, len(payouts))

    def all_faults(self) -> tuple[frozenset[str], tuple[Payment, ...], tuple[PlannedFault, ...]]:
        """Draw the pickiest first, so that the smallest round has enough; in every mode alike, so that plans agree."""
        aborted_first = self._aborted_first()
        late_payouts = tuple(self.payouts.pop() for _ in range(_LATE_PAYOUTS))
        return aborted_first, late_payouts, self._planned()

    def _planned(self) -> tuple[PlannedFault, ...]:
        """Spread the firings over the workers."""
        return (
            self._poster(Fault.CONSUMER_CRASHED, 1, self._poster_crash_points()[1], Leg.INVOICE),
            self._savepoint_posting(1, Leg.INVOICE),
            self._billing(Fault.ACK_LOST, 0, Barrier.BEFORE_OUTPUT, Leg.PAYMENT),
            self._billing(Fault.ACK_LOST, 1, Barrier.BEFORE_OUTPUT, Leg.PAYMENT),
            self._billing(Fault.ACK_LOST, 2, Barrier.AFTER_FIRST_LEG, Leg.INVOICE),
            self._billing(Fault.CLIENT_KILLED, 1, Barrier.AFTER_FIRST_LEG, Leg.PAYMENT),
            self._billing(Fault.CLIENT_KILLED, 2, Barrier.AFTER_FIRST_LEG, Leg.PAYMENT),
            self._billing(Fault.ZOMBIE, 2, Barrier.AFTER_FIRST_LEG, Leg.PAYMENT),
            self._billing(Fault.ZOMBIE, 0, Barrier.AFTER_FIRST_LEG, Leg.PAYMENT),
            self._poster(Fault.CONSUMER_CRASHED, 0, self._poster_crash_points()[0], Leg.PAYMENT),
            self._savepoint_posting(0, Leg.PAYMENT),
            self._savepoint_posting(2, Leg.PAYMENT),
            self._relay(Fault.ACK_LOST, Barrier.BEFORE_OUTPUT),
            self._relay(Fault.CONSUMER_CRASHED, self._relay_crash_points()[0]),
            self._relay(Fault.CONSUMER_CRASHED, self._relay_crash_points()[1]),
        )

    def _aborted_first(self) -> frozenset[str]:
        """Choose payments so that every partition of payments, invoices and payouts gets an abort."""
        pairs = range(PAYMENT_PARTITIONS * INVOICE_PARTITIONS)
        requests = [self._take(self.requests, _pair_of_partitions, pair) for pair in pairs]
        payouts = [self._take(self.payouts, _payout_partition, number) for number in range(PAYOUT_PARTITIONS)]
        return frozenset(str(payment.payment_id) for payment in requests + payouts)

    def _billing(self, fault: Fault, worker: int, barrier: Barrier, leg: Leg) -> PlannedFault:
        payment = self._take(self.requests, _payments_partition, worker)
        return PlannedFault(
            fault=fault,
            slot=f"billing-{worker}",
            barrier=barrier,
            subject=str(payment.payment_id),
            event=payment.event(leg),
        )

    def _poster(self, fault: Fault, worker: int, barrier: Barrier, leg: Leg) -> PlannedFault:
        partition = _payments_partition if leg is Leg.PAYMENT else _invoices_partition
        event = self._take(self.requests, partition, worker).event(leg)
        return PlannedFault(
            fault=fault, slot=f"poster-{worker}", barrier=barrier, subject=str(event.event_id), event=event
        )

    def _savepoint_posting(self, worker: int, leg: Leg) -> PlannedFault:
        return self._poster(Fault.SAVEPOINT_ROWS, worker, Barrier.BEFORE_LEDGER_COMMIT, leg)

    def _relay(self, fault: Fault, barrier: Barrier) -> PlannedFault:
        payout = self.payouts.pop()
        return PlannedFault(
            fault=fault,
            slot=RELAY_SLOT,
            barrier=barrier,
            subject=str(payout.payment_id),
            event=payout.event(Leg.PAYOUT),
        )

    def _poster_crash_points(self) -> tuple[Barrier, Barrier]:
        """Between output and progress, in the mode's order; exactly once has no between, so before and after both."""
        return {
            DeliveryMode.AT_MOST_ONCE: (Barrier.BEFORE_OUTPUT, Barrier.BEFORE_OUTPUT),
            DeliveryMode.AT_LEAST_ONCE: (Barrier.AFTER_OUTPUT, Barrier.AFTER_OUTPUT),
            DeliveryMode.EXACTLY_ONCE: (Barrier.BEFORE_LEDGER_COMMIT, Barrier.AFTER_PROGRESS),
        }[self.mode]

    def _relay_crash_points(self) -> tuple[Barrier, Barrier]:
        return {
            DeliveryMode.AT_MOST_ONCE: (Barrier.BEFORE_OUTPUT, Barrier.BEFORE_OUTPUT),
            DeliveryMode.AT_LEAST_ONCE: (Barrier.AFTER_OUTPUT, Barrier.AFTER_OUTPUT),
            DeliveryMode.EXACTLY_ONCE: (Barrier.AFTER_OUTPUT, Barrier.AFTER_PROGRESS),
        }[self.mode]

    def _take(self, pool: list[Payment], place: Callable[[Payment], int], wanted: int) -> Payment:
        payment = next(candidate for candidate in pool if place(candidate) == wanted)
        pool.remove(payment)
        return payment


def _draw(
    dice: random.Random, now_utc: datetime, count: int, place: Callable[[Payment], int], places: int
) -> Iterator[Payment]:
    """Draw payments whose keys fall on each place in turn."""
    for number in range(count):
        payment = _payment(dice, now_utc)
        while place(payment) != number % places:
            payment = _payment(dice, now_utc)
        yield payment


def _payment(dice: random.Random, now_utc: datetime) -> Payment:
    return Payment(
        payment_id=uuid.UUID(int=dice.getrandbits(128), version=4),
        amount_minor=dice.randint(100, 500_000),
        currency=dice.choice(_CURRENCIES),
        occurred_at=now_utc - timedelta(microseconds=dice.randrange(5_000_000)),
    )


def _payments_partition(payment: Payment) -> int:
    return partition_of(payment.event(Leg.PAYMENT).message_key, PAYMENT_PARTITIONS)


def _invoices_partition(payment: Payment) -> int:
    return partition_of(payment.event(Leg.INVOICE).message_key, INVOICE_PARTITIONS)


def _payout_partition(payment: Payment) -> int:
    return partition_of(payment.event(Leg.PAYOUT).message_key, PAYOUT_PARTITIONS)


def _pair_of_partitions(payment: Payment) -> int:
    return _payments_partition(payment) * INVOICE_PARTITIONS + _invoices_partition(payment)
