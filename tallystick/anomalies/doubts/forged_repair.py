"""C3: a record or row says that a compensation of ours wrote it, or takes a copy back, and the store knows of none.

Somebody else writes in our name, or the store has lost an action. It is judged as an ordinary copy.

Evidence: the action is not in the store, was never begun, or is of another key, another topic, or takes something else
back. Not to be mistaken for our repair that stands twice, whose action is known (compensated_twice).
"""

from collections.abc import Iterator

from tallystick.matching.evidence import LookedUp
from tallystick.model.finding_names import Doubt
from tallystick.model.findings import DoubtFound

_NAMED = 5


def forged_repair(looked_up: LookedUp) -> Iterator[DoubtFound]:
    """Counts, and where the first few stand."""
    forged = looked_up.forged_repairs
    if forged:
        yield DoubtFound(
            doubt=Doubt.FORGED_REPAIR,
            sentence=f"{len(forged)} copies say that they are repairs of ours, and the store knows of none "
            f"(first: {', '.join(forged[:_NAMED])}); they are judged as ordinary copies.",
            details={"copies": len(forged), "places": list(forged[:_NAMED])},
        )
