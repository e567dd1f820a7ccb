"""Many to one: the copies of one side are parts, and add up to the one copy that the other side has, the whole.

Pure. Parts and whole share a match key, and come in any order and in any cut. They agree where all are of one currency
and the parts' sum is the whole's amount, to the last minor unit; then all of them are done.

Until then they wait: parts without a whole each to their own deadline, as any copy alone does; a whole whose parts add
up to another sum, to the deadline of the whole, and as long as a part may stand where this cut may not read. After it
the group is one break, and stays ready for a part that is late. What comes once the group was closed is one too many.

No part is known to repeat another: two of one amount are two. A part that was written twice makes the sum too large.
"""

from tallystick.matching.match_case import (
    Deadlines,
    Entry,
    MatchGroup,
    MatchResult,
    MatchStatus,
    RecordLocation,
    UnmatchedItem,
    WholeAndParts,
)
from tallystick.matching.pairing import (
    is_judged,
    judge_absence,
    judge_follower,
    judge_origin,
    origin_side,
    other_side,
    pair_key,
)
from tallystick.model.direction import Direction
from tallystick.model.item_reason import ReasonCode, reason_of
from tallystick.model.open_item import ItemSide


def pair_group(case: MatchGroup, *, direction: Direction, deadlines: Deadlines) -> MatchResult:
    """Hold the parts of one key against their whole. The order of copies changes nothing.

    Raises ValueError where the case names no side of the parts.
    """
    if case.parts is None:
        raise ValueError(f"{case.match_key}: got a case of pairs; expected one whose copies of one side are parts")
    parts = tuple(filter(_is_pairable, case.side(case.parts)))
    if not case.match_key or not parts:
        return pair_key(case, direction=direction, deadlines=deadlines)
    origin, wholes = origin_side(direction), case.side(other_side(case.parts))
    was_closed = RecordLocation.EARLIER_SLICE in case.places(other_side(case.parts), without=case.surplus_rows)
    groups = [WholeAndParts(whole=whole, parts=parts) for whole in _awaiting(wholes, was_closed=was_closed)]
    group = next((one for one in groups if one.adds_up), groups[0] if groups else None)
    residues = [
        residue
        for whole in wholes
        if (group is None or whole is not group.whole) and not is_judged(whole)
        for residue in _judge_surplus(case, whole, origin, wholes, deadlines)
    ]
    if group is None:
        for part in parts:
            residues += _judge_part(case, part, origin, deadlines, was_closed=was_closed)
    elif not group.adds_up:
        residues += _judge_sum(case, group, deadlines)
    added_up = (group,) if group is not None and group.adds_up else ()
    return MatchResult(case=case, matched=(), residues=tuple(residues), added_up=added_up)


def _is_pairable(copy: Entry) -> bool:
    return copy.carried is None or copy.carried.pairable


def _awaiting(wholes: tuple[Entry, ...], *, was_closed: bool) -> list[Entry]:
    """Return the wholes that parts may belong to: those that waited, else the first, if no earlier cut closed one."""
    carried = [whole for whole in wholes if whole.carried is not None]
    if carried or was_closed:
        return [whole for whole in carried if _is_pairable(whole)]
    return list(wholes[:1])


def _judge_surplus(
    case: MatchGroup, whole: Entry, origin: ItemSide, wholes: tuple[Entry, ...], deadlines: Deadlines
) -> list[UnmatchedItem]:
    if whole.side is origin:
        return judge_origin(case, whole, None, True, wholes, deadlines)
    return [judge_follower(case, whole, True, wholes[0], deadlines)]


def _judge_part(
    case: MatchGroup, part: Entry, origin: ItemSide, deadlines: Deadlines, *, was_closed: bool
) -> list[UnmatchedItem]:
    """Judge a part whose whole is not here. A row that may have been written anew may be one of a closed group."""
    if is_judged(part):
        return []
    may_be_older = part.side is ItemSide.LEDGER and deadlines.rows_may_be_older
    is_surplus = part.carried is None and was_closed and not may_be_older
    if part.side is origin:
        return judge_origin(case, part, None, is_surplus, (part,), deadlines)
    return [judge_follower(case, part, is_surplus, part, deadlines)]


def _judge_sum(case: MatchGroup, group: WholeAndParts, deadlines: Deadlines) -> list[UnmatchedItem]:
    """Judge what does not add up, by whether another part may be there still. One break tells of the whole group."""
    copies = [copy for copy in (group.whole, *group.parts) if not is_judged(copy)]
    if not copies:
        return []
    side = group.parts[0].side
    if RecordLocation.EARLIER_SLICE in case.places(side):  # a part that no item holds: what became of it is not known
        fate, reason = MatchStatus.UNDECIDABLE, reason_of(ReasonCode.PARTNER_UNREAD)
    else:
        absent = judge_absence(case, group.whole, MatchStatus.SUM_DIFFERS, deadlines)
        fate, reason = absent.fate, absent.reason
    if fate is not MatchStatus.SUM_DIFFERS:
        return [UnmatchedItem(copy=copy, fate=fate, reason=reason, lookup_hits=case.lookup_hits) for copy in copies]
    differs = reason_of(ReasonCode.SUM_DIFFERS)
    return [UnmatchedItem(copy=copies[0], fate=fate, reason=differs, lookup_hits=case.lookup_hits, group=group)]
