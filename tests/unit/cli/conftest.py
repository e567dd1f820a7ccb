"""No command of these tests is coloured by its environment, and none finds an address in them."""

from pathlib import Path

import pytest
import yaml

from tallystick.contract.contract import Contract


@pytest.fixture(autouse=True)
def plain_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """No colours from the environment, and no address either."""
    for name in ("FORCE_COLOR", "PY_COLORS", "GITHUB_ACTIONS", "TALLYSTICK_STORE_DSN"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def contract_file(tmp_path: Path, contract: Contract) -> Path:
    path = tmp_path / "billing.yaml"
    path.write_text(yaml.safe_dump(contract.model_dump(mode="json")))
    return path
