"""PostgreSQL's transaction ids in memory: who has which, what a snapshot says of them, what a crash forgets.

The facts that every rule about slices rests on, and that a simpler model would hide:
- an id is taken with the first row, not at BEGIN; a savepoint's rows have an id of their own, above its parent's;
- a snapshot lists the ids of open transactions, and of their savepoints only what their end tells;
- its xmax is the newest id that has *ended* plus one, so open transactions may have ids at or above it;
- a rollback needs no place on disk: after a crash the ids that nothing on disk names are given out again.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from tallystick.model.cut import LedgerSnapshot

FIRST_XID = 100


@dataclass(frozen=True, kw_only=True)
class StoredRow:
    """A committed row. top_xid: the id of its whole transaction; xid: of the savepoint that wrote it, if any."""

    row_id: int
    match_key: str
    xid: int
    top_xid: int
    created_at: int


@dataclass(frozen=True)
class Snapshot:
    """pg_current_snapshot(). in_progress: open transactions, their savepoints not among them."""

    xmin: int
    xmax: int
    in_progress: frozenset[int]

    def takes_for_visible(self, xid: int) -> bool:
        """pg_visible_in_snapshot()."""
        return xid < self.xmin or (xid < self.xmax and xid not in self.in_progress)


@dataclass
class _Level:
    """A transaction, or a savepoint within it. xids: its own, if it has written, and those of what it has released."""

    xids: list[int] = field(default_factory=list)
    rows: list[StoredRow] = field(default_factory=list)
    own_xid: int | None = None


@dataclass
class _Writer:
    began_at: int
    levels: list[_Level] = field(default_factory=lambda: [_Level()])


@dataclass
class Ledger:
    """One table and its open database transactions, by name. What cannot be done now does nothing."""

    rows: dict[int, StoredRow] = field(default_factory=dict)
    writers: dict[str, _Writer] = field(default_factory=dict)
    next_xid: int = FIRST_XID
    latest_ended: int = FIRST_XID - 1
    next_xid_on_disk: int = FIRST_XID
    next_row_id: int = 1

    def insert(self, name: str, match_key: str, *, now: int) -> None:
        """Insert a row, in the transaction's innermost savepoint; begins it if need be."""
        self.begin(name, now=now)
        writer = self.writers[name]
        for level in writer.levels:  # a parent has its id before its child
            if level.own_xid is None:
                level.own_xid = self._take_xid()
                level.xids.append(level.own_xid)
        top, level = writer.levels[0], writer.levels[-1]
        assert top.own_xid is not None and level.own_xid is not None
        level.rows.append(
            StoredRow(
                row_id=self.next_row_id,
                match_key=match_key,
                xid=level.own_xid,
                top_xid=top.own_xid,
                created_at=writer.began_at,
            )
        )
        self.next_row_id += 1

    def begin(self, name: str, *, now: int) -> None:
        self.writers.setdefault(name, _Writer(began_at=now))

    def savepoint(self, name: str) -> None:
        if name in self.writers:
            self.writers[name].levels.append(_Level())

    def release(self, name: str) -> None:
        """The innermost savepoint becomes part of its parent; its id stays in progress with it."""
        if name in self.writers and len(self.writers[name].levels) > 1:
            released = self.writers[name].levels.pop()
            parent = self.writers[name].levels[-1]
            parent.xids += released.xids
            parent.rows += released.rows

    def rollback_to(self, name: str) -> None:
        """The innermost savepoint is undone: its ids have ended, while the transaction goes on."""
        if name in self.writers and len(self.writers[name].levels) > 1:
            self._end(self.writers[name].levels.pop().xids)

    def commit(self, name: str) -> None:
        while name in self.writers and len(self.writers[name].levels) > 1:
            self.release(name)
        writer = self.writers.pop(name, None)
        if writer is not None and writer.levels[0].xids:
            self.rows |= {row.row_id: row for row in writer.levels[0].rows}
            self._end(writer.levels[0].xids)
            self.flush()

    def rollback(self, name: str) -> None:
        writer = self.writers.pop(name, None)
        if writer is not None:
            self._end([xid for level in writer.levels for xid in level.xids])

    def update(self, row_id: int) -> None:
        """UPDATE a committed row, in a transaction of its own. Its columns keep their values, top_xid too."""
        if row_id in self.rows:
            self.rows[row_id] = replace(self.rows[row_id], xid=self._take_xid())
            self._end([self.rows[row_id].xid])
            self.flush()

    def flush(self) -> None:
        """All that was logged until now is on disk."""
        self.next_xid_on_disk = self.next_xid

    def crash(self) -> None:
        """Kill the server and start it again: open transactions are gone, and so is what is not on disk."""
        self.writers.clear()
        self.next_xid = self.next_xid_on_disk
        self.latest_ended = self.next_xid - 1

    def snapshot(self) -> Snapshot:
        xmax = self.latest_ended + 1
        open_xids = frozenset(self._open_xids())
        return Snapshot(min([xmax, *open_xids]), xmax, frozenset(xid for xid in open_xids if xid < xmax))

    def read_snapshot(self) -> LedgerSnapshot:
        """As the product's SQL asks: the horizon, and the next id to be given out; then flushed."""
        self.flush()
        return ledger_snapshot(self.snapshot().xmin, self.next_xid)

    def mark_above_open_transactions(self) -> int:
        """What the server's views tell of them: the ids of their savepoints are not there."""
        return max([self.snapshot().xmax, *(xid + 1 for xid in self._open_xids())])

    def _open_xids(self) -> list[int]:
        tops = (writer.levels[0].own_xid for writer in self.writers.values())
        return [xid for xid in tops if xid is not None]

    def _take_xid(self) -> int:
        self.next_xid += 1
        return self.next_xid - 1

    def _end(self, xids: list[int]) -> None:
        self.latest_ended = max([self.latest_ended, *xids])


def ledger_snapshot(xmin: int, xmax: int) -> LedgerSnapshot:
    return LedgerSnapshot(low_mark=xmin, high_mark=xmax, system_identifier="73012345", timeline=1, lsn="0/1A2B3C8")


@dataclass(frozen=True, kw_only=True)
class SliceRule:
    """How both sides are sliced. The defaults are the product's; each other value is a mistake that looks right."""

    read_snapshot: Callable[[Ledger, int], LedgerSnapshot] = lambda ledger, now: ledger.read_snapshot()
    """The bound of a cut, by ledger and clock."""
    place: Callable[[Ledger, StoredRow], int] = lambda ledger, row: row.xid
    """What of a row is held against the bounds."""
    mark: Callable[[Ledger, LedgerSnapshot], LedgerSnapshot] = lambda ledger, snapshot: snapshot
    """What a sample keeps of a snapshot."""
    by_snapshot_function: bool = False
    """Not by bounds: what the function calls visible at this cut, and did not at the one before."""
    up_to_high_watermark: bool = False
    """Not up to the LSO."""
    asks_again: bool = False
    """Whoever judges a stored cut again asks both sides, not the store."""


def _by_time(ledger: Ledger, now: int) -> LedgerSnapshot:
    return ledger_snapshot(now, now)


def _by_newest_row(ledger: Ledger, now: int) -> LedgerSnapshot:
    after = max(ledger.rows, default=0) + 1
    return ledger_snapshot(after, after)


def _unflushed(ledger: Ledger, now: int) -> LedgerSnapshot:
    on_disk = ledger.next_xid_on_disk
    snapshot = ledger.read_snapshot()
    ledger.next_xid_on_disk = on_disk
    return snapshot


def _by_newest_ended(ledger: Ledger, now: int) -> LedgerSnapshot:
    snapshot = ledger.read_snapshot()
    return replace(snapshot, low_mark=ledger.snapshot().xmax)


def _only_what_ended(ledger: Ledger, snapshot: LedgerSnapshot) -> LedgerSnapshot:
    return replace(snapshot, high_mark=ledger.snapshot().xmax)


def _only_open_transactions(ledger: Ledger, snapshot: LedgerSnapshot) -> LedgerSnapshot:
    return replace(snapshot, high_mark=ledger.mark_above_open_transactions())


def _by_age(ledger: Ledger, row: StoredRow) -> int:
    """pg_snapshot_xmax - age(xmin): an age counts from the next id, a snapshot's xmax from the newest that ended."""
    return ledger.snapshot().xmax - (ledger.next_xid - row.xid)


BY_XMIN = SliceRule()
BY_WRITTEN_XID = SliceRule(place=lambda ledger, row: row.top_xid)
BY_CREATED_AT = SliceRule(read_snapshot=_by_time, place=lambda ledger, row: row.created_at)
BY_SEQUENCE = SliceRule(read_snapshot=_by_newest_row, place=lambda ledger, row: row.row_id)
BY_AGE = SliceRule(place=_by_age)
BY_NEWEST_ENDED = SliceRule(read_snapshot=_by_newest_ended)
BY_SNAPSHOT_FUNCTION = SliceRule(by_snapshot_function=True)
MARKED_BY_ENDED_ONES = SliceRule(mark=_only_what_ended)
MARKED_BY_OPEN_ONES = SliceRule(mark=_only_open_transactions)
UNFLUSHED = SliceRule(read_snapshot=_unflushed)
UP_TO_HIGH_WATERMARK = SliceRule(up_to_high_watermark=True)
ASKS_AGAIN = SliceRule(asks_again=True)
