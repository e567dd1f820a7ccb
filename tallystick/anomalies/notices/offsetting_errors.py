"""X3: items disagree, and the errors that a run found in a currency cancel out, so that their sum shows none of them.

Whether totals agree is another matter: they are those of what this window read, and an error may be of an item that
was carried to it, or beside pairs of two windows. Errors in another currency need not cancel out.
"""

from collections.abc import Iterator
from itertools import chain

from tallystick.matching.evidence import SideTotals, UnmatchedItems
from tallystick.matching.match_case import Entry, MatchStatus, UnmatchedItem
from tallystick.model.finding_names import Notice
from tallystick.model.findings import Money, NoticeFound, total_money
from tallystick.model.open_item import ItemSide
from tallystick.text.money import format_minor

_PROVEN = (
    MatchStatus.FOLLOWER_ABSENT,
    MatchStatus.ORIGIN_ABSENT,
    MatchStatus.ORIGIN_OPEN,
    MatchStatus.EXTRA,
    MatchStatus.UNEQUAL,
    MatchStatus.SUM_DIFFERS,
    MatchStatus.MISROUTED,
)


def offsetting_errors(totals: SideTotals, unmatched: UnmatchedItems) -> Iterator[NoticeFound]:
    """Report currencies in which this run's proven errors, topic minus ledger, add up to exactly nothing.

    An error that both sides share (a copy that the other side followed) changes no difference and is none of them.
    """
    net = total_money(chain.from_iterable(map(_changes, _proven(unmatched))))
    if not any(amount == 0 and currency for currency, amount in net.items()):
        return
    effects = [effect for residue in _proven(unmatched) if (effect := _effect(residue))]
    changed = {currency for effect in effects for currency in effect}
    cancelled = [currency for currency, amount in net.items() if amount == 0 and currency in changed - {""}]
    if cancelled:
        count = sum(any(currency in effect for currency in cancelled) for effect in effects)
        moved = {
            currency: sum(effect[currency] for effect in effects if effect.get(currency, 0) > 0)
            for currency in cancelled
        }
        words = ", ".join(format_minor(amount, currency) for currency, amount in moved.items())
        in_topic = {currency: totals.topic_money.get(currency, 0) for currency in cancelled}
        in_ledger = {currency: totals.ledger_money.get(currency, 0) for currency in cancelled}
        agree = in_topic == in_ledger and all(currency in totals.topic_money for currency in cancelled)
        yield NoticeFound(
            notice=Notice.OFFSETTING_ERRORS,
            sentence=f"{count:,} errors cancel out to the last unit ({words} too much and as much too little on the "
            f"topic){': totals agree and items do not' if agree else ''}.",
            count=count,
            details={
                "errors": count,
                "moved_minor": moved,
                "topic_total_minor": in_topic,
                "ledger_total_minor": in_ledger,
            },
        )


def _proven(unmatched: UnmatchedItems) -> Iterator[UnmatchedItem]:
    for fate in _PROVEN:
        for side in ItemSide.TOPIC, ItemSide.LEDGER:
            yield from unmatched.of(fate, side)


def _effect(residue: UnmatchedItem) -> Money:
    """Return the change that one error makes to topic minus ledger, per currency, without those that it does not
    change.
    """
    return {currency: amount for currency, amount in total_money(_changes(residue)).items() if amount}


def _changes(residue: UnmatchedItem) -> Iterator[tuple[str, int]]:
    """Yield currency and signed amount of an error's copy, and of its partner or its group."""
    for copy in residue.group.copies if residue.group else (residue.copy, residue.partner):
        if copy is not None:
            yield copy.currency, _signed(copy)


def _signed(copy: Entry) -> int:
    return copy.amount_minor if copy.side is ItemSide.TOPIC else -copy.amount_minor
