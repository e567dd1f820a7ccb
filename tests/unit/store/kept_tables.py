"""Tables that triggers keep from being changed."""

from tallystick.store.schema import metadata

TABLES = {table.name: table for table in metadata.tables.values()}
KEPT_BY_TRIGGERS = {table.name for table in TABLES.values() if (table.comment or "").startswith("kept by")}
