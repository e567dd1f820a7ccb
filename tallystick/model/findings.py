"""The findings of a run: breaks, doubts and notices."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid5

from tallystick.model.finding_names import BreakClass, Doubt, Notice

_BREAK_NAMESPACE = UUID("5a1d6f0e-6a55-5c07-9d3f-3c1f6a2b9e71")


_SEPARATOR = "\x1f"


Money = Mapping[str, int]
"""Currency to integer minor units."""


def break_id(*, contract: str, break_class: BreakClass, match_key: str, position: str) -> UUID:
    """The same break has the same id in every run that finds it. Position: where the odd copy stands.

    A key or a row id that holds what separates the parts could pass for other parts: then they are quoted.
    """
    parts = (contract, break_class, match_key, position)
    separated = all(_SEPARATOR not in part for part in parts)
    return uuid5(_BREAK_NAMESPACE, _SEPARATOR.join(parts) if separated else json.dumps(parts))


@dataclass(frozen=True, slots=True, kw_only=True)
class Break:
    """A proven disagreement about one match key.

    amount_minor is the money at stake of all `copies`, with the sign of the event or row; 0 with currency "" where
    nobody can say. Sums of several have no signs.
    evidence: JSON values only; offsets, producer ids, markers, row ids; no payload beyond the compared fields. Of a
    judged run a PackedJson.
    """

    break_id: UUID
    break_class: BreakClass
    match_key: str
    transaction_key: str
    leg: str
    amount_minor: int
    currency: str
    copies: int
    story: str
    evidence: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class DoubtFound:
    """A reason why the run is not conclusive, in one sentence, with the figures behind it."""

    doubt: Doubt
    sentence: str
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class NoticeFound:
    """An observation that changes no verdict: how often it was seen, in one sentence, with the figures. pages: on-call
    is alerted now.
    """

    notice: Notice
    sentence: str
    count: int = 1
    pages: bool = False
    details: Mapping[str, Any] = field(default_factory=dict)


def total_money(amounts: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Sum minor units per currency, currencies in order."""
    totals: dict[str, int] = {}
    for currency, amount_minor in amounts:
        totals[currency] = totals.get(currency, 0) + amount_minor
    return dict(sorted(totals.items()))


def total_at_stake(amounts: Iterable[tuple[str, int]]) -> dict[str, int]:
    """The same without signs: a refund that is missing makes a payment that is missing no smaller."""
    return total_money((currency, abs(amount_minor)) for currency, amount_minor in amounts if currency)


def negative_at_stake(amounts: Iterable[tuple[str, int]]) -> dict[str, int]:
    """The part of `total_at_stake` that amounts below zero make up, such as refunds; without their sign."""
    return total_at_stake((currency, amount_minor) for currency, amount_minor in amounts if amount_minor < 0)


def money_at_stake(breaks: Iterable[Break]) -> dict[str, int]:
    """Money of all breaks per currency, without signs."""
    return total_at_stake((item_break.currency, item_break.amount_minor) for item_break in breaks)


def largest_first(item_break: Break) -> tuple[int, str, str]:
    """A sort key: by the money at stake, whatever its sign."""
    return -abs(item_break.amount_minor), item_break.match_key, str(item_break.break_id)


@dataclass(frozen=True, kw_only=True)
class Stake:
    """Money at stake of one class in one currency. currency "": nobody can say."""

    break_class: BreakClass
    currency: str
    amount_minor: int
    count: int


def sort_stakes(found: Iterable[Stake]) -> tuple[Stake, ...]:
    """Sort by currency, the largest first; stakes without an amount come last."""
    return tuple(sorted(found, key=lambda one: (not one.currency, one.currency, -one.amount_minor, one.break_class)))
