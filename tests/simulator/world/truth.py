"""What is true: each copy of money that was ever written on either side, and what became of it.

Kept by the world's own steps. Nothing here is computed by the product, nor read from what it stored.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from tallystick.model.offsets import OffsetRange, TopicPartition
from tests.simulator.world.broker import Broker, PartitionLog
from tests.simulator.world.database import Database, Row

VISIBLE = ("committed", "plain")


@dataclass(frozen=True, slots=True)
class Money:
    """What one leg of one payment is."""

    match_key: str
    transaction_key: str
    leg: str
    amount_minor: int
    currency: str


@dataclass(slots=True)
class EventFact:
    """One record. outcome: open, committed, aborted, plain; or lost, where the log was cut back below it.

    by: who wrote it: service, repair, hand. reverses: item id of the copy that it takes back; negated: it takes one.
    taken_back_at: since when another event takes it back. compacted: the log's cleaner has taken it. reopened: its
    marker was cut away once. visible_at: since when a reader may see it; first_visible_at: when one could first, before
    its marker was cut away. readable: is it an event?
    """

    money: Money
    place: TopicPartition
    topic_id: str
    offset: int
    written_at: datetime
    outcome: str
    leader_epoch: int = 0
    by: str = "service"
    visible_at: datetime | None = None
    first_visible_at: datetime | None = None
    readable: bool = True
    negated: bool = False
    once_visible: bool = False
    reopened: bool = False
    gone_before_books: bool = False
    action_id: str = ""
    reverses: str = ""
    taken_back_at: datetime | None = None
    compacted: bool = False
    origin: str = field(init=False)
    """What a carrier knows it by."""

    def __post_init__(self) -> None:
        self.origin = f"{self.place} {self.topic_id} {self.offset}"

    @property
    def visible(self) -> bool:
        return self.outcome in VISIBLE

    def seen(self, at: datetime) -> None:
        """A reader may see it from now on."""
        self.visible_at, self.once_visible = at, True
        self.first_visible_at = self.first_visible_at or at


@dataclass(slots=True)
class RowFact:
    """One row of the ledger. gone_at: since when it does not stand any more. touched: when its version changed."""

    money: Money
    row_id: int
    visible_at: datetime
    by: str = "service"
    gone_at: datetime | None = None
    touched: list[datetime] = field(default_factory=list)
    changed: list[tuple[datetime, Money]] = field(default_factory=list)
    xid: int = 0
    written_xid: int | None = None
    odd_id: bool = False
    action_id: str = ""
    reverses: int | None = None
    """The row that it takes back. One that takes back what was right is a row too many like any other."""
    nets: bool = False
    """Does it take that one back, with its money?"""
    taken_back_at: datetime | None = None
    origin: str = field(init=False)

    def __post_init__(self) -> None:
        self.origin = f"row {self.row_id}"

    @property
    def stands(self) -> bool:
        return self.gone_at is None


@dataclass
class Truth:
    """events, rows: all that ever were, in the order in which they were written. happened: what a story tells."""

    events: list[EventFact] = field(default_factory=list)
    rows: dict[int, RowFact] = field(default_factory=dict)
    open_events: list[EventFact] = field(default_factory=list)
    written_by: dict[int, str] = field(default_factory=dict)
    written_off: set[tuple[str, str]] = field(default_factory=set)
    """Contract and match key of what a person has given up."""
    given_up: dict[UUID | None, datetime] = field(default_factory=dict)
    """When, by id of its break."""
    reversals: list[RowFact] = field(default_factory=list)
    """Rows that take others back, of any time."""
    losses: list[tuple[datetime, str, TopicPartition | None, int]] = field(default_factory=list)
    """When, what kind of thing, where, up to, from or at which offset: retained, truncated, recreated, compacted,
    restored."""
    baseline_at: datetime | None = None
    gone_unread: bool = False
    """Has retention or compaction taken, since the books began, what stood on the log then, be it a marker?"""
    _stood: dict[TopicPartition, OffsetRange] = field(default_factory=dict)
    """What stood on the log when the books began."""
    _events_of: dict[str, list[EventFact]] = field(default_factory=dict)
    _rows_of: dict[str, dict[int, None]] = field(default_factory=dict)
    """By match key: readable events, and ids of rows."""

    def books_begin(self, broker: Broker, now: datetime) -> None:
        """The baseline of the contract: what is gone by now, nobody will ever know of."""
        self.baseline_at = now
        self._stood = {
            place: OffsetRange(
                topic=place.topic, partition=place.partition, kafka_offset_start=log.log_start, kafka_offset_end=log.end
            )
            for place, log in broker.partitions.items()
        }
        for fact in self.events:
            fact.gone_before_books = not self.stands_on_log(fact, broker)

    def retained(self, broker: Broker) -> None:
        """Retention has taken something."""
        logs = broker.partitions
        self.gone_unread |= any(
            len(stood) and place in logs and logs[place].log_start > stood.kafka_offset_start
            for place, stood in self._stood.items()
        )

    def compacted(self, log: PartitionLog, offsets: Collection[int], now: datetime) -> None:
        """The log's cleaner has taken these."""
        gone = set(offsets)
        self.losses += [(now, "compacted", log.place, offset) for offset in offsets]
        if (stood := self._stood.get(log.place)) is not None:
            self.gone_unread |= any(stood.kafka_offset_start <= offset < stood.kafka_offset_end for offset in gone)
        for fact in self.events:
            fact.compacted |= fact.place == log.place and fact.topic_id == log.topic_id and fact.offset in gone

    def stands_on_log(self, fact: EventFact, broker: Broker) -> bool:
        log = broker.partitions.get(fact.place)
        on_it = log is not None and log.topic_id == fact.topic_id and log.log_start <= fact.offset < log.end
        return on_it and not fact.compacted

    def event_written(self, fact: EventFact) -> None:
        self.events.append(fact)
        if fact.readable:
            self._events_of.setdefault(fact.money.match_key, []).append(fact)
        if fact.outcome == "open":
            self.open_events.append(fact)
        elif fact.visible:
            fact.seen(fact.written_at)

    def look_at_log(self, broker: Broker, now: datetime) -> None:
        """Which open events have ended since."""
        still = []
        for fact in self.open_events:
            log = broker.partitions.get(fact.place)
            if log is None or log.topic_id != fact.topic_id or fact.offset >= log.end:
                fact.outcome = "lost"
                continue
            if fact.offset < log.log_start:
                continue
            fact.outcome = log.outcome_of(fact.offset)
            if fact.outcome == "open":
                still.append(fact)
            elif fact.visible:
                fact.seen(now)
                self._taken_back(fact)
        self.open_events = still

    def _taken_back(self, reversal: EventFact) -> None:
        for fact in self.events if reversal.reverses else ():
            at = f"topic:{fact.place.topic}:{fact.place.partition}:{fact.offset}"
            if at == reversal.reverses and fact.topic_id == reversal.topic_id:
                fact.taken_back_at = fact.taken_back_at or reversal.visible_at

    def log_cut(self, place: TopicPartition, topic_id: str, end: int) -> None:
        """An unclean election took what lies from there on."""
        for fact in self.events:
            if fact.place == place and fact.topic_id == topic_id and fact.offset >= end and fact.outcome != "lost":
                fact.outcome = "lost"
        self.open_events = [fact for fact in self.open_events if fact.outcome == "open"]

    def reopened(self, place: TopicPartition, open_since: Mapping[int, int], broker: Broker) -> None:
        """Markers were cut away: what they had ended is open again."""
        log = broker.partitions[place]
        for fact in self.events:
            if fact.place == place and self.stands_on_log(fact, broker):
                now = log.outcome_of(fact.offset)
                if now == "open" and fact.outcome not in ("open", "lost"):  # another record may stand where it stood
                    fact.outcome, fact.visible_at, fact.reopened = "open", None, True
                    self.open_events.append(fact)

    def look_at_ledger(self, database: Database, now: datetime) -> None:
        """What rows came, changed and went."""
        for row_id, row in database.rows.items():
            known = self.rows.get(row_id)
            if known is None or (known.gone_at is not None and known.written_xid != row.written_xid):
                fact = self.rows[row_id] = _fact_of(row, now, self.written_by.get(row_id, "service"))
                if fact.reverses is not None:
                    self.reversals.append(fact)
                self._rows_of.setdefault(row.match_key, {})[row_id] = None
                continue
            known.gone_at = None
            if known.xid != row.xid:
                known.xid = row.xid
                known.touched.append(now)
                if money_of(row) != known.money:
                    known.changed.append((now, known.money))
                    known.money = money_of(row)
        for row_id, known in self.rows.items():
            if known.gone_at is None and row_id not in database.rows:
                known.gone_at = now
        self._look_at_what_is_taken_back(now)

    def restored(self, database: Database, now: datetime) -> dict[str, RowFact]:
        """The ledger is as a backup held it. Rows of since are gone, and others may come under their ids: they are kept
        under ids that nobody gives out. Returns them by the name that each had.
        """
        gone: dict[str, RowFact] = {}
        for row_id in [one for one in self.rows if one >= database.next_row_id]:
            fact, kept_as = self.rows.pop(row_id), min([0, *self.rows]) - 1
            fact.gone_at = fact.gone_at or now
            gone[fact.origin] = fact
            fact.origin = f"{fact.origin} of before {now:%d %H:%M:%S}"
            self.rows[kept_as] = fact
            self.written_by.pop(row_id, None)
            for ids in self._rows_of.values():
                if row_id in ids:
                    del ids[row_id]
                    ids[kept_as] = None
        self.losses.append((now, "restored", None, 0))
        return gone

    def _look_at_what_is_taken_back(self, now: datetime) -> None:
        """A row that takes one back may go, or that one may say something else by now: then it stands as it is."""
        if not self.reversals:
            return
        for one in self.reversals:
            row = self.rows.get(one.reverses or 0)
            one.nets = one.stands and row is not None and abs(row.money.amount_minor) == abs(one.money.amount_minor)
        taken = {one.reverses for one in self.reversals if one.nets}
        for row_id in {one.reverses for one in self.reversals if one.reverses in self.rows}:
            row = self.rows[row_id]
            row.taken_back_at = (row.taken_back_at or now) if row_id in taken else None

    def events_of(self, match_key: str) -> list[EventFact]:
        return self._events_of.get(match_key, [])

    def rows_of(self, match_key: str) -> list[RowFact]:
        rows = (self.rows[row_id] for row_id in self._rows_of.get(match_key, ()))
        return [row for row in rows if row.money.match_key == match_key]

    def match_keys(self) -> Iterator[str]:
        """Every match key that was ever written on either side."""
        yield from {**self._events_of, **self._rows_of}


def money_of(row: Row) -> Money:
    return Money(row.match_key, row.transaction_key, row.leg, row.amount_minor, row.currency)


def _fact_of(row: Row, now: datetime, by: str) -> RowFact:
    return RowFact(
        money=money_of(row),
        row_id=row.row_id,
        visible_at=now,
        by=by,
        xid=row.xid,
        written_xid=row.written_xid,
        action_id=row.action_id,
        reverses=int(row.reverses) if row.reverses and by != "idle reversal" else None,
    )
