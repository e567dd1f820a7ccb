"""The contract that a cut was made under, or a plan begun, as it was written then.

Reports of old runs do not change with the file.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError
from sqlalchemy import Connection, Engine, Select, select
from sqlalchemy.dialects.postgresql import insert as upsert

from tallystick.contract.change import refuse_other_books
from tallystick.contract.contract import Contract
from tallystick.model.errors import TallystickError
from tallystick.store.schema import contract_version
from tallystick.store.schema import cut as cut_table


class StoredContractRefused(TallystickError, RuntimeError):
    """A contract that another release has stored is none by this one."""


@dataclass(frozen=True, kw_only=True)
class NewestContract:
    """The contract of the newest cut. judged: does that cut have its verdict?"""

    contract: Contract
    cut_n: int
    judged: bool


def newest_contract(engine: Engine, contract_name: str) -> NewestContract | None:
    """Return the contract that the next cut continues; None where no cut was stored."""
    statement = _cuts_with_their_contract(contract_name).order_by(cut_table.c.n.desc()).limit(1)
    with engine.connect() as connection:
        row = connection.execute(statement).first()
    return NewestContract(contract=contract_of_body(row.body), cut_n=row.n, judged=not row.open) if row else None


def newest_readable_contract(engine: Engine, contract_name: str) -> Contract | None:
    """Return the contract of the newest cut; None where no cut was stored, or this release does not take it for one."""
    try:
        newest = newest_contract(engine, contract_name)
    except StoredContractRefused:
        return None
    return newest.contract if newest else None


def require_same_books(engine: Engine, contract: Contract) -> None:
    """Require that this contract may continue the books of its name. Raises ContractChangeRefused."""
    newest = newest_contract(engine, contract.name)
    posted_in = last_actions_table(engine, contract.name) if contract.actions_table else None
    refuse_other_books(newest.contract if newest else None, contract, posted_in=posted_in)


def last_actions_table(engine: Engine, contract_name: str) -> str | None:
    """Return the table where the newest cut whose contract posted keeps its actions; None: none did."""
    named = contract_version.c.body["compensation"]["post"]["actions_table"].as_string()
    statement = (
        _cuts_with_their_contract(contract_name)
        .with_only_columns(named)
        .where(named.is_not(None))
        .order_by(cut_table.c.n.desc())
        .limit(1)
    )
    with engine.connect() as connection:
        found: str | None = connection.scalar(statement)
    return found


def read_contract(engine: Engine, contract_name: str, n: int) -> Contract | None:
    """The contract of cut n; None where no such cut was stored."""
    statement = _cuts_with_their_contract(contract_name).where(cut_table.c.n == n)
    with engine.connect() as connection:
        body = connection.scalar(statement)
    return contract_of_body(body) if body is not None else None


def contract_of_body(body: Mapping[str, Any]) -> Contract:
    """Return a contract of the store. Raises StoredContractRefused."""
    try:
        return Contract.model_validate(body)
    except ValidationError as error:
        fault = error.errors()[0]
        where = ".".join(map(str, fault["loc"])) or "the whole of it"
        raise StoredContractRefused(
            f"{body.get('contract')}: a contract that the store has is none by this release, by its {where}: "
            f"{fault['msg']}; install the release that stored it"
        ) from error


def contract_of_fingerprint(engine: Engine, contract_name: str, fingerprint: str) -> Contract | None:
    """Return the contract of this fingerprint; None where no cut was made and no plan begun under it, or this release
    does not take it for a contract.
    """
    c = contract_version.c
    with engine.connect() as connection:
        body = connection.scalar(select(c.body).where(c.contract == contract_name, c.fingerprint == fingerprint))
    try:
        return contract_of_body(body) if body is not None else None
    except StoredContractRefused:
        return None


def contract_begun_under(engine: Engine, contract_name: str, fingerprint: str, *, cut_n: int) -> Contract | None:
    """Return the contract of this fingerprint, or else the one of cut n; None where neither is there, or this release
    takes neither for a contract.
    """
    if then := contract_of_fingerprint(engine, contract_name, fingerprint):
        return then
    try:
        return read_contract(engine, contract_name, cut_n)
    except StoredContractRefused:
        return None


def keep_contract(engine: Engine, contract: Contract) -> None:
    """Keep a contract by its fingerprint, whether or not a cut is ever made under it."""
    with engine.begin() as connection:
        save_contract(connection, contract)


def save_contract(connection: Connection, contract: Contract) -> None:
    """Keep a contract in a transaction of the caller's."""
    connection.execute(
        upsert(contract_version).on_conflict_do_nothing(),
        {
            "contract": contract.name,
            "fingerprint": contract.fingerprint,
            "version": contract.version,
            "body": contract.model_dump(mode="json"),
        },
    )


def _cuts_with_their_contract(contract_name: str) -> Select[Any]:
    """Body, number and openness of each cut."""
    made_with = (cut_table.c.contract == contract_version.c.contract) & (
        cut_table.c.contract_fingerprint == contract_version.c.fingerprint
    )
    statement = select(contract_version.c.body, cut_table.c.n, cut_table.c.open).join(cut_table, made_with)
    return statement.where(cut_table.c.contract == contract_name)
