"""What must hold in every state, and of every step. Each gives the sentence that says what is wrong, or None."""

from collections.abc import Iterator

from tallystick.executor.effects.action_log import ActionResult
from tallystick.store.plans.plan_store import ActionState

from .product import End
from .world import OURS, Slot, World

STANDS = (ActionResult.PUBLISHED, ActionResult.ALREADY_PUBLISHED)


def wrong_in(world: World) -> Iterator[str]:
    """Of a state."""
    for n, action in enumerate(world.store.actions):
        paid = world.paid(n)
        if paid > 1:
            yield f"event {n} was published {paid} times by repairs"
        if action is None:
            if paid:
                yield f"event {n} was published, and the store has no action of it"
        elif action.state is ActionState.DONE and not paid:
            yield f"action {n} is done, and its event was never published"
        elif action.state is ActionState.REFUSED and paid:
            yield f"action {n} is refused, and its event was published"


def wrong_commit(before: World, number: int) -> Iterator[str]:
    """Of a commit of this slot's transaction, by how the world was before it."""
    slot = before.slots[number - 1]
    assert slot is not None
    for n in published_by(before):
        if slot.looked >> n & 1 and before.original(n):
            yield f"event {n} is published, and its original stood when the executor last looked"
        if slot.over >> n & 1:
            yield f"event {n} is published, and its break was {before.store.breaks[n]} before the last question"


def published_by(before: World) -> list[int]:
    """Events of the repairs in our open transaction."""
    return [one.of for one in before.events.records if one.who == OURS and one.action]


def reaches_the_limit(before: World, number: int) -> bool:
    """A second payment that the protocol cannot prevent: the original came behind the last look."""
    slot = before.slots[number - 1]
    assert isinstance(slot, Slot)
    return any(before.original(n) and not slot.looked >> n & 1 for n in published_by(before))


def wrong_end(world: World, end: End) -> Iterator[str]:
    """Of what a start tells when it ends."""
    for n, (fate, waits) in enumerate(end.fates):
        if fate in STANDS and not world.paid(n):
            yield f"told as {fate}: event {n}, which was never published"
        if fate == ActionResult.REFUSED and not waits and world.paid(n):
            yield f"told as refused: event {n}, which was published"


def is_settled(world: World) -> bool:
    """Each action ends done, refused, or a person has to look."""
    return all(one is None or one.state is not ActionState.EXECUTING for one in world.store.actions)
