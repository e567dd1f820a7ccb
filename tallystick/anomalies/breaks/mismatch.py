"""X1: event and row pair by key, and a compared field differs.

Amounts are compared as integers in minor units, whatever unit they are written in; currencies as text, with their case
or without, as the contract says. A row whose amount is null, NaN, infinite, fractional or too large has none, and no
currency: it equals no event, and it is the amount that is wrong. One that has an amount lacks its currency alone.

Where the contract compares more columns and the money agrees, each of them that differs is named, with the rule it is
compared by. Of a pair whose money differs, that alone is told.
"""

from collections.abc import Iterator

from tallystick.anomalies.breaks.make_break import break_of, money_json
from tallystick.contract.contract import Contract
from tallystick.contract.equality import LONG_MAX, NO_MONEY
from tallystick.matching.evidence import UnmatchedItems
from tallystick.matching.match_case import Entry, MatchStatus, UnmatchedItem
from tallystick.model.finding_names import BreakClass
from tallystick.model.findings import Break
from tallystick.model.open_item import ItemSide


def amount_mismatch(contract: Contract, unmatched: UnmatchedItems) -> Iterator[Break]:
    """Same currency, other amount. At stake: the difference, or as much of it as a bigint holds."""
    for residue, topic, ledger in _of_other_money(unmatched):
        if topic.currency == ledger.currency or _has_no_amount(ledger):
            story = f"{topic.item_id} says {topic.amount_minor}, {ledger.item_id} says {_said(ledger)} (minor units)."
            yield break_of(
                contract,
                residue,
                BreakClass.AMOUNT_MISMATCH,
                story,
                amount_minor=min(abs(topic.amount_minor - ledger.amount_minor), LONG_MAX),
                currency=topic.currency,
                evidence=_both(topic, ledger),
            )


def currency_mismatch(contract: Contract, unmatched: UnmatchedItems) -> Iterator[Break]:
    """Another currency, whatever the amounts: they cannot be compared. At stake: the whole amount."""
    for residue, topic, ledger in _of_other_money(unmatched):
        if topic.currency != ledger.currency and not _has_no_amount(ledger):
            story = f"{topic.item_id} says {_said(topic)}, {ledger.item_id} says {_said(ledger)} (minor units)."
            yield break_of(contract, residue, BreakClass.CURRENCY_MISMATCH, story, evidence=_both(topic, ledger))


def column_mismatch(contract: Contract, unmatched: UnmatchedItems) -> Iterator[Break]:
    """The same money, and another value in a column that the contract compares. At stake: no money."""
    for residue, topic, ledger in _unequal(unmatched):
        differing = contract.event.compared.differing(topic.compared_text, ledger.compared_text)
        if topic.money == ledger.money and differing:
            named = ", ".join(f"{one.column} ({one.rule})" for one in differing)
            story = f"{topic.item_id} and {ledger.item_id} say the same money, and differ in {named}."
            columns = [
                {"column": one.column, "rule": one.rule, "topic": one.topic, "ledger": one.ledger} for one in differing
            ]
            evidence = _both(topic, ledger) | {"columns": columns}
            yield break_of(contract, residue, BreakClass.COLUMN_MISMATCH, story, amount_minor=0, evidence=evidence)


def _of_other_money(unmatched: UnmatchedItems) -> Iterator[tuple[UnmatchedItem, Entry, Entry]]:
    return (found for found in _unequal(unmatched) if found[1].money != found[2].money)


def _unequal(unmatched: UnmatchedItems) -> Iterator[tuple[UnmatchedItem, Entry, Entry]]:
    for side in (ItemSide.TOPIC, ItemSide.LEDGER):
        for residue in unmatched.of(MatchStatus.UNEQUAL, side):
            assert residue.partner is not None
            pair = (residue.copy, residue.partner)
            topic, ledger = pair if side is ItemSide.TOPIC else pair[::-1]
            yield residue, topic, ledger


def _has_no_amount(row: Entry) -> bool:
    """Return whether a row has no whole number of minor units. Such a row has no currency either."""
    return row.money == NO_MONEY


def _said(copy: Entry) -> str:
    return f"{copy.amount_minor} {copy.currency}" if copy.currency else "no whole amount of a currency"


def _both(topic: Entry, ledger: Entry) -> dict[str, object]:
    return {"topic": money_json(topic), "ledger": money_json(ledger)}
