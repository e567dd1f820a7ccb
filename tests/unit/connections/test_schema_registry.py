"""What the connection of a schema registry may say."""

import pytest

from tallystick.connections.connections import ConnectionNotGiven
from tallystick.connections.schema_registry import registry_of, registry_settings, remember_registries


def test_confluents_own_words_are_taken() -> None:
    text = (
        '{"schema.registry.url": "https://registry.example.org", "basic.auth.credentials.source": "USER_INFO", '
        '"basic.auth.user.info": "reader:secret", "ssl.ca.location": "/ca.pem"}'
    )
    found = registry_settings(text, connection_id="schemas")
    assert dict(found.settings)["url"] == "https://registry.example.org"
    assert found.host == "registry.example.org"
    assert "secret" not in repr(found)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("https://registry", "expected a JSON object"),
        ('{"url": 5}', "expected a JSON object"),
        ("{}", "no url"),
        ('{"url": "ftp://registry"}', "no url"),
        ('{"url": "https://a:b@registry"}', "a user in its url"),
        ('{"url": "https://a,https://b"}', "several addresses"),
        ('{"url": "https://a", "basic.auth.user.info": "secret"}', "another form"),
        ('{"url": "http://a", "basic.auth.user.info": "u:secret"}', "expected https"),
        ('{"url": "https://a", "ssl.key.location": "/k"}', "half of a client's certificate"),
        ('{"url": "https://a", "bearer.auth.token": "secret"}', "bearer.auth.token, which cannot be honoured"),
    ],
)
def test_another_connection_is_refused_without_its_value(text: str, fault: str) -> None:
    with pytest.raises(ConnectionNotGiven, match=fault) as caught:
        registry_settings(text, connection_id="schemas")
    assert "connection schemas" in str(caught.value) and "secret" not in str(caught.value)


def test_a_password_may_go_to_this_machine_without_tls() -> None:
    text = '{"url": "http://127.0.0.1:8081", "basic.auth.user.info": "u:p"}'
    assert registry_settings(text, connection_id="schemas").host == "127.0.0.1"


def test_what_is_remembered_goes_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TALLYSTICK_CONN_SCHEMAS_OF_ENVIRONMENT", '{"url": "https://a"}')
    assert registry_of("schemas_of_environment").host == "a"
    remember_registries({"schemas_of_task": registry_settings('{"url": "https://b"}', connection_id="x")})
    assert registry_of("schemas_of_task").host == "b"
    with pytest.raises(ConnectionNotGiven, match="TALLYSTICK_CONN_SCHEMAS_OF_NOBODY"):
        registry_of("schemas_of_nobody")
