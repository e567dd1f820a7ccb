"""No command of these tests is coloured by its surroundings, and none finds an address in them."""

import pytest


@pytest.fixture(autouse=True)
def plain_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """No colours from the surroundings, and no address either."""
    for name in ("FORCE_COLOR", "PY_COLORS", "GITHUB_ACTIONS", "TALLYSTICK_STORE_DSN"):
        monkeypatch.delenv(name, raising=False)
