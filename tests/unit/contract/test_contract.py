"""A contract is refused with file, path, value and what was expected; its twin, one fact away, is read."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from tallystick.contract.contract import Contract, ContractRefused, load_contract, load_contracts
from tallystick.contract.reference_page import EXAMPLE
from tallystick.model.direction import Direction
from tallystick.model.finding_names import BreakClass
from tests.unit.contract.documents import GOOD, REPAIR, FieldCases, changed

DIRECTIONS = "expected 'ledger_to_topic', 'topic_to_ledger' or 'topic_to_topic'"


class TestFields(FieldCases):
    refused = (
        # keys
        ({"owner": None}, "owner: missing; expected a value: the team that answers for it"),
        ({"contract": None}, "contract: missing; expected a value: its name; also the name of its DAG"),
        ({"name": "billing"}, "name: unknown key; expected one of contract, version"),
        ({"kafka__connection": None}, "kafka.connection: missing; expected a value: id of the Airflow connection"),
        ({"alret": {}}, "alret: unknown key; expected 'alert'?"),
        ({"zzz": 1}, "zzz: unknown key; expected one of contract, version, description, owner, direction"),
        # types: nothing is guessed from a neighbour type
        ({"owner": 12}, "owner: got 12; expected text; put it in quotes"),
        ({"owner": ""}, 'owner: got ""; expected some text'),
        ({"version": "1"}, 'version: got "1"; expected a whole number'),
        ({"version": True}, "version: got true; expected a whole number"),
        ({"version": 1.0}, "version: got 1.0; expected a whole number"),
        ({"version": 0}, "version: got 0; expected 1 or more"),
        ({"kafka": "kafka_billing"}, 'kafka: got "kafka_billing"; expected a mapping'),
        ({"legs": ["billing.payments"]}, 'legs: got ["billing.payments"]; expected a mapping'),
        ({"legs": {}}, "legs: got {}; expected at least one"),
        (
            {"legs": {"pay": "bill ing"}},
            "legs.pay: got \"bill ing\"; expected a Kafka topic name: letters, digits, '.'",
        ),
        ({"legs": {"pay": "billing\n"}}, 'legs.pay: got "billing\\n"; expected a Kafka topic name'),
        (
            {"legs": {"pay": "billing", "refund": "billing"}},
            'legs: got {"pay": "billing", "refund": "billing"}; '
            "expected a topic of its own for each leg: 'billing' is named twice",
        ),
        # direction
        ({"direction": "sideways"}, f'direction: got "sideways"; {DIRECTIONS}'),
        ({"partner_grace_seconds": -1}, "partner_grace_seconds: got -1; expected 0 or more"),
        (
            {"partner_grace_seconds": 90, "partner_grace_cap_seconds": 89},
            "partner_grace_cap_seconds: got 89; expected no less than partner_grace_seconds, which is 90",
        ),
        ({"partner_grace_seconds": 1.5}, "partner_grace_seconds: got 1.5; expected a whole number"),
        ({"settle_timeout_seconds": False}, "settle_timeout_seconds: got false; expected a whole number"),
        ({"empty": True}, "empty: got true; expected 'refused' or 'allowed'"),
        (
            {"expectations": "my_package/suites.py"},
            'expectations: got "my_package/suites.py"; expected a Python module, such as my_package.suites',
        ),
        ({"expectations": ".suites"}, 'expectations: got ".suites"; expected a Python module'),
        ({"expectations": "suites:window"}, 'expectations: got "suites:window"; expected a Python module'),
        # where events may stray, who may write them, what was acknowledged
        ({"kafka__stray_topics": ["a topic"]}, 'kafka.stray_topics.0: got "a topic"; expected a Kafka topic name'),
        (
            {"kafka__stray_topics": ["billing.invoices"]},
            'legs: got {"invoice": "billing.invoices", "payment": "billing.payments"}; '
            "expected no leg on a stray topic: 'billing.invoices' is that of 'invoice'",
        ),
        ({"currency_case": True}, "currency_case: got true; expected 'exact' or 'ignored'"),
        ({"timestamp_tolerance_seconds": -1}, "timestamp_tolerance_seconds: got -1; expected 0 or more"),
    )

    read = (
        {},
        {"owner": "12"},
        {"legs": {"pay": "billing"}},
        {"legs": {"pay": "Billing.v2_pay-1", "refund": "billing.refund"}},
        {"kafka__stray_topics": ["billing.refunds"]},
        {"direction": "topic_to_ledger"},
        {"partner_grace_seconds": 0},
        {"empty": "allowed"},
        {"expectations": "suites"},
        {"expectations": "my_package.suites.of_payouts"},
        {"timestamp_tolerance_seconds": 0},
    )


def test_a_contract_says_what_its_file_says(tmp_path: Path) -> None:
    path = tmp_path / "billing.yaml"
    path.write_text(yaml.safe_dump(changed(start_date="2026-01-01T02:00:00+02:00", compensation=REPAIR)))
    contract = load_contract(path)
    assert contract.direction is Direction.LEDGER_TO_TOPIC
    assert contract.topics == ("billing.invoices", "billing.payments")
    assert contract.start_date == datetime(2026, 1, 1, tzinfo=UTC)
    assert contract.start_date.tzinfo is UTC
    assert contract.compensation is not None
    assert contract.compensation.classes == (BreakClass.MISSING_IN_TOPIC_NEVER_PRODUCED,)


def test_comments_key_order_and_zone_do_not_change_the_fingerprint(tmp_path: Path) -> None:
    one, two = tmp_path / "one.yaml", tmp_path / "two.yaml"
    turned = {**changed(start_date="2026-01-01T01:00:00+01:00"), "legs": dict(reversed(GOOD["legs"].items()))}
    one.write_text(yaml.safe_dump(GOOD, sort_keys=False))
    two.write_text("# a note\n" + yaml.safe_dump(turned, sort_keys=False))
    assert list(load_contract(one).legs) != list(load_contract(two).legs)
    assert load_contract(one).fingerprint == load_contract(two).fingerprint


@pytest.mark.parametrize(
    "changes", [{"partner_grace_seconds": 61}, {"ledger__where": "side = 'debit'"}, {"version": 2}]
)
def test_each_change_of_meaning_changes_the_fingerprint(changes: dict[str, Any]) -> None:
    good, other = Contract.model_validate(GOOD), Contract.model_validate(changed(**changes))
    assert good.fingerprint != other.fingerprint


def test_what_is_stored_of_a_contract_has_its_files_keys() -> None:
    """The attribute is `name`, the key `contract`: by another one, no stored contract could be read, or be the same.

    The fingerprint was written by the code from before the attribute had this name.
    """
    contract = Contract.model_validate(yaml.safe_load(EXAMPLE))
    assert contract.name == contract.model_dump()["contract"] == "billing_payouts"
    assert contract.model_dump_json(exclude_defaults=True).startswith('{"contract":"billing_payouts","version":1,')
    assert Contract.model_validate_json(contract.model_dump_json()) == contract
    assert contract.fingerprint == "da0093a7152d05f4d79493ba43c9d8abc5f8f03279b591716a1d0685bbf7f6d6"


def test_a_folder_is_read_in_the_order_of_its_file_names(tmp_path: Path) -> None:
    for name in ("b", "a"):
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(changed(contract=name)))
    (tmp_path / "notes.txt").write_text("not a contract")
    assert [contract.name for contract in load_contracts(tmp_path)] == ["a", "b"]


def test_a_folder_is_refused_with_the_faults_of_all_its_files(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(yaml.safe_dump(GOOD))
    (tmp_path / "b.yaml").write_text(yaml.safe_dump(GOOD))
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(changed(version=0)))
    (tmp_path / "d.yml").write_text(yaml.safe_dump(GOOD))
    with pytest.raises(ContractRefused) as refused:
        load_contracts(tmp_path)
    assert str(refused.value).splitlines() == [
        f"{tmp_path}/d.yml: got the ending .yml; expected .yaml",
        f"{tmp_path}/b.yaml: contract: got 'billing'; expected a name of its own, {tmp_path}/a.yaml has it too",
        f"{tmp_path}/c.yaml: version: got 0; expected 1 or more",
    ]


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ContractRefused, match="no such folder"):
        load_contracts(tmp_path / "contracts")


def test_a_field_of_a_later_release_does_not_change_the_fingerprint_until_it_says_something() -> None:
    silent = Contract.model_validate(GOOD)
    spoken_default = Contract.model_validate(changed(partner_grace_cap_seconds=None, currency_case="exact"))
    assert spoken_default.fingerprint == silent.fingerprint
    assert Contract.model_validate(changed(currency_case="ignored")).fingerprint != silent.fingerprint
