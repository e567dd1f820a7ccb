"""Numpy's form of equality says of any two copies what `tallystick.contract.equality` says."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tallystick.contract.equality import Compared
from tallystick_spark.matching.equality_forms import compared_numbers
from tallystick_spark.matching.keyed_hash import keyed_currencies, keyed_hashes, new_secret
from tests.unit.builders import LAW
from tests.unit.moneys import AMOUNTS, CURRENCIES, OTHER_VALUE, SOME_AMOUNTS, SOME_CURRENCIES, TEXTS


def numbers_of(moneys: Sequence[Compared], secret: str) -> list[int]:
    amounts = np.array([one.amount_minor for one in moneys], dtype=np.int64)
    hashes = keyed_currencies(pa.array([one.currency for one in moneys], pa.string()), secret)
    texts = np.array(keyed_hashes([one.compared_text for one in moneys], secret), dtype=np.int64)
    numbers: list[int] = compared_numbers(amounts, hashes, texts).tolist()
    return numbers


@LAW
@given(moneys=st.lists(st.builds(Compared, AMOUNTS, CURRENCIES, TEXTS), min_size=1, max_size=12))
@example(moneys=[Compared(amount, currency) for amount in SOME_AMOUNTS for currency in SOME_CURRENCIES])
def test_two_copies_have_one_number_where_they_are_equal_and_else_two(moneys: list[Compared]) -> None:
    numbers = numbers_of([*moneys, *reversed(moneys)], new_secret())
    count = len(moneys)
    assert numbers[count:] == numbers[:count][::-1]
    by_number = dict(zip(numbers[:count], moneys, strict=True))
    assert [by_number[number] for number in numbers[:count]] == moneys
    assert len(set(numbers)) == len(set(moneys))


@pytest.mark.parametrize("field", Compared._fields)
def test_each_field_counts(field: str) -> None:
    one, secret = Compared(1_000, "EUR"), new_secret()
    other = one._replace(**{field: OTHER_VALUE[field]})
    assert len(set(numbers_of([one, other], secret))) == 2
    assert len(set(numbers_of([one, one], secret))) == 1


@LAW
@given(amounts=st.lists(AMOUNTS, min_size=1, max_size=6), currency=CURRENCIES)
def test_one_hash_for_all_is_the_same_as_one_for_each(amounts: list[int], currency: str) -> None:
    """So a chunk of events of one currency, and the rows of a batch, meet."""
    secret = new_secret()
    (of_all,) = keyed_hashes([currency], secret).tolist()
    texts = np.array(keyed_hashes([""] * len(amounts), secret), dtype=np.int64)
    together = compared_numbers(np.array(amounts, dtype=np.int64), of_all, texts).tolist()
    assert together == numbers_of([Compared(amount, currency) for amount in amounts], secret)


def test_a_text_does_not_make_up_for_a_currency_that_is_written_like_it() -> None:
    secret = new_secret()
    same = [Compared(1_000, text, text) for text in ("EUR", "USD")]
    swapped = [Compared(1_000, "EUR", "USD"), Compared(1_000, "USD", "EUR")]
    assert [len(set(numbers_of(two, secret))) for two in (same, swapped)] == [2, 2]


def test_an_amount_does_not_make_up_for_a_currency_under_another_secret() -> None:
    """Whoever knows the hashes of one scan could choose such an amount; of the next he knows none."""
    secret, next_secret = new_secret(), new_secret()
    euro, dollar = keyed_hashes(["EUR", "USD"], secret).tolist()
    chosen = [Compared(1_000, "EUR"), Compared(1_000 ^ euro ^ dollar, "USD")]
    assert len(set(numbers_of(chosen, secret))) == 1
    assert len(set(numbers_of(chosen, next_secret))) == 2
