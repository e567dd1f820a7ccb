"""What is told of a key at one contract is what its books show; which one lost it first follows from all of them."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tallystick.contract.contract import Contract
from tallystick.model.break_history import BreakState, HopState
from tallystick.model.direction import Direction
from tallystick.model.finding_names import BreakClass
from tallystick.model.findings import Break
from tallystick.model.item_reason import read_reason
from tallystick.model.open_item import ItemState, OpenItem
from tallystick.model.verdict import Verdict
from tallystick.store.views.trace_store import SlicePlace, StoredTrace, TracedBreak, TracedCut, TracedItem
from tallystick.tracing.hop import Copy, Hop, HopFacts, Statement, break_state, hop_of, is_silent, trace_of
from tests.stored_books import HOUR, LAST_HOUR, item_of, mismatch, missing, payouts

NAME = payouts().name
MISSING = missing(payouts(), "pay-1", 125_000)
PLACE = f"topic:{payouts().topics[0]}:0:17"


def cut(n: int, verdict: Verdict | None = Verdict.MATCHED, **more: Any) -> TracedCut:
    return TracedCut(
        n=n,
        window_start_utc=LAST_HOUR,
        window_end_utc=LAST_HOUR + HOUR,
        scheduler_run_id=f"run-{n}",
        verdict=verdict,
        **more,
    )


def item(state: ItemState, found: Break = MISSING, **more: Any) -> OpenItem:
    return replace(item_of(found, 3, LAST_HOUR, state), **more)


def broken(*items: OpenItem, found: Break = MISSING, is_repaired: bool = False) -> StoredTrace:
    traced = TracedBreak(item_break=found, cut_n=3, items=items, is_repaired=is_repaired)
    stood = tuple(TracedItem(item=one, cut_n=3) for one in items)
    return StoredTrace(breaks=(traced,), items=stood, newest_judged=cut(9))


def waiting(one: OpenItem) -> StoredTrace:
    return StoredTrace(items=(TracedItem(item=one, cut_n=4),), newest_judged=cut(9))


def facts(stored: StoredTrace = StoredTrace(newest_judged=cut(9)), **more: Any) -> HopFacts:  # noqa: B008  a value
    cuts = {n: cut(n) for n in range(10)}
    return HopFacts(**{"contract": payouts(), "stored": stored, "cuts": cuts, **more})


def copy(place: SlicePlace, **more: Any) -> Copy:
    return Copy(item_id=PLACE, place=place, source="the key index of x/3", **more)


def only(hop: Hop) -> Statement:
    (statement,) = hop.statements
    return statement


@pytest.mark.parametrize(
    ("items", "is_repaired", "expected"),
    [
        ([item(ItemState.BROKEN)], False, BreakState.OPEN),
        ([item(ItemState.BROKEN)], True, BreakState.REPAIR_NOT_CONFIRMED),
        ([item(ItemState.CLEARED, reason=read_reason("its partner came"))], False, BreakState.RESOLVED),
        ([item(ItemState.CLEARED, reason=read_reason("its partner came"))], True, BreakState.REPAIRED),
        ([item(ItemState.CLEARED, reason=read_reason("a compensation took it back"))], False, BreakState.REPAIRED),
        ([item(ItemState.WRITTEN_OFF)], False, BreakState.WRITTEN_OFF),
        ([item(ItemState.UNDECIDABLE)], False, BreakState.UNDECIDABLE),
        ([item(ItemState.BROKEN, break_id=mismatch(payouts(), "pay-7").break_id)], False, BreakState.SUPERSEDED),
        ([], False, BreakState.NOT_TRACKED),
    ],
)
def test_what_has_become_of_a_break_is_what_its_items_say(
    items: list[OpenItem], is_repaired: bool, expected: BreakState
) -> None:
    assert break_state(broken(*items, is_repaired=is_repaired).breaks[0]) is expected


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (ItemState.BROKEN, HopState.BROKEN),
        (ItemState.CLEARED, HopState.CLOSED),
        (ItemState.WRITTEN_OFF, HopState.CLOSED),
        (ItemState.UNDECIDABLE, HopState.UNDECIDABLE),
    ],
)
def test_a_break_is_told_with_its_state_id_and_places_and_its_item_once(state: ItemState, expected: HopState) -> None:
    told = only(hop_of(facts(broken(item(state)))))
    assert (told.state, told.break_id, told.break_class) == (expected, MISSING.break_id, MISSING.break_class)
    assert told.places == ("ledger:1",)
    assert told.cut == cut(3)


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (ItemState.OPEN, HopState.WAITING),
        (ItemState.CLEARED, HopState.MATCHED),
        (ItemState.UNDECIDABLE, HopState.UNDECIDABLE),
        (ItemState.BROKEN, HopState.BROKEN),
        (ItemState.WRITTEN_OFF, HopState.CLOSED),
    ],
)
def test_an_item_without_a_break_of_the_key_is_told_by_its_state(state: ItemState, expected: HopState) -> None:
    one = item(state, cleared_by=PLACE if state is ItemState.CLEARED else "")
    told = only(hop_of(facts(waiting(one))))
    assert told.state is expected
    assert told.places == (("ledger:1", PLACE) if state is ItemState.CLEARED else ("ledger:1",))


@pytest.mark.parametrize(
    ("place", "more", "expected", "words"),
    [
        (SlicePlace(cut_n=3), {}, HopState.MATCHED, "Cut 3 has read it and matched it"),
        (SlicePlace(cut_n=7), {}, HopState.UNPROVEN, "INCONCLUSIVE"),
        (SlicePlace(cut_n=4), {}, HopState.MATCHED, "Cut 4 has read it and matched it"),
        (SlicePlace(cut_n=5), {}, HopState.UNPROVEN, "its run could not see all of its window"),
        (SlicePlace(cut_n=6), {}, HopState.UNPROVEN, "has been pruned"),
        (SlicePlace(cut_n=8), {}, HopState.NOT_JUDGED, "cut 9 is the newest that is judged"),
        (SlicePlace(cut_n=None, is_beyond=True, ends_at=12), {}, HopState.NOT_JUDGED, "ends before 12"),
        (SlicePlace(cut_n=None, is_before=True, ends_at=12), {}, HopState.UNDECIDABLE, "before the contract's first"),
        (SlicePlace(cut_n=None), {}, HopState.NOT_ASKED, "No cut of this contract has read the place"),
        (SlicePlace(cut_n=3), {"is_other_field": True}, HopState.NOT_ASKED, "under another key"),
        (SlicePlace(cut_n=3), {"fate": "aborted"}, HopState.NOT_SEEN, "A record of it is aborted"),
    ],
)
def test_a_copy_is_told_by_the_cut_that_has_read_it(
    place: SlicePlace, more: dict[str, Any], expected: HopState, words: str
) -> None:
    cuts = {n: cut(n) for n in range(10)}
    cuts |= {4: cut(4, Verdict.BROKEN), 5: cut(5, Verdict.BROKEN, has_doubts=True)}
    cuts |= {6: cut(6, is_pruned=True), 7: cut(7, Verdict.INCONCLUSIVE), 8: cut(8, None)}
    told = only(hop_of(facts(copies=(copy(place, **more),), cuts=cuts)))
    assert (told.state, told.places) == (expected, (PLACE,))
    assert words in told.sentence


def test_a_copy_that_an_item_or_a_break_tells_of_is_never_told_as_matched() -> None:
    of_item = item(ItemState.BROKEN, item_id=PLACE)
    in_evidence = replace(MISSING, evidence={"copies": [{"at": PLACE}]})
    for stored in (waiting(of_item), broken(of_item), broken(found=in_evidence), broken(found=in_evidence)):
        assert only(hop_of(facts(stored, copies=(copy(SlicePlace(cut_n=3)),)))).state is HopState.BROKEN
    beside = hop_of(facts(broken(item(ItemState.BROKEN)), copies=(copy(SlicePlace(cut_n=3)),)))
    assert [one.state for one in beside.statements] == [HopState.BROKEN, HopState.MATCHED]
    assert beside.state is HopState.BROKEN


@pytest.mark.parametrize(
    ("more", "expected", "words"),
    [
        ({"index_cuts": (2, 9)}, HopState.NOT_SEEN, "no event of it in what cuts 2 to 9 have read"),
        ({"index_cuts": (2, 9), "index_missing": "cut 4 is lost"}, HopState.NOT_ASKED, "cut 4 is lost"),
        ({}, HopState.NOT_ASKED, "no cut has a key index"),
        ({"looked": ("billing.payouts", "billing.payout")}, HopState.NOT_SEEN, "neither billing.payouts and"),
        ({"index_missing": "gone", "looked": ("x",), "not_looked": ("y: no.",)}, HopState.NOT_ASKED, "gone"),
        ({"stored": StoredTrace()}, HopState.NOT_JUDGED, "No cut of this contract is judged yet"),
        ({"stored": StoredTrace(newest_judged=cut(0))}, HopState.NOT_JUDGED, "beyond its baseline"),
        ({"stored": StoredTrace(newest_judged=cut(1)), "index_cuts": (1, 1)}, HopState.NOT_SEEN, "Up to cut 1"),
    ],
)
def test_not_seen_is_said_only_where_somebody_looked(more: dict[str, Any], expected: HopState, words: str) -> None:
    hop = hop_of(facts(**more))
    assert hop.state is expected
    assert words in hop.statements[0].sentence


def test_what_could_not_be_asked_stands_beside_what_is_known() -> None:
    hop = hop_of(facts(copies=(copy(SlicePlace(cut_n=3)),), not_looked=("shop.booking could not be looked up.",)))
    assert [one.state for one in hop.statements] == [HopState.MATCHED, HopState.NOT_ASKED]
    assert hop.state is HopState.MATCHED
    assert hop_of(facts(replace(broken(), has_more=True))).statements[-1].sentence.startswith("The store has more")


def named(name: str, own: HopFacts, *, way: tuple[str, str] | None = None) -> HopFacts:
    """Under a name of its own. way: the topic it reads and the one it writes; else those of the payouts."""
    changes: dict[str, Any] = {"name": name}
    if way:
        reads, writes = way
        of_topics = own.contract.ledger.model_copy(update={"kind": "topic", "topics": (reads,)})
        changes |= {"direction": Direction.TOPIC_TO_TOPIC, "ledger": of_topics, "legs": {"payment": writes}}
        changes |= {"kafka": own.contract.kafka.model_copy(update={"connection": of_topics.connection})}
    contract: Contract = own.contract.model_copy(update=changes)
    return replace(own, contract=contract)


MATCHED = facts(copies=(copy(SlicePlace(cut_n=3)),))
LOST = facts(broken(item(ItemState.BROKEN)))
NOT_JUDGED = facts(copies=(copy(SlicePlace(cut_n=None, is_beyond=True)),))
NOT_ASKED, NOT_SEEN = facts(), facts(index_cuts=(2, 9))
UNSEEN = "No contract here has seen it, as far back as the key indexes go"


def test_the_first_contract_whose_break_stands_has_lost_it() -> None:
    doubled = replace(MISSING, break_class=BreakClass.DUPLICATE_IN_LEDGER)
    trace = trace_of(
        [
            named("a", MATCHED, way=("in", "one")),
            named("b", LOST, way=("one", "two")),
            named("c", facts(broken(found=doubled)), way=("two", "three")),
            named("d", NOT_JUDGED, way=("two", "four")),
        ]
    )
    assert trace.lost_at == "b"
    assert trace.sentence.startswith("First lost at b: Cut 3 found a break, ")
    assert trace.sentence.endswith("Before it, a had it in order.")


def test_a_contract_before_it_that_cannot_say_makes_the_loss_less_sure() -> None:
    trace = trace_of([named("a", NOT_ASKED, way=("in", "one")), named("b", LOST, way=("one", "two"))])
    assert trace.lost_at == "b"
    assert trace.sentence.endswith("Before it, a (not asked): the cause may lie there.")


def test_a_sibling_is_not_before_it_and_a_break_of_its_own_is_told() -> None:
    lost, silent = (named(name, own, way=("one", name)) for name, own in (("b", LOST), ("a", NOT_JUDGED)))
    assert "Before" not in trace_of([silent, lost]).sentence
    other = named("c", LOST, way=("one", "c"))
    assert trace_of([silent, lost, other]).sentence.endswith("Beside it, c has a break of its own.")


@pytest.mark.parametrize(
    ("break_class", "words"),
    [
        (BreakClass.MISSING_IN_LEDGER, "First lost at"),
        (BreakClass.DUPLICATE_IN_TOPIC_ZOMBIE, "First doubled at"),
        (BreakClass.AMOUNT_MISMATCH, "First changed at"),
        (BreakClass.PHANTOM_IN_LEDGER, "First without an origin at"),
        (BreakClass.OUT_OF_ORDER_IN_TOPIC, "First broken at"),
    ],
)
def test_the_sentence_says_what_happened(break_class: BreakClass, words: str) -> None:
    trace = trace_of([facts(broken(found=replace(MISSING, break_class=break_class)))])
    assert trace.sentence.startswith(f"{words} {NAME}: ")


@pytest.mark.parametrize(
    ("hops", "sentence"),
    [
        (
            {"a": MATCHED, "b": NOT_JUDGED},
            "No run has found a loss: matched or settled at a; not judged yet at b.",
        ),
        ({"a": MATCHED, "b": NOT_SEEN}, "No run has found a loss: matched or settled at a; not seen at b."),
        ({"a": NOT_SEEN, "b": NOT_SEEN}, f"{UNSEEN}."),
        (
            {"a": NOT_SEEN, "b": NOT_ASKED},
            "No contract here has seen it, as far back as the key indexes go; not all could be asked: b.",
        ),
        (
            {"a": facts(broken(item(ItemState.WRITTEN_OFF))), "b": facts(waiting(item(ItemState.OPEN)))},
            "No run has found a loss: matched or settled at a; still in flight at b.",
        ),
    ],
)
def test_without_a_break_nobody_is_named(hops: dict[str, HopFacts], sentence: str) -> None:
    trace = trace_of(named(name, own) for name, own in hops.items())
    assert (trace.sentence, trace.lost_at) == (sentence, None)


def test_windows_are_the_cuts_own() -> None:
    told = only(hop_of(LOST)).cut
    assert told is not None and told.window_end_utc - told.window_start_utc == timedelta(hours=1)


@pytest.mark.parametrize(
    ("hop", "silent"),
    [
        (facts(index_cuts=(2, 9)), True),
        (facts(copies=(copy(SlicePlace(cut_n=3), fate="in a transaction that has not ended"),)), False),
        (facts(), False),
    ],
    ids=["nothing", "an open record", "not asked"],
)
def test_a_chain_is_silent_only_where_it_has_nothing_to_tell(hop: HopFacts, silent: bool) -> None:
    assert is_silent(trace_of([hop])) == silent
