"""Copies of one event, by whom each was written, and what is said of their being several."""

from tallystick.anomalies.breaks.duplicate_in_topic import duplicate_in_topic
from tallystick.anomalies.registry import findings_of
from tallystick.kafka_log.record import LogRecord
from tallystick.model.finding_names import BreakClass
from tallystick.model.findings import Break
from tests.unit.anomalies.builders import COPY
from tests.unit.builders import TOPIC, evidence_of, record_of

NEW_SESSION = BreakClass.DUPLICATE_IN_TOPIC_NEW_SESSION
COMPENSATED = BreakClass.DUPLICATE_IN_TOPIC_COMPENSATED


def written(copy: object = COPY, **by: object) -> LogRecord:
    return record_of(copy, **by)


def doubled_in_topic(*copies: object, **about: object) -> list[Break]:
    return list(findings_of(duplicate_in_topic, evidence_of(*copies, **about)))


def item_at(offset: int, topic: str = TOPIC) -> str:
    return f"topic:{topic}:0:{offset}"
