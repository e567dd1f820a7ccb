"""The command line: the same loop as the DAGs, for a laptop, an incident, or a machine without Airflow.

Every command ends with an exit code of tallystick.model.exit_code. Heavy imports stand inside the commands, so that
--help answers at once.
"""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tallystick import __version__
from tallystick.cli.compensation import compensation_commands
from tallystick.cli.cut import RunName, cut_commands, run_of
from tallystick.cli.error_handling import CommandGroup, tell_of
from tallystick.cli.metrics import metrics_commands
from tallystick.cli.shared_options import AsJson
from tallystick.connections.connections import (
    artifacts_folder,
    connections_from_environment,
    kafka_from_environment,
    store_dsn,
)
from tallystick.contract.contract import Contract, ContractRefused, load_contract, load_contracts
from tallystick.model.verdict import ExitCode, exit_code_of, worst_of

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from tallystick.cli.progress import Progress
    from tallystick.model.stored_run import StoredRun
    from tallystick.pipeline.local_run import LocalRun
    from tallystick.report.masking import Mask

_EXIT_CODES = (
    "Exit codes: 0 matched, 1 broken, 2 refused input or something does not answer, 3 inconclusive, "
    "70 a bug in Tallystick, 130 interrupted."
)

app = typer.Typer(
    cls=CommandGroup,
    name="tallystick",
    help="Proves, window after window, that a Kafka log and a ledger agree exactly once.",
    epilog=_EXIT_CODES,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
contract_commands = typer.Typer(no_args_is_help=True, help="Contracts: one YAML file per reconciliation.")
store_commands = typer.Typer(no_args_is_help=True, help="The verdict store: cuts, verdicts, breaks and open items.")
alert_commands = typer.Typer(no_args_is_help=True, help="Alerts: take an incident on, and test where pages go.")
app.add_typer(contract_commands, name="contract")
app.add_typer(alert_commands, name="alert")
app.add_typer(cut_commands, name="cut")
app.add_typer(store_commands, name="store")
app.add_typer(compensation_commands, name="compensation")
app.add_typer(metrics_commands, name="metrics")


class GrantsOf(StrEnum):
    """A server that grants rights."""

    KAFKA = "kafka"
    POSTGRES = "postgres"


def _set_plain(plain: bool) -> None:
    from tallystick.cli.table import set_plain

    set_plain(plain)


Plain = Annotated[
    bool,
    typer.Option("--plain", callback=_set_plain, help="As in a pipe: a line a row, every column, no colour."),
]


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"tallystick {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and end.")
    ] = False,
) -> None:
    """Options of every command."""
    _set_plain(False)


@contract_commands.command("check")
def check_contracts(
    paths: Annotated[
        list[Path], typer.Argument(metavar="FILE|FOLDER...", help="Contract files, or folders of *.yaml.")
    ],
    as_json: AsJson = False,
) -> None:
    """Check contracts without connecting to anything.

    Every fault of every file is told at once: file, path, what was found, what was expected.

    Example: `tallystick contract check dags/contracts`
    """
    from tallystick.cli.output import print_contracts, print_json

    contracts, faults = _read_contracts(paths)
    if faults:
        raise ContractRefused("\n".join(faults))
    if as_json:
        print_json([_contract_document(contract) for contract in contracts])
    else:
        print_contracts(contracts)


@contract_commands.command("diff")
def show_contract_changes(
    contract_file: Annotated[Path, typer.Argument(metavar="FILE", help="The changed contract's YAML file.")],
    as_json: AsJson = False,
) -> None:
    """Say what a changed contract would do to the books of its name, before it is deployed.

    Holds the file against the contract of the newest stored cut, field by field: kept, re-evaluated or refused.
    Asks the verdict store only, and stores nothing. Ends with 2 when a change is refused: no cut would be made.

    Example: `tallystick contract diff dags/contracts/billing_payments.yaml`
    """
    from tallystick.cli.output import print_contract_changes, print_json
    from tallystick.contract.change import ChangeEffect, contract_changes, gravest
    from tallystick.documents.run import contract_changes_document
    from tallystick.store.engine import open_store
    from tallystick.store.runs.contract_store import last_actions_table, newest_contract
    from tallystick.store.runs.open_item_store import count_open_items

    contract = load_contract(contract_file)
    engine = open_store(store_dsn())
    stored = newest_contract(engine, contract.name)
    posted_in = last_actions_table(engine, contract.name)
    changes = contract_changes(stored.contract, contract, posted_in=posted_in) if stored else ()
    open_items = count_open_items(engine, contract.name)
    if as_json:
        print_json(contract_changes_document(contract, stored, changes, open_items=open_items))
    elif stored:
        print_contract_changes(contract, stored, changes, open_items=open_items)
    else:
        typer.echo(f"{contract.name}: no cut is stored yet, so there is nothing to change; the books begin with it")
    if gravest(changes) is ChangeEffect.REFUSED:
        raise typer.Exit(ExitCode.REFUSED)


@store_commands.command("migrate")
def migrate_store(
    grant_to: Annotated[
        str | None, typer.Option(metavar="ROLE", help="Give this role what Tallystick needs to work, and no more.")
    ] = None,
) -> None:
    """Bring the verdict store to this version's shape. Quiet and safe when it is there already.

    The store's address comes from the environment variable TALLYSTICK_STORE_DSN, here with the role that owns the
    store. In operation Tallystick connects as another one, which --grant-to names: it adds and reads, changes two
    tables in named columns, deletes nothing, and can touch neither a table's shape nor a trigger. A role that was
    granted once gets its rights anew at each migration.

    Example: `TALLYSTICK_STORE_DSN=postgresql://tally_owner@db/tally tallystick store migrate --grant-to tally`
    """
    from tallystick.store.engine import connect_store, migrate

    granted = migrate(connect_store(store_dsn()), grant_to=grant_to)
    typer.echo("the verdict store has the shape of this version")
    if not granted:
        typer.echo(
            "nobody but its owner may work in it, who can also change the audit trail: --grant-to names another role"
        )


@app.command("run")
def run_contract(
    contract_files: Annotated[
        list[Path], typer.Argument(metavar="CONTRACT_FILE...", help="The contracts' YAML files; one Spark for all.")
    ],
    reread: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, help="Read judged cut N of the one contract again; stores nothing."),
    ] = None,
    settle: Annotated[
        bool, typer.Option("--settle/--no-settle", help="Wait until neither side can gain a record of the window.")
    ] = True,
    as_json: AsJson = False,
) -> None:
    """Reconcile everything since the last cut, up to now: settle, cut, Spark, alerts, report.

    A cut that an earlier run left without a verdict goes first. Each verdict is shown, also where something failed
    beside it, and the worst of all is the exit code: 1, then 70, 2, 3, 0. With --json one verdict of one contract is a
    document, and else they are a list.

    A contract's first run is its baseline: the books begin there, and the next run is the first that can match.
    Addresses come from the environment: TALLYSTICK_STORE_DSN, and `TALLYSTICK_CONN_<ID>` for each connection of the
    contract. Jars from TALLYSTICK_JARS_DIR (default .jars/spark), files go to TALLYSTICK_ARTIFACTS_DIR.

    Example: `tallystick run dags/contracts/billing_payments.yaml`

    Example: `tallystick run dags/contracts/billing_payments.yaml --reread 7`

    Example: `tallystick run dags/contracts/*.yaml`
    """
    from tallystick.cli.progress import Progress
    from tallystick.pipeline.local_run import reconcile_now
    from tallystick.pipeline.local_run import reread as read_again

    if reread is not None and len(contract_files) > 1:
        raise typer.BadParameter(f"--reread reads one contract's cut; got {len(contract_files)} contract files")
    contracts = [load_contract(path) for path in contract_files]
    shown: list[tuple[StoredRun, Path]] = []
    codes: list[ExitCode] = []
    try:
        with _stopped_by_sigterm(), Progress() as progress:
            locals_ = [_local_run(one, path, progress) for one, path in zip(contracts, contract_files, strict=True)]

            def judged(run: "StoredRun", report: Path) -> None:
                shown.append((_masked(locals_[0].engine, run), report))
                codes.append(exit_code_of(run.result.verdict))

            if reread is None:
                reconcile_now(locals_, settle=settle, judged=judged)
            else:
                judged(*read_again(locals_[0], reread))
    except Exception as error:
        if not shown:
            raise
        codes.append(tell_of(error))
    _print_runs(shown, as_json=as_json, as_list=len(contract_files) > 1 or len(shown) > 1)
    raise typer.Exit(worst_of(codes))


@cut_commands.command("make")
def store_cuts(
    contract_files: Annotated[
        list[Path], typer.Argument(metavar="CONTRACT_FILE...", help="The contracts' YAML files.")
    ],
    as_json: AsJson = False,
) -> None:
    """Settle and store the cut of the window that ends now, for a Spark job elsewhere to judge.

    What `run` does before it starts Spark, with the same environment. Refused while a cut has no verdict yet; the next
    `run` judges that one.

    `tallystick cut CONTRACT_FILE...` is the same.

    Example: `tallystick cut make dags/contracts/billing_payments.yaml`
    """
    from tallystick.cli.output import print_json
    from tallystick.cli.progress import Progress
    from tallystick.pipeline.local_run import fix_cut

    contracts = [load_contract(path) for path in contract_files]
    with _stopped_by_sigterm(), Progress() as progress:
        locals_ = [_local_run(one, path, progress) for one, path in zip(contracts, contract_files, strict=True)]
        cuts = [fix_cut(local, settle=True) for local in locals_]
    if as_json:
        print_json([{"contract": cut.contract, "cut": cut.n} for cut in cuts])
    else:
        for cut in cuts:
            typer.echo(f"{cut.contract}/{cut.n}")


@app.command("runs")
def show_runs(
    contract: Annotated[str | None, typer.Option(metavar="NAME", help="Of one contract only.")] = None,
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=10_000, help="How many, newest first.")] = 20,
    as_json: AsJson = False,
    plain: Plain = False,
) -> None:
    """List stored runs, newest first: verdict, window, breaks, money.

    Example: `tallystick runs --contract billing_payments --limit 5`
    """
    from tallystick.cli.output import print_json, print_runs
    from tallystick.documents.run import summary_document
    from tallystick.store.engine import open_store
    from tallystick.store.runs.run_store import list_runs

    runs = list_runs(open_store(store_dsn()), contract, limit=limit)
    if as_json:
        print_json([summary_document(run) for run in runs])
    elif runs:
        print_runs(runs)
    else:
        typer.echo("no run is stored yet", err=True)


@app.command("show")
def show_run(run_name: RunName, as_json: AsJson = False, plain: Plain = False) -> None:
    """Show one stored run: verdict, doubts, breaks, census. Ends with the verdict's exit code.

    Example: `tallystick show billing_payments/7`
    """
    run, engine = _stored_run(run_name)
    _show(_masked(engine, run), as_json=as_json)


@app.command("watch")
def watch_runs(
    contract: Annotated[str | None, typer.Option(metavar="NAME", help="Of one contract only.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="A JSON document a line, as `runs --json` has them.")] = False,
    plain: Plain = False,
) -> None:
    """Follow the books as windows come, until Ctrl-C.

    In a terminal: where each contract stands, and the newest runs. In a pipe, and with --plain or --json: a line per
    run, beginning with the newest of each contract.

    Example: `tallystick watch`

    Example: `tallystick watch --contract billing_payments --json | jq -r .verdict`
    """
    from tallystick.cli.watch import watch
    from tallystick.store.clock import store_now
    from tallystick.store.engine import open_store_to_read

    engine = open_store_to_read(store_dsn(), connections_max=1)
    with suppress(KeyboardInterrupt), _stopped_by_sigterm():
        watch(engine, contract, as_json=as_json, now=partial(store_now, engine), sleep=time.sleep)


@app.command("report")
def write_run_report(
    run_name: RunName,
    folder: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Where to; default: TALLYSTICK_ARTIFACTS_DIR.", file_okay=False),
    ] = None,
) -> None:
    """Write the HTML report of a stored run again, with the same bytes, and print where it lies.

    Example: `tallystick report billing_payments/7 --folder reports`
    """
    from tallystick.pipeline.local_run import report_of

    run, engine = _stored_run(run_name)
    typer.echo(str(report_of(engine, run, folder or artifacts_folder())))


@app.command("explain")
def explain_break(
    break_name: Annotated[
        str, typer.Argument(metavar="BREAK", help="A break's id, or its first 8 or more hexadecimal digits.")
    ],
    as_json: AsJson = False,
    plain: Plain = False,
) -> None:
    """Tell the story of one stored break: what each side says, who wrote it, what was ruled out, what to check.

    The report and `tallystick show RUN --json` name each break's id.

    Example: `tallystick explain 5a1d6f0e`
    """
    from tallystick.cli.output import print_json, print_story
    from tallystick.documents.run import story_document
    from tallystick.report.break_story import explain
    from tallystick.store.breaks.break_store import find_break
    from tallystick.store.engine import open_store

    engine = open_store(store_dsn())
    found = find_break(engine, break_name)
    told = _mask(engine, found.contract, found.cut_n).told(found)
    if as_json:
        print_json(story_document(told))
    else:
        print_story(told, explain(told))


@app.command("write-off")
def write_off_one(
    contract: Annotated[str, typer.Argument(metavar="CONTRACT", help="Name of the contract the break is one of.")],
    break_name: Annotated[
        str, typer.Argument(metavar="BREAK_ID", help="A break's id, or its first 8 or more hexadecimal digits.")
    ],
    by: Annotated[str, typer.Option(metavar="NAME", help="Who decided it.")],
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why, for whoever audits it.")],
    as_json: AsJson = False,
) -> None:
    """Give one break up: it is not outstanding any more, and its alert is resolved once none of its class is.

    It cannot be taken back. A partner that comes late still clears it. Refused while a run of the contract judges.

    Example: `tallystick write-off billing_payouts 5a1d6f0e --by "Ada Byron" --reason "refunded by hand, case 4711"`
    """
    from tallystick.cli.output import print_json, print_written_off
    from tallystick.compensation.write_off import write_off_of
    from tallystick.documents.run import written_off_document
    from tallystick.host.terminal_user import this_terminal
    from tallystick.store.breaks.write_off_store import write_off_break
    from tallystick.store.clock import store_now
    from tallystick.store.engine import open_store

    engine = open_store(store_dsn())
    write_off = write_off_of(by=by, reason=reason, at_utc=store_now(engine))
    done = write_off_break(engine, contract, break_name, write_off, terminal=this_terminal())
    if as_json:
        print_json(written_off_document(done))
    else:
        print_written_off(done)


@alert_commands.command("ack")
def acknowledge_alert(
    contract: Annotated[str, typer.Argument(metavar="CONTRACT", help="Name of the contract that pages.")],
    topic: Annotated[
        str, typer.Argument(metavar="CLASS", help="What it pages of, such as missing_in_ledger; the key's last part.")
    ],
    by: Annotated[str, typer.Option(metavar="NAME", help="Who takes it on.")],
    as_json: AsJson = False,
) -> None:
    """Take an incident on: it does not escalate until it is worse. Its sinks are told with the next delivery.

    It ends by itself once nothing of its class is outstanding.

    Example: `tallystick alert ack billing_payouts missing_in_ledger --by "Ada Byron"`
    """
    from tallystick.cli.output import print_json
    from tallystick.documents.run import alert_document
    from tallystick.host.terminal_user import this_terminal
    from tallystick.store.alerts.acknowledgement_store import acknowledge
    from tallystick.store.engine import open_store
    from tallystick.text.plain import story_text

    alert = acknowledge(open_store(store_dsn()), contract, topic, by=by, terminal=this_terminal())
    if as_json:
        print_json(alert_document(alert))
    else:
        typer.echo(f"{story_text(alert.summary)}; the sinks are told with the next delivery")


@alert_commands.command("test")
def send_test_page(
    contract_file: Annotated[Path, typer.Argument(metavar="CONTRACT_FILE", help="The contract's YAML file.")],
    as_json: AsJson = False,
) -> None:
    """Send a marked test page to each sink of a contract, and say what came back. Asks no store, and stores nothing.

    Close the incident that it opens by hand; Alertmanager's ends by itself. Ends with 2 when a sink does not take it.

    Example: `tallystick alert test dags/contracts/billing_payouts.yaml`
    """
    from tallystick.alerting.sample_alert import page_of_test
    from tallystick.alerting.sinks.registry import sinks_from_environment
    from tallystick.cli.output import print_attempts, print_json
    from tallystick.documents.run import attempt_document
    from tallystick.pipeline.deliver_alerts import send_unrecorded

    contract = load_contract(contract_file)
    page = page_of_test(contract, now_utc=datetime.now(UTC))
    sinks = sinks_from_environment(contract, artifacts_folder=artifacts_folder(), environment=os.environ)
    attempts = send_unrecorded(page, sinks)
    if as_json:
        print_json([attempt_document(name, attempt) for name, attempt in attempts])
    else:
        print_attempts(page, attempts)
    if not all(attempt.delivered for _, attempt in attempts):
        raise typer.Exit(ExitCode.REFUSED)


@app.command("posture")
def show_posture(
    contract_file: Annotated[Path, typer.Argument(metavar="CONTRACT_FILE", help="The contract's YAML file.")],
    as_json: AsJson = False,
) -> None:
    """Hold the cluster's settings, and each connection's TLS, against what this contract needs, as they stand now.

    Reads no payload and stores nothing. Ends with 1 when a setting is at risk, with 3 when one could not be read.

    Example: `tallystick posture dags/contracts/billing_payments.yaml`
    """
    from tallystick.cli.output import print_json, print_posture
    from tallystick.documents.run import posture_document
    from tallystick.pipeline.config_check_now import posture_exit_code, read_posture
    from tallystick.pipeline.server_proof import proofs_from_environment

    contract = load_contract(contract_file)
    kafka = kafka_from_environment(contract.kafka.connection)
    lines = read_posture(contract, kafka, proofs_from_environment(contract, os.environ))
    if as_json:
        print_json(posture_document(lines))
    else:
        print_posture(lines)
    raise typer.Exit(posture_exit_code(lines))


@app.command("grants")
def show_grants(
    contract_file: Annotated[Path, typer.Argument(metavar="CONTRACT_FILE", help="The contract's YAML file.")],
    of: Annotated[GrantsOf, typer.Option("--for", metavar="SERVER", help="Who is to grant them: kafka or postgres.")],
    reader: Annotated[
        str, typer.Option(metavar="NAME", help="The account that makes cuts and runs.")
    ] = "tallystick_reader",
    executor: Annotated[
        str, typer.Option(metavar="NAME", help="kafka: the account that repairs.")
    ] = "tallystick_executor",
    poster: Annotated[
        str, typer.Option(metavar="NAME", help="postgres: the role that writes rows.")
    ] = "tallystick_poster",
    environment: Annotated[
        str,
        typer.Option(
            metavar="NAME", envvar="TALLYSTICK_ENVIRONMENT", help="kafka: part of the executor's transactional.id."
        ),
    ] = "production",
) -> None:
    """Print the rights that this contract needs, and no more, as commands for whoever administers the server.

    Connects to nothing. Kafka's are kafka-acls.sh commands, each behind what it is for; PostgreSQL's are statements.

    Example: `tallystick grants dags/contracts/billing_payments.yaml --for kafka`
    """
    from tallystick.executor.grants import kafka_acls, kafka_commands, postgres_statements

    contract = load_contract(contract_file)
    if of is GrantsOf.KAFKA:
        lines = kafka_commands(kafka_acls(contract, reader=reader, executor=executor, environment=environment))
    else:
        lines = postgres_statements(contract, reader=reader, poster=poster)
    for line in lines:
        typer.echo(line)


@app.command("census")
def count_offsets(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="The topic to count.")],
    kafka: Annotated[
        str, typer.Option(metavar="CONNECTION_ID", help="Where the cluster is: the variable TALLYSTICK_CONN_...")
    ],
    as_json: AsJson = False,
) -> None:
    """Account for every offset of a topic, from log start to last stable offset, by batch headers.

    Reads no payload and stores nothing. Ends with 3 when an offset is unexplained.

    Example: `tallystick census billing.payments --kafka kafka_billing`
    """
    from tallystick.cli.output import print_census, print_json
    from tallystick.cli.progress import Progress
    from tallystick.cli.topic_census import census_of_topic
    from tallystick.documents.run import census_document

    with Progress() as progress:
        census = census_of_topic(kafka_from_environment(kafka), topic, on_progress=progress.on_progress)
    if as_json:
        print_json([census_document(part) for part in census])
    else:
        print_census(census)
    if any(part.unexplained for part in census):
        raise typer.Exit(ExitCode.INCONCLUSIVE)


def _read_contracts(paths: list[Path]) -> tuple[list[Contract], list[str]]:
    """All contracts of files and folders, and the faults of those that are none. Nothing found is a fault, too."""
    contracts: list[Contract] = []
    faults: list[str] = []
    for path in paths:
        try:
            found = load_contracts(path) if path.is_dir() else (load_contract(path),)
        except ContractRefused as refused:
            faults.append(str(refused))
            continue
        if not found:
            faults.append(f"{path}: no contract in this folder; expected *.yaml")
        contracts.extend(found)
    return contracts, faults


def _contract_document(contract: Contract) -> dict[str, object]:
    return {
        "contract": contract.name,
        "version": contract.version,
        "direction": str(contract.direction),
        "topics": list(contract.topics),
        "table": contract.ledger.place,
        "schedule": contract.schedule,
        "fingerprint": contract.fingerprint,
    }


def _local_run(contract: Contract, contract_file: Path, progress: "Progress") -> "LocalRun":
    """Open the store, whose clock a run goes by, and gather what it needs from the environment."""
    from tallystick.pipeline.local_run import LocalRun
    from tallystick.store.clock import read_clock
    from tallystick.store.engine import open_store

    engine = open_store(store_dsn())
    return LocalRun(
        contract=contract,
        contract_file=contract_file,
        engine=engine,
        connections=connections_from_environment(
            kafka_id=contract.kafka.connection, ledger_id=contract.ledger.connection
        ),
        artifacts=artifacts_folder(),
        environment=os.environ,
        clock=lambda: read_clock(engine),
        sleep=time.sleep,
        on_progress=progress.on_progress,
    )


@contextmanager
def _stopped_by_sigterm() -> Iterator[None]:
    """SIGTERM does what Ctrl-C does, so that a stopped service leaves no Spark behind either."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _stored_run(run_name: str) -> "tuple[StoredRun, Engine]":
    """Find a run by its name. Raises typer.BadParameter, RunNotStored."""
    from tallystick.pipeline.local_run import stored_run
    from tallystick.store.engine import open_store

    engine = open_store(store_dsn())
    return stored_run(engine, *run_of(run_name)), engine


def _masked(engine: "Engine", run: "StoredRun") -> "StoredRun":
    """The run as people may see it."""
    return _mask(engine, run.result.contract, run.result.cut_n).run(run)


def _mask(engine: "Engine", contract_name: str, n: int) -> "Mask":
    """By the contract that the cut was made under."""
    from tallystick.report.masking import Mask
    from tallystick.store.runs.contract_store import read_contract

    contract = read_contract(engine, contract_name, n)
    assert contract is not None  # a cut refers to its contract by a foreign key
    return Mask(contract)


def _print_runs(runs: "list[tuple[StoredRun, Path]]", *, as_json: bool, as_list: bool) -> None:
    """Show each run in turn, with where its report lies."""
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


def _show(run: "StoredRun", *, as_json: bool) -> None:
    """Show a run and end with its verdict's exit code."""
    from tallystick.cli.output import print_json, print_run
    from tallystick.documents.run import run_document

    if as_json:
        print_json(run_document(run))
    else:
        print_run(run)
    raise typer.Exit(exit_code_of(run.result.verdict))
