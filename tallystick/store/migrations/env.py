"""Alembic's entry point. It runs on the connection that `migrate` hands over, inside its transaction."""

from alembic import context

from tallystick.store.schema import SCHEMA, VERSION_TABLE, metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table=VERSION_TABLE,
    version_table_schema=SCHEMA,
)
with context.begin_transaction():
    context.run_migrations()
