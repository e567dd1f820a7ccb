"""A census of a synthetic log."""

from random import Random

from hypothesis import strategies as st

from tallystick.kafka_log.batch_header import Marker
from tallystick.kafka_log.fetch import Fetch, FetchedLog
from tallystick.kafka_log.offset_census import take_census
from tallystick.model.census_values import PartitionCensus
from tallystick.model.offsets import TopicPartition
from tests.unit.builders import PART, offsets
from tests.unit.synthetic_log import SyntheticLog

COMMIT, ABORT = Marker.COMMIT, Marker.ABORT


def fetch_of(log: SyntheticLog) -> Fetch:
    """Of PART alone: whoever asks for another partition asks the wrong one."""

    def fetch(part: TopicPartition, offset: int, read_committed: bool) -> FetchedLog:
        assert part == PART
        return log.fetch(part, offset, read_committed)

    return fetch


def census(log: SyntheticLog, start: int, end: int) -> PartitionCensus:
    return take_census(fetch_of(log), offsets(start, end))


PRODUCERS = (7, 8, 9)
STEPS = ("plain", "data", "data", "data", "commit", "abort", "abort", "elect")


def random_log(dice: Random) -> SyntheticLog:
    """Any interleaving of transactions, all ended; some are empty, some bleed, and some markers raise the epoch."""
    log = SyntheticLog(fetch_batches=dice.choice((1, 2, 3, 50)))
    epochs = dict.fromkeys(PRODUCERS, 0)
    for _ in range(dice.randint(5, 25)):
        what, values = dice.choice(STEPS), [b"x"] * dice.randint(1, 4)
        if what == "elect":
            log.leader_epoch += 1
        elif what == "plain":
            log.append(*values, producer_id=dice.choice((-1, 20)))
        elif what == "data":
            producer_id = dice.choice(PRODUCERS)
            epochs[producer_id] += dice.random() < 0.1
            log.append(
                *values,
                producer_id=producer_id,
                epoch=epochs[producer_id],
                transactional=True,
                compression=dice.choice((0, 1)),
            )
        else:
            producer_id = dice.choice(PRODUCERS)
            epochs[producer_id] += dice.choice((0, 1))
            log.end_transaction(producer_id, Marker(what), epoch=epochs[producer_id])
    for producer_id in PRODUCERS:
        log.end_transaction(producer_id, dice.choice((COMMIT, ABORT)))
    return log


LOGS = st.integers(0, 10**9).map(lambda seed: random_log(Random(seed)))
"""By seed, since drawn step by step most logs are too short to hold two aborted transactions that overlap."""


def cut_points(log: SyntheticLog, data: st.DataObject, number: int) -> list[int]:
    return sorted(data.draw(st.integers(0, log.end)) for _ in range(number))
