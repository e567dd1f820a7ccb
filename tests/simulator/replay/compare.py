"""Plays a tape on real servers, and tells where they say something else than the simulated world said."""

import io
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, cast

import psycopg
from confluent_kafka import KafkaException
from sqlalchemy import make_url

from lab.servers.broker import Broker
from lab.servers.postgres import LEDGER_DATABASE, LEDGER_READER, PostgresServer
from lab.servers.stack import LabStack
from tallystick.connections.connections import KafkaSettings, environment_variable
from tallystick.contract.contract import Contract
from tallystick.executor.progress_topic import progress_topic_name
from tallystick.model.run_result import RunResult
from tests.simulator.replay.real_ledger import RealLedger, open_ledger
from tests.simulator.replay.real_log import LogDiffers, RealLog, open_log
from tests.simulator.replay.real_world import RealWorld, real_functions
from tests.simulator.replay.record import RecordedPlay
from tests.simulator.replay.store_clock import open_told_store
from tests.simulator.replay.tape import BothSidesHold, Moment, PersonDid, WindowDue
from tests.simulator.replay.told import ToldRun, told_of_people, told_of_run
from tests.simulator.schedule.people_steps import People
from tests.simulator.schedule.product import Product
from tests.simulator.schedule.services import Services
from tests.simulator.world.world import World


class Difference(NamedTuple):
    """What the two said, and the stories up to there: of the simulated world, and of the product on real servers."""

    what: str
    simulated: str
    real: str
    story: tuple[str, ...]
    real_story: tuple[str, ...]


@dataclass(frozen=True)
class Servers:
    """What is started once. template: a migrated store that nobody connects to."""

    broker: Broker
    ledger: PostgresServer
    store: PostgresServer
    template: str
    folder: Path

    @property
    def bootstrap_servers(self) -> str:
        return self.broker.bootstrap_servers

    @property
    def ledger_reader_dsn(self) -> str:
        return self.ledger.dsn(LEDGER_READER, LEDGER_DATABASE)

    @staticmethod
    def of(stack: LabStack, template: str, folder: Path) -> "Servers":
        return Servers(
            broker=stack.broker,
            ledger=stack.ledger_server,
            store=stack.store_server,
            template=template,
            folder=folder,
        )


@dataclass
class Replayed:
    """What came of one schedule."""

    windows: int = 0
    runs: int = 0
    difference: Difference | None = None
    seconds: float = 0.0


@dataclass
class Replay:
    """One tape on real servers. judged: what the product said in this turn of the scheduler."""

    world: RealWorld
    log: RealLog
    ledger: RealLedger
    played: RecordedPlay
    judged: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        world = cast(World, self.world)
        self.product = Product(world, self._judged)
        self.people = People(Services(world), self.product)

    def _judged(self, contract: Contract, result: RunResult) -> None:
        self.judged.append(told_of_run(contract, result))

    def all(self, replayed: Replayed) -> None:
        """Up to the first difference."""
        for moment in self.played.tape.moments:
            self.world.clock.go_to(moment.at)
            try:
                simulated, real = self._one(moment, replayed)
            except (LogDiffers, KafkaException, psycopg.Error) as error:
                simulated, real = [str(moment.entry)], [f"{type(error).__name__}: {error}"]
            if simulated != real:
                replayed.difference = self._difference(moment, simulated, real)
                return

    def _one(self, moment: Moment, replayed: Replayed) -> tuple[list[Any], list[Any]]:
        entry = moment.entry
        if isinstance(entry, WindowDue):
            replayed.windows += 1
            real = self._window()
            replayed.runs += sum(isinstance(one, ToldRun) for one in real)
            return entry.told, real
        if isinstance(entry, PersonDid):
            return entry.told, [self._person(entry)]
        if isinstance(entry, BothSidesHold):
            return [("events", *entry.events), ("rows", *entry.rows)], [
                ("events", *self.log.events()),
                ("rows", *self.ledger.rows()),
            ]
        assert self.log.do(entry) or self.ledger.do(entry), entry
        return [], []

    def _window(self) -> list[Any]:
        self.judged = []
        failed, stopped = len(self.product.failed), len(self.product.stopped)
        self.product.window()
        return [
            *self.judged,
            ("failed", tuple(self.product.failed[failed:]), tuple(self.product.stopped[stopped:])),
            ("alerts", tuple(sorted(self.product.receiver.open))),
            ("clock", self.world.clock.now.isoformat()),
        ]

    def _person(self, entry: PersonDid) -> Any:
        people = self.people
        failed, stopped = len(self.product.failed), len(self.product.stopped)
        acted, plans = len(people.acted), len(people.plans)
        people.do(entry.name, entry.a, entry.b)
        return told_of_people(people, failed=failed, stopped=stopped, acted=acted, plans=plans)

    def _difference(self, moment: Moment, simulated: list[Any], real: list[Any]) -> Difference:
        lines = self.played.tape.moments
        upper = next((one.lines for one in lines if one.at > moment.at), len(self.played.tape.story))
        what, one, other = _first_difference(simulated, real)
        return Difference(
            what=f"{moment.at:%d %H:%M:%S} {type(moment.entry).__name__}: {what}",
            simulated=one,
            real=other,
            story=tuple(self.played.tape.story[:upper]),
            real_story=tuple(self.world.told),
        )


def _first_difference(simulated: list[Any], real: list[Any]) -> tuple[str, str, str]:
    for one, other in zip(simulated, real, strict=False):
        if one == other:
            continue
        if isinstance(one, ToldRun) and isinstance(other, ToldRun):
            names = [name for name in ToldRun._fields if getattr(one, name) != getattr(other, name)]
            a, b = (", ".join(f"{name}={getattr(run, name)}" for name in names) for run in (one, other))
            return f"{one.contract}/{one.cut}: {', '.join(names)}", a, b
        return str(one[0]), str(one), str(other)
    return "one says more", str(simulated[len(real) :]), str(real[len(simulated) :])


def replay(played: RecordedPlay, servers: Servers, name: str) -> Replayed:
    """Play a recorded schedule again. name: what its transactional ids and prepared transactions begin with."""
    replayed, began = Replayed(), time.monotonic()
    with _opened(played, servers, name) as one:
        one.all(replayed)
    replayed.seconds = time.monotonic() - began
    return replayed


@contextmanager
def _opened(played: RecordedPlay, servers: Servers, name: str) -> Iterator[Replay]:
    config, contract = played.world.config, played.world.contract
    beside = [progress_topic_name(one.name) for one in played.world.contracts]
    kafka = KafkaSettings({"bootstrap.servers": servers.bootstrap_servers})
    environment = {
        environment_variable(contract.kafka.connection): f'{{"bootstrap.servers": "{servers.bootstrap_servers}"}}',
        environment_variable(contract.ledger.connection): _ledger_address(contract, servers),
        "TALLYSTICK_ARTIFACTS_DIR": str(servers.folder / name),
    }
    with (
        open_told_store(servers.store, servers.template) as (store, clock),
        open_log(servers.broker, contract.topics, config.partitions, prefix=name, beside=beside) as log,
        open_ledger(servers.ledger, contract.ledger.table, name, key_is_unique=config.key_is_unique) as ledger,
    ):
        address = environment[environment_variable(contract.ledger.connection)]
        world = RealWorld(contracts=played.world.contracts, store=store, clock=clock, kafka=kafka, ledger_dsn=address)
        with real_functions(world, environment), redirect_stdout(io.StringIO()):
            yield Replay(world, log, ledger, played)


def _ledger_address(contract: Contract, servers: Servers) -> str:
    if contract.ledger.kind != "jdbc":
        return servers.ledger_reader_dsn
    url = make_url(servers.ledger_reader_dsn).set(drivername="postgresql+psycopg")
    return url.render_as_string(hide_password=False)
