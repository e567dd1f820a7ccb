from typing_extensions import Buffer

def xxhash_texts(ends: Buffer, texts: Buffer, first: int, rows: int, seeds: Buffer, /) -> bytes:
    """Return XXH64 of each text, as 64-bit integers of this machine's order, like `seeds`, which has one of each.

    ends, texts: as Arrow has them; first: the place of the first row in these. Raises ValueError where they do not fit.
    """

def siphash_texts(ends: Buffer, texts: Buffer, first: int, rows: int, key: Buffer, /) -> bytes:
    """Return SipHash-2-4 of each text under a key of 16 bytes, mixed once more, in the same way."""
