"""Pair the copies of one match key across the two sides, as multisets, and say of each copy left over what it is.

Pure. A side is a multiset: the same key twice is two copies. The side written first is the *origin*, the other the
*follower* (topic_to_ledger: the topic is the origin). A copy consumes at most one partner.

The rule for a copy without partner is the *place* of what else stands under its key:
- something on the other side that this cut may not read yet (behind the horizon, after the cut, open): it waits;
  but a follower's row that this cut reads, while its only event is in an open producer transaction, is proven wrong:
  who reads read_committed cannot have seen it;
- something before the baseline: nobody can decide; nor where it could not be read, or may have expired unread, or was
  acknowledged at an offset of which nobody can say any more what it held; nor where a row names one as taken back that
  does not stand any more: it was there;
- a sibling that was paired, now or in an earlier slice: this copy is an extra one, a duplicate;
- nothing, and the other side has settled past the deadline: it is alone, which is proven.

A copy that pairs with one that waited, while another of its side stands where nobody has read it, unread or before the
baseline, is one too many: the two stand for one.

A reversal of ours and the copy that it takes back are taken out together before anything is paired; a copy too many
waits for one that lies beyond the cut. So are a row and its reversal that no run of this contract has judged as such,
while another row of the key stands. A row that names any other row as taken back pairs with nothing and is one too many
itself.

An event pairs by its key whatever its topic; one whose leg belongs to another topic is misrouted, also where it pairs.
A copy on a topic of no leg pairs with nothing and doubles nothing: nobody of this contract reads it.

One file, since who is whose partner and what a copy without one is are answered by the same few questions about places.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType

from tallystick.contract.compare import NO_COLUMNS, ComparedColumns
from tallystick.contract.equality import compared
from tallystick.matching.match_case import (
    BEYOND_THE_CUT,
    TAKES_BACK,
    Deadlines,
    Entry,
    MatchGroup,
    MatchResult,
    MatchStatus,
    RecordLocation,
    UnmatchedItem,
    id_of_copy,
)
from tallystick.matching.reversals import (
    any_takes_back,
    idle_reversal,
    is_taken_back_beyond,
    names_a_row_that_is_gone,
    reversals_in,
    reversals_of_unread,
    taken_back_elsewhere,
)
from tallystick.model.direction import Direction
from tallystick.model.finding_names import SURPLUS_CLASSES, BreakClass
from tallystick.model.item_reason import ReasonCode, ReasonSide, reason_of
from tallystick.model.open_item import ItemSide, ItemState

_READ_BEFORE = frozenset({RecordLocation.BEFORE_BASELINE, RecordLocation.EARLIER_SLICE, RecordLocation.UNREAD})
_NEVER_READ = frozenset({RecordLocation.BEFORE_BASELINE, RecordLocation.UNREAD})
_STANDING = BEYOND_THE_CUT | {
    RecordLocation.BEFORE_BASELINE,
    RecordLocation.EARLIER_SLICE,
    RecordLocation.UNREAD,
    RecordLocation.SLICE,
    RecordLocation.STRAY,
}
"""Places of copies that a reader may see, now or once their transaction has ended."""


def origin_side(direction: Direction) -> ItemSide:
    """Return the side that is written first."""
    return ItemSide.TOPIC if direction is Direction.TOPIC_TO_LEDGER else ItemSide.LEDGER


def other_side(side: ItemSide) -> ItemSide:
    return ItemSide.LEDGER if side is ItemSide.TOPIC else ItemSide.TOPIC


NO_LEGS: Mapping[str, str] = MappingProxyType({})


def pair_key(
    case: MatchGroup,
    *,
    direction: Direction,
    deadlines: Deadlines,
    legs: Mapping[str, str] = NO_LEGS,
    rows_keep_sign: bool = False,
    columns: ComparedColumns = NO_COLUMNS,
) -> MatchResult:
    """Pair one key. The order of rows, and on which side a copy was read first, change nothing.

    legs: leg name to topic; without them no event is misrouted. rows_keep_sign: does a row that takes one back have
    that one's amount, and not the same with the other sign? columns: compared besides money.
    """
    if not case.match_key:
        rows = [copy for copy in case.copies if not is_judged(copy)]
        return MatchResult(case=case, matched=(), residues=tuple(map(_without_key, rows)))
    if len(case.copies) == 1 and not case.copies[0].reverses and not any_takes_back(case.lookup_hits):
        alone = _judge_alone(case, case.copies[0], origin_side(direction), deadlines)
        residues = [_in_its_words(_judge_route(residue, legs), direction) for residue in alone]
        return MatchResult(case=case, matched=(), residues=tuple(residues))
    return pair_several(
        case, direction=direction, deadlines=deadlines, legs=legs, rows_keep_sign=rows_keep_sign, columns=columns
    )


def pair_several(
    case: MatchGroup,
    *,
    direction: Direction,
    deadlines: Deadlines,
    legs: Mapping[str, str],
    rows_keep_sign: bool,
    columns: ComparedColumns = NO_COLUMNS,
) -> MatchResult:
    """Pair the copies of one key. Of a copy alone it says the same as `_judge_alone`."""
    netted: tuple[tuple[Entry, Entry], ...] = ()
    idle: list[Entry] = []
    if any(copy.reverses for copy in case.copies):
        netted = tuple(reversals_in(case, rows_keep_sign=rows_keep_sign))
        case = _without(case, (copy.item_id for pair in netted for copy in pair))
        case = _without(case, reversals_of_unread(case))
    if any_takes_back((*case.copies, *case.lookup_hits)):
        case = _without(case, taken_back_elsewhere(case, rows_keep_sign=rows_keep_sign))
        idle = [copy for copy in case.side(ItemSide.LEDGER) if copy.reverses and copy.carried is None]
        case = _without(case, map(id_of_copy, idle))
    origin, follower = origin_side(direction), other_side(origin_side(direction))
    origins, followers = case.side(origin), case.side(follower)
    extras = frozenset(copy.item_id for copy in _extra_origins(case, origins, origin))
    pairs: tuple[tuple[Entry, Entry], ...] = ()
    if origins and followers:
        apart = _belongs_to_an_older_pair(case, extras, deadlines, follower=follower)
        pairs = _pair(origins, followers, apart=apart, columns=columns)
        too_many = extras.union(copy.item_id for copy in origins if _is_surplus(copy))
        if columns and too_many:
            pairs = _first_copies_first(pairs, origins, too_many, apart)
    beside = _beside_unread(case, pairs, extras)
    key_was_paired = bool(pairs) or (bool(followers) and _was_consumed(case, follower))
    partner = {copy.item_id: other for pair in pairs for copy, other in (pair, pair[::-1])}
    residues = [idle_reversal(case, copy, followers) for copy in idle]
    residues += beside
    told = {copy.item_id for residue in beside for copy in (residue.copy, residue.partner) if copy is not None}
    for copy in origins:
        if copy.item_id not in told:
            followed_by, is_extra = partner.get(copy.item_id), copy.item_id in extras
            is_equal = followed_by is not None and columns.agree(copy.compared, followed_by.compared)
            residues += judge_origin(case, copy, followed_by, is_extra, origins, deadlines, is_equal=is_equal)
    for copy in followers:
        if copy.item_id not in partner and not is_judged(copy):
            unjudged = (it for it in followers if it.item_id not in case.surplus_rows and not _is_surplus(it))
            first = next((other for other in followers if other.item_id in partner), next(unjudged, followers[0]))
            residues.append(judge_follower(case, copy, key_was_paired, first, deadlines))
    residues = [_in_its_words(_judge_route(residue, legs), direction) for residue in residues]
    if not pairs:
        return MatchResult(case=case, matched=(), residues=tuple(residues), netted=netted)
    odd = told.union(residue.copy.item_id for residue in residues)
    equal = tuple(
        pair if origin is ItemSide.TOPIC else pair[::-1]
        for pair in pairs
        if columns.agree(pair[0].compared, pair[1].compared) and pair[0].item_id not in odd
    )
    astray = {topic.item_id for topic, _ in equal if is_misrouted(topic, legs) and not _is_called_misrouted(topic)}
    return MatchResult(
        case=case,
        matched=tuple(pair for pair in equal if pair[0].item_id not in astray),
        residues=(
            *residues,
            *(_misrouted(topic, legs, partner=ledger) for topic, ledger in equal if topic.item_id in astray),
        ),
        netted=netted,
    )


def _judge_alone(case: MatchGroup, copy: Entry, origin: ItemSide, deadlines: Deadlines) -> list[UnmatchedItem]:
    """Judge the only copy of a key. Nothing has to be paired, which is most of a window that is broken throughout."""
    if copy.side is origin:
        is_extra = copy.carried is None and _was_consumed(case, origin)
        return judge_origin(case, copy, None, is_extra, (copy,), deadlines)
    if is_judged(copy):
        return []
    return [judge_follower(case, copy, _was_consumed(case, copy.side), copy, deadlines)]


def _without_key(copy: Entry) -> UnmatchedItem:
    return UnmatchedItem(copy=copy, fate=MatchStatus.WITHOUT_KEY, reason=reason_of(ReasonCode.WITHOUT_KEY))


def _in_its_words(residue: UnmatchedItem, direction: Direction) -> UnmatchedItem:
    """Word the reasons for a ledger; where an input topic plays its part, for that."""
    if direction is not Direction.TOPIC_TO_TOPIC:
        return residue
    return replace(residue, reason=residue.reason.of_inputs())


def _without(case: MatchGroup, item_ids: Iterable[str]) -> MatchGroup:
    gone = set(item_ids)
    return replace(
        case,
        copies=tuple(copy for copy in case.copies if copy.item_id not in gone),
        lookup_hits=tuple(seen for seen in case.lookup_hits if seen.item_id not in gone),
    )


def is_misrouted(copy: Entry, legs: Mapping[str, str]) -> bool:
    """Return whether an event names a leg that another topic belongs to. One that names no leg of the contract is not
    judged.
    """
    return copy.side is ItemSide.TOPIC and legs.get(copy.leg, topic_of(copy.item_id)) != topic_of(copy.item_id)


def _is_called_misrouted(copy: Entry) -> bool:
    """Return whether an earlier run called it misrouted: a follower that comes after all clears it."""
    return copy.carried is not None and copy.carried.found_as is BreakClass.MISROUTED_IN_TOPIC


def topic_of(item_id: str) -> str:
    """Return the topic that an event's item id names."""
    return item_id.removeprefix("topic:").rsplit(":", 2)[0]


def _judge_route(residue: UnmatchedItem, legs: Mapping[str, str]) -> UnmatchedItem:
    """Explain a missing follower by the wrong topic. Nothing else is: an event without origin stays one."""
    if residue.fate is MatchStatus.FOLLOWER_ABSENT and is_misrouted(residue.copy, legs):
        return replace(_misrouted(residue.copy, legs), lookup_hits=residue.lookup_hits)
    return residue


def _misrouted(copy: Entry, legs: Mapping[str, str], *, partner: Entry | None = None) -> UnmatchedItem:
    reason = reason_of(ReasonCode.MISROUTED, about=legs[copy.leg])
    return UnmatchedItem(copy=copy, fate=MatchStatus.MISROUTED, reason=reason, partner=partner)


def _belongs_to_an_older_pair(
    case: MatchGroup, extras: Collection[str], deadlines: Deadlines, *, follower: ItemSide
) -> Callable[..., bool]:
    """Return whether two copies are no pair, since a follower of the key stands elsewhere already, before these.

    Where the origin is one too many itself, its follower is its own, and nothing more is said of it. Nor is it where
    one of them waited, unless for a row that may be the one of then, written anew: what follows that repeats.
    """
    there = case.places(follower, without=case.surplus_rows) & _READ_BEFORE
    if not there:
        return lambda origin, other: False

    def apart(origin: Entry, other: Entry) -> bool:
        if origin.item_id in extras:
            return False
        if origin.carried is None and other.carried is None:
            return True
        read = follower is ItemSide.TOPIC and there != {RecordLocation.UNREAD}
        return read and _may_be_written_anew(origin, deadlines) and not (is_judged(origin) or is_judged(other))

    return apart


def _may_be_written_anew(row: Entry, deadlines: Deadlines) -> bool:
    """Return whether the guard of older rows leaves it open that the row was read before."""
    if row.carried is None or row.is_new_version:
        return deadlines.rows_may_be_older
    return _may_be_older(row, deadlines)


def _pair(
    origins: Iterable[Entry],
    followers: Iterable[Entry],
    *,
    apart: Callable[[Entry, Entry], bool],
    columns: ComparedColumns,
) -> tuple[tuple[Entry, Entry], ...]:
    """Pair equal copies first, or as many as tolerances let agree, then those of the same money, then the rest in
    order, without copies that may not be paired any more. apart: are no pair. Of very many copies each takes the first
    that agrees.
    """
    free_origins = [copy for copy in origins if copy.carried is None or copy.carried.pairable]
    free_followers = [copy for copy in followers if copy.carried is None or copy.carried.pairable]
    pairs: list[tuple[Entry, Entry]] = []

    def take(wanted: Callable[[Entry, Entry], bool]) -> None:
        for copy in tuple(free_origins):
            partner = next((one for one in free_followers if wanted(copy, one) and not apart(copy, one)), None)
            if partner is not None:
                pairs.append((copy, partner))
                free_origins.remove(copy)
                free_followers.remove(partner)

    if columns and len(free_origins) * len(free_followers) <= _CHOICES_MAX:
        followed = _most_that_agree(free_origins, free_followers, columns, apart)
        take(lambda copy, one: followed.get(copy.item_id) == one.item_id)
    else:
        take(lambda copy, one: columns.agree(one.compared, copy.compared))
    if columns:
        take(lambda copy, one: copy.compared.money == one.compared.money)
    take(lambda copy, one: True)
    return tuple(pairs)


def _first_copies_first(
    pairs: Iterable[tuple[Entry, Entry]],
    origins: Iterable[Entry],
    too_many: Collection[str],
    apart: Callable[[Entry, Entry], bool],
) -> tuple[tuple[Entry, Entry], ...]:
    """Return the pairs, with a first copy in the place of one too many where the follower has its money, and it has
    none of its money itself: one follower stands for it, whichever of the two that repeats in its other columns.
    """
    followed = {origin.item_id: (origin, follower) for origin, follower in pairs}

    def lacks(copy: Entry, follower: Entry) -> bool:
        own = followed.get(copy.item_id)
        return (
            copy.item_id not in too_many
            and (copy.carried is None or copy.carried.pairable)
            and copy.compared.money == follower.compared.money
            and (own is None or own[1].compared.money != copy.compared.money)
            and not apart(copy, follower)
        )

    for origin, follower in tuple(followed.values()):
        first = next((copy for copy in origins if lacks(copy, follower)), None)
        if origin.item_id in too_many and first is not None:
            own = followed.pop(first.item_id, None)
            del followed[origin.item_id]
            followed[first.item_id] = first, follower
            if own is not None and not apart(origin, own[1]):
                followed[origin.item_id] = origin, own[1]
    return tuple(followed.values())


_CHOICES_MAX = 10_000
"""Origins times followers of one key up to which all choices are weighed: whoever writes may write one key often."""


def _most_that_agree(
    origins: Iterable[Entry],
    followers: Iterable[Entry],
    columns: ComparedColumns,
    apart: Callable[[Entry, Entry], bool],
) -> dict[str, str]:
    """Return followers by their origins, as item ids, so that no other choice leaves fewer pairs that differ. An equal
    follower is taken before one that is near enough, if that costs no pair. Source: Kuhn's algorithm, augmenting paths.
    """
    candidates = {
        copy.item_id: [
            one.item_id
            for one in sorted(followers, key=lambda one: one.compared != copy.compared)  # used at once
            if columns.agree(copy.compared, one.compared) and not apart(copy, one)
        ]
        for copy in origins
    }
    origin_of: dict[str, str] = {}

    def find(origin: str, seen: set[str]) -> bool:
        for follower in candidates[origin]:
            if follower not in seen:
                seen.add(follower)
                if follower not in origin_of or find(origin_of[follower], seen):
                    origin_of[follower] = origin
                    return True
        return False

    for origin in candidates:
        find(origin, set())
    return {origin: follower for follower, origin in origin_of.items()}


def _beside_unread(
    case: MatchGroup, pairs: Iterable[tuple[Entry, Entry]], extras: Collection[str]
) -> list[UnmatchedItem]:
    """Return a copy of each pair that was read in several cuts, where another copy of its side stands unread: the two
    stand for one, whichever of them is whose partner. Of the origin where there is one, else of the follower.
    """
    found = []
    for pair in pairs:
        if pair[0].item_id in extras or all(copy.carried is None for copy in pair) or any(map(_is_surplus, pair)):
            continue
        for copy, partner in (pair, pair[::-1]):
            if _NEVER_READ & case.places(copy.side, without=case.surplus_rows) and _stands(case, copy):
                reason = reason_of(ReasonCode.BESIDE_UNREAD)
                hits = case.lookup_hits
                found.append(
                    UnmatchedItem(copy=copy, fate=MatchStatus.EXTRA, reason=reason, partner=partner, lookup_hits=hits)
                )
                break
    return found


def _is_surplus(copy: Entry) -> bool:
    return copy.carried is not None and copy.carried.found_as in SURPLUS_CLASSES


def _stands(case: MatchGroup, copy: Entry) -> bool:
    """Return whether a row is there still: its owner may have replaced it by the other one. An event stays."""
    return copy.side is ItemSide.TOPIC or any(seen.item_id == copy.item_id for seen in case.lookup_hits)


def _was_consumed(case: MatchGroup, side: ItemSide) -> bool:
    """Return whether an earlier cut paired this key, so that one more copy on this side is a surplus one.

    Two of one key are two, whoever has read the first, and whether anybody has: another copy that stands on this side
    before the cut, before the baseline too, is the first. A row that stands alone is no second one: an UPDATE wrote it
    anew, under its row id. The log forgets, so for an event its row will do, once a cut has read it, and it is the
    first: beside one from before the baseline it is itself a second one, which has had no event. One that was a second
    one to a row that no cut has read tells nothing of events without a row of their own, also where that
    row has gone.
    """
    if case.places(side, without=case.surplus_rows) & _READ_BEFORE:
        return True
    if side is not ItemSide.TOPIC:
        return False
    second_ones = frozenset[str]() if case.side(ItemSide.LEDGER) else case.beside_unread
    rows = case.places(ItemSide.LEDGER, without=second_ones)
    if RecordLocation.UNREAD in rows:  # then what was one too many was so beside a row that had no event yet
        rows = case.places(ItemSide.LEDGER, without=case.one_too_many)
    return RecordLocation.EARLIER_SLICE in rows and RecordLocation.BEFORE_BASELINE not in rows


def _extra_origins(case: MatchGroup, origins: tuple[Entry, ...], origin: ItemSide) -> tuple[Entry, ...]:
    """Return new copies beyond the key's first: one copy of a key is right, even where the follower doubled it too."""
    new = [copy for copy in origins if copy.carried is None]
    if not new:
        return ()
    carried = [copy for copy in origins if copy.carried is not None and copy.item_id not in case.surplus_rows]
    has_first = bool(carried) or _was_consumed(case, origin)
    return tuple(new if has_first else new[1:])


def judge_origin(
    case: MatchGroup,
    copy: Entry,
    partner: Entry | None,
    is_extra: bool,
    origins: tuple[Entry, ...],
    deadlines: Deadlines,
    *,
    is_equal: bool = False,
) -> list[UnmatchedItem]:
    """is_equal: does the partner agree in all that is compared?"""
    if is_extra:
        original = None if copy is origins[0] else origins[0]
        reason = reason_of(ReasonCode.EXTRA_WAS_FOLLOWED if partner else ReasonCode.EXTRA_ALONE)
        return [
            UnmatchedItem(
                copy=copy,
                fate=MatchStatus.EXTRA,
                reason=reason,
                partner=partner,
                original=original,
                lookup_hits=case.lookup_hits,
            )
        ]
    if partner is not None:
        if is_equal:
            return []
        if is_of_a_row_beyond_the_cut(case, copy, partner):
            return _await_the_row(copy if copy.side is ItemSide.TOPIC else partner, deadlines)
        differ = reason_of(ReasonCode.FIELDS_DIFFER)
        if _is_surplus(copy):  # it stays what it was called; the follower answers for the difference
            return [UnmatchedItem(copy=partner, fate=MatchStatus.UNEQUAL, reason=differ, partner=copy)]
        return [UnmatchedItem(copy=copy, fate=MatchStatus.UNEQUAL, reason=differ, partner=partner)]
    if is_judged(copy):
        return []
    if _repeats_one_before_the_baseline(case, copy):
        alone = reason_of(ReasonCode.EXTRA_ALONE)
        return [UnmatchedItem(copy=copy, fate=MatchStatus.EXTRA, reason=alone, lookup_hits=case.lookup_hits)]
    return [judge_absence(case, copy, MatchStatus.FOLLOWER_ABSENT, deadlines)]


def _repeats_one_before_the_baseline(case: MatchGroup, event: Entry) -> bool:
    """Return whether an event that waited, while nobody asked the log, has an older one: its follower is that one's.
    Of parts it may be another one.
    """
    return (
        event.side is ItemSide.TOPIC
        and event.side is not case.parts
        and event.carried is not None
        and RecordLocation.BEFORE_BASELINE in case.places(ItemSide.TOPIC)
    )


def is_of_a_row_beyond_the_cut(case: MatchGroup, *pair: Entry) -> bool:
    """Return whether the pair's row is an earlier cut's, and has been written anew since where this cut may not read:
    it says something else by now, and the event may have come behind that.
    """
    rows = {one.item_id for one in pair if one.side is ItemSide.LEDGER and one.carried and not one.is_new_version}
    return any(
        seen.side is ItemSide.LEDGER and seen.item_id in rows and seen.place in BEYOND_THE_CUT
        for seen in case.lookup_hits
    )


def _await_the_row(event: Entry, deadlines: Deadlines) -> list[UnmatchedItem]:
    """Let an event wait for a row beyond the cut; the row's own item waits as it stands."""
    if is_judged(event):
        return []
    fate, code = _beyond_the_cut(event, ItemSide.LEDGER, deadlines)
    return [UnmatchedItem(copy=event, fate=fate, reason=reason_of(code, there=ReasonSide.LEDGER))]


def _beyond_the_cut(copy: Entry, there: ItemSide, deadlines: Deadlines) -> tuple[MatchStatus, ReasonCode]:
    if there is ItemSide.LEDGER and deadlines.due(copy) <= deadlines.now_utc and _waited_beyond_the_cut(copy):
        return MatchStatus.UNSETTLED, ReasonCode.BEYOND_EVERY_CUT
    return MatchStatus.WAITING, ReasonCode.BEYOND_CUT


def judge_follower(
    case: MatchGroup, copy: Entry, key_was_paired: bool, first: Entry, deadlines: Deadlines
) -> UnmatchedItem:
    places = case.places(other_side(copy.side))
    due = deadlines.due(copy) <= deadlines.now_utc  # until then the first waits too, and would repeat this one
    only_one = (
        RecordLocation.BEFORE_BASELINE in places
        or (due and _only_one_stands(case, other_side(copy.side), RecordLocation.UNREAD))
        or _has_one_event_of_an_earlier_cut(case, copy)
    )
    taken = key_was_paired or (only_one and copy is not first)
    if copy is first and copy.carried is not None and not case.places(copy.side) & _READ_BEFORE:
        taken = False  # it waited while its key was read, and nothing else is there that it could repeat
    if taken and is_taken_back_beyond(case, copy):
        return UnmatchedItem(copy=copy, fate=MatchStatus.WAITING, reason=reason_of(ReasonCode.BEYOND_CUT))
    if taken and not places & BEYOND_THE_CUT:
        original = None if copy is first else first
        return UnmatchedItem(
            copy=copy,
            fate=MatchStatus.EXTRA,
            reason=reason_of(ReasonCode.KEY_WAS_PAIRED),
            original=original,
            lookup_hits=case.lookup_hits,
        )
    if copy is first and not taken and places & _STANDING == {RecordLocation.OPEN}:
        reason = reason_of(ReasonCode.ORIGIN_STILL_OPEN)
        return UnmatchedItem(copy=copy, fate=MatchStatus.ORIGIN_OPEN, reason=reason, lookup_hits=case.lookup_hits)
    return judge_absence(case, copy, MatchStatus.ORIGIN_ABSENT, deadlines)


def _has_one_event_of_an_earlier_cut(case: MatchGroup, row: Entry) -> bool:
    """Return whether the key has one event, which an earlier cut has read: an UPDATE may have written its row anew, but
    no second one, whatever has expired unread.
    """
    return row.side is ItemSide.LEDGER and _only_one_stands(case, ItemSide.TOPIC, RecordLocation.EARLIER_SLICE)


def _only_one_stands(case: MatchGroup, side: ItemSide, place: RecordLocation) -> bool:
    """Return whether the key's only copy on that side stands there: it has one follower, whichever that is."""
    known = {copy.item_id for copy in case.copies}
    there = [seen for seen in case.lookup_hits if seen.side is side and seen.place in _STANDING]
    others = [seen.place for seen in there if seen.item_id not in known and not seen.detail.get("reverses")]
    return others == [place]


def _waited_beyond_the_cut(event: Entry) -> bool:
    """Return whether an earlier run let it wait for such a row already. A row that is rewritten after every cut is
    never in one.

    An input topic's events are not written anew: they are waited for as long as they lie beyond the cut.
    """
    if event.carried is None:
        return False
    reason = event.carried.reason
    return reason.side is ReasonSide.LEDGER and reason.code in (ReasonCode.BEYOND_CUT, ReasonCode.BEYOND_EVERY_CUT)


def is_judged(copy: Entry) -> bool:
    """Return whether an earlier run broke it or wrote it off: it may find a partner, but is not judged twice."""
    return copy.carried is not None and copy.carried.state is not ItemState.OPEN


def judge_absence(case: MatchGroup, copy: Entry, absent: MatchStatus, deadlines: Deadlines) -> UnmatchedItem:
    """Judge a copy without partner: it waits, is undecidable, or is proven. Proof needs the other side settled past its
    deadline.
    """
    there = other_side(copy.side)
    places, due = case.places(there), deadlines.due(copy)
    settled_until, other = deadlines.settled_until(there), None
    could_stand = there is ItemSide.TOPIC and RecordLocation.LOST not in places
    is_held_back = settled_until is None or settled_until < due  # what may have expired may be there still, unread
    if places & BEYOND_THE_CUT:
        fate, code = _beyond_the_cut(copy, there, deadlines)
    elif RecordLocation.BEFORE_BASELINE in places:
        fate, code = MatchStatus.UNDECIDABLE, ReasonCode.BEFORE_BASELINE
    elif (
        RecordLocation.EARLIER_SLICE in places and copy.carried is None and (other := _event_of_other_money(case, copy))
    ):
        fate, code = MatchStatus.UNEQUAL, ReasonCode.OTHER_MONEY_THAN_PAIRED
    elif RecordLocation.EARLIER_SLICE in places and copy.carried is None and deadlines.rows_may_be_older:
        fate, code = MatchStatus.UNDECIDABLE, ReasonCode.WRITTEN_ANEW
    elif RecordLocation.EARLIER_SLICE in places and copy.carried is None:
        fate, code = MatchStatus.PAIRED_BEFORE, ReasonCode.PAIRED_BEFORE
    elif due > deadlines.now_utc:
        fate, code = MatchStatus.WAITING, ReasonCode.WITHIN_GRACE
    elif (
        RecordLocation.EARLIER_SLICE in places
        and not is_of_a_row_beyond_the_cut(case, copy)
        and (other := _event_of_other_money(case, copy))
    ):
        fate, code = MatchStatus.UNEQUAL, ReasonCode.FIELDS_DIFFER  # at an offset that was read as another record
    elif there is ItemSide.TOPIC and is_held_back and places <= {RecordLocation.ABORTED}:
        fate, code = MatchStatus.UNSETTLED, ReasonCode.SIDE_HELD_BACK
    elif could_stand and _event_may_have_expired(case, copy, deadlines):
        fate, code = MatchStatus.PARTNER_EXPIRED, ReasonCode.OFFSETS_EXPIRED
    elif could_stand and _may_be_older(copy, deadlines):
        fate, code = MatchStatus.PARTNER_EXPIRED, ReasonCode.MAY_BE_OLDER
    elif there is ItemSide.LEDGER and deadlines.inputs_out_of_sight:
        fate, code = MatchStatus.PARTNER_EXPIRED, ReasonCode.INPUT_OUT_OF_SIGHT
    elif places & {RecordLocation.SLICE, RecordLocation.EARLIER_SLICE, RecordLocation.UNREAD}:
        fate, code = MatchStatus.PARTNER_UNREAD, ReasonCode.PARTNER_UNREAD
    elif is_held_back:
        fate, code = MatchStatus.UNSETTLED, ReasonCode.SIDE_HELD_BACK
    elif RecordLocation.EXPIRED in places and RecordLocation.STRAY not in places:
        fate, code = MatchStatus.PARTNER_EXPIRED, ReasonCode.ACKNOWLEDGED_OFFSET_EXPIRED
    elif there is ItemSide.LEDGER and names_a_row_that_is_gone(case.lookup_hits):
        fate, code = MatchStatus.PARTNER_EXPIRED, ReasonCode.TAKEN_BACK_ROW_GONE
    else:
        fate, code = absent, ReasonCode.SETTLED_WITHOUT_IT
    reason = reason_of(code, there=ReasonSide(there.value))
    return UnmatchedItem(copy=copy, fate=fate, reason=reason, partner=other, lookup_hits=case.lookup_hits)


def _event_may_have_expired(case: MatchGroup, row: Entry, deadlines: Deadlines) -> bool:
    unseen, first_seen = deadlines.out_of_sight, deadlines.first_seen_by(row.carried)
    if deadlines.topic_lost_offsets or first_seen in unseen.events_lost:
        return True
    return first_seen in unseen.have_older_rows and not _is_younger_than_the_books(case, row, unseen.older_below)


def _is_younger_than_the_books(case: MatchGroup, row: Entry, older_below: int) -> bool:
    """Return whether a look-up shows the row at a position that was given out once the books had begun."""
    positions = (seen.detail.get("transaction_id") for seen in case.lookup_hits if seen.item_id == row.item_id)
    return older_below > 0 and any(position is not None and position >= older_below for position in positions)


def _may_be_older(row: Entry, deadlines: Deadlines) -> bool:
    return deadlines.first_seen_by(row.carried) in deadlines.out_of_sight.rows_may_be_older


def _event_of_other_money(case: MatchGroup, row: Entry) -> Entry | None:
    """Return the event of the key below this cut, if its money differs from the row's: of one that was written anew or
    replaced its own, or of one that waited while the log was cut back and written anew there. None where they are
    equal, where one cannot be read, and where not one event has one row. A repair that takes an event back is none.
    """
    if row.side is not ItemSide.LEDGER or case.parts is not None:
        return None
    read = [
        seen for seen in case.lookup_hits if seen.side is ItemSide.TOPIC and seen.place is RecordLocation.EARLIER_SLICE
    ]
    events = [seen for seen in read if TAKES_BACK not in seen.detail]
    if not events or any("amount_minor" not in seen.detail for seen in events):
        return None
    said = [(int(seen.detail["amount_minor"]), str(seen.detail["currency"])) for seen in events]
    own = compared(row.amount_minor, row.currency, ignore_case=True)
    if any(compared(amount_minor, currency, ignore_case=True) == own for amount_minor, currency in said):
        return None
    amount_minor, currency = said[0]
    return replace(
        row,
        side=ItemSide.TOPIC,
        item_id=events[0].item_id,
        amount_minor=amount_minor,
        currency=currency,
        carried=None,
    )
