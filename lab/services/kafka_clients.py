"""Kafka clients with every setting that matters stated, since librdkafka's and Java's defaults differ."""

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

from lab.services.delivery_mode import DeliveryMode

_NEAR: dict[str, str | int | float | bool] = {
    "enable.metrics.push": False,
    # Stock librdkafka forgets its brokers when the only one is down for a moment, and then hangs in a transaction.
    "metadata.recovery.strategy": "none",
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 500,
    "log_level": 2,  # not each refused connection, when the lab kills a broker
}

TRANSACTION_TIMEOUT_MS = 600_000
"""For transactions that stay open while a window is judged."""

_PROMISES: dict[DeliveryMode, dict[str, object]] = {
    DeliveryMode.AT_MOST_ONCE: {"acks": 1, "retries": 0, "enable.idempotence": False},
    DeliveryMode.AT_LEAST_ONCE: {
        "acks": "all",
        "retries": 2147483647,
        "enable.idempotence": False,
        "max.in.flight.requests.per.connection": 1,
    },
    DeliveryMode.EXACTLY_ONCE: {"acks": "all", "retries": 2147483647, "enable.idempotence": True},
}


def new_producer(
    bootstrap_servers: str,
    mode: DeliveryMode,
    *,
    client_id: str,
    transactional_id: str | None = None,
    transaction_timeout_ms: int = 60_000,
    in_flight_max: int | None = None,
) -> Producer:
    """Open a producer that keeps the promise of `mode`; transactional where an id is given.

    in_flight_max: requests sent before the first is answered; without idempotence, more than one breaks the order.
    """
    settings: dict[str, object] = {
        "bootstrap.servers": bootstrap_servers,
        "client.id": client_id,
        "partitioner": "murmur2_random",  # Java's default; librdkafka's own sends keys elsewhere
        "linger.ms": 0,
        "retry.backoff.ms": 20,
        **_NEAR,
        **_PROMISES[mode],
    }
    if in_flight_max is not None:
        settings |= {"max.in.flight.requests.per.connection": in_flight_max}
    if transactional_id is not None:
        settings |= {"transactional.id": transactional_id, "transaction.timeout.ms": transaction_timeout_ms}
    return Producer(settings)


def new_consumer(bootstrap_servers: str, *, client_id: str, group: str, read_committed: bool) -> Consumer:
    """Open a consumer that saves its offsets only when told to, and reports the end of each partition."""
    return Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "client.id": client_id,
            "group.id": group,
            "isolation.level": "read_committed" if read_committed else "read_uncommitted",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 50,
            "check.crcs": True,
            **_NEAR,
        }
    )


def new_admin(bootstrap_servers: str) -> AdminClient:
    """Open an admin client that knows its broker: a cold one's first list_offsets may wait three seconds."""
    admin = AdminClient({"bootstrap.servers": bootstrap_servers, **_NEAR})
    admin.list_topics(timeout=30)
    return admin
