"""The hook of a verdict store's connection."""

from typing import TYPE_CHECKING

from airflow.sdk import BaseHook

from tallystick.model.errors import TallystickError
from tallystick_airflow.connections import STORE_CONNECTION, read_store_dsn
from tallystick_airflow.hooks.database_address import STORE_TYPE
from tallystick_airflow.hooks.refusal import AccountNotGiven, ConnectionRefused

if TYPE_CHECKING:
    from sqlalchemy import Engine


class VerdictStoreHook(BaseHook):
    """Open a verdict store, and say whether this version of Tallystick can work in it."""

    conn_name_attr = "store_conn_id"
    default_conn_name = STORE_CONNECTION
    conn_type = STORE_TYPE
    hook_name = "Tallystick verdict store"

    def __init__(self, store_conn_id: str = default_conn_name) -> None:
        super().__init__()
        self.store_conn_id = store_conn_id

    def get_conn(self) -> "Engine":
        """Open the store. The caller disposes of the engine. Raises as `open_store` does, and ConnectionRefused."""
        from tallystick.store.engine import open_store  # SQLAlchemy: not in every process of Airflow

        return open_store(read_store_dsn(self.store_conn_id))

    def test_connection(self) -> tuple[bool, str]:
        """Open the store once. Airflow calls this for the button of its form."""
        try:
            self.get_conn().dispose()
        except (TallystickError, ConnectionRefused, AccountNotGiven) as fault:
            return False, str(fault)
        return True, "The verdict store answers, and has the tables of this version"
