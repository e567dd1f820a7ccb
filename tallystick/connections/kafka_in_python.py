"""A Kafka connection as kafka-python takes it. Reads certificates, and asks for a first token."""

import ssl
from typing import Any

from tallystick.connections.connections import WITH_PASSWORD, KafkaSettings
from tallystick.connections.kafka_certificates import client_certificate, load_cas, load_client_certificate
from tallystick.connections.kafka_setting_names import TAKEN
from tallystick.connections.kafka_tokens import tokens_of


def kafka_python_settings(kafka: KafkaSettings) -> dict[str, Any]:
    """Return keywords of its clients. Raises ConnectionNotGiven; TokenNotGiven where no token is given out now."""
    told: dict[str, Any] = {
        theirs.python: int(value) if name.endswith(".ms") and value.isdecimal() else value
        for name, value in kafka.settings.items()
        if (theirs := TAKEN[name]).python
    }
    if "SSL" in kafka.protocol:
        told["ssl_context"] = tls_context(kafka)
    if kafka.mechanism in WITH_PASSWORD:
        told |= {
            "sasl_mechanism": kafka.mechanism,
            "sasl_plain_username": kafka.settings["sasl.username"],
            "sasl_plain_password": kafka.settings["sasl.password"],
        }
    elif kafka.mechanism:
        tokens = tokens_of(kafka)
        tokens.token()  # a refusal is to be heard now, and by name; the client only sees that nothing comes about
        told |= {"sasl_mechanism": "OAUTHBEARER", "sasl_oauth_token_provider": tokens}
    return told


def tls_context(kafka: KafkaSettings) -> ssl.SSLContext:
    """Return what this connection proves and asks proof of. Raises ConnectionNotGiven."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = kafka.checks_host
    load_cas(context, kafka.settings, "ssl")
    if found := client_certificate(kafka.settings):
        load_client_certificate(context, found)
    return context
