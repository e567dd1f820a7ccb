"""What contracts over one topic and one table claim in a real store: each effect once between them."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

import pytest
from sqlalchemy import Engine, text

from tallystick.compensation.plan import Plan, PlanItem, RepairKind, action_id_of
from tallystick.compensation.write_off import WriteOffRefused
from tallystick.contract.contract import Contract
from tallystick.model.finding_names import BreakClass
from tallystick.model.findings import break_id
from tallystick.model.open_item import ItemState, WriteOff
from tallystick.model.verdict import Verdict
from tallystick.store.breaks.write_off_store import write_off_break
from tallystick.store.downgrade_refused import DowngradeRefused
from tallystick.store.engine import downgrade
from tallystick.store.plans.claim_store import Claims, claim_actions
from tallystick.store.plans.plan_store import record_done, record_waiting, save_plan
from tallystick.store.plans.reopen_store import ReopenRefused, reopen_action
from tallystick.store.runs.open_item_store import open_items_as_of

MISSING = BreakClass.MISSING_IN_TOPIC_NEVER_PRODUCED
DOUBLED = BreakClass.DUPLICATE_IN_TOPIC_NEW_SESSION
LEDGER = "7400/books/billing.payout"
SAME = "has done the same, or is doing it"
SAME_SOURCE = (
    "has repaired by the same row or event, or may have; look what came of that, and repair this one by hand, or write "
    "the break off"
)


@dataclass
class Claimant:
    """One contract with its books in the store. leg: in its own words. n: of its newest cut."""

    store: Engine
    books: Any
    leg: str
    n: int = 0

    @property
    def contract(self) -> Contract:
        found: Contract = self.books.contract
        return found

    def finds(self, *found: tuple[BreakClass, str, str]) -> list[PlanItem]:
        """What an executor would do about the breaks of a run. found: class, match key, place of a surplus copy."""
        self.n += 1
        breaks, items = [], []
        for break_class, key, place in found:
            named = {"contract": self.contract.name, "break_class": break_class, "match_key": key, "position": place}
            one = replace(
                self.books.missing(key),
                break_class=break_class,
                break_id=break_id(**named),
                evidence={"at": place},
            )
            breaks.append(one)
            items.append(replace(self.books.item(one, n=self.n), item_id=place or f"ledger:{key}"))
        result = self.books.result(self.n, verdict=Verdict.BROKEN, breaks=tuple(breaks), items=tuple(items))
        self.books.commit(self.store, result)
        return [
            PlanItem(
                kind=RepairKind.REVERSE if place else RepairKind.REPUBLISH,
                reverses=place,
                row_id=one.match_key[-1],
                match_key=one.match_key,
                transaction_key=one.transaction_key,
                leg=self.leg,
                amount_minor=one.amount_minor,
                currency=one.currency,
                occurred_at="2026-03-01T00:00:00Z",
                action_id=action_id_of(self.contract.name, one.break_id),
                break_id=one.break_id,
                break_class=one.break_class,
                topic="billing.payouts",
            )
            for one, (_, _, place) in zip(breaks, found, strict=True)
        ]

    def claims(self, *items: PlanItem) -> Claims:
        plan = Plan(
            contract=self.contract.name,
            contract_fingerprint=self.contract.fingerprint,
            cut_n=self.n,
            dry_run=False,
            items=items,
            left_out=(),
        )
        save_plan(self.store, plan, requested_by="ada")
        return claim_actions(
            self.store,
            plan,
            items,
            executor="e",
            outcome={},
            allow=lambda actions, spent: None,
            ledger=LEDGER,
            table=LEDGER,
        )

    def ends(self, item: PlanItem) -> None:
        record_done(self.store, item.action_id, outcome={"topic": item.topic}, by_us=True)


def by_dag(item: PlanItem) -> PlanItem:
    return replace(item, kind=RepairKind.TRIGGER, triggers="by_hand", reverses="")


def reasons(claims: Claims) -> list[str]:
    """Why those that may not begin may not, without the plan and contract that they name."""
    return [reason.partition(" of ")[2].partition(" ")[2] for reason in claims.unclaimed.values()]


@pytest.fixture
def two(store: Engine, books: Any, new_contract: Callable[..., Contract]) -> tuple[Claimant, Claimant]:
    """Of one topic and table, with other words for the leg."""
    other = replace(books, contract=new_contract(contract="audit", legs={"paid": "billing.payouts"}))
    for one in (books, other):
        one.commit(store, one.result(0))
    return Claimant(store, books, "payout"), Claimant(store, other, "paid")


@pytest.mark.parametrize("found", [(MISSING, "a", ""), (DOUBLED, "a", "topic:billing.payouts:0:9")])
def test_contracts_that_word_a_leg_differently_do_the_same_once(
    two: tuple[Claimant, Claimant], found: tuple[BreakClass, str, str]
) -> None:
    another_key = (found[0], "b", found[2] and f"{found[2]}9")
    (ours,), (theirs, elsewhere) = two[0].finds(found), two[1].finds(found, another_key)
    assert two[0].claims(ours).begun == {ours.action_id}
    claims = two[1].claims(theirs, elsewhere)
    assert (list(claims.unclaimed), reasons(claims)) == ([theirs.action_id], [SAME])
    assert claims.begun == {elsewhere.action_id}


@pytest.mark.parametrize("found", [(MISSING, "a", ""), (DOUBLED, "a", "topic:billing.payouts:0:9")])
def test_no_break_is_written_off_while_another_contract_does_to_the_topic_what_repairs_it(
    two: tuple[Claimant, Claimant], found: tuple[BreakClass, str, str]
) -> None:
    """Both named one leg's topic, and a person paid by hand what the other one published."""
    another_key = (found[0], "b", found[2] and f"{found[2]}9")
    (ours,), (theirs, elsewhere) = two[0].finds(found), two[1].finds(found, another_key)
    two[0].claims(ours)
    off = WriteOff(by="Ada", reason="paid by hand", at_utc=datetime(2026, 3, 2, tzinfo=UTC))
    with pytest.raises(WriteOffRefused, match=r"plan \S+ of contract payouts is repairing it"):
        write_off_break(two[1].store, "audit", str(theirs.break_id), off)
    done = write_off_break(two[1].store, "audit", str(elsewhere.break_id), off)
    assert [one.match_key for one in done.items] == ["b"]


@pytest.mark.parametrize("handed_over", [False, True])
def test_what_another_contract_may_have_done_hinders_no_write_off_once_its_own_break_is_over_and_a_cut_was_made_since(
    two: tuple[Claimant, Claimant], owned_store: Engine, handed_over: bool
) -> None:
    """Nobody may reopen it by then. Another copy of the key was found later."""
    own, other = two
    (theirs,) = other.finds((DOUBLED, "a", "topic:billing.payouts:0:9"))
    (ours,) = own.finds((DOUBLED, "a", "topic:billing.payouts:0:205"))
    begun = by_dag(theirs) if handed_over else theirs
    other.claims(begun)
    if handed_over:
        record_done(other.store, begun.action_id, outcome={}, by_us=True)
    else:
        assert record_waiting(other.store, begun.action_id, executor="e", outcome={"reason": "nobody knows"})
    off = WriteOff(by="Ada", reason="refunded by hand", at_utc=datetime(2026, 3, 2, tzinfo=UTC))

    def cut_now() -> None:
        now = "update tallystick.cut set marked_at_utc = clock_timestamp() where contract = 'payouts' and n = 1"
        with owned_store.begin() as connection:
            connection.execute(text(now))

    def refused(why: str) -> None:
        with pytest.raises(WriteOffRefused, match=why):
            write_off_break(own.store, "payouts", str(ours.break_id), off)

    cut_now()
    refused(f"compensation reopen CONTRACT_FILE {begun.action_id}")
    (item,) = open_items_as_of(other.store, "audit", 2)
    cleared = replace(item, state=ItemState.CLEARED, cleared_by="its copy was taken back")
    other.books.commit(other.store, other.books.result(2, items=(cleared,)))
    with pytest.raises(ReopenRefused, match="is not outstanding any more"):
        reopen_action(other.store, "audit", begun.action_id, by="Ada", reason="it was not done")
    refused(r"plan \S+ of contract audit may have repaired it by .* own break was over, and no cut made since has read")
    cut_now()
    assert write_off_break(own.store, "payouts", str(ours.break_id), off).items[0].match_key == "a"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((MISSING, "event-a", ""), (MISSING, "payment-a", "")),
        ((DOUBLED, "event-a", "topic:billing.payouts:0:9"), (DOUBLED, "payment-a", "topic:billing.payouts:0:9")),
    ],
    ids=["missing", "doubled"],
)
def test_contracts_that_match_by_other_columns_do_the_same_once(
    two: tuple[Claimant, Claimant], first: tuple[BreakClass, str, str], second: tuple[BreakClass, str, str]
) -> None:
    """Begun or done: the other one's look by its own key need not know what came of it."""
    another_row = (first[0], "payment-b", first[2] and f"{first[2]}9")
    (ours,), (theirs, elsewhere) = two[0].finds(first), two[1].finds(second, another_row)
    assert two[0].claims(ours).begun == {ours.action_id}
    claims = two[1].claims(theirs, elsewhere)
    assert (list(claims.unclaimed), claims.begun) == ([theirs.action_id], {elsewhere.action_id})
    assert reasons(claims) == [SAME_SOURCE]
    two[0].ends(ours)
    assert reasons(two[1].claims(theirs)) == [SAME_SOURCE]


def test_a_debit_and_a_credit_by_one_row_are_two_events(two: tuple[Claimant, Claimant]) -> None:
    (debit,), (credit,) = two[0].finds((MISSING, "debit-a", "")), two[1].finds((MISSING, "credit-a", ""))
    two[0].claims(debit)
    taken = replace(credit, amount_minor=-credit.amount_minor)
    assert two[1].claims(taken).begun == {credit.action_id}


def test_a_store_that_knows_what_repairs_were_made_from_does_not_go_back(
    two: tuple[Claimant, Claimant], owned_store: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another contract would do the same again after the next upgrade."""
    (ours,) = two[0].finds((MISSING, "event-a", ""))
    two[0].claims(ours)
    two[0].ends(ours)
    assert downgrade(owned_store) == "0023"
    monkeypatch.setattr("tallystick.store.engine.REVISION", "0023")
    with pytest.raises(DowngradeRefused, match=r"repairs of payouts are kept .*; stay at this version"):
        downgrade(owned_store)


def test_of_one_row_a_contract_may_repair_two_breaks(two: tuple[Claimant, Claimant]) -> None:
    first, second = two[0].finds((MISSING, "event-a", ""), (MISSING, "fee-a", ""))
    assert two[0].claims(first).begun == {first.action_id}
    assert two[0].claims(second).begun == {second.action_id}


def test_each_reversal_of_a_plan_learns_of_what_another_contract_takes_back_of_its_key(
    two: tuple[Claimant, Claimant],
) -> None:
    places = [f"topic:billing.payouts:0:{offset}" for offset in (7, 8, 9)]
    (ours,) = two[0].finds((DOUBLED, "a", places[0]))
    two[0].claims(ours)
    theirs = two[1].finds(*((DOUBLED, "a", place) for place in places))
    claims = two[1].claims(*theirs)
    assert claims.taken_back == {one.action_id: {places[0]} for one in theirs}
    assert (list(claims.unclaimed), reasons(claims)) == ([theirs[0].action_id], [SAME])
    assert claims.begun == {one.action_id for one in theirs[1:]}


@pytest.mark.parametrize("handed_over", [False, True])
def test_what_an_older_release_has_done_still_holds(two: tuple[Claimant, Claimant], handed_over: bool) -> None:
    """It kept the leg and the kind; the other contract has the same words for the leg here."""
    one, another = two[0], replace(two[1], leg="payout")
    (ours,), (theirs,) = one.finds((MISSING, "a", "")), another.finds((MISSING, "a", ""))
    one.claims(ours)
    asked = by_dag(theirs) if handed_over else theirs
    older = sha256("\x1f".join(("republish", one.books.topic_id, "payout", "a")).encode()).hexdigest()
    with one.store.begin() as connection:
        told = text("update tallystick.compensation_action set effect = :older, source = null, state = 'done'")
        connection.execute(told, {"older": older})
    assert reasons(another.claims(asked)) == [SAME]
    with one.store.begin() as connection:
        connection.execute(text("update tallystick.compensation_action set effect = 'of something else'"))
    assert another.claims(asked).begun == {asked.action_id}


def test_a_dag_is_started_again_for_a_key_by_its_own_contract_alone_which_may_repair_beside_it(
    two: tuple[Claimant, Claimant],
) -> None:
    first, second, third = two[0].finds(*((DOUBLED, "a", f"topic:billing.payouts:0:{n}") for n in (7, 8, 9)))
    (theirs,) = two[1].finds((DOUBLED, "a", third.reverses))
    assert two[0].claims(by_dag(first)).begun == {first.action_id}
    assert two[0].claims(by_dag(second)).begun == {second.action_id}
    assert two[0].claims(third).begun == {third.action_id}
    for asked in (theirs, by_dag(theirs)):
        assert set(reasons(two[1].claims(asked))) == {SAME}
