"""The list of commands: the same loop as the DAGs, for a laptop, an incident, or a machine without Airflow.

Each command is in tallystick/cli/commands, and ends with an exit code of tallystick.model.verdict.
"""

from typing import Annotated

import typer

from tallystick import __version__
from tallystick.cli.commands.alert import alert_commands
from tallystick.cli.commands.breaks import explain_break, write_off_one
from tallystick.cli.commands.cluster import check_config, count_offsets, show_grants
from tallystick.cli.commands.compensation import compensation_commands
from tallystick.cli.commands.contract import contract_commands
from tallystick.cli.commands.cut import cut_commands
from tallystick.cli.commands.init import write_first_contract
from tallystick.cli.commands.jars import jars_commands
from tallystick.cli.commands.metrics import metrics_commands
from tallystick.cli.commands.run import run_contract
from tallystick.cli.commands.runs import show_run, show_runs, watch_runs, write_run_report
from tallystick.cli.commands.spark import spark_commands
from tallystick.cli.commands.store import store_commands
from tallystick.cli.commands.trace import trace_one_key
from tallystick.cli.error_handling import CommandGroup
from tallystick.cli.shared_options import set_plain

_EXIT_CODES = (
    "Exit codes: 0 matched, 1 broken, 2 refused input, or a server that does not answer, 3 inconclusive, "
    "70 a bug in Tallystick, 130 interrupted, 141 the reader of the output has gone."
)

app = typer.Typer(
    cls=CommandGroup,
    name="tallystick",
    help="Reconcile transactional Kafka topics with a ledger, window by window, and repair each break once.",
    epilog=_EXIT_CODES,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("init")(write_first_contract)
app.command("run")(run_contract)
app.command("runs")(show_runs)
app.command("show")(show_run)
app.command("watch")(watch_runs)
app.command("report")(write_run_report)
app.command("explain")(explain_break)
app.command("trace")(trace_one_key)
app.command("write-off")(write_off_one)
app.command("check-config")(check_config)
app.command("grants")(show_grants)
app.command("census")(count_offsets)
app.add_typer(contract_commands, name="contract")
app.add_typer(alert_commands, name="alert")
app.add_typer(cut_commands, name="cut")
app.add_typer(store_commands, name="store")
app.add_typer(compensation_commands, name="compensation")
app.add_typer(metrics_commands, name="metrics")
app.add_typer(spark_commands, name="spark")
app.add_typer(jars_commands, name="jars")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"tallystick {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Options of every command."""
    set_plain(False)
