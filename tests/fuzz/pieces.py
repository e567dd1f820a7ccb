"""Bytes as what a target asks for: so each input says all of it, and one byte more changes one thing."""

import struct


class Pieces:
    """Reads from the front. Where nothing is left, numbers are 0 and texts empty."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def __bool__(self) -> bool:
        return self._at < len(self._data)

    def byte(self) -> int:
        one = self._data[self._at : self._at + 1]
        self._at += 1
        return one[0] if one else 0

    def number(self, shape: str) -> int:
        """One number as `struct` writes it."""
        size = struct.calcsize(shape)
        (found,) = struct.unpack(shape, self._data[self._at : self._at + size].ljust(size, b"\0"))
        self._at += size
        return int(found)

    def sized(self) -> bytes | None:
        """So many bytes as the first two say; None where they say more than half of what they can."""
        size = self.number(">H")
        if size > 0x7FFF:
            return None
        self._at += size
        return self._data[self._at - size : self._at]

    def rest(self) -> bytes:
        left = self._data[self._at :]
        self._at = len(self._data)
        return left


def sized(*texts: bytes | None) -> bytes:
    """What `Pieces.sized` reads."""
    return b"".join(b"\xff\xff" if text is None else struct.pack(">H", len(text)) + text for text in texts)
