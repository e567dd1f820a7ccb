"""The model's store does what the product's own does on PostgreSQL, call by call along ways through the model."""

import random
import uuid
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Engine

from lab.servers.postgres import STORE_OWNER, STORE_ROLE, PostgresServer
from tallystick.compensation.plan import PlanStale
from tallystick.store.engine import connect_store, migrate, open_store
from tallystick.store.plans.plan_store import PROGRESS_END, PROGRESS_FROM, PROGRESS_TOPIC_ID, ActionState

from .calls import Call, Outcome, outcomes_of
from .others import _may_be_written_off, startable, steps_of_others
from .product import Product
from .real_store import RealStore
from .scene import Scene
from .world import DEATH, Action, Left, Slot, World, first_world

WAYS, STEPS, LEAST = 14, 150, 2
"""So often at least each call is asked of both stores, else this has shown nothing of it."""
_ON_WITH_THE_CALLS, _A_START = 0.9, 0.6
MAY_HAPPEN = Left(
    starts=6, strikes=3, originals=1, runs=3, retentions=1, write_offs=1, reopenings=1, remakes=1, switches=2
)


@pytest.fixture(scope="module")
def template(store_server: PostgresServer) -> str:
    name = "model_template"
    with store_server.connect() as admin:
        admin.execute(f"create database {name} owner {STORE_OWNER}")
    engine = connect_store(store_server.dsn(STORE_OWNER, name))
    migrate(engine, grant_to=STORE_ROLE)
    engine.dispose()
    return name


@pytest.fixture
def new_store(store_server: PostgresServer, template: str) -> Callable[[], Engine]:
    def make() -> Engine:
        name = f"model_{uuid.uuid4().hex}"
        with store_server.connect() as admin:
            admin.execute(f"create database {name} template {template} owner {STORE_OWNER}")
        return open_store(store_server.dsn(STORE_ROLE, name))

    return make


class Walk:
    """One way through the model, the same with each seed, and the store beside it."""

    def __init__(self, store: Engine, seed: int) -> None:
        self.scene = Scene(items=2)
        self.product, self.dice = Product(self.scene), random.Random(seed)
        some = {name: n for name, n in MAY_HAPPEN._asdict().items() if name == "starts" or self.dice.random() < 0.4}
        self.world, self.real = first_world(self.scene, Left(**some)), RealStore(store, self.scene)
        self.taken: Counter[str] = Counter()

    def step(self) -> bool:
        """Take one step that may happen; False where none may."""
        running = [number for number, slot in enumerate(self.world.slots, start=1) if slot]
        if running and self.dice.random() < _ON_WITH_THE_CALLS:
            self._call(self.dice.choice(running))
            return True
        starts = list(startable(self.world)) if None in self.world.slots else []
        others = list(steps_of_others(self.world))
        if starts and (not others or self.dice.random() < _A_START):
            self._start(self.dice.choice(starts))
        elif others:
            self._other(self.dice.choice(others))
        return bool(running or starts or others)

    def _start(self, plan: int) -> None:
        number = self.world.slots.index(None) + 1
        self.world = self.world.spend(starts=1).with_slot(number, Slot(self.product.first(plan)))
        self.real.begin(number)

    def _other(self, one: tuple[str, World]) -> None:
        step, after = one
        self.real.step_of_others(step, self.world, after)
        self.world = after
        self.taken[step.partition(":")[0]] += 1

    def _call(self, number: int) -> None:
        slot = self.world.slots[number - 1]
        assert slot is not None
        call = self.product.nodes[slot.node].call
        assert call is not None
        ways = outcomes_of(self.world, number, call)
        strikes = [one for one in ways if one.how] if self.world.left.strikes else []
        came = self.dice.choice(strikes) if strikes and self.dice.random() < 0.1 else ways[0]
        if not came.idle:
            self._same(call, self.real.call(number, call), came)
            self.taken[call.name] += 1
        after = came.world.spend(strikes=1) if came.how else came.world
        node = None if came.raises == DEATH else self.product.after(slot.node, came.told, came.raises)
        if node is None or self.product.nodes[node].end is not None:
            self.world = after.without(number)
        else:
            stands = after.slots[number - 1]
            assert stands is not None
            self.world = after.with_slot(number, stands._replace(node=node))

    def _same(self, call: Call, real: Any, came: Outcome) -> None:
        name, told = call.name, came.told
        if name == "claim_actions" and told is not None:
            _, begun, gone = told
            told = begun, tuple(n for n in gone if n not in call.arguments[-1])  # why it was stopped comes first
        elif name == "claim_actions" and came.raises == PlanStale.__name__:
            told = came.raises
        elif name == "open_actions":
            told = {self.scene.action_ids[n]: (one.state, self.scene.plans[one.plan].plan_id) for n, one in told}
        if real is not None and not (came.raises and told is None):
            assert real == told, name

    def compare(self) -> None:
        """All that a later call may ask."""
        store, stored = self.world.store, self.real.actions()
        assert self.real.broken() == tuple(n for n, was in enumerate(store.breaks) if was == "broken")
        for n, action in enumerate(store.actions):
            found = stored.get(self.scene.action_ids[n])
            assert (found is None) is (action is None)
            if action is not None and found is not None:
                void = action.void and {PROGRESS_TOPIC_ID: str(action.void[0]), "before": action.void[1]}
                assert (found.state, found.plan_id) == (action.state, self.scene.plans[action.plan].plan_id)
                assert (found.reopened, found.void_progress) == (action.reopened, void)
                assert _places(found.outcome, action) == _places_of(action)
        for number, slot in enumerate(self.world.slots, start=1):
            if slot is not None:
                held = [n for n, one in enumerate(store.actions) if one and one.executor == number]
                held = [n for n in held if (one := store.actions[n]) and one.state is ActionState.EXECUTING]
                assert self.real.held(number) == tuple(held)

    def try_what_is_refused(self) -> None:
        """A break that the model lets nobody give up is one that the store lets nobody give up."""
        store = self.world.store
        for n, was in enumerate(store.breaks):
            if was != "broken" or store.open_cut >= 0 or not _may_be_written_off(self.world, n):
                assert not self.real.write_off(n)


def _places(outcome: Any, action: Action) -> tuple[Any, ...]:
    names = {
        ActionState.EXECUTING: (PROGRESS_TOPIC_ID, PROGRESS_FROM),
        ActionState.WAITING: (PROGRESS_TOPIC_ID, PROGRESS_END),
    }
    return tuple(outcome.get(name) for name in names.get(action.state, ()))


def _places_of(action: Action) -> tuple[Any, ...]:
    match action.state:
        case ActionState.EXECUTING:
            return str(action.made), action.starts_at
        case ActionState.WAITING:
            return (str(action.seen[0]), action.seen[1]) if action.seen else (None, None)
        case _:
            return ()


def test_the_store_of_the_model_is_the_products(new_store: Callable[[], Engine]) -> None:
    taken: Counter[str] = Counter()
    for seed in range(WAYS):
        walk = Walk(new_store(), seed)
        take(walk)
        taken += walk.taken
    asked = set(RealStore.CALLS)
    assert {name: taken[name] for name in asked if taken[name] < LEAST} == {}


def take(walk: Walk) -> None:
    """Hold the two stores against each other behind each step."""
    with walk.product.over_walls():
        for _ in range(STEPS):
            if not walk.step():
                break
            walk.compare()
        walk.try_what_is_refused()
