"""Each rule of the protocol, broken by hand, is found by the model, and by the way to it one can see why."""

import pytest

from .books import SMALL
from .broken import BROKEN, Broken
from .explore import Exploration
from .product import Product
from .scene import Scene


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
def test_a_broken_rule_is_found(broken: Broken) -> None:
    product = Product(broken.scene)
    with product.over_walls(), broken.broken():
        found = Exploration(product, broken.left).run_inside()
    assert found.violation is not None
    assert found.violation.wrong.removeprefix("once nothing strikes any more: ") == broken.says


def test_unbroken_the_rules_are_right_in_all_these_books() -> None:
    """They are part of what test_model.py explores to the end."""
    explored = [one.left for one in SMALL.values() if one.scene == Scene()]
    for broken in BROKEN.values():
        assert any(all(n <= m for n, m in zip(broken.left, whole, strict=True)) for whole in explored), broken
