"""What everybody else may do between any two steps of an executor, and what may happen to one."""

from collections.abc import Iterator
from datetime import timedelta
from uuid import UUID

from tallystick.compensation.write_off import RepairBegun, WriteOffRefused, refuse_while_repaired
from tallystick.store.plans import reopen_store
from tallystick.store.plans.plan_store import HOLDING, ActionState

from .scene import FIRST_CUT, NOON
from .world import COMMITTED, NOBODY, OPEN, OURS, WRITER, Partition, Record, World, aborted


def steps_of_others(world: World) -> Iterator[tuple[str, World]]:
    """Each with its name: whose it is, and what."""
    yield from _writer(world)
    yield from _reconciliation(world)
    yield from _broker(world)
    yield from _people(world)


def _writer(world: World) -> Iterator[tuple[str, World]]:
    """The events' own producer, late, in transactions of its own."""
    records = world.events.records
    if any(one.who == WRITER for one in records):
        for name, state in (("commits the late original", COMMITTED), ("aborts the late original", "aborted")):
            yield f"writer: {name}", world._replace(events=world.events.ended(WRITER, state))
    elif world.left.originals:
        for n in range(len(world.store.breaks)):
            if not world.original(n):
                late = world.events._replace(records=(*records, Record(OPEN, n, who=WRITER)))
                yield f"writer: writes the late original of event {n}", world.spend(originals=1)._replace(events=late)


def _reconciliation(world: World) -> Iterator[tuple[str, World]]:
    store = world.store
    if store.open_cut < 0 and world.left.runs:
        aged = tuple(one and one._replace(aged=min(one.aged, 1)) for one in store.actions)
        cut = store._replace(open_cut=world.events.lso, actions=aged)
        yield "reconciliation: makes a cut", world.spend(runs=1)._replace(store=cut)
    if store.open_cut >= 0:
        yield "reconciliation: commits its verdict", commit_run(world)


def commit_run(world: World) -> World:
    """What the cut shows clears its breaks; what was gone before it could be read is told."""
    store, start = world.store, world.store.judged
    seen = {one.of for _, one in world.events.visible(start, store.open_cut)}
    lost = world.events.log_start > start and start < store.open_cut
    newest = store.newest + 1
    return world._replace(
        store=store._replace(
            breaks=tuple("cleared" if was == "broken" and n in seen else was for n, was in enumerate(store.breaks)),
            judged=store.open_cut,
            newest=newest,
            lost_at=newest if lost else store.lost_at,
            open_cut=-1,
            actions=tuple(one and one._replace(aged=0 if one.aged < 2 else 2) for one in store.actions),
        )
    )


def _broker(world: World) -> Iterator[tuple[str, World]]:
    parts = world.events, world.progress
    if any(one.who == OURS for part in parts for one in part.records):
        yield "broker: gives our transaction up", aborted(world, OURS)._replace(holder=(NOBODY, 0))
    if world.left.retentions and world.events.lso > world.events.log_start:
        kept = world.events._replace(log_start=world.events.lso)
        yield "broker: retention takes the topic's records", world.spend(retentions=1)._replace(events=kept)
    if world.left.remakes and not any(one.state == OPEN for one in world.progress.records):
        made = Partition(made=world.progress.made + 1)
        yield "somebody: makes the progress topic anew", world.spend(remakes=1)._replace(progress=made)


def _people(world: World) -> Iterator[tuple[str, World]]:
    store = world.store
    for n, was in enumerate(store.breaks):
        if world.left.write_offs and was == "broken" and store.open_cut < 0 and _may_be_written_off(world, n):
            after = store._replace(breaks=(*store.breaks[:n], "written_off", *store.breaks[n + 1 :]))
            yield f"person: writes break {n} off", world.spend(write_offs=1)._replace(store=after)
        if world.left.reopenings and was == "broken" and _may_be_reopened(world, n):
            yield f"person: reopens action {n}", _reopened(world, n)
    if world.left.switches:
        turned = store._replace(stopped=not store.stopped)
        name = "lets compensations act" if store.stopped else "stops all compensations"
        yield f"person: {name}", world.spend(switches=1)._replace(store=turned)


def _may_be_written_off(world: World, n: int) -> bool:
    """By the product's own rule."""
    action = world.store.actions[n]
    if action is None or action.state not in HOLDING:
        return True
    done_at_utc = None
    if action.state is ActionState.DONE:
        done_at_utc = NOON + timedelta(seconds=1 if action.aged else -1)
    begun = RepairBegun(
        action_id=UUID(int=n),
        plan_id=UUID(int=action.plan),
        plan_hash="",
        done_at_utc=done_at_utc,
        waits=action.state is ActionState.WAITING,
    )
    try:
        refuse_while_repaired(UUID(int=n), begun, seen_up_to_utc=NOON)
    except WriteOffRefused:
        return False
    return True


def _may_be_reopened(world: World, n: int) -> bool:
    """By the product's own rule, and by a person who has looked: nothing of it stands, and nothing of it is open."""
    action = world.store.actions[n]
    if action is None or reopen_store.why_not_reopened(action.state, UUID(int=n)):
        return False
    opened = any(one.action and one.of == n and one.who == OURS for one in world.events.records)
    return not world.paid(n) and not opened


def _reopened(world: World, n: int) -> World:
    action = world.store.actions[n]
    assert action is not None
    after = action._replace(
        state=ActionState.REFUSED,
        executor=NOBODY,
        made=-1,
        starts_at=-1,
        reopened=action.reopened + 1,
        void=action.seen,
        seen=None,
        aged=2,
    )
    return world.spend(reopenings=1)._replace(store=world.store.changed(n, after))


def startable(world: World) -> Iterator[int]:
    """Plans that somebody may start: that of the first cut, and that of the first run since, once there is one."""
    if world.left.starts:
        yield FIRST_CUT
        if world.store.newest > FIRST_CUT:
            yield FIRST_CUT + 1
