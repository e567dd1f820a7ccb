"""The forecast: a batch that nobody has read may expire once retention.ms has passed since its own timestamp."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from tallystick.kafka_cluster.retention_forecast import read_unread_expiry
from tallystick.kafka_cluster.state import TopicSettings, UnreadExpiry
from tests.unit.builders import PART, TOPIC, partition_at, slice_of
from tests.unit.synthetic_log import SyntheticLog

DAY_MS = 86_400_000
SETTINGS = TopicSettings(
    topic=TOPIC,
    replication_factor=3,
    in_sync_replicas=3,
    min_insync_replicas=2,
    unclean_leader_election=False,
    cleanup_policy=("delete",),
    retention_ms=DAY_MS,
    retention_bytes=-1,
    message_timestamp_type="CreateTime",
)
WRITTEN = datetime.fromtimestamp(1_700_000_000, UTC)  # of the synthetic log's first record in each batch


def forecast(
    settings: TopicSettings | None = SETTINGS, *, end: int = 2, log_start: int = 0, records: int = 5
) -> UnreadExpiry | None:
    """A log of single records, read up to `end`."""
    log = SyntheticLog()
    for _ in range(records):
        log.append(b"x")
    log.log_start = log_start
    now = partition_at(log_start=log_start, lso=log.end, high_watermark=log.end)
    return read_unread_expiry(log.fetch, slice_of(0, end), now, settings)


def test_the_first_unread_batch_expires_a_retention_after_its_timestamp() -> None:
    assert forecast() == UnreadExpiry(topic_partition=PART, kafka_offset=2, expires_utc=WRITTEN + timedelta(days=1))


def test_what_has_expired_already_is_left_out() -> None:
    found = forecast(log_start=4)
    assert found is not None
    assert found.kafka_offset == 4


@pytest.mark.parametrize(
    "settings",
    [
        None,
        replace(SETTINGS, retention_ms=-1),
        replace(SETTINGS, cleanup_policy=("compact",)),
        replace(SETTINGS, retention_ms=2**63 - 1),
    ],
    ids=["unknown", "for ever", "only compacts", "as good as for ever"],
)
def test_nothing_is_foreseen_where_time_takes_nothing(settings: TopicSettings | None) -> None:
    assert forecast(settings) is None


def test_nothing_is_foreseen_where_all_is_read() -> None:
    assert forecast(end=5) is None


def test_what_expires_while_it_is_asked_for_is_for_the_next_run_to_tell() -> None:
    log = SyntheticLog(log_start=9)
    now = partition_at(log_start=0, lso=9, high_watermark=9)
    assert read_unread_expiry(log.fetch, slice_of(0, 2), now, SETTINGS) is None
