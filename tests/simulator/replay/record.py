"""Plays a schedule in the simulated world and records what real servers have to be told to do the same.

A schedule whose steps no single broker and no single PostgreSQL does at will is left out, and says why.
"""

from dataclasses import dataclass, field, replace
from typing import Any

from tallystick.contract.contract import Contract
from tallystick.kafka_cluster.state import BrokerSettings
from tallystick.kafka_log.batch_header import Marker
from tallystick.model.offsets import TopicPartition
from tallystick.model.run_result import RunResult
from tests.simulator.replay.tape import (
    BothSidesHold,
    Crashed,
    Ended,
    Led,
    LogEnds,
    LogsStand,
    Opened,
    PersonDid,
    Published,
    Recreated,
    Retained,
    Rewritten,
    RowChanged,
    RowIn,
    RowOut,
    Said,
    SetAside,
    SwitchedOver,
    Tape,
    WindowDue,
)
from tests.simulator.replay.told import told_of_people, told_of_run
from tests.simulator.schedule.people_steps import BY_HAND, People
from tests.simulator.schedule.play import Do, Play, Schedule
from tests.simulator.schedule.product import Product
from tests.simulator.world.broker import Broker, Producer
from tests.simulator.world.clock import Clock
from tests.simulator.world.config import Config
from tests.simulator.world.database import Database, Row
from tests.simulator.world.world import World

BROKER_SETTINGS = BrokerSettings(
    transaction_max_timeout_ms=3_600_000,
    transactional_id_expiration_ms=604_800_000,
    producer_id_expiration_ms=86_400_000,
    transaction_version=2,
)
"""Of the lab's one broker, which the simulated one has here too: each run judges its cluster's settings."""

SERVICES = ("app", "carrier")

KILLED = "the run is killed at one of its questions"
BETWEEN_QUESTIONS = "a step between two questions of a run"
IN_FILES = "a ledger in files, which is no server"
OF_INPUTS = "inputs on a topic, whose writers the tape does not know yet"
POSTING = "a contract that posts, whose table the replay does not have yet"


def left_out_at_once(schedule: Schedule) -> str | None:
    """Why a schedule cannot be replayed, where its books or its steps say so."""
    if schedule.config.slice_by == "parquet":
        return IN_FILES
    if schedule.config.slice_by == "topic":
        return OF_INPUTS
    if schedule.config.posts:
        return POSTING
    for step in schedule.steps:
        if step.name == "kill":
            return KILLED
        if step.at:
            return BETWEEN_QUESTIONS
    return None


@dataclass
class RecordingBroker(Broker):
    """What services do to it goes on the tape; what the product's executor does, it does again."""

    tape: Tape = field(default_factory=lambda: Tape(Clock()))
    topics: tuple[str, ...] = ()

    def init(self, name: str, *, now_ms: int) -> Producer:
        if name.startswith(SERVICES):
            self.tape.add(Opened(name))
        return super().init(name, now_ms=now_ms)

    def speaks_version_2(self, name: str) -> bool:
        """The replay's services write with librdkafka, which does not."""
        return False

    def write(self, producer: Producer, place: TopicPartition, records: Any, *, now_ms: int) -> int:
        (record,) = records
        offset = super().write(producer, place, [record], now_ms=now_ms)
        if producer.name.startswith(SERVICES):
            self.tape.add(Published(producer.name, place, record, offset))
        return offset

    def write_plain(self, place: TopicPartition, records: Any) -> int:
        (record,) = records
        offset = super().write_plain(place, [record])
        self.tape.add(Published(None, place, record, offset))
        return offset

    def decide(self, producer: Producer, marker: Marker) -> None:
        if producer.name.startswith(SERVICES) and producer.wrote and producer.decided is None:
            self.tape.add(Ended(producer.name, marker is Marker.COMMIT))
        super().decide(producer, marker)

    def mark_one(self, producer: Producer, *, now_ms: int) -> None:
        was_due = producer.decided is not None
        super().mark_one(producer, now_ms=now_ms)
        if was_due and producer.decided is None and producer.name.startswith(SERVICES):
            self.tape.add(self.stand())

    def create_topic(self, topic: str, partitions: int) -> None:
        if any(place.topic == topic for place in self.partitions):
            self.tape.add(Recreated(topic))
        super().create_topic(topic, partitions)

    def stand(self) -> LogsStand:
        logs = self.logs_of(self.topics)
        return LogsStand({log.place: LogEnds(log.log_start, log.lso, log.end) for log in logs})


@dataclass
class RecordingDatabase(Database):
    """What is done to it goes on the tape, where it does anything."""

    tape: Tape = field(default_factory=lambda: Tape(Clock()))

    def insert(self, name: str, row: Row) -> int:
        row_id = super().insert(name, row)
        self.tape.add(RowIn(name, replace(row, row_id=row_id)))
        return row_id

    def update(self, name: str, row_id: int, **columns: object) -> bool:
        done = super().update(name, row_id, **columns)
        if done:
            self.tape.add(RowChanged(name, row_id, columns))
        return done

    def delete(self, name: str, row_id: int) -> bool:
        done = super().delete(name, row_id)
        if done:
            self.tape.add(RowOut(name, row_id))
        return done

    def savepoint(self, name: str) -> None:
        if name in self.writers and not self.writers[name].prepared:
            self.tape.add(Said(name, "savepoint"))
        super().savepoint(name)

    def release(self, name: str) -> None:
        if name in self.writers and len(self.writers[name].levels) > 1:
            self.tape.add(Said(name, "release"))
        super().release(name)

    def prepare(self, name: str) -> None:
        began = name in self.writers and not self.writers[name].prepared
        super().prepare(name)
        if began:
            self.tape.add(Said(name, "prepare"))

    def set_aside(self, name: str) -> str:
        aside = super().set_aside(name)
        self.tape.add(SetAside(name, aside))
        return aside

    def commit(self, name: str) -> None:
        began = name in self.writers
        super().commit(name)
        if began:
            self.tape.add(Said(name, "commit"))

    def rollback(self, name: str) -> None:
        if name in self.writers:
            self.tape.add(Said(name, "rollback"))
        super().rollback(name)

    def rewrite(self) -> None:
        if not self.writers and self.rows:
            self.tape.add(Rewritten())
        super().rewrite()

    def crash(self) -> None:
        self.tape.add(Crashed())
        super().crash()

    def switch_over(self) -> None:
        self.tape.add(SwitchedOver())
        super().switch_over()


class NotReplayable(Exception):
    """The schedule did what nobody can make one broker and one PostgreSQL do at will."""


@dataclass
class RecordedPlay(Play):
    """Raises NotReplayable as soon as that is known."""

    tape: Tape = field(init=False)
    newest: WindowDue | PersonDid | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.product = RecordedProduct(self.world, self._judged, tape=self.tape, play=self)
        self.people = RecordedPeople(self.services, self.product, tape=self.tape)

    def quiet_down(self) -> None:
        super().quiet_down()
        world, broker = self.world, self.world.broker
        events = [
            (fact.money.match_key, fact.money.amount_minor, fact.by == "repair")
            for fact in world.truth.events
            if fact.visible and fact.by != "poison" and world.truth.stands_on_log(fact, broker)
        ]
        rows = [(row.row_id, row.match_key, row.amount_minor) for row in world.database.rows.values()]
        self.tape.add(BothSidesHold(sorted(events), sorted(rows)))

    def make_world(self, config: Config, contracts: tuple[Contract, ...]) -> World:
        clock = Clock()
        self.tape = Tape(clock)
        broker = RecordingBroker(tape=self.tape, topics=contracts[0].topics, min_insync=1)
        database = RecordingDatabase(tape=self.tape)
        world = World(
            config=config, contracts=contracts, clock=clock, broker=broker, database=database, told=self.tape.story
        )
        world.admin.replicas, world.admin.retention_ms = (1,), -1
        world.admin.broker_settings = BROKER_SETTINGS
        return world

    def _judged(self, contract: Contract, result: RunResult) -> None:
        super()._judged(contract, result)
        if isinstance(self.newest, WindowDue):
            self.newest.told.append(told_of_run(contract, result))

    def do(self, step: Do) -> None:
        before, batches = len(self.world.truth.losses), self._batches()
        super().do(step)
        if step.name == "lead":
            self.tape.add(Led())
        for _, kind, place, offset in self.world.truth.losses[before:]:
            if kind == "retained" and place is not None:
                self.tape.add(Retained(place, offset))
        if step.name == "end_on_one_partition" and self._batches() > batches:
            raise NotReplayable("a marker on one partition alone")
        if why := self._not_at_will():
            raise NotReplayable(why)

    def _batches(self) -> int:
        return sum(len(log.batches) for log in self.world.broker.partitions.values())

    def _not_at_will(self) -> str | None:
        broker = self.world.broker
        services = [one for name, one in broker.producers.items() if name.startswith(SERVICES)]
        if self.product.host_ahead:
            return "a host's clock that is off"
        if self.world.admin.down:
            return "the cluster does not answer"
        if any(one.forgotten for one in services):
            return "a coordinator forgets a transaction"
        if any(one.wrote and one.decided is not None for one in services):
            return "markers that come one at a time"
        if any(log.replicated is not None for log in broker.partitions.values()):
            return "replicas that fall behind"
        if any(kind == "truncated" for _, kind, *_ in self.world.truth.losses):
            return "a log is cut back"
        if self.world.admin.compacted_topics:
            return "a topic that compacts"
        if any(kind == "restored" for _, kind, *_ in self.world.truth.losses):
            return "a backup that is put back"
        return None


@dataclass
class RecordedProduct(Product):
    """Puts each turn of the scheduler on the tape, and what came of it."""

    tape: Tape = field(kw_only=True)
    play: RecordedPlay = field(kw_only=True)

    def window(self) -> None:
        due = WindowDue([])
        self.play.newest = due
        self.tape.add(due)
        failed, stopped = len(self.failed), len(self.stopped)
        super().window()
        due.told.append(("failed", tuple(self.failed[failed:]), tuple(self.stopped[stopped:])))
        due.told.append(("alerts", tuple(sorted(self.receiver.open))))
        due.told.append(("clock", self.world.clock.now.isoformat()))


@dataclass
class RecordedPeople(People):
    """Puts each turn of a person on the tape, and what came of it. What somebody repairs by hand is on it already."""

    tape: Tape = field(kw_only=True)

    def do(self, name: str, a: int, b: int) -> None:
        did = PersonDid(name, a, b, [])
        if name not in BY_HAND:
            self.tape.add(did)
        failed, stopped, acted, plans = (len(one) for one in self._so_far())
        super().do(name, a, b)
        did.told.append(told_of_people(self, failed=failed, stopped=stopped, acted=acted, plans=plans))

    def _so_far(self) -> tuple[list[Any], ...]:
        return self.product.failed, self.product.stopped, self.acted, self.plans
