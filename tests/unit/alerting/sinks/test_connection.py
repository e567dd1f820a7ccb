"""A sink's connection is read from the environment, and what cannot be read is not shown."""

import pytest

from tallystick.alerting.sinks.connection import SinkConnection, sink_connection


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("https://h/x", SinkConnection(address="https://h/x")),
        (
            '{"address": "smtp://h", "login": "l", "secret": "s", "to": "a@b"}',
            SinkConnection(address="smtp://h", login="l", secret="s", settings={"to": "a@b"}),
        ),
    ],
)
def test_a_connection_is_read_from_the_environment(text: str, expected: SinkConnection) -> None:
    assert sink_connection("pager", {"TALLYSTICK_CONN_PAGER": text}) == expected


@pytest.mark.parametrize("text", ["", "{s3cret", '{"secret": 7}'])
def test_a_connection_that_cannot_be_read_says_so_without_its_text(text: str) -> None:
    found = sink_connection("pager", {"TALLYSTICK_CONN_PAGER": text})
    assert "connection pager: expected" in found.fault
    assert "s3cret" not in found.fault + repr(found)
