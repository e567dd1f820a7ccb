"""Every fault of a file is told at once, and no password of an address in it."""

import inspect
from pathlib import Path

import pytest
import yaml

from tallystick.contract.contract import ContractRefused, load_contract
from tallystick.contract.error_lines import docstrings_by_key
from tallystick.contract.field_types import CurrencyConstant
from tests.unit.contract.documents import changed, refusal


def test_every_fault_of_a_file_is_told_at_once(tmp_path: Path) -> None:
    path = tmp_path / "billing.yaml"
    path.write_text(yaml.safe_dump(changed(owner=None, version="1", alret={})))
    with pytest.raises(ContractRefused) as refused:
        load_contract(path)
    assert len(str(refused.value).splitlines()) == 3


def test_an_address_pasted_where_an_id_belongs_is_shown_without_its_password(tmp_path: Path) -> None:
    message = refusal(tmp_path, yaml.safe_dump(changed(ledger__connection="postgresql://audit:hunter2@db/billing")))
    assert message.startswith('ledger.connection: got "postgresql://***@db/billing"')


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("owner:", "owner: got null; expected some text"),
        ("owner: [a]", 'owner: got ["a"]; expected one text, and no list'),
        ("owner: {a: b}", 'owner: got {"a": "b"}; expected one text, and no mapping'),
        ("owner: 12", "owner: got 12; expected text; put it in quotes"),
        ("owner: 2026-01-31", 'owner: got "2026-01-31"; expected text; put it in quotes'),
    ],
)
def test_quotes_are_asked_for_only_where_they_help(tmp_path: Path, line: str, fault: str) -> None:
    assert refusal(tmp_path, f"{yaml.safe_dump(changed(owner=None))}{line}\n") == fault


def test_what_a_field_means_is_read_from_the_source_of_its_class_and_of_those_below(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class OneCurrency(CurrencyConstant):
        why: str
        """Why the file
        states it.
        """
        since: int

    assert docstrings_by_key(OneCurrency) == {"constant": "Its ISO 4217 code.", "why": "Why the file\nstates it."}

    def no_source(_: object) -> str:
        raise OSError("source code not available")

    monkeypatch.setattr(inspect, "getsource", no_source)
    assert docstrings_by_key(OneCurrency) == {}
    assert refusal(tmp_path, yaml.safe_dump(changed(owner=None))) == "owner: missing; expected a value"
