"""Right before a DAG's run is asked for, the switch, the store and the claim are asked once more."""

from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from tallystick.compensation.kill_switch import ActingStopped
from tallystick.executor.effects import trigger_dags
from tests.planned_items import ITEM


def test_a_run_is_asked_for_only_while_nobody_has_stopped_that(monkeypatch: pytest.MonkeyPatch) -> None:
    noted: list[UUID] = []
    monkeypatch.setattr(trigger_dags, "note_starting", lambda _, action_id, **__: noted.append(action_id) or True)
    reasons: dict[UUID, str] = {}
    work: Any = SimpleNamespace(
        refuse_for_now=lambda: None, why_not_now=lambda _: reasons, engine="engine", executor="this start"
    )
    assert trigger_dags._why_not_started(work, ITEM) is None
    assert noted == [ITEM.action_id]

    def stopped() -> None:
        raise ActingStopped("dan stopped all compensations")

    work.refuse_for_now = stopped
    with pytest.raises(ActingStopped):
        trigger_dags._why_not_started(work, ITEM)
    assert noted == [ITEM.action_id]
