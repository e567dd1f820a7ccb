"""A contract's names of an event's keys, field by field."""

from tests.unit.contract.documents import ORDERED, FieldCases


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
        {"event": {"origin_header": "service", "known_origins": ["relay", "backfill"]}},
        {"event": {"amount_unit": "major"}, "ledger__amount_unit": "minor", "currency_case": "ignored"},
        {"event": ORDERED},
        {"event": {"ordering_key": "payment_id", "sequence": "number"}},
    )
