"""Events and rows that take another one back. Pure."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tallystick.kafka_log.record import LogRecord
from tallystick.matching.grouping import (
    copy_of_item,
)
from tallystick.matching.match_case import (
    BEYOND_THE_CUT,
    Entry,
    LookupHit,
    MatchGroup,
    MatchStatus,
    RecordLocation,
    UnmatchedItem,
    id_of_copy,
)
from tallystick.matching.scan_result import place_in_order
from tallystick.model.finding_names import SURPLUS_CLASSES, BreakClass
from tallystick.model.item_reason import ReasonCode, reason_of
from tallystick.model.open_item import ItemSide, ItemState, OpenItem

_BELOW_THE_SLICE = frozenset({RecordLocation.BEFORE_BASELINE, RecordLocation.EARLIER_SLICE, RecordLocation.UNREAD})


def may_be_taken_back(item: OpenItem) -> bool:
    """Return whether an earlier run judged this copy a surplus one, also where a repair of it had no effect."""
    return (
        item.side is not ItemSide.LEGS
        and item.state in (ItemState.BROKEN, ItemState.WRITTEN_OFF)
        and item.found_as in SURPLUS_CLASSES | {BreakClass.COMPENSATION_NOT_EFFECTIVE}
    )


def reversals_in(case: MatchGroup, *, rows_keep_sign: bool) -> Iterable[tuple[Entry, Entry]]:
    """Return each surplus copy with the first new one that takes it back: same leg, currency and money.

    A copy that no run of this contract has judged, and that a compensation takes back, was a surplus one to another.
    Any other event that names a copy as reversed is an event like every other, and one too many itself.
    A copy is taken back by what names it first, and then by what names a row of ours that it repeats. Where such a row
    of ours is read anew together with its reversal, both are gone, and with them what the other one repeated.
    """
    copies = (*case.side(ItemSide.TOPIC), *case.side(ItemSide.LEDGER))
    free = [copy for copy in copies if copy.carried is None and copy.reverses]
    surplus = [copy for copy in copies if _may_be_taken_back_now(copy)]
    for names in (_itself, _rows_of_ours_doubled_by):  # else one that names another copy is left for it
        for copy in tuple(surplus):
            places, expected = names(case, copy), _amounts_taking_back(copy, rows_keep_sign=rows_keep_sign)
            reversal = next(
                (
                    one
                    for one in free
                    if one.reverses in places and _is_beside(one, copy) and one.amount_minor in expected
                    if one.action_id or not _is_not_judged(copy)
                ),
                None,
            )
            if reversal is not None:
                free.remove(reversal)
                surplus.remove(copy)
                yield copy, reversal
                repeated = next((one for one in surplus if _repeats_alone(case, one, copy)), None)
                if repeated is not None:
                    surplus.remove(repeated)
                    yield repeated, reversal


def _repeats_alone(case: MatchGroup, judged: Entry, ours: Entry) -> bool:
    """Return whether a row was judged one too many beside a row of ours that no run has judged, and beside no other."""
    standing = rows_of_ours(case.lookup_hits, judged, new=frozenset(map(id_of_copy, case.copies)))
    return (
        bool(ours.action_id)
        and ours.side is judged.side is ItemSide.LEDGER
        and _is_not_judged(ours)
        and not _is_not_judged(judged)
        and judged.money == ours.money
        and judged.carried is not None
        and judged.carried.found_as is BreakClass.DUPLICATE_IN_LEDGER_COMPENSATED
        and not [seen for seen in standing if seen.item_id != ours.item_id]
    )


def _itself(case: MatchGroup, copy: Entry) -> tuple[str, ...]:
    return (copy.item_id,)


def _may_be_taken_back_now(copy: Entry) -> bool:
    if copy.carried is not None and may_be_taken_back(copy.carried):
        return True
    return _is_not_judged(copy) and not copy.reverses


def _is_not_judged(copy: Entry) -> bool:
    """Return whether no run has said yet that it is wrong, be it that none could."""
    return copy.carried is None or copy.carried.state in (ItemState.OPEN, ItemState.UNDECIDABLE)


def any_takes_back(rows: Iterable[Entry | LookupHit]) -> bool:
    """Return whether one of these takes another one back."""
    return any(one.reverses if isinstance(one, Entry) else "reverses" in one.detail for one in rows)


def taken_back_elsewhere(case: MatchGroup, *, rows_keep_sign: bool) -> frozenset[str]:
    """Return item ids of rows that a compensation's row takes back, and of those that do, where this cut reads one of
    the two at most, and another row of the key stands, beyond the cut too.

    To another contract the row was one too many: its books may have begun before these, or have lost what these have
    read. Or an earlier run has netted the two, and one was written anew since, or both, and the one that is taken back
    lies beyond the cut by now.
    """
    known = {copy.item_id for copy in case.copies}
    new = {copy.item_id: _Row.of_copy(copy) for copy in case.side(ItemSide.LEDGER) if copy.carried is None}
    older = {
        seen.item_id: _Row.of_hit(seen)
        for seen in case.lookup_hits
        if seen.side is ItemSide.LEDGER and seen.place in _BELOW_THE_SLICE and seen.item_id not in known
    }
    beyond = {
        seen.item_id: _Row.of_hit(seen)
        for seen in case.lookup_hits
        if seen.side is ItemSide.LEDGER and seen.place is RecordLocation.PENDING and seen.item_id not in known
    }
    standing = {copy.item_id for copy in case.side(ItemSide.LEDGER) if not copy.reverses}
    standing |= {item_id for item_id, row in {**older, **beyond}.items() if not row.reverses}
    standing -= {row.reverses for row in beyond.values()}
    found: set[str] = set()
    taken_back: set[str] = set()
    for item_id, reversal in sorted({**new, **older}.items(), key=lambda one: place_in_order(one[0])):
        others = standing - taken_back - {reversal.reverses}
        if reversal.reverses in taken_back:
            continue
        if reversal.action_id and reversal.reverses in beyond and others:
            found |= {item_id} & new.keys()
            taken_back.add(reversal.reverses)
            continue
        named = older.get(reversal.reverses) or (new.get(reversal.reverses) if item_id in older else None)
        if named is None or not reversal.action_id or named.reverses:
            continue
        if others and named.taken_back_by(rows_keep_sign) == (reversal.amount_minor, reversal.currency):
            found |= {item_id, reversal.reverses}
            taken_back.add(reversal.reverses)
    return frozenset(found)


def reversals_of_unread(case: MatchGroup) -> frozenset[str]:
    """Return item ids of events with which a compensation takes another one back that stands in a cut closed unread: to
    another contract, which has read it, that was one too many.

    The one taken back stays: whatever else the key has is judged beside what nobody has read.
    """
    unread = {
        seen.item_id: (seen.detail.get("amount_minor"), seen.detail.get("currency"))
        for seen in case.lookup_hits
        if seen.side is ItemSide.TOPIC and seen.place is RecordLocation.UNREAD
    }
    found: dict[str, str] = {}
    for copy in case.side(ItemSide.TOPIC):
        amount, currency = unread.get(copy.reverses, (None, None))
        is_ours = copy.carried is None and copy.action_id
        if is_ours and currency == copy.currency and amount in (copy.amount_minor, -copy.amount_minor):
            found.setdefault(copy.reverses, copy.item_id)
    return frozenset(found.values())


@dataclass(frozen=True, kw_only=True)
class _Row:
    """The little that says whether a row takes another one back. amount_minor: None where a look-up does not say it."""

    amount_minor: int | None
    currency: str
    reverses: str
    action_id: str

    @classmethod
    def of_copy(cls, copy: Entry) -> "_Row":
        return cls(
            amount_minor=copy.amount_minor, currency=copy.currency, reverses=copy.reverses, action_id=copy.action_id
        )

    @classmethod
    def of_hit(cls, seen: LookupHit) -> "_Row":
        said = seen.detail
        return cls(
            amount_minor=said.get("amount_minor"),
            currency=str(said.get("currency", "")),
            reverses=str(said.get("reverses", "")),
            action_id=str(said.get("action_id", "")),
        )

    def taken_back_by(self, rows_keep_sign: bool) -> tuple[int, str] | None:
        """Return the money of a row that takes this one back."""
        if self.amount_minor is None:
            return None
        return (self.amount_minor if rows_keep_sign else -self.amount_minor), self.currency


def is_taken_back_beyond(case: MatchGroup, copy: Entry) -> bool:
    """Return whether a reversal of ours, of this row or of one with its money that it repeats, lies beyond the cut."""
    beyond = {
        seen.item_id: seen.detail["reverses"]
        for seen in case.lookup_hits
        if seen.place in BEYOND_THE_CUT and seen.detail.get("action_id") and seen.detail.get("reverses")
    }
    if not beyond:
        return False
    repeated = {
        seen.item_id
        for seen in case.lookup_hits
        if seen.side is ItemSide.LEDGER and (seen.detail.get("amount_minor"), seen.detail.get("currency")) == copy.money
    }
    return not {copy.item_id, *repeated}.isdisjoint(beyond.values())


def _rows_of_ours_doubled_by(case: MatchGroup, copy: Entry) -> tuple[str, ...]:
    """Return item ids of rows that compensations posted and this one repeats: either of two equal rows may be taken
    back.
    """
    if copy.side is not ItemSide.LEDGER:
        return ()
    return tuple(
        seen.item_id for seen in rows_of_ours(case.lookup_hits, copy, new=frozenset(map(id_of_copy, case.copies)))
    )


def rows_of_ours(lookup_hits: Iterable[LookupHit], copy: Entry, *, new: Collection[str] = ()) -> tuple[LookupHit, ...]:
    """Return other rows with this one's money that a compensation posted, and that no row takes back. new: rows that do
    not count as such, since they are judged just now.
    """
    rows = [seen for seen in lookup_hits if seen.side is ItemSide.LEDGER and seen.item_id != copy.item_id]
    taken_back = {seen.detail.get("reverses") for seen in rows if seen.item_id not in new}
    return tuple(
        seen
        for seen in rows
        if seen.detail.get("action_id")
        and not seen.detail.get("reverses")
        and seen.item_id not in taken_back
        and (seen.detail.get("amount_minor"), seen.detail.get("currency")) == copy.money
    )


def _amounts_taking_back(copy: Entry, *, rows_keep_sign: bool) -> tuple[int, ...]:
    """Return the amounts that take a copy back. An event may have either sign: consumers go by its header."""
    if copy.side is ItemSide.TOPIC:
        return copy.amount_minor, -copy.amount_minor
    return (copy.amount_minor if rows_keep_sign else -copy.amount_minor,)


def _is_beside(reversal: Entry, copy: Entry) -> bool:
    return (reversal.side, reversal.transaction_key, reversal.leg, reversal.currency) == (
        copy.side,
        copy.transaction_key,
        copy.leg,
        copy.currency,
    )


def idle_reversal(case: MatchGroup, copy: Entry, followers: tuple[Entry, ...]) -> UnmatchedItem:
    """Return a row that names one as taken back, and does not take it back: it is booked, and matches no event."""
    return UnmatchedItem(
        copy=copy,
        fate=MatchStatus.EXTRA,
        reason=reason_of(ReasonCode.IDLE_REVERSAL, about=copy.reverses),
        original=next(iter(followers), None),
        lookup_hits=case.lookup_hits,
    )


def names_a_row_that_is_gone(lookup_hits: Iterable[LookupHit]) -> bool:
    """Return whether a row of the key takes one back that does not stand there any more: deleted, or archived. It was
    the key's own, for all that anybody knows; with it, what was posted is there still.
    """
    rows = [seen for seen in lookup_hits if seen.side is ItemSide.LEDGER]
    standing = {row_id for seen in rows for row_id in (seen.item_id, seen.item_id.partition("#")[0])}
    return any(seen.detail.get("reverses", seen.item_id) not in standing for seen in rows)


def possible_reversals(
    cases: Iterable[MatchGroup], surplus_items: Iterable[OpenItem], *, beside_closed: bool = False
) -> frozenset[str]:
    """Return item ids of the new events whose key has a surplus copy, or copies of either sign that no run has judged:
    only the log knows whether they take one back. beside_closed: what they take back may stand in a cut closed unread.
    """
    keys = {item.match_key for item in surplus_items if item.side is ItemSide.TOPIC}
    return frozenset(
        copy.item_id
        for case in cases
        if beside_closed or case.match_key in keys or _has_both_signs(case)
        for copy in case.side(ItemSide.TOPIC)
        if copy.carried is None
    )


def _has_both_signs(case: MatchGroup) -> bool:
    said = [copy.amount_minor for copy in case.copies if copy.side is ItemSide.TOPIC and _is_not_judged(copy)]
    return len(said) > 1 and min(said) < 0 < max(said)


def with_reversals(
    cases: Iterable[MatchGroup], records: Mapping[str, LogRecord], surplus_items: Mapping[str, OpenItem]
) -> tuple[MatchGroup, ...]:
    """Return the same cases; an event that takes another one back names it, and stands beside it.

    records, surplus_items: by item id.
    """
    if not records:
        return tuple(cases)
    return tuple(_with_what_it_reverses(case, records, surplus_items) for case in cases)


def _with_what_it_reverses(
    case: MatchGroup, records: Mapping[str, LogRecord], surplus_items: Mapping[str, OpenItem]
) -> MatchGroup:
    if not any(copy.item_id in records for copy in case.copies):
        return case
    copies = [_naming_what_it_reverses(copy, records.get(copy.item_id)) for copy in case.copies]
    known = {copy.item_id for copy in copies}
    named = sorted({copy.reverses for copy in copies if copy.reverses in surplus_items} - known)
    beside = [copy_of_item(surplus_items[item_id], ignore_case=False) for item_id in named]
    return replace(case, copies=(*copies, *(copy for copy in beside if copy.match_key == case.match_key)))


def _naming_what_it_reverses(copy: Entry, record: LogRecord | None) -> Entry:
    if record is None or not record.reverses:
        return copy
    return replace(copy, reverses=record.reverses, action_id=record.action_id)


def with_row_reversals(
    cases: Iterable[MatchGroup], lookup_hits: Mapping[str, Sequence[LookupHit]], surplus_items: Iterable[OpenItem]
) -> tuple[MatchGroup, ...]:
    """Return the same cases; a row names what it takes back and what wrote it, beside the surplus rows.

    lookup_hits: by match key; all that is known of the rows.
    """
    extra: dict[str, list[OpenItem]] = {}
    for item in surplus_items:
        if item.side is ItemSide.LEDGER:
            extra.setdefault(item.match_key, []).append(item)
    return tuple(
        _with_surplus_rows(
            _with_what_rows_say(case, lookup_hits.get(case.match_key, ())), extra.get(case.match_key, ())
        )
        for case in cases
    )


def _with_what_rows_say(case: MatchGroup, lookup_hits: Sequence[LookupHit]) -> MatchGroup:
    said = {
        seen.item_id: seen.detail
        for seen in lookup_hits
        if seen.side is ItemSide.LEDGER and ("reverses" in seen.detail or "action_id" in seen.detail)
    }
    if not said:
        return case
    return replace(
        case,
        copies=tuple(
            replace(
                copy,
                reverses=str(said[copy.item_id].get("reverses", "")),
                action_id=str(said[copy.item_id].get("action_id", "")),
            )
            if copy.item_id in said
            else copy
            for copy in case.copies
        ),
    )


def _with_surplus_rows(case: MatchGroup, items: Sequence[OpenItem]) -> MatchGroup:
    if not items or not any(copy.reverses and copy.carried is None for copy in case.side(ItemSide.LEDGER)):
        return case
    known = {copy.item_id for copy in case.copies}
    beside = (copy_of_item(item, ignore_case=False) for item in items if item.item_id not in known)
    return replace(case, copies=(*case.copies, *beside))
