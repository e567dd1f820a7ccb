"""Partners that come late: after their window was cut, or after it was judged.

Other than the faults of event_faults.py they say which items must be cleared, each once. What comes later may find a
ledger that was started again, so it opens a desk of its own.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from lab.faults.event_faults import Planted, both_legs, broken
from lab.services.workload import Workload
from lab.truth.score import Finding, FindingKind


@dataclass(frozen=True)
class Straddle:
    """A pair that a cut goes through: finish must be done before the cut is judged, and gives the keys to be cleared.

    The cut leaves them open, and the next one clears them.
    """

    finish: Callable[[], tuple[str, ...]]


def cleared(contract: str, *match_keys: str) -> tuple[Finding, ...]:
    return tuple(
        Finding(contract=contract, kind=FindingKind.CLEARED, name="cleared", subject=match_key)
        for match_key in match_keys
    )


def payout_straddles(desk: Workload) -> Straddle:
    """The row before the cut, its event after it."""
    row = desk.add_payout(desk.payment())

    def finish() -> tuple[str, ...]:
        desk.publish(row.event, source=row.source)
        return (str(row.event.event_id),)

    return Straddle(finish)


def payment_straddles(desk: Workload) -> Straddle:
    """Both events before the cut, their postings after it."""
    legs = both_legs(desk.payment())
    desk.publish(*legs)

    def finish() -> tuple[str, ...]:
        with _again(desk) as later:
            later.post(*legs)
        return tuple(str(event.event_id) for event in legs)

    return Straddle(finish)


def leg_straddles(desk: Workload) -> Straddle:
    """One leg on both sides before the cut, the other one after it."""
    payment, invoice = both_legs(desk.payment())
    desk.publish(payment)
    desk.post(payment)

    def finish() -> tuple[str, ...]:
        with _again(desk) as later:
            later.publish(invoice)
            later.post(invoice)
        return (str(payment.payment.payment_id),)

    return Straddle(finish)


def posting_straddles(desk: Workload) -> Straddle:
    """The postings before the cut: their events come after it, as if the poster's clock were behind."""
    legs = both_legs(desk.payment())
    desk.post(*legs)

    def finish() -> tuple[str, ...]:
        desk.publish(*legs)
        return tuple(str(event.event_id) for event in legs)

    return Straddle(finish)


def payout_late(desk: Workload) -> Planted:
    """The relay comes after the row's window was judged."""
    row = desk.add_payout(desk.payment())

    def later() -> tuple[Finding, ...]:
        desk.publish(row.event, source=row.source)
        return cleared(desk.contract, str(row.event.event_id))

    return Planted(broken(desk, "missing_in_topic_never_produced", row.event), later)


def posted_late(desk: Workload) -> Planted:
    """The poster comes after the events' window was judged."""
    legs = both_legs(desk.payment())
    desk.publish(*legs)

    def later() -> tuple[Finding, ...]:
        with _again(desk) as again:
            again.post(*legs)
        return cleared(desk.contract, *(str(event.event_id) for event in legs))

    return Planted(broken(desk, "missing_in_ledger", *legs), later)


def _again(desk: Workload) -> AbstractContextManager[Workload]:
    return Workload.open(desk.addresses, desk.contract, desk.service, f"again-{desk.dice.getrandbits(64):x}")
