"""The secret by which executors know their own progress records. It was drawn when the store was made."""

from sqlalchemy import Engine, select

from tallystick.compensation.progress_record import ExecutorKey
from tallystick.store.schema import executor_key


def read_executor_key(engine: Engine) -> ExecutorKey:
    """The one key of this store."""
    with engine.connect() as connection:
        return ExecutorKey(connection.execute(select(executor_key.c.secret)).scalar_one())
