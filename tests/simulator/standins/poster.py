"""A session of the role that posts into the ledger, as `post_to_ledger` uses psycopg: its statements, answered by the
database in memory. One that is new here raises, so that nothing is passed over.

A row and the action's id stand together or not at all. The process may be killed before the commit and behind it.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Any
from uuid import UUID

from psycopg import sql

from tallystick.compensation.plan import CurrentRow
from tallystick.contract.ledger import LedgerSection
from tallystick.ledger.protocol import LedgerUnreachable
from tests.simulator.standins import executor
from tests.simulator.world.database import Row

_INSERT = re.compile(r"INSERT INTO \S+ \(([^)]*)\) (?:VALUES|SELECT (.*) FROM) ")
_FIELDS = {
    "event_id": "match_key",
    "payment_id": "transaction_key",
    "leg": "leg",
    "amount_minor": "amount_minor",
    "currency": "currency",
    "action_id": "action_id",
    "reverses": "reverses",
}
"""Columns of the table, by the names of the world's rows."""


class PosterConnection:
    """isolation_level: set by whoever opens it, and asked by nobody here."""

    isolation_level: Any = None
    _number = count(1)

    def __init__(self, world: Any) -> None:
        self.world = world
        self.name = f"{executor.POSTER}{next(self._number)}"
        self.actions: dict[UUID, str] = {}
        self.inside = False

    @contextmanager
    def transaction(self, *, force_rollback: bool = False) -> Iterator[None]:
        """The outermost one; a savepoint within it only reads."""
        if self.inside:
            yield
            return
        self.inside = True
        try:
            yield
            if not force_rollback:
                self.world.point.reached("poster.commit")
        except BaseException:  # also of a process that is killed: its session is gone
            force_rollback = True
            raise
        finally:
            self.inside = False
            self._end(commit=not force_rollback)
        if not force_rollback:
            self.world.point.reached("poster.commit answered")

    def _end(self, *, commit: bool) -> None:
        database = self.world.database
        (database.commit if commit else database.rollback)(self.name)
        if commit:
            database.actions |= self.actions
            self.world.look()
        database.claiming = {one: name for one, name in database.claiming.items() if name != self.name}
        self.actions = {}

    def execute(self, statement: str | sql.Composable, values: Sequence[Any] = ()) -> "Answer":
        text = statement if isinstance(statement, str) else statement.as_string(None)
        for begins, answer in self._answers().items():
            if begins in text:
                return answer(text, values)
        raise AssertionError(f"no answer to: {text}")

    def _answers(self) -> Mapping[str, Callable[[str, Sequence[Any]], "Answer"]]:
        """By what only this statement says."""
        return {
            "SET ": lambda text, values: Answer(),
            "pg_advisory_xact_lock": lambda text, values: Answer(),
            "ON CONFLICT DO NOTHING": self._claim,
            "SELECT plan_hash FROM": lambda text, values: Answer(self._posted([values[0]])),
            "SELECT action_id, plan_hash FROM": lambda text, values: Answer(self._posted(values[0], whole=True)),
            "INSERT INTO": self._insert,
        }

    def _claim(self, text: str, values: Sequence[Any]) -> "Answer":
        """Nobody goes on while this session waits for another one, so that its patience ends."""
        action_id, plan_hash = values
        database = self.world.database
        if action_id in database.actions:
            return Answer()
        if database.claiming.setdefault(action_id, self.name) != self.name:
            raise LedgerUnreachable("ledger: canceling statement due to lock timeout")
        self.actions[action_id] = plan_hash
        return Answer(rowcount=1)

    def _posted(self, action_ids: Collection[UUID], *, whole: bool = False) -> list[tuple[Any, ...]]:
        known = self.world.database.actions
        return [(one, known[one]) if whole else (known[one],) for one in action_ids if one in known]

    def _insert(self, text: str, values: Sequence[Any]) -> "Answer":
        said = _INSERT.match(text)
        assert said is not None, text
        columns = [one.strip('"') for one in said[1].split(", ")]
        given = dict(zip(columns, said[2].split(", ") if said[2] else values, strict=True))
        if said[2]:
            match_key, row_id = values
            given = self._copied(given, self.world.database.rows[int(row_id)], match_key)
        fields = {_FIELDS[name]: value for name, value in given.items() if name in _FIELDS}
        row = Row(row_id=0, written_ms=self.world.clock.now_ms, **fields)
        self.world.truth.written_by[self.world.database.insert(self.name, row)] = "repair"
        self.world.tell(
            f"the executor inserts a row of {row.match_key}: {row.amount_minor}, taking back {row.reverses}"
        )
        return Answer(rowcount=1)

    def _copied(self, given: Mapping[str, str], row: Row, match_key: str) -> dict[str, Any]:
        """What SELECT gives of the one row: columns of it, one with the other sign, and constants."""
        assert row.match_key == match_key
        known = {name: getattr(row, field) for name, field in _FIELDS.items()} | {"entry_id": str(row.row_id)}
        found: dict[str, Any] = {}
        for name, value in given.items():
            column = value.lstrip("-").strip('"')
            if value.startswith("'"):
                found[name] = value.strip("'")
            elif column in known:
                found[name] = -known[column] if value.startswith("-") else known[column]
        return found


class Answer(list[tuple[Any, ...]]):
    """A cursor's rows."""

    def __init__(self, rows: Sequence[tuple[Any, ...]] = (), *, rowcount: int = 0) -> None:
        super().__init__(rows)
        self.rowcount = rowcount

    def fetchone(self) -> tuple[Any, ...] | None:
        return self[0] if self else None


@contextmanager
def open_ledger(dsn: Any, *, may_write: bool = False) -> Iterator[PosterConnection]:
    dsn.point.reached("poster.open")
    yield PosterConnection(dsn)


def read_database_identity(dsn: Any) -> str:
    return str(dsn.database.system_identifier)


def read_source_rows(
    connection: PosterConnection, ledger: LedgerSection, match_keys: Collection[str]
) -> dict[str, tuple[CurrentRow, ...]]:
    """What the transaction sees: committed rows, and its own."""
    connection.world.point.reached("poster.read_rows")
    database = connection.world.database
    own = {row.row_id: row for row in database.pending_of(connection.name)}
    return executor.current_rows([*(database.rows | own).values()], match_keys)
