"""The history of a contract, as a cut that is judged now needs it."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache

from sqlalchemy import Engine

from tallystick.contract.contract import Contract
from tallystick.host.artifacts import Copies
from tallystick.ledger.key_index import ReadableIndexes, readable_indexes
from tallystick.ledger.protocol import Ledger
from tallystick.ledger.unread_rows import UnreadRows
from tallystick.matching.closed_cut import items_beside_closed, places_behind
from tallystick.matching.match_case import LookupHit, RecordLocation
from tallystick.matching.unreadable_ranges import LedgerStarts, Loss, first_to_see
from tallystick.model.cut import Cut
from tallystick.model.offsets import TopicPartition
from tallystick.model.open_item import ItemSide, OpenItem
from tallystick.model.partner_lag import TopicLag
from tallystick.store.runs.close_store import closed_cuts_before
from tallystick.store.runs.cut_store import first_cuts_read_whole, read_cut
from tallystick.store.runs.loss_store import ledger_starts_of, losses_before, moved_below, unread_rows_of
from tallystick.store.runs.open_item_store import surplus_items_as_of
from tallystick.store.runs.run_history_store import (
    key_indexes_before,
    lags_of_clean_runs,
    ledger_rows_before,
)


@dataclass(frozen=True, kw_only=True)
class RunHistory:
    """The data that earlier cuts left behind, as of this one."""

    baseline: Cut
    previous: Cut
    last_read: Cut
    """The newest of the earlier cuts that nobody closed."""
    carried: tuple[OpenItem, ...]
    older_rows_expected: int | None
    rows_before_the_books: int | None = None
    """Rows that the baseline counted; None where no row can be read a second time unseen, so that nobody counts."""
    losses: tuple[Loss, ...] = ()
    """Earlier cuts of which retention took something before it was read."""
    ledger_starts: LedgerStarts = field(default_factory=LedgerStarts)
    """Of this cut, of those that first saw what is carried, and of those before these."""
    rows_moved_below: int = 0
    unread_rows: UnreadRows | None = None
    """Of the rows below that, those that the run before has counted behind its slice."""
    clean_lags: tuple[tuple[TopicLag, ...], ...] = ()
    """What MATCHED runs just before this one measured."""
    closed: tuple[Cut, ...] = ()
    """Earlier cuts that a person closed, so that nobody has read them."""
    items_beside_closed: frozenset[str] = frozenset()
    """Items of what is carried, as `matching.closed_cut` has them of the newest of those cuts."""
    surplus_items: tuple[OpenItem, ...] = ()
    """Surplus copies, which nothing but a reversal ends: no part of the pairing."""
    inputs_seen_first: Mapping[int, int] = field(default_factory=dict)
    """LedgerStarts.seen_first of this cut, and of those that first saw what is carried."""

    def may_be_older_than_the_books(self, position: int) -> bool:
        """Return whether a row that no slice below the baseline has may have been there when the books began: a
        transaction that was open then held the horizon below it.
        """
        began = self.baseline.ledger_slice
        return began.baseline_position <= position < began.snapshot.high_mark

    def has_moved_rows(self, cut: Cut, *, below: int) -> bool:
        """Return whether the cut's slice may have rows that moved, all of them below that position: a file that is
        written once more stays where it was left first.
        """
        left_from = self.previous.ledger_slice.left_from
        return (cut.ledger_slice.position_start if left_from is None else left_from) < below


def read_history(engine: Engine, contract: Contract, cut: Cut, carried: tuple[OpenItem, ...]) -> RunHistory:
    """Read the baseline, the previous cut and the guard's expected count. Only a baseline has no past."""
    baseline = read_cut(engine, contract.name, 0)
    previous = read_cut(engine, contract.name, cut.n - 1)
    assert baseline is not None and previous is not None
    losses = losses_before(engine, contract.name, cut.n)
    closed = closed_cuts_before(engine, contract.name, cut.n)
    return RunHistory(
        baseline=baseline,
        previous=previous,
        last_read=_last_read(engine, previous, {one.n for one in closed}),
        carried=carried,
        older_rows_expected=ledger_rows_before(engine, contract.name, cut.n),
        rows_before_the_books=ledger_rows_before(engine, contract.name, 1),
        losses=losses,
        ledger_starts=ledger_starts_of(
            engine,
            contract.name,
            {cut.n, *(n for item in carried for n in (item.first_seen_cut - 1, item.first_seen_cut))},
            rows_move=contract.ledger.rows_move,
        ),
        rows_moved_below=moved_below(engine, contract.name, cut.n - 1),
        unread_rows=unread_rows_of(engine, contract.name, cut.n - 1),
        clean_lags=lags_of_clean_runs(engine, contract.name, cut.n),
        closed=closed,
        items_beside_closed=_items_beside(engine, contract, carried, closed[-1]) if closed else frozenset(),
        surplus_items=surplus_items_as_of(engine, contract.name, cut.n),
        inputs_seen_first=_inputs_seen_first(
            engine,
            contract,
            {cut.n, *(item.first_seen_cut for item in carried)},
            {0, *(one.cut_n for one in losses), *(one.n for one in closed)},
            at_hand={one.n: one for one in (baseline, previous, cut)},
        ),
    )


def _items_beside(engine: Engine, contract: Contract, carried: Collection[OpenItem], closed: Cut) -> frozenset[str]:
    places = places_behind(carried, closed, of_inputs=bool(contract.input_topics))
    read_behind = first_cuts_read_whole(engine, contract.name, set(places.values()), behind=closed.n) if places else {}
    return items_beside_closed(carried, closed, places, read_behind)


def _last_read(engine: Engine, newest: Cut, closed: Collection[int]) -> Cut:
    n = newest.n
    while n in closed:
        n -= 1
    found = newest if n == newest.n else read_cut(engine, newest.contract, n)
    assert found is not None
    return found


def _inputs_seen_first(
    engine: Engine,
    contract: Contract,
    first_seen: Iterable[int],
    lossy: Collection[int],
    *,
    at_hand: Mapping[int, Cut],
) -> dict[int, int]:
    """Return it where the ledger is topics. lossy: cuts that lost offsets, or may have."""

    @cache
    def read(n: int) -> Cut:
        found = at_hand[n] if n in at_hand else read_cut(engine, contract.name, n)
        assert found is not None
        return found

    if not contract.input_topics:
        return {}
    newest_first = sorted(lossy, reverse=True)
    by_cut = {
        n: first_to_see(read(n), (read(one) for one in newest_first if one < n), contract.input_topics)
        for n in first_seen
    }
    return {n: first for n, first in by_cut.items() if first < n}


def keys_as_old_as_the_books(ledger: Ledger, cut: Cut, past: RunHistory) -> tuple[str, ...]:
    """Return keys of the slice's rows that may have been there when the books began: so may their events have been, and
    one that this cut reads repeats them.
    """
    if not past.may_be_older_than_the_books(cut.ledger_slice.position_start):
        return ()
    return ledger.keys_below(cut.ledger_slice, below=past.baseline.ledger_slice.snapshot.high_mark)


def inputs_of_before(cut: Cut, baseline: Cut, topics: Collection[str]) -> dict[TopicPartition, int]:
    """Return where the inputs of a partition end that stood on the log when the books began, behind a transaction that
    was open then. They may have had their outputs already, and one that a later cut reads repeats them.
    """
    ends = {}
    for part in cut.topic_slices:
        place = part.offsets.topic_partition
        began = baseline.slice_of(place) if place.topic in topics else None
        if began is None or began.snapshot.topic_id != part.snapshot.topic_id:
            continue
        if began.offsets.kafka_offset_end < began.snapshot.high_watermark:
            ends[place] = began.snapshot.high_watermark
    return ends


def open_indexes(engine: Engine, contract: Contract, cut: Cut, artifacts: Copies) -> ReadableIndexes:
    """Return the key indexes that a run of this cut may ask. Raises ArtifactsUnreachable."""
    stored = key_indexes_before(engine, contract.name, cut.n, windows=contract.ledger.index_windows)
    artifacts.fetch(file.path for index in stored.values() for file in index.files)
    indexes = readable_indexes(artifacts.folder, stored)
    if not contract.input_topics:
        return indexes
    oldest = read_cut(engine, contract.name, indexes.unbroken_from or cut.n)
    if oldest is None or losses_before(engine, contract.name, cut.n):
        return indexes
    starts = {part.offsets.topic_partition: part.offsets.kafka_offset_start for part in oldest.topic_slices}
    return replace(indexes, reach=starts)


def index_hits(indexes: ReadableIndexes, match_keys: Collection[str]) -> dict[str, tuple[LookupHit, ...]]:
    """Return the hits of the key index: copies of either side that earlier cuts read."""
    return {
        key: tuple(
            LookupHit(
                side=ItemSide(copy.item_id.partition(":")[0]),
                place=RecordLocation.EARLIER_SLICE,
                item_id=copy.item_id,
                detail={"read_by_cut": copy.cut_n},
            )
            for copy in copies
        )
        for key, copies in indexes.look_up(match_keys).items()
    }
