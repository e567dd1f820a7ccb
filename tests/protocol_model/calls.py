"""What each call of an executor does to the world, and what it is told: by the product's own names.

Statements of the store are one step each, as the store's locks make them.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from tallystick.compensation.plan import PlanStale
from tallystick.store.plans.plan_store import HOLDING, ActionState

from .world import COMMITTED, DEATH, NOBODY, OPEN, OURS, Action, Record, Store, World, aborted


class Outcome(NamedTuple):
    """One thing that a call may come to. told: what the executor gets; raises: or what it is raised.

    how: "" where all went well; anything else is a strike. idle: nothing has happened to the world.
    """

    how: str
    world: World
    told: Any = None
    raises: str = ""
    idle: bool = False


class Call(NamedTuple):
    """What a start asks for next."""

    name: str
    arguments: tuple[Any, ...] = ()


def outcomes_of(world: World, number: int, call: Call) -> list[Outcome]:
    """number: the slot that asks."""
    found: list[Outcome] = _CALLS[call.name](world, number, *call.arguments)
    return found


def is_inert(world: World, number: int, call: Call) -> bool:
    """Nothing that may still happen changes what the call does and is told, nor does it change anything itself."""
    name, left, store = call.name, world.left, world.store
    if name in ("produce", "flush", "commit_transaction", "abort_transaction"):
        return world.holder != (number, call.arguments[0])  # a fenced publisher stays fenced
    if name == "read_switch":
        return not left.switches
    no_run = store.open_cut < 0 and not left.runs
    if name in ("list_runs", "last_cuts_with_offsets_unread", "judged_parts"):
        return no_run
    return name in ("outstanding_breaks", "outstanding_among") and no_run and not left.write_offs


def _asked(world: World, told: Any) -> list[Outcome]:
    """A question to the store: it answers, or it does not."""
    return [Outcome("", world, told), Outcome("the store does not answer", world, raises="store", idle=True)]


def _written(world: World, after: World, told: Any = None) -> list[Outcome]:
    """A commit of the store."""
    return [
        Outcome("", after, told),
        Outcome("the store does not answer", world, raises="store", idle=True),
        Outcome("committed, and the answer is lost", after, raises="store"),
    ]


def _told(store: Store, asked: Iterable[int]) -> Iterator[tuple[int, Action]]:
    """Without what no executor looks at."""
    for n in asked:
        if one := store.actions[n]:
            yield n, one._replace(executor=NOBODY, aged=0)


def _open_actions(world: World, _number: int) -> list[Outcome]:
    held = tuple((n, one) for n, one in _told(world.store, range(len(world.store.actions))) if one.state in HOLDING)
    return _asked(world, held)


def _outstanding(world: World, _number: int, asked: tuple[int, ...]) -> list[Outcome]:
    return _asked(world, tuple(n for n in asked if world.store.breaks[n] == "broken"))


def _list_runs(world: World, _number: int) -> list[Outcome]:
    return _asked(world, (world.store.newest, world.store.lost_at == world.store.newest))


def _lost_at(world: World, _number: int) -> list[Outcome]:
    return _asked(world, world.store.lost_at)


def _read_switch(world: World, _number: int) -> list[Outcome]:
    return _asked(world, world.store.stopped)


def _judged_parts(world: World, _number: int) -> list[Outcome]:
    return _asked(world, world.store.judged)


def _published_behind(world: World, _number: int, plans: tuple[int, ...]) -> list[Outcome]:
    newest = [[end for plan, end in one if plan in plans] for one in world.store.behind]
    return _asked(world, tuple((n, ends[-1]) for n, ends in enumerate(newest) if ends))


def _held_among(world: World, number: int, asked: tuple[int, ...]) -> list[Outcome]:
    return _asked(world, tuple(n for n in asked if _is_held(world.store.actions[n], number)))


def _is_held(action: Action | None, number: int) -> bool:
    return action is not None and action.state is ActionState.EXECUTING and action.executor == number


def _claim_actions(
    world: World, number: int, plan: int, asked: tuple[int, ...], made: int, starts_at: int, stopped: tuple[int, ...]
) -> list[Outcome]:
    """As claim_store.claim_actions does in one transaction. Nobody else has the same effect here."""
    store = world.store
    held = [n for n in asked if (one := store.actions[n]) and one.state is not ActionState.REFUSED]
    fresh = [n for n in asked if n not in held]
    gone = [n for n in fresh if store.breaks[n] != "broken"]
    begun = tuple(n for n in fresh if n not in gone and n not in stopped)
    for n in begun:
        store = store.changed(n, _begun(store.actions[n], plan, made, starts_at))
    for n in asked:
        one = store.actions[n]
        if one and one.plan == plan and one.state is ActionState.EXECUTING:
            store = store.changed(n, one._replace(executor=number, aged=2))
        if one and one.plan != plan and n not in gone and n not in stopped:
            return [Outcome("", world, raises=PlanStale.__name__)]
    claimed = tuple(_told(store, asked))
    return _written(world, world._replace(store=store), (claimed, begun, tuple(gone)))


def _begun(before: Action | None, plan: int, made: int, starts_at: int) -> Action:
    reopened = before.reopened if before else 0
    void = before.void if before else None
    if reopened and void is None:
        void = (made, starts_at)
    return Action(ActionState.EXECUTING, plan, made=made, starts_at=starts_at, reopened=reopened, void=void)


def _record_done(world: World, _number: int, n: int, by_us: bool, reopened: int) -> list[Outcome]:
    one = world.store.actions[n]
    if one is None or one.state is ActionState.DONE or one.reopened != reopened:
        return _written(world, world)
    done = Action(ActionState.DONE, one.plan, reopened=one.reopened, void=one.void, aged=2 if by_us else one.aged)
    return _written(world, world._replace(store=world.store.changed(n, done)))


def _record_refusal(world: World, number: int, n: int, by_its_word: bool) -> list[Outcome]:
    """by_its_word: of what this start has claimed last; the product never asks otherwise."""
    one = world.store.actions[n]
    if one is None or not (_is_held(one, number) if by_its_word else one.state is ActionState.EXECUTING):
        return _written(world, world, False)
    refused = Action(ActionState.REFUSED, one.plan, reopened=one.reopened, void=one.void, aged=one.aged)
    return _written(world, world._replace(store=world.store.changed(n, refused)), True)


def _record_waiting(world: World, number: int, n: int, seen: tuple[int, int] | None) -> list[Outcome]:
    one = world.store.actions[n]
    if one is None or not (_is_held(one, number) or one.state is ActionState.WAITING):
        return _written(world, world, False)
    waits = Action(ActionState.WAITING, one.plan, reopened=one.reopened, void=one.void, seen=seen, aged=one.aged)
    return _written(world, world._replace(store=world.store.changed(n, waits)), True)


def _audit_publishing(world: World, _number: int, plan: int, about: tuple[int, ...], end: int) -> list[Outcome]:
    behind = tuple(
        (*(pair for pair in one if pair[0] != plan), (plan, end)) if n in about else one
        for n, one in enumerate(world.store.behind)
    )
    return _written(world, world._replace(store=world.store._replace(behind=behind)))


def _ensure_progress_topic(world: World, _number: int) -> list[Outcome]:
    part = world.progress
    return _from_broker(world, (part.made, part.log_start, part.lso, len(part.records)))


def _read_topic_snapshot(world: World, number: int, first: bool) -> list[Outcome]:
    """first: the look that marks how far the logs are written; what is written by then must be seen."""
    slot = world.slots[number - 1]
    assert slot is not None
    before, end, states = (0, None, (OPEN, COMMITTED)) if first else (slot.looked, world.events.lso, (COMMITTED,))
    stood = sum(1 << n for n in range(len(world.store.actions)) if world.original(n, end, states=states))
    looked = before | stood
    bounds = tuple((one.made, one.log_start, one.lso, len(one.records)) for one in (world.progress, world.events))
    return _from_broker(world.with_slot(number, slot._replace(looked=looked)), bounds)


def _read_committed(world: World, _number: int, topic: str, made: int, start: int, end: int) -> list[Outcome]:
    part = world.progress if topic == "progress" else world.events
    if part.log_start > start or part.made != made:
        return [Outcome("", world, raises="broker")]  # retention took what is being read
    return _from_broker(world, tuple(part.visible(start, end)))


def _from_broker(world: World, told: Any) -> list[Outcome]:
    return [Outcome("", world, told), Outcome("the broker does not answer", world, raises="broker", idle=True)]


def _init_transactions(world: World, number: int, publisher: int) -> list[Outcome]:
    after = aborted(world, OURS)._replace(holder=(number, publisher))
    return [
        Outcome("", after),
        Outcome("the broker does not answer", world, raises="final", idle=True),
        Outcome("done, and the answer is lost", after, raises="final"),
    ]


def _produce(world: World, number: int, publisher: int, topic: str, record: Record) -> list[Outcome]:
    if world.holder != (number, publisher):
        return [Outcome("", world, -1)]  # what a fenced publisher sends goes nowhere; flush says so
    part = world.progress if topic == "progress" else world.events
    offset = len(part.records)
    part = part._replace(records=(*part.records, record))
    after = world._replace(progress=part) if topic == "progress" else world._replace(events=part)
    return [
        Outcome("", after, offset),
        Outcome("the broker refuses the record", world, -2),
        Outcome("the broker has it, and the process dies", after, raises=DEATH),
    ]


def _flush(world: World, number: int, publisher: int, refused: bool) -> list[Outcome]:
    if world.holder != (number, publisher):
        return [Outcome("", world, raises="fatal")]
    if refused:
        return [Outcome("", world, raises="abortable")]
    slot = world.slots[number - 1]
    assert slot is not None
    over = sum(1 << n for n, one in enumerate(world.store.breaks) if one != "broken")
    return [
        Outcome("", world.with_slot(number, slot._replace(over=over))),
        Outcome("the transaction fails", world, raises="abortable"),
    ]


def _commit_transaction(world: World, number: int, publisher: int) -> list[Outcome]:
    if world.holder != (number, publisher):
        return [Outcome("", world, raises="fenced")]
    if not any(one.who == OURS for part in (world.events, world.progress) for one in part.records):
        # committed before, and asked again: the broker says the same once more
        return [Outcome("", world), Outcome("the broker does not answer", world, raises="final", idle=True)]
    after = world._replace(events=world.events.ended(OURS, COMMITTED), progress=world.progress.ended(OURS, COMMITTED))
    return [
        Outcome("", after),
        Outcome("the transaction fails", world, raises="abortable"),
        Outcome("the broker does not answer", world, raises="final", idle=True),
        Outcome("committed, and the answer is lost for good", after, raises="final"),
        Outcome("committed, and the answer is lost", after, raises="retriable"),
    ]


def _abort_transaction(world: World, number: int, publisher: int) -> list[Outcome]:
    if world.holder != (number, publisher):
        return [Outcome("", world, raises="fenced")]
    after = aborted(world, OURS)
    return [
        Outcome("", after),
        Outcome("the broker does not answer", world, raises="final", idle=True),
        Outcome("aborted, and the answer is lost", after, raises="retriable"),
    ]


_CALLS: dict[str, Any] = {
    "open_actions": _open_actions,
    "outstanding_breaks": _outstanding,
    "outstanding_among": _outstanding,
    "list_runs": _list_runs,
    "last_cuts_with_offsets_unread": _lost_at,
    "read_switch": _read_switch,
    "judged_parts": _judged_parts,
    "published_behind": _published_behind,
    "held_among": _held_among,
    "claim_actions": _claim_actions,
    "record_done": _record_done,
    "record_refusal": _record_refusal,
    "record_waiting": _record_waiting,
    "append_audit publishing": _audit_publishing,
    "ensure_progress_topic": _ensure_progress_topic,
    "read_topic_snapshot": _read_topic_snapshot,
    "read_committed": _read_committed,
    "init_transactions": _init_transactions,
    "produce": _produce,
    "flush": _flush,
    "commit_transaction": _commit_transaction,
    "abort_transaction": _abort_transaction,
}
"""By the product's own name of what is called."""
