"""Plays a schedule: step after step, each of which does nothing where it cannot be done."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from tallystick.contract.contract import Contract
from tallystick.kafka_log.batch_header import Marker
from tallystick.model.item_reason import read_reason
from tallystick.model.run_result import RunResult
from tests.simulator.oracle.clauses import Oracle, Violation
from tests.simulator.schedule.file_steps import FILE_STEPS
from tests.simulator.schedule.ledger_steps import LEDGER_STEPS
from tests.simulator.schedule.log_steps import LOG_STEPS, let_compact
from tests.simulator.schedule.money_steps import MONEY_STEPS, Step
from tests.simulator.schedule.people_steps import PEOPLE_STEPS, People
from tests.simulator.schedule.posting_steps import POSTING_STEPS
from tests.simulator.schedule.product import Product
from tests.simulator.schedule.services import WHO, Services
from tests.simulator.standins.seams import CurrentWorld
from tests.simulator.world.config import Config
from tests.simulator.world.contracts import OVERLAP, contract_of
from tests.simulator.world.world import World

STEPS: dict[str, Step] = {**MONEY_STEPS, **LEDGER_STEPS, **FILE_STEPS, **POSTING_STEPS, **LOG_STEPS}


QUIET_WINDOWS = 4


class Do(NamedTuple):
    """One step. a, b: numbers that it picks by. at: the question of the next run at which it happens; 0: now."""

    name: str
    a: int = 0
    b: int = 0
    at: int = 0


class Schedule(NamedTuple):
    """What is played. Leaving steps out gives a schedule too."""

    config: Config
    steps: tuple[Do, ...]


@dataclass
class Play:
    """A schedule while it is played."""

    schedule: Schedule
    world: World = field(init=False)
    services: Services = field(init=False)
    product: Product = field(init=False)
    people: People = field(init=False)
    oracle: Oracle = field(init=False)
    reached: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        config = self.schedule.config
        contracts = tuple(
            contract_of(config.direction, config.slice_by, config.legs, name, config.posts)
            for name in ("books", "audit")[: config.contracts]
        )
        self.world = self.make_world(config, contracts)
        self.services = Services(self.world)
        self.oracle = Oracle(self.world)
        self.product = Product(self.world, self._judged)
        self.people = People(self.services, self.product)
        CurrentWorld.begins(self.world)

    def make_world(self, config: Config, contracts: tuple[Contract, ...]) -> World:
        return World(config=config, contracts=contracts)

    def all(self) -> list[Violation]:
        """From the first step to the last quiet window."""
        for step in self.schedule.steps:
            self.do(step)
        self.quiet_down()
        self.oracle.over(self.product)
        self.oracle.read_again(self.people.reread_differently)
        self.oracle.repaired(self.people.made_worse)
        self.reached["doubt cut_closed"] = self.world.store.closed_unread()
        self.reached.update(f"refusal {one.partition(' at ')[0]}" for one in self.product.failed)
        self.reached.update(f"action {one.fate}" for done in self.people.acted for one in done.outcomes)
        self.reached.update(f"step {step.name}" for step in self.schedule.steps)
        return self.oracle.violations

    def forget(self) -> None:
        """Let go of all parts, which know each other: what is free at once, nobody has to look for."""
        self.__dict__.clear()
        CurrentWorld.it = None

    def quiet_down(self) -> None:
        """Everything ends that is open, whoever is late comes, and a few windows are judged without a fault."""
        world, services = self.world, self.services
        self.product.pending, self.product.kill_at = [], None
        world.admin.down = False
        world.tell("all is over: what is open ends, and whoever is late comes")
        LOG_STEPS["catch_up"](services, 0, 0)
        for side in (True, False):
            for who in range(WHO):
                services.end(side, who, commit=True) if side else services.end_carrying(who, commit=True)
        for name in list(world.database.writers):
            world.database.commit(name)
        _end_what_hangs(world)
        world.look()
        for _ in range(len(services.due())):
            services.carry(0, 0, 0)
            services.end_carrying(0, commit=True)
        for _ in range(QUIET_WINDOWS):
            if world.config.slice_by == "jdbc":
                self._fill_the_overlap()
            self.product.window()
            if world.config.carrier_mode != "at_most":
                for _ in range(len(services.due())):
                    services.carry(0, 0, 0)
                    services.end_carrying(0, commit=True)

    def _fill_the_overlap(self) -> None:
        """By a column that grows, the newest rows wait until others stand behind them."""
        for _ in range(OVERLAP + 1):
            MONEY_STEPS["trade"](self.services, 0, 0)

    @property
    def windows(self) -> int:
        return len(self.product.seen)

    def _judged(self, contract: Contract, result: RunResult) -> None:
        why = [one.evidence["reason"] for one in result.breaks if "reason" in one.evidence]  # an item says: its break
        for name in (
            *(f"break {one.break_class}" for one in result.breaks),
            *(f"doubt {one.doubt}" for one in result.doubts),
            *(f"notice {one.notice}" for one in result.notices),
            *(f"reason {one.reason.code.name}" for one in result.items),
            *(f"reason {read_reason(one).code.name}" for one in why),
            f"verdict {result.verdict}",
        ):
            self.reached[name] += 1
        self.oracle.judged(contract, result, made_at=self.product.made_at[contract.name, result.cut_n])

    def do(self, step: Do) -> None:
        if step.name == "window":
            self.product.window()
        elif step.name == "kill":
            self.product.kill_at = 1 + step.a
        elif step.name in PEOPLE_STEPS and self.product.kill_at is not None and step.a % 2:
            self.world.point.begin([], self.product.kill_at)  # it is the person's process that is killed
            self.product.kill_at = None
            self._now(step)
            self.world.point.end()
        elif step.at:
            if step.name == "compact":
                let_compact(self.services)  # the cleaner comes seconds after a topic was given its policy
            self.product.pending.append((step.at, partial(self._now, step)))
        else:
            self._now(step)

    def _now(self, step: Do) -> None:
        if not step.at:
            self.world.clock.go(5)
        if step.name in PEOPLE_STEPS:
            self.people.do(step.name, step.a, step.b)
        else:
            STEPS[step.name](self.services, step.a, step.b)


def _end_what_hangs(world: World) -> None:
    """An administrator aborts what nobody else would ever end."""
    for log in world.broker.partitions.values():
        for producer_id in list(log.open_since):
            world.tell(f"an administrator aborts what producer {producer_id} left open on {log.place}")
            log.end_transaction(producer_id, Marker.ABORT, epoch=99, timestamp_ms=world.clock.now_ms)


def steps_of(*named: str | tuple[object, ...]) -> Sequence[Do]:
    """Steps as a test writes them."""
    return [Do(one) if isinstance(one, str) else Do(*one) for one in named]  # type: ignore[arg-type]
