"""What services write into an event of theirs."""

import json

from tests.simulator.world.truth import Money


def value_of(money: Money, *, match_key: str = "event_id") -> bytes:
    """The event's JSON, by the contract's default names but for the match key's, where it has another one."""
    return json.dumps(
        {
            match_key: money.match_key,
            "payment_id": money.transaction_key,
            "leg": money.leg,
            "amount_minor": money.amount_minor,
            "currency": money.currency,
            "occurred_at": "2026-03-01T00:00:00Z",
        }
    ).encode()
