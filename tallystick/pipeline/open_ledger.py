"""The choice of the implementation that reads a contract's ledger: by `ledger.kind`."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import psycopg
from sqlalchemy import Engine

from tallystick.connections.connections import Connections
from tallystick.contract.contract import Contract
from tallystick.ledger.input_topics import open_input_topics
from tallystick.ledger.jdbc import open_jdbc_ledger
from tallystick.ledger.jdbc_connection import jdbc_settings
from tallystick.ledger.postgres import PostgresLedger
from tallystick.ledger.postgres_connection import jdbc_scan_options, open_ledger
from tallystick.ledger.postgres_standby import reach
from tallystick.ledger.protocol import Ledger
from tallystick.store.clock import store_now
from tallystick.store.runs.cut_store import last_cut, read_ledger_slices
from tallystick.store.runs.run_history_store import earlier_rows_before, ledger_rows_by_slice, ledger_sum_of_slice


@contextmanager
def open_ledger_of(engine: Engine, contract: Contract, connections: Connections) -> Iterator[Ledger]:
    """The contract's ledger, closed at the end. engine: the store, which says what cuts have read of it, and the time.

    Raises LedgerUnreachable, BrokerUnreachable, ConnectionNotGiven.
    """
    read_before = partial(ledger_rows_by_slice, engine, contract.name)
    now = partial(store_now, engine)
    match contract.ledger.kind:
        case "postgres":
            jdbc_scan_options(connections.ledger_dsn)  # what Spark cannot be told is refused before anything is read
            counted_before = partial(earlier_rows_before, engine, contract.name)
            with open_ledger(connections.ledger_dsn) as connection, _open_primary(contract, connections) as primary:
                if primary is not None:
                    newest = last_cut(engine, contract.name)
                    reach(connection, primary, newest.ledger_slice.snapshot if newest else None)
                yield PostgresLedger(
                    connection=connection,
                    primary=primary,
                    ledger=contract.ledger,
                    read_before=read_before,
                    counted_before=counted_before,
                )
        case "jdbc":
            with open_jdbc_ledger(
                jdbc_settings(connections.ledger_dsn),
                contract.ledger,
                read_before=read_before,
                sum_before=partial(ledger_sum_of_slice, engine, contract.name),
                scattered_before=partial(ledger_sum_of_slice, engine, contract.name, prefix="scattered_"),
                now=now,
            ) as ledger:
                yield ledger
        case "parquet":
            from tallystick.ledger.parquet import ParquetLedger  # Arrow: for ledgers of files alone

            yield ParquetLedger(
                address=connections.ledger_dsn,
                ledger=contract.ledger,
                stored_slices=partial(read_ledger_slices, engine, contract.name),
                now=now,
            )
        case "iceberg":
            from tallystick.ledger.iceberg.iceberg_ledger import (
                open_iceberg_ledger,  # pyiceberg: for tables of Iceberg alone
            )

            yield open_iceberg_ledger(
                connections.ledger_dsn,
                contract.ledger,
                stored_slices=partial(read_ledger_slices, engine, contract.name),
            )
        case "topic":
            with open_input_topics(contract, connections) as topics:
                yield topics


@contextmanager
def _open_primary(contract: Contract, connections: Connections) -> Iterator[psycopg.Connection | None]:
    """The primary, where the contract has its rows read on a standby."""
    if contract.ledger.primary_connection is None:
        yield None
        return
    assert connections.primary_dsn is not None
    with open_ledger(connections.primary_dsn) as primary:
        yield primary
