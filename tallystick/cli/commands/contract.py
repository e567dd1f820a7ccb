"""`tallystick contract`: check contracts, compare a changed one with what is stored, and print their schema."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
import yaml

from tallystick.cli.shared_options import AsJson, ContractFile
from tallystick.connections.connections import store_dsn
from tallystick.host.yaml_file import read_mapping
from tallystick.model.verdict import ExitCode

if TYPE_CHECKING:
    from tallystick.contract.contract import Contract

contract_commands = typer.Typer(
    no_args_is_help=True,
    help="Check contract files, compare a changed one with what is stored, translate them.",
)


@contract_commands.command("check")
def check_contracts(
    paths: Annotated[
        list[Path], typer.Argument(metavar="FILE|FOLDER", help="Contract files, or folders with *.yaml files.")
    ],
    as_json: AsJson = False,
) -> None:
    """Check contract files without connecting to anything.

    Each fault names file, field, the value found and the value expected. All fields of all files are checked at once; a
    section whose fields do not fit together prints one fault at a time.

    Example: `tallystick contract check dags/contracts`
    """
    from tallystick.cli.output import print_contracts, print_json
    from tallystick.contract.contract import ContractRefused

    contracts, faults = _read_contracts(paths)
    if faults:
        raise ContractRefused("\n".join(faults))
    if as_json:
        print_json([_contract_document(contract) for contract in contracts])
    else:
        print_contracts(contracts)


def _read_contracts(paths: list[Path]) -> "tuple[list[Contract], list[str]]":
    """Return all contracts of files and folders, and the faults. A folder without a contract is a fault, too.

    So is a name that two files have. A file that is named twice is read twice.
    """
    from tallystick.contract.contract import ContractRefused, load_contract, load_contracts, shared_name

    contracts: list[Contract] = []
    faults: list[str] = []
    paths_by_name: dict[str, Path] = {}
    for path in paths:
        try:
            found = load_contracts(path) if path.is_dir() else (load_contract(path),)
        except ContractRefused as refused:
            faults.append(str(refused))
            continue
        if not found:
            faults.append(f"{path}: no contract in this folder; expected *.yaml")
        files = sorted(path.glob("*.yaml")) if path.is_dir() else [path]
        for contract, file in zip(found, files, strict=True):
            first = paths_by_name.setdefault(contract.name, file)
            if not first.samefile(file):
                faults.append(shared_name(file, contract.name, first))
        contracts.extend(found)
    return contracts, faults


def _contract_document(contract: "Contract") -> dict[str, object]:
    return {
        "contract": contract.name,
        "version": contract.version,
        "direction": str(contract.direction),
        "topics": list(contract.topics),
        "table": contract.ledger.place,
        "schedule": contract.schedule,
        "fingerprint": contract.fingerprint,
    }


@contract_commands.command("schema")
def print_contract_schema() -> None:
    """Print the JSON Schema of a contract, by which an editor completes and explains its fields.

    Editors with the YAML language server read it when the contract's first line names the file:
    `# yaml-language-server: $schema=contract.schema.json`. The schema knows single fields; which of them go together,
    `tallystick contract check` knows.

    Example: `tallystick contract schema > contract.schema.json`
    """
    from tallystick.documents.schema import schema_text

    typer.echo(schema_text("contract.v1.json"), nl=False)


@contract_commands.command("to-odcs")
def print_odcs(contract_file: ContractFile) -> None:
    """Print a contract as an Open Data Contract (ODCS 3.1), for catalogues and `datacontract lint`.

    Topics and the ledger's table are its schemas, the reconciliation is their quality. The whole contract stands in the
    custom property `tallystick`, so that `from-odcs` gives it back.

    Example: `tallystick contract to-odcs dags/contracts/billing_payments.yaml`
    """
    from tallystick.contract.contract import load_contract
    from tallystick.documents.odcs import odcs_document

    typer.echo(
        yaml.safe_dump(odcs_document(load_contract(contract_file)), sort_keys=False, allow_unicode=True), nl=False
    )


@contract_commands.command("from-odcs")
def print_contract_of_odcs(
    odcs_file: Annotated[Path, typer.Argument(metavar="FILE", help="The Open Data Contract (YAML).")],
    kafka: Annotated[
        str | None, typer.Option(metavar="CONNECTION_ID", help="Connection of the cluster, which ODCS does not name.")
    ] = None,
    ledger: Annotated[
        str | None, typer.Option(metavar="CONNECTION_ID", help="Connection of the ledger, which ODCS does not name.")
    ] = None,
) -> None:
    """Print a first contract made from an Open Data Contract, which `to-odcs` or somebody else wrote.

    Where somebody else wrote it, each schema of physicalType topic becomes a leg, and the one of physicalType table the
    ledger. Fields get their roles by names and types: read the contract before you use it. Exit code 2: a field was not
    found.

    Example: `tallystick contract from-odcs orders.odcs.yaml --kafka shop_kafka --ledger shop_db`
    """
    from tallystick.contract.contract import contract_of
    from tallystick.documents.odcs import OdcsRefused, contract_of_odcs

    odcs = read_mapping(odcs_file)
    try:
        document = contract_of_odcs(odcs, kafka=kafka, ledger=ledger, now=datetime.now(UTC))
    except OdcsRefused as refused:
        raise OdcsRefused("\n".join(f"{odcs_file}: {fault}" for fault in str(refused).splitlines())) from None
    contract_of(document, path=odcs_file)
    typer.echo(yaml.safe_dump(document, sort_keys=False, allow_unicode=True), nl=False)


@contract_commands.command("diff")
def show_contract_changes(
    contract_file: Annotated[Path, typer.Argument(metavar="FILE", help="The changed contract file (YAML).")],
    as_json: AsJson = False,
) -> None:
    """Show what a changed contract would do to the stored items of its name, before you deploy it.

    Compares the file with the contract of the newest stored cut, field by field. A change is kept (no result differs),
    re-evaluated (the next run uses the new rule) or refused (no cut would be made). Stored verdicts never change.
    Reads the verdict store only, and stores nothing. Exit code 2: a change is refused.

    Example: `tallystick contract diff dags/contracts/billing_payments.yaml`
    """
    from tallystick.cli.output import print_contract_changes, print_json
    from tallystick.contract.change import ChangeEffect, contract_changes, gravest
    from tallystick.contract.contract import load_contract
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
        typer.echo(f"{contract.name}: no cut is stored yet, so there is nothing to change")
    if gravest(changes) is ChangeEffect.REFUSED:
        raise typer.Exit(ExitCode.REFUSED)
