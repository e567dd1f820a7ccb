"""The lock between those who end a contract's breaks and those who repair them."""

from sqlalchemy import Connection, func, select


def hold_breaks(connection: Connection, contract_name: str) -> None:
    """Lock the breaks until the transaction ends: nobody else commits a verdict, writes a break off or begins a repair.
    Waits for whoever does.
    """
    connection.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(f"breaks {contract_name}", 0))))
