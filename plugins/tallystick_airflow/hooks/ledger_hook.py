"""The hook of a ledger's connection: PostgreSQL, another database by its URL, or a folder of files."""

from airflow.sdk import BaseHook, Connection
from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError

from tallystick.model.errors import TallystickError
from tallystick_airflow.connections import folder_address, get_connection, jdbc_address, postgres_dsn
from tallystick_airflow.hooks.database_address import LEDGER_TYPE, given, refused
from tallystick_airflow.hooks.refusal import AccountNotGiven, ConnectionRefused

_A_STANDBY = "a standby, which ledger.primary_connection or an order_by column lets be read"


class LedgerHook(BaseHook):
    """Say whether the ledger of a connection can be read. What stands in it, only a contract says."""

    conn_name_attr = "ledger_conn_id"
    default_conn_name = "tallystick_ledger"
    conn_type = LEDGER_TYPE
    hook_name = "Tallystick ledger"

    def __init__(self, ledger_conn_id: str = default_conn_name) -> None:
        super().__init__()
        self.ledger_conn_id = ledger_conn_id

    def test_connection(self) -> tuple[bool, str]:
        """Connect once and read nothing. Airflow calls this for the button of its form."""
        try:
            return True, _look(get_connection(self.ledger_conn_id))
        except (TallystickError, ConnectionRefused, AccountNotGiven) as fault:
            return False, str(fault)


def _look(connection: Connection) -> str:
    url = given(connection.extra_dejson).get("url")
    if not url:
        return _look_at_postgres(postgres_dsn(connection))
    return _look_at_database(connection) if _is_database(str(url)) else _look_at_folder(connection)


def _is_database(url: str) -> bool:
    """Tell an SQLAlchemy URL from a folder's path or URI, by whether SQLAlchemy has its dialect."""
    try:
        make_url(url).get_dialect()
    except ArgumentError:  # also of a dialect that there is not
        return False
    return True


def _look_at_postgres(dsn: str) -> str:
    from tallystick.ledger.postgres_connection import open_ledger  # PostgreSQL's client: not in every process

    with open_ledger(dsn) as session:
        (on_standby, sees_all), *_ = session.execute(
            "SELECT pg_is_in_recovery(), pg_has_role('pg_read_all_stats', 'usage')"
        ).fetchall()
        version, role = session.info.parameter_status("server_version"), session.info.user
    server = _A_STANDBY if on_standby else "a primary"
    stats = "" if sees_all else "; this role lacks pg_read_all_stats, so that nobody sees who holds the ledger back"
    return f"PostgreSQL {version} answers to {role}: {server}{stats}"


def _look_at_database(connection: Connection) -> str:
    from sqlalchemy import create_engine
    from sqlalchemy.exc import SQLAlchemyError

    from tallystick.ledger.jdbc_connection import jdbc_settings

    settings = jdbc_settings(jdbc_address(connection))
    try:
        engine = create_engine(settings.url, hide_parameters=True)
        engine.connect().close()
        engine.dispose()
    except ImportError as missing:
        raise refused(connection, f"its Python driver is not installed here: {missing}") from None
    except SQLAlchemyError as error:
        raise refused(
            connection, f"{settings.url.get_backend_name()} does not answer: {type(error).__name__}"
        ) from None
    return f"{settings.url.get_backend_name()} answers; Spark reads it by {settings.driver}"


def _look_at_folder(connection: Connection) -> str:
    from pyarrow import ArrowException
    from pyarrow.fs import FileSelector, FileSystem

    folder = folder_address(connection)
    try:
        files, path = FileSystem.from_uri(folder)
        found = files.get_file_info(FileSelector(path))
    except (ArrowException, OSError, ValueError) as error:
        raise refused(connection, f"folder {folder}: {str(error).splitlines()[0]}") from None
    return f"The folder can be listed: {len(found)} entries"
