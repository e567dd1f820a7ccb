"""How late partners come: counted in buckets, added up over runs, and made into a grace under a cap."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.model.partner_lag import EDGES_MS, add_lags, bucket_of, p999_ms, quantile_ms
from tests.unit.builders import LAW
from tests.unit.model.lags import lag_of

_LAGS = st.lists(st.integers(min_value=-1_000, max_value=2 * EDGES_MS[-1]), max_size=60)


@pytest.mark.parametrize(
    ("lag_ms", "edge"),
    [(-5, 10), (0, 10), (10, 10), (11, 20), (1_280, 1_280), (1_281, 2_560), (10**12, EDGES_MS[-1])],
)
def test_a_lag_is_in_the_first_bucket_that_holds_it(lag_ms: int, edge: int) -> None:
    assert EDGES_MS[bucket_of(lag_ms)] == edge


@LAW
@given(_LAGS, _LAGS)
def test_counts_of_two_runs_add_up_to_the_count_of_both(first: list[int], second: list[int]) -> None:
    assert add_lags((*lag_of(*first), *lag_of(*second))) == lag_of(*first, *second)


@LAW
@given(_LAGS.filter(bool), st.integers(min_value=1, max_value=1000))
def test_a_quantile_is_the_bucket_of_the_pair_at_that_rank(lags_ms: list[int], per_mille: int) -> None:
    (lag,) = lag_of(*lags_ms)
    rank = -(-len(lags_ms) * per_mille // 1000)
    assert quantile_ms(lag.pairs, per_mille=per_mille) == EDGES_MS[bucket_of(sorted(lags_ms)[rank - 1])]


def test_of_no_pair_there_is_no_quantile() -> None:
    assert quantile_ms((0,) * len(EDGES_MS), per_mille=999) is None


@LAW
@given(_LAGS)
def test_the_measure_is_p999_or_all_but_the_longest_whichever_is_less(lags_ms: list[int]) -> None:
    for lag in lag_of(*lags_ms):
        longest_but_one = sorted(lags_ms)[-2:-1]
        assert p999_ms(lag.pairs) == (EDGES_MS[bucket_of(longest_but_one[0])] if longest_but_one else None)
