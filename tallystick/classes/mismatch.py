"""X1: event and row pair by key, and a compared field differs. Amounts are compared as integers, currencies as text."""

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
            story = (
                f"{topic.item_id} says {topic.amount_minor} {topic.currency}, "
                f"{ledger.item_id} says {ledger.amount_minor} {ledger.currency} (minor units)."
            )
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


def _both(topic: Copy, ledger: Copy) -> dict[str, object]:
    return {
        "topic": {"at": topic.item_id, "amount_minor": topic.amount_minor, "currency": topic.currency},
        "ledger": {"at": ledger.item_id, "amount_minor": ledger.amount_minor, "currency": ledger.currency},
    }
