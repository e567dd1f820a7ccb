"""How much the floor has read: whole batches of the topic, and the rows that PostgreSQL says it sent."""

import pytest

from bench.raw_app import end_of_batches, rows_said
from tests.unit.synthetic_log import SyntheticLog

LOG = SyntheticLog(log_start=7)
LOG.append(b"a", b"b", b"c")
LOG.append(b"d", b"e")
THREE, TWO = (batch.raw for batch in LOG.batches)


def test_the_position_is_behind_the_last_batch_that_came_whole() -> None:
    assert end_of_batches(THREE, 7) == 10
    assert end_of_batches(THREE + TWO, 7) == 12


@pytest.mark.parametrize("missing", [1, len(TWO) - 30])
def test_a_batch_that_was_cut_short_does_not_count(missing: int) -> None:
    assert end_of_batches(THREE + TWO[:-missing], 7) == 10
    assert end_of_batches(THREE[:-missing], 7) == 7
    assert end_of_batches(b"", 7) == 7


END = b"C\0\0\0\x0fCOPY 12345\0Z\0\0\0\x05I"


def test_rows_are_those_that_the_server_says_at_the_very_end() -> None:
    assert rows_said(b"d\0\0\0\x06\xff\xff" + END) == 12345


@pytest.mark.parametrize("tail", [b"", END[:-1], END + b"d", b"d\0\0\0\x06\xff\xff"])
def test_before_that_nothing_was_said(tail: bytes) -> None:
    assert rows_said(tail) is None
