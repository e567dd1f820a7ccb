"""`tallystick init`: a first contract from a topic and a table."""

import re
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from tallystick.connections.connections import connection_text, kafka_from_environment
from tallystick.host.private_files import system_refusals, usable_folder
from tallystick.model.direction import Direction
from tallystick.model.errors import TallystickError
from tallystick.model.verdict import ExitCode
from tallystick.text.money import has_minor_unit


class LedgerKind(StrEnum):
    """A kind of ledger whose table can be looked at."""

    POSTGRES = "postgres"
    JDBC = "jdbc"


class WrittenFirst(StrEnum):
    """A direction between topics and a table."""

    TOPIC_TO_LEDGER = Direction.TOPIC_TO_LEDGER
    LEDGER_TO_TOPIC = Direction.LEDGER_TO_TOPIC


class ContractNotProposed(TallystickError):
    """There is a file already, or a name that no contract can have."""


def write_first_contract(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The contract's name, and that of its file: NAME.yaml.")],
    *,
    topics: Annotated[list[str], typer.Option("--topic", metavar="TOPIC", help="A topic; once for each leg.")],
    table: Annotated[str, typer.Option(metavar="SCHEMA.TABLE", help="The ledger's table.")],
    kafka: Annotated[
        str, typer.Option(metavar="CONNECTION_ID", help="Connection of the cluster: TALLYSTICK_CONN_... in capitals.")
    ],
    ledger: Annotated[str, typer.Option(metavar="CONNECTION_ID", help="Connection of the ledger's database.")],
    kind: Annotated[
        LedgerKind, typer.Option(help="postgres: PostgreSQL by its transactions. jdbc: any database by a column.")
    ] = LedgerKind.POSTGRES,
    direction: Annotated[
        WrittenFirst | None, typer.Option(help="Which side is written first. Default: as the table's columns suggest.")
    ] = None,
    currency: Annotated[
        str | None, typer.Option(metavar="CODE", help="Of all events and rows, where they do not say it: EUR.")
    ] = None,
    folder: Annotated[
        Path,
        typer.Option(
            metavar="DIR", help="Where to write the file. Default: the folder you are in.", show_default=False
        ),
    ] = Path(),
) -> None:
    """Write a first contract, from what stands in a topic and in a table.

    Reads up to 500 of the newest committed events of each topic, the table's catalogue and up to 1,000 rows; stores
    nothing but the file. A key of the payload is paired with the column that has its values. Each line of the file says
    why it was proposed: read it, since data cannot say what is meant. No value of an event or a row is printed.

    Exit code 2: a field was not found, and the sentences say which; no file is written.

    Example: `tallystick init orders --topic shop.orders --table shop.booking --kafka shop_kafka --ledger shop_db`
    """
    from tallystick.cli.output import print_proposal
    from tallystick.contract.contract import load_contract
    from tallystick.proposal.contract_text import contract_text
    from tallystick.proposal.fields import propose
    from tallystick.proposal.look import look_at_table, look_at_topics

    path = folder / f"{name}.yaml"
    _refuse(name, table, path, currency)
    settings, address = kafka_from_environment(kafka), connection_text(ledger)
    samples = look_at_topics(settings, tuple(dict.fromkeys(topics)))
    with look_at_table(address, table, kind=kind) as looked_at:
        proposal = propose(samples, looked_at, direction=Direction(direction) if direction else None, currency=currency)
    print_proposal(proposal)
    if proposal.missing:
        raise typer.Exit(ExitCode.REFUSED)
    text = contract_text(
        proposal, samples, looked_at, name=name, connections={"kafka": kafka, "ledger": ledger}, now=datetime.now(UTC)
    )
    with system_refusals(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    load_contract(path)
    typer.echo(f"{path}: written; read it, then `tallystick contract check {path}` and `tallystick run {path}`")


def _refuse(name: str, table: str, path: Path, currency: str | None) -> None:
    """Refuse what no contract can say, and where no file can be. Raises ContractNotProposed, FolderRefused."""
    from tallystick.contract.field_types import PATTERNS

    name_pattern, table_pattern = (
        next((pattern, meaning) for pattern, meaning in PATTERNS.items() if meaning.startswith(begins))
        for begins in ("a name in", "schema.table")
    )
    for what, said, (pattern, meaning) in (("NAME", name, name_pattern), ("--table", table, table_pattern)):
        if not re.match(pattern, said):
            raise ContractNotProposed(f"{what}: got {said!r}; expected {meaning}")
    if currency is not None and not has_minor_unit(currency):
        raise ContractNotProposed(f"--currency: got {currency!r}; expected an ISO 4217 code of money, such as EUR")
    usable_folder(path.parent, setting="--folder")
    if path.exists():
        raise ContractNotProposed(f"{path}: is there already; expected another NAME, or the file out of the way")
