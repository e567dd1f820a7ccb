"""The grace is what clean runs measured, between the contract's own and the cap."""

from typing import Any

import pytest

from tallystick.matching.grace import grace_in_force
from tallystick.model.partner_lag import Grace
from tests.unit.builders import contract_of
from tests.unit.model.lags import lag_of


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
