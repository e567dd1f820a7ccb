"""The folder of contracts as Airflow sees it: one bad file must not take the other reconciliations down.

Decides which files become DAGs. What a contract may say is `tallystick.contract`'s business.
"""

from dataclasses import dataclass
from pathlib import Path

from tallystick.contract.contract import Contract, ContractRefused, load_contract, other_endings, shared_name


@dataclass(frozen=True, kw_only=True)
class ContractFile:
    """A valid contract and where it stands; tasks and the Spark app read it again from there."""

    path: Path
    contract: Contract


@dataclass(frozen=True, kw_only=True)
class ContractFiles:
    """The content of a folder: the contracts that can run, and a message for each file that cannot."""

    accepted: tuple[ContractFile, ...]
    refused: tuple[str, ...]


def read_contract_files(folder: Path) -> ContractFiles:
    """Read each *.yaml of the folder, by name. Of two files of one contract the first counts. *.yml is refused."""
    accepted: dict[str, ContractFile] = {}
    refused = other_endings(folder)
    for path in sorted(folder.glob("*.yaml")):
        try:
            contract = load_contract(path)
        except ContractRefused as error:
            refused.append(str(error))
            continue
        if contract.name in accepted:
            refused.append(shared_name(path, contract.name, accepted[contract.name].path))
            continue
        accepted[contract.name] = ContractFile(path=path, contract=contract)
    return ContractFiles(accepted=tuple(accepted.values()), refused=tuple(refused))
