"""Breaks planted one by one, each for real, for tests that need a single known disagreement.

For an idle namespace: prepared, drained, no services at work. Each function gives the truth about what it planted.
The progress of poster and relay is moved past the plant, as the faulty service would have moved it, so that traffic
that runs later neither heals a plant nor doubles it.
"""

import random
from collections.abc import Callable

from lab.faults.break_writer import Planter
from lab.servers.stack import LabAddresses
from lab.services.event import Leg
from lab.truth.truth import Anomaly


def plant_never_produced(addresses: LabAddresses, namespace: str, *, seed: int = 1) -> tuple[Anomaly, ...]:
    """A payout whose relay saved its progress and never wrote the event."""
    with Planter.open(addresses, namespace, _dice(namespace, "never_produced", seed)) as planter:
        row = planter.add_payout(planter.payment)
        planter.move_relay_past(row)
        return planter.truth("missing_in_topic_never_produced", row.event)


def plant_aborted_only(addresses: LabAddresses, namespace: str, *, seed: int = 1) -> tuple[Anomaly, ...]:
    """A payout whose event stands only in an aborted producer transaction: written, aborted, never redone."""
    with Planter.open(addresses, namespace, _dice(namespace, "aborted_only", seed)) as planter:
        row = planter.add_payout(planter.payment)
        planter.publish_in_transaction([row.event], source=row.source, commit=False)
        planter.move_relay_past(row)
        return planter.truth("missing_in_topic_aborted_only", row.event)


def plant_new_session_duplicate(addresses: LabAddresses, namespace: str, *, seed: int = 1) -> tuple[Anomaly, ...]:
    """A payout sent again by hand: two idempotent producers, two producer ids, and the second names no source."""
    with Planter.open(addresses, namespace, _dice(namespace, "new_session", seed)) as planter:
        row = planter.add_payout(planter.payment)
        for headers in ({"source": row.source}, {}):
            planter.publish_alone(row.event, headers)
        planter.move_relay_past(row)
        return planter.truth("duplicate_in_topic_new_session", row.event)


def plant_phantom_in_topic(addresses: LabAddresses, namespace: str, *, seed: int = 1) -> tuple[Anomaly, ...]:
    """A dual write: the event is committed, then its ledger transaction is rolled back."""
    with Planter.open(addresses, namespace, _dice(namespace, "phantom_in_topic", seed)) as planter:
        with planter.connection.transaction(force_rollback=True):
            row = planter.add_payout(planter.payment)
            planter.publish_in_transaction([row.event], source=row.source, commit=True)
        return planter.truth("phantom_in_topic", row.event)


def plant_phantom_in_ledger(addresses: LabAddresses, namespace: str, *, seed: int = 1) -> tuple[Anomaly, ...]:
    """A payment posted by hand, without an event."""
    with Planter.open(addresses, namespace, _dice(namespace, "phantom_in_ledger", seed)) as planter:
        event = planter.payment.event(Leg.PAYMENT)
        planter.post(event)
        return planter.truth("phantom_in_ledger", event)


def plant_amount_mismatch(addresses: LabAddresses, namespace: str, *, seed: int = 1) -> tuple[Anomaly, ...]:
    """A poster that drops the last digit of a payment's amount."""
    with Planter.open(addresses, namespace, _dice(namespace, "amount", seed)) as planter:
        wrong = planter.payment.with_money(amount_minor=planter.payment.amount_minor // 10)
        return planter.plant_wrong_posting("amount_mismatch", wrong)


def plant_currency_mismatch(addresses: LabAddresses, namespace: str, *, seed: int = 1) -> tuple[Anomaly, ...]:
    """A poster that books every payment in Swiss francs."""
    with Planter.open(addresses, namespace, _dice(namespace, "currency", seed)) as planter:
        return planter.plant_wrong_posting("currency_mismatch", planter.payment.with_money(currency="CHF"))


PLANTS: tuple[Callable[..., tuple[Anomaly, ...]], ...] = (
    plant_never_produced,
    plant_aborted_only,
    plant_new_session_duplicate,
    plant_phantom_in_topic,
    plant_phantom_in_ledger,
    plant_amount_mismatch,
    plant_currency_mismatch,
)


def _dice(namespace: str, plant: str, seed: int) -> random.Random:
    return random.Random(f"{namespace}:{plant}:{seed}")
