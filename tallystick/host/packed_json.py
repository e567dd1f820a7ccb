"""JSON objects kept as their text until somebody reads one: a tenth of what dictionaries in dictionaries take.

A run holds the evidence of all its breaks until they are stored, and nearly nobody reads any of it in between.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

_AS_JSON = msgspec.json.Encoder(order="sorted")


class PackedJson(Mapping[str, Any]):
    """A JSON object, in its keys' order. Each reading unpacks all of it anew, so ask it for one thing at a time.

    Raises TypeError where it is made of what JSON has no form of.
    """

    __slots__ = ("text",)

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.text = json_text(document)

    def __getitem__(self, name: str) -> Any:
        return msgspec.json.decode(self.text)[name]

    def __iter__(self) -> Iterator[str]:
        return iter(msgspec.json.decode(self.text))

    def __len__(self) -> int:
        return len(msgspec.json.decode(self.text))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({dict(self)})"

    def unpacked(self) -> dict[str, Any]:
        """Return all of it at once."""
        found: dict[str, Any] = msgspec.json.decode(self.text)
        return found


def json_text(document: Mapping[str, Any]) -> bytes:
    """Return a JSON object as text, each object's keys in their order. Raises TypeError as above."""
    return document.text if isinstance(document, PackedJson) else _AS_JSON.encode(document)


def unpacked_json(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the same, to be asked for several things."""
    return document.unpacked() if isinstance(document, PackedJson) else document
