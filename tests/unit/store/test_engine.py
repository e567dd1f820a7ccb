"""How the verdict store is connected to."""

from typing import Any
from unittest.mock import MagicMock

import pytest
from sqlalchemy import create_engine

from tallystick.store import engine


def test_what_is_read_behind_a_lock_is_of_after_it_was_taken_whatever_the_databases_default(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given: dict[str, Any] = {}

    def note(url: Any, **settings: Any) -> Any:
        given.update(settings)
        assert create_engine(url, **settings).dialect.driver == "psycopg"
        return MagicMock()

    monkeypatch.setattr(engine, "create_engine", note)
    engine.connect_store("postgresql://nobody@nowhere/none")
    assert given["isolation_level"] == "READ COMMITTED"
