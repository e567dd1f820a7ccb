"""A Kafka connection as Java's clients take it, which Spark's source is one of. Opens nothing but certificates.

Files of CAs stay files, which must be there on every executor; a client's certificate goes along, since Java asks for
another form of it. Source: KIP-651 (PEM), KIP-768 (OIDC).
"""

import json
from collections.abc import Mapping

from tallystick.connections.connections import MSK_IAM, WITH_PASSWORD, KafkaSettings
from tallystick.connections.kafka_setting_names import TAKEN

_SECURITY = "org.apache.kafka.common.security"
_LOGIN = {
    "PLAIN": f"{_SECURITY}.plain.PlainLoginModule",
    "SCRAM-SHA-256": f"{_SECURITY}.scram.ScramLoginModule",
    "SCRAM-SHA-512": f"{_SECURITY}.scram.ScramLoginModule",
    "OAUTHBEARER": f"{_SECURITY}.oauthbearer.OAuthBearerLoginModule",
}
_OF_MSK = {
    "sasl.jaas.config": "software.amazon.msk.auth.iam.IAMLoginModule required;",
    "sasl.client.callback.handler.class": "software.amazon.msk.auth.iam.IAMClientCallbackHandler",
}
_PROBE = "probe"


def java_settings(kafka: KafkaSettings) -> dict[str, str]:
    """Return settings of Java's clients. Raises ConnectionNotGiven."""
    told = {theirs.java: value for name, value in kafka.settings.items() if (theirs := TAKEN[name]).java}
    return told | _tls(kafka) | _login(kafka)


def _tls(kafka: KafkaSettings) -> dict[str, str]:
    if "SSL" not in kafka.protocol:
        return {}
    told = _cas(kafka.settings, "ssl")
    if not kafka.checks_host:
        told["ssl.endpoint.identification.algorithm"] = ""
    if any(name.startswith(("ssl.certificate.", "ssl.keystore.")) for name in kafka.settings):
        from tallystick.connections.kafka_certificates import client_certificate

        found = client_certificate(kafka.settings)
        assert found is not None
        told |= {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.certificate.chain": found.chain,
            "ssl.keystore.key": found.key_pem(),
        }
    return told


def _cas(settings: Mapping[str, str], prefix: str) -> dict[str, str]:
    if text := settings.get(f"{prefix}.ca.pem"):
        return {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": text}
    path = settings.get(f"{prefix}.ca.location", _PROBE)
    return {} if path == _PROBE else {"ssl.truststore.type": "PEM", "ssl.truststore.location": path}


def _login(kafka: KafkaSettings) -> dict[str, str]:
    settings, mechanism = kafka.settings, kafka.mechanism
    if not mechanism:
        return {}
    if mechanism == MSK_IAM:
        return {"sasl.mechanism": MSK_IAM, **_OF_MSK}
    if mechanism in WITH_PASSWORD:
        account = {"username": settings["sasl.username"], "password": settings["sasl.password"]}
        return {"sasl.mechanism": mechanism, "sasl.jaas.config": _login_line(mechanism, account)}
    from tallystick.connections.kafka_tokens import extensions_of

    client = {
        "clientId": settings["sasl.oauthbearer.client.id"],
        "clientSecret": settings["sasl.oauthbearer.client.secret"],
        **({"scope": settings["sasl.oauthbearer.scope"]} if settings.get("sasl.oauthbearer.scope") else {}),
        **{f"extension_{name}": value for name, value in extensions_of(settings).items()},
        **_cas(settings, "https"),
    }
    return {
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": _login_line(mechanism, client),
        "sasl.login.callback.handler.class": f"{_SECURITY}.oauthbearer.OAuthBearerLoginCallbackHandler",
        "sasl.oauthbearer.token.endpoint.url": settings["sasl.oauthbearer.token.endpoint.url"],
    }


def _login_line(mechanism: str, options: Mapping[str, str]) -> str:
    said = " ".join(f"{name}={_quoted(value)}" for name, value in options.items())
    return f"{_LOGIN[mechanism]} required {said};"


def _quoted(text: str) -> str:
    """As a login line quotes: backslashes before quotes and backslashes; letters as they are, it knows no \\u."""
    return json.dumps(text, ensure_ascii=False)
