"""Commands about the servers a contract reads: their settings, the rights on them, the offsets of a topic."""

import os
from collections.abc import Iterable
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from tallystick.cli.shared_options import AsJson, ContractFile
from tallystick.connections.connections import kafka_from_environment
from tallystick.model.verdict import ExitCode

if TYPE_CHECKING:
    from tallystick.kafka_cluster.config_check import ConfigLine


class GrantsOf(StrEnum):
    """A server that grants rights."""

    KAFKA = "kafka"
    POSTGRES = "postgres"


def check_config(
    contract_file: ContractFile,
    as_json: AsJson = False,
) -> None:
    """Check the cluster's settings and each connection's TLS against what the contract requires.

    Reads current settings, and the batch headers of the newest 10,000 offsets of each partition. Reads no payload and
    stores nothing. Exit code 1: a setting is at risk. Exit code 3: a setting could not be read.

    Example: `tallystick check-config dags/contracts/billing_payments.yaml`
    """
    from tallystick.cli.output import print_config_check, print_json
    from tallystick.contract.contract import load_contract
    from tallystick.documents.run import config_check_document
    from tallystick.pipeline.config_check_now import read_config_check
    from tallystick.pipeline.server_proof import proofs_from_environment

    contract = load_contract(contract_file)
    kafka = kafka_from_environment(contract.kafka.connection)
    lines = read_config_check(contract, kafka, proofs_from_environment(contract, os.environ))
    if as_json:
        print_json(config_check_document(lines))
    else:
        print_config_check(lines)
    raise typer.Exit(_exit_code_of(lines))


def _exit_code_of(lines: Iterable["ConfigLine"]) -> ExitCode:
    """Return 1 if a line is at risk, else 3 if one is unknown, else 0."""
    from tallystick.kafka_cluster.config_check import CheckResult

    standings = {line.standing for line in lines}
    if CheckResult.AT_RISK in standings:
        return ExitCode.BROKEN
    return ExitCode.INCONCLUSIVE if CheckResult.UNKNOWN in standings else ExitCode.MATCHED


def show_grants(
    contract_file: ContractFile,
    of: Annotated[
        GrantsOf, typer.Option("--for", metavar="SERVER", help="Server that grants the rights: kafka or postgres.")
    ],
    reader: Annotated[
        str, typer.Option(metavar="NAME", help="Account that makes cuts and runs.")
    ] = "tallystick_reader",
    executor: Annotated[
        str, typer.Option(metavar="NAME", help="Account that executes repairs; kafka only.")
    ] = "tallystick_executor",
    poster: Annotated[
        str, typer.Option(metavar="NAME", help="Role that inserts rows; postgres only.")
    ] = "tallystick_poster",
    environment: Annotated[
        str,
        typer.Option(
            metavar="NAME", envvar="TALLYSTICK_ENVIRONMENT", help="Part of the executor's transactional.id; kafka only."
        ),
    ] = "production",
) -> None:
    """Print the commands that give Tallystick's accounts the rights that a contract needs, and no others.

    Connects to nothing: the server's administrator runs the commands. For Kafka they are kafka-acls.sh commands, each
    below a comment that says what it is for; for PostgreSQL they are SQL statements.

    Example: `tallystick grants dags/contracts/billing_payments.yaml --for kafka`
    """
    from tallystick.contract.contract import load_contract
    from tallystick.executor.grants import kafka_acls, kafka_commands, postgres_statements

    contract = load_contract(contract_file)
    if of is GrantsOf.KAFKA:
        lines = kafka_commands(kafka_acls(contract, reader=reader, executor=executor, environment=environment))
    else:
        lines = postgres_statements(contract, reader=reader, poster=poster)
    for line in lines:
        typer.echo(line)


def count_offsets(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="Name of the topic.")],
    kafka: Annotated[
        str,
        typer.Option(
            metavar="CONNECTION_ID",
            help="Connection of the cluster: kafka_billing reads TALLYSTICK_CONN_KAFKA_BILLING.",
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Count every offset of a topic by kind, from the start of the log to the last stable offset.

    Reads batch headers and no payload, and stores nothing. Exit code 3: an offset is unexplained.

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
