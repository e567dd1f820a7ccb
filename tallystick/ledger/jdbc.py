"""A ledger in any database that SQLAlchemy and Spark's JDBC source reach, read by a column that grows.

A row's position is the value of that column: the integer itself, or a timestamp in microseconds since 1970. Writers
that run beside each other do not commit in its order, and no database tells below which value all of them have ended.
So the contract states an *overlap*: how far behind the newest value a row may still come into sight. The horizon stays
that far back, and what lies above it waits for the next cut. A row that comes later still is in no cut; the guard of
older rows tells that it came, and a look-up that finds it does not say that a cut has read it.

One file, since slicing, counting and looking up by one column rest on the same few rules of its values.
"""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cache, cached_property
from typing import Any, TypeVar
from uuid import UUID

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Integer,
    MetaData,
    Row,
    Select,
    String,
    Table,
    and_,
    bindparam,
    cast,
    create_engine,
    func,
    inspect,
    literal,
    literal_column,
    null,
    or_,
    select,
    text,
    true,
    types,
)
from sqlalchemy.engine.interfaces import ReflectedIndex
from sqlalchemy.exc import DBAPIError, NoSuchTableError, OperationalError
from sqlalchemy.pool import NullPool

from tallystick.connections.postgres_failures import what_to_do
from tallystick.contract.equality import Money, row_money
from tallystick.contract.field_types import Constant
from tallystick.contract.ledger import LedgerSection
from tallystick.contract.sql_condition import EXPECTED, for_pgjdbc, why_no_condition
from tallystick.contract.sql_names import bare, parts_of
from tallystick.ledger.earlier_rows import ReadSlice, find_read_slice
from tallystick.ledger.innodb import read_innodb_holder, read_innodb_snapshot, refuse_other_than_row_start
from tallystick.ledger.jdbc_connection import MYSQL_FAMILY, JdbcSettings
from tallystick.ledger.jdbc_types import InItsCharacters, has_zone, is_exact_number, is_integer, is_moment
from tallystick.ledger.protocol import (
    HorizonHolder,
    LedgerDescription,
    LedgerRefused,
    LedgerRow,
    LedgerUnreachable,
    not_unique_row_id,
)
from tallystick.ledger.unread_rows import UnreadRows
from tallystick.model.cut import ANCHORS_MAX, FileChange, LedgerAnchor, LedgerSlice, LedgerSnapshot, anchor_of

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_MICROSECONDS = 1_000_000
_REMAINDER_OF = 1_000_003
"""A prime; two rows that differ by a multiple of it look alike in the sum."""
_SHIFT = 524_287
"""A prime too, so that small remainders leave their order."""
_LOOKED_THROUGH = 1_000
_KEYS_AT_ONCE = 500
"""Number of values in one IN list; SQLite takes 32,766, others fewer."""

_BEGINS_WITH = {
    "postgresql": ("SET default_transaction_read_only = on",),
    **dict.fromkeys(MYSQL_FAMILY, ("SET SESSION TRANSACTION READ ONLY", "SET time_zone = '+00:00'")),
    "sqlite": ("PRAGMA query_only = ON",),
}
"""The statements that make a database refuse this session's writes, and say its times in UTC, by SQLAlchemy's name of
it; others have roles."""

_REFUSED_BY_MYSQL = (1054, 1142, 1143, 1305, 1370)
"""Error codes: no such column, table or column not shown to this user, no such function."""

_ROW_END = text(
    "SELECT column_name FROM information_schema.columns WHERE table_schema = :schema AND table_name = :name "
    "AND generation_expression = 'ROW END'"
)

_CHARACTERS = text(
    "SELECT character_set_name AS characters, collation_name AS collation FROM information_schema.columns "
    "WHERE table_schema = :schema AND table_name = :name AND column_name = :column"
)
"""No set for what is no text."""
_EVERY_CHARACTER = "utf8mb4"

_ALIKE_IN_OTHER_CASE = (*MYSQL_FAMILY, "mssql")
"""Databases that by default take texts for equal that differ in case, or by spaces at their end."""

_TEXTS = ("row_id", "match_key", "transaction_key", "leg")
_COLUMNS = (*_TEXTS, *Money._fields)


_REPLAYED_UNTIL = (
    "SELECT CASE WHEN pg_is_in_recovery() THEN coalesce(pg_last_xact_replay_timestamp(), 'epoch'::timestamptz) END"
)
"""Stands still while the primary commits nothing. Source: PostgreSQL manual, recovery information functions."""


def snapshot_behind(
    end: int, *, overlap: int, clock: int | None, system: str, replayed: int | None = None
) -> LedgerSnapshot:
    """A ledger whose newest row stands just below `end`. clock: the reader's, where positions are moments. replayed: of
    a standby, the moment of the newest commit that it shows.

    What was written by now lies below the high mark: no row that is in sight stands higher.
    """
    shown = clock if clock is None or replayed is None else min(clock, replayed)
    horizon = (end if shown is None else shown) - overlap
    mark = end if clock is None else max(end, clock + 1)
    return LedgerSnapshot(low_mark=max(0, horizon), high_mark=mark, system_identifier=system, timeline=0, lsn="0/0")


@contextmanager
def open_jdbc_ledger(
    settings: JdbcSettings,
    ledger: LedgerSection,
    *,
    read_before: Callable[[], tuple[ReadSlice, ...]],
    sum_before: Callable[[ReadSlice], int | None],
    scattered_before: Callable[[ReadSlice], int | None] = lambda one: None,
    now: Callable[[], datetime],
) -> Iterator["JdbcLedger"]:
    """Open the ledger; close it at the end. read_before: slices that cuts have read. sum_before, scattered_before: over
    the positions of one of them, as `JdbcLedger.sum_of_positions` and the other had it then. now: the store's clock.

    Raises LedgerUnreachable.
    """
    with open_jdbc_connection(settings) as connection:
        yield JdbcLedger(
            connection=connection,
            settings=settings,
            ledger=ledger,
            read_before=read_before,
            sum_before=sum_before,
            scattered_before=scattered_before,
            now=now,
        )


@contextmanager
def open_jdbc_connection(settings: JdbcSettings) -> Iterator[Connection]:
    """Open a session that refuses writes where we know how to ask for that. Raises LedgerUnreachable."""
    engine = create_engine(
        settings.url,
        poolclass=NullPool,
        isolation_level="AUTOCOMMIT",
        hide_parameters=True,
        connect_args=settings.time_limit,
    )
    try:
        with engine.connect() as connection:
            for statement in _BEGINS_WITH.get(connection.dialect.name, ()):
                connection.exec_driver_sql(statement)
            yield connection
    except OperationalError as error:
        raise LedgerUnreachable(f"ledger: {_said(error)}{what_to_do(str(error.orig))}") from None


@dataclass(frozen=True, kw_only=True)
class JdbcLedger:
    """The ledger of one contract behind SQLAlchemy; its positions are values of the column `ledger.order_by`."""

    connection: Connection
    settings: JdbcSettings
    ledger: LedgerSection
    read_before: Callable[[], tuple[ReadSlice, ...]]
    sum_before: Callable[[ReadSlice], int | None]
    now: Callable[[], datetime]
    scattered_before: Callable[[ReadSlice], int | None] = lambda one: None

    @property
    def in_major(self) -> bool:
        """Return whether amounts count major units of their currency."""
        return self.ledger.amount_unit == "major"

    def describe(self) -> LedgerDescription:
        columns = self.ledger.columns
        self._require_condition()
        self._require_order()
        self._require_exact_amount()
        if self.ledger.by_innodb:
            schema, name = self._place
            refuse_other_than_row_start(self.connection, schema=schema, name=name, column=self._order.name)
        if columns.written_at is not None and not self._has_zone(self._column(columns.written_at)):
            raise LedgerRefused(
                f"{self._name}: column {columns.written_at}, which the contract names written_at: "
                f"got {self._column(columns.written_at).type!r}; expected a timestamp with its zone"
            )
        try:
            self.connection.execute(self._select().add_columns(*self._compared_columns()).limit(0))
        except DBAPIError as error:
            if isinstance(error, OperationalError) and not self._says_a_typo(error):
                raise
            raise LedgerRefused(f"{self._name}: {_said(error)}") from None
        row_id_is_unique = self._is_unique(columns.row_id)
        if not row_id_is_unique and not self._is_view():
            raise LedgerRefused(not_unique_row_id(self._name, columns.row_id))
        return LedgerDescription(key_is_unique=self._is_unique(columns.match_key), row_id_is_unique=row_id_is_unique)

    def _says_a_typo(self, error: OperationalError) -> bool:
        """Return whether the contract does not fit: these databases have no class of errors for that alone."""
        if self.connection.dialect.name in MYSQL_FAMILY:
            return error.orig is not None and error.orig.args[0] in _REFUSED_BY_MYSQL
        return "no such" in str(error.orig)  # SQLite's

    def read_snapshot(self) -> LedgerSnapshot:
        """Return how far it can be read: the overlap behind the newest value, or behind the clock for a timestamp; on a
        standby of PostgreSQL behind the newest commit that it has replayed, so that what it lacks is held.

        An idle ledger's clock goes on, so its rows come to be read; an integer stands still, and its newest rows wait.
        """
        if self.ledger.by_innodb:
            return read_innodb_snapshot(self.connection)
        now, replayed = self.now(), self._replayed_until()
        highest = self.connection.scalar(select(func.max(self._order)))
        end = 0 if highest is None else self._position(highest) + 1
        overlap, system = self.ledger.overlap or 0, self.connection.dialect.name
        if self._is_timestamp:
            return snapshot_behind(
                end,
                overlap=overlap * _MICROSECONDS,
                clock=_microseconds(now),
                system=system,
                replayed=replayed,
            )
        return snapshot_behind(end, overlap=overlap, clock=None, system=system)

    def read_beginning(self) -> tuple[LedgerSnapshot, int | None]:
        """Read both one after the other: not every database reads twice at one moment."""
        snapshot = self.read_snapshot()
        return snapshot, self._rows_below(snapshot.low_mark)

    def fix(self, ledger_slice: LedgerSlice) -> LedgerSlice:
        if self.ledger.by_innodb:
            return ledger_slice  # an UPDATE moves a row there
        return replace(ledger_slice, anchors=self._newest_rows(0, ledger_slice.position_end, limit=ANCHORS_MAX))

    def changed_files(self, ledger_slice: LedgerSlice) -> tuple[FileChange, ...]:
        return ()

    def lost_anchors(self, ledger_slice: LedgerSlice) -> tuple[LedgerAnchor, ...]:
        """Look through some of the rows that stand there now: of those behind them nobody can say. A row that stands at
        another position, or that the contract's condition leaves out by now, is not lost.
        """
        anchors = ledger_slice.anchors
        if not anchors:
            return ()
        now = self._newest_rows(anchors[-1].position, anchors[0].position + 1, limit=_LOOKED_THROUGH)
        looked_down_to = now[-1].position if len(now) == _LOOKED_THROUGH else -1
        missing = [one for one in anchors if one not in now and one.position > looked_down_to]
        keys = self._keys_of_rows(missing)
        return tuple(
            replace(one, taken=one.row_id in keys)
            for one in missing
            if one.key_checksum not in keys.get(one.row_id, ())
        )

    def _newest_rows(self, start: int, end: int, *, limit: int) -> tuple[LedgerAnchor, ...]:
        return tuple(
            anchor_of(_text(name), _text(key), position=self._position(position))
            for position, name, key in self.connection.execute(self._newest(start, end, limit=limit))
        )

    def _newest(self, start: int, end: int, *, limit: int) -> Select[Any]:
        rows = select(self._order, self._row_id, self._match_key).where(self._between(start, end), self._pairs)
        return rows.order_by(self._order.desc()).limit(limit)

    def _keys_of_rows(self, anchors: Sequence[LedgerAnchor]) -> dict[str, set[int]]:
        """Return checksums of the keys of all rows with these row ids; none where nobody can ask for the ids."""
        row_id = self._row_id
        if not anchors or not isinstance(row_id.type, types.Integer | types.Numeric | types.Uuid | types.String):
            return {}
        values = (key_value(row_id.type, one.row_id, dialect=self.connection.dialect.name) for one in anchors)
        asked = [one for one in values if one is not None]
        found: dict[str, set[int]] = {}
        for name, key in self.connection.execute(select(row_id, self._match_key).where(row_id.in_(asked))):
            found.setdefault(_text(name), set()).add(anchor_of("", _text(key)).key_checksum)
        return found

    @property
    def _row_id(self) -> Column[Any]:
        return self._column(self.ledger.columns.row_id)

    @property
    def _match_key(self) -> Column[Any]:
        return self._column(self.ledger.columns.match_key)

    def holder(self, *, horizon: int) -> HorizonHolder | None:
        """Return the overlap itself as the holder where nobody can see whose rows are still to come."""
        if self.ledger.by_innodb:
            return read_innodb_holder(self.connection, horizon=horizon)
        return HorizonHolder(position=horizon, holder=f"the overlap of {self.ledger.overlap_text}", since=None)

    def first_position_at(self, at_utc: datetime, *, start: int, end: int) -> int | None:
        written_at = self.ledger.columns.written_at
        if written_at is None:
            return None
        first = self.connection.scalar(
            select(func.min(self._order)).where(self._between(start, end), self._column(written_at) >= at_utc)
        )
        return None if first is None else self._position(first)

    def count_older_rows(self, ledger_slice: LedgerSlice) -> int | None:
        return self._rows_below(ledger_slice.position_start)

    def _rows_below(self, position: int) -> int | None:
        """Count rows below a position. A row without a value is in no slice, so it counts as one that came late."""
        below = or_(self._order < self._bound(position), self._order.is_(null()))
        return self.connection.scalar(select(func.count()).select_from(self._table).where(below, self._pairs))

    def count_unread(self, ledger_slice: LedgerSlice, *, below: int, before: UnreadRows | None) -> None:
        return None

    def count_by_place(self, ledger_slice: LedgerSlice, *, cut_n: int) -> None:
        return None

    def sum_of_positions(self, *, below: int) -> int | None:
        """Sum the positions that are integers: no one function of timestamps is known to all databases. Their
        remainders are summed, so that the sum has room in 64 bits.
        """
        return None if self._is_timestamp else self._sum_where(self._order < below, self._remainder)

    def scattered_sum_of_positions(self, *, below: int) -> int | None:
        return None if self._is_timestamp else self._sum_where(self._order < below, scattered(self._remainder))

    @property
    def _remainder(self) -> ColumnElement[int]:
        return cast(self._order % _REMAINDER_OF, types.BigInteger)

    def _sum_where(self, inside: ColumnElement[bool], number: ColumnElement[int]) -> int:
        query = select(func.sum(number)).select_from(self._table).where(inside, self._pairs)
        return int(self.connection.scalar(query) or 0)

    def look_up_rows(self, match_keys: Collection[str], ledger_slice: LedgerSlice) -> dict[str, tuple[LedgerRow, ...]]:
        key = self._column(self.ledger.columns.match_key)
        dialect = self.connection.dialect.name
        values = {one: key_value(key.type, one, dialect=dialect) for one in match_keys}
        asked = sorted((one for one, value in values.items() if value is not None), key=lambda one: values[one])
        key_type = self._type_of_asked(key)
        rows: list[Row[Any]] = []
        for first in range(0, len(asked), _KEYS_AT_ONCE):
            wanted = [values[one] for one in asked[first : first + _KEYS_AT_ONCE]]
            some = bindparam("keys", sorted(wanted), type_=key_type, expanding=True)
            rows += self.connection.execute(self._select().where(key.in_(some)).order_by(self._order)).all()
        is_whole = self._slices_still_whole()
        found: dict[str, list[LedgerRow]] = {}
        for row in rows:
            position = -1 if row.position is None else self._position(row.position)
            texts = {name: _text(getattr(row, name)) for name in _TEXTS}
            money = row_money(row.amount_minor, row.currency, in_major=self.in_major)
            one = LedgerRow(
                **texts,
                amount_minor=money.amount_minor,
                currency=money.currency,
                position=position,
                receipt_partition=row.receipt_partition,
                receipt_offset=row.receipt_offset,
                was_read=not ledger_slice.baseline_position <= position < ledger_slice.position_start
                or is_whole(position),
            )
            if one.match_key in values:  # a database may take another one's for equal
                found.setdefault(one.match_key, []).append(one)
        return {match_key: tuple(rows) for match_key, rows in found.items()}

    def _type_of_asked(self, column: ColumnElement[Any]) -> types.TypeEngine[Any]:
        """Return the type by which values are asked for: of MariaDB and MySQL as the column would hold them.

        One with a character that the column's set lacks would be refused, with all that are asked beside it (error
        1271). Written so it equals no row but those that have `?` in its place.
        """
        if self.connection.dialect.name not in MYSQL_FAMILY:
            return column.type
        schema, name = self._place
        asked = {"schema": schema, "name": name, "column": bare(self.ledger.columns.match_key)}
        found = self.connection.execute(_CHARACTERS, asked).one_or_none()
        if found is None or found.characters in (None, _EVERY_CHARACTER):
            return column.type
        return InItsCharacters(found.characters, found.collation)

    def _slices_still_whole(self) -> Callable[[int], bool]:
        """Return a test of a position: does its slice hold the rows that a cut read there? Then all of it was read.

        As many rows are the same ones where their positions have the same sum; of timestamps nobody keeps one.

        Asked once the look-up has all its rows, so that what it saw is counted.
        """
        read = cache(self.read_before)

        @cache
        def is_whole(one: ReadSlice) -> bool:
            inside = self._between(one.start, one.end)
            now = self.connection.scalar(select(func.count()).select_from(self._table).where(inside, self._pairs))
            if now != one.rows:
                return False
            then, scattered_then = self.sum_before(one), self.scattered_before(one)
            if then is not None and then != self._sum_where(inside, self._remainder):
                return False
            return scattered_then is None or scattered_then == self._sum_where(inside, scattered(self._remainder))

        def holds(position: int) -> bool:
            one = find_read_slice(read(), position)
            return one is not None and is_whole(one)

        return holds

    def keys_seen_before(self, ledger_slice: LedgerSlice) -> tuple[str, ...]:
        key = self._column(self.ledger.columns.match_key)
        inside = select(key).where(self._between(ledger_slice.position_start, ledger_slice.position_end), self._pairs)
        older = select(key).where(self._order < self._bound(ledger_slice.position_start), self._pairs)
        seen = older.where(key.in_(inside))
        if self.connection.dialect.name in _ALIKE_IN_OTHER_CASE:
            exact = cast(key, types.LargeBinary)
            seen = seen.where(exact.in_(inside.with_only_columns(exact)))
        return tuple(sorted({_text(one) for one in self.connection.scalars(seen)}))

    def keys_below(self, ledger_slice: LedgerSlice, *, below: int) -> tuple[str, ...]:
        start, end = ledger_slice.position_start, min(ledger_slice.position_end, below)
        if start >= end:
            return ()
        key = self._column(self.ledger.columns.match_key)
        there = select(key).where(self._between(start, end), self._pairs, key.is_not(None))
        return tuple(sorted({_text(one) for one in self.connection.scalars(there)}))

    def held_snapshot(self) -> AbstractContextManager[None]:
        return nullcontext()

    def slice_query(self, ledger_slice: LedgerSlice) -> str:
        """Return the SQL text that reads the slice, for Spark; with written_at where the contract names it."""
        written_at = self.ledger.columns.written_at
        moment = [self._column(written_at).label("written_at")] if written_at else []
        names = {name: self._source(getattr(self.ledger.columns, name)) for name in _COLUMNS}
        compared = [
            as_driver_texts(one, dialect=self.connection.dialect.name).label(name) for name, one in names.items()
        ]
        statement = select(*compared, *self._compared_columns(), *moment).where(
            self._between(ledger_slice.position_start, ledger_slice.position_end), self._pairs
        )
        dialect: Any = type(self.connection.dialect)
        plain = dialect(paramstyle="named")  # with others each % is doubled for Python's driver
        query = str(statement.compile(dialect=plain, compile_kwargs={"literal_binds": True}))
        return for_pgjdbc(query) if self.connection.dialect.name == "postgresql" else query

    def _select(self) -> Select[Any]:
        columns = self.ledger.columns
        partition, offset = columns.receipt_partition, columns.receipt_offset
        return select(
            *self._money_and_keys(),
            self._order.label("position"),
            (self._column(partition) if partition else null()).label("receipt_partition"),
            (self._column(offset) if offset else null()).label("receipt_offset"),
        ).where(self._pairs)

    def _compared_columns(self) -> list[ColumnElement[Any]]:
        compared = self.ledger.columns.compared
        columns = zip(compared.labels, compared.columns, strict=True)
        dialect = self.connection.dialect.name
        return [as_driver_texts(self._column(one), dialect=dialect).label(label) for label, one in columns]

    def _money_and_keys(self) -> list[ColumnElement[Any]]:
        return [self._source(getattr(self.ledger.columns, name)).label(name) for name in _COLUMNS]

    @cached_property
    def _table(self) -> Table:
        """The table with its columns alone: to reflect a whole one asks the server for all its keys and constraints."""
        schema, name = self._place
        try:
            columns = inspect(self.connection).get_columns(name, schema)
        except NoSuchTableError:
            raise LedgerRefused(f"{self._name}: no such table, or this user may not see it") from None
        return Table(name, MetaData(), *(Column(one["name"], one["type"]) for one in columns), schema=schema)

    @property
    def _place(self) -> tuple[str, str]:
        """Return the schema, with its catalog before it if one is named, and the table's own name."""
        *outside, name = parts_of(self.ledger.table)
        if any("." in one for one in outside):
            raise LedgerRefused(f"{self._name}: expected no dot inside the name of a schema or a catalog")
        return ".".join(outside), name

    @property
    def _name(self) -> str:
        return f"ledger table {self.ledger.table}"

    def _column(self, spelled: str) -> Column[Any]:
        name = bare(spelled)
        if name not in self._table.c:
            raise LedgerRefused(f"{self._name}: has no column {name}; it has {', '.join(self._table.c.keys())}")
        return self._table.c[name]

    def _source(self, column: str | Constant) -> ColumnElement[Any]:
        """Return a column, or the constant in its place."""
        if isinstance(column, str):
            return self._column(column)
        return literal(column.constant, String() if isinstance(column.constant, str) else Integer())

    @property
    def _order(self) -> Column[Any]:
        assert self.ledger.order_by is not None
        return self._column(self.ledger.order_by)

    @property
    def _is_timestamp(self) -> bool:
        return is_moment(self._order.type, dialect=self.connection.dialect.name)

    def _has_zone(self, column: Column[Any]) -> bool:
        return has_zone(column.type, dialect=self.connection.dialect.name)

    def _require_condition(self) -> None:
        """Refuse a condition by this database's own grammar, which no contract states."""
        where = self.ledger.where
        if where and (reason := why_no_condition(where, [self.connection.dialect.name])):
            raise LedgerRefused(f"{self._name}: the contract's where: {reason}; {EXPECTED}")

    def _replayed_until(self) -> int | None:
        """Return the moment of the newest commit that a standby of PostgreSQL shows; None of any other server."""
        if self.connection.dialect.name != "postgresql":
            return None
        moment = self.connection.exec_driver_sql(_REPLAYED_UNTIL).scalar()
        return None if moment is None else _microseconds(moment)

    def _require_order(self) -> None:
        if self.ledger.by_innodb and not getattr(self.connection.dialect, "is_mariadb", False):
            raise LedgerRefused(
                f"{self._name}: got a database of {self.connection.dialect.name} with horizon: innodb; expected "
                "MariaDB: in no other a row has the id of the transaction that wrote it"
            )
        if is_integer(self._order.type) and self._replayed_until() is not None:
            raise LedgerRefused(
                f"{self._name}: the connection leads to a standby (pg_is_in_recovery), and column "
                f"{self.ledger.order_by} is an integer, which does not say how much earlier its state is; expected "
                "the primary, or a timestamp as order_by, or kind postgres with primary_connection"
            )
        if not is_integer(self._order.type) and not self._is_timestamp:
            raise LedgerRefused(
                f"{self._name}: column {self.ledger.order_by}, which the contract names order_by: "
                f"got {self._order.type!r}; expected an integer, or a timestamp that the database keeps to the "
                "microsecond"
            )

    def _require_exact_amount(self) -> None:
        named = self.ledger.columns.amount_minor
        if not isinstance(named, str):
            return
        amount = self._column(named)
        if self.in_major and not is_exact_number(amount.type, dialect=self.connection.dialect.name):
            raise LedgerRefused(
                f"{self._name}: column {amount.name}, which the contract names amount_minor: got {amount.type!r} with "
                "amount_unit: major; expected a decimal or an integer: floating point holds no exact money"
            )

    def _is_unique(self, spelled: str) -> bool:
        column = bare(spelled)
        there, schema = inspect(self.connection), self._table.schema
        indexes = there.get_indexes(self._table.name, schema)
        unique: tuple[Sequence[str | None], ...] = (
            there.get_pk_constraint(self._table.name, schema)["constrained_columns"],
            *(one["column_names"] for one in there.get_unique_constraints(self._table.name, schema)),
            *(one["column_names"] for one in indexes if one["unique"] and not _is_partial(one)),
        )
        ends = self._row_ends  # a part of each key there, and the same in all rows that are current
        return [column] in [[one for one in columns if one not in ends] for columns in unique]

    @cached_property
    def _row_ends(self) -> Collection[str]:
        """Return the column that says when a version of a row ended, of a table in MariaDB that keeps them."""
        if not getattr(self.connection.dialect, "is_mariadb", False):
            return ()
        schema, name = self._place
        return tuple(self.connection.scalars(_ROW_END, {"schema": schema, "name": name}))

    def _is_view(self) -> bool:
        """Return whether it is a view, of which no database says that a column is unique."""
        there, schema = inspect(self.connection), self._table.schema
        return self._table.name not in there.get_table_names(schema)

    @property
    def _pairs(self) -> ColumnElement[bool]:
        where = self.ledger.where
        return literal_column(f"({where})") if where else true()  # as a Boolean it would be compared with 1

    def _between(self, start: int, end: int) -> ColumnElement[bool]:
        return and_(self._order >= self._bound(start), self._order < self._bound(end))

    def _position(self, value: Any) -> int:
        return _microseconds(value) if self._is_timestamp else int(value)

    def _bound(self, position: int) -> Any:
        """Return the value at a position. A column without a zone is in UTC, by the contract."""
        if not self._is_timestamp:
            return position
        moment = _EPOCH + position * _MICROSECOND
        if not self._has_zone(self._order):
            return moment.replace(tzinfo=None)
        if self.connection.dialect.name == "oracle":  # its literal of a moment has no place for the zone
            from sqlalchemy.dialects import oracle

            return func.from_tz(cast(moment.replace(tzinfo=None), oracle.TIMESTAMP()), "UTC")
        return moment


_Number = TypeVar("_Number", int, ColumnElement[int])


def scattered(remainder: _Number) -> _Number:
    """A position's remainder as a number without order: two rows that went and two that came have another sum of them,
    also where what they lie apart is the same. Each step has room in 64 bits.
    """
    shifted = remainder + _SHIFT
    return shifted * shifted % _REMAINDER_OF * shifted % _REMAINDER_OF


def _is_partial(index: ReflectedIndex) -> bool:
    return any(name.endswith("_where") for name in index.get("dialect_options", {}))


def _microseconds(moment: datetime) -> int:
    return ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH) // _MICROSECOND


def as_driver_texts(column: ColumnElement[Any], *, dialect: str) -> ColumnElement[Any]:
    """Return the column as Spark's driver may read it as text. SQL Server writes a uuid in capitals; Python does not,
    and so a look-up does not. Of MariaDB's own types, such as uuid, Spark takes none.

    Source: SQL Server's manual, uniqueidentifier.
    """
    if dialect in MYSQL_FAMILY and not isinstance(column.type, _KNOWN_TO_SPARK):
        return cast(column, types.CHAR())
    if dialect == "mssql" and isinstance(column.type, types.Uuid):
        return func.lower(cast(column, types.CHAR(36)))
    return column


_KNOWN_TO_SPARK = (
    types.String,
    types.Integer,
    types.Numeric,
    types.Float,
    types.LargeBinary,
    types.DateTime,
    types.Date,
)


def key_value(column_type: types.TypeEngine[Any], key: str, *, dialect: str) -> Any:
    """A key as a column of this type has it; None for one that is no value of it, and so stands in no row.

    A driver would refuse the whole look-up for such a key.
    """
    match column_type:
        case types.Integer():
            low, end = _integers(column_type, dialect)
            return number if (number := _whole_number(key)) is not None and low <= number < end else None
        case types.Numeric():
            return _whole_number(key) if "." not in key else _fraction(key)
        case types.Uuid():
            return UUID(key) if _UUID.fullmatch(key) else None
        case types.Enum():
            return key if key in column_type.enums else None
        case _:
            return None if _LONE_SURROGATE.search(key) or ("\0" in key and dialect == "postgresql") else key


_INTEGER = re.compile(r"-?[0-9]{1,38}")
_FRACTION = re.compile(r"-?[0-9]{1,38}\.[0-9]{1,38}")
_UUID = re.compile(r"[0-9a-fA-F]{8}(-?[0-9a-fA-F]{4}){3}-?[0-9a-fA-F]{12}")
_LONE_SURROGATE = re.compile(r"[\ud800-\udfff]")
"""No encoding has it, so no database does."""


def _integers(column_type: types.Integer, dialect: str) -> tuple[int, int]:
    """Half-open, what may be compared with the column. PostgreSQL's parameters have the column's own width."""
    bits = 64
    if dialect == "postgresql" and not isinstance(column_type, types.BigInteger):
        bits = 16 if isinstance(column_type, types.SmallInteger) else 32
    return (0, 2**64) if getattr(column_type, "unsigned", False) else (-(2 ** (bits - 1)), 2 ** (bits - 1))


def _whole_number(key: str) -> int | None:
    return int(key) if _INTEGER.fullmatch(key) else None


def _fraction(key: str) -> Decimal | None:
    return Decimal(key) if _FRACTION.fullmatch(key) else None


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def _said(error: DBAPIError) -> str:
    return str(error.orig).strip().splitlines()[0]
