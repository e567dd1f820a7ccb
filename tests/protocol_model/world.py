"""What stands in the model's world: a broker's two topics, the store, and the starts that run. Nothing is changed in
place: a step gives another world.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from tallystick.store.plans.plan_store import ActionState

from .scene import FIRST_CUT, Scene

NOBODY, DEATH = 0, "death"
OPEN, COMMITTED, ABORTED = "open", "committed", "aborted"
OURS, WRITER = "ours", "writer"


class Record(NamedTuple):
    """One offset of a log. of: the event that it is of, by its number; action: whether it is a repair's.

    who: whose transaction it is in while that is open. key, value, headers: as they were produced; of an event that
    its own producer wrote, they follow from `of`.
    """

    state: str
    of: int = -1
    action: bool = False
    who: str = ""
    key: bytes = b""
    value: bytes = b""
    headers: tuple[tuple[str, bytes], ...] = ()


GONE = Record(ABORTED)
"""Nobody reads what an aborted record was."""


class Partition(NamedTuple):
    """The log of a topic. made: how often the topic was made anew."""

    records: tuple[Record, ...] = ()
    log_start: int = 0
    made: int = 0

    @property
    def lso(self) -> int:
        return next((n for n, record in enumerate(self.records) if record.state == OPEN), len(self.records))

    def visible(self, start: int, end: int) -> Iterator[tuple[int, Record]]:
        """Committed records inside, with their offsets, that retention has left."""
        for n in range(max(start, self.log_start), min(end, len(self.records))):
            if self.records[n].state == COMMITTED:
                yield n, self.records[n]

    def ended(self, who: str, state: str) -> "Partition":
        """With this one's transaction ended."""
        if not any(one.who == who for one in self.records):
            return self
        done = tuple(
            one if one.who != who else GONE if state == ABORTED else one._replace(state=state, who="")
            for one in self.records
        )
        return self._replace(records=done)


class Action(NamedTuple):
    """A row of compensation_action. executor: the slot whose start claimed it last, if that still runs.

    aged: 2 recorded since the newest cut was marked; 1 before the mark of a cut without a verdict; 0 before the newest
    verdict's. seen: how far the start had read that says that a person has to look.
    """

    state: ActionState
    plan: int
    executor: int = NOBODY
    made: int = -1
    starts_at: int = -1
    reopened: int = 0
    void: tuple[int, int] | None = None
    seen: tuple[int, int] | None = None
    aged: int = 2


class Store(NamedTuple):
    """breaks: broken, cleared or written_off. judged: where the newest verdict's cut ends on the topic.

    newest: the newest cut with a verdict; lost_at: the newest that had lost offsets, or -1. open_cut: where a cut
    without a verdict ends, or -1. behind: of each action, by plan, where the topic ended before the newest attempt.
    """

    actions: tuple[Action | None, ...]
    breaks: tuple[str, ...]
    judged: int = 0
    newest: int = FIRST_CUT
    lost_at: int = -1
    open_cut: int = -1
    behind: tuple[tuple[tuple[int, int], ...], ...] = ()
    stopped: bool = False

    def changed(self, n: int, action: Action | None) -> "Store":
        return self._replace(actions=_put(self.actions, n, action))


class Slot(NamedTuple):
    """A running start: where it stands. looked: events that stood when it last looked; over: breaks that were over once
    the broker had all its records.
    """

    node: int
    looked: int = 0
    over: int = 0


class Left(NamedTuple):
    """How often each thing may still happen."""

    starts: int = 0
    strikes: int = 0
    originals: int = 0
    runs: int = 0
    retentions: int = 0
    write_offs: int = 0
    reopenings: int = 0
    remakes: int = 0
    switches: int = 0


class World(NamedTuple):
    """holder: slot and number of the publisher that has the transactional id; (0, 0): nobody who is alive."""

    events: Partition
    progress: Partition
    holder: tuple[int, int]
    store: Store
    slots: tuple[Slot | None, Slot | None]
    left: Left

    def paid(self, n: int) -> int:
        """How many repairs of this event were ever committed, whether the log still has them or not."""
        return sum(one.state == COMMITTED and one.action and one.of == n for one in self.events.records)

    def original(self, n: int, end: int | None = None, *, states: tuple[str, ...] = (COMMITTED,)) -> bool:
        """Does the event's own record stand in one of these states, below this offset?"""
        return any(one.state in states and not one.action and one.of == n for one in self.events.records[:end])

    def with_slot(self, number: int, slot: Slot | None) -> "World":
        return self._replace(slots=_put(self.slots, number - 1, slot))

    def without(self, number: int) -> "World":
        """This start is over: nothing of what it knew is left, and its word in the store is nobody's."""
        actions = tuple(
            one._replace(executor=NOBODY) if one and one.executor == number else one for one in self.store.actions
        )
        holder = (NOBODY, 0) if self.holder[0] == number else self.holder
        return self.with_slot(number, None)._replace(store=self.store._replace(actions=actions), holder=holder)

    def normal(self) -> "World":
        """The same for all worlds that go on alike: what can matter no more is forgotten, and slots have no names."""
        left, store = self.left, self.store
        if left.originals and all(map(self.original, range(len(store.breaks)))):
            left = left._replace(originals=0)
        if "broken" not in store.breaks:
            left = left._replace(write_offs=0, reopenings=0)
        if not left.write_offs and any(one and one.aged for one in store.actions):
            store = store._replace(actions=tuple(one and one._replace(aged=0) for one in store.actions))
        holder, slots = self.holder, self.slots
        if _order(slots[1]) < _order(slots[0]):
            slots, other = (slots[1], slots[0]), (NOBODY, 2, 1)
            holder = (other[holder[0]], holder[1])
            renamed = tuple(one and one._replace(executor=other[one.executor]) for one in store.actions)
            store = store._replace(actions=renamed)
        return World(self.events, self.progress, holder, store, slots, left)

    def spend(self, **what: int) -> "World":
        return self._replace(left=self.left._replace(**{one: getattr(self.left, one) - n for one, n in what.items()}))


def _order(slot: Slot | None) -> tuple[int, ...]:
    return (-1,) if slot is None else slot


def first_world(scene: Scene, left: Left) -> World:
    store = Store(actions=(None,) * scene.items, breaks=("broken",) * scene.items, behind=((),) * scene.items)
    return World(Partition(), Partition(), (NOBODY, 0), store, (None, None), left)


def _put(values: tuple[Any, ...], n: int, value: Any) -> tuple[Any, ...]:
    return (*values[:n], value, *values[n + 1 :])


def aborted(world: World, who: str) -> World:
    return world._replace(events=world.events.ended(who, ABORTED), progress=world.progress.ended(who, ABORTED))
