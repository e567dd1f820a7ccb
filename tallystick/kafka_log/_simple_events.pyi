def read_simple(
    values: list[bytes] | list[bytes | None], paths: tuple[tuple[bytes, ...], ...], text_max: int, /
) -> tuple[list[bytes], bytes, list[str]] | None:
    """Return match keys, amounts as 64-bit integers, and currencies, if all values are simple events; otherwise None.

    paths: the keys on the way to match key, transaction key, leg, currency and amount, none of which leads through
    another. text_max: characters of a text. Raises ValueError for other paths than five of at most 16 keys.
    """
