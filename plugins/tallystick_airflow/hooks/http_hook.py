"""The hook of an http connection, as sinks of alerts have, where Airflow's HTTP provider is not installed."""

from airflow.sdk import BaseHook

from tallystick_airflow.connections import get_connection, http_address
from tallystick_airflow.hooks.refusal import ConnectionRefused

_SECONDS = 5.0


class HttpSinkHook(BaseHook):
    """Read an address, and ask whether anybody answers there."""

    conn_name_attr = "http_conn_id"
    default_conn_name = "http_default"
    conn_type = "http"
    hook_name = "HTTP"

    def __init__(self, http_conn_id: str = default_conn_name) -> None:
        super().__init__()
        self.http_conn_id = http_conn_id

    def get_conn(self) -> str:
        """Read the address. Raises ConnectionRefused."""
        return http_address(get_connection(self.http_conn_id))

    def test_connection(self) -> tuple[bool, str]:
        """Ask for the head of the address, without the account: no alert is sent, and no secret to a wrong host.

        Airflow calls this for the button of its form.
        """
        import httpx  # not in every process of Airflow

        try:
            status = httpx.head(self.get_conn(), timeout=_SECONDS).status_code
        except ConnectionRefused as refused:
            return False, str(refused)
        except (httpx.InvalidURL, httpx.UnsupportedProtocol):
            return False, "The connection has no address: expected a host, such as https://hooks.example.org"
        except httpx.HTTPError as error:
            return False, f"Nobody answers there: {type(error).__name__}"
        return True, f"Somebody answers there (HTTP {status}); `tallystick alert test` sends each sink a test alert"
