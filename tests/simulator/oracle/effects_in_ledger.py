"""No effect twice in the ledger: what the executor has posted and taken back, by the rows that stood."""

from collections import Counter
from collections.abc import Iterator

from tests.simulator.world.truth import RowFact, Truth


def effects_in_ledger(truth: Truth) -> Iterator[str]:
    """Each action's one row, each row taken back once, and nothing posted beside a row that stood."""
    posted = Counter(one.action_id for one in truth.rows.values() if one.action_id)
    yield from (f"action {one} posted {times} rows" for one, times in posted.items() if times > 1)
    taken_back = Counter(one.reverses for one in truth.reversals)
    yield from (f"row {one} was taken back {times} times" for one, times in taken_back.items() if times > 1)
    for one in truth.rows.values():
        if one.by == "repair" and one.reverses is None and _stood_beside(truth, one):
            yield f"{one.money.match_key} was posted by us beside a row that stood"


def _stood_beside(truth: Truth, posted: RowFact) -> bool:
    at = posted.visible_at
    return any(
        other is not posted
        and other.reverses is None
        and other.visible_at < at
        and (other.gone_at is None or other.gone_at > at)
        and (other.taken_back_at is None or other.taken_back_at > at)
        for other in truth.rows_of(posted.money.match_key)
    )
