"""Change the settings of a topic."""

from collections.abc import Mapping

from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from lab.servers import process

_TIMEOUT_SECONDS = 30.0


def configure_topic(
    admin: AdminClient, topic: str, settings: Mapping[str, str], *, deadline_seconds: float = 30.0
) -> None:
    """Change a topic's settings, and return once the brokers say that they are changed. Raises NotReadyInTime."""
    entries = [
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in settings.items()
    ]
    changed = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
    admin.incremental_alter_configs([changed])[changed].result(_TIMEOUT_SECONDS)

    def is_set() -> bool:
        asked = ConfigResource(ResourceType.TOPIC, topic)
        found = admin.describe_configs([asked])[asked].result(_TIMEOUT_SECONDS)
        return all(found[name].value == value for name, value in settings.items())

    process.wait_until(is_set, what=f"settings of {topic}", deadline_seconds=deadline_seconds)
