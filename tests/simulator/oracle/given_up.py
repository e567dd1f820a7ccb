"""No effect for what a person has given up: a break that was written off is repaired by nobody from then on."""

from collections.abc import Iterator

from tests.simulator.world.world import World


def effects_given_up(world: World) -> Iterator[str]:
    """Each event or row of an executor that came once its break had been written off."""
    truth = world.truth
    given_up_at = {
        str(action_id): truth.given_up[row.stored.break_id]
        for action_id, row in world.store.actions.items()
        if row.stored.break_id in truth.given_up
    }
    for one in (*truth.events, *truth.rows.values()) if given_up_at else ():
        at = given_up_at.get(one.action_id) if one.by == "repair" else None
        if at is not None and one.visible_at is not None and one.visible_at > at:
            yield f"{one.money.match_key} was repaired by us once its break had been written off"
