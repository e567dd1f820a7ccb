"""The five bytes before a value."""

import pytest

from tallystick.formats.prefix import PrefixedJsonOpener, Undecodable, schema_id_of


def test_the_id_stands_in_four_bytes_behind_a_zero() -> None:
    assert schema_id_of(b"\0\0\1\0\2rest") == 65_538
    assert PrefixedJsonOpener().to_json(b'\0\0\0\0\7{"a":1}') == b'{"a":1}'
    assert PrefixedJsonOpener().why_unusable(b"", "a") == ""


@pytest.mark.parametrize(
    ("value", "got"),
    [(b"", "got nothing"), (b"\0\0\0\7", "got 4"), (b'{"a":1}', "got byte 0x7b"), (b"\1\0\0\0\7", "0x01")],
)
def test_anything_else_has_no_id_and_says_so(value: bytes, got: str) -> None:
    with pytest.raises(Undecodable, match=f"does not begin with a schema's id: expected .*{got}"):
        PrefixedJsonOpener().to_json(value)
