"""Planted events and rows in the shape of what is read, to be scanned with it.

Events are read here as they are in the tasks, and are JSON whatever the topic's format is: they try the rule, and what
comes behind it.
"""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from math import floor

import numpy as np
import pyarrow as pa

from tallystick.contract.event import EventFields
from tallystick.judging.canaries import CanaryEvent, CanaryRow
from tallystick.kafka_log.event_decoder import EventDecoder
from tallystick.matching.scan_result import CANARY_PARTITION
from tallystick_spark.matching.xxhash import hash_pairs
from tallystick_spark.readers.ledger_frame import LEDGER_ROWS
from tallystick_spark.readers.topic_frame import with_events


def canary_events_read(
    planted: Sequence[CanaryEvent], fields: EventFields, *, several_legs: bool, written_at: datetime
) -> pa.RecordBatch:
    """Return planted events. Shape: `topic_frame`'s."""
    values = [event.value for event in planted]
    hashes = hash_pairs([None] * len(values), values).view(np.int64)
    records = pa.record_batch(
        {
            "topic": pa.array([event.topic for event in planted], pa.string()),
            "partition": pa.array([CANARY_PARTITION] * len(planted), pa.int32()),
            "kafka_offset": pa.array([event.kafka_offset for event in planted], pa.int64()),
            "value_hash": pa.array(hashes),
            "written_ms": pa.array([floor(written_at.timestamp() * 1000)] * len(planted), pa.int64()),
            "value": pa.array(values, pa.binary()),
        }
    )
    decoder = EventDecoder(fields.model_copy(update={"format": "json"}), several_legs=several_legs)
    return with_events(records, decoder, fields)


def canary_ledger_rows(planted: Sequence[CanaryRow]) -> pa.RecordBatch:
    """Return planted rows. Shape: as the ledger's."""
    rows = [asdict(row) | {"written_ms": None} for row in planted]
    schema = LEDGER_ROWS.append(pa.field("compared_text", pa.string())) if planted[0].compared_text else LEDGER_ROWS
    return pa.RecordBatch.from_pylist(rows, schema=schema)
