"""What an item does to a side is said without leg, kind and DAG, and asked for in the words of older releases too."""

from dataclasses import replace
from hashlib import sha256

import pytest

from tallystick.compensation.effect_words import effect_hashes, is_about_rows, source_hash
from tallystick.compensation.plan import PlanItem, RepairKind
from tallystick.model.finding_names import BreakClass
from tests.planned_items import ITEM

TOPIC_ID, LEDGER = "topic-1", "7400/books/ledger.posting"
REPUBLISH = ITEM
REVERSE = replace(
    REPUBLISH,
    kind=RepairKind.REVERSE,
    reverses="topic:payouts:0:9",
    break_class=BreakClass.DUPLICATE_IN_TOPIC_NEW_SESSION,
)
POST = replace(
    REPUBLISH, kind=RepairKind.POST, posts="topic:payouts:0:9", break_class=BreakClass.MISSING_IN_LEDGER, row_id=""
)
COUNTERPOST = replace(
    REPUBLISH, kind=RepairKind.COUNTERPOST, reverses="ledger:7", break_class=BreakClass.DUPLICATE_IN_LEDGER
)
OURS = (REPUBLISH, REVERSE, POST, COUNTERPOST)
EACH = pytest.mark.parametrize("item", OURS, ids=lambda item: item.kind)


def hashes(item: PlanItem, *, topic_id: str = TOPIC_ID, ledger: str = LEDGER) -> tuple[str, ...]:
    return effect_hashes(item, topic_id=topic_id, ledger=ledger)


def stored(item: PlanItem, *, topic_id: str = TOPIC_ID, ledger: str = LEDGER) -> str:
    return hashes(item, topic_id=topic_id, ledger=ledger)[0]


def hashed(*words: str) -> str:
    return sha256("\x1f".join(words).encode()).hexdigest()


def by_dag(item: PlanItem, *, dag: str = "by_hand") -> PlanItem:
    """The same break, handed over: such an item names no copy."""
    return replace(item, kind=RepairKind.TRIGGER, triggers=dag, reverses="", posts="")


@EACH
def test_two_contracts_that_do_the_same_are_known_whatever_they_call_it(item: PlanItem) -> None:
    """Leg, transaction, money and place of the row are as a contract reads them; a DAG is as it names it."""
    elsewhere = replace(item, leg="paid", transaction_key="13", amount_minor=-250, row_id="8")
    elsewhere = replace(elsewhere, reverses=f"{item.reverses}1" if item.reverses else "")
    same = {stored(one) for one in (item, elsewhere, by_dag(item), by_dag(elsewhere, dag="another"))}
    assert len(same) == 1


@EACH
def test_what_is_done_to_another_key_side_or_way_is_not_the_same(item: PlanItem) -> None:
    others = {
        stored(replace(item, match_key="ev-2")),
        stored(item, topic_id="topic-2", ledger="7400/books/ledger.other"),
    }
    others |= {stored(one) for one in OURS if one is not item}
    assert stored(item) not in others
    assert len(others) == 5


def test_the_other_side_is_no_part_of_it() -> None:
    assert {stored(one, ledger="") == stored(one) for one in (REPUBLISH, REVERSE)} == {True}
    assert {stored(one, topic_id="") == stored(one) for one in (POST, COUNTERPOST)} == {True}


@pytest.mark.parametrize(
    "break_class", [BreakClass.LOST_ACKNOWLEDGED_WRITE, BreakClass.MISROUTED_IN_TOPIC], ids=lambda one: one.value
)
def test_a_dag_for_what_is_not_on_its_topic_adds_an_event(break_class: BreakClass) -> None:
    assert stored(replace(by_dag(REPUBLISH), break_class=break_class)) == stored(REPUBLISH)


def test_nobody_knows_what_a_dag_does_about_any_other_class_or_side() -> None:
    mismatch = replace(by_dag(REPUBLISH), break_class=BreakClass.AMOUNT_MISMATCH)
    words = ("trigger", "by_hand", "amount_mismatch", "payout", "ev-1")
    assert hashes(mismatch) == (hashed(*words),)
    assert stored(by_dag(REPUBLISH), topic_id="") == hashed(*words[:2], "missing_in_topic_never_produced", *words[3:])
    assert stored(by_dag(POST), ledger="") == hashed(*words[:2], "missing_in_ledger", *words[3:])


@pytest.mark.parametrize(
    ("item", "older"),
    [
        (REPUBLISH, ("republish", TOPIC_ID, "payout", "ev-1")),
        (REVERSE, ("reverse", TOPIC_ID, "payout", "ev-1")),
        (POST, ("post", LEDGER, "payout", "ev-1")),
        (COUNTERPOST, ("counterpost", LEDGER, "ledger:7")),
    ],
    ids=lambda one: one.kind if isinstance(one, PlanItem) else "",
)
def test_it_is_asked_for_in_the_words_of_older_releases_too(item: PlanItem, older: tuple[str, ...]) -> None:
    said = {
        RepairKind.REPUBLISH: ("event added", TOPIC_ID),
        RepairKind.REVERSE: ("event taken back", TOPIC_ID),
        RepairKind.POST: ("row added", LEDGER),
        RepairKind.COUNTERPOST: ("row taken back", LEDGER),
    }
    assert hashes(item) == (hashed(*said[item.kind], "ev-1"), hashed(*older))
    handed = ("trigger", "by_hand", item.break_class, "payout", "ev-1")
    if item is not COUNTERPOST:  # of which only the row was known, and a DAG is told of none
        assert hashes(by_dag(item)) == (*hashes(item), hashed(*handed))
    assert hashes(by_dag(item))[-1] == hashed(*handed)


def test_what_changes_rows_needs_to_know_whose() -> None:
    items = (*OURS, *map(by_dag, OURS))
    assert [is_about_rows(one) for one in items] == [False, False, True, True] * 2


def source(
    item: PlanItem, *, topic_id: str = TOPIC_ID, ledger: str = LEDGER, table: str = "books/ledger.posting"
) -> str:
    found = source_hash(item, topic_id=topic_id, ledger=ledger, table=table)
    assert found is not None
    return found


@EACH
def test_what_is_done_by_one_row_or_event_is_the_same_whatever_is_called_its_key(item: PlanItem) -> None:
    as_another = replace(item, match_key="pay-1", transaction_key="13", leg="paid")
    assert source(as_another) == source(item)


@EACH
def test_what_is_done_by_another_row_or_event_or_to_another_side_is_not_the_same(item: PlanItem) -> None:
    another = replace(
        item, row_id="8", reverses=item.reverses and f"{item.reverses}1", posts=item.posts and "topic:p:0:8"
    )
    sides = {RepairKind.COUNTERPOST: {"ledger": "7400/books/ledger.other"}}.get(item.kind, {"topic_id": "topic-2"})
    others = {source(another), source(item, **sides)} | {source(one) for one in OURS if one is not item}
    assert source(item) not in others
    assert len(others) == 5


@pytest.mark.parametrize("item", [REPUBLISH, POST], ids=lambda item: item.kind)
def test_one_row_or_event_may_stand_for_two_of_other_money(item: PlanItem) -> None:
    others = ({"amount_minor": -250}, {"amount_minor": 7}, {"currency": "USD"})
    assert len({source(item), *(source(replace(item, **other)) for other in others)}) == 4


def test_of_what_names_no_row_and_no_event_nobody_knows_by_what_it_is_done() -> None:
    unknown = [source_hash(by_dag(one), topic_id=TOPIC_ID, ledger=LEDGER, table="t") for one in OURS[1:]]
    unknown += [source_hash(one, topic_id=TOPIC_ID, ledger="", table="") for one in (REPUBLISH, POST, COUNTERPOST)]
    assert unknown == [None] * 6
    assert source(by_dag(REPUBLISH)) == source(REPUBLISH)
