"""The age of open items: counts and money per bucket of age, as of the cut's now. Pure.

Counts what waits and what is broken; not what was cleared, written off or cannot be decided.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from tallystick.model.findings import Money, total_money
from tallystick.model.open_item import BUCKETS, ItemState, ItemTotal


@dataclass(frozen=True, kw_only=True)
class AgeTotals:
    """Items of one state. money: of those whose amount is known; unknown: how many have none."""

    count: int
    money: Money
    unknown: int = 0


@dataclass(frozen=True, kw_only=True)
class AgeBucket:
    """The open items of one age."""

    words: str
    waiting: AgeTotals
    broken: AgeTotals


def age_buckets(items: Iterable[ItemTotal], *, now_utc: datetime) -> tuple[AgeBucket, ...]:
    """Every bucket in order, empty ones too; none at all where no item stands. Age: since it was first seen."""
    groups: dict[str, list[ItemTotal]] = {words: [] for words, _ in BUCKETS}
    for group in items:
        groups[_bucket(now_utc - group.first_seen_utc)].append(group)
    if not any(groups.values()):
        return ()
    return tuple(_age_bucket(words, found) for words, found in groups.items())


def all_ages(buckets: Iterable[AgeBucket]) -> AgeBucket:
    """The sum of buckets."""
    every = tuple(buckets)
    return AgeBucket(
        words="all",
        waiting=_sum(bucket.waiting for bucket in every),
        broken=_sum(bucket.broken for bucket in every),
    )


def _bucket(age: timedelta) -> str:
    return next(words for words, end in BUCKETS if age < end)


def _age_bucket(words: str, groups: list[ItemTotal]) -> AgeBucket:
    return AgeBucket(
        words=words,
        waiting=_sum(_standing(group) for group in groups if group.state is ItemState.OPEN),
        broken=_sum(_standing(group) for group in groups if group.state is ItemState.BROKEN),
    )


def _standing(group: ItemTotal) -> AgeTotals:
    if not group.currency:
        return AgeTotals(count=group.count, money={}, unknown=group.count)
    return AgeTotals(count=group.count, money={group.currency: group.amount_minor})


def _sum(parts: Iterable[AgeTotals]) -> AgeTotals:
    every = tuple(parts)
    return AgeTotals(
        count=sum(part.count for part in every),
        money=total_money(amount for part in every for amount in part.money.items()),
        unknown=sum(part.unknown for part in every),
    )
