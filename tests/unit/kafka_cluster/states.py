"""An open transaction as a run keeps it."""

from tallystick.kafka_cluster.open_transactions import OpenTransaction
from tests.unit.builders import PART

OPEN = OpenTransaction(
    topic_partition=PART,
    producer_id=4001,
    producer_epoch=3,
    kafka_offset_start=20,
    transactional_id="relay-1",
    started_ms=1_000,
    timeout_ms=60_000,
    coordinator_state="Ongoing",
    lists_partition=True,
    confirmed=True,
)
