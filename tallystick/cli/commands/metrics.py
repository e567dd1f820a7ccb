"""`tallystick metrics`: metrics for Prometheus and OpenTelemetry, read from the verdict store only."""

import os
from functools import partial
from typing import Annotated

import typer

from tallystick.connections.connections import store_dsn

metrics_commands = typer.Typer(
    no_args_is_help=True, help="Print, serve or send metrics of the verdict store, for Prometheus and OpenTelemetry."
)


@metrics_commands.command("show")
def show_metrics() -> None:
    """Print the current metrics in Prometheus's text format. A file with them suits a textfile collector.

    Example: `tallystick metrics show`
    """
    from tallystick.metrics.export import exposition
    from tallystick.store.clock import store_now
    from tallystick.store.engine import open_store

    engine = open_store(store_dsn())
    typer.echo(exposition(engine, now_utc=store_now(engine)), nl=False)


@metrics_commands.command("serve")
def serve_metrics(
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(metavar="N", min=0, max=65_535, help="Port to listen on; 0 takes a free one.")
    ] = 9464,
) -> None:
    """Serve the metrics to Prometheus at /metrics, until Ctrl-C. Each request reads the verdict store.

    If the store does not answer, the request fails, and Prometheus reports `up` as 0. There is no login, and the
    metrics have names of contracts and sinks, and sums of money: let only your Prometheus connect.

    Example: `tallystick metrics serve --host 0.0.0.0 --port 9464`
    """
    from tallystick.metrics.export import metrics_server
    from tallystick.store.clock import store_now
    from tallystick.store.engine import open_store_to_read

    engine = open_store_to_read(store_dsn, connections_max=2)
    with metrics_server(engine, partial(store_now, engine), host=host, port=port) as server:
        typer.echo(f"metrics at http://{host}:{server.server_port}/metrics", err=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            typer.echo("stopped", err=True)


@metrics_commands.command("push")
def push_metrics() -> None:
    """Send the metrics once, by OTLP over HTTP: for a cron job, or for a task after a run.

    OpenTelemetry's own variables name the receiver: OTEL_EXPORTER_OTLP_ENDPOINT and OTEL_EXPORTER_OTLP_HEADERS. Exit
    code 2: the receiver did not accept them.

    Example: `OTEL_EXPORTER_OTLP_ENDPOINT=http://collector:4318 tallystick metrics push`
    """
    from tallystick.metrics.export import push
    from tallystick.store.clock import store_now
    from tallystick.store.engine import open_store

    engine = open_store(store_dsn())
    sent = push(engine, os.environ, now_utc=store_now(engine))
    typer.echo(f"{sent} series sent")
