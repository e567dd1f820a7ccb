"""Batches that say what is not so, or that unpack to too much."""

from lab.faults.swollen_batch import CODECS, swollen_batch
from tallystick.contract.event import EventFields
from tests.unit.synthetic_log import SyntheticLog, value

FIELDS = EventFields()

SWOLLEN = (1 << 20, 3 << 20)
"""Bytes of two values, more than zstd's few may become."""


def log_with_a_bomb() -> SyntheticLog:
    log = SyntheticLog()
    log.append(value("ev-0"))
    log.append_raw(swollen_batch(CODECS["zstd"], *SWOLLEN), records=2)
    log.append(value("ev-1"), compression=CODECS["zstd"])
    return log
