"""The words for what an item does to a side, by which a store knows that another contract does the same. Pure.

A topic goes by its id, a table by its database. Neither leg nor kind of repair is said: each contract words its legs as
it likes, and one may hand to a DAG what another one publishes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

from tallystick.compensation.plan import PlanItem, RepairKind
from tallystick.contract.compensation import COUNTERPOSTABLE, MISSING_EVENTS, POSTABLE, REVERSIBLE
from tallystick.model.finding_names import BreakClass

_NOT_ON_ITS_TOPIC = (*MISSING_EVENTS, BreakClass.MISROUTED_IN_TOPIC)
_SAID = {
    RepairKind.REPUBLISH: "event added",
    RepairKind.REVERSE: "event taken back",  # whichever copy: one must be left
    RepairKind.POST: "row added",
    RepairKind.COUNTERPOST: "row taken back",
}


@dataclass(frozen=True, kw_only=True)
class Effect:
    """One item's effect on a side. hashes: as `effect_hashes` has them. source: as `source_hash` has it."""

    hashes: Sequence[str]
    source: str | None


def effect_of(item: PlanItem, *, topic_id: str, ledger: str, table: str) -> Effect:
    """Return both of an item."""
    return Effect(
        hashes=effect_hashes(item, topic_id=topic_id, ledger=ledger),
        source=source_hash(item, topic_id=topic_id, ledger=ledger, table=table),
    )


def effect_hashes(item: PlanItem, *, topic_id: str, ledger: str) -> tuple[str, ...]:
    """Return SHA-256 of the words, as hexadecimal: first of those that are stored now, then of those that older
    releases have stored.

    topic_id: of the item's topic; "" where it has none. ledger: database and table; "" where nobody can say.
    """
    words = (_words(item, topic_id, ledger), *_older_words(item, topic_id, ledger))
    return tuple(dict.fromkeys(map(_hashed, words)))


def source_hash(item: PlanItem, *, topic_id: str, ledger: str, table: str) -> str | None:
    """Return SHA-256 of what the item does, and of what it does that by: the row or the event that it is made from or
    takes back, whatever columns a contract calls its match key. None where the item names neither.

    topic_id, ledger: as in `effect_hashes`. table: the one that rows are read from, in words that are the same in
    every contract. Money is said since one row may stand for two events, such as a debit and a credit.
    """
    money = (str(item.amount_minor), item.currency)
    words: tuple[str, ...]
    match kind := _kind_of_ours(item):
        case RepairKind.REPUBLISH if item.row_id and table:
            words = (_SAID[kind], topic_id, table, item.row_id, *money)
        case RepairKind.REVERSE if item.reverses:
            words = (_SAID[kind], topic_id, item.reverses)
        case RepairKind.POST if item.posts and ledger:
            words = (_SAID[kind], ledger, topic_id, item.posts, *money)
        case RepairKind.COUNTERPOST if item.reverses and ledger:
            words = (_SAID[kind], ledger, item.reverses)
        case _:
            return None
    return _hashed(words)


def is_about_rows(item: PlanItem) -> bool:
    """Return whether the ledger is the side that the item changes."""
    return _kind_of_ours(item) in (RepairKind.POST, RepairKind.COUNTERPOST)


def _hashed(words: tuple[str, ...]) -> str:
    return sha256("\x1f".join(words).encode()).hexdigest()


def _words(item: PlanItem, topic_id: str, ledger: str) -> tuple[str, ...]:
    kind, side = _kind_of_ours(item), ledger if is_about_rows(item) else topic_id
    if kind is RepairKind.TRIGGER or (item.kind is RepairKind.TRIGGER and not side):
        return _of_dag(item)
    return _SAID[kind], side, item.match_key


def _older_words(item: PlanItem, topic_id: str, ledger: str) -> tuple[tuple[str, ...], ...]:
    """They named kind, leg and DAG; what is handed to a DAG now may have been repaired without one then."""
    dag = (_of_dag(item),) if item.kind is RepairKind.TRIGGER else ()
    match kind := _kind_of_ours(item):
        case RepairKind.REPUBLISH | RepairKind.REVERSE:
            return (kind, topic_id, item.leg, item.match_key), *dag
        case RepairKind.POST:
            return (kind, ledger, item.leg, item.match_key), *dag
        case RepairKind.COUNTERPOST:
            return (kind, ledger, item.reverses), *dag
        case RepairKind.TRIGGER:
            return dag


def _of_dag(item: PlanItem) -> tuple[str, ...]:
    return item.kind, item.triggers, item.break_class, item.leg, item.match_key


def _kind_of_ours(item: PlanItem) -> RepairKind:
    """Return the kind that does the same without a DAG; TRIGGER where none does."""
    if item.kind is not RepairKind.TRIGGER:
        return item.kind
    if item.break_class in _NOT_ON_ITS_TOPIC:
        return RepairKind.REPUBLISH
    if item.break_class in REVERSIBLE:
        return RepairKind.REVERSE
    if item.break_class in POSTABLE:
        return RepairKind.POST
    return RepairKind.COUNTERPOST if item.break_class in COUNTERPOSTABLE else RepairKind.TRIGGER
