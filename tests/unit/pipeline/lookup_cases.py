"""Rows and records beside one cut, as look-ups find them."""

from dataclasses import replace

from tallystick.kafka_log.log_walk import Outcome
from tallystick.kafka_log.record import LogRecord
from tallystick.model.offsets import TopicPartition
from tests.unit.builders import TOPIC, cut_of, event, ledger_slice_of, record_of, slice_of

CUT = cut_of(slice_of(10, 20), ledger_slice=ledger_slice_of(200, 300, baseline=100))
BASELINE = cut_of(slice_of(5, 5), n=0)


def record(offset: int, outcome: Outcome = Outcome.COMMITTED, *, partition: int = 0) -> LogRecord:
    part = TopicPartition(topic=TOPIC, partition=partition)
    return replace(record_of(event(offset), producer_id=7), outcome=outcome, topic_partition=part)
