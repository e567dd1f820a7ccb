"""Sorts a connection's librdkafka settings: taken, ignored with a notice, or refused with the reason.

Taken is what says where the cluster is, who we are there, and how the network is used. Ignored is the business of other
programs that share the connection: it changes neither what is read nor who is believed. Refused is what would change
one of these, or what one of the three clients cannot be told: leaving it out would ask less than the connection does.
Decides by names and values alone, and opens nothing. Source: librdkafka 2.16, CONFIGURATION.md.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import NamedTuple

from tallystick.model.errors import TallystickError


class KafkaSettingRefused(TallystickError, ValueError):
    """A setting cannot be honoured. The message names it and says why, never its value."""


class Told(NamedTuple):
    """The setting's name in kafka-python and in Java; empty where that client is told otherwise, or has its own way."""

    python: str = ""
    java: str = ""


_SAID_BY_CODE = Told()
_LIBRDKAFKAS_OWN = Told()

TAKEN: Mapping[str, Told] = {
    "bootstrap.servers": Told("bootstrap_servers", "bootstrap.servers"),
    "client.id": Told("client_id", "client.id"),
    "security.protocol": Told("security_protocol", "security.protocol"),
    **dict.fromkeys(
        (
            "ssl.ca.location",
            "ssl.ca.pem",
            "ssl.certificate.location",
            "ssl.certificate.pem",
            "ssl.key.location",
            "ssl.key.pem",
            "ssl.key.password",
            "ssl.keystore.location",
            "ssl.keystore.password",
            "ssl.endpoint.identification.algorithm",
            "https.ca.location",
            "https.ca.pem",
            "sasl.mechanism",
            "sasl.username",
            "sasl.password",
            "sasl.oauthbearer.method",
            "sasl.oauthbearer.client.id",
            "sasl.oauthbearer.client.secret",
            "sasl.oauthbearer.scope",
            "sasl.oauthbearer.extensions",
            "sasl.oauthbearer.token.endpoint.url",
        ),
        _SAID_BY_CODE,
    ),
    "sasl.oauthbearer.sub.claim.name": Told("", "sasl.oauthbearer.sub.claim.name"),
    "socket.timeout.ms": Told("request_timeout_ms", "request.timeout.ms"),
    "socket.connection.setup.timeout.ms": Told("", "socket.connection.setup.timeout.ms"),
    "metadata.max.age.ms": Told("metadata_max_age_ms", "metadata.max.age.ms"),
    "reconnect.backoff.ms": Told("reconnect_backoff_ms", "reconnect.backoff.ms"),
    "reconnect.backoff.max.ms": Told("reconnect_backoff_max_ms", "reconnect.backoff.max.ms"),
    "retry.backoff.ms": Told("retry_backoff_ms", "retry.backoff.ms"),
    "retry.backoff.max.ms": Told("", "retry.backoff.max.ms"),
    **dict.fromkeys(
        (
            "topic.metadata.refresh.interval.ms",
            "topic.metadata.refresh.fast.interval.ms",
            "topic.metadata.refresh.sparse",
            "topic.metadata.propagation.max.ms",
            "metadata.recovery.strategy",
            "metadata.recovery.rebootstrap.trigger.ms",
            "message.max.bytes",
            "receive.message.max.bytes",
            "connections.max.idle.ms",
            "socket.send.buffer.bytes",
            "socket.receive.buffer.bytes",
            "socket.keepalive.enable",
            "socket.nagle.disable",
            "socket.max.fails",
            "broker.address.ttl",
            "broker.address.family",
            "client.dns.lookup",
            "api.version.request.timeout.ms",
            "enable.sparse.connections",
            "metadata.request.timeout.ms",
        ),
        _LIBRDKAFKAS_OWN,
    ),
}

IGNORED: Mapping[str, tuple[str, ...]] = {
    "of a consumer: Tallystick joins no group and commits no offset": (
        "group.id",
        "group.instance.id",
        "group.protocol",
        "group.protocol.type",
        "group.remote.assignor",
        "partition.assignment.strategy",
        "session.timeout.ms",
        "heartbeat.interval.ms",
        "coordinator.query.interval.ms",
        "max.poll.interval.ms",
        "max.poll.records",
        "enable.auto.commit",
        "auto.commit.interval.ms",
        "enable.auto.offset.store",
        "auto.offset.reset",
        "offset.store.method",
        "offset.store.path",
        "offset.store.sync.interval.ms",
        "queued.min.messages",
        "queued.max.messages.kbytes",
        "fetch.wait.max.ms",
        "fetch.queue.backoff.ms",
        "fetch.message.max.bytes",
        "fetch.max.bytes",
        "fetch.min.bytes",
        "fetch.error.backoff.ms",
        "enable.partition.eof",
        "check.crcs",
        "client.rack",
        "share.acknowledgement.mode",
        "consume.callback.max.messages",
        "consume_cb",
        "rebalance_cb",
        "offset_commit_cb",
        "allow.auto.create.topics",
    ),
    "of a producer: repairs are written with settings of their own": (
        "transactional.id",
        "transaction.timeout.ms",
        "enable.idempotence",
        "enable.gapless.guarantee",
        "queue.buffering.max.messages",
        "queue.buffering.max.kbytes",
        "queue.buffering.max.ms",
        "queue.buffering.backpressure.threshold",
        "message.send.max.retries",
        "message.copy.max.bytes",
        "message.timeout.ms",
        "max.in.flight.requests.per.connection",
        "request.required.acks",
        "request.timeout.ms",
        "compression.codec",
        "compression.level",
        "batch.num.messages",
        "batch.size",
        "sticky.partitioning.linger.ms",
        "delivery.report.only.error",
        "produce.offset.report",
        "queuing.strategy",
        "partitioner",
        "partitioner_cb",
        "msg_order_cmp",
        "dr_cb",
        "dr_msg_cb",
    ),
    "about logs and figures of another program": (
        "debug",
        "log_level",
        "log.queue",
        "log.thread.name",
        "log.connection.close",
        "log_cb",
        "statistics.interval.ms",
        "stats_cb",
        "error_cb",
        "throttle_cb",
        "background_event_cb",
        "enabled_events",
        "enable.metrics.push",
        "builtin.features",
        "client.software.name",
    ),
    "without effect in this version of librdkafka": (
        "topic.metadata.refresh.fast.cnt",
        "socket.blocking.max.ms",
        "reconnect.backoff.jitter.ms",
        "api.version.request",
        "api.version.fallback.ms",
        "broker.version.fallback",
        "enable.random.seed",
        "internal.termination.signal",
        "ssl.ca.certificate.stores",
    ),
    "of a schema registry, which has a connection of its own, kafka.schema_registry of a contract": (
        "schema.registry.url",
        "basic.auth.credentials.source",
        "basic.auth.user.info",
    ),
}
"""Reason, and the settings that are ignored for it."""

NO_KERBEROS = (
    "Kerberos: the librdkafka in confluent-kafka's wheel is built without it, so repairs could not log in; "
    "expected PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER or AWS_MSK_IAM, or a client's certificate"
)

REFUSED: Mapping[str, tuple[str, ...]] = {
    NO_KERBEROS: (
        "sasl.kerberos.service.name",
        "sasl.kerberos.principal",
        "sasl.kerberos.kinit.cmd",
        "sasl.kerberos.keytab",
        "sasl.kerberos.min.time.before.relogin",
    ),
    "Python, Java and librdkafka name ciphers and curves differently, so no client could be held to it; "
    "limit them on the broker": ("ssl.cipher.suites", "ssl.curves.list", "ssl.sigalgs.list"),
    "Spark's Kafka client asks no list of revoked certificates": ("ssl.crl.location",),
    "it brings code or a crypto engine into librdkafka that the other clients do not have": (
        "ssl.engine.location",
        "ssl.engine.id",
        "ssl_engine_callback_data",
        "ssl.providers",
        "plugin.library.paths",
        "interceptors",
    ),
    "it is set by a program, and a connection is text": (
        "ssl_key",
        "ssl_certificate",
        "ssl_ca",
        "ssl.certificate.verify_cb",
        "oauthbearer_token_refresh_cb",
        "oauth_cb",
        "enable_sasl_queue",
        "socket_cb",
        "connect_cb",
        "closesocket_cb",
        "open_cb",
        "resolve_cb",
        "opaque",
        "default_topic_conf",
    ),
    "it hides topics from one client and not from the others": ("topic.blacklist",),
    "unsigned tokens prove nothing; expected sasl.oauthbearer.method=oidc": (
        "sasl.oauthbearer.config",
        "enable.sasl.oauthbearer.unsecure.jwt",
    ),
    "Spark's Kafka client knows the grant by client credentials only": (
        "sasl.oauthbearer.assertion.algorithm",
        "sasl.oauthbearer.assertion.private.key.file",
        "sasl.oauthbearer.assertion.private.key.passphrase",
        "sasl.oauthbearer.assertion.private.key.pem",
        "sasl.oauthbearer.assertion.file",
        "sasl.oauthbearer.assertion.claim.aud",
        "sasl.oauthbearer.assertion.claim.exp.seconds",
        "sasl.oauthbearer.assertion.claim.iss",
        "sasl.oauthbearer.assertion.claim.jti.include",
        "sasl.oauthbearer.assertion.claim.nbf.seconds",
        "sasl.oauthbearer.assertion.claim.sub",
        "sasl.oauthbearer.assertion.jwt.template.file",
    ),
    "it puts a mocked cluster in place of the real one": ("test.mock.num.brokers", "test.mock.broker.rtt"),
}
"""Reason, and the settings that are refused for it, whatever their value."""


class OnlyValues(NamedTuple):
    """The only values that a setting may have, and why. They ask for what is done anyway, so nobody is told of them."""

    values: tuple[str, ...]
    why: str


ONLY: Mapping[str, OnlyValues] = {
    "isolation.level": OnlyValues(
        ("read_committed",), "records of aborted transactions are no events, and would be reported as breaks"
    ),
    "enable.ssl.certificate.verification": OnlyValues(
        ("true",), "whoever answers would be believed; let ssl.ca.location name the CA that signed the broker's"
    ),
    "sasl.oauthbearer.grant.type": OnlyValues(
        ("client_credentials",), "Spark's Kafka client knows the grant by client credentials only"
    ),
    "sasl.oauthbearer.metadata.authentication.type": OnlyValues(
        ("none",), "the other clients know no account of a cloud's machine; expected a client id and secret"
    ),
}

ALIASES: Mapping[str, str] = {
    "metadata.broker.list": "bootstrap.servers",
    "sasl.mechanisms": "sasl.mechanism",
    "sasl.oauthbearer.client.credentials.client.id": "sasl.oauthbearer.client.id",
    "sasl.oauthbearer.client.credentials.client.secret": "sasl.oauthbearer.client.secret",
    "max.in.flight": "max.in.flight.requests.per.connection",
    "max.partition.fetch.bytes": "fetch.message.max.bytes",
    "linger.ms": "queue.buffering.max.ms",
    "retries": "message.send.max.retries",
    "compression.type": "compression.codec",
    "acks": "request.required.acks",
    "delivery.timeout.ms": "message.timeout.ms",
    "auto.commit.enable": "enable.auto.commit",
}
"""Another name of the same setting."""

INSTEAD: Mapping[str, str] = {
    "sasl.jaas.config": "sasl.username and sasl.password, or those of sasl.oauthbearer",
    "sasl.login.callback.handler.class": "sasl.oauthbearer.method=oidc",
    "sasl.client.callback.handler.class": "sasl.mechanism=AWS_MSK_IAM alone",
    "ssl.truststore.location": "ssl.ca.location or ssl.ca.pem, in PEM",
    "ssl.truststore.password": "ssl.ca.location or ssl.ca.pem, in PEM",
    "ssl.truststore.type": "ssl.ca.location or ssl.ca.pem, in PEM",
    "ssl.truststore.certificates": "ssl.ca.pem",
    "ssl.keystore.type": "ssl.keystore.location of PKCS#12, or ssl.certificate.pem and ssl.key.pem",
    "ssl.keystore.key": "ssl.key.pem",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "key.deserializer": "a connection without it",
    "value.deserializer": "a connection without it",
    "key.serializer": "a connection without it",
    "value.serializer": "a connection without it",
}
"""Words of Java's clients, and what librdkafka calls it."""

_WHY_IGNORED = {name: why for why, names in IGNORED.items() for name in names}
_WHY_REFUSED = {name: why for why, names in REFUSED.items() for name in names}


@dataclass(frozen=True, kw_only=True)
class Sorted:
    """A connection's settings by what becomes of them. taken: by librdkafka's own names. ignored: names, in order."""

    taken: Mapping[str, str]
    ignored: tuple[str, ...]


def sort_settings(given: Mapping[str, str]) -> Sorted:
    """Sort them. Raises KafkaSettingRefused with the first that cannot be honoured."""
    taken: dict[str, str] = {}
    ignored = []
    for name, value in given.items():
        known = ALIASES.get(name, name)
        if known in ONLY:
            if value.lower() not in ONLY[known].values:
                raise KafkaSettingRefused(f"{name}: expected {ONLY[known].values[0]}: {ONLY[known].why}")
        elif known in TAKEN:
            if taken.get(known, value) != value:
                raise KafkaSettingRefused(f"{name}: is {known} by another name, and both are set; expected one of them")
            taken[known] = value
        elif known in _WHY_IGNORED:
            ignored.append(name)
        else:
            raise KafkaSettingRefused(f"{name}: {why_refused(known)}")
    return Sorted(taken=taken, ignored=tuple(sorted(ignored)))


def why_refused(name: str) -> str:
    """Say why a setting that is neither taken nor ignored is refused, and what was expected."""
    if name in _WHY_REFUSED:
        return _WHY_REFUSED[name]
    if name in INSTEAD:
        return f"a setting of Java's clients; expected {INSTEAD[name]}"
    near = get_close_matches(name, [*TAKEN, *ALIASES, *_WHY_IGNORED, *ONLY], n=1, cutoff=0.8)
    return f"no setting of librdkafka; expected {near[0]}?" if near else "no setting of librdkafka; leave it out"


def why_ignored(name: str) -> str:
    """Say why this setting is ignored."""
    return _WHY_IGNORED[ALIASES.get(name, name)]


def known_names() -> frozenset[str]:
    """Return every name of a setting of librdkafka that the tables have."""
    return frozenset([*TAKEN, *ALIASES, *_WHY_IGNORED, *_WHY_REFUSED, *ONLY])
