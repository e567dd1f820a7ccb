"""A transaction keeps the moment at which it was seen first, and another one is seen first now."""

from dataclasses import replace

from tallystick.kafka_cluster.snapshot import first_sights
from tests.unit.builders import HOUR, NOON
from tests.unit.kafka_cluster.states import OPEN


def test_a_transaction_keeps_the_moment_at_which_it_was_seen_first() -> None:
    (sight,) = first_sights([OPEN], (), now_utc=NOON)
    assert sight.first_seen_utc == NOON
    assert first_sights([OPEN], [sight], now_utc=NOON + HOUR) == (sight,)
    assert first_sights([], [sight], now_utc=NOON + HOUR) == ()


def test_another_transaction_of_the_same_producer_is_seen_first_now() -> None:
    (sight,) = first_sights([OPEN], (), now_utc=NOON)
    (later,) = first_sights([replace(OPEN, kafka_offset_start=27)], [sight], now_utc=NOON + HOUR)
    assert later.first_seen_utc == NOON + HOUR
