"""A contract's names of an event's keys, field by field."""

import pickle

from tallystick.contract.contract import Contract
from tallystick.contract.event import EventFields
from tests.unit.contract.documents import GOOD, INPUTS, ORDERED, REPAIR, TO_TOPIC, FieldCases, changed, shown


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
        # formats
        ({"event__format": "xml"}, "event.format: got \"xml\"; expected 'json', 'json_schema', 'avro', 'protobuf' or"),
        (
            {"event": {"format": "avro"}},
            'event: got {"format": "avro"}; expected kafka.schema_registry with format avro: it has the schemas',
        ),
        (
            {"kafka__schema_registry": "schemas"},
            f"ledger: got {shown(GOOD['ledger'])}; got kafka.schema_registry with event.format json; expected none",
        ),
        (
            {**TO_TOPIC, "ledger": {**INPUTS, "event": {"format": "avro"}}},
            f"ledger: got {shown({**INPUTS, 'event': {'format': 'avro'}})}; expected kafka.schema_registry with",
        ),
        (
            {"event": {"format": "json_schema"}, "compensation": REPAIR},
            f"compensation: got {shown(REPAIR)}; expected none with event.format json_schema: a repair publishes JSON",
        ),
        # constants
        ({"event__currency": {"constant": "EURO"}}, 'event.currency.constant: got "EURO"; expected an ISO 4217 code'),
        (
            {"event__currency": {"constant": "EUR", "const": "EUR"}},
            "event.currency.const: unknown key; expected 'constant'?",
        ),
        ({"event__currency": {}}, "event.currency.constant: missing; expected a value: its ISO 4217 code"),
        ({"event__currency": 978}, "event.currency: got 978; expected text; put it in quotes"),
        (
            {"event__match_key": {"constant": "one"}},
            'event.match_key: got {"constant": "one"}; expected a name, or a mapping with one of the keys',
        ),
        (
            {"event__amount_minor": {"constant": 1}},
            "event.amount_minor.constant: got 1; expected 0: of money",
        ),
        (
            {"event__amount_minor": {"constant": 0}},
            "; expected amount_minor {constant: 0} on both sides, or on neither",
        ),
        (
            {"event__currency": {"constant": "EUR"}, "ledger__columns__currency": {"constant": "USD"}},
            "; expected one currency on both sides: got {constant: EUR} and {constant: USD}",
        ),
        (
            {"event": {"amount_unit": "major", "currency": {"constant": "XXX"}}},
            "; expected amount_unit minor with the currency XXX: it has no minor units (ISO 4217)",
        ),
        (
            {**TO_TOPIC, "ledger": {**INPUTS, "event": {"leg": {"constant": "payment"}}}},
            "; got leg {constant: payment} with legs invoice, payment",
        ),
        (
            {"event__currency": {"constant": "EUR"}, "compensation": REPAIR},
            f"compensation: got {shown(REPAIR)}; expected none where event and ledger.columns do not state the same",
        ),
        # places outside of the value
        ({"event__match_key": {"header": "ce id"}}, 'event.match_key.header: got "ce id"; expected a header\'s name'),
        ({"event__match_key": {"record": "value"}}, "event.match_key.record: got \"value\"; expected 'key'"),
        (
            {"event__currency": {"record": "key"}},
            'event.currency: got {"record": "key"}; expected a name, or a mapping with one of the keys const',
        ),
        (
            {"event__sequence": {"header": "n"}, "event__ordering_key": "a"},
            'event.sequence: got {"header": "n"}; expected',
        ),
        (
            {"event": {"match_key": {"header": "id"}}, "compensation": REPAIR},
            f"compensation: got {shown(REPAIR)}; expected none where a field is a header, the record's key or no money",
        ),
        (
            {
                "event__amount_minor": {"constant": 0},
                "ledger__columns__amount_minor": {"constant": 0},
                "compensation": REPAIR,
            },
            f"compensation: got {shown(REPAIR)}; expected none where a field is a header, the record's key or no money",
        ),
        (
            {"event": {"leg": {"constant": "payment"}}},
            'event: got {"leg": {"constant": "payment"}}; got leg {constant: payment} with legs invoice, payment; '
            "expected the name of a field that tells them apart, or a constant that is the only leg",
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
        {"event": {"match_key": {"header": "ce_id"}, "transaction_key": {"record": "key"}, "leg": {"header": "type"}}},
        {"event": {"amount_minor": {"constant": 0}}, "ledger__columns__amount_minor": {"constant": 0}},
        {**TO_TOPIC, "legs": {"out": "o"}, "ledger": {**INPUTS, "event": {"match_key": {"record": "key"}}}},
        {"legs": {"payout": "p"}, "event": {"leg": {"constant": "payout"}, "currency": {"constant": "JPY"}}},
        {**TO_TOPIC, "ledger": {**INPUTS, "event": {"currency": {"constant": "EUR"}}}},
        {"event": {"format": "json_schema"}},
        {"event": {"format": "debezium"}},
        {"event": {"format": "debezium"}, "kafka__schema_registry": "schemas"},
        {"event": {"format": "avro"}, "kafka__schema_registry": "schemas"},
        {**TO_TOPIC, "kafka__schema_registry": "schemas", "ledger": {**INPUTS, "event": {"format": "avro"}}},
        {"event": {"format": "json"}, "compensation": REPAIR},
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


def test_fields_know_the_registry_of_their_contract_and_only_where_they_ask_it() -> None:
    avro = Contract.model_validate(changed(event__format="avro", kafka__schema_registry="schemas"))
    assert avro.event.registry == avro.event_on("billing.payments").registry == "schemas"
    assert pickle.loads(pickle.dumps(avro.event)) == avro.event
    assert avro.event != EventFields(format="avro")
    inputs = {**INPUTS, "event": {"format": "avro"}}
    mixed = Contract.model_validate(changed(**TO_TOPIC | {"ledger": inputs, "kafka__schema_registry": "schemas"}))
    assert (mixed.event.registry, mixed.input_event.registry) == (None, "schemas")
    plain = Contract.model_validate(changed())
    assert (plain.event.registry, plain.input_event.registry) == (None, None)


def test_inputs_are_in_the_currency_of_the_outputs_unless_they_say_another() -> None:
    of_one = changed(**TO_TOPIC, event__currency={"constant": "EUR"})
    assert Contract.model_validate(of_one).input_event.constants == {"currency": "EUR"}
    of_two = {**of_one, "ledger": {**INPUTS, "event": {"currency": {"constant": "JPY"}}}}
    of_two["event"] = {"currency": "code"}
    assert Contract.model_validate(of_two).input_event.constants == {"currency": "JPY"}
    by_field = {**of_one, "ledger": {**INPUTS, "event": {"currency": "ccy"}}}
    assert Contract.model_validate(by_field).input_event.constants == {}


def test_a_format_is_a_part_of_the_meaning_and_a_plain_contract_keeps_its_own() -> None:
    plain = Contract.model_validate(changed())
    assert plain.fingerprint == Contract.model_validate(changed(event__format="json")).fingerprint
    assert plain.fingerprint != Contract.model_validate(changed(event__format="debezium")).fingerprint
