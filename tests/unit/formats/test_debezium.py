"""Envelopes of change events: the row that was inserted is the event."""

import json
from typing import Any

import pytest

from tallystick.formats.debezium import AvroDebeziumOpener, DebeziumOpener
from tallystick.formats.prefix import Undecodable
from tests.avro_values import FLAT, WHOLE, record_of, schemas_with, written

ROW = {"event_id": "ev-1", "amount_minor": 5}
ENVELOPE: dict[str, Any] = {"before": None, "after": ROW, "op": "c", "source": {"db": "shop"}, "ts_ms": 1}


def opened(document: Any) -> Any:
    return json.loads(DebeziumOpener().to_json(json.dumps(document).encode()))


@pytest.mark.parametrize("op", ["c", "r"])
def test_an_inserted_row_is_read_with_and_without_the_schema_around_it(op: str) -> None:
    envelope = {**ENVELOPE, "op": op}
    assert opened(envelope) == opened({"schema": {"type": "struct"}, "payload": envelope}) == ROW
    assert DebeziumOpener().why_unusable(b"", "event_id") == ""


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ({**ENVELOPE, "op": "u", "before": ROW}, "its op is an update; expected c or r"),
        ({**ENVELOPE, "op": "d", "before": ROW, "after": None}, "its op is a deletion"),
        ({"schema": {}, "payload": {**ENVELOPE, "op": "d"}}, "its op is a deletion"),
        ({**ENVELOPE, "op": "x"}, "none of Debezium's"),
        ({**ENVELOPE, "op": 1}, "no text"),
        (ROW, "op is missing"),
        ({"schema": {}, "payload": None}, "op is missing"),
        ({"payload": "text"}, "not one JSON object with a Debezium envelope"),
        ([], "not one JSON object"),
    ],
)
def test_any_other_change_is_no_event_and_says_which_it_is(document: Any, reason: str) -> None:
    with pytest.raises(Undecodable, match=reason):
        opened(document)


def test_an_inserted_row_without_a_row_is_null_for_the_rule() -> None:
    assert opened({"op": "c"}) is None


def envelope_schema() -> dict[str, Any]:
    row = record_of(*FLAT, name="Value")
    return record_of(
        {"name": "before", "type": ["null", row]}, {"name": "after", "type": ["null", "shop.Value"]},
        {"name": "op", "type": "string"}, name="Envelope",
    )  # fmt: skip


def test_envelopes_of_avro_are_opened_by_the_same_rule() -> None:
    opener = AvroDebeziumOpener(schemas_with(s7=envelope_schema()), ["event_id", "amount_minor", "absent"])
    value = written(envelope_schema(), {"before": None, "after": WHOLE, "op": "c"})
    assert json.loads(opener.to_json(value)) == {"event_id": "ev-1", "amount_minor": 1000}
    assert opener.why_unusable(value, "event_id") == ""
    assert opener.why_unusable(value, "absent") == "its schema 7 has no field after.absent"
    with pytest.raises(Undecodable, match="its op is an update"):
        opener.to_json(written(envelope_schema(), {"before": WHOLE, "after": WHOLE, "op": "u"}))
