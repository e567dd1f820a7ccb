def read_simple(
    values: list[bytes] | list[bytes | None], names: tuple[bytes, bytes, bytes, bytes, bytes], text_max: int, /
) -> tuple[list[bytes], bytes, list[str]] | None:
    """Return match keys, amounts as 64-bit integers, and currencies, if all values are simple events; otherwise None.

    names: the JSON names of match key, transaction key, leg, currency and amount. text_max: characters of a text.
    """
