"""Commands about the servers a contract reads: their settings, the rights on them, the offsets of a topic."""

import os
from collections.abc import Iterable
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from tallystick.cli.shared_options import AsJson, ContractFile
from tallystick.connections.connections import kafka_from_environment
from tallystick.contract.contract import load_contract
from tallystick.model.verdict import ExitCode

if TYPE_CHECKING:
    from tallystick.kafka_cluster.config_check import PostureLine


class GrantsOf(StrEnum):
    """A server that grants rights."""

    KAFKA = "kafka"
    POSTGRES = "postgres"


def check_config(
    contract_file: ContractFile,
    as_json: AsJson = False,
) -> None:
    """Hold the cluster's settings, and each connection's TLS, against what this contract needs, as they stand now.

    Reads no payload and stores nothing. Ends with 1 when a setting is at risk, with 3 when one could not be read.

    Example: `tallystick check-config dags/contracts/billing_payments.yaml`
    """
    from tallystick.cli.output import print_config_check, print_json
    from tallystick.documents.run import posture_document
    from tallystick.pipeline.config_check_now import read_posture
    from tallystick.pipeline.server_proof import proofs_from_environment

    contract = load_contract(contract_file)
    kafka = kafka_from_environment(contract.kafka.connection)
    lines = read_posture(contract, kafka, proofs_from_environment(contract, os.environ))
    if as_json:
        print_json(posture_document(lines))
    else:
        print_config_check(lines)
    raise typer.Exit(_exit_code_of(lines))


def _exit_code_of(lines: Iterable["PostureLine"]) -> ExitCode:
    """1 where a line is at risk, else 3 where one is unknown, else 0."""
    from tallystick.kafka_cluster.config_check import CheckResult

    standings = {line.standing for line in lines}
    if CheckResult.AT_RISK in standings:
        return ExitCode.BROKEN
    return ExitCode.INCONCLUSIVE if CheckResult.UNKNOWN in standings else ExitCode.MATCHED


def show_grants(
    contract_file: ContractFile,
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
