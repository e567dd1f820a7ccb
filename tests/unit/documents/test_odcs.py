"""A contract goes through ODCS and comes back; of somebody else's what has no role is said."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft201909Validator
from open_data_contract_standard.model import OpenDataContractStandard

from tallystick.contract.contract import Contract, contract_of, load_contract
from tallystick.documents.odcs import OdcsRefused, contract_of_odcs, odcs_document
from tests.unit.cli.command_line import run
from tests.unit.contract.documents import changed

REPOSITORY = Path(__file__).parents[3]
SAMPLES = [*(REPOSITORY / "dags" / "contracts").glob("*.yaml"), REPOSITORY / "docs/examples/walk/shop_orders.yaml"]
NOW = datetime(2026, 11, 25, 19, 12, tzinfo=UTC)
THEIRS: dict[str, Any] = {
    "apiVersion": "v3.1.0",
    "kind": "DataContract",
    "id": "53581432-6c55-4ba2-a65f-72344a91553a",
    "name": "Web Shop",
    "version": "1.0.0",
    "status": "active",
    "team": {"name": "checkout"},
    "schema": [
        {
            "name": "orders",
            "physicalName": "shop.orders",
            "physicalType": "topic",
            "properties": [
                {"name": "event_id", "logicalType": "string", "unique": True},
                {"name": "orderId", "physicalName": "order_id", "logicalType": "string"},
                {"name": "type", "logicalType": "string"},
                {"name": "note_about_the_total", "logicalType": "string"},
                {"name": "total_amount", "logicalType": "integer"},
                {"name": "currency", "logicalType": "string"},
            ],
        },
        {
            "name": "bookings",
            "physicalName": "shop.booking",
            "physicalType": "table",
            "properties": [
                {"name": "booking_id", "logicalType": "integer", "primaryKey": True},
                {"name": "event_id", "logicalType": "string"},
                {"name": "order_id", "logicalType": "string"},
                {"name": "leg", "logicalType": "string"},
                {"name": "cents", "logicalType": "integer"},
                {"name": "currency", "logicalType": "string"},
            ],
        },
    ],
}


@pytest.mark.parametrize("file", SAMPLES, ids=lambda file: file.stem)
def test_what_was_written_is_odcs_and_comes_back_as_it_was(file: Path) -> None:
    contract = load_contract(file)
    document = yaml.safe_load(run("contract", "to-odcs", str(file)).stdout)
    standard = Draft201909Validator(json.loads(OpenDataContractStandard.json_schema()))
    assert [fault.message for fault in standard.iter_errors(document)] == []
    back = contract_of(contract_of_odcs(document, kafka=None, ledger=None, now=NOW), path=file)
    assert (back, back.fingerprint) == (contract, contract.fingerprint)


def test_the_check_notices_a_document_that_is_none(contract: Contract) -> None:
    standard = Draft201909Validator(json.loads(OpenDataContractStandard.json_schema()))
    assert list(standard.iter_errors({**odcs_document(contract), "kind": "Contract"}))


def test_somebody_elses_fields_get_roles_by_name_and_type(tmp_path: Path) -> None:
    made = contract_of(contract_of_odcs(THEIRS, kafka="shop_kafka", ledger="shop_db", now=NOW), path=tmp_path)
    assert (made.name, made.owner, made.legs) == ("web_shop", "checkout", {"orders": "shop.orders"})
    assert (made.event.match_key, made.event.transaction_key, made.event.leg) == ("event_id", "order_id", "type")
    assert (made.event.amount_minor, made.ledger.columns.amount_minor) == ("total_amount", "cents")
    assert (made.ledger.table, made.ledger.columns.row_id) == ("shop.booking", "booking_id")


def test_a_path_is_a_property_inside_properties_and_comes_back(contract: Contract) -> None:
    event = {"match_key": "data.order.id", "amount_minor": 'data."order.total"', "currency": "data.currency"}
    nested = Contract.model_validate(contract.model_dump() | {"event": event, "compensation": None})
    document = odcs_document(nested)
    standard = Draft201909Validator(json.loads(OpenDataContractStandard.json_schema()))
    assert [fault.message for fault in standard.iter_errors(document)] == []
    (data,) = [one for one in document["schema"][0]["properties"] if one["name"] == "data"]
    inside = [one["name"] for one in data["properties"]]
    assert (data["logicalType"], inside) == ("object", ["order", "order.total", "currency"])
    assert data["properties"][1]["logicalType"] == "integer"
    assert contract_of_odcs(document, kafka=None, ledger=None, now=NOW)["event"] == event


def test_somebody_elses_fields_inside_objects_get_roles_by_their_paths(tmp_path: Path) -> None:
    orders, bookings = THEIRS["schema"]
    order = {"name": "order", "logicalType": "object", "properties": [{"name": "id", "logicalType": "string"}]}
    price = {"name": "unit.price", "logicalType": "integer"}
    inside = {"name": "data", "logicalType": "object", "properties": [order, price]}
    flat = [one for one in orders["properties"] if one["name"] not in ("orderId", "total_amount")]
    theirs = {**THEIRS, "schema": [{**orders, "properties": [*flat, inside]}, bookings]}
    made = contract_of(contract_of_odcs(theirs, kafka="shop_kafka", ledger="shop_db", now=NOW), path=tmp_path)
    assert (made.event.transaction_key, made.event.amount_minor) == ("data.order.id", 'data."unit.price"')


def test_what_has_no_role_is_said_for_each_side() -> None:
    topic, table = THEIRS["schema"]
    less = [
        {**topic, "properties": topic["properties"][1:]},
        {
            **table,
            "properties": [{**one, "primaryKey": False} for one in table["properties"] if one["name"] != "cents"],
        },
    ]
    with pytest.raises(OdcsRefused) as refused:
        contract_of_odcs({**THEIRS, "schema": less}, kafka="k", ledger="l", now=NOW)
    assert str(refused.value).splitlines() == [
        "match_key: no property of shop.orders is called so; expected one such as event_id",
        "amount_minor: no property of shop.booking is called so; expected one such as amount_minor",
        "row_id: no property of the table has primaryKey; expected one",
    ]


@pytest.mark.parametrize(
    ("changes", "connections", "reason"),
    [
        ({"kind": "Invoice"}, ("k", "l"), "kind: got 'Invoice'; expected DataContract"),
        ({"kind": None}, ("k", "l"), "kind: got None; expected DataContract"),
        ({"schema": THEIRS["schema"][1:]}, ("k", "l"), "no schema with physicalType topic"),
        ({"schema": THEIRS["schema"][:1]}, ("k", "l"), "0 schemas with physicalType table"),
        ({}, (None, "l"), "expected --kafka CONNECTION_ID"),
        ({}, ("k", None), "expected --ledger CONNECTION_ID"),
        ({"schema": "orders"}, ("k", "l"), "no schema with physicalType topic"),
    ],
)
def test_a_document_without_both_sides_is_refused(
    changes: dict[str, Any], connections: tuple[str | None, str | None], reason: str
) -> None:
    kafka, ledger = connections
    with pytest.raises(OdcsRefused, match=reason):
        contract_of_odcs({**THEIRS, **changes}, kafka=kafka, ledger=ledger, now=NOW)


def test_the_command_names_the_file_before_each_fault(tmp_path: Path) -> None:
    theirs, another = tmp_path / "theirs.yaml", tmp_path / "another.yaml"
    theirs.write_text(yaml.safe_dump(THEIRS))
    another.write_text("contract: shop\n")
    assert run("contract", "from-odcs", str(theirs)).stderr.splitlines() == [
        f"{theirs}: no connection of the cluster; expected --kafka CONNECTION_ID",
        f"{theirs}: no connection of the ledger; expected --ledger CONNECTION_ID",
    ]
    assert run("contract", "from-odcs", str(another)).stderr == (
        f"{another}: kind: missing; expected DataContract, an Open Data Contract\n"
    )


def test_the_command_prints_a_contract_that_can_be_checked(tmp_path: Path) -> None:
    (tmp_path / "theirs.yaml").write_text(yaml.safe_dump(THEIRS))
    printed = run(
        "contract", "from-odcs", str(tmp_path / "theirs.yaml"), "--kafka", "shop_kafka", "--ledger", "shop_db"
    )
    assert printed.exit_code == 0, printed.output
    (tmp_path / "web_shop.yaml").write_text(printed.stdout)
    assert run("contract", "check", str(tmp_path / "web_shop.yaml")).exit_code == 0


def test_constants_and_columns_in_quotes_come_back() -> None:
    """Kanji and a dot in a column are names like any other; without money no property has an amount."""
    columns = {
        "match_key": '"金額"',
        "row_id": '"a.b"',
        "amount_minor": {"constant": 0},
        "currency": {"constant": "XXX"},
    }
    event = {"match_key": {"header": "id"}, "amount_minor": {"constant": 0}, "currency": {"constant": "XXX"}}
    contract = Contract.model_validate(changed(event=event, ledger__columns=columns))
    document = odcs_document(contract)
    table = next(one for one in document["schema"] if one["physicalType"] == "table")
    assert [one["name"] for one in table["properties"]] == ["a.b", "金額", "payment_id", "leg"]
    again = contract_of_odcs(document, kafka=None, ledger=None, now=datetime(2026, 1, 1, tzinfo=UTC))
    assert Contract.model_validate(again).fingerprint == contract.fingerprint
