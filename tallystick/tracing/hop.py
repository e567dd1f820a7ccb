"""Tells what is known of a key at one contract, and which contract of a chain lost it first. Pure.

Nothing is said that no stored row, index or look-up shows. A cut that proves its books accounts for all that it read:
what it read and has neither as a break nor as an item, it matched. Not found is one thing, not asked another.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from tallystick.contract.contract import Contract
from tallystick.host.packed_json import unpacked_json
from tallystick.model.break_history import BreakState, HopState
from tallystick.model.finding_names import SURPLUS_CLASSES, BreakClass
from tallystick.model.item_reason import ReasonCode
from tallystick.model.open_item import ItemState
from tallystick.model.verdict import Verdict
from tallystick.store.views.trace_store import SlicePlace, StoredTrace, TracedBreak, TracedCut, TracedItem
from tallystick.text.finding_guide import BREAK_TEXTS
from tallystick.text.plain import format_window
from tallystick.text.reason_texts import reason_text
from tallystick.text.side_terms import for_inputs
from tallystick.tracing.chain import upstream_of

_GRAVEST = (
    HopState.BROKEN,
    HopState.WAITING,
    HopState.UNDECIDABLE,
    HopState.UNPROVEN,
    HopState.CLOSED,
    HopState.MATCHED,
    HopState.NOT_JUDGED,
    HopState.NOT_ASKED,
    HopState.NOT_SEEN,
)
"""Of several statements the first of these is the hop's state."""
_PASSED = (HopState.MATCHED, HopState.CLOSED)
_LOST = frozenset(
    {
        BreakClass.MISSING_IN_TOPIC_NEVER_PRODUCED,
        BreakClass.MISSING_IN_TOPIC_ABORTED_ONLY,
        BreakClass.LOST_ACKNOWLEDGED_WRITE,
        BreakClass.MISROUTED_IN_TOPIC,
        BreakClass.MISSING_IN_LEDGER,
        BreakClass.TORN_TRANSACTION,
        BreakClass.TORN_BY_PROTOCOL,
    }
)
_CHANGED = frozenset(
    {
        BreakClass.AMOUNT_MISMATCH,
        BreakClass.CURRENCY_MISMATCH,
        BreakClass.COLUMN_MISMATCH,
        BreakClass.GROUP_SUM_MISMATCH,
    }
)
_WITHOUT_ORIGIN = frozenset(
    {
        BreakClass.PHANTOM_IN_TOPIC,
        BreakClass.PHANTOM_IN_LEDGER,
        BreakClass.FOREIGN_IN_TOPIC,
        BreakClass.ABORTED_READ_IN_LEDGER,
        BreakClass.OPEN_READ_IN_LEDGER,
    }
)
_STATE_WORDS: Mapping[BreakState, str] = {
    BreakState.OPEN: "is open",
    BreakState.REPAIR_NOT_CONFIRMED: "has a repair that no later run has confirmed yet",
    BreakState.REPAIRED: "is repaired",
    BreakState.RESOLVED: "is resolved",
    BreakState.SUPERSEDED: "was followed by another break of the same item",
    BreakState.WRITTEN_OFF: "is written off",
    BreakState.UNDECIDABLE: "can no longer be decided",
    BreakState.NOT_TRACKED: "stands as it was found; no item follows it",
}
_STANDS = (BreakState.OPEN, BreakState.REPAIR_NOT_CONFIRMED, BreakState.NOT_TRACKED)


@dataclass(frozen=True, kw_only=True)
class Copy:
    """A copy of the key, by its item id, and where it lies among the slices of the contract asked about.

    source: who has seen it there. is_other_field: the contract reads its key from another field of that topic.
    fate: of a record that is not committed, in words; else "".
    """

    item_id: str
    place: SlicePlace
    source: str
    is_other_field: bool = False
    fate: str = ""


@dataclass(frozen=True, kw_only=True)
class HopFacts:
    """All that was found of the key at one contract. cuts: those that the copies' places name.

    index_cuts: first and last cut whose key index was asked; None: there is none. index_missing: why not all of it
    could be asked, or "". looked: places that were asked just now. not_looked: places that could not be, with why.
    """

    contract: Contract
    stored: StoredTrace
    copies: tuple[Copy, ...] = ()
    cuts: Mapping[int, TracedCut] = field(default_factory=dict)
    index_cuts: tuple[int, int] | None = None
    index_missing: str = ""
    looked: tuple[str, ...] = ()
    not_looked: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Statement:
    """One thing that is known, with its evidence. places: item ids. cut: whose run says so."""

    state: HopState
    sentence: str
    cut: TracedCut | None = None
    places: tuple[str, ...] = ()
    break_id: UUID | None = None
    break_class: BreakClass | None = None
    break_state: BreakState | None = None


@dataclass(frozen=True, kw_only=True)
class Hop:
    """One contract of a chain, with all that is known of the key there."""

    contract: Contract
    state: HopState
    statements: tuple[Statement, ...]


@dataclass(frozen=True, kw_only=True)
class Trace:
    """A key's way along one chain. lost_at: the first contract whose break stands; None: no run has found one."""

    hops: tuple[Hop, ...]
    sentence: str
    lost_at: str | None


def trace_of(facts: Iterable[HopFacts]) -> Trace:
    """Return the way along a chain, whose contracts come in order."""
    hops = tuple(map(hop_of, facts))
    lost_at = next((hop.contract.name for hop in hops if hop.state is HopState.BROKEN), None)
    return Trace(hops=hops, sentence=_sentence(hops), lost_at=lost_at)


def hop_of(facts: HopFacts) -> Hop:
    """Return what is known at one contract."""
    statements = [*_of_breaks(facts), *_of_items(facts), *_of_copies(facts)]
    if facts.stored.has_more:
        statements.append(
            Statement(state=HopState.NOT_ASKED, sentence="The store has more of this key than a trace reads.")
        )
    if not statements:
        statements.append(_of_nothing(facts))
    statements += [Statement(state=HopState.NOT_ASKED, sentence=sentence) for sentence in facts.not_looked]
    state = min((one.state for one in statements), key=_GRAVEST.index)
    return Hop(contract=facts.contract, state=state, statements=tuple(statements))


def is_silent(trace: Trace) -> bool:
    """Return whether no contract of the chain has anything to tell: no copy either that is aborted, or open still."""
    every = [one for hop in trace.hops for one in hop.statements]
    return all(one.state is HopState.NOT_SEEN and not one.places for one in every)


def break_state(traced: TracedBreak) -> BreakState:
    """Return what has become of a break, by the newest rows of its items."""
    if not traced.items:
        return BreakState.NOT_TRACKED
    states = {item.state for item in traced.items}
    answers = [item for item in traced.items if item.break_id == traced.item_break.break_id]
    if any(item.state is ItemState.BROKEN for item in answers):
        return BreakState.REPAIR_NOT_CONFIRMED if traced.is_repaired else BreakState.OPEN
    if ItemState.BROKEN in states:
        return BreakState.SUPERSEDED
    if ItemState.WRITTEN_OFF in states:
        return BreakState.WRITTEN_OFF
    if ItemState.UNDECIDABLE in states or ItemState.OPEN in states:
        return BreakState.UNDECIDABLE
    taken_back = any(item.reason.code is ReasonCode.TAKEN_BACK for item in traced.items)
    return BreakState.REPAIRED if traced.is_repaired or taken_back else BreakState.RESOLVED


def _of_breaks(facts: HopFacts) -> Iterator[Statement]:
    for traced in facts.stored.breaks:
        found, state = traced.item_break, break_state(traced)
        yield Statement(
            state=HopState.BROKEN
            if state in _STANDS
            else HopState.UNDECIDABLE
            if state is BreakState.UNDECIDABLE
            else HopState.CLOSED,
            sentence=f"Cut {traced.cut_n} found a break, {_title(facts.contract, found.break_class)}; it "
            f"{_STATE_WORDS[state]}.",
            cut=facts.cuts.get(traced.cut_n),
            places=tuple(dict.fromkeys([*(item.item_id for item in traced.items), *_places_in(found.evidence)])),
            break_id=found.break_id,
            break_class=found.break_class,
            break_state=state,
        )


def _of_items(facts: HopFacts) -> Iterator[Statement]:
    """Items that no break of the key tells of."""
    told = {item.item_id for traced in facts.stored.breaks for item in traced.items}
    for traced in facts.stored.items:
        if traced.item.item_id not in told:
            yield _of_item(facts, traced)


def _of_item(facts: HopFacts, traced: TracedItem) -> Statement:
    item, n = traced.item, traced.cut_n
    words = reason_text(item.reason)
    partner = (item.cleared_by,) if item.cleared_by else ()
    match item.state:
        case ItemState.CLEARED:
            state, sentence = (
                HopState.MATCHED,
                f"It waited since cut {item.first_seen_cut}; cut {n} matched it: {words}.",
            )
        case ItemState.OPEN:
            state, sentence = HopState.WAITING, f"It is in flight since cut {item.first_seen_cut}: {words}."
        case ItemState.UNDECIDABLE:
            state, sentence = HopState.UNDECIDABLE, f"Cut {n} cannot decide it: {words}."
        case ItemState.BROKEN:
            state, sentence = HopState.BROKEN, f"Cut {n} has it as broken: {words}."
        case ItemState.WRITTEN_OFF:
            state, sentence = HopState.CLOSED, "It is written off."
    return Statement(
        state=state,
        sentence=sentence,
        cut=facts.cuts.get(n),
        places=(item.item_id, *partner),
        break_id=item.break_id,
        break_class=item.found_as,
    )


def _of_copies(facts: HopFacts) -> Iterator[Statement]:
    """Copies that neither a break nor an item tells of."""
    stored = facts.stored
    told = {place for traced in stored.breaks for place in _places_in(traced.item_break.evidence)}
    told |= {item.item_id for traced in stored.breaks for item in traced.items}
    told |= {name for traced in stored.items for name in (traced.item.item_id, traced.item.cleared_by)}
    for copy in facts.copies:
        if copy.item_id not in told:
            yield _of_copy(facts, copy)


def _of_copy(facts: HopFacts, copy: Copy) -> Statement:
    cut = facts.cuts.get(copy.place.cut_n) if copy.place.cut_n is not None else None
    state, sentence = _fate_of_copy(copy, cut, facts.stored.newest_judged)
    return Statement(state=state, sentence=f"{sentence} Seen by {copy.source}.", cut=cut, places=(copy.item_id,))


def _fate_of_copy(copy: Copy, cut: TracedCut | None, newest: TracedCut | None) -> tuple[HopState, str]:
    place = copy.place
    if copy.fate:
        return HopState.NOT_SEEN, f"A record of it is {copy.fate}, so no cut counts it."
    if place.is_before:
        return HopState.UNDECIDABLE, "It lies before the contract's first cut, of which nothing is judged."
    if place.cut_n is None and not place.is_beyond:
        return HopState.NOT_ASKED, "No cut of this contract has read the place where it lies."
    if cut is None or cut.verdict is None:
        end = "" if place.ends_at is None else f"; what is cut so far ends before {place.ends_at}"
        judged = "no cut is judged yet" if newest is None else f"cut {newest.n} is the newest that is judged"
        return HopState.NOT_JUDGED, f"It is not judged yet: {judged}{end}."
    if copy.is_other_field:
        return HopState.NOT_ASKED, (
            f"Cut {cut.n} has read the event. This contract takes its key from another field, so that what became of "
            "it stands under another key."
        )
    if cut.is_pruned:
        return HopState.UNPROVEN, f"Cut {cut.n} has read it; what that run found has been pruned."
    if cut.verdict is Verdict.INCONCLUSIVE or cut.has_doubts:
        unproven = "is INCONCLUSIVE" if cut.verdict is Verdict.INCONCLUSIVE else "could not see all of its window"
        return HopState.UNPROVEN, f"Cut {cut.n} has read it and has no break of it, and its run {unproven}."
    return HopState.MATCHED, f"Cut {cut.n} has read it and matched it: it has neither a break nor an open item of it."


def _of_nothing(facts: HopFacts) -> Statement:
    newest, looked = facts.stored.newest_judged, " and ".join(facts.looked)
    now = f" Just now neither {looked} had it." if len(facts.looked) > 1 else f" {looked} has none." if looked else ""
    if newest is None or newest.n == 0:
        sentence = f"No cut of this contract is judged yet, beyond its baseline.{now}"
        return Statement(state=HopState.NOT_JUDGED, sentence=sentence)
    stored = f"Up to cut {newest.n} there is no break and no item of it"
    if facts.index_cuts and not facts.index_missing:
        first, last = facts.index_cuts
        sentence = f"{stored}, and no event of it in what cuts {first} to {last} have read.{now}"
        return Statement(state=HopState.NOT_SEEN, sentence=sentence, cut=newest)
    why = facts.index_missing or "no cut has a key index"
    if facts.looked and not facts.not_looked:
        sentence = f"{stored}.{now} What the log does not retain cannot be looked up: {why}."
        return Statement(state=HopState.NOT_SEEN, sentence=sentence, cut=newest)
    sentence = f"{stored}. Whether a cut has read an event of it cannot be looked up: {why}.{now}"
    return Statement(state=HopState.NOT_ASKED, sentence=sentence, cut=newest)


def _sentence(hops: Sequence[Hop]) -> str:
    """Say which contract lost it first, or what else is known."""
    for hop in hops:
        if hop.state is HopState.BROKEN:
            return _loss(hop, hops)
    states = {hop.state for hop in hops}
    if states <= {HopState.NOT_SEEN, HopState.NOT_ASKED}:
        unasked = _names(hops, HopState.NOT_ASKED)
        return (
            f"No contract here has seen it, as far back as the key indexes go; not all could be asked: {unasked}."
            if unasked
            else ("No contract here has seen it, as far back as the key indexes go.")
        )
    parts = []
    passed = _names(hops, *_PASSED)
    if passed:
        parts.append(f"matched or settled at {passed}")
    for state, words in (
        (HopState.WAITING, "still in flight at {}"),
        (HopState.NOT_JUDGED, "not judged yet at {}"),
        (HopState.UNDECIDABLE, "not decidable at {}"),
        (HopState.UNPROVEN, "read and not proven at {}"),
        (HopState.NOT_SEEN, "not seen at {}"),
        (HopState.NOT_ASKED, "not told by {}"),
    ):
        if names := _names(hops, state):
            parts.append(words.format(names))
    return f"No run has found a loss: {'; '.join(parts)}."


def _loss(hop: Hop, hops: Sequence[Hop]) -> str:
    """Say what the first one has, and what the ones before it in the event's way say; a sibling proves nothing."""
    chain = [one.contract for one in hops]
    above = upstream_of(hop.contract, chain)
    before = [one for one in hops if one.contract.name in above]
    beside = [
        one
        for one in hops
        if one.state is HopState.BROKEN and one is not hop and hop.contract.name not in upstream_of(one.contract, chain)
    ]
    first = next(one for one in hop.statements if one.state is HopState.BROKEN)
    name, unsure = hop.contract.name, [one for one in before if one.state not in _PASSED]
    end = ""
    if unsure:
        told = ", ".join(f"{one.contract.name} ({one.state.replace('_', ' ')})" for one in unsure)
        end = f" Before it, {told}: the cause may lie there."
    elif before:
        end = f" Before it, {', '.join(one.contract.name for one in before)} had it in order."
    if beside:
        end += f" Beside it, {', '.join(one.contract.name for one in beside)} has a break of its own."
    return f"{_verb(first.break_class)} {name}: {first.sentence}{end}"


def _verb(break_class: BreakClass | None) -> str:
    if break_class in _LOST:
        return "First lost at"
    if break_class in SURPLUS_CLASSES:
        return "First doubled at"
    if break_class in _CHANGED:
        return "First changed at"
    if break_class in _WITHOUT_ORIGIN:
        return "First without an origin at"
    return "First broken at"


def _names(hops: Iterable[Hop], *states: HopState) -> str:
    return ", ".join(hop.contract.name for hop in hops if hop.state in states)


def _title(contract: Contract, break_class: BreakClass) -> str:
    words = for_inputs if contract.input_topics else str
    return words(BREAK_TEXTS[break_class].title).lower()


def _places_in(evidence: Any) -> list[str]:
    """Item ids that stand anywhere in a break's evidence."""
    if isinstance(evidence, str):
        return [evidence] if evidence.startswith(("topic:", "ledger:")) else []
    if isinstance(evidence, Mapping):
        return [place for value in unpacked_json(evidence).values() for place in _places_in(value)]
    if isinstance(evidence, list | tuple):
        return [place for value in evidence for place in _places_in(value)]
    return []


def window_of(cut: TracedCut) -> str:
    """Return the cut's window in words."""
    return format_window(cut.window_start_utc, cut.window_end_utc)
