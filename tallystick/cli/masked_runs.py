"""Mask stored runs as the contract asks that their cut was made with."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from tallystick.model.stored_run import StoredRun
    from tallystick.report.masking import Mask


def masked(engine: "Engine", run: "StoredRun") -> "StoredRun":
    """Return the run as people may see it."""
    return mask_of_cut(engine, run.result.contract, run.result.cut_n).run(run)


def mask_of_cut(engine: "Engine", contract_name: str, n: int) -> "Mask":
    """Return the mask of the contract that the cut was made with."""
    from tallystick.report.masking import Mask
    from tallystick.store.runs.contract_store import read_contract

    contract = read_contract(engine, contract_name, n)
    assert contract is not None  # a cut refers to its contract by a foreign key
    return Mask(contract)
