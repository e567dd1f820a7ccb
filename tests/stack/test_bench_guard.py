"""What a window may cost: each side read once and little more. Counted, without a clock, on 60,000 events."""

import pytest

from bench.cost import Cost, measure_cost
from bench.data_set import DataSize
from lab.servers.stack import LabStack
from tallystick.model.cut import ANCHORS_MAX

EVENTS = 60_000


@pytest.fixture(scope="module")
def cost(stack: LabStack) -> Cost:
    """Of one window of sides that agree, by the app in a process of its own."""
    return measure_cost(stack, DataSize(events=EVENTS))


def test_what_was_counted_is_a_window_that_matched(cost: Cost) -> None:
    assert (cost.verdict, cost.ledger_rows) == ("MATCHED", EVENTS)


def test_each_byte_of_the_log_is_fetched_once(cost: Cost) -> None:
    """A fetch may begin a little before its offset: answers are whole batches."""
    assert cost.log_bytes <= cost.fetched_bytes <= 1.02 * cost.log_bytes


def test_the_broker_sends_the_log_once_and_a_sample_of_it_again(cost: Cost) -> None:
    """Kafka's client fetches ahead of its sample, at worst the rest of one of the two partitions; never both."""
    assert cost.fetched_bytes < cost.sent_bytes < 1.75 * cost.log_bytes


def test_each_row_of_the_ledger_is_read_once(cost: Cost) -> None:
    """And the newest few: to keep them for the next cut, and to look whether those of this one are there."""
    assert cost.ledger_rows_read == EVENTS + 2 * ANCHORS_MAX


def test_no_row_is_shuffled_as_a_row(cost: Cost) -> None:
    """Blobs are, 256 buckets for each task of a side. The session is this window's alone, and so are its jobs."""
    assert cost.spark.shuffled_rows < EVENTS // 20
    assert cost.spark.jobs <= 3
    assert cost.spark.stages <= 3
