"""The repair's protocol, explored to its end in a few small books; `make model` explores larger ones."""

import pytest

from .books import SMALL, Books
from .explore import Exploration, Explored
from .product import Product
from .scene import Scene
from .world import Left, World


def explored(books: Books, *, reduced: bool = True, whole_history: bool = False) -> Explored:
    exploration = Exploration(Product(books.scene, whole_history=whole_history), books.left, reduced=reduced)
    return exploration.run()


@pytest.mark.parametrize("name", SMALL)
def test_every_state_that_can_be_reached_is_right(name: str) -> None:
    found = explored(SMALL[name])
    assert found.violation is None
    assert found.finished


def test_the_limit_that_the_protocol_has_is_reached_and_each_way_to_end() -> None:
    """An original that comes behind the last look is paid twice, and a run finds that: ADR 6. The model must see it."""
    found = explored(Books(Left(starts=1, strikes=1, originals=1)))
    assert found.limit_reached > 0
    assert set(found.settled) == {"done", "refused"}
    assert {"published", "already_published", "refused", "ExecutorFenced", "KafkaException"} <= set(found.ends)


def test_an_action_waits_only_where_its_progress_may_be_gone() -> None:
    """Else nobody is asked to look for nothing."""
    made_anew = explored(Books(Left(starts=1, strikes=1, remakes=1)))
    kept = explored(Books(Left(starts=1, strikes=1, runs=1, retentions=1)))
    assert "waiting" in made_anew.settled
    assert "waiting" not in kept.settled


def worlds_at_rest(books: Books, *, reduced: bool = True, whole_history: bool = False) -> set[World]:
    """Worlds in which no start runs, whatever may still happen."""
    exploration = Exploration(Product(books.scene, whole_history=whole_history), books.left, reduced=reduced)
    assert exploration.run().finished
    return {one._replace(left=Left()) for one in exploration.worlds() if one.slots == (None, None)}


@pytest.mark.parametrize(
    "books",
    [Books(Left(starts=1, strikes=1, originals=1)), Books(Left(starts=1, strikes=1), Scene(items=2, together=1))],
    ids=["one event", "two"],
)
def test_starts_that_stand_alike_go_on_alike(books: Books) -> None:
    """By where a start stands the same worlds are reached as by all that it has been told."""
    assert worlds_at_rest(books) == worlds_at_rest(books, whole_history=True)


@pytest.mark.parametrize(
    "left", [Left(starts=2), Left(starts=1, strikes=1, switches=1)], ids=["two starts", "a strike"]
)
def test_what_is_left_out_leads_to_nothing_new(left: Left) -> None:
    """Neither a death between two questions, nor waiting with what nothing can change."""
    books = Books(left)
    assert worlds_at_rest(books) == worlds_at_rest(books, reduced=False)
