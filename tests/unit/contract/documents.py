"""A good contract as a document, changes of it, and how one is refused."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tallystick.contract.contract import Contract, ContractRefused, load_contract

GOOD: dict[str, Any] = {
    "contract": "billing",
    "version": 1,
    "owner": "payments",
    "direction": "ledger_to_topic",
    "schedule": "0 * * * *",
    "start_date": "2026-01-01T00:00:00Z",
    "kafka": {"connection": "kafka_billing"},
    "legs": {"payment": "billing.payments", "invoice": "billing.invoices"},
    "ledger": {"connection": "ledger_billing", "table": "ledger.posting", "where": "side = 'credit'"},
}


def changed(**changes: Any) -> dict[str, Any]:
    """GOOD with some keys set; `ledger__table` reaches into `ledger`, and None takes a key out."""
    document = yaml.safe_load(yaml.safe_dump(GOOD))
    for path, value in changes.items():
        *parents, key = path.split("__")
        mapping = document
        for parent in parents:
            mapping = mapping.setdefault(parent, {})
        mapping[key] = value
        if value is None:
            del mapping[key]
    return document


def refusal(folder: Path, text: str) -> str:
    """The one line that refuses this text, without the path it begins with."""
    path = folder / "billing.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ContractRefused) as refused:
        load_contract(path)
    message = str(refused.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    return message.removeprefix(f"{path}: ")


class FieldCases:
    """A section's fields: what is refused with its path, its value and what was expected; and twins that are read.

    A section's test file holds them as TestFields; each mapping is what is changed in a good document.
    """

    refused: tuple[tuple[dict[str, Any], str], ...]
    read: tuple[dict[str, Any], ...]

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        if "told" in metafunc.fixturenames:
            metafunc.parametrize(("changes", "told"), self.refused)
        else:
            metafunc.parametrize("changes", self.read, ids=str)

    def test_a_bad_field_is_refused_with_its_path_its_value_and_what_was_expected(
        self, tmp_path: Path, changes: dict[str, Any], told: str
    ) -> None:
        line = refusal(tmp_path, yaml.safe_dump(changed(**changes), sort_keys=False))
        assert told in line if told.startswith("; ") else line.startswith(told)

    def test_its_twin_is_read(self, tmp_path: Path, changes: dict[str, Any]) -> None:
        path = tmp_path / "billing.yaml"
        path.write_text(yaml.safe_dump(changed(**changes)))
        assert isinstance(load_contract(path), Contract)


INPUTS = {"kind": "topic", "connection": "k", "topics": ["billing.requests"]}
TO_TOPIC: dict[str, Any] = {"direction": "topic_to_topic", "ledger": INPUTS}
REPAIR: dict[str, Any] = {"classes": ["missing_in_topic_never_produced"], "max_amount_minor": {"EUR": 100_000}}


def shown(value: object) -> str:
    """As a refusal shows it: cut to a line."""
    text = json.dumps(value)
    return text if len(text) <= 80 else f"{text[:80]}..."


BY_COLUMN = {"kind": "jdbc", "order_by": "entry_id", "overlap": 0}

ORDERED = {"ordering_key": "account", "sequence": "number"}
