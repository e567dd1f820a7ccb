"""All of it together: clock, broker, ledger, store, and the truth about what happened in them."""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

from tallystick.contract.contract import Contract
from tallystick.kafka_log.fetch import Fetch
from tallystick.ledger.input_topics import InputTopics
from tallystick.model.offsets import TopicPartition
from tests.simulator.standins import key_index
from tests.simulator.standins.cluster import WorldAdmin, fetcher
from tests.simulator.standins.ledger import WorldJdbcLedger, WorldLedger
from tests.simulator.standins.parquet_ledger import WorldParquetLedger
from tests.simulator.standins.run_functions import (
    earlier_rows_before,
    ledger_rows_by_slice,
    ledger_sum_of_slice,
    read_ledger_slices,
)
from tests.simulator.standins.store import Store
from tests.simulator.world.batches import Record
from tests.simulator.world.broker import Broker, Producer
from tests.simulator.world.clock import Clock
from tests.simulator.world.config import Config
from tests.simulator.world.database import Database, Row
from tests.simulator.world.event_json import value_of
from tests.simulator.world.folder import Folder
from tests.simulator.world.input_log import InputLog
from tests.simulator.world.interleaving import Interleaving
from tests.simulator.world.truth import EventFact, Money, Truth


@dataclass(kw_only=True)
class World:
    """One world of one schedule. contracts: all that reconcile these books."""

    config: Config
    contracts: tuple[Contract, ...]
    clock: Clock = field(default_factory=Clock)
    point: Interleaving = field(default_factory=Interleaving)
    broker: Broker = field(default_factory=Broker)
    database: Database = field(default_factory=Database)
    truth: Truth = field(default_factory=Truth)
    told: list[str] = field(default_factory=list)
    """The story, a line for each thing that happened."""
    ledger_down: bool = False
    has_canary_keys: bool = False

    def __post_init__(self) -> None:
        key_index.FOLDERS.by_path.clear()
        self.store = Store(clock=self.clock, point=self.point)
        self.admin = WorldAdmin(broker=self.broker, point=self.point)
        self.fetch: Fetch = fetcher(self.admin)
        if self.config.slice_by == "parquet":
            self.database = Folder(clock=self.clock)
        if self.contract.input_topics:
            (topic,) = self.contract.input_topics
            self.database = InputLog(
                broker=self.broker,
                clock=self.clock,
                topic=topic,
                partitions=self.config.partitions,
                transactional=self.config.producer_mode == "transactional",
            )
        for topic in self.topics:
            self.broker.create_topic(topic, self.config.partitions)

    @property
    def contract(self) -> Contract:
        return self.contracts[0]

    @property
    def topics(self) -> tuple[str, ...]:
        """All that a contract reads, its inputs last."""
        return (*self.contract.topics, *self.contract.input_topics)

    @property
    def kafka(self) -> "World":
        """As an executor's connections have it."""
        return self

    @property
    def ledger_dsn(self) -> "World":
        return self

    @property
    def poster_dsn(self) -> "World":
        return self

    def for_confluent(self) -> dict[str, Any]:
        """As a connection's settings are given to a producer."""
        return {"world": self}

    def tell(self, line: str) -> None:
        now = self.clock.now  # by hand, since a format of moments takes longer than most of what is told of
        self.told.append(f"{now.day:02} {now.hour:02}:{now.minute:02}:{now.second:02}  {line}")

    def open_ledger(
        self, engine: Any, contract: Contract
    ) -> AbstractContextManager[WorldLedger | WorldParquetLedger | InputTopics]:
        """Nothing has to be closed behind it."""
        self.point.reached("ledger.open")
        name = contract.name
        if contract.input_topics:
            return nullcontext(InputTopics(admin=self.admin, topics=contract.input_topics))
        if isinstance(self.database, Folder):
            files = WorldParquetLedger(
                address="/ledger",
                ledger=contract.ledger,
                stored_slices=lambda: read_ledger_slices(self.store, name),
                now=lambda: self.clock.now,
                database=self.database,
                point=self.point,
            )
            return nullcontext(files)
        kind = WorldJdbcLedger if contract.ledger.kind == "jdbc" else WorldLedger
        ledger = kind(
            database=self.database,
            ledger=contract.ledger,
            key_is_unique=self.config.key_is_unique,
            point=self.point,
            read_before=lambda n: ledger_rows_by_slice(self.store, name, n),
            counted_before=lambda n: earlier_rows_before(self.store, name, n),
            sum_before=lambda read: ledger_sum_of_slice(self.store, name, read),
            scattered_before=lambda read: ledger_sum_of_slice(self.store, name, read, prefix="scattered_"),
        )
        return nullcontext(ledger)

    def place(self, leg: str, number: int) -> TopicPartition:
        return TopicPartition(topic=self.contract.legs[leg], partition=number % self.config.partitions)

    def publish(
        self, producer: Producer | None, place: TopicPartition, money: Money, *, by: str, session: str, **odd: Any
    ) -> EventFact:
        """An event, in the producer's transaction or outside of any."""
        value = odd.get("value") or value_of(money)
        headers = [("session", session.encode()), *odd.get("headers", ())]
        record = Record(_record_key(money), value, self.clock.now_ms, headers)
        if producer is None:
            offset = self.broker.write_plain(place, [record])
        else:
            offset = self.broker.write(producer, place, [record], now_ms=self.clock.now_ms)
        fact = EventFact(
            money=money,
            place=place,
            topic_id=self.broker.partitions[place].topic_id,
            leader_epoch=self.broker.partitions[place].leader_epoch,
            offset=offset,
            written_at=self.clock.now,
            outcome="plain" if producer is None else "open",
            by=by,
            readable=odd.get("readable", bool(money.transaction_key)),
        )
        self.truth.event_written(fact)
        return fact

    def post(self, writer: str, money: Money, *, by: str, written_xid: int | None = None) -> int:
        """A row, in a transaction of the ledger."""
        row = Row(
            row_id=0,
            match_key=money.match_key,
            transaction_key=money.transaction_key,
            leg=money.leg,
            amount_minor=money.amount_minor,
            currency=money.currency,
            written_ms=self.clock.now_ms,
            written_xid=written_xid,
        )
        row_id = self.database.insert(writer, row)
        self.truth.written_by[row_id] = by
        if isinstance(self.database, InputLog):
            self.look()  # outside of a transaction an input stands at once
        return row_id

    def look(self) -> None:
        """Let the truth see what has become of both sides."""
        self.truth.look_at_log(self.broker, self.clock.now)
        if isinstance(self.database, InputLog):
            self.database.refresh()
        self.truth.look_at_ledger(self.database, self.clock.now)


def _record_key(money: Money) -> bytes:
    """Its payment, or the account of several payments: of these a topic that compacts keeps the newest event."""
    payment = money.transaction_key.encode()
    by_account, account = divmod(crc32(payment) % (2 * _ACCOUNTS), _ACCOUNTS)
    return b"account-%d" % account if by_account else payment


_ACCOUNTS = 2
