"""What else is true of a break that is not so: by it one that is known is told from any other."""

from collections.abc import Iterable

from tallystick.contract.contract import Contract
from tallystick.model.findings import Break
from tests.simulator.world.truth import EventFact, RowFact, Truth
from tests.simulator.world.world import World


def came_late_and_unseen(world: World, contract: Contract, found: Break) -> bool:
    """Did its event come when it was due already, and have too few replicas it, so that nobody sees it?"""
    rows, partitions = world.truth.rows_of(found.match_key), world.broker.partitions
    due = min((row.visible_at for row in rows), default=world.clock.now) + contract.partner_grace
    return any(
        one.written_at > due and partitions[one.place].high_watermark <= one.offset < partitions[one.place].end
        for one in world.truth.events_of(found.match_key)
    )


def came_where_others_stood(truth: Truth, events: Iterable[EventFact]) -> bool:
    """Did one of these come to stand where an unclean election had cut the log back?"""
    return any(
        what == "truncated" and place == one.place and up_to <= one.offset and at <= one.written_at
        for one in events
        for at, what, place, up_to in truth.losses
    )


def about_taken_back(truth: Truth, contract_name: str, found: Break) -> str:
    """Of a duplicate: was a copy of its key taken back, and what befell the key besides?"""
    rows = truth.rows_of(found.match_key)
    copies = (*truth.events_of(found.match_key), *rows)
    if (contract_name, found.match_key) in truth.written_off and any(map(_is_taken_back, copies)):
        return "; a copy was written off and is taken back"
    if found.break_class.startswith("duplicate_in_ledger") and _touched_since(rows):
        return "; a row was taken back, and one of its key was written anew since"
    return ""


def _touched_since(rows: Iterable[RowFact]) -> bool:
    """Was one of a key's rows written anew once one of them was taken back?"""
    of_key = list(rows)
    taken_back = min((one.taken_back_at for one in of_key if one.taken_back_at), default=None)
    return taken_back is not None and any(at > taken_back for one in of_key for at in one.touched)


def _is_taken_back(copy: EventFact | RowFact) -> bool:
    return copy.taken_back if isinstance(copy, EventFact) else copy.taken_back_at is not None
