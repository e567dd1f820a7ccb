def open_flat(
    values: list[bytes] | list[bytes | None],
    head: bytes,
    fields: tuple[tuple[int, int, bool, int], ...],
    names: tuple[bytes, ...],
    /,
) -> list[bytes] | None:
    """Return each value as one JSON object, if all are plain flat messages behind this head; otherwise None.

    fields: all of the message's, each with its number, its kind, does the schema tell unset from its default, and its
    place among the names, -1 where it is not written. Kinds: 0 int64, 1 int32, 2 sint64, 3 sint32, 4 uint64, 5 uint32,
    6 bool, 7 string; and what is only passed over: 8 of four bytes, 9 of eight, 10 bytes, 11 an enum. names: in the
    order in which they are written, as JSON with the colon. Plain: its texts are printable ASCII without quotes and
    backslashes. Raises ValueError for a plan that is none.
    """
