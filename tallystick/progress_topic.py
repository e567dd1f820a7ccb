"""The progress topic of a contract's compensations: one record per repaired break, written in the same producer
transaction as the event itself, so that both stand or neither does. Compacted and kept for ever.

It is the truth about what was published; the store's outcome is a copy of it. Read it only after init_transactions:
before that, a predecessor's transaction may still be open, and its records unseen.
"""

import json
from dataclasses import dataclass
from uuid import UUID

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType  # type: ignore[attr-defined]
from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_fixed

from tallystick.committed_records import CommittedRecord, SettledTopics, read_committed
from tallystick.compensation_plan import Plan, PlanItem
from tallystick.connections import KafkaSettings
from tallystick.log_fetch import BrokerUnreachable, open_admin
from tallystick.topic_snapshot import TopicNotFound, read_topic_snapshot

_REQUEST_SECONDS = 30
_SETTINGS = {"cleanup.policy": "compact", "retention.ms": "-1", "retention.bytes": "-1"}


class ProgressLost(RuntimeError):
    """What was published cannot be known any more. A person has to look: nothing was published by this attempt."""


class ProgressHeld(RuntimeError):
    """What was published is not to be seen yet: another executor is at work. Nothing was published by this attempt."""


@dataclass(frozen=True, kw_only=True)
class Progress:
    """What one committed record says: this action was published, by this plan."""

    action_id: UUID
    plan_id: UUID
    topic: str


def progress_topic_name(contract_name: str) -> str:
    return f"tallystick.compensation.{contract_name}"


def ensure_progress_topic(kafka: KafkaSettings, contract_name: str) -> str:
    """Create the topic where it is absent; give its id. Raises ProgressLost where it does not keep records for ever."""
    name = progress_topic_name(contract_name)
    admin = AdminClient(kafka.for_confluent())
    topic = NewTopic(name, num_partitions=1, config=_SETTINGS)
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
    with open_admin(kafka) as reader:
        partitions = until_known(read_topic_snapshot, reader, [name])
    if len(partitions) != 1 or partitions[0].log_start > 0:
        raise ProgressLost(f"topic {name}: expected one partition that begins at offset 0")
    return partitions[0].topic_id


def _read_settings(admin: AdminClient, name: str) -> dict[str, str]:
    resource = ConfigResource(ResourceType.TOPIC, name)
    entries = admin.describe_configs([resource], request_timeout=_REQUEST_SECONDS)[resource].result()
    return {setting: entry.value for setting, entry in entries.items()}


def _not_known_yet(error: BaseException) -> bool:
    """A broker hears of a new topic a moment after the controller has made it."""
    if isinstance(error, KafkaException):
        return bool(error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART)
    return isinstance(error, TopicNotFound | BrokerUnreachable)


def read_progress(kafka: KafkaSettings, contract_name: str, settled: SettledTopics) -> dict[UUID, Progress]:
    """Every action that was published, up to the LSO. Raises ProgressHeld where an open transaction hides the rest."""
    name = progress_topic_name(contract_name)
    if name in settled.held:
        raise ProgressHeld(
            f"topic {name}: a transaction that began after our init_transactions holds it, so another executor is at "
            "work; start again"
        )
    records = (_progress_of(record) for record in read_committed(kafka, settled.of(name)))
    return {progress.action_id: progress for progress in records}


def progress_record(plan: Plan, item: PlanItem) -> tuple[bytes, bytes]:
    """Key and value."""
    value = {"plan_id": str(plan.plan_id), "plan_hash": plan.plan_hash, "topic": item.topic}
    return str(item.action_id).encode(), json.dumps(value).encode()


def _progress_of(record: CommittedRecord) -> Progress:
    value = json.loads(record.value)
    return Progress(action_id=UUID(record.key.decode()), plan_id=UUID(value["plan_id"]), topic=value["topic"])
