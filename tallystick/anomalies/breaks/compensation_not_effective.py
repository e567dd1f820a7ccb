"""C2: our own repair was done, and the break it was to repair is still there.

Evidence: the action is done for good; what it wrote has been known to stand for longer than the partner's grace when
this window ended; the side it wrote to is not held below the window's end; no cut since has lost offsets unread, was
torn or was closed unread; no row that it wrote stands; and the item found no partner in this cut or before, nor was it
taken back. Not to be mistaken for a repair of moments ago, whose event or row a later cut reads. Told once: from then
on the item answers for this break, and no further compensation is planned for it.
"""

from collections.abc import Iterator

from tallystick.contract.contract import Contract
from tallystick.kafka_cluster.state import ClusterState, ExecutedAction
from tallystick.matching.match_case import Deadlines, MatchResult
from tallystick.matching.pairing import origin_side
from tallystick.matching.reversals import may_be_taken_back
from tallystick.model.cut import Cut
from tallystick.model.finding_names import BreakClass
from tallystick.model.findings import Break, break_id
from tallystick.model.open_item import ItemSide
from tallystick.model.partner_lag import Grace


def compensation_not_effective(
    contract: Contract,
    cut: Cut,
    outcomes: tuple[MatchResult, ...],
    cluster: ClusterState,
    deadlines: Deadlines,
    grace: Grace,
) -> Iterator[Break]:
    """Yield a break per action. At stake: the break it was to repair."""
    paired = _paired(outcomes)
    for action in cluster.actions:
        if action.item.item_id not in paired and _must_have_been_read(contract, cut, deadlines, grace, action):
            yield _without_effect(contract, action)


def _paired(outcomes: tuple[MatchResult, ...]) -> set[str]:
    """Return item ids of all copies that this cut gave a partner, equal or not, or saw taken back."""
    matched = {copy.item_id for outcome in outcomes for pair in outcome.matched for copy in pair}
    residues = [residue for outcome in outcomes for residue in outcome.residues if residue.partner]
    return (
        matched
        | {copy.item_id for outcome in outcomes for copy, _ in outcome.netted}
        | {residue.copy.item_id for residue in residues}
        | {residue.partner.item_id for residue in residues if residue.partner}
    )


def _must_have_been_read(
    contract: Contract, cut: Cut, deadlines: Deadlines, grace: Grace, action: ExecutedAction
) -> bool:
    topic = contract.legs.get(action.item.leg)
    if _was_posted(action) or _was_counterposted(contract, action):
        held = cut.ledger_slice.held
    else:
        held = any(part.held for part in cut.topic_slices if part.offsets.topic == topic)
    had_its_grace = action.executed_utc + grace.duration <= cut.marked_at_utc
    return had_its_grace and not held and not deadlines.topic_lost_offsets


def _was_posted(action: ExecutedAction) -> bool:
    """Return whether the repair is on the ledger's side: so for an event that is not a surplus one."""
    return action.item.side is ItemSide.TOPIC and not may_be_taken_back(action.item)


def _was_counterposted(contract: Contract, action: ExecutedAction) -> bool:
    """Return whether the repair is a row in the ledger: so for a surplus row, unless an outbox holds it."""
    return (
        action.item.side is ItemSide.LEDGER
        and origin_side(contract.direction) is ItemSide.TOPIC
        and may_be_taken_back(action.item)
    )


def _without_effect(contract: Contract, action: ExecutedAction) -> Break:
    item, break_class = action.item, BreakClass.COMPENSATION_NOT_EFFECTIVE
    if _was_posted(action):
        done, found = f"The rows of {item.item_id} were posted", "the event is still without its row"
    elif item.side is ItemSide.TOPIC or _was_counterposted(contract, action):
        done, found = f"{item.item_id} was taken back", "no reversal of it was found, and it is still one too many"
    else:
        done, found = f"The event of {item.item_id} was published again", "the row is still without its event"
    story = f"{done} by {action.executed_utc:%Y-%m-%d %H:%M:%S} UTC, and every record of then has been read: {found}."
    return Break(
        break_id=break_id(
            contract=contract.name,
            break_class=break_class,
            match_key=item.match_key,
            position=item.item_id,
        ),
        break_class=break_class,
        match_key=item.match_key,
        transaction_key=item.transaction_key,
        leg=item.leg,
        amount_minor=item.amount_minor,
        currency=item.currency,
        copies=1,
        story=story,
        evidence={
            "at": item.item_id,
            "action_id": str(action.action_id),
            "executed_utc": action.executed_utc.isoformat(),
            "repairs": str(item.break_id),
        },
    )
