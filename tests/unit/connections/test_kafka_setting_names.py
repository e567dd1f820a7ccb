"""No setting of the installed librdkafka is unknown: each is taken, ignored with a notice, or refused with a reason."""

from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from kafka.admin import KafkaAdminClient

from tallystick.connections.kafka_setting_names import (
    ALIASES,
    IGNORED,
    INSTEAD,
    ONLY,
    REFUSED,
    TAKEN,
    KafkaSettingRefused,
    known_names,
    sort_settings,
    why_ignored,
)

from .librdkafka_names import names_of_installed_library


def test_no_setting_of_the_installed_library_is_unknown(tmp_path: Path) -> None:
    names = names_of_installed_library(tmp_path)
    assert {"sasl.mechanisms", "acks", "test.mock.num.brokers"} <= names
    assert names - known_names() == set()


def test_each_name_has_one_meaning() -> None:
    tables = [*TAKEN, *ALIASES, *ONLY, *INSTEAD]
    tables += [name for named in (*IGNORED.values(), *REFUSED.values()) for name in named]
    assert sorted(tables) == sorted(set(tables))
    assert set(ALIASES.values()) <= known_names() - set(ALIASES)


def test_what_is_told_to_the_other_clients_is_what_they_know() -> None:
    assert {told.python for told in TAKEN.values() if told.python} <= set(KafkaAdminClient.DEFAULT_CONFIG)


def test_librdkafka_takes_what_is_taken() -> None:
    """But for what names files, or needs a whole set beside it."""
    samples = {name: "1000" for name in TAKEN if name.endswith((".ms", ".bytes"))}
    samples |= {"bootstrap.servers": "b:1", "client.id": "c", "security.protocol": "PLAINTEXT", "log_level": "0"}
    samples |= {
        "broker.address.family": "v4",
        "client.dns.lookup": "use_all_dns_ips",
        "socket.keepalive.enable": "true",
    }
    AdminClient(samples)


@pytest.mark.parametrize("reason", REFUSED)
def test_each_refused_setting_is_refused_with_its_reason_and_without_its_value(reason: str) -> None:
    for name in REFUSED[reason]:
        with pytest.raises(KafkaSettingRefused) as raised:
            sort_settings({"bootstrap.servers": "b:1", name: "s3cret"})
        assert str(raised.value) == f"{name}: {reason}"


@pytest.mark.parametrize("name", ONLY)
def test_a_setting_that_may_only_have_one_value_is_refused_with_another(name: str) -> None:
    for value in ONLY[name].values:
        assert sort_settings({name: value.upper()}).taken == {}
    with pytest.raises(KafkaSettingRefused, match=f"^{name}: expected {ONLY[name].values[0]}: "):
        sort_settings({name: "s3cret"})


def test_ignored_settings_are_named_in_order_and_none_is_taken() -> None:
    names = [name for named in IGNORED.values() for name in named]
    found = sort_settings(dict.fromkeys(names, "x") | {"acks": "all"})
    assert found.taken == {}
    assert found.ignored == tuple(sorted([*names, "acks"]))
    assert why_ignored("acks") == why_ignored("batch.size")


def test_an_alias_is_taken_by_the_settings_own_name() -> None:
    given = {"metadata.broker.list": "b:1", "sasl.mechanisms": "PLAIN"}
    assert sort_settings(given).taken == {"bootstrap.servers": "b:1", "sasl.mechanism": "PLAIN"}
    assert sort_settings({**given, "sasl.mechanism": "PLAIN"}).taken["sasl.mechanism"] == "PLAIN"
    with pytest.raises(KafkaSettingRefused, match=r"^sasl\.mechanism: is sasl\.mechanism by another name, and both"):
        sort_settings({**given, "sasl.mechanism": "OAUTHBEARER"})


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("sasl.pasword", "no setting of librdkafka; expected sasl.password?"),
        ("sasl_mechanism", "no setting of librdkafka; expected sasl.mechanism?"),
        ("zookeeper.connect", "no setting of librdkafka; leave it out"),
        ("sasl.jaas.config", "a setting of Java's clients; expected sasl.username and sasl.password"),
        ("ssl.truststore.location", "a setting of Java's clients; expected ssl.ca.location or ssl.ca.pem, in PEM"),
    ],
)
def test_a_name_that_librdkafka_has_not_is_refused_with_the_one_that_was_meant(name: str, says: str) -> None:
    with pytest.raises(KafkaSettingRefused) as raised:
        sort_settings({name: "s3cret"})
    assert says in str(raised.value)
    assert "s3cret" not in str(raised.value)
