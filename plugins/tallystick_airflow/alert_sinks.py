"""Where a contract's alerts go, as Airflow's connections say, and the links that are sent with them."""

from typing import TYPE_CHECKING

from airflow.sdk.configuration import conf

from tallystick.connections import artifacts_folder
from tallystick.contract import Contract
from tallystick_airflow.connections import get_connection, http_address

if TYPE_CHECKING:
    from tallystick.delivery import AlertSink


def read_sinks(contract: Contract) -> "tuple[AlertSink, ...]":
    """Read the addresses of a contract's sinks. Raises ConnectionRefused."""
    from tallystick.delivery import sinks_for  # SQLAlchemy, httpx: not while parsing

    ids = {sink.connection for sink in contract.alert.sinks if sink.connection}
    addresses = {connection_id: http_address(get_connection(connection_id)) for connection_id in sorted(ids)}
    return sinks_for(contract, webhook_addresses=addresses, artifacts_folder=artifacts_folder())


def alert_links() -> dict[str, str]:
    """Name to address, as `deliver_pending` fills it in."""
    base_url = conf.get("api", "base_url", fallback="")
    return {"runs": f"{base_url.rstrip('/')}/dags/reconcile_{{contract}}"} if base_url else {}
