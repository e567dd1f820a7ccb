"""The progress topic of a contract's compensations: one record per repaired break, written in the same producer
transaction as the event itself, so that both stand or neither does. Compacted and kept for ever.

It is the truth about what was published; the store's outcome is a copy of it. Read it only after init_transactions:
before that, a predecessor's transaction may still be open, and its records unseen. What its records prove, and to whom
they are believed: progress_record.py.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)
from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_fixed

from tallystick.compensation.progress_record import ProgressRecord, action_of_key, read_record
from tallystick.connections.connections import KafkaSettings
from tallystick.kafka_log.committed_records import SettledTopics, read_committed
from tallystick.kafka_log.fetch import BrokerUnreachable, open_admin
from tallystick.kafka_log.topic_snapshot import TopicNotFound, read_topic_snapshot
from tallystick.model.cut import PartitionSnapshot
from tallystick.model.errors import TallystickError

_REQUEST_SECONDS = 30
_SETTINGS = {"cleanup.policy": "compact", "retention.ms": "-1", "retention.bytes": "-1"}
_DELETE_RETENTION = "delete.retention.ms"
_STRAYS_TOLD = 10
_FOR_EVER_MS = 100 * 365 * 24 * 60 * 60 * 1000
"""So long a record without a value stays. Kafka's default is a day: then nothing tells that there was a record."""


class ProgressLost(TallystickError, RuntimeError):
    """It is not known any more what was published. A person has to look: this attempt has published nothing."""


class ProgressHeld(TallystickError, RuntimeError):
    """It is not visible yet what was published: another executor is at work. This attempt has published nothing."""

    retryable = True


@dataclass(frozen=True, kw_only=True)
class ProgressLog:
    """The topic as it was read, up to its LSO. records: by action, in offset order.

    strays: offsets of records whose key is no action's, the first few, and of batches that nobody gets to read;
    stray_count: all of them. unread_at: where the last of those batches is; -1: there is none.
    """

    place: str
    topic_id: str
    log_start: int
    kafka_offset_end: int
    records: Mapping[UUID, tuple[ProgressRecord, ...]]
    strays: tuple[int, ...]
    stray_count: int
    unread_at: int = -1


def progress_topic_name(contract_name: str) -> str:
    return f"tallystick.compensation.{contract_name}"


def ensure_progress_topic(kafka: KafkaSettings, contract_name: str) -> PartitionSnapshot:
    """Create the topic where it is absent; give its partition as it is now.

    Raises ProgressLost where it does not keep records for ever.
    """
    name = progress_topic_name(contract_name)
    admin = AdminClient(kafka.for_confluent())
    topic = NewTopic(name, num_partitions=1, config=_SETTINGS | {_DELETE_RETENTION: str(_FOR_EVER_MS)})
    try:
        admin.create_topics([topic], request_timeout=_REQUEST_SECONDS)[name].result()
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise
    until_known = Retrying(
        stop=stop_after_delay(_REQUEST_SECONDS),
        wait=wait_fixed(0.2),
        retry=retry_if_exception(_not_known_yet),
        reraise=True,
    )
    found = until_known(_read_settings, admin, name)
    for setting, expected in _SETTINGS.items():
        if found[setting] != expected:
            raise ProgressLost(f"topic {name}: {setting} is {found[setting]!r}, expected {expected!r}")
    if int(found[_DELETE_RETENTION]) < _FOR_EVER_MS:
        _keep_deletions(admin, name)
    with open_admin(kafka) as reader:
        return _only_partition(name, until_known(read_topic_snapshot, reader, [name]))


def _only_partition(name: str, partitions: Sequence[PartitionSnapshot]) -> PartitionSnapshot:
    if len(partitions) != 1:
        raise ProgressLost(f"topic {name}: expected one partition, got {len(partitions)}")
    return partitions[0]


def _keep_deletions(admin: AdminClient, name: str) -> None:
    """Keep deletion markers, which a topic of release 0.1.0 does not. Raises ProgressLost where this account may not
    set it.
    """
    kept = ConfigEntry(_DELETE_RETENTION, str(_FOR_EVER_MS), incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, name, incremental_configs=[kept])
    try:
        admin.incremental_alter_configs([resource], request_timeout=_REQUEST_SECONDS)[resource].result()
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_AUTHORIZATION_FAILED:
            raise
        raise ProgressLost(
            f"topic {name}: {_DELETE_RETENTION} is shorter than {_FOR_EVER_MS}, and this account may not set it; have "
            f"it set once: kafka-configs.sh --alter --entity-type topics --entity-name {name} --add-config "
            f"{_DELETE_RETENTION}={_FOR_EVER_MS}"
        ) from error


def _read_settings(admin: AdminClient, name: str) -> dict[str, str]:
    resource = ConfigResource(ResourceType.TOPIC, name)
    entries = admin.describe_configs([resource], request_timeout=_REQUEST_SECONDS)[resource].result()
    return {setting: entry.value for setting, entry in entries.items()}


def _not_known_yet(error: BaseException) -> bool:
    """Return whether a broker has not heard of a new topic yet: it does a moment after the controller has made it."""
    if isinstance(error, KafkaException):
        return bool(error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART)
    return isinstance(error, TopicNotFound | BrokerUnreachable)


def read_progress(
    kafka: KafkaSettings, contract_name: str, settled: SettledTopics, action_ids: Collection[UUID]
) -> ProgressLog:
    """Read the records of these actions, up to the LSO. Raises ProgressHeld where an open transaction
    hides the rest.
    """
    name = progress_topic_name(contract_name)
    if name in settled.held:
        raise ProgressHeld(
            f"topic {name}: a transaction that began after our init_transactions holds it, so another executor is at "
            "work; start again"
        )
    part = _only_partition(name, settled.of(name))
    place = f"{part.topic}[{part.partition}]"
    records: dict[UUID, list[ProgressRecord]] = {}
    strays, stray_count, unread_at = [], 0, -1
    for record in read_committed(kafka, [part]):
        unread_at = record.kafka_offset if record.problem else unread_at
        action_id = action_of_key(record.key)
        if action_id is None:
            stray_count += 1
            strays += [record.kafka_offset] if stray_count <= _STRAYS_TOLD else []
        elif action_id in action_ids:
            found = read_record(place, record.kafka_offset, record.value)
            records.setdefault(action_id, []).append(found)
    return ProgressLog(
        place=place,
        topic_id=part.topic_id,
        log_start=part.log_start,
        kafka_offset_end=part.lso,
        records={action_id: tuple(found) for action_id, found in records.items()},
        strays=tuple(strays),
        stray_count=stray_count,
        unread_at=unread_at,
    )
