"""`tallystick spark`: keep a Spark Connect server on this machine, so that a run need not start Java."""

import os
from pathlib import Path

import typer

from tallystick.cli.error_handling import stopped_by_sigterm
from tallystick.connections.connections import artifacts_folder
from tallystick.host.artifacts import PLACE_VARIABLE
from tallystick.host.private_files import usable_folder

spark_commands = typer.Typer(no_args_is_help=True, help="Keep Spark running between runs, or stop it.")
_NONE = "no Spark server runs for these artifacts"


@spark_commands.command("start")
def start_spark() -> None:
    """Start a Spark Connect server on a loopback port, and return once it answers.

    From then on `tallystick run` with the same TALLYSTICK_ARTIFACTS_DIR reads with it, and starts no Java. The server
    stays until `tallystick spark stop`. It takes TALLYSTICK_SPARK_MASTER, TALLYSTICK_SPARK_CONF and TALLYSTICK_JARS_DIR
    from the environment of this command. Its address and the token that it asks for are stored in the file
    spark/server.json below the artifacts, for its owner alone.

    To read with a server that somebody else keeps, set SPARK_REMOTE, and SPARK_CONNECT_AUTHENTICATE_TOKEN to its token.

    Example: `tallystick spark start`
    """
    from tallystick.spark.spark_server import log_of, start_server

    folder = _folder()
    with stopped_by_sigterm():
        typer.echo("starting Spark", err=True)
        server = start_server(folder, environment=os.environ)
    typer.echo(f"{server.remote}: answers, as process {server.pid}; its log is {log_of(folder)}")


@spark_commands.command("status")
def show_spark() -> None:
    """Say whether a server runs for these artifacts.

    Example: `tallystick spark status`
    """
    from tallystick.spark.spark_server import running_server

    server = running_server(_folder())
    typer.echo(f"{server.remote}: runs as process {server.pid}" if server else _NONE)


@spark_commands.command("stop")
def stop_spark() -> None:
    """Stop the server that `tallystick spark start` started for these artifacts. Does nothing where none runs.

    A run that reads with it fails, and may be started again: it reads the same cut.

    Example: `tallystick spark stop`
    """
    from tallystick.spark.spark_server import stop_server

    server = stop_server(_folder())
    typer.echo(f"{server.remote}: stopped" if server else _NONE)


def _folder() -> Path:
    """Return the folder that a server belongs to. Raises FolderRefused."""
    return usable_folder(artifacts_folder(), setting=PLACE_VARIABLE)
