"""The address of a sink and the way to open it, as a value. The caller reads it, as in `connections`.

Outside Airflow the connection `pager` is the environment variable TALLYSTICK_CONN_PAGER: an address, or a JSON object
with `address`, `login`, `secret`, and what else its kind of sink asks for.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from tallystick.connections.connections import ConnectionNotGiven, connection_text


@dataclass(frozen=True, kw_only=True)
class SinkConnection:
    """All of it may be secret, so none of it appears in a message. fault: why there is none; then the rest is empty.

    settings: what only one kind of sink asks for, such as an e-mail's recipients.
    """

    address: str = field(default="", repr=False)
    login: str = field(default="", repr=False)
    secret: str = field(default="", repr=False)
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)
    fault: str = ""


def sink_connection(connection_id: str, environment: Mapping[str, str] = os.environ) -> SinkConnection:
    """Read one from the environment; one that is not given, or not readable, says so when it is sent to."""
    try:
        text = connection_text(connection_id, environment)
    except ConnectionNotGiven as error:
        return SinkConnection(fault=str(error))
    if not text.startswith("{"):
        return SinkConnection(address=text)
    try:
        given = json.loads(text)
    except json.JSONDecodeError:
        given = {"": None}
    if not all(isinstance(value, str) for value in given.values()):
        return SinkConnection(
            fault=f'connection {connection_id}: expected an address, or a JSON object of strings such as {{"address": '
            '"https://pager.example.org", "secret": "..."}'
        )
    known = {name: given.pop(name, "") for name in ("address", "login", "secret")}
    return SinkConnection(**known, settings=given)
