"""C2: our own repair was published, and the break it was to repair is still there.

Evidence: the action is done for good; its event has been known to stand for longer than the partner's grace when this
window ended; no partition of its topic is held below the window's end, and none has lost offsets unread; and the item
found no partner in this cut or before. Not to be mistaken for a repair of moments ago, whose event a later cut reads.
Told once: from then on the item answers for this break, and no further compensation is planned for it.
"""

from collections.abc import Iterator

from tallystick.break_class import BreakClass
from tallystick.evidence import Evidence
from tallystick.run_result import Break, break_id
from tallystick.surroundings import ExecutedAction


def compensation_not_effective(evidence: Evidence) -> Iterator[Break]:
    """One break per action. At stake: what it was to repair."""
    paired = _paired(evidence)
    for action in evidence.surroundings.actions:
        if action.item.item_id not in paired and _must_have_been_read(evidence, action):
            yield _without_effect(evidence, action)


def _paired(evidence: Evidence) -> set[str]:
    """Item ids of all copies that this cut gave a partner, equal or not."""
    matched = {copy.item_id for outcome in evidence.outcomes for pair in outcome.matched for copy in pair}
    residues = [residue for outcome in evidence.outcomes for residue in outcome.residues if residue.partner]
    return (
        matched
        | {residue.copy.item_id for residue in residues}
        | {residue.partner.item_id for residue in residues if residue.partner}
    )


def _must_have_been_read(evidence: Evidence, action: ExecutedAction) -> bool:
    cut, topic = evidence.cut, evidence.contract.legs.get(action.item.leg)
    held = any(part.held for part in cut.topic_slices if part.offsets.topic == topic)
    had_its_grace = action.executed_utc + evidence.grace.duration <= cut.marked_at_utc
    return had_its_grace and not held and not evidence.deadlines.topic_lost_offsets


def _without_effect(evidence: Evidence, action: ExecutedAction) -> Break:
    item, break_class = action.item, BreakClass.COMPENSATION_NOT_EFFECTIVE
    story = (
        f"The event of {item.item_id} was published again by {action.executed_utc:%Y-%m-%d %H:%M:%S} UTC, and every "
        "record of then has been read: the row is still without its event."
    )
    return Break(
        break_id=break_id(
            contract=evidence.contract.contract,
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
