"""Which plan a run has asked for, and what came last of its approval, as the trail says it."""

from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest
from sqlalchemy import Engine

from tallystick.compensation.signed_approval import SignedApproval
from tallystick.host.terminal_user import this_terminal
from tallystick.model.verdict import Verdict
from tallystick.store.plans.approval_store import (
    AGREED,
    FAILED,
    REJECTED,
    SHOWN,
    UNANSWERED,
    agreements,
    keep_signed,
    last_approval_step,
    last_voided,
    plan_asked_in,
)
from tallystick.store.plans.claim_store import claim_actions
from tallystick.store.plans.plan_store import ASKED, append_audit, record_done, save_plan
from tallystick.store.plans.reopen_store import reopen_action
from tests.stored_books import plan_of
from tests.unit.compensation.plans import candidate, plan

from .conftest import Books

RUN = "manual__1"


def keep(
    store: Engine, event: str, plan_id: UUID, *, contract: str = "payouts", run: str = RUN, actor: str = "ada"
) -> None:
    detail = {"plan_hash": f"hash of {plan_id}", "scheduler_run_id": run}
    append_audit(store, contract, plan_id=plan_id, actor=actor, event=event, detail=detail)


def last(store: Engine, run: str = RUN) -> tuple[str, UUID] | None:
    step = last_approval_step(store, "payouts", scheduler_run_id=run)
    return step and (step.event, step.plan_id)


def test_the_plan_that_a_run_asked_for_last_is_its_own(store: Engine) -> None:
    assert plan_asked_in(store, "payouts", scheduler_run_id=RUN) is None
    first, second = uuid4(), uuid4()
    keep(store, ASKED, first)
    keep(store, ASKED, second)
    keep(store, ASKED, uuid4(), run="manual__2")
    keep(store, ASKED, uuid4(), contract="payments")
    keep(store, SHOWN, first)
    asked = plan_asked_in(store, "payouts", scheduler_run_id=RUN)
    assert asked is not None
    assert (asked.plan_id, asked.plan_hash, asked.actor) == (second, f"hash of {second}", "ada")


@pytest.mark.parametrize("answer", [AGREED, REJECTED, UNANSWERED, FAILED])
def test_an_answer_counts_until_another_plan_is_shown(store: Engine, answer: str) -> None:
    first, second = uuid4(), uuid4()
    keep(store, ASKED, first)
    assert last(store) is None
    keep(store, SHOWN, first)
    keep(store, answer, first)
    keep(store, SHOWN, second, run="manual__2")
    keep(store, AGREED, second, contract="payments")
    assert last(store) == (answer, first)
    assert last(store, "manual__2") == (SHOWN, second)
    keep(store, SHOWN, second)
    assert last(store) == (SHOWN, second)


@pytest.mark.parametrize("offset", ["+00:00", "+23:59", "-23:59:59", "+00:00:00.000001"])
def test_a_sheet_of_a_zone_that_the_store_does_not_know_keeps_no_plan_from_being_done(
    store: Engine, offset: str
) -> None:
    """Its line stays for ever, and is read with all others of its plan."""
    signed_plan, an_hour = plan(candidate("a")), timedelta(hours=1)
    made_at = datetime.now(UTC).replace(tzinfo=datetime.fromisoformat(f"2026-01-01T00:00:00{offset}").tzinfo)
    made_at -= an_hour - made_at.utcoffset()
    for signer, made in (("bob", datetime.now(UTC)), ("grace", made_at)):
        signed = SignedApproval(signer=signer, made_at_utc=made, key_fingerprint="SHA256:a", document_sha256="b")
        keep_signed(store, signed_plan, signed, terminal=this_terminal())
    agreed = agreements(store, signed_plan.plan_id, voided=last_voided(store, signed_plan))
    assert sorted(agreed) == ["bob", "grace"]
    assert abs(agreed["grace"] - an_hour) < timedelta(minutes=1)


def test_a_yes_from_before_a_rejection_or_a_reopening_in_whichever_plan_is_none(store: Engine, books: Books) -> None:
    a, b = books.missing("a"), books.missing("b")
    books.commit(store, books.result(0))
    items = tuple(books.item(one, n=1) for one in (a, b))
    books.commit(store, books.result(1, verdict=Verdict.BROKEN, breaks=(a, b), items=items))
    first, second, other = (plan_of(books.contract, 1, *found) for found in ((a,), (a, b), (b,)))
    for one in (first, second, other):
        save_plan(store, one, requested_by="ada")
        keep(store, AGREED, one.plan_id, actor="bob")
    claim_actions(store, first, first.items, executor="e", outcome={}, allow=lambda actions, spent: None)
    record_done(store, first.items[0].action_id, outcome={})
    assert [last_voided(store, one) for one in (first, second, other)] == [None, None, None]
    reopen_action(store, "payouts", first.items[0].action_id, by="dan", reason="the log lost it")
    for one, agreed in ((first, []), (second, []), (other, ["bob"])):
        voided = last_voided(store, one)
        assert (voided and (voided.by, voided.reopened)) == (None if agreed else ("dan", True))
        assert list(agreements(store, one.plan_id, voided=voided)) == agreed
    keep(store, AGREED, second.plan_id, actor="grace")
    assert list(agreements(store, second.plan_id, voided=last_voided(store, second))) == ["grace"]
    keep(store, REJECTED, second.plan_id, actor="carol")
    voided = last_voided(store, second)
    assert voided is not None and (voided.by, voided.reopened) == ("carol", False)
    assert agreements(store, second.plan_id, voided=voided) == {}
