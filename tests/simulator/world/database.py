"""A PostgreSQL in memory: transaction ids, savepoints, prepared transactions, row versions, crashes and switch-overs.

The facts that every rule about slices rests on are those of tests/unit/ledger_model.py: an id is taken with the first
row, a savepoint has one of its own, a snapshot's xmin is the oldest that is open, and a crash gives away again what
nothing on disk names. Here rows also change: an update makes a new version under the id of who updates.
"""

from collections.abc import Iterable
from copy import copy, deepcopy
from dataclasses import dataclass, field, replace
from uuid import UUID

from tallystick.model.cut import LedgerSnapshot

FIRST_XID = 100


@dataclass(frozen=True, slots=True)
class Row:
    """One row version. xid: of who wrote this version. written_xid: the owner's column, set by its default. copy_of: in
    a file that was written twice, the id that this one says it has.
    """

    row_id: int
    match_key: str
    transaction_key: str
    leg: str
    amount_minor: int
    currency: str
    written_ms: int
    xid: int = 0
    written_xid: int | None = None
    reverses: str = ""
    action_id: str = ""
    receipt_partition: int | None = None
    receipt_offset: int | None = None
    copy_of: int | None = None

    @property
    def said_id(self) -> int:
        return self.row_id if self.copy_of is None else self.copy_of


@dataclass
class Level:
    """A transaction, or a savepoint within it. xids: its own, and those of what it has released.

    changes: row id to the version that it leaves, or None for a row that it deletes.
    """

    xids: list[int] = field(default_factory=list)
    own_xid: int | None = None
    changes: dict[int, Row | None] = field(default_factory=dict)


@dataclass
class Writer:
    """An open transaction. prepared: PREPARE TRANSACTION was said, so it outlives its session and a crash."""

    levels: list[Level] = field(default_factory=lambda: [Level()])
    prepared: bool = False


@dataclass
class Database:
    """One table and its open transactions, by name. What cannot be done now does nothing."""

    rows: dict[int, Row] = field(default_factory=dict)
    writers: dict[str, Writer] = field(default_factory=dict)
    next_xid: int = FIRST_XID
    latest_ended: int = FIRST_XID - 1
    next_xid_on_disk: int = FIRST_XID
    next_row_id: int = 1
    timeline: int = 1
    system_identifier: str = "73012345"
    log_bytes: int = 1 << 20
    actions: dict[UUID, str] = field(default_factory=dict)
    """The table of action ids, with the plan's hash of each."""
    claiming: dict[UUID, str] = field(default_factory=dict)
    """Action ids that an open transaction has inserted, with its session: whoever inserts the same waits for it."""

    def insert(self, name: str, row: Row) -> int:
        """A row in the transaction's innermost savepoint; begins it if need be. Gives the row's id."""
        level = self._level_with_id(name)
        row_id, self.next_row_id = self.next_row_id, self.next_row_id + 1
        top = self.writers[name].levels[0].own_xid
        written = top if row.written_xid is None else row.written_xid
        level.changes[row_id] = replace(row, row_id=row_id, xid=level.own_xid, written_xid=written)
        return row_id

    def update(self, name: str, row_id: int, **columns: object) -> bool:
        """UPDATE a committed row that nobody else has locked. Its other columns keep their values."""
        row = self.rows.get(row_id)
        if row is None or self._is_locked(row_id):
            return False
        level = self._level_with_id(name)
        level.changes[row_id] = replace(row, xid=level.own_xid, **columns)
        return True

    def delete(self, name: str, row_id: int) -> bool:
        if row_id not in self.rows or self._is_locked(row_id):
            return False
        self._level_with_id(name).changes[row_id] = None
        return True

    def pending_of(self, name: str) -> Iterable[Row]:
        """Rows that a transaction will leave when it commits."""
        writer = self.writers.get(name)
        return [row for level in writer.levels for row in level.changes.values() if row] if writer else []

    def savepoint(self, name: str) -> None:
        if name in self.writers and not self.writers[name].prepared:
            self.writers[name].levels.append(Level())

    def release(self, name: str) -> None:
        writer = self.writers.get(name)
        if writer is not None and len(writer.levels) > 1:
            released = writer.levels.pop()
            parent = writer.levels[-1]
            parent.xids += released.xids
            parent.changes |= released.changes

    def rollback_to(self, name: str) -> None:
        writer = self.writers.get(name)
        if writer is not None and len(writer.levels) > 1:
            self._end(writer.levels.pop().xids)

    def prepare(self, name: str) -> None:
        """First phase of a two-phase commit: on disk from here on."""
        writer = self.writers.get(name)
        if writer is not None and any(level.xids for level in writer.levels):
            while len(writer.levels) > 1:
                self.release(name)
            writer.prepared = True
            self.flush()

    def commit(self, name: str) -> None:
        while name in self.writers and len(self.writers[name].levels) > 1:
            self.release(name)
        writer = self.writers.pop(name, None)
        if writer is None or not writer.levels[0].xids:
            return
        for row_id, row in writer.levels[0].changes.items():
            if row is None:
                self.rows.pop(row_id, None)
            else:
                self.rows[row_id] = row
        self._end(writer.levels[0].xids)
        self.flush()

    def rollback(self, name: str) -> None:
        writer = self.writers.pop(name, None)
        if writer is not None:
            self._end([xid for level in writer.levels for xid in level.xids])

    def rewrite(self) -> None:
        """ALTER TABLE ... TYPE, pg_repack, a restore of the table: each row gets the id of who does it."""
        if self.writers or not self.rows:
            return
        xid = self._take_xid()
        self.rows = {row_id: replace(row, xid=xid) for row_id, row in self.rows.items()}
        self._end([xid])
        self.flush()

    def flush(self) -> None:
        """All that was logged until now is on disk."""
        self.next_xid_on_disk = self.next_xid
        self.log_bytes += 64

    def crash(self) -> None:
        """Kill the server and start it again: open transactions are gone, unless prepared, and so is what is not on
        disk.
        """
        self.writers = {name: writer for name, writer in self.writers.items() if writer.prepared}
        self.next_xid = self.next_xid_on_disk
        self.latest_ended = self.next_xid - 1

    def switch_over(self) -> None:
        """A standby that had all of the log becomes the primary: another timeline, and no id is given out twice."""
        self.writers = {name: writer for name, writer in self.writers.items() if writer.prepared}
        self.flush()
        self.timeline += 1
        self.latest_ended = self.next_xid - 1

    def copy_now(self) -> "Database":
        """What a backup holds."""
        kept = copy(self)
        kept.rows, kept.actions, kept.claiming = dict(self.rows), dict(self.actions), {}
        kept.writers = deepcopy({name: writer for name, writer in self.writers.items() if writer.prepared})
        return kept

    def restore(self, backup: "Database", *, a_disk: bool = False) -> None:
        """The server as it was then: what came since is gone, and its ids come again. On another timeline, unless a
        disk was put back.
        """
        timeline = self.timeline + (not a_disk)
        self.__dict__.update(backup.copy_now().__dict__)
        self.timeline = timeline
        self.latest_ended = self.next_xid - 1
        self.flush()

    @property
    def horizon(self) -> int:
        return min([self.latest_ended + 1, *self._open_xids()])

    def read_snapshot(self) -> LedgerSnapshot:
        """As the product's SQL asks: the horizon, and the next id to be given out; then flushed."""
        self.flush()
        return LedgerSnapshot(
            low_mark=self.horizon,
            high_mark=self.next_xid,
            system_identifier=self.system_identifier,
            timeline=self.timeline,
            lsn=f"{self.log_bytes >> 32:X}/{self.log_bytes & 0xFFFFFFFF:X}",
        )

    def snapshot(self) -> str:
        """What pg_current_snapshot() says: ids of savepoints are not in it."""
        return f"{self.horizon}:{self.latest_ended + 1}:{','.join(map(str, sorted(self._open_xids())))}"

    def holder_of(self, xid: int) -> tuple[str, Writer] | None:
        """Who has this id as that of its whole transaction."""
        for name, writer in self.writers.items():
            if writer.levels[0].own_xid == xid:
                return name, writer
        return None

    def _open_xids(self) -> list[int]:
        tops = (writer.levels[0].own_xid for writer in self.writers.values())
        return [xid for xid in tops if xid is not None]

    def set_aside(self, name: str) -> str:
        """What is prepared belongs to no session any more: who goes on under the name begins another transaction."""
        aside = f"{name}, prepared as {self.writers[name].levels[0].own_xid}"
        self.writers[aside] = self.writers.pop(name)
        return aside

    def _level_with_id(self, name: str) -> Level:
        if name in self.writers and self.writers[name].prepared:
            self.set_aside(name)
        writer = self.writers.setdefault(name, Writer())
        for level in writer.levels:  # a parent has its id before its child
            if level.own_xid is None:
                level.own_xid = self._take_xid()
                level.xids.append(level.own_xid)
        return writer.levels[-1]

    def _is_locked(self, row_id: int) -> bool:
        return any(row_id in level.changes for writer in self.writers.values() for level in writer.levels)

    def _take_xid(self) -> int:
        self.next_xid += 1
        return self.next_xid - 1

    def _end(self, xids: list[int]) -> None:
        self.latest_ended = max([self.latest_ended, *xids])
