"""A connection is told to Java in its own words."""

import json

import pytest
from confluent_kafka.admin import AdminClient

from tallystick.connections.connections import ConnectionNotGiven, KafkaSettings

from .kafka_forms import CHAIN, OIDC


def test_a_login_by_token_is_told_to_java_as_it_asks_for_it() -> None:
    java = KafkaSettings(OIDC).for_spark()
    ca = json.dumps(CHAIN)
    assert java["kafka.sasl.jaas.config"] == (
        "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
        'clientId="reader" clientSecret="s3\\"cret" scope="kafka" extension_logicalCluster="lkc-1" '
        f'extension_identityPoolId="pool-2" ssl.truststore.type="PEM" ssl.truststore.certificates={ca};'
    )
    assert java["kafka.sasl.oauthbearer.token.endpoint.url"] == "https://idp.example/token"
    assert "kafka.ssl.truststore.certificates" not in java  # the broker's CA is another matter
    AdminClient(KafkaSettings(OIDC).for_confluent() | {"log_level": 0})


def test_extensions_that_are_no_pairs_are_refused() -> None:
    with pytest.raises(ConnectionNotGiven, match="expected key=value"):
        KafkaSettings(OIDC | {"sasl.oauthbearer.extensions": "logicalCluster"}).for_spark()
