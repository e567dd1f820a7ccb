"""Take the census of a whole topic as it is now, without a contract or a cut."""

from tallystick.connections.connections import KafkaSettings
from tallystick.kafka_log.fetch import fetcher, open_admin
from tallystick.kafka_log.offset_census import OffsetProgress, OnProgress, take_census
from tallystick.kafka_log.topic_snapshot import read_topic_snapshot
from tallystick.model.census_values import PartitionCensus


def census_of_topic(kafka: KafkaSettings, topic: str, *, on_progress: OnProgress) -> tuple[PartitionCensus, ...]:
    """Count each partition from its log start to its LSO; offsets above are not decided yet.

    Raises BrokerUnreachable, TopicNotFound, OffsetNotInLog.
    """
    with open_admin(kafka) as admin:
        fetch, parts = fetcher(admin), read_topic_snapshot(admin, (topic,))
        told = OffsetProgress(sum(part.lso - part.log_start for part in parts), on_progress)
        return tuple(
            take_census(
                fetch,
                part.stable_from(part.log_start),
                log_start=part.log_start,
                lso=part.lso,
                high_watermark=part.high_watermark,
                told=told,
            )
            for part in parts
        )
