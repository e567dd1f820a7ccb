"""The contract a cut was made under, as it was written then: reports of old runs do not change with the file."""

from sqlalchemy import Engine, select

from tallystick.contract import Contract
from tallystick.store.schema import contract_version
from tallystick.store.schema import cut as cut_table


def read_contract(engine: Engine, contract_name: str, n: int) -> Contract | None:
    """The contract of cut n; None where no such cut was stored."""
    statement = (
        select(contract_version.c.body)
        .join(
            cut_table,
            (cut_table.c.contract == contract_version.c.contract)
            & (cut_table.c.contract_fingerprint == contract_version.c.fingerprint),
        )
        .where(cut_table.c.contract == contract_name, cut_table.c.n == n)
    )
    with engine.connect() as connection:
        body = connection.scalar(statement)
    return Contract.model_validate(body) if body is not None else None
