"""Every state that can be reached, breadth first: each once, and the shortest way to the first that is wrong."""

import re
import struct
import time
from array import array
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from .calls import Call, is_inert, outcomes_of
from .others import startable, steps_of_others
from .product import Product
from .rules import is_settled, reaches_the_limit, wrong_commit, wrong_end, wrong_in
from .world import DEATH, OURS, Left, Slot, World, aborted, first_world

_STARTS_UNTIL_SETTLED = 3
_BY_EXECUTOR = re.compile(r"executor (\d): (.*)")


@dataclass(frozen=True)
class Violation:
    """What is wrong, and the steps that lead to it."""

    wrong: str
    steps: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join([*(f"{n:3}. {step}" for n, step in enumerate(self.steps, start=1)), f"     => {self.wrong}"])


@dataclass
class Explored:
    """limit_reached: steps that make the second payment that the protocol cannot prevent. calls: steps by their name.
    ends: how starts ended.
    """

    states: int = 0
    transitions: int = 0
    depth: int = 0
    seconds: float = 0.0
    nodes: int = 0
    limit_reached: int = 0
    violation: Violation | None = None
    calls: Counter[str] = field(default_factory=Counter)
    ends: Counter[str] = field(default_factory=Counter)
    settled: Counter[str] = field(default_factory=Counter)
    finished: bool = False


class Packed:
    """Worlds as a few bytes each: parts that many worlds share are kept once."""

    _NUMBERS = struct.Struct("=11I")

    def __init__(self) -> None:
        self._parts: list[Any] = []
        self._numbers: dict[Any, int] = {}

    def pack(self, world: World) -> bytes:
        parts = (world.events, world.progress, world.store, world.left)
        slots = [(0, 0) if slot is None else (slot.looked + 1, slot.over) for slot in world.slots]
        nodes = [0 if slot is None else slot.node for slot in world.slots]
        pairs = [number for pair in slots for number in pair]
        return self._NUMBERS.pack(*map(self._number, parts), *nodes, *pairs, world.holder[0] << 16 | world.holder[1])

    def unpack(self, packed: bytes) -> World:
        events, progress, store, left, *rest = self._NUMBERS.unpack(packed)
        nodes, looked, over, holder = rest[:2], rest[2:6:2], rest[3:6:2], rest[6]
        one, two = (
            Slot(node, seen - 1, ended) if seen else None for node, seen, ended in zip(nodes, looked, over, strict=True)
        )
        known = self._parts
        return World(
            known[events], known[progress], (holder >> 16, holder & 0xFFFF), known[store], (one, two), known[left]
        )

    def _number(self, part: Any) -> int:
        number = self._numbers.setdefault(part, len(self._parts))
        if number == len(self._parts):
            self._parts.append(part)
        return number


class Exploration:
    """states_max: stop there, and say that it is not finished; None: to the end. tell: called at each depth, with the
    states so far and those that are to be looked at.

    reduced: leave out what cannot lead to anything new. What nothing can change any more is done before all else. And
    a start that dies, or gets no answer, before a call dies right behind the last one that changed anything: what it
    has read since nobody sees.
    """

    def __init__(self, product: Product, left: Left, *, states_max: int | None = None, reduced: bool = True) -> None:
        self.product, self.states_max, self.reduced = product, states_max, reduced
        self.tell: Callable[[int, int, int], object] = lambda depth, states, ahead: None
        self.first = first_world(product.scene, left)
        self.found = Explored()
        self._labels: dict[str, int] = {}
        self._came_from, self._came_by = array("q"), array("l")
        self._settles: dict[Any, str] = {}
        self._packed, self._seen = Packed(), set[bytes]()

    def run(self) -> Explored:
        """Explore to the end, or to the first state that is wrong."""
        with self.product.over_walls():
            return self.run_inside()

    def run_inside(self) -> Explored:
        """The product is over its walls already."""
        began, packed, seen = time.monotonic(), self._packed, self._seen
        seen.add(packed.pack(self.first))
        level = [(self._note(-1, "begin"), packed.pack(self.first))]
        while level and self.found.violation is None and not self._is_enough(len(seen)):
            self.found.depth += 1
            self.tell(self.found.depth, len(seen), len(level))
            ahead: list[tuple[int, bytes]] = []
            for at, before in level:
                for step, then, wrong in self.steps(packed.unpack(before)):
                    self.found.transitions += 1
                    after = packed.pack(world := then.normal())
                    if after in seen and not wrong:
                        continue
                    number = self._note(at, step, swapped=world.slots != then.slots)
                    if wrong := wrong or next(wrong_in(world), "") or self._why_not_settling(world):
                        self.found.violation = Violation(wrong, self._way_to(number))
                        break
                    seen.add(after)
                    ahead.append((number, after))
                if self.found.violation:
                    break
            level = ahead
        self.found.finished = not level and self.found.violation is None
        self.found.states, self.found.seconds = len(seen), time.monotonic() - began
        self.found.nodes = len(self.product.nodes)
        return self.found

    def worlds(self) -> Iterator[World]:
        """All that were reached."""
        return map(self._packed.unpack, self._seen)

    def _is_enough(self, states: int) -> bool:
        return self.states_max is not None and states >= self.states_max

    def steps(self, world: World) -> Iterator[tuple[str, World, str]]:
        """Each with its name, and what is wrong with it in itself."""
        running = [(number, slot, self._call_of(slot)) for number, slot in enumerate(world.slots, start=1) if slot]
        inert = next((one for one in running if is_inert(world, one[0], one[2])), None)
        if self.reduced and inert is not None:
            yield from self._steps_of(world, *inert)
            return
        for number, slot, call in running:
            yield from self._steps_of(world, number, slot, call)
        if None in world.slots:
            number = world.slots.index(None) + 1
            for plan in startable(world):
                begun = world.spend(starts=1).with_slot(number, Slot(self.product.first(plan)))
                yield f"executor {number}: is started with the plan of cut {plan}", begun, ""
        for step, after in steps_of_others(world):
            yield step, after, ""

    def _call_of(self, slot: Slot) -> Call:
        call = self.product.nodes[slot.node].call
        assert call is not None
        return call

    def _steps_of(self, world: World, number: int, slot: Slot, call: Call) -> Iterator[tuple[str, World, str]]:
        if world.left.strikes and not self.reduced:
            yield f"executor {number}: dies before {call.name}", world.without(number).spend(strikes=1), ""
        for how, then, told, raises, idle in outcomes_of(world, number, call):
            if how and (not world.left.strikes or (self.reduced and idle)):
                continue
            wrong = ""
            if call.name == "commit_transaction" and then.events != world.events:
                wrong = next(wrong_commit(world, number), "")
                self.found.limit_reached += reaches_the_limit(world, number)
            after = then.spend(strikes=1) if how else then
            step = f"executor {number}: {call.name}{f' ({how})' if how else ''}"
            self.found.calls[call.name] += 1
            if raises == DEATH:
                yield step, after.without(number), wrong
            else:
                yield self._went_on(step, after, number, slot.node, told, raises, wrong)

    def _went_on(
        self, step: str, world: World, number: int, node: int, told: Any, raises: str, wrong: str
    ) -> tuple[str, World, str]:
        now = self.product.after(node, told, raises)
        end = self.product.nodes[now].end
        if end is None:
            slot = world.slots[number - 1]
            assert slot is not None
            return step, world.with_slot(number, slot._replace(node=now)), wrong
        self.found.ends[end.raised or ", ".join(f"{fate}{' and waits' * waits}" for fate, waits in end.fates)] += 1
        wrong = wrong or next(wrong_end(world, end), "")
        return f"{step}; ends: {end.raised or end.fates}", world.without(number), wrong

    def _why_not_settling(self, world: World) -> str:
        """Once nothing strikes any more, starts one after the other bring each action to an end."""
        if world.slots != (None, None) or is_settled(world):
            return ""
        quiet = world._replace(left=Left(starts=_STARTS_UNTIL_SETTLED), store=world.store._replace(stopped=False))
        if quiet not in self._settles:
            self._settles[quiet] = self._settle(quiet)
        return self._settles[quiet]

    def _settle(self, world: World) -> str:
        plan = next(one.plan for one in world.store.actions if one is not None)
        for _ in range(_STARTS_UNTIL_SETTLED):
            world = aborted(world, OURS)  # as its time-out does
            world = world.with_slot(1, Slot(self.product.first(plan)))
            while slot := world.slots[0]:
                call = self._call_of(slot)
                _, world, told, raises, _ = outcomes_of(world, 1, call)[0]
                _, world, wrong = self._went_on(call.name, world, 1, slot.node, told, raises, "")
                if wrong := wrong or next(wrong_in(world), ""):
                    return f"once nothing strikes any more: {wrong}"
            if is_settled(world):
                states = ", ".join(one.state for one in world.store.actions if one)
                self.found.settled[states] += 1
                return ""
        return f"after {_STARTS_UNTIL_SETTLED} starts that nothing strikes an action is still executing"

    def _note(self, came_from: int, step: str, *, swapped: bool = False) -> int:
        """swapped: behind the step the slots have each other's place."""
        self._came_from.append(came_from)
        self._came_by.append(self._labels.setdefault(step, len(self._labels)) << 1 | swapped)
        return len(self._came_from) - 1

    def _way_to(self, number: int) -> tuple[str, ...]:
        """Told with a name for each start, whichever slot it is in."""
        labels, taken = list(self._labels), []
        while number > 0:
            taken.append(self._came_by[number])
            number = self._came_from[number]
        names, letters, told = {"1": "", "2": ""}, iter("ABCDEFGH"), []
        for by in reversed(taken):
            step = labels[by >> 1]
            if asks := _BY_EXECUTOR.fullmatch(step):
                slot, what = asks.groups()
                names[slot] = next(letters) if what.startswith("is started") else names[slot]
                step = f"executor {names[slot]}: {what}"
            told.append(step)
            if by & 1:
                names = {"1": names["2"], "2": names["1"]}
        return tuple(told)
