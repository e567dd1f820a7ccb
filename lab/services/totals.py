"""Adding up what a round wrote: what was asked for, plus copies, minus what was lost."""

from collections import Counter
from collections.abc import Sequence

from lab.faults.round_plan import Plan
from lab.services.event import Leg, Payment
from lab.services.namespace import Namespace
from lab.truth.truth import Anomaly, Totals


def total(plan: Plan, anomalies: Sequence[Anomaly], names: Namespace) -> Totals:
    """Add up what was written: what was asked for, plus copies, minus what was lost."""
    requests = plan.before.requests + plan.behind.requests
    payments = requests + plan.open_payments
    payouts = plan.before.payouts + plan.before.late_payouts + plan.behind.payouts + plan.open_payouts
    events = Counter({Leg.PAYMENT: len(payments), Leg.INVOICE: len(payments), Leg.PAYOUT: len(payouts)})
    posted = 0
    for item in anomalies:
        if item.break_class.startswith("duplicate_in_topic"):
            events[Leg(item.leg)] += item.copies
        elif item.break_class.startswith("missing_in_topic") or item.break_class == "torn_transaction":
            events[Leg(item.leg)] -= 1
        elif item.break_class == "duplicate_in_ledger":
            posted += item.copies
        elif item.break_class == "missing_in_ledger":
            posted -= 1
    return Totals(
        requests_sent=len(requests),
        events_by_topic={names.topic(leg): count for leg, count in events.items()},
        postings=2 * (events[Leg.PAYMENT] + events[Leg.INVOICE] + posted),
        payout_rows=len(payouts),
        requested_minor=_money(payments),
        paid_out_minor=_money(payouts),
    )


def _money(payments: Sequence[Payment]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for payment in payments:
        total[payment.currency] += payment.amount_minor
    return dict(sorted(total.items()))
