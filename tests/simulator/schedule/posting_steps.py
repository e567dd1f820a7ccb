"""Steps that befall a ledger into which a contract posts. Elsewhere they do nothing."""

from tests.simulator.schedule.money_steps import Step
from tests.simulator.schedule.services import Services
from tests.simulator.world.database import Row


def reverse_for_nothing(services: Services, a: int, b: int) -> None:
    """Somebody takes back, by hand, the only row that an event has: booked, and one too many itself."""
    world = services.world
    alone = [row for row in services.standing_rows() if len(world.truth.rows_of(row.money.match_key)) == 1]
    if not world.config.posts or not alone:
        return
    taken = alone[b % len(alone)]
    money, sign = taken.money, -1 if world.config.posts == "negated" else 1
    reversal = Row(
        row_id=0,
        match_key=money.match_key,
        transaction_key=money.transaction_key,
        leg=money.leg,
        amount_minor=sign * money.amount_minor,
        currency=money.currency,
        written_ms=world.clock.now_ms,
        reverses=str(taken.row_id),
    )
    row_id = world.database.insert("somebody", reversal)
    world.truth.written_by[row_id] = "idle reversal"
    world.tell(f"row {row_id} takes row {taken.row_id} of {money.match_key} back, which was right")
    world.database.commit("somebody")
    world.look()


POSTING_STEPS: dict[str, Step] = {reverse_for_nothing.__name__: reverse_for_nothing}
