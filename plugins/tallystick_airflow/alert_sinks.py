"""The sinks of a contract's alerts, by Airflow's connections, and the links that are sent with them."""

from collections.abc import Collection
from logging import getLogger
from typing import TYPE_CHECKING

from airflow.sdk.configuration import conf
from airflow.sdk.exceptions import AirflowFailException

from tallystick.alerting.sinks.connection import SinkConnection
from tallystick.connections.connections import runbook_links
from tallystick.contract.contract import Contract
from tallystick.host.artifacts import ArtifactsRefused, Place
from tallystick_airflow.connections import get_connection, read_artifacts_place, sink_connection
from tallystick_airflow.hooks.refusal import ConnectionRefused

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from tallystick.alerting.sinks.registry import Sink
    from tallystick.pipeline.deliver_alerts import DeliverySummary


log = getLogger(__name__)


def read_sinks(contract: Contract) -> "tuple[Sink, ...]":
    """Read the connections of a contract's sinks. One that is missing or unfit fails when it is sent to, alone."""
    from tallystick.alerting.sinks.registry import sinks_for  # httpx, Apprise: not while parsing

    named = ((sink.connection, sink.kind) for sink in contract.alert.sinks if sink.connection)
    connections = {connection_id: _read(connection_id, kind) for connection_id, kind in named}
    return sinks_for(contract, connections=connections, artifacts=_place())


def _place() -> Place | None:
    """Return the place that sinks of kind file write to; None where it is refused, so that only these fail."""
    try:
        return read_artifacts_place()
    except ArtifactsRefused as refused:
        log.warning("%s", refused)
        return None


def deliver(
    engine: "Engine", contract: Contract, *, dag_id: str, only: Collection[str] | None = None
) -> "DeliverySummary":
    """Deliver what the contract's outbox owes its sinks. dag_id: the DAG that reconciles it.

    only: names of the alerts; None delivers all.

    Raises DeliveryFailed where a retry may help, and AirflowFailException where a person must act first.
    """
    from tallystick.pipeline.deliver_alerts import DeliveryFailed, deliver_pending  # httpx: not while parsing

    try:
        return deliver_pending(engine, contract.name, read_sinks(contract), links=alert_links(dag_id), only=only)
    except DeliveryFailed as error:
        if error.retryable:
            raise
        raise AirflowFailException(str(error)) from None


def alert_links(dag_id: str) -> dict[str, str]:
    """Name to address, as `deliver_pending` fills it in. dag_id: the DAG that reconciles the contract."""
    base_url = conf.get("api", "base_url", fallback="").rstrip("/")
    return ({"runs": f"{base_url}/dags/{dag_id}"} if base_url else {}) | runbook_links()


def _read(connection_id: str, kind: str) -> SinkConnection:
    try:
        return sink_connection(get_connection(connection_id), kind)
    except ConnectionRefused as refused:
        return SinkConnection(fault=str(refused))
