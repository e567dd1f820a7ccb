"""The lab's stranger writes what a run must not unpack, and what the lab's own readers still can."""

import pytest

from lab.faults.hostile_writer import BOMBS
from lab.faults.swollen_batch import swollen_batch
from tallystick.kafka_log.batch_header import HEADER_BYTES
from tallystick.kafka_log.unpacking import UnreadableBatch, unpack

_RECEIVED_BYTES_MAX = 100_000_000
"""librdkafka's receive.message.max.bytes, which bounds what it unpacks too."""


@pytest.mark.parametrize(("codec", "size"), BOMBS)
def test_a_bomb_unpacks_to_more_than_a_run_reads_and_a_smaller_one_is_read(codec: int, size: int) -> None:
    bomb = swollen_batch(codec, size)
    assert size < _RECEIVED_BYTES_MAX
    assert len(bomb) < 1 << 20
    with pytest.raises(UnreadableBatch, match="unpacks to more than"):
        unpack(codec, bomb[HEADER_BYTES:])
    assert len(unpack(codec, swollen_batch(codec, 1 << 15)[HEADER_BYTES:])) > 1 << 15
