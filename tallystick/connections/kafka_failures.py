"""The reason why a cluster cannot be reached, in a sentence with advice. Asks librdkafka, which says what kafka-python
logs.

Asked only after kafka-python has given up; reads nothing, and never has a password in what it says.
"""

import re
import ssl
import time
from collections.abc import Iterator
from enum import Enum
from socket import create_connection

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from tallystick.connections.connections import MSK_IAM, KafkaSettings
from tallystick.connections.kafka_certificates import client_certificate
from tallystick.connections.kafka_in_python import tls_context
from tallystick.connections.kafka_tokens import TokenNotGiven, tokens_of

_SECONDS_TO_ASK = 5.0
_SECONDS_TO_CONNECT = 3.0
_SECONDS_TO_HEAR = 1.0
_OWN_CAS = "this host's own CAs"

_FOR_ANOTHER_NAME = (62, 64)
_OUT_OF_DATE = (9, 10)
"""Codes of OpenSSL, X509_V_ERR: of a host's name and an address; not valid yet, and not any more."""
_OF_A_CERTIFICATE = ("CERTIFICATE", "UNKNOWN_CA")
"""Parts of the alerts by which a server says no to a client's certificate, or to its lack."""

_SAID: tuple[tuple[int, str, str], ...] = (
    (
        KafkaError._AUTHENTICATION,
        "not valid in current SASL state",
        "that listener asks for no account, and security.protocol {protocol} offers one; "
        "take the port of the listener with accounts, or PLAINTEXT or SSL",
    ),
    (
        KafkaError._AUTHENTICATION,
        "nsupported SASL mechanism",
        "it does not take sasl.mechanism {mechanism} ({said}); take one that it does",
    ),
    (
        KafkaError._AUTHENTICATION,
        "invalid_token",
        "it refuses the token of client {client} ({said}); let the broker expect this identity provider's issuer, "
        "audience and keys, or ask by another sasl.oauthbearer.scope",
    ),
    (
        KafkaError._AUTHENTICATION,
        "",
        "it refuses the account {user} ({said}); correct sasl.username and sasl.password, or have the account made",
    ),
    (
        KafkaError._SSL,
        "",
        "no TLS comes about ({said}); see that this port is one for security.protocol {protocol}",
    ),
    (
        KafkaError._RESOLVE,
        "",
        "there is no host of that name ({said}); correct bootstrap.servers",
    ),
    (
        KafkaError._TRANSPORT,
        "Connection refused",
        "nothing listens there (Connection refused); correct bootstrap.servers, or start the broker",
    ),
    (
        KafkaError._TRANSPORT,
        "Connect to ",
        "no connection comes about ({said}); correct bootstrap.servers, or let this host through to the broker",
    ),
)
"""Code, a part of librdkafka's words, and our sentence; the first that fits is told, so what says more comes first."""


def why_unreachable(kafka: KafkaSettings) -> str:
    """Say why this cluster cannot be reached with these settings, and what to do. Takes some seconds."""
    fault = _why_no_token(kafka) or _why_no_tls(kafka)
    if fault:
        return fault
    told = _ask(kafka)
    for code, part, sentence in _SAID:
        for error_code, said in told:
            if error_code == code and part in said:
                return sentence.format(said=said, **_words(kafka))
    unknown = [said for code, said in told if code != KafkaError._TRANSPORT]
    return unknown[0] if unknown else _why_silent(kafka)


def _why_no_token(kafka: KafkaSettings) -> str:
    """Empty where this connection logs in without a token, or is given one."""
    if kafka.mechanism not in ("OAUTHBEARER", MSK_IAM):
        return ""
    try:
        tokens_of(kafka).token()
    except TokenNotGiven as refused:
        return str(refused)
    return ""


def _why_no_tls(kafka: KafkaSettings) -> str:
    """Empty where TLS is not asked for, or comes about with one of the servers, or nobody there speaks it."""
    if "SSL" not in kafka.protocol:
        return ""
    faults = [_fault_of_handshake(kafka, *address) for address in _addresses(kafka)]
    return faults[0] if all(faults) else ""


def _fault_of_handshake(kafka: KafkaSettings, host: str, port: int) -> str:
    """Shake hands as the clients do, and hear what is wrong with either certificate. Nothing is sent."""
    try:
        with (
            create_connection((host, port), timeout=_SECONDS_TO_CONNECT) as raw,
            tls_context(kafka).wrap_socket(raw, server_hostname=host) as shaken,
        ):
            shaken.settimeout(_SECONDS_TO_HEAR)  # with TLS 1.3 a server looks at our certificate after the handshake
            shaken.recv(1)
    except ssl.SSLCertVerificationError as error:
        return _fault_of_server(error, kafka, host)
    except ssl.SSLError as error:
        return _fault_of_client(error.reason or "", kafka)
    except (OSError, OverflowError, UnicodeError):
        return ""
    return ""


def _fault_of_server(error: ssl.SSLCertVerificationError, kafka: KafkaSettings, host: str) -> str:
    if error.verify_code in _FOR_ANOTHER_NAME:
        return (
            f"its certificate is not for {host} ({error.verify_message}); let bootstrap.servers have the name that the "
            "certificate has, or have one made for this"
        )
    if error.verify_code in _OUT_OF_DATE:
        return (
            f"its certificate is out of date ({error.verify_message}); have the broker's renewed, or correct the clock"
        )
    return (
        f"its certificate is not proven by {_words(kafka)['ca']} ({error.verify_message}); "
        "let ssl.ca.location or ssl.ca.pem have the CA that signed it"
    )


def _fault_of_client(alert: str, kafka: KafkaSettings) -> str:
    """What a server's alert says of our certificate; empty for others, which librdkafka tells of."""
    if not any(part in alert for part in _OF_A_CERTIFICATE):
        return ""
    said = alert.rpartition("ALERT_")[2].lower().replace("_", " ")
    if client_certificate(kafka.settings) is None:
        return (
            f"it asks for a client's certificate ({said}); expected ssl.certificate.location and ssl.key.location, or "
            ".pem for either"
        )
    return (
        f"it refuses the client's certificate ({said}); have one made by a CA that the broker's truststore has, and "
        "see that it is not out of date"
    )


def _ask(kafka: KafkaSettings) -> list[tuple[int, str]]:
    """Codes and words of librdkafka's first tries: until it names a refusal, or has told of each server."""
    told: list[tuple[int, str]] = []

    def hear(error: KafkaError) -> None:
        if error.code() != KafkaError._ALL_BROKERS_DOWN:
            told.append((error.code(), _words_of(error)))

    end = time.monotonic() + _SECONDS_TO_ASK
    try:
        client = AdminClient(kafka.for_confluent() | {"error_cb": hear, "log_level": 0})
    except KafkaException as error:
        return [(error.args[0].code(), _words_of(error.args[0]))]
    while time.monotonic() < end and len(told) < len(list(_addresses(kafka))):
        client.poll(0.1)
        if any(code in (KafkaError._AUTHENTICATION, KafkaError._SSL) for code, _ in told):
            break
    return told


def _words_of(error: KafkaError) -> str:
    """Without the address in front, which we name, and the time behind."""
    said = re.sub(r" \(after \d+ms in state \w+\)$", "", error.str())
    return re.sub(r"^\S+/\w+: ", "", said).replace("error:", "")


class _Listener(Enum):
    """What a port does with a TLS handshake."""

    TLS = "shakes hands"
    PLAINTEXT = "takes the connection, and no handshake"
    NONE = "takes no connection"


def _why_silent(kafka: KafkaSettings) -> str:
    """The broker hangs up, or does not answer at all; librdkafka does not say which."""
    protocol = kafka.protocol
    listeners = {_listener(*address) for address in _addresses(kafka)}
    if listeners == {_Listener.NONE}:
        return "nothing answers there; correct bootstrap.servers, or let this host through to the broker"
    if "SSL" in protocol and _Listener.TLS not in listeners:
        return (
            f"that port does not speak TLS, and security.protocol is {protocol}; "
            f"take the port of the TLS listener, or {protocol.replace('SSL', 'PLAINTEXT')}"
        )
    if "SSL" not in protocol and _Listener.TLS in listeners:
        return (
            f"that port speaks TLS, and security.protocol is {protocol}; "
            f"expected {protocol.replace('PLAINTEXT', 'SSL')}, or the port of a listener without TLS"
        )
    if "SASL" not in protocol:
        return (
            "it takes the connection and does not answer; it may ask for an account, which security.protocol "
            f"{protocol} does not offer: expected SASL_{protocol} and sasl.mechanism, or the port of another listener"
        )
    return f"it does not answer; expected a Kafka broker that speaks {protocol} there"


def _listener(host: str, port: int) -> _Listener:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # only whether it shakes hands; nothing is sent
    try:
        with create_connection((host, port), timeout=_SECONDS_TO_CONNECT) as raw:
            try:
                context.wrap_socket(raw, server_hostname=host).close()
            except OSError:
                return _Listener.PLAINTEXT
            return _Listener.TLS
    except (OSError, OverflowError, UnicodeError):
        return _Listener.NONE


def _addresses(kafka: KafkaSettings) -> Iterator[tuple[str, int]]:
    """Host and port of each bootstrap server; 9092 is Kafka's own port."""
    for server in kafka.bootstrap_servers.split(","):
        host, _, port = server.strip().rpartition("://")[2].rpartition(":")
        yield (host.strip("[]"), int(port)) if host and port.isdigit() else (port, 9092)


def _words(kafka: KafkaSettings) -> dict[str, str]:
    return {
        "protocol": kafka.protocol,
        "mechanism": kafka.mechanism,
        "user": kafka.settings.get("sasl.username", ""),
        "client": kafka.settings.get("sasl.oauthbearer.client.id", ""),
        "ca": kafka.settings.get("ssl.ca.location", "ssl.ca.pem" if "ssl.ca.pem" in kafka.settings else _OWN_CAS),
        "hosts": ", ".join(host for host, _ in _addresses(kafka)),
    }
