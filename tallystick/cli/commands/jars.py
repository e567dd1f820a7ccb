"""`tallystick jars`: list and fetch the jars that Spark reads Kafka and ledgers with."""

from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated

import typer

from tallystick.cli.shared_options import AsJson

jars_commands = typer.Typer(
    no_args_is_help=True, help="List and fetch the jars that Spark reads Kafka and ledgers with."
)


@jars_commands.command("fetch")
def fetch_spark_jars(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where to put them; made if it is not there.")],
    repository: Annotated[
        str,
        typer.Option(metavar="URL", help="The Maven repository to ask, e.g. a company's mirror. Default: Ivy's own."),
    ] = "",
) -> None:
    """Fetch Spark's jars for Kafka, databases and Iceberg into a folder, each held against its SHA-256.

    A jar that is there already and is the right one stays; an older version of one of these is replaced; no other file
    of the folder is touched. Needs Java and pyspark, which any Spark driver needs. Set TALLYSTICK_JARS_DIR to the
    folder afterwards.

    Where Spark has these jars already, or the setting spark.jars.packages names them, nothing need be fetched.

    Example: `tallystick jars fetch /opt/tallystick/jars --repository https://maven.example.com/central`
    """
    from tallystick.spark.jars import fetch_jars, refuse_other_spark, spark_jars

    jars = spark_jars()
    with suppress(PackageNotFoundError):  # fetching says so, if anything is missing
        refuse_other_spark(jars, version("pyspark"))
    fetched = fetch_jars(folder, jars, repository=repository)
    for name in fetched.removed:
        typer.echo(f"removed {name}, of another version", err=True)
    typer.echo(f"{folder}: has all {len(jars)} jars, {len(fetched.downloaded)} of them fetched now")


@jars_commands.command("list")
def list_spark_jars(as_json: AsJson = False) -> None:
    """List these jars as group:artifact:version with their SHA-256, for a mirror or for spark.jars.packages.

    Example: `tallystick jars list`
    """
    from tallystick.cli.output import print_json
    from tallystick.spark.jars import spark_jars

    jars = spark_jars()
    if as_json:
        print_json([{"jar": ":".join(jar.coordinates), "sha256": jar.sha256} for jar in jars])
    else:
        for jar in jars:
            typer.echo(f"{':'.join(jar.coordinates)} {jar.sha256}")
