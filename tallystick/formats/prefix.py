"""Confluent's wire format: a zero byte, the schema's id in four bytes, and then the value itself."""

from tallystick.model.errors import TallystickError

MAGIC, HEAD_BYTES = 0, 5


class Undecodable(TallystickError):
    """A value's bytes are not what its format says. The message is a clause about the record, without its content."""


def schema_id_of(value: bytes) -> int:
    """Return the id of the schema that a value was written with. Raises Undecodable."""
    if len(value) < HEAD_BYTES or value[0] != MAGIC:
        begins = f"byte {value[0]:#04x}" if value else "nothing"
        raise Undecodable(
            f"it does not begin with a schema's id: expected byte 0x00 and four bytes more, got {begins}"
            if len(value) >= HEAD_BYTES or not value
            else f"it does not begin with a schema's id: expected five bytes at least, got {len(value)}"
        )
    return int.from_bytes(value[1:HEAD_BYTES], "big")


class PrefixedJsonOpener:
    """JSON behind a schema's id, as JSON Schema serializers write it. JSON says itself what it is: nobody is asked."""

    keeps_text = True

    def to_json(self, value: bytes) -> bytes:
        """Return what stands behind the id. Raises Undecodable."""
        schema_id_of(value)
        return value[HEAD_BYTES:]

    def why_unusable(self, value: bytes, path: str) -> str:
        """Return nothing: there is no schema."""
        return ""
