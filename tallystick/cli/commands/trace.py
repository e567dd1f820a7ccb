"""The command that joins contracts by one key."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from tallystick.cli.shared_options import AsJson, Plain
from tallystick.connections.connections import connections_from_environment, store_dsn
from tallystick.host.artifacts import artifacts_place, copies_of
from tallystick.text.plain import unwritable

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from tallystick.contract.contract import Contract
    from tallystick.tracing.live_look import LiveLook


def trace_one_key(
    match_key: Annotated[
        str, typer.Argument(metavar="KEY", help="The match key, whole. - reads it from the first line of stdin.")
    ],
    contract: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only the chain that this contract belongs to. Default: all.")
    ] = None,
    live: Annotated[
        bool,
        typer.Option(
            "--live", help="Ask brokers and ledgers too. Reads all that the topics of these contracts retain."
        ),
    ] = False,
    as_json: AsJson = False,
    plain: Plain = False,
) -> None:
    """Trace one key through all contracts that share a topic or a ledger: where it has been, and which one lost it.

    Contracts are joined where they name the same connection and the same topic or table. Each tells what its runs have
    stored: matched, a break and what became of it, in flight, not judged yet, not seen, or not told. Nothing is stored,
    and the key is printed nowhere.

    Exit code 1: a break of the key is open. Exit code 3: none is open, but not everything could be asked.

    Example: `tallystick trace 7c9e6679-7425-40de-944b-e07fc1f90ae7`
    """
    from tallystick.cli.output import print_json
    from tallystick.cli.trace_output import print_traces
    from tallystick.model.break_history import HopState
    from tallystick.model.verdict import ExitCode
    from tallystick.store.engine import open_store
    from tallystick.store.views.overview_store import list_contracts
    from tallystick.tracing.chain import chains_of
    from tallystick.tracing.document import trace_document
    from tallystick.tracing.trace_key import newest_contracts, trace_key

    key = _key_of_stdin() if match_key == "-" else match_key
    if not key:
        raise typer.BadParameter("got no key; expected the match key of one event")
    engine = open_store(store_dsn())
    contracts = newest_contracts(engine, list_contracts(engine))
    if contract is not None:
        contracts = next((one for one in chains_of(contracts) if contract in {mine.name for mine in one}), ())
        if not contracts:
            raise typer.BadParameter(f"got {contract!r}; expected a contract that has books: tallystick runs")
    with copies_of(artifacts_place()) as artifacts:
        traces = trace_key(
            engine,
            contracts,
            key,
            artifacts=artifacts,
            look_now=(lambda one: _look_now(engine, one, key)) if live else None,
        )
    if as_json:
        print_json(trace_document(traces))
    else:
        print_traces(traces)
    states = {hop.state for trace in traces for hop in trace.hops}
    if HopState.BROKEN in states:
        raise typer.Exit(ExitCode.BROKEN)
    if any(one.state is HopState.NOT_ASKED for trace in traces for hop in trace.hops for one in hop.statements):
        raise typer.Exit(ExitCode.INCONCLUSIVE)


def _key_of_stdin() -> str:
    """Read a key, without its line end of either kind. Raises typer.BadParameter."""
    try:
        key = sys.stdin.readline().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError as error:
        raise typer.BadParameter(
            f"stdin: byte {error.start} is no UTF-8; expected the match key of one event"
        ) from None
    if fault := unwritable(key):
        raise typer.BadParameter(f"stdin: got {fault}; expected the match key of one event")
    return key


def _look_now(engine: "Engine", contract: "Contract", match_key: str) -> "LiveLook":
    """Ask with the connections that a run of the contract uses; one that is not given is told."""
    from tallystick.connections.connections import ConnectionNotGiven
    from tallystick.tracing.live_look import LiveLook, look_now

    try:
        connections = connections_from_environment(
            kafka_id=contract.kafka.connection,
            ledger_id=contract.ledger.connection,
            primary_id=contract.ledger.primary_connection,
        )
    except ConnectionNotGiven as error:
        return LiveLook(not_looked=(f"Nothing was looked up: {error}.",))
    return look_now(engine, contract, connections, match_key)
