"""`tallystick metrics`: the books for who watches with Prometheus or OpenTelemetry. Asks the verdict store only."""

import os
from functools import partial
from typing import Annotated

import typer

from tallystick.connections.connections import store_dsn

metrics_commands = typer.Typer(
    no_args_is_help=True, help="Metrics for Prometheus and OpenTelemetry, read from the verdict store."
)


@metrics_commands.command("show")
def show_metrics() -> None:
    """Print the metrics as they stand now, in Prometheus's text format. A file of it suits a textfile collector.

    Example: `tallystick metrics show`
    """
    from tallystick.metrics.export import exposition
    from tallystick.store.clock import store_now
    from tallystick.store.engine import open_store

    engine = open_store(store_dsn())
    typer.echo(exposition(engine, now_utc=store_now(engine)), nl=False)


@metrics_commands.command("serve")
def serve_metrics(
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="Where to listen.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="N", min=0, max=65_535, help="0: any that is free.")] = 9464,
) -> None:
    """Answer Prometheus at /metrics, until Ctrl-C. Each answer is one look at the verdict store.

    While the store does not answer, neither does this: the scrape fails, and `up` is 0. It has no log-in, and says
    contracts, sinks and sums of money: let nobody but your Prometheus reach it.

    Example: `tallystick metrics serve --host 0.0.0.0 --port 9464`
    """
    from tallystick.metrics.export import metrics_server
    from tallystick.store.clock import store_now
    from tallystick.store.engine import open_store_to_read

    engine = open_store_to_read(store_dsn(), connections_max=2)
    with metrics_server(engine, partial(store_now, engine), host=host, port=port) as server:
        typer.echo(f"metrics at http://{host}:{server.server_port}/metrics", err=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            typer.echo("stopped", err=True)


@metrics_commands.command("push")
def push_metrics() -> None:
    """Send the metrics once, as OTLP over HTTP; for a cron entry, or a task after a run.

    OpenTelemetry's own variables say where to and how: OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_HEADERS. Ends
    with 2 when the receiver does not take them.

    Example: `OTEL_EXPORTER_OTLP_ENDPOINT=http://collector:4318 tallystick metrics push`
    """
    from tallystick.metrics.export import push
    from tallystick.store.clock import store_now
    from tallystick.store.engine import open_store

    engine = open_store(store_dsn())
    sent = push(engine, os.environ, now_utc=store_now(engine))
    typer.echo(f"{sent} series sent")
