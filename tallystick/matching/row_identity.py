"""The identity of ledger rows, also where row ids repeat: none is taken for another, and none is dropped. Pure.

An item is named by its row's id. Where the database rules out that ids repeat, that says it all: a row of an item that
is read again was written anew. Elsewhere the item's own row may stand beside it: then each is a row of its own, and the
item id of the later one also says which cut read it, and as which of its rows. A look-up knows rows by their ids alone,
so key and place say which item each of them is.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tallystick.ledger.protocol import LedgerRow
from tallystick.matching.match_case import Entry, LookupHit, MatchGroup, RecordLocation
from tallystick.matching.scan_result import ledger_item_id
from tallystick.model.open_item import ItemSide, OpenItem

_IN_SLICE = frozenset({RecordLocation.SLICE})
_READ = frozenset({RecordLocation.EARLIER_SLICE})
_BELOW = _READ | {RecordLocation.BEFORE_BASELINE, RecordLocation.UNREAD}
_NOT_BELOW = frozenset(RecordLocation) - _BELOW
_Money = tuple[int, str]
_ADDED = re.compile(r"#[0-9]+\.[0-9]+$")


def row_item_id(item_id: str) -> str:
    """Return what names the row, without the suffix for a repeated row id."""
    return _ADDED.sub("", item_id)


def items_of_rows(
    items: Iterable[OpenItem], copies: Iterable[Entry], *, ids_repeat: bool
) -> dict[str, tuple[OpenItem, ...]]:
    """Return the items that these rows may be, by the item id of the rows."""
    read = {copy.item_id for copy in copies if copy.side is ItemSide.LEDGER}
    found: dict[str, list[OpenItem]] = {}
    for item in items:
        names = (item.item_id, row_item_id(item.item_id)) if ids_repeat else (item.item_id,)
        name = next((one for one in names if one in read), None)
        if name is not None and item.side is ItemSide.LEDGER:
            found.setdefault(name, []).append(item)
    return {name: tuple(of_row) for name, of_row in found.items()}


def standing_beside(
    of_rows: Mapping[str, Sequence[OpenItem]], copies: Iterable[Entry], rows: Mapping[str, Sequence[LedgerRow]]
) -> frozenset[str]:
    """Return item ids of those whose own row stands beside the rows that were read: none of these is it, written anew.

    of_rows: as `items_of_rows` has it. rows: every row of these items' keys, as the ledger shows them now. A row
    without a key cannot be looked up, so it counts as standing.
    """
    read: dict[tuple[str, str], list[_Money]] = {}
    for copy in copies:
        if copy.side is ItemSide.LEDGER:
            read.setdefault((copy.item_id, copy.match_key), []).append(copy.money)
    beside: set[str] = set()
    for name, items in of_rows.items():
        ids = {name, *(item.item_id for item in items)}
        by_key: dict[str, list[OpenItem]] = {}
        for item in items:
            by_key.setdefault(item.match_key, []).append(item)
        for key, of_key in by_key.items():
            there = [_money(row) for row in rows.get(key, ()) if ledger_item_id(row.row_id) in ids]
            read_here = read.get((name, key), [])
            not_read = Counter(there) - Counter(read_here)
            of_key.sort(key=lambda item: (_money(item) not in not_read, item.item_id))
            standing = of_key[: max(0, len(there) - len(read_here))] if key else of_key
            beside.update(item.item_id for item in standing)
    return frozenset(beside)


def _money(one: Entry | LedgerRow | OpenItem) -> _Money:
    return one.amount_minor, one.currency


def with_ids_of_their_own(
    copies: Iterable[Entry],
    items: Iterable[OpenItem],
    of_rows: Mapping[str, Sequence[OpenItem]],
    beside: Collection[str],
    *,
    rows_change: bool,
    cut_n: int,
) -> Iterator[Entry]:
    """Return the copies in order. A row that is an item's, written anew, has that item's id; any other row has its own.

    items: whose ids are taken. of_rows: as `items_of_rows` has it. beside: those that no row which was read is.
    rows_change: may a row that is written anew be another key's? A file's row comes again in another file, by its key.
    """
    ordered = sorted(copies, key=lambda one: (one.item_id, *_what_it_says(one)))
    named = dict(_items_written_anew(ordered, of_rows, beside, rows_change=rows_change))
    taken = {item.item_id for item in items}
    times: Counter[str] = Counter()
    for number, copy in enumerate(ordered):
        if copy.side is not ItemSide.LEDGER:
            yield copy
            continue
        item_id = named.get(number, copy.item_id)
        while number not in named and item_id in taken:
            times[copy.item_id] += 1
            item_id = f"{copy.item_id}#{cut_n}.{times[copy.item_id]}"
        taken.add(item_id)
        yield copy if item_id == copy.item_id else replace(copy, item_id=item_id)


def _items_written_anew(
    copies: Sequence[Entry], of_rows: Mapping[str, Sequence[OpenItem]], beside: Collection[str], *, rows_change: bool
) -> Iterator[tuple[int, str]]:
    """Return the place of each row and the id of its item: first equal rows, then those of one key, then
    of one amount, whatever their keys.
    """
    done = set(beside)
    places = [number for number, copy in enumerate(copies) if copy.item_id in of_rows]
    for likeness in (_what_it_says, _match_key, _money, _nothing) if rows_change else (_what_it_says, _match_key):
        alike: dict[tuple[str, object], list[str]] = {}
        for name, items in of_rows.items():
            for item in items:
                if item.item_id not in done:
                    alike.setdefault((name, likeness(item)), []).append(item.item_id)
        found = {}
        for number in places:
            item_ids = alike.get((copies[number].item_id, likeness(copies[number])))
            if item_ids:
                found[number] = item_ids.pop(0)
        yield from found.items()
        done.update(found.values())
        places = [number for number in places if number not in found]


def _what_it_says(one: Entry | OpenItem) -> tuple[str, int, str, str]:
    return one.match_key, one.amount_minor, one.currency, one.compared_text


def _match_key(one: Entry | OpenItem) -> object:
    return one.match_key


def _nothing(one: Entry | OpenItem) -> object:
    return None


@dataclass(frozen=True, kw_only=True)
class RowNames:
    """The item ids for rows that a look-up found. judged: item ids of rows that earlier runs judged, and that take no
    part in the pairing, by match key.
    """

    ids_repeat: bool = False
    judged: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def named(self, case: MatchGroup, rows: Sequence[LookupHit]) -> list[LookupHit]:
        """Return the rows of the case's key, each with an id that no other has.

        A row below the slice is another one than the slice's, also where it has the same row id. An item is of a row
        that a cut has read, where one has its row id.
        """
        copies = case.side(ItemSide.LEDGER)
        read = [copy.item_id for copy in copies if copy.carried is None or copy.is_new_version]
        if not self.ids_repeat:
            own = frozenset(read)
            return [_apart(seen) if seen.place in _BELOW and seen.item_id in own else seen for seen in rows]
        older = [copy.item_id for copy in copies if copy.carried is not None and not copy.is_new_version]
        known = {*read, *older}
        older += [item_id for item_id in self.judged.get(case.match_key, ()) if item_id not in known]
        names: dict[int, str] = {}
        for places, items in (
            (_IN_SLICE, read),
            (_READ, older),
            (_BELOW, older),
            (_NOT_BELOW, [*read, *older]),
        ):
            there = [number for number, seen in enumerate(rows) if seen.place in places and number not in names]
            named = set(names.values())
            names |= _of_items(rows, there, [item_id for item_id in items if item_id not in named])
        taken = {*read, *older}
        return [
            replace(seen, item_id=names[number]) if number in names else _apart(seen) if seen.item_id in taken else seen
            for number, seen in enumerate(rows)
        ]


def _of_items(rows: Sequence[LookupHit], there: Sequence[int], items: Sequence[str]) -> dict[int, str]:
    """Return ids of items by the place of their row: first where the row id is enough."""
    found: dict[int, str] = {}
    for name in (str, row_item_id):
        named = set(found.values())
        free: dict[str, list[str]] = {}
        for item_id in items:
            if item_id not in named:
                free.setdefault(name(item_id), []).append(item_id)
        for number in there:
            if number not in found and free.get(rows[number].item_id):
                found[number] = free[rows[number].item_id].pop(0)
    return found


def _apart(seen: LookupHit) -> LookupHit:
    return replace(seen, item_id=f"{seen.item_id}#{seen.detail['transaction_id']}")
