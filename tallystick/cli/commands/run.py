"""`tallystick run`: reconcile contracts now."""

import os
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tallystick.cli.error_handling import report_error, stopped_by_sigterm
from tallystick.cli.masked_runs import masked
from tallystick.cli.shared_options import CUT_MAX, AsJson
from tallystick.connections.connections import artifacts_folder, connections_from_environment, store_dsn
from tallystick.host.artifacts import Place, artifacts_place
from tallystick.model.verdict import ExitCode, exit_code_of, worst_of

if TYPE_CHECKING:
    from tallystick.cli.progress import Progress
    from tallystick.contract.contract import Contract
    from tallystick.model.stored_run import StoredRun
    from tallystick.pipeline.local_run import LocalRun


def run_contract(
    contract_files: Annotated[
        list[Path],
        typer.Argument(
            metavar="CONTRACT_FILE", help="One or more contract files (YAML). One Spark session reads all of them."
        ),
    ],
    reread: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=0,
            max=CUT_MAX,
            help="Read cut N of one contract again, compare its digest, and store nothing.",
        ),
    ] = None,
    settle: Annotated[
        bool,
        typer.Option(
            "--settle/--no-settle",
            help="Wait until both sides have reached the end of the window; --no-settle does not wait.",
        ),
    ] = True,
    as_json: AsJson = False,
) -> None:
    """Reconcile everything since the last cut, up to now.

    Wait until both sides have reached the end of the window, for at most the contract's settle_timeout_seconds. Store
    a cut, compare both sides in Spark, store the verdict, send the alerts and write the report. A cut that an earlier
    run left without a verdict is judged first.

    Every verdict is printed, even if something fails after it. The exit code is the worst of all: 1, then 70, 2, 3, 0.
    With --json, one verdict of one contract is printed as a document; otherwise the output is a list.

    The first run of a contract stores its baseline, which compares nothing. The next run is the first that can match.

    Set TALLYSTICK_STORE_DSN to the address of the verdict store, and `TALLYSTICK_CONN_<ID>` for each connection of the
    contract. Jars are read from TALLYSTICK_JARS_DIR (default: .jars/spark). Reports and files are written to
    TALLYSTICK_ARTIFACTS_DIR, a folder or a store such as s3://bucket/prefix (default: build/artifacts). Each run starts
    Spark, unless a server is there already: `tallystick spark start`, or SPARK_REMOTE.

    Example: `tallystick run dags/contracts/billing_payments.yaml`

    Example: `tallystick run dags/contracts/billing_payments.yaml --reread 7`

    Example: `tallystick run dags/contracts/*.yaml`
    """
    if reread is not None and len(contract_files) > 1:
        raise typer.BadParameter(f"--reread reads one contract's cut; got {len(contract_files)} contract files")
    shown: list[tuple[StoredRun, Place]] = []
    failed: list[ExitCode] = []
    try:
        _judge(contract_files, reread=reread, settle=settle, judged=lambda run, report: shown.append((run, report)))
    except Exception as error:
        if not shown:
            raise
        failed.append(report_error(error))
    finally:
        if shown:
            _print_runs(shown, as_json=as_json, as_list=len(contract_files) > 1 or len(shown) > 1)
    raise typer.Exit(worst_of([*(exit_code_of(run.result.verdict) for run, _ in shown), *failed]))


def _judge(
    contract_files: list[Path], *, reread: int | None, settle: bool, judged: Callable[["StoredRun", Place], None]
) -> None:
    """Judge all that is due, or read one cut again; judged: called with each run, masked, as soon as it is stored.

    The client of a server starts first, with what both need loaded: it loads the rest while the sides settle.
    """
    from tallystick.contract.contract import load_contract
    from tallystick.pipeline.local_run import reconcile_now
    from tallystick.pipeline.local_run import reread as read_again
    from tallystick.spark.client_ahead import client_ahead

    starts = client_ahead(_spark_environment(), artifacts_folder()) if reread is None else nullcontext()
    with stopped_by_sigterm(), starts as ahead:
        from tallystick.cli.progress import Progress

        contracts = [load_contract(path) for path in contract_files]
        with Progress() as progress:
            locals_ = [local_run(one, path, progress) for one, path in zip(contracts, contract_files, strict=True)]

            def judged_masked(run: "StoredRun", report: Place) -> None:
                judged(masked(locals_[0].engine, run), report)

            if reread is None:
                reconcile_now(locals_, settle=settle, judged=judged_masked, ahead=ahead)
            else:
                judged_masked(*read_again(locals_[0], reread))


def local_run(contract: "Contract", contract_file: Path, progress: "Progress") -> "LocalRun":
    """Open the store, whose clock a run uses, and collect what the run needs from the environment.

    Raises, before anything is stored: LibraryMissing, ConnectionNotGiven, SparkNotReady, ArtifactsRefused.
    """
    from tallystick.kafka_log.event_decoder import decoder_of
    from tallystick.pipeline.local_run import LocalRun
    from tallystick.spark.spark_job import submit_argv
    from tallystick.store.clock import read_clock
    from tallystick.store.engine import open_store

    artifacts = artifacts_place()
    environment = _spark_environment()
    submit_argv((), reread=False, environment=environment)
    for fields in (contract.event, contract.input_event):
        decoder_of(fields)  # what a format needs is there, before a cut is stored
    engine = open_store(store_dsn())
    return LocalRun(
        contract=contract,
        contract_file=contract_file,
        engine=engine,
        connections=connections_from_environment(
            kafka_id=contract.kafka.connection,
            ledger_id=contract.ledger.connection,
            primary_id=contract.ledger.primary_connection,
        ),
        artifacts=artifacts,
        folder=artifacts_folder(),
        environment=environment,
        clock=lambda: read_clock(engine),
        sleep=time.sleep,
        on_progress=progress.on_progress,
    )


def _spark_environment() -> dict[str, str]:
    """Return what the Spark app is given: with the server that runs for these artifacts, if one does."""
    from tallystick.spark.spark_server import with_running_server

    return with_running_server(os.environ, artifacts_folder())


def _print_runs(runs: "list[tuple[StoredRun, Place]]", *, as_json: bool, as_list: bool) -> None:
    """Print each run; --json also has the path of its report."""
    from tallystick.cli.output import print_json, print_run
    from tallystick.documents.run import run_document

    if as_json:
        documents = [run_document(run) | {"report": str(report)} for run, report in runs]
        print_json(documents if as_list else documents[0])
    else:
        for run, _ in runs:
            print_run(run)
            if as_list:
                typer.echo()
