"""A contract's names of an event's keys, field by field."""

from tests.unit.contract.documents import INPUTS, ORDERED, TO_TOPIC, FieldCases, shown


class TestFields(FieldCases):
    refused = (
        ({"event__match_key": "event id"}, 'event.match_key: got "event id"; expected a key of the JSON payload'),
        (
            {"event": {"origin_header": "service"}},
            'event: got {"origin_header": "service"}; expected origin_header and known_origins together, or neither',
        ),
        (
            {"event": {"known_origins": ["relay"]}},
            'event: got {"known_origins": ["relay"]}; expected origin_header and known_origins together, or neither',
        ),
        (
            {"event": {"origin_header": "", "known_origins": ["relay"]}},
            'event.origin_header: got ""; expected some te',
        ),
        (
            {"event": {"match_key": "$.data.id"}},
            'event.match_key: got "$.data.id"; expected a path without $ before it, such as data.order.id',
        ),
        (
            {"event": {"match_key": "data", "currency": "data.currency"}},
            'event: got {"match_key": "data", "currency": "data.currency"}; expected one value at each path: '
            "data.currency lies inside data, which is a field itself",
        ),
        (
            {**TO_TOPIC, "ledger": {**INPUTS, "event": {"match_key": "amount_minor.id"}}},
            f"ledger: got {shown({**INPUTS, 'event': {'match_key': 'amount_minor.id'}})}; expected one value at each "
            "path: amount_minor.id lies inside amount_minor, which is a field itself",
        ),
        # how money is written, order, time, isolation
        ({"event__amount_unit": "cents"}, "event.amount_unit: got \"cents\"; expected 'minor' or 'major'"),
        (
            {"event": {"ordering_key": "account"}},
            'event: got {"ordering_key": "account"}; expected ordering_key and sequence together, or neither',
        ),
        (
            {"event": {"sequence": "number"}},
            'event: got {"sequence": "number"}; expected ordering_key and sequence together, or neither',
        ),
        (
            {"event": {"ordering_key": "account", "sequence": "amount_minor"}},
            'event: got {"ordering_key": "account", "sequence": "amount_minor"}; '
            "expected a key of its own for sequence: 'amount_minor' is named twice",
        ),
    )

    read = (
        {"event": {"match_key": "eventId"}},
        {
            "event": {
                "match_key": "data.order-id",
                "currency": 'data."order.currency"',
                "transaction_key": "data.orderId",
            }
        },
        {**TO_TOPIC, "ledger": {**INPUTS, "event": {"match_key": "data.id", "amount_minor": "data.amount"}}},
        {**TO_TOPIC, "legs": {"out": "o"}, "ledger": {**INPUTS, "event": {"match_key": "leg.id"}}},
        {"event": {"origin_header": "service", "known_origins": ["relay", "backfill"]}},
        {"event": {"amount_unit": "major"}, "ledger__amount_unit": "minor", "currency_case": "ignored"},
        {"event": ORDERED},
        {"event": {"ordering_key": "payment_id", "sequence": "number"}},
    )
