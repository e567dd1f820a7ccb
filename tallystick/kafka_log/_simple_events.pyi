def read_simple(
    values: list[bytes] | list[bytes | None], paths: tuple[tuple[bytes, ...], ...], text_max: int, /
) -> tuple[list[bytes], bytes, list[str], tuple[tuple[bytes, bytes], ...]] | None:
    """Return match keys, amounts as 64-bit integers, currencies, and columns, if all values are simple events.

    Otherwise, and of more than 16 paths, None.

    paths: the keys on the way to match key, transaction key, leg, currency, amount and each column, none of which leads
    through another. A column: where the JSON of each event ends, behind a zero, as 32-bit integers of this machine's
    order; and the JSON of all, nothing where it is absent. text_max: characters of a text. Raises ValueError for fewer
    than 5 paths, and for one of more than 16 keys.
    """
