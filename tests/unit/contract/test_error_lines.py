"""Every fault of a file is told at once, and no password of an address in it."""

from pathlib import Path

import pytest
import yaml

from tallystick.contract.contract import ContractRefused, load_contract
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
