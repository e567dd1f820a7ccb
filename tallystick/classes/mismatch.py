"""X1: event and row pair by key, and a compared field differs.

Amounts are compared as integers in minor units, whatever unit they are written in; currencies as text, with their case
or without, as the contract says. A row without a currency, or whose amount is no whole number of minor units, has none
here: it equals no event.
"""

from collections.abc import Iterator

from tallystick.break_class import BreakClass
from tallystick.classes.breaks import break_of
from tallystick.evidence import Evidence
from tallystick.pairing import Copy, Fate, Residue
from tallystick.run_result import Break, ItemSide


def amount_mismatch(evidence: Evidence) -> Iterator[Break]:
    """Same currency, other amount. At stake: the difference."""
    for residue, topic, ledger in _unequal(evidence):
        if topic.currency == ledger.currency:
            story = (
                f"{topic.item_id} says {topic.amount_minor}, "
                f"{ledger.item_id} says {ledger.amount_minor} {ledger.currency} (minor units)."
            )
            yield break_of(
                evidence.contract,
                residue,
                BreakClass.AMOUNT_MISMATCH,
                story,
                amount_minor=abs(topic.amount_minor - ledger.amount_minor),
                evidence=_both(topic, ledger),
            )


def currency_mismatch(evidence: Evidence) -> Iterator[Break]:
    """Another currency, whatever the amounts: they cannot be compared. At stake: the whole amount."""
    for residue, topic, ledger in _unequal(evidence):
        if topic.currency != ledger.currency:
            story = f"{topic.item_id} says {_said(topic)}, {ledger.item_id} says {_said(ledger)} (minor units)."
            yield break_of(
                evidence.contract, residue, BreakClass.CURRENCY_MISMATCH, story, evidence=_both(topic, ledger)
            )


def _unequal(evidence: Evidence) -> Iterator[tuple[Residue, Copy, Copy]]:
    for side in (ItemSide.TOPIC, ItemSide.LEDGER):
        for residue in evidence.residues(Fate.UNEQUAL, side):
            assert residue.partner is not None
            pair = (residue.copy, residue.partner)
            topic, ledger = pair if side is ItemSide.TOPIC else pair[::-1]
            yield residue, topic, ledger


def _said(copy: Copy) -> str:
    return f"{copy.amount_minor} {copy.currency}" if copy.currency else "no whole amount of a currency"


def _both(topic: Copy, ledger: Copy) -> dict[str, object]:
    return {
        "topic": {"at": topic.item_id, "amount_minor": topic.amount_minor, "currency": topic.currency},
        "ledger": {"at": ledger.item_id, "amount_minor": ledger.amount_minor, "currency": ledger.currency},
    }
