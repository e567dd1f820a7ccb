"""Copies and carried items, grouped by match key and by business transaction. Pure."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from tallystick.contract.equality import compared
from tallystick.matching.evidence import LegsCase
from tallystick.matching.match_case import (
    BEYOND_THE_CUT,
    Entry,
    LookupHit,
    MatchGroup,
    MatchResult,
    MatchStatus,
    RecordLocation,
    UnmatchedItem,
)
from tallystick.matching.scan_result import input_place, place_in_order
from tallystick.model.finding_names import SURPLUS_CLASSES
from tallystick.model.item_reason import ReasonCode
from tallystick.model.offsets import TopicPartition
from tallystick.model.open_item import ItemSide, ItemState, OpenItem

_UNDECIDED = frozenset(
    {
        MatchStatus.UNDECIDABLE,
        MatchStatus.PAIRED_BEFORE,
        MatchStatus.PARTNER_EXPIRED,
        MatchStatus.PARTNER_UNREAD,
    }
)


def group_by_key(
    copies: Iterable[Entry],
    carried: Iterable[OpenItem],
    *,
    ignore_case: bool = False,
    parts: ItemSide | None = None,
) -> tuple[MatchGroup, ...]:
    """Return one case per key that has a new copy or an open item; broken items only join keys that moved again.

    A row of an item that is read again was written anew, and is the item's copy from now on, also under another key.
    Rows without a key have nothing to do with one another: each is a case of its own. ignore_case: of currencies. The
    copies come folded; an item may be older than the rule. parts: the side whose copies add up to the other's one.
    """
    by_key: dict[str, list[Entry]] = {}
    of_rows = {item.item_id: item for item in carried if item.side is ItemSide.LEDGER}
    for copy in copies:
        item = of_rows.pop(copy.item_id, None)
        read = copy if item is None else replace(copy, carried=item, is_new_version=True)
        by_key.setdefault(copy.match_key, []).append(read)
    without_key = by_key.pop("", ())
    items = [item for item in carried if item.side is ItemSide.TOPIC or item.item_id in of_rows]
    for item in items:
        if item.state is ItemState.OPEN:
            by_key.setdefault(item.match_key, [])
    for item in items:
        if item.match_key in by_key:
            by_key[item.match_key].append(copy_of_item(item, ignore_case=ignore_case))
    return (
        *(MatchGroup(match_key="", copies=(copy,), parts=parts) for copy in without_key),
        *(MatchGroup(match_key=key, copies=tuple(found), parts=parts) for key, found in sorted(by_key.items())),
    )


def copy_of_item(item: OpenItem, *, ignore_case: bool) -> Entry:
    return Entry(
        side=item.side,
        item_id=item.item_id,
        match_key=item.match_key,
        transaction_key=item.transaction_key,
        leg=item.leg,
        amount_minor=item.amount_minor,
        currency=compared(item.amount_minor, item.currency, ignore_case=ignore_case).currency,
        order=place_in_order(item.item_id),
        carried=item,
        written_ms=item.written_ms,
        compared_text=item.compared_text,
    )


def group_by_transaction(copies: Iterable[Entry], carried: Iterable[OpenItem]) -> tuple[LegsCase, ...]:
    """Return business transactions with a leg missing in this cut, and those that earlier cuts left open.

    A leg that waits for its row was read, though the log may have forgotten it since.
    """
    seen: dict[str, dict[str, tuple[int, str, str]]] = {}
    items = {item.transaction_key: item for item in carried if item.side is ItemSide.LEGS}
    for key, item in items.items():
        if item.state is ItemState.OPEN:
            seen[key] = {}
    for copy in copies:
        seen.setdefault(copy.transaction_key, {})[copy.leg] = (copy.amount_minor, copy.currency, copy.item_id)
    for key, legs in seen.items():
        if key in items:
            for leg in items[key].leg.split("+"):
                legs.setdefault(leg, (items[key].amount_minor, items[key].currency, items[key].item_id))
    for item in carried:
        if item.side is ItemSide.TOPIC and item.state is ItemState.OPEN and item.transaction_key in seen:
            seen[item.transaction_key].setdefault(item.leg, (item.amount_minor, item.currency, item.item_id))
    return tuple(LegsCase(transaction_key=key, seen=legs, carried=items.get(key)) for key, legs in sorted(seen.items()))


def of_broken_transactions(copies: Iterable[Entry], carried: Iterable[OpenItem]) -> Iterator[Entry]:
    """New events of business transactions that an earlier cut broke: where a repeat of the seen leg stands beside the
    one that was absent, this cut holds all legs, and the scan does not tell of the transaction by itself.
    """
    broken = {
        item.transaction_key for item in carried if item.side is ItemSide.LEGS and item.state is not ItemState.OPEN
    }
    return (copy for copy in copies if copy.side is ItemSide.TOPIC and copy.transaction_key in broken)


def not_judged_before(cases: Iterable[LegsCase], judged: Collection[str]) -> tuple[LegsCase, ...]:
    """Remove transactions that earlier runs have closed: their other legs came, or were written off."""
    return tuple(case for case in cases if case.carried is not None or case.transaction_key not in judged)


def without_repeats(cases: Iterable[LegsCase], outcomes: Iterable[MatchResult]) -> tuple[LegsCase, ...]:
    """Remove transactions of which this cut shows only repeats of an event that an earlier cut has read: they were
    judged then, and the log may have forgotten what became of their other legs.

    A repeat is one whatever became of it by its key: its row may lie beyond the cut still, or be undecidable.
    """
    repeats = {item_id for outcome in outcomes for item_id in _repeated_events(outcome)}
    return tuple(
        case
        for case in cases
        if case.carried is not None or not repeats.issuperset(item_id for _, _, item_id in case.seen.values())
    )


def with_legs_read_before(cases: Iterable[LegsCase], surplus_items: Iterable[OpenItem]) -> tuple[LegsCase, ...]:
    """Return the same cases with the legs that earlier cuts have read as one too many, or as the event of a row that
    is: such a leg came, and was no reason then to judge its transaction.

    surplus_items: such copies, whatever became of them. What names no event of its own tells of no leg.
    """
    read: dict[str, list[tuple[OpenItem, str]]] = {}
    for item in surplus_items:
        event = item.item_id if item.side is ItemSide.TOPIC else item.cleared_by
        if item.side is not ItemSide.LEGS and event.startswith("topic:"):
            read.setdefault(item.transaction_key, []).append((item, event))
    return tuple(
        replace(
            case,
            seen={
                **{item.leg: (item.amount_minor, item.currency, event) for item, event in read[case.transaction_key]},
                **case.seen,
            },
        )
        if case.transaction_key in read
        else case
        for case in cases
    )


def with_rows_of_before(
    cases: Iterable[LegsCase],
    outcomes: Iterable[MatchResult],
    *,
    may_be_older: Callable[[int], bool],
    inputs_of_before: Mapping[TopicPartition, int],
) -> tuple[LegsCase, ...]:
    """Return the same cases, and say of which a row may be older than the books, by what this run or an earlier one
    saw, or an input that nobody can see. An event of such a row repeats one that nobody has read, or comes late: where
    the other legs are, nobody knows. And of which a row or event still waits for its partner, which may tell.

    may_be_older: of a row's position, where a slice of the books has it. inputs_of_before: where those of a partition
    end that stood there when the books began.
    """
    outcomes = tuple(outcomes)
    residues = [(residue, outcome.case) for outcome in outcomes for residue in outcome.residues]
    older = {
        (copy.transaction_key, copy.leg)
        for outcome in outcomes
        if any(_is_of_before(seen, may_be_older) for seen in outcome.case.lookup_hits)
        or has_an_input_below(outcome.case, inputs_of_before)
        for copy in outcome.case.side(ItemSide.TOPIC)
    }
    older |= {
        (residue.copy.transaction_key, residue.copy.leg)
        for residue, _ in residues
        if residue.reason.code is ReasonCode.INPUT_OUT_OF_SIGHT
    }
    awaited = {
        status: {
            residue.copy.transaction_key
            for residue, case in residues
            if residue.fate is status and _may_be_told(residue, case, may_be_older)
        }
        for status in (MatchStatus.UNSETTLED, MatchStatus.WAITING)
    }
    return tuple(
        replace(
            case,
            is_of_before=(case.carried is not None and case.carried.reason.code is ReasonCode.LEGS_OF_BEFORE_AWAITED)
            or not older.isdisjoint((case.transaction_key, leg) for leg in case.seen),
            partner_awaited=next((one for one in awaited if case.transaction_key in awaited[one]), None),
        )
        for case in cases
    )


def with_undecided_rows(
    cases: Iterable[LegsCase], outcomes: Iterable[MatchResult], earlier: Iterable[OpenItem]
) -> tuple[LegsCase, ...]:
    """Return the same cases with the legs of which a row could not be decided, by this run or by an earlier one: as its
    event may have come where nobody can see it, so may that leg. Beside them those whose event stands and is unread.

    earlier: items of earlier runs, carried or ended.
    """
    residues = [residue for outcome in outcomes for residue in outcome.residues if residue.copy.side is ItemSide.LEDGER]
    items = [item for item in earlier if item.side is ItemSide.LEDGER and item.state is ItemState.UNDECIDABLE]
    undecided = [(one.copy.transaction_key, one.copy.leg) for one in residues if one.fate in _UNDECIDED]
    undecided += [(item.transaction_key, item.leg) for item in items]
    unread = [(one.copy.transaction_key, one.copy.leg) for one in residues if one.fate is MatchStatus.PARTNER_UNREAD]
    by_key, unread_by_key = _legs_by_transaction(undecided), _legs_by_transaction(unread)
    return tuple(
        replace(case, undecided=by_key[key], unread=unread_by_key.get(key, frozenset()))
        if (key := case.transaction_key) in by_key
        else case
        for case in cases
    )


def _legs_by_transaction(rows: Iterable[tuple[str, str]]) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for transaction_key, leg in rows:
        found.setdefault(transaction_key, set()).add(leg)
    return {transaction_key: frozenset(legs) for transaction_key, legs in found.items()}


def _may_be_told(residue: UnmatchedItem, case: MatchGroup, may_be_older: Callable[[int], bool]) -> bool:
    """Return whether what comes of it may tell whether it is older than the books. A row that is written anew after
    each cut never comes, and is newer.
    """
    rows = (seen for seen in case.lookup_hits if seen.side is ItemSide.LEDGER)
    return residue.reason.code is not ReasonCode.BEYOND_EVERY_CUT or any(
        may_be_older(row.detail.get("transaction_id", -1)) for row in rows
    )


def has_an_input_below(case: MatchGroup, ends: Mapping[TopicPartition, int]) -> bool:
    """Return whether an output has an input that is older than the books: its first output may be as well."""
    if not ends or not case.side(ItemSide.TOPIC):
        return False
    inputs = (input_place(copy.item_id) for copy in case.side(ItemSide.LEDGER))
    return any(offset < ends.get(partition, 0) for partition, offset in inputs)


def _is_of_before(seen: LookupHit, may_be_older: Callable[[int], bool]) -> bool:
    """Return whether a row may be older than the books, by its position: a database transaction that was open when they
    began has such a one too, and nobody knows when it ended.
    """
    if seen.side is not ItemSide.LEDGER or seen.place in BEYOND_THE_CUT:
        return False
    return seen.place is RecordLocation.BEFORE_BASELINE or may_be_older(seen.detail.get("transaction_id", -1))


def _repeated_events(outcome: MatchResult) -> Iterator[str]:
    """Item ids of events that are one too many, of those that followed a row that is, of what repeats these, and of
    those that take back what an earlier cut has read.
    """
    found = {*_repeats_of_earlier(outcome), *_read_before(outcome.case)}
    yield from found
    for residue in outcome.residues:
        if residue.fate is MatchStatus.EXTRA and residue.original is not None and residue.original.item_id in found:
            yield residue.copy.item_id


def _read_before(case: MatchGroup) -> Iterator[str]:
    """Item ids of new events of a key of which the log, or the books' memory of keys, shows one in an earlier slice."""
    if any(seen.side is ItemSide.TOPIC and seen.place is RecordLocation.EARLIER_SLICE for seen in case.lookup_hits):
        yield from (copy.item_id for copy in case.side(ItemSide.TOPIC) if copy.carried is None)


def _waits_for_its_first_event(row: Entry | None) -> bool:
    """Return whether no earlier cut has read an event of it: what follows its replacement is that event."""
    return row is not None and row.carried is not None and row.carried.state is ItemState.OPEN


def _repeats_of_earlier(outcome: MatchResult) -> Iterator[str]:
    for residue in outcome.residues:
        if residue.fate is MatchStatus.EXTRA and (residue.original is None or residue.original.carried is not None):
            yield residue.copy.item_id
            if residue.partner is not None and not _waits_for_its_first_event(residue.original):
                yield residue.partner.item_id
    for event, row in outcome.matched:
        if row.carried is not None and row.carried.found_as in SURPLUS_CLASSES:
            yield event.item_id
    for copy, reversal in outcome.netted:
        if copy.carried is not None and reversal.side is ItemSide.TOPIC:
            yield reversal.item_id
