"""What producer-perf-test says is read right, and a promise's price is taken within each round."""

import pytest

from bench.exactly_once import MODES, PUBLISHED, NoRate, below_percent, compare, order_of, read_rate

WORDS = """Warmup first 50000 records. Steady state results will print after the complete test summary.
3616 records sent, 722.0 records/sec (0.71 MB/sec), 1245.5 ms avg latency, 2620.0 ms max latency.
In steady state.
39060 records sent, 7780.9 records/sec (7.60 MB/sec), 23157.3 ms avg latency, 54019.0 ms max latency.
200000 records sent, 2250.478227 records/sec (2.20 MB/sec), 12817.43 ms avg latency, 5114 ms 50th, 55931 ms 99.9th.
"""
STEADY = "150000 steady state records sent, 1903.698251 records/sec (1.86 MB/sec), 10502.02 ms avg latency.\n"


def test_the_rate_is_that_after_the_warm_up() -> None:
    assert read_rate(WORDS + STEADY) == 1903.698251


def test_a_producer_that_says_no_rate_after_its_warm_up_is_refused() -> None:
    with pytest.raises(NoRate, match="steady state"):
        read_rate(WORDS)


def test_each_mode_stands_at_each_place_once() -> None:
    orders = [order_of(number, list(MODES)) for number in range(len(MODES))]
    for places in zip(*orders, strict=True):
        assert sorted(places) == sorted(MODES)
    assert order_of(len(MODES), list(MODES)) == orders[0]


def test_a_ratio_is_taken_within_its_round() -> None:
    drifting = {"a": [90.0, 45.0, 180.0], "b": [100.0, 50.0, 200.0]}
    assert below_percent(drifting, "a", "b") == 10.0
    assert below_percent(drifting, "b", "a") == -11.1


def test_what_was_published_can_be_compared() -> None:
    rates = {mode: [1000.0 + 100 * number] for number, mode in enumerate(MODES)}
    assert compare(rates)["medians"] == {mode: rate for mode, (rate,) in rates.items()}
    for one in PUBLISHED:
        if one.mode is not None:
            assert f"{one.mode} below {one.over}" in compare(rates)["below_percent"]
