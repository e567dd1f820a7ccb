"""A hanging transaction is ended only while the approval holds; whether it hangs is looked at first."""

from types import SimpleNamespace
from typing import Any

import pytest

from tallystick.executor.effects import abort_transactions
from tallystick.executor.effects.abort_marker import State, TransactionState
from tests.unit.compensation.abort_plans import ABORTS, planned

(ITEM,) = planned(**ABORTS).aborts[:1]


@pytest.mark.parametrize(("too_old", "marked"), [("its approval is 61 s old", False), (None, True)])
def test_a_transaction_is_not_ended_once_the_approval_is_too_old(
    monkeypatch: pytest.MonkeyPatch, too_old: str | None, marked: bool
) -> None:
    written: list[Any] = []
    monkeypatch.setattr(abort_transactions, "_prove", lambda *_: TransactionState(state=State.HANGS))
    monkeypatch.setattr(abort_transactions, "read_evidence", lambda *_: {})
    monkeypatch.setattr(abort_transactions, "write_abort", lambda _, item: written.append(item))
    ended = TransactionState(state=State.ABORTED)
    monkeypatch.setattr(abort_transactions, "wait_ended", lambda *_, **__: ended)
    work: Any = SimpleNamespace(
        stopped={}, why_too_old=lambda: too_old, audit=lambda *_, **__: None, on_progress=lambda *_: None
    )
    admin: Any = "admin"
    outcome = abort_transactions._end(work, admin, ITEM)
    assert (written, outcome.reason) == ([ITEM] if marked else [], too_old or "")
