from typing_extensions import Buffer

def write_texts(
    columns: tuple[tuple[bytes, int, Buffer | None, Buffer | None, Buffer | None, int], ...],
    rows: int,
    are_json: bool,
    text_max: int,
    /,
) -> tuple[bytes, bytes, list[int]] | None:
    """Return the text of each row as `ComparedColumns.text_of` writes it, and the rows of which it wrote none.

    Texts: where each ends, behind a zero, as 32-bit integers of this machine's order; and the bytes of all. None of
    more than 64 columns, and where no 32 bits hold the places.

    columns: what stands before a value; its kind, 0 text, 1 number or 2 time; validity, ends and bytes as Arrow has
    them; and the place of the first row in these. are_json: values are JSON, and absent where they have no byte.
    text_max: characters of a text. Raises ValueError for no column, and for buffers that hold fewer rows.
    """
