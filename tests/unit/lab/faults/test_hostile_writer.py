"""What the lab's stranger writes is what the truth about him says: events where it says so, and bombs that are some."""

import pytest

from lab.faults.hostile_writer import BOMBS, ODD_KEYS, odd_key
from lab.faults.swollen_batch import swollen_batch
from lab.services.event import Leg
from tallystick.contract.equality import TEXT_LENGTH_MAX
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


@pytest.mark.parametrize("odd", ODD_KEYS)
def test_an_odd_key_is_one_that_a_run_compares(odd: str) -> None:
    assert len(odd_key(odd, Leg.PAYMENT, 1)) <= TEXT_LENGTH_MAX
    assert odd_key(odd, Leg.PAYMENT, 1) != odd_key(odd, Leg.PAYMENT, 2)
