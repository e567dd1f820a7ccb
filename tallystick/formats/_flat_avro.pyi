def open_flat(
    values: list[bytes] | list[bytes | None],
    head: bytes,
    fields: tuple[tuple[bytes, bool, int], ...],
    names: tuple[bytes, ...],
    /,
) -> list[bytes] | None:
    """Return each value as one JSON object, if all are plain flat records behind this head; otherwise None.

    fields: in the schema's order, the kinds of its union's branches, is it a union, and its place among the names, -1
    where it is not written. Kinds: 0 null, 1 boolean, 2 int or long, 3 string, 4 float, 5 double; the last two are only
    passed over. names: in the order in which they are written, as JSON with the colon. Plain: its texts are printable
    ASCII without quotes and backslashes. Raises ValueError for a plan that is none.
    """
