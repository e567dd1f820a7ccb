"""Logs made of random steps, for laws over every slice of them."""

import json

from hypothesis import strategies as st

from tallystick.kafka_log.batch_header import Marker
from tests.unit.synthetic_log import SyntheticLog

WRITERS = st.sampled_from([None, 1, 2])
EVENTS = st.lists(st.tuples(st.sampled_from("abcde"), st.sampled_from("xyz")), min_size=1, max_size=4)
STEPS = st.lists(st.tuples(WRITERS, EVENTS | st.sampled_from(list(Marker))), max_size=12)


def log_of(steps: list[tuple[int | None, list[tuple[str, str]] | Marker]]) -> SyntheticLog:
    log = SyntheticLog(fetch_batches=3)
    for producer_id, step in steps:
        if isinstance(step, Marker):
            log.end_transaction(producer_id or 1, step)
            continue
        payloads = [json.dumps({"event_id": key, "payment_id": payment}).encode() for key, payment in step]
        if producer_id is None:
            log.append(*payloads)
        else:
            log.append(*payloads, producer_id=producer_id, transactional=True)
    return log
