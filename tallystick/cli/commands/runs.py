"""Commands about stored runs: list them, show one, follow them, write a report again."""

import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tallystick.cli.error_handling import stopped_by_sigterm
from tallystick.cli.masked_runs import masked
from tallystick.cli.shared_options import AsJson, Plain, RunName, run_of
from tallystick.connections.connections import store_dsn
from tallystick.host.artifacts import artifacts_place
from tallystick.host.private_files import usable_folder
from tallystick.model.errors import TallystickError
from tallystick.model.verdict import exit_code_of

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from tallystick.model.stored_run import StoredRun


class NoSuchBooks(TallystickError):
    """The store has nothing of a contract's name. The message says which names it has."""


def show_runs(
    contract: Annotated[str | None, typer.Option(metavar="NAME", help="Show only this contract. Default: all.")] = None,
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=10_000, help="How many, newest first.")] = 20,
    as_json: AsJson = False,
    plain: Plain = False,
) -> None:
    """List stored runs, newest first, with verdict, window, breaks and money at stake.

    Exit code 2: the store has nothing of the contract that --contract names. For machines that is an empty list.

    Example: `tallystick runs --contract billing_payments --limit 5`
    """
    from tallystick.cli.output import print_json, print_runs
    from tallystick.documents.run import summary_document
    from tallystick.store.engine import open_store
    from tallystick.store.runs.run_store import list_runs

    engine = open_store(store_dsn())
    runs = list_runs(engine, contract, limit=limit)
    if contract is not None and not runs and not as_json and (fault := _unknown_name(engine, contract)):
        raise NoSuchBooks(fault)
    if as_json:
        print_json([summary_document(run) for run in runs])
    elif runs:
        print_runs(runs)
    else:
        typer.echo(f"no run {f'of {contract} ' if contract else ''}is stored yet", err=True)


def show_run(run_name: RunName, as_json: AsJson = False, plain: Plain = False) -> None:
    """Show one stored run: verdict, doubts, breaks and census. The exit code is the verdict's.

    Example: `tallystick show billing_payments/7`
    """
    run, engine = _stored_run(run_name)
    _show(masked(engine, run), as_json=as_json)


def watch_runs(
    contract: Annotated[str | None, typer.Option(metavar="NAME", help="Show only this contract. Default: all.")] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document per line, with the keys of `runs --json`.")
    ] = False,
    plain: Plain = False,
) -> None:
    """Follow runs as their verdicts are stored, until Ctrl-C.

    A terminal shows the state of each contract and the newest runs, and looks again every second. In a pipe, and with
    --plain or --json, each run is one line; the first lines are the newest run of each contract.

    A contract may be followed before its first run; a name that the store does not have yet is told on stderr.

    Example: `tallystick watch`

    Example: `tallystick watch --contract billing_payments --json | jq -r .verdict`
    """
    from tallystick.cli.watch import watch
    from tallystick.store.clock import store_now
    from tallystick.store.engine import open_store_to_read

    engine = open_store_to_read(store_dsn, connections_max=1)
    if contract is not None and (told := _unknown_name(engine, contract)):
        typer.echo(f"{told}; waiting for its first run", err=True)
    with suppress(KeyboardInterrupt), stopped_by_sigterm():
        watch(engine, contract, as_json=as_json, now=partial(store_now, engine), sleep=time.sleep)


def write_run_report(
    run_name: RunName,
    folder: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Folder to write to. Default: TALLYSTICK_ARTIFACTS_DIR.", file_okay=False),
    ] = None,
) -> None:
    """Write the HTML report of a stored run again, and print its path. Its bytes are the same each time.

    Without --folder, the run's breaks as Parquet are written too, where they are missing.

    Example: `tallystick report billing_payments/7 --folder reports`
    """
    from tallystick.documents.breaks_parquet import add_breaks_file
    from tallystick.pipeline.local_run import report_of
    from tallystick.store.runs.contract_store import read_contract

    artifacts = usable_folder(folder, setting="--folder") if folder else artifacts_place()
    run, engine = _stored_run(run_name)
    typer.echo(str(report_of(engine, run, artifacts)))
    contract = read_contract(engine, run.result.contract, run.result.cut_n)
    if folder is None and contract is not None and not run.cut.is_baseline:
        add_breaks_file(run.result, contract, artifacts)


def _unknown_name(engine: "Engine", contract: str) -> str:
    """Return which names the store has, where this one is none of them."""
    from tallystick.store.views.overview_store import list_contracts
    from tallystick.text.plain import escape_untrusted

    known = list_contracts(engine)
    if contract in known:
        return ""
    return f"{escape_untrusted(contract)}: the store has no books of it; expected one of: {', '.join(known) or '-'}"


def _stored_run(run_name: str) -> "tuple[StoredRun, Engine]":
    """Find a run by its name. Raises typer.BadParameter, RunNotStored."""
    from tallystick.pipeline.local_run import stored_run
    from tallystick.store.engine import open_store

    contract_name, n = run_of(run_name)
    engine = open_store(store_dsn())
    return stored_run(engine, contract_name, n), engine


def _show(run: "StoredRun", *, as_json: bool) -> None:
    """Show a run and end with its verdict's exit code."""
    from tallystick.cli.output import print_json, print_run
    from tallystick.documents.run import run_document

    if as_json:
        print_json(run_document(run))
    else:
        print_run(run)
    raise typer.Exit(exit_code_of(run.result.verdict))
