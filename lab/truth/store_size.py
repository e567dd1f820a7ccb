"""How large the verdict store is on disk."""

import psycopg

_BYTES = """
    SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0) FROM pg_class c JOIN pg_namespace s ON s.oid = c.relnamespace
    WHERE s.nspname = 'tallystick' AND c.relkind = 'r'"""


def store_bytes(store_dsn: str) -> int:
    """Bytes of all its tables, with their indexes."""
    with psycopg.connect(store_dsn) as connection:
        (size,) = connection.execute(_BYTES).fetchone() or (0,)
    return int(size)
