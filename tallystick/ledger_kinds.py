"""Which implementation reads a contract's ledger: by `ledger.kind`."""

from collections.abc import Iterator
from contextlib import contextmanager

from tallystick.connections import Connections
from tallystick.contract import Contract
from tallystick.input_topic import open_input_topics
from tallystick.ledger import Ledger
from tallystick.ledger_reader import PostgresLedger, open_ledger


@contextmanager
def open_ledger_of(contract: Contract, connections: Connections) -> Iterator[Ledger]:
    """The contract's ledger, closed at the end. Raises LedgerUnreachable, BrokerUnreachable."""
    match contract.ledger.kind:
        case "postgres":
            with open_ledger(connections.ledger_dsn) as connection:
                yield PostgresLedger(connection=connection, ledger=contract.ledger)
        case "topic":
            with open_input_topics(contract, connections) as topics:
                yield topics
