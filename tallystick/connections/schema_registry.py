"""The way to a schema registry, as a value, and which one a connection id means in this process.

Decides what a connection may say, and that no password goes out unprotected. Opens nothing: tallystick.formats asks.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from tallystick.connections.connections import ConnectionNotGiven, connection_text

_TAKEN = (
    "url",
    "basic.auth.user.info",
    "ssl.ca.location",
    "ssl.certificate.location",
    "ssl.key.location",
    "ssl.key.password",
)
_ALIASES = {"schema.registry.url": "url"}
_ALWAYS_SO = {"basic.auth.credentials.source": "USER_INFO"}
"""What other programs write beside it, and what is done anyway."""
_HERE = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True)
class RegistrySettings:
    """The way to a registry, in the words of Confluent's clients; names and values as text, in order of the names.

    Raises ConnectionNotGiven for what cannot be honoured, without a value.
    """

    settings: tuple[tuple[str, str], ...] = field(repr=False)

    def __post_init__(self) -> None:
        if fault := _fault_of(dict(self.settings)):
            raise ConnectionNotGiven(f"a schema registry's connection has {fault}")

    @property
    def host(self) -> str:
        """Return the host, for messages: the address may hold what is nobody's business."""
        return urlsplit(dict(self.settings)["url"]).hostname or ""


_known: dict[str, RegistrySettings] = {}


def remember_registries(registries: Mapping[str, RegistrySettings]) -> None:
    """Make these the registries of their connection ids in this process.

    For processes that have no environment of their own to read: an executor's, and a task of Airflow's.
    """
    _known.update(registries)


def registry_of(connection_id: str) -> RegistrySettings:
    """Return the registry that was remembered, else that of the environment. Raises ConnectionNotGiven."""
    if connection_id in _known:
        return _known[connection_id]
    return registry_settings(connection_text(connection_id), connection_id=connection_id)


def registry_settings(text: str, *, connection_id: str) -> RegistrySettings:
    """Read a connection: a JSON object of strings. Raises ConnectionNotGiven."""
    try:
        given = json.loads(text)
    except json.JSONDecodeError:
        given = None
    if not isinstance(given, dict) or not all(isinstance(value, str) for value in given.values()):
        raise ConnectionNotGiven(
            f"connection {connection_id}: expected a JSON object of strings such as "
            '{"url": "https://registry.example.org", "basic.auth.user.info": "user:password"}'
        )
    return registry_settings_of(given, connection_id=connection_id)


def registry_settings_of(given: Mapping[str, Any], *, connection_id: str) -> RegistrySettings:
    """Return the registry with these settings. Raises ConnectionNotGiven."""
    named = {_ALIASES.get(name, name): str(value) for name, value in given.items()}
    settings = {name: value for name, value in named.items() if _ALWAYS_SO.get(name) != value}
    try:
        return RegistrySettings(tuple(sorted(settings.items())))
    except ConnectionNotGiven as error:
        raise ConnectionNotGiven(f"connection {connection_id}: {error}") from None


def _fault_of(settings: Mapping[str, str]) -> str:
    unknown = sorted(set(settings) - set(_TAKEN))
    if unknown:
        return f"{', '.join(unknown)}, which cannot be honoured; expected at most {', '.join(_TAKEN)}"
    address = urlsplit(settings.get("url", ""))
    if address.scheme not in ("http", "https") or not address.hostname:
        return "no url; expected one address such as https://registry.example.org"
    if address.username or address.password:
        return "a user in its url; expected basic.auth.user.info, since addresses are written to logs"
    if "," in settings["url"]:
        return "several addresses in its url; expected one"
    user = settings.get("basic.auth.user.info", "a:b")
    if not all(user.partition(":")):
        return "a basic.auth.user.info of another form; expected user:password"
    if "basic.auth.user.info" in settings and address.scheme == "http" and address.hostname not in _HERE:
        return "basic.auth.user.info and an http address; expected https, since the password goes there"
    if "ssl.certificate.location" not in settings and {"ssl.key.location", "ssl.key.password"} & set(settings):
        return "half of a client's certificate; expected ssl.certificate.location beside ssl.key.location"
    return ""
