"""The people who must agree to a plan: how many, and which. Pure; ADR 24 says how we know that it was they.

Pure; ADR 24 says how we know that it was they.
"""

import unicodedata
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from tallystick.compensation.plan import OnePersonOnly, Plan, PlanRefused, rules_of
from tallystick.contract.contract import Contract
from tallystick.text.money import format_money
from tallystick.text.plain import escape_untrusted, format_time
from tallystick.text.verdict_sentence import counted


class NotAnApprover(PlanRefused):
    """Nobody agreed whom the contract's compensation.approvers names."""


@dataclass(frozen=True, kw_only=True)
class YesVoided:
    """The newest act that voids each yes of before: a rejection of the plan, or a reopening of an action of it."""

    by: str
    at_utc: datetime
    reopened: bool

    @property
    def sentence(self) -> str:
        what = "reopened an action of this plan" if self.reopened else "rejected this plan"
        return f"{escape_untrusted(self.by)} {what} at {format_time(self.at_utc)}, which voids every yes of before"


def machine_of(contract_name: str) -> str:
    """Return the name under which a reconciliation asks for a plan by itself; no person."""
    return f"reconcile_{contract_name}"


def why_two_people(contract: Contract, plan: Plan) -> str | None:
    """Return why one person's approval is not enough; None: it is. Raises CompensationOff.

    A plan that ends a transaction needs two, whatever its money: no later run can take that back.
    """
    if plan.aborts:
        return f"it ends {counted(len(plan.aborts), 'transaction')} for good"
    limits = rules_of(contract).four_eyes_above_minor
    above = [currency for currency, money in plan.moved_minor.items() if money > limits.get(currency, -1)]
    if not above:
        return None
    return f"it moves {format_money(plan.moved_minor)}, as compensation.four_eyes_above_minor says for {above[0]}"


def may_approve(contract: Contract, name: str) -> bool:
    """Return whether the contract lets this person agree. Raises CompensationOff."""
    approvers = rules_of(contract).approvers
    return not approvers or _same(name) in map(_same, approvers)


def refuse_too_few_people(
    contract: Contract, plan: Plan, *, asked: Collection[str], agreed: Collection[str], voided: YesVoided | None = None
) -> None:
    """Check who agreed against who asked and who may. Raises CompensationOff, NotAnApprover, OnePersonOnly.

    asked: everybody who asked for it, by each name that they are known by; no machine. agreed: people whose login or
    signature is on record, since it was voided last. Names are equal whatever their case. Where one person is enough
    and the contract names no approvers, agreed may be empty: whoever carries the plan out answers for it.
    """
    approvers = rules_of(contract).approvers
    yes = {_person(name) for name in agreed if may_approve(contract, name)}
    again = f"; {voided.sentence}; ask again" if voided else ""
    if approvers and not yes:
        raise NotAnApprover(
            f"{contract.name}: {_names(agreed)} agreed{again}; expected one of compensation.approvers: "
            f"{_names(approvers)}"
        )
    reason = why_two_people(contract, plan)
    if reason is None:
        return
    askers = set(map(_person, asked))
    others = yes - askers
    if others and (askers or len(others) > 1):
        return
    expected = "somebody else" if askers else "two people, since no person asked for it"
    raise OnePersonOnly(
        f"{contract.name}: this plan needs two people: {reason}. {_names(asked)} asked for it, {_names(agreed)} "
        f"agreed{again}; expected the approval of {expected}: in Airflow, or signed, as tallystick compensation "
        "sheet explains"
    )


def approval_holds(contract: Contract, age: timedelta) -> bool:
    """Return whether an approval of this age still holds. Raises CompensationOff."""
    return age <= timedelta(seconds=rules_of(contract).approval_valid_seconds)


def why_too_old(
    contract: Contract,
    plan: Plan,
    *,
    asked: Collection[str],
    agreed: Mapping[str, timedelta],
    approved_in: str,
    voided: YesVoided | None = None,
) -> str | None:
    """Return why the approval is too old; None: it is not. Raises CompensationOff.

    To be asked once refuse_too_few_people lets them all count. approved_in: the scheduler's run in which they agreed;
    "": none, and where nobody needs to agree, the call that carries the plan out is the approval.
    """
    if approved_in and not agreed and voided:
        return f"{voided.sentence}, and nobody has agreed since in run {approved_in}; start a new run, which asks again"
    if approved_in and not agreed:
        return f"nobody is on record to have agreed to this plan in run {approved_in}; start a new run, which asks"
    holding = {name for name, age in agreed.items() if approval_holds(contract, age)}
    try:
        refuse_too_few_people(contract, plan, asked=asked, agreed=holding)
    except (NotAnApprover, OnePersonOnly):
        enough = False
    else:
        enough = bool(holding) or not approved_in
    if enough:
        return None
    oldest = max(agreed.values())
    return (
        f"its approval is {int(oldest.total_seconds())} s old and holds for "
        f"{rules_of(contract).approval_valid_seconds} s, as compensation.approval_valid_seconds says; start a new run, "
        "which asks again"
    )


def refuse_one_reopener(contract: Contract, *, asked: Collection[str], agreed: str) -> None:
    """Require two people to reopen an action, whatever its money.

    Raises CompensationOff, NotAnApprover, OnePersonOnly.
    """
    if not may_approve(contract, agreed):
        raise NotAnApprover(
            f"{contract.name}: {_names([agreed])} agreed; expected one of compensation.approvers: "
            f"{_names(rules_of(contract).approvers)}"
        )
    if _person(agreed) in map(_person, asked):
        raise OnePersonOnly(
            f"{contract.name}: {_names(asked)} asked to reopen the action, and {_names([agreed])} agreed; expected "
            "the signature of somebody else"
        )


def _same(name: str) -> str:
    return name.strip().casefold()


def _person(name: str) -> str:
    """Return a name equal for all that look the same: nobody counts twice. Wider than `_same`, which
    admits a person.
    """
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    return "".join(character for character in folded if character.isprintable() and not character.isspace())


def _names(names: Collection[str]) -> str:
    return ", ".join(sorted(map(escape_untrusted, names))) or "nobody"
