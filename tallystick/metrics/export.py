"""Writes the metrics out, by OpenTelemetry: as Prometheus reads them, and as OTLP.

The instruments are made anew for every answer, from one look at the store. So nothing is remembered between two, a
series that is over is gone, and a store that does not answer is an error and never an old or an empty answer.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.metrics import CallbackOptions, Observation
from opentelemetry.sdk.metrics import MeterProvider, ObservableCounter, ObservableGauge
from opentelemetry.sdk.metrics.export import CardinalityLimits, InMemoryMetricReader, MetricExportResult, MetricReader
from opentelemetry.sdk.resources import Resource
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import ThreadingWSGIServer, generate_latest, make_wsgi_app
from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from tallystick import __version__
from tallystick.connections.connections import ConnectionNotGiven
from tallystick.metrics.definitions import MetricKind, MetricValues, metric_values
from tallystick.model.errors import TallystickError
from tallystick.store.views.metric_store import read_figures

_SERIES_MAX: CardinalityLimits = {ObservableGauge: 1_000_000, ObservableCounter: 1_000_000}
"""Above the SDK's own limit per instrument, beyond which it sums the rest up in one nameless series."""

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")

Clock = Callable[[], datetime]
WsgiApp = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class MetricsEmpty(TallystickError):
    """The SDK gave nothing, though the books were read."""


class PushRefused(TallystickError):
    """The receiver did not take the metrics."""

    retryable = True


class AddressRefused(TallystickError):
    """Nothing can be served at this address."""


def exposition(engine: Engine, *, now_utc: datetime) -> str:
    """The metrics of every contract as Prometheus reads them. Raises MetricsEmpty, and what the store raises."""
    with _registry(_read(engine, now_utc)) as registry:
        return generate_latest(registry).decode()


def push(engine: Engine, environment: Mapping[str, str], *, now_utc: datetime) -> int:
    """Send them once, as OTLP over HTTP, where OTEL_EXPORTER_OTLP_* of the environment says; gives the count of series.

    Raises ConnectionNotGiven, PushRefused, MetricsEmpty, and what the store raises.
    """
    if not any(environment.get(name) for name in _ENDPOINTS):
        raise ConnectionNotGiven(f"the receiver of the metrics is not named: expected {_ENDPOINTS[1]}=http://HOST:4318")
    metrics, reader = _read(engine, now_utc), InMemoryMetricReader(cardinality_limits=_SERIES_MAX)
    with _provider(metrics, reader):
        data = reader.get_metrics_data()
    if data is None:
        raise MetricsEmpty(_EMPTY)
    exporter = OTLPMetricExporter()
    try:
        taken = exporter.export(data)
    finally:
        exporter.shutdown()
    if taken is not MetricExportResult.SUCCESS:
        raise PushRefused("the receiver of the metrics did not take them; expected an answer of 200 to OTLP over HTTP")
    return sum(len(one.values) for one in metrics)


@contextmanager
def metrics_server(engine: Engine, now: Clock, *, host: str, port: int) -> Iterator[WSGIServer]:
    """Listens; what it gives answers once `serve_forever` is called. Raises AddressRefused."""
    try:
        server = make_server(host, port, metrics_app(engine, now), ThreadingWSGIServer, handler_class=_Silent)
    except OSError as error:
        raise AddressRefused(
            f"{host}:{port}: {error.strerror}; expected an address of this machine that is free"
        ) from None
    with server:
        yield server


def metrics_app(engine: Engine, now: Clock) -> WsgiApp:
    """GET /metrics reads the store and answers; 503 where it does not, so that the scrape fails and is seen to."""

    def answer(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        if environ["PATH_INFO"] != "/metrics":
            return _refuse(start, "404 Not Found", "expected /metrics")
        try:
            with _registry(_read(engine, now())) as registry:
                found: Iterable[bytes] = make_wsgi_app(registry)(environ, start)
                return found
        except (SQLAlchemyError, MetricsEmpty):
            return _refuse(start, "503 Service Unavailable", "the verdict store does not answer")

    return answer


class _Silent(WSGIRequestHandler):
    """Writes no line per request."""

    def log_message(self, format: str, *arguments: object) -> None:
        """Nothing."""


def _refuse(start: Callable[..., Any], status: str, sentence: str) -> Iterable[bytes]:
    start(status, [("Content-Type", "text/plain; charset=utf-8")])
    return [f"{sentence}\n".encode()]


def _read(engine: Engine, now_utc: datetime) -> tuple[MetricValues, ...]:
    return metric_values(read_figures(engine), now_utc=now_utc)


@contextmanager
def _registry(metrics: Sequence[MetricValues]) -> Iterator[CollectorRegistry]:
    """A registry of Prometheus's own client that holds these metrics and nothing else. Raises MetricsEmpty."""
    registry = CollectorRegistry()
    reader = PrometheusMetricReader(
        disable_target_info=True, scope_info_enabled=False, registry=registry, cardinality_limits=_SERIES_MAX
    )
    with _provider(metrics, reader):
        if not list(registry.collect()):
            raise MetricsEmpty(_EMPTY)
        yield registry


_EMPTY = "OpenTelemetry gave no metrics; expected some: is OTEL_SDK_DISABLED set?"


@contextmanager
def _provider(metrics: Sequence[MetricValues], reader: MetricReader) -> Iterator[None]:
    """While it lasts, the reader finds these metrics."""
    resource = Resource.create({"service.name": "tallystick", "service.version": __version__})
    provider = MeterProvider(metric_readers=[reader], resource=resource, shutdown_on_exit=False)
    meter = provider.get_meter("tallystick", __version__)
    try:
        for one in metrics:
            create = (
                meter.create_observable_counter
                if one.metric.kind is MetricKind.COUNTER
                else meter.create_observable_gauge
            )
            create(one.metric.name, callbacks=[_observer(one)], unit=one.metric.unit, description=one.metric.says)
        yield
    finally:
        provider.shutdown()


def _observer(one: MetricValues) -> Callable[[CallbackOptions], Iterable[Observation]]:
    observations = [Observation(value, dict(labels)) for labels, value in one.values]
    return lambda options: observations
