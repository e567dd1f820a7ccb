"""Which transaction protocol a producer speaks, told from one marker and the data before it.

transaction.version 1 (librdkafka, Java clients before 4.0): the epoch stays the same from one transaction to the next.
transaction.version 2 (KIP-890): it goes up by one with each, and the marker already carries the next one. The broker's
own version does not tell: an old client keeps its epoch on a new broker.
"""

from enum import StrEnum

from tallystick.kafka_log.batch_header import Marker


class MarkerProtocol(StrEnum):
    """What a producer's epochs do."""

    CONSTANT_EPOCH = "constant_epoch"
    """transaction.version 1."""
    EPOCH_PER_TRANSACTION = "epoch_per_transaction"
    """transaction.version 2."""
    UNKNOWN = "unknown"


def protocol_of_marker(marker: Marker, *, data_epoch: int, marker_epoch: int) -> MarkerProtocol:
    """What one transaction on one partition tells.

    An ABORT under a later epoch tells nothing: a coordinator that fences a producer or times it out raises the epoch
    under either version.
    """
    if marker_epoch == data_epoch:
        return MarkerProtocol.CONSTANT_EPOCH
    return MarkerProtocol.EPOCH_PER_TRANSACTION if marker is Marker.COMMIT else MarkerProtocol.UNKNOWN
