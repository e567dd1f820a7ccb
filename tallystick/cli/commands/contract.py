"""`tallystick contract`: check contracts, and compare a changed one with what is stored."""

from pathlib import Path
from typing import Annotated

import typer

from tallystick.cli.shared_options import AsJson
from tallystick.connections.connections import store_dsn
from tallystick.contract.contract import Contract, ContractRefused, load_contract, load_contracts
from tallystick.model.verdict import ExitCode

contract_commands = typer.Typer(no_args_is_help=True, help="Contracts: one YAML file per reconciliation.")


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
