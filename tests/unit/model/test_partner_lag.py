"""How late partners come: counted in buckets, added up over runs, and made into a grace under a cap."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.matching.grace import grace_in_force
from tallystick.model.partner_lag import (
    EDGES_MS,
    Grace,
    TopicLag,
    add_lags,
    bucket_of,
    lags_of_pairs,
    p999_ms,
    quantile_ms,
)
from tests.unit.builders import LAW, contract_of

_LAGS = st.lists(st.integers(min_value=-1_000, max_value=2 * EDGES_MS[-1]), max_size=60)


def lag_of(*lags_ms: int, topic: str = "billing.payments") -> tuple[TopicLag, ...]:
    return lags_of_pairs((topic, lag_ms) for lag_ms in lags_ms)


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


def test_one_pair_in_a_thousand_does_not_move_the_grace_and_two_do() -> None:
    contract = contract_of(partner_grace_seconds=60)
    rest = (100,) * 999
    assert grace_in_force(contract, (lag_of(*rest, 600_000),)).seconds == 60
    assert grace_in_force(contract, (lag_of(*rest[:-1], 600_000, 600_000),)).seconds == 656


@pytest.mark.parametrize(
    ("lags_ms", "contract_says", "seconds"),
    [
        pytest.param([], {}, 60, id="nothing measured: the contract's own"),
        pytest.param([100_000], {}, 60, id="one pair is no measure"),
        pytest.param([5_000] * 2, {}, 60, id="faster than the contract allows: the contract's own"),
        pytest.param([100_000] * 2, {}, 164, id="slower: as measured, rounded up to its bucket"),
        pytest.param([100_000] * 2, {"partner_grace_cap_seconds": 90}, 90, id="never above the cap"),
        pytest.param([100_000_000] * 2, {}, 3_600, id="which is an hour where the contract names none"),
        pytest.param(
            [100_000_000] * 2, {"partner_grace_seconds": 7_200}, 7_200, id="or the grace, where that is longer"
        ),
        pytest.param([-50_000] * 2, {}, 60, id="a partner that claims to be older is no lag"),
    ],
)
def test_the_grace_is_what_clean_runs_measured_between_the_contracts_own_and_the_cap(
    lags_ms: list[int], contract_says: dict[str, Any], seconds: int
) -> None:
    contract = contract_of(**{"partner_grace_seconds": 60} | contract_says)
    clean_runs = (lag_of(*lags_ms),) if lags_ms else ()
    assert grace_in_force(contract, clean_runs).seconds == seconds


def test_the_slowest_topic_sets_the_grace() -> None:
    contract = contract_of(partner_grace_seconds=1)
    runs = (lag_of(10, topic="a"), (*lag_of(10, topic="a"), *lag_of(3_000, 3_000, topic="b")))
    assert grace_in_force(contract, runs) == Grace(seconds=6, measured_ms=5_120, clean_runs=2, pairs=2)


SINCE_1970 = 10**12


@pytest.mark.parametrize("rest", [1, 2, 900, 998])
def test_among_few_pairs_the_longest_does_not_set_the_grace_and_the_longest_but_one_does(rest: int) -> None:
    contract = contract_of(partner_grace_seconds=60)
    usual = (100,) * rest
    assert grace_in_force(contract, (lag_of(*usual, SINCE_1970),)).seconds == 60
    assert grace_in_force(contract, (lag_of(*usual[1:], 100_000, SINCE_1970),)).seconds == 164


@LAW
@given(_LAGS)
def test_the_measure_is_p999_or_all_but_the_longest_whichever_is_less(lags_ms: list[int]) -> None:
    for lag in lag_of(*lags_ms):
        longest_but_one = sorted(lags_ms)[-2:-1]
        assert p999_ms(lag.pairs) == (EDGES_MS[bucket_of(longest_but_one[0])] if longest_but_one else None)
