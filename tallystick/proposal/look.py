"""Looks at a topic and at a table, for a first contract: the newest events, the catalogue, and some rows.

Reads only what is committed, and in a ledger by an index or without an order, so that no look costs a scan; each is
stopped after half a minute. What was read stays in memory.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import Any
from uuid import UUID

from kafka.errors import KafkaError
from sqlalchemy import Connection, MetaData, Table, create_engine, inspect, select, types
from sqlalchemy.engine.interfaces import ReflectedIndex
from sqlalchemy.exc import DBAPIError, NoSuchTableError
from sqlalchemy.pool import StaticPool

from tallystick.connections.connections import KafkaSettings
from tallystick.contract.field_path import values_by_path
from tallystick.contract.sql_names import parts_of
from tallystick.kafka_log.committed_records import committed_in
from tallystick.kafka_log.fetch import BrokerUnreachable, OffsetNotInLog, fetcher, open_admin
from tallystick.kafka_log.topic_snapshot import read_topic_snapshot
from tallystick.ledger.jdbc import open_jdbc_connection
from tallystick.ledger.jdbc_connection import jdbc_settings
from tallystick.ledger.postgres_connection import open_ledger
from tallystick.ledger.protocol import LedgerRefused
from tallystick.proposal.samples import Column, ColumnKind, Event, Row, TableSample, TopicSample

EVENTS_MAX = 500
"""Of each topic, the newest."""
_OFFSETS_MAX = 1000
"""Of each partition; markers and aborted records are among them."""
_ROWS_MAX = 1000
_STATEMENT_SECONDS = 30


def look_at_topics(kafka: KafkaSettings, topics: Sequence[str]) -> tuple[TopicSample, ...]:
    """Read the newest committed events of each topic. Raises BrokerUnreachable, TopicNotFound."""
    with open_admin(kafka) as admin:
        fetch, parts = fetcher(admin), read_topic_snapshot(admin, topics)
        samples = []
        for topic in topics:
            ranges = [
                part.stable_from(max(part.log_start, part.lso - _OFFSETS_MAX))
                for part in parts
                if part.topic == topic and part.log_start < part.lso
            ]
            try:
                values = [record.value for inside in ranges for record in committed_in(fetch, inside) if record.value]
            except (KafkaError, OffsetNotInLog, OSError) as error:
                raise BrokerUnreachable(f"records of {topic}: {type(error).__name__}: {error}") from error
            events = [event for value in values if (event := _event(value)) is not None]
            samples.append(
                TopicSample(topic=topic, events=tuple(events[-EVENTS_MAX:]), unreadable=len(values) - len(events))
            )
    return tuple(samples)


def _event(value: bytes) -> Event | None:
    try:
        document = json.loads(value, parse_float=Decimal)
    except (ValueError, RecursionError):
        return None
    return dict(values_by_path(document)) if isinstance(document, dict) else None


@contextmanager
def look_at_table(text: str, table: str, *, kind: str) -> Iterator[TableSample]:
    """Open the ledger for looks at a table. text: the connection's, as a contract of this kind reads it.

    Raises LedgerRefused, LedgerUnreachable, LedgerTooOld, LedgerReadCancelled, ConnectionNotGiven.
    """
    with _connection(text, kind=kind) as connection:
        *outside, name = parts_of(table)
        try:
            found = Table(name, MetaData(), schema=".".join(outside), autoload_with=connection)
        except NoSuchTableError:
            raise LedgerRefused(f"ledger table {table}: no such table, or this role may not see its schema") from None
        try:
            yield TableSample(
                table=table,
                kind=kind,
                columns=tuple(_columns(connection, found)),
                rows=tuple(_some_rows(connection, found)),
                find_rows=_finder(connection, found),
            )
        except DBAPIError as error:
            if isinstance(error.orig, Exception) and kind == "postgres":
                raise error.orig from None  # open_ledger has a sentence for it
            raise LedgerRefused(f"ledger table {table}: {type(error.orig).__name__}: {error.orig}") from None


@contextmanager
def _connection(text: str, *, kind: str) -> Iterator[Connection]:
    if kind == "jdbc":
        with open_jdbc_connection(jdbc_settings(text)) as connection:
            yield connection
        return
    with open_ledger(text) as opened:
        opened.execute(f"SET statement_timeout = '{_STATEMENT_SECONDS}s'")
        engine = create_engine(
            "postgresql+psycopg://",
            creator=lambda: opened,
            poolclass=StaticPool,
            isolation_level="AUTOCOMMIT",
            hide_parameters=True,
        )
        with engine.connect() as connection:
            yield connection


def _columns(connection: Connection, table: Table) -> Iterator[Column]:
    look = inspect(connection)
    key = look.get_pk_constraint(table.name, schema=table.schema)["constrained_columns"]
    indexes: list[tuple[Sequence[str | None], bool]] = [
        (index["column_names"], bool(index["unique"]) and not _is_partial(index))
        for index in look.get_indexes(table.name, table.schema)
    ]
    indexes += [(key, True)] if key else []
    indexes += [
        (unique["column_names"], True) for unique in look.get_unique_constraints(table.name, schema=table.schema)
    ]
    for column in table.columns:
        yield Column(
            name=column.name,
            kind=_kind(column.type),
            has_zone=bool(getattr(column.type, "timezone", False)),
            leads_index=any(names[:1] == [column.name] for names, _ in indexes),
            is_unique=key == [column.name]
            or (any(names == [column.name] and unique for names, unique in indexes) and not column.nullable),
            is_primary_key=key == [column.name],
        )


def _is_partial(index: ReflectedIndex) -> bool:
    return any(option.endswith("_where") for option in index.get("dialect_options", {}))


def _kind(of: types.TypeEngine[Any]) -> ColumnKind:
    match of:
        case types.Integer():
            return ColumnKind.INTEGER
        case types.Float():
            return ColumnKind.OTHER  # no money, and no key
        case types.Numeric():
            return ColumnKind.DECIMAL
        case types.String() | types.Uuid():
            return ColumnKind.TEXT
        case types.DateTime():
            return ColumnKind.TIME
    return ColumnKind.OTHER


def _some_rows(connection: Connection, table: Table) -> Sequence[Row]:
    """The newest by a primary key that grows, else any."""
    wanted = select(table).limit(_ROWS_MAX)
    key = list(table.primary_key.columns)
    if len(key) == 1 and isinstance(key[0].type, types.Integer):
        wanted = wanted.order_by(key[0].desc())
    return [dict(row) for row in connection.execute(wanted).mappings()]


def _finder(connection: Connection, table: Table) -> Callable[[str, Sequence[str]], Sequence[Row]]:
    def find_rows(column_name: str, values: Sequence[str]) -> Sequence[Row]:
        column = table.columns[column_name]
        given = [typed for value in values if (typed := _typed(column.type, value)) is not None]
        if not given:
            return []
        wanted = select(table).where(column.in_(given)).limit(_ROWS_MAX)
        return [dict(row) for row in connection.execute(wanted).mappings()]

    return find_rows


def _typed(of: types.TypeEngine[Any], value: str) -> Any:
    """The value as this column can hold it; None where it cannot."""
    try:
        if isinstance(of, types.Integer):
            number = int(value)
            return number if -(1 << 63) <= number < 1 << 63 else None
        return UUID(value) if isinstance(of, types.Uuid) else value
    except ValueError:
        return None
