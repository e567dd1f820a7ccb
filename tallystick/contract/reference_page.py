"""Writes docs/contract.md from the contract's own fields, so that the page cannot say what the code does not.

python -m tallystick.contract.reference_page > docs/contract.md
"""

import json
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import core_schema

from tallystick.contract.contract import Contract
from tallystick.contract.error_lines import docstrings_by_key
from tallystick.contract.field_types import PATTERNS
from tallystick.text.finding_guide import BREAK_TEXTS

EXAMPLE = """\
contract: billing_payouts
version: 1
owner: payouts
direction: ledger_to_topic
schedule: "0 * * * *"
start_date: 2026-01-01T00:00:00Z
kafka:
  connection: kafka_billing
legs:
  payout: billing.payouts
ledger:
  connection: ledger_billing
  table: billing.payout
"""
"""The shortest contract there can be."""

_INTRODUCTION = f"""\
# The contract

A reconciliation is one YAML file. This is the shortest there can be:

```yaml
{EXAMPLE}```

A file is checked before anything runs. All faults of its fields are printed at once; a section whose fields do not
fit together prints one fault at a time:

```
$ tallystick contract check dags/contracts
dags/contracts/billing_payouts.yaml: ledger.tabel: unknown key; expected 'table'?
dags/contracts/billing_payouts.yaml: ledger.table: missing; expected a value: schema.table
```

Duplicate and unknown keys are rejected. Money is whole minor units: 1000 is 10.00 EUR, and
1000 JPY. Times carry their zone. Connections are ids; addresses and passwords never stand in a contract: Airflow reads
them from its connections, the command line from the variable `TALLYSTICK_CONN_<ID>`.

A field of an event is a key of its JSON payload, or a path of keys with dots between them. A key with other characters
than letters, digits, `_` and `-` stands in double quotes. Each line below reads a field of
`{{"data": {{"orderId": 7, "order.total": 1000, "unit-price": 250}}}}`:

```yaml
event:
  match_key: data.orderId
  amount_minor: data."order.total"
  sequence: data.unit-price
```

Keys, legs and currencies may stand outside of the value: in a header, or, but for the currency, as the record's key.
This is how CloudEvents in binary mode and Debezium's outbox are read:

```yaml
event:
  match_key: {{header: ce_id}}
  transaction_key: {{record: key}}
```

Event and row are compared by their money, and by more where the contract says so. Each column has a rule: a kind, in
which both sides are written before they are compared, or how far they may lie apart.

```yaml
compare:
  status: exact                 # the same text, character by character: no case, no spaces, no accents are passed over
  batch: {{exact: number}}        # 1.50 is 1.5
  fee: {{abs: 1}}                 # numbers that differ by 1 at most
  rate: {{rel: 0.001}}            # by a thousandth of the larger one at most
  booked_at: {{within: 2s}}       # instants; without a zone a time is in UTC, a date its midnight
  created: {{within: 1m, event: {{record: timestamp}}, column: created_at}}  # or {{record: key}}, or {{header: name}}
  iban: {{exact: text, event: data.account.iban, column: '"IBAN"', shown: false}}
  note: ignore
```

A missing key, a NULL of JSON and one of SQL are equal to each other and to nothing else; an empty text is a value. A
value that is not of the rule's kind is compared as text. `true` and `false` are compared as those words, an object or
a list as its JSON, and a text of more than 500 characters by its SHA-256. A pair that differs is a `column_mismatch`,
which names each column with its rule and both values. A pair whose money differs is reported for its money alone.
Numbers and times are compared one by one only where the texts of both sides differ.

Several events may add up to one row, as the items of an invoice do, or several rows to one event, as the lines of a
settlement: they share their match key, whatever else they say.

```yaml
match:
  many_to_one: events           # or rows
```

Parts and whole agree if all have one currency and the sum is exact. They may come in any order, in one window or in
many. A part without its whole waits until its own deadline. A whole whose parts do not add up waits until the
deadline of the whole; then it is one `group_sum_mismatch`, with the amount that is missing or too much. A later part
that makes the sum exact clears it. A part that comes after the sum was met is a duplicate. Two equal parts count
twice, so a part that was written twice makes the sum too large. Groups need a contract with one leg. They are not
repaired, and only their money is compared.

A value that all events or all rows share may be stated once, in the contract. With one leg, `transaction_key` may be
the match key. If events carry no money, state 0 on both sides and an ISO 4217 code such as XXX: then reports name
what is lost, doubled, torn or invented, without amounts.

```yaml
event:
  transaction_key: event_id
  leg: {{constant: payout}}       # the contract's only leg
  currency: {{constant: EUR}}
ledger:
  columns:
    currency: {{constant: EUR}}
```

A path leads through objects to one value; it cannot lead into a list. YAML removes quotes around a whole value, so a
top-level key with a dot is written `'"order.id"'`.

Values need not be JSON. `event.format` says how they are written; paths and all other rules stay the same:

- `json`: the value as it stands.
- `json_schema`: JSON behind a zero byte and a schema's id. The schema itself is not asked for.
- `avro`: the record behind a schema's id, decoded by the schema that wrote it. A string or an enum is a text. An int or
  a long is the number that stands there, also with a logical type. A decimal is a number with all its digits, a uuid of
  16 bytes its text. For a union, the field is the branch that was written.
- `protobuf`: the message behind a schema's id and its place in the schema. A string, or an enum's name, is a text, and
  each integer a number. A field that was not set is missing where it is optional, in a oneof or a message; else it is
  its default. Of `google.type.Money`, or a message with its three fields, `price.amount` is the number that units and
  nanos make.
- `debezium`: `after` of a change event with op c or r, with or without the schema around it; in Avro where
  `kafka.schema_registry` is named.

Floats, doubles, bytes, lists and whole records are never a field: a contract that names one reads no record, and says
why. A column of `compare` may be a float or a double, and a moment or a date by its logical type or as Protobuf's
Timestamp; not so bytes, lists and records. A decimal with a scale is money of `event.amount_unit: major`. An update or
a deletion that Debezium tells of is unreadable, and so is a tombstone. Repairs are for `json` only. Avro and Protobuf
name a schema registry:

```yaml
kafka:
  connection: shop_kafka
  schema_registry: shop_schemas   # docs/kafka-connections.md
event:
  format: avro
  match_key: data.orderId
  amount_minor: data.total        # bytes with the logical type decimal, scale 2
  amount_unit: major
```

This page is written by `python -m tallystick.contract.reference_page`; a test holds it against the code.
"""


_IN_PLACE_OF_A_NAME = (
    ("A rule of `compare`", "CompareRule"),
    ("`leg` as a constant", "LegConstant"),
    ("`currency` as a constant", "CurrencyConstant"),
    ("`amount_minor` as a constant", "NoMoney"),
    ("A key, a leg or a currency as a header", "HeaderPlace"),
    ("A key or a leg as the record's key", "KeyPlace"),
    ("The record's key or its timestamp, in a rule of `compare`", "RecordPart"),
)


class DescribedSchema(GenerateJsonSchema):
    """The JSON schema of models with what their fields' docstrings say."""

    def model_schema(self, schema: core_schema.ModelSchema) -> dict[str, Any]:
        made = super().model_schema(schema)
        for key, words in docstrings_by_key(schema["cls"]).items():
            made["properties"][key].setdefault("description", words)
        return made


def contract_reference() -> str:
    """The whole page: an introduction, a table per mapping of the file, and the classes that a contract may name."""
    schema = Contract.model_json_schema(schema_generator=DescribedSchema)
    sections = [_INTRODUCTION, _section("The file", schema, schema["$defs"])]
    for path, part in _parts("", schema, schema["$defs"]):
        sections.append(_section(f"`{path}`", part, schema["$defs"]))
    sections += [_section(title, schema["$defs"][name], schema["$defs"]) for title, name in _IN_PLACE_OF_A_NAME]
    return "\n".join([*sections, _classes()])


def _parts(path: str, schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Every mapping below this one, in the order of the file, with its dotted path; [] marks a list's member."""
    for key, written in schema["properties"].items():
        field = _without_null(written)
        inside = field.get("items", field)
        name = f"{path}.{key}" if path else key
        if "$ref" in inside and "properties" in _resolve(inside, definitions):
            part = _resolve(inside, definitions)
            member = f"{name}[]" if "items" in field else name
            yield member, part
            yield from _parts(member, part, definitions)


def _section(title: str, schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
    required = schema.get("required", [])
    rows = [
        f"| `{key}` | {_type(field, definitions)} | {_default(key, field, required)} | {_meaning(field, definitions)} |"
        for key, field in schema["properties"].items()
    ]
    head = ["| key | value | default | meaning |", "|---|---|---|---|"]
    return "\n".join([f"## {title}", "", _cell(schema["description"]), "", *head, *rows, ""])


def _meaning(field: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
    """The field's docstring; where its mapping has the same, the schema keeps only that one."""
    return _cell(field.get("description") or _resolve(field, definitions)["description"])


def _default(key: str, field: Mapping[str, Any], required: list[str]) -> str:
    """Required, a literal, or nothing where leaving the key out says it all."""
    if key in required:
        return "required"
    default = field.get("default")
    return f"`{json.dumps(default)}`" if isinstance(default, str | int) and default != "" else ""


def _type(field: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
    """One value in words."""
    field = _without_null(field)
    if "$ref" in field:
        target = _resolve(field, definitions)
        return "a mapping, see below" if "properties" in target else _type(target, definitions)
    if "enum" in field:
        long = len(field["enum"]) > _SHORT_ENUM
        return "one of the classes below" if long else " or ".join(f"`{member}`" for member in field["enum"])
    if "oneOf" in field:
        return f"{_type(field['oneOf'][0], definitions)}; or a mapping, see below"
    match field["type"]:
        case "array":
            return f"a list{_count(field, 'Items')}; each {_type(field['items'], definitions)}"
        case "object":
            key, value = (_type(part, definitions) for part in _key_and_value(field))
            return f"a mapping{_count(field, 'Properties')}; key: {key}; value: {value}"
        case "boolean":
            return "`true` or `false`"
        case "number":
            return f"a number{_bounds(field)}"
        case "integer":
            return f"a whole number{_bounds(field)}"
    if field.get("format") == "date-time":
        return "a time with its zone"
    return _cell(str(field.get("format") or PATTERNS.get(field.get("pattern", ""), "text")))


def _key_and_value(field: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the keys and the values of a mapping are; a pattern of its keys stands elsewhere in a JSON schema."""
    if "patternProperties" in field:
        ((pattern, value),) = field["patternProperties"].items()
        return {"type": "string", "pattern": pattern}, value
    return {"type": "string", **field["propertyNames"]}, field["additionalProperties"]


_SHORT_ENUM = 8
"""Members that a line can name."""


def _bounds(field: Mapping[str, Any]) -> str:
    words = [
        f"{field[name] + more:,} or {side}"
        for name, more, side in (("minimum", 0, "more"), ("exclusiveMinimum", 1, "more"), ("maximum", 0, "less"))
        if name in field
    ]
    return f", {', '.join(words)}" if words else ""


def _count(field: Mapping[str, Any], what: str) -> str:
    least, most = field.get(f"min{what}"), field.get(f"max{what}")
    words = [*([f"at least {least}"] if least else []), *([f"at most {most}"] if most else [])]
    return f", {', '.join(words)}" if words else ""


def _without_null(field: Mapping[str, Any]) -> dict[str, Any]:
    """What stands there if something stands there."""
    options = [option for option in field.get("anyOf", ()) if option.get("type") != "null"]
    return {**field, **options[0]} if options else dict(field)


def _resolve(field: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = definitions[field["$ref"].rpartition("/")[2]]
    return found


def _classes() -> str:
    rows = [f"| `{name}` | {_cell(text.means)} | {_cell(text.check_first)} |" for name, text in BREAK_TEXTS.items()]
    head = ["| class | what is proven | check first |", "|---|---|---|"]
    return "\n".join(
        ["## Break classes", "", "Where a contract names a class, it is one of these.", "", *head, *rows, ""]
    )


def _cell(text: str) -> str:
    """Text that stays inside its cell."""
    return text.replace("|", r"\|").replace("\n", " ")


if __name__ == "__main__":
    sys.stdout.write(contract_reference())
