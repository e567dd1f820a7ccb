"""The formats in which the lab writes events, against Tallystick's own ways of reading them."""

import json
import os
import uuid
from datetime import UTC, datetime

import pytest

from lab.rounds.mixed_round import draw_faults
from lab.rounds.round_contracts import payments_contract
from lab.services.event import Event, Leg, Payment
from lab.services.event_format import AVRO_SCHEMA, PROTOBUF_SCHEMA, VARIABLE, EventFormat, WrittenAs, writing
from tallystick.contract.contract import Contract
from tallystick.formats.avro import AvroOpener
from tallystick.formats.debezium import DebeziumOpener
from tallystick.formats.opener import Opener
from tallystick.formats.prefix import PrefixedJsonOpener
from tallystick.formats.protobuf import ProtobufOpener
from tallystick.formats.schema_cache import SchemaCache, SchemaText

PATHS = ["amount_minor", "currency", "event_id", "leg", "payment_id", "sequence"]
ORDERED = Payment(
    payment_id=uuid.UUID(int=7),
    amount_minor=-1250,
    currency="EUR",
    occurred_at=datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC),
    account="account-1",
    sequence=3,
)
ALONE = Payment(payment_id=uuid.UUID(int=8), amount_minor=0, currency="", occurred_at=ORDERED.occurred_at)
OTHERS = [one for one in EventFormat if one is not EventFormat.JSON]


@pytest.mark.parametrize("payment", [ORDERED, ALONE])
@pytest.mark.parametrize("event_format", EventFormat)
def test_a_service_reads_what_another_wrote_and_tallystick_reads_the_same(
    event_format: EventFormat, payment: Payment
) -> None:
    event = payment.event(Leg.INVOICE)
    with writing(WrittenAs(event_format, 7)):
        value = event.to_value()
        assert Event.from_value(value) == event
    if event_format is EventFormat.ENVELOPE:
        said = json.dumps(json.loads(value)["data"]["order"]).encode()
    else:
        said = value if event_format is EventFormat.JSON else opener_of(event_format).to_json(value)
    found = {name: field for name, field in json.loads(said).items() if field is not None}
    assert {name: found.get(name) for name in PATHS} == {name: event.to_fields().get(name) for name in PATHS}


@pytest.mark.parametrize("event_format", OTHERS)
def test_the_format_is_of_a_block_and_of_what_it_starts(event_format: EventFormat) -> None:
    before = os.environ.get(VARIABLE)
    with writing(WrittenAs(event_format, 7)):
        assert WrittenAs.parse(os.environ[VARIABLE]) == WrittenAs(event_format, 7)
    assert os.environ.get(VARIABLE) == before


@pytest.mark.parametrize("event_format", [one for one in OTHERS if one is not EventFormat.ENVELOPE])
def test_a_contract_says_the_format_and_no_repair_is_drawn_where_none_is_made(event_format: EventFormat) -> None:
    in_json = payments_contract("book", "book", event={"origin_header": "service"})
    drawn = draw_faults(1)
    with writing(WrittenAs(event_format, 7)):
        contract = payments_contract("book", "book", event={"origin_header": "service"})
        left = draw_faults(1)
    assert contract["event"] == {"origin_header": "service", "format": str(event_format)}
    assert ("schema_registry" in contract["kafka"]) == (event_format in (EventFormat.AVRO, EventFormat.PROTOBUF))
    assert "format" not in in_json["event"]
    assert left.draws == drawn.draws
    assert [fault for fault in drawn.log_faults if "compensation" not in fault.fields] == list(left.log_faults)
    assert len(left.log_faults) < len(drawn.log_faults)


def test_an_envelope_s_contract_names_places_in_value_header_and_record_s_key() -> None:
    event = ALONE.event(Leg.INVOICE)
    assert event.headers == {}
    with writing(WrittenAs(EventFormat.ENVELOPE)):
        contract = payments_contract("book", "book", event={"ordering_key": "account", "sequence": "sequence"})
        assert event.headers == {"ce_type": "invoice"}
    assert contract["event"] == {
        "match_key": "data.order.event_id",
        "transaction_key": {"record": "key"},
        "leg": {"header": "ce_type"},
        "amount_minor": "data.order.amount_minor",
        "currency": "data.order.currency",
        "ordering_key": "data.order.account",
        "sequence": "data.order.sequence",
    }
    assert Contract.model_validate(contract)


def opener_of(event_format: EventFormat) -> Opener:
    match event_format:
        case EventFormat.AVRO:
            return AvroOpener(knowing(SchemaText(7, "AVRO", json.dumps(AVRO_SCHEMA))), PATHS)
        case EventFormat.PROTOBUF:
            return ProtobufOpener(knowing(SchemaText(7, "PROTOBUF", PROTOBUF_SCHEMA)), PATHS)
        case EventFormat.JSON_SCHEMA:
            return PrefixedJsonOpener()
        case _:
            return DebeziumOpener()


def knowing(schema: SchemaText) -> SchemaCache:
    return SchemaCache(lambda _: schema)
