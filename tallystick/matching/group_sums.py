"""Many to one: the copies of one side are parts, and add up to the one copy that the other side has, the whole.

Pure. Parts and whole share a match key, and come in any order and in any cut. They agree where all are of one currency
and the parts' sum is the whole's amount, to the last minor unit; then all of them are done.

Until then they wait: parts without a whole each to their own deadline, as any copy alone does; a whole whose parts add
up to another sum, to the deadline of the whole, and as long as a part may stand where this cut may not read. After it
the group is a break, and stays ready for a part that is late. What comes once the group was closed is one too many.

Where a copy of the key was read by an earlier cut and is no open item, or stands where nobody has read it, the group is
not only what is here: it is undecidable, also where the sum is met. Only whole and parts that earlier cuts have read,
and no others, are a closed group.

No part is known to repeat another: two of one amount are two. A part that was written twice makes the sum too large.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

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
    is_of_a_row_beyond_the_cut,
    judge_absence,
    judge_follower,
    judge_origin,
    origin_side,
    other_side,
    pair_key,
)
from tallystick.model.direction import Direction
from tallystick.model.item_reason import Reason, ReasonCode, ReasonSide, reason_of
from tallystick.model.open_item import ItemSide


def pair_group(case: MatchGroup, *, direction: Direction, deadlines: Deadlines) -> MatchResult:
    """Hold the parts of one key against their whole. The order of copies changes nothing.

    Raises ValueError where the case names no side of the parts.
    """
    if case.parts is None:
        raise ValueError(f"{case.match_key}: got a case of pairs; expected one whose copies of one side are parts")
    parts = tuple(filter(_is_pairable, case.side(case.parts)))
    origin, wholes = origin_side(direction), case.side(other_side(case.parts))
    if case.match_key and not parts and (waiting := _wholes_that_wait(case, wholes, deadlines)):
        return MatchResult(case=case, matched=(), residues=waiting)
    if not case.match_key or not parts:
        return pair_key(case, direction=direction, deadlines=deadlines)
    if _was_closed(case):
        late = [copy for copy in (*wholes, *parts) if not is_judged(copy)]
        residues = [one for copy in late for one in _judge_surplus(case, copy, origin, deadlines)]
        return MatchResult(case=case, matched=(), residues=tuple(residues))
    groups = [WholeAndParts(whole=whole, parts=parts) for whole in wholes if _is_pairable(whole)]
    if not groups:
        residues = [one for part in parts for one in _judge_part(case, part, origin, deadlines)]
        return MatchResult(case=case, matched=(), residues=tuple(residues))
    group = next((one for one in groups if one.adds_up), groups[0])
    others = [whole for whole in wholes if whole is not group.whole and not is_judged(whole)]
    elsewhere = _read_elsewhere(case)
    is_met, told = group.adds_up and elsewhere is None, []
    if not is_met:
        fate, reason = _judge_sum(case, group, elsewhere, deadlines)
        unjudged = [copy for copy in group.copies if not is_judged(copy)]
        about = partial(UnmatchedItem, fate=fate, reason=reason, lookup_hits=case.lookup_hits)
        if fate is not MatchStatus.SUM_DIFFERS:  # which of several wholes is the right one is known once the sum is
            waiting = tuple(about(copy=copy) for copy in (*unjudged, *others))
            return MatchResult(case=case, matched=(), residues=waiting)
        told = [about(copy=copy, group=group) for copy in unjudged[:1]]
    surplus = [one for whole in others for one in _judge_surplus(case, whole, origin, deadlines, first=group.whole)]
    return MatchResult(case=case, matched=(), residues=(*told, *surplus), added_up=(group,) if is_met else ())


def _wholes_that_wait(case: MatchGroup, wholes: Sequence[Entry], deadlines: Deadlines) -> tuple[UnmatchedItem, ...]:
    """Let several wholes of other money wait while no part is here: which of them is right is known once the sum is."""
    new = [whole for whole in wholes if _is_pairable(whole) and not is_judged(whole)]
    if len({whole.money for whole in new}) < 2:
        return ()
    told = judge_absence(case, new[0], MatchStatus.SUM_DIFFERS, deadlines)
    if told.fate not in (MatchStatus.WAITING, MatchStatus.UNSETTLED):
        return ()
    return tuple(replace(told, copy=whole) for whole in new)


def _is_pairable(copy: Entry) -> bool:
    return copy.carried is None or copy.carried.pairable


def _was_closed(case: MatchGroup) -> bool:
    """Return whether an earlier cut closed a group of the key: it has read its whole and its parts, could judge them,
    and no copy stands where nobody has read it.
    """
    if any(seen.item_id in case.undecided for seen in case.lookup_hits):
        return False
    places = [_places(case, side) for side in (ItemSide.TOPIC, ItemSide.LEDGER)]
    closed = all(RecordLocation.EARLIER_SLICE in there for there in places)
    return closed and not any(there & {RecordLocation.BEFORE_BASELINE, RecordLocation.UNREAD} for there in places)


def _places(case: MatchGroup, side: ItemSide) -> frozenset[RecordLocation]:
    """Return where other copies of a side stand, without those that are known to be too many."""
    return case.places(side, without=case.surplus_rows | case.one_too_many)


_ELSEWHERE = {
    RecordLocation.BEFORE_BASELINE: ReasonCode.BEFORE_BASELINE,
    RecordLocation.UNREAD: ReasonCode.PARTNER_UNREAD,
    RecordLocation.EARLIER_SLICE: ReasonCode.PAIRED_BEFORE,
}


def _read_elsewhere(case: MatchGroup) -> Reason | None:
    """Return why what is here is not the whole group: a copy that no item holds, read by an earlier cut or by none."""
    for side in (ItemSide.TOPIC, ItemSide.LEDGER):
        there = _places(case, side)
        for place, code in _ELSEWHERE.items():
            if place in there:
                return reason_of(code, there=ReasonSide(side.value))
    return None


def _judge_surplus(
    case: MatchGroup, copy: Entry, origin: ItemSide, deadlines: Deadlines, *, first: Entry | None = None
) -> list[UnmatchedItem]:
    """Judge what is one too many. first: the one of its side that is not; None: that one is an earlier cut's.

    A row that may have been written anew may be a part of a closed group.
    """
    if copy.side is case.parts and copy.side is ItemSide.LEDGER and deadlines.rows_may_be_older:
        return _judge_part(case, copy, origin, deadlines)
    siblings = (copy,) if first is None else (first, copy)
    if copy.side is origin:
        return judge_origin(case, copy, None, True, siblings, deadlines)
    return [judge_follower(case, copy, True, siblings[0], deadlines)]


def _judge_part(case: MatchGroup, part: Entry, origin: ItemSide, deadlines: Deadlines) -> list[UnmatchedItem]:
    """Judge a part whose whole is not here, as any copy alone."""
    if is_judged(part):
        return []
    if part.side is origin:
        return judge_origin(case, part, None, False, (part,), deadlines)
    return [judge_follower(case, part, False, part, deadlines)]


def _judge_sum(
    case: MatchGroup, group: WholeAndParts, elsewhere: Reason | None, deadlines: Deadlines
) -> tuple[MatchStatus, Reason]:
    """Judge a group that is not closed, by whether another part may be there still, or another version of a row.

    elsewhere: as `_read_elsewhere` gives it.
    """
    if elsewhere is not None:
        return MatchStatus.UNDECIDABLE, elsewhere
    if is_of_a_row_beyond_the_cut(case, *group.copies):
        return MatchStatus.WAITING, reason_of(ReasonCode.BEYOND_CUT, there=ReasonSide.LEDGER)
    absent = judge_absence(case, group.whole, MatchStatus.SUM_DIFFERS, deadlines)
    if absent.fate is MatchStatus.SUM_DIFFERS:
        return absent.fate, reason_of(ReasonCode.SUM_DIFFERS)
    return absent.fate, absent.reason
