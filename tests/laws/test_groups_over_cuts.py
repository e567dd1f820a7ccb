"""Many to one, whatever the order of parts and wholes and wherever the cuts fall: what adds up is done, once."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.model.finding_names import BreakClass
from tallystick.model.open_item import ItemState
from tests.unit.builders import L2T, LAW, T2L
from tests.unit.in_memory_books import Books

KEYS = ("one", "two", "three")
MANY = st.sampled_from(["events", "rows"])
DIRECTIONS = st.sampled_from([L2T, T2L])
Group = tuple[str, list[int]]
"""A key, and the amounts of its parts: above zero, so that no few of them make the sum."""


def groups_of(dice: Random) -> list[Group]:
    return [(key, [dice.randint(1, 9) for _ in range(dice.randint(1, 4))]) for key in KEYS]


def play(books: Books, dice: Random, groups: list[Group], *, lost: str = "", doubled: str = "") -> None:
    """Write all in any order, with cuts among it, each a grace after the one before; then cut with nothing held.

    lost, doubled: the key of which one part is not written, or is written twice.
    """
    part, whole = (books.write, books.post) if books.many_to_one == "events" else (books.post, books.write)
    writes = [(whole, key, sum(amounts)) for key, amounts in groups]
    writes += [(part, key, amount) for key, amounts in groups for amount in amounts[1 if key == lost else 0 :]]
    writes += [(part, key, amounts[0]) for key, amounts in groups if key == doubled]
    dice.shuffle(writes)
    books.begin()
    for write, key, amount_minor in writes:
        write(key, amount_minor)
        if dice.random() < 0.3:
            books.run(held_offsets=dice.choice([0, 0, 1, 2]), held_xids=dice.choice([0, 0, 1, 2]), in_grace=True)
    books.run(in_grace=True)
    books.run()


def left(books: Books) -> dict[str, set[ItemState]]:
    """States of the items of each key that are not done."""
    states: dict[str, set[ItemState]] = {}
    for item in books.items.values():
        if item.state is not ItemState.CLEARED:
            states.setdefault(item.match_key, set()).add(item.state)
    return states


def matched_rows(books: Books) -> int:
    return sum(result.figures.matched_rows for result in books.results)


@LAW
@given(MANY, DIRECTIONS, st.integers(0, 2**32))
def test_what_adds_up_is_done_once_however_late_its_parts_are(many: str, direction: object, seed: int) -> None:
    dice = Random(seed)
    books, groups = Books(direction, many_to_one=many), groups_of(dice)
    play(books, dice, groups)
    assert left(books) == {}
    assert matched_rows(books) == len(books.rows)


@LAW
@given(MANY, DIRECTIONS, st.integers(0, 2**32))
def test_a_lost_part_leaves_its_group_broken_and_no_other(many: str, direction: object, seed: int) -> None:
    dice = Random(seed)
    books, groups = Books(direction, many_to_one=many), groups_of(dice)
    lost, amounts = dice.choice(groups)
    play(books, dice, groups, lost=lost)
    assert left(books) == {lost: {ItemState.BROKEN}}
    assert matched_rows(books) == sum(one.match_key != lost for one in books.rows.values())
    newest = [found for result in books.results for found in result.breaks if found.match_key == lost][-1]
    if len(amounts) > 1 and newest.break_class is BreakClass.GROUP_SUM_MISMATCH:
        assert newest.evidence["missing_minor"] == amounts[0]


@LAW
@given(MANY, DIRECTIONS, st.integers(0, 2**32))
def test_a_doubled_part_leaves_its_group_broken_and_no_other(many: str, direction: object, seed: int) -> None:
    dice = Random(seed)
    books, groups = Books(direction, many_to_one=many), groups_of(dice)
    doubled, _ = dice.choice(groups)
    play(books, dice, groups, doubled=doubled)
    assert left(books) == {doubled: {ItemState.BROKEN}}


@pytest.mark.parametrize("many", ["events", "rows"])
@pytest.mark.parametrize("direction", [L2T, T2L], ids=str)
def test_a_group_that_straddles_the_baseline_is_never_called_broken(many: str, direction: object) -> None:
    for seed in range(60):
        dice = Random(seed)
        books, (_, amounts) = Books(direction, many_to_one=many), groups_of(dice)[0]
        part, whole = (books.write, books.post) if many == "events" else (books.post, books.write)
        writes = [(whole, sum(amounts)), *((part, amount) for amount in amounts), (part, 1)]
        dice.shuffle(writes)
        before = dice.randint(1, len(writes) - 1)
        for number, (write, amount_minor) in enumerate(writes):
            if number == before:
                books.begin()
            write("one", amount_minor)
            if number > before and dice.random() < 0.4:
                books.run(in_grace=dice.random() < 0.5)
        books.run()
        kinds = {found.break_class for result in books.results for found in result.breaks}
        assert BreakClass.GROUP_SUM_MISMATCH not in kinds, seed
