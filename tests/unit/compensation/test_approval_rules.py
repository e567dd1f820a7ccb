"""Who may approve: the second person, the money's limit, the people the contract names, the age of their yes."""

from datetime import timedelta
from typing import Any

import pytest

from tallystick.compensation.approval_rules import (
    NotAnApprover,
    YesVoided,
    may_approve,
    refuse_one_reopener,
    refuse_too_few_people,
    why_too_old,
)
from tallystick.compensation.plan import OnePersonOnly
from tests.unit.compensation.plans import NOON, candidate, contract, plan


@pytest.mark.parametrize(
    ("limits", "asked", "agreed"),
    [
        pytest.param({}, ["ada"], ["ada"], id="asked and agreed"),
        pytest.param({"EUR": 99}, ["ada"], [" Ada"], id="in other letters"),
        pytest.param({"EUR": 99}, ["Ada Byron", "ada"], ["ada"], id="under the name of the system's user"),
        pytest.param({"EUR": 99}, ["Jos\u00e9"], ["Jose\u0301"], id="an accent that is a character of its own"),
        pytest.param({"EUR": 99}, ["Ada Byron"], ["Ada\u00a0 Byron"], id="another space"),
        pytest.param({"EUR": 99}, ["ada"], ["a\u200bda"], id="a character that nobody sees"),
        pytest.param({"EUR": 99}, ["ada"], ["\uff21\uff44\uff41"], id="wide letters"),
        pytest.param({"EUR": 99}, ["ada"], [], id="nobody agreed"),
        pytest.param({"USD": 1000}, ["ada"], ["ada"], id="a currency without a limit"),
    ],
)
def test_above_the_limit_who_asked_may_not_approve(limits: Any, asked: list[str], agreed: list[str]) -> None:
    rules = contract(four_eyes_above_minor=limits)
    with pytest.raises(OnePersonOnly, match="expected the approval of somebody else"):
        refuse_too_few_people(rules, plan(candidate("a", amount_minor=-100)), asked=asked, agreed=agreed)


@pytest.mark.parametrize(
    ("limits", "asked", "agreed"),
    [
        pytest.param({}, ["ada"], ["bob"], id="a second person"),
        pytest.param({}, ["ada"], ["ada", "bob"], id="the first person's own yes does no harm"),
        pytest.param({}, ["Jos\u00e9"], ["Jose"], id="a second person whose name has no accent"),
        pytest.param({"EUR": 99}, [], ["ada", "bob"], id="two for what nobody asked for"),
        pytest.param({"EUR": 100}, ["ada"], [], id="up to the limit who carries it out answers"),
        pytest.param({"EUR": 100}, ["ada"], ["ada"], id="up to the limit the same"),
    ],
)
def test_a_second_person_may_and_up_to_the_limit_the_same(limits: Any, asked: list[str], agreed: list[str]) -> None:
    refuse_too_few_people(contract(four_eyes_above_minor=limits), plan(candidate("a")), asked=asked, agreed=agreed)


@pytest.mark.parametrize("agreed", [["ada"], ["ada", "Ada "], []])
def test_what_a_machine_asked_for_needs_two_people_above_the_limit(agreed: list[str]) -> None:
    with pytest.raises(OnePersonOnly, match="two people, since no person asked for it"):
        refuse_too_few_people(
            contract(four_eyes_above_minor={"EUR": 99}), plan(candidate("a")), asked=(), agreed=agreed
        )
    refuse_too_few_people(contract(four_eyes_above_minor={"EUR": 100}), plan(candidate("a")), asked=(), agreed=agreed)


def test_only_who_the_contract_names_may_approve_whatever_the_money() -> None:
    named = contract(approvers=["Ada", "bob"], four_eyes_above_minor={"EUR": 100})
    small, large = plan(candidate("a")), plan(candidate("a", amount_minor=101))
    for agreed in ([], ["carol"]):
        told = rf"payouts: {''.join(agreed) or 'nobody'} .*expected one of compensation\.approvers: Ada, bob"
        with pytest.raises(NotAnApprover, match=told):
            refuse_too_few_people(named, small, asked=["ada"], agreed=agreed)
    refuse_too_few_people(named, small, asked=["ada"], agreed=["ada"])
    with pytest.raises(OnePersonOnly):
        refuse_too_few_people(named, large, asked=(), agreed=["ada", "carol"])
    refuse_too_few_people(named, large, asked=(), agreed=["ada", "BOB"])
    assert [may_approve(named, name) for name in ("ADA", "carol")] == [True, False]
    assert not any(may_approve(named, name) for name in ("a\u200bda", "\uff21da"))
    assert may_approve(contract(), "carol")


@pytest.mark.parametrize("amount_minor", [0, 1])
def test_in_a_currency_without_a_limit_no_amount_is_small_enough_for_one_person(amount_minor: int) -> None:
    planned = plan(candidate("a", amount_minor=amount_minor))
    with pytest.raises(OnePersonOnly):
        refuse_too_few_people(contract(four_eyes_above_minor={"USD": 9}), planned, asked=["ada"], agreed=["ada"])
    refuse_too_few_people(contract(four_eyes_above_minor={"EUR": 1}), planned, asked=["ada"], agreed=["ada"])


def test_an_action_is_reopened_by_two_people_and_only_by_who_may_approve() -> None:
    refuse_one_reopener(contract(), asked=["ada", "the user"], agreed="bob")
    refuse_one_reopener(contract(approvers=["bob"]), asked=["ada"], agreed="Bob")
    for asked in (["ada"], ["the user", " Ada"]):
        with pytest.raises(OnePersonOnly, match=f"{asked[-1].strip()}.* asked to reopen the action, and ada agreed"):
            refuse_one_reopener(contract(), asked=asked, agreed="ada")
    with pytest.raises(NotAnApprover, match=r"carol agreed; expected one of compensation\.approvers: bob"):
        refuse_one_reopener(contract(approvers=["bob"]), asked=["ada"], agreed="carol")


def test_amounts_of_both_signs_do_not_hide_each_other_from_the_limit() -> None:
    planned = plan(candidate("a", amount_minor=-80), candidate("b", amount_minor=80))
    assert (planned.money_minor, planned.moved_minor) == ({"EUR": 160}, {"EUR": 160})
    with pytest.raises(OnePersonOnly):
        refuse_too_few_people(contract(four_eyes_above_minor={"EUR": 100}), planned, asked=["ada"], agreed=["ada"])


def too_old(*, approved_in: str = "run", limits: Any = None, **agreed_ages: int) -> str | None:
    """What speaks against people who agreed so many seconds ago, where a yes holds for ten. ada asked."""
    rules = contract(four_eyes_above_minor=limits or {"EUR": 1000}, approval_valid_seconds=10)
    agreed = {name: timedelta(seconds=age) for name, age in agreed_ages.items()}
    return why_too_old(rules, plan(candidate("a")), asked=["ada"], agreed=agreed, approved_in=approved_in)


def test_a_yes_holds_up_to_its_age_and_not_a_second_longer() -> None:
    assert too_old(bob=10) is None
    assert str(too_old(bob=11)).startswith("its approval is 11 s old and holds for 10 s")


def test_where_a_second_person_is_needed_an_old_yes_of_theirs_is_none() -> None:
    assert too_old(limits={"EUR": 1}, ada=1, bob=10) is None
    assert too_old(limits={"EUR": 1}, ada=1, bob=11) is not None


def test_in_a_run_that_asked_somebody_must_have_agreed_and_elsewhere_the_call_is_the_approval() -> None:
    assert str(too_old()).startswith("nobody is on record to have agreed to this plan in run run")
    assert too_old(approved_in="") is None


REJECTED = YesVoided(by="carol", at_utc=NOON, reopened=False)


def test_a_yes_that_was_voided_is_told_as_that_and_by_whom() -> None:
    told = "carol rejected this plan at 2026-03-01 12:00:00 UTC, which voids every yes of before"
    planned = plan(candidate("a"))
    needed: dict[str, Any] = {"asked": ["ada"], "agreed": [], "voided": REJECTED}
    with pytest.raises(OnePersonOnly, match=f"ada asked for it, nobody agreed; {told}; ask again; expected"):
        refuse_too_few_people(contract(four_eyes_above_minor={"EUR": 1}), planned, **needed)
    with pytest.raises(NotAnApprover, match=f"nobody agreed; {told}; ask again; expected one of"):
        refuse_too_few_people(contract(approvers=["bob"]), planned, **needed)
    refuse_too_few_people(contract(four_eyes_above_minor={"EUR": 1000}), planned, **needed)
    in_run: dict[str, Any] = {"asked": ["ada"], "agreed": {}, "approved_in": "R1"}
    reason = why_too_old(contract(), planned, voided=REJECTED, **in_run)
    assert reason == f"{told}, and nobody has agreed since in run R1; start a new run, which asks again"
    assert str(why_too_old(contract(), planned, **in_run)).startswith("nobody is on record to have agreed")
    reopened = YesVoided(by="da\x1bn", at_utc=NOON, reopened=True).sentence
    assert "reopened an action of this plan" in reopened and "\x1b" not in reopened
