"""The look-ups of the keys without partner, by key and place, and the time up to which each side has settled.

The only part of a run that is not a function of the cut alone, so it is stored with the verdict: judging the cut again
reads it back instead of asking again.

One file, since what is asked and the form in which its answers are stored have to say the same.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from pydantic import TypeAdapter

from tallystick.contract.contract import Contract
from tallystick.kafka_cluster.open_transactions import (
    OpenTransaction,
    TransactionsNotTold,
    read_open_transactions,
)
from tallystick.kafka_cluster.state import CLUSTER_STATE, ClusterState
from tallystick.kafka_log.header_cache import NO_HEADS, KeptHeads
from tallystick.kafka_log.log_walk import Outcome
from tallystick.kafka_log.record import LogRecord
from tallystick.kafka_log.search import Wanted, find_records
from tallystick.kafka_log.topic_snapshot import read_topic_snapshot
from tallystick.ledger.earlier_rows import EarlierRows
from tallystick.ledger.key_index import ReadableIndexes
from tallystick.ledger.protocol import LedgerRow
from tallystick.ledger.unread_rows import UnreadRows, moved_on
from tallystick.matching.closed_cut import losses_of_closed, pairs_beside_closed, unread_if_closed, unread_where_closed
from tallystick.matching.grouping import has_an_input_below
from tallystick.matching.ledger_horizon import locate_row
from tallystick.matching.match_case import BEYOND_THE_CUT, LookupHit, MatchGroup, RecordLocation
from tallystick.matching.producer_acks import AckedOffset, acks_of, locate_acked
from tallystick.matching.record_location import (
    add_unseen,
    in_log_order,
    locate_input,
    locate_record,
    needs_input,
    needs_topic,
    not_yet_fetched,
    pairs_with_older_row,
)
from tallystick.matching.row_identity import RowNames
from tallystick.matching.scan_result import SliceScan
from tallystick.matching.unreadable_ranges import Loss, loss_before_the_books
from tallystick.model.cut import Cut, LedgerSlice, PartitionSnapshot, Sample, is_recreated
from tallystick.model.offsets import OffsetRange, TopicPartition
from tallystick.model.open_item import ItemSide
from tallystick.pipeline.readiness import ledger_settled_until, topic_settled_until
from tallystick.pipeline.run_history import RunHistory, index_hits, inputs_of_before
from tallystick.pipeline.sources import Sources
from tallystick.text.plain import parse_utc

_LOSSES = TypeAdapter(tuple[Loss, ...])
_Hits = Mapping[str, Sequence[LookupHit]]


@dataclass(frozen=True, kw_only=True)
class LookUps:
    """The answers of the look-ups.

    by_key: hits of a match key on both sides. by_transaction: hits in the topics, by transaction key and leg.
    """

    topic_settled_until_utc: datetime | None
    ledger_settled_until_utc: datetime | None
    older_rows: int | None
    log_is_whole: bool = True
    """Did the topics still hold the event of every row? A row from before the books may be older than its topic."""
    rows_moved_below: int = 0
    """Above every id of a row that the guard of older rows has found moved, up to this run; 0: none."""
    unread_rows: UnreadRows | None = None
    """Of the rows below that, those that lie behind the slice; None: none does, or nobody counted."""
    rows_may_be_older: bool = False
    """May rows of the slice have been written anew, so that an earlier cut read them and their events?"""
    lost_before_the_books: tuple[Loss, ...] = ()
    legs_lost_within: int | None = None
    """So many cuts later a leg of a business transaction may be part of what was lost; None: a run of old."""
    inputs_out_of_sight: bool = False
    """topic_to_topic: may an input have stood where neither the retained log nor the key index reaches?"""
    rows_beside: tuple[str, ...] | None = None
    """Items whose own row stood beside rows of the slice with its row id; None: a row id says it all."""
    lost_indexes: tuple[int, ...] = ()
    """Cuts whose key index is not there, or not what their verdict names."""
    by_key: Mapping[str, tuple[LookupHit, ...]] = field(default_factory=dict)
    by_transaction: Mapping[str, Mapping[str, tuple[LookupHit, ...]]] = field(default_factory=dict)
    cluster_state: ClusterState = field(default_factory=ClusterState)
    """Its key in the stored document is "surroundings", as in the verdicts of every release."""
    earlier_rows: EarlierRows | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "topic_settled_until_utc": _text(self.topic_settled_until_utc),
            "ledger_settled_until_utc": _text(self.ledger_settled_until_utc),
            "older_rows": self.older_rows,
            "log_is_whole": self.log_is_whole,
            "rows_moved_below": self.rows_moved_below,
            "unread_rows": self.unread_rows.to_json() if self.unread_rows else None,
            "rows_may_be_older": self.rows_may_be_older,
            "lost_before_the_books": _LOSSES.dump_python(self.lost_before_the_books, mode="json", by_alias=True)
            if self.lost_before_the_books
            else [],
            "legs_lost_within": self.legs_lost_within,
            "inputs_out_of_sight": self.inputs_out_of_sight,
            "rows_beside": None if self.rows_beside is None else list(self.rows_beside),
            "lost_indexes": list(self.lost_indexes),
            "by_key": {key: [_seen_json(seen) for seen in found] for key, found in sorted(self.by_key.items())},
            "by_transaction": {
                key: {leg: [_seen_json(seen) for seen in found] for leg, found in sorted(legs.items())}
                for key, legs in sorted(self.by_transaction.items())
            },
            "surroundings": CLUSTER_STATE.dump_python(self.cluster_state, mode="json", by_alias=True),
            "earlier_rows": self.earlier_rows.to_json() if self.earlier_rows else None,
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> "LookUps":
        return cls(
            topic_settled_until_utc=parse_utc(document["topic_settled_until_utc"]),
            ledger_settled_until_utc=parse_utc(document["ledger_settled_until_utc"]),
            older_rows=document["older_rows"],
            log_is_whole=document.get("log_is_whole", True),
            rows_moved_below=document.get("rows_moved_below", 0),
            unread_rows=UnreadRows(**document["unread_rows"]) if document.get("unread_rows") else None,
            rows_may_be_older=document.get("rows_may_be_older", True),
            lost_before_the_books=_LOSSES.validate_python(document.get("lost_before_the_books", ())),
            legs_lost_within=document.get("legs_lost_within"),
            inputs_out_of_sight=document.get("inputs_out_of_sight", False),
            rows_beside=None if document.get("rows_beside") is None else tuple(document["rows_beside"]),
            lost_indexes=tuple(document.get("lost_indexes", ())),
            by_key={key: tuple(map(_seen, found)) for key, found in document["by_key"].items()},
            by_transaction={
                key: {leg: tuple(map(_seen, found)) for leg, found in legs.items()}
                for key, legs in document["by_transaction"].items()
            },
            cluster_state=CLUSTER_STATE.validate_python(document.get("surroundings", {})),
            earlier_rows=EarlierRows.from_json(document["earlier_rows"]) if document.get("earlier_rows") else None,
        )


@dataclass(frozen=True, kw_only=True)
class Questions:
    """The keys that both sides are asked about: of cases and of business transactions that lack a partner.

    row_names: says which items the rows of an answer are.
    """

    cases: Sequence[MatchGroup]
    transaction_keys: Collection[str]
    new_copies_due_utc: datetime
    row_names: RowNames

    @property
    def keyed(self) -> list[MatchGroup]:
        """Rows without a key have nothing that could be asked for."""
        return [case for case in self.cases if case.match_key]


@dataclass(frozen=True, kw_only=True)
class AtHand:
    """The data that has been read already, and is not read again. scan: of the cut itself. heads: of its slices.

    samples: of both sides, since the oldest deadline. indexes: what lies beyond the retained log is asked there.
    """

    scan: SliceScan
    samples: Collection[Sample]
    heads: KeptHeads = NO_HEADS
    indexes: ReadableIndexes | None = None


def look_up(sides: Sources, cut: Cut, past: RunHistory, asked: Questions, at_hand: AtHand) -> LookUps:
    """Ask both sides. The bounds are read first, so that what ended below them is visible to the look-up itself."""
    contract, indexes, samples = sides.contract, at_hand.indexes, at_hand.samples
    snapshot = sides.ledger.read_snapshot()
    everywhere = sides.read_partitions()
    partitions = tuple(part for part in everywhere if part.topic in contract.topics)
    inputs = tuple(part for part in everywhere if part.topic in contract.input_topics)
    by_key, by_transaction = _lookup_hits(sides, cut, past, asked, at_hand, partitions=partitions, inputs=inputs)
    older_rows = sides.ledger.count_older_rows(cut.ledger_slice)
    rows_moved_below, unread_rows = _moved_rows(sides, cut, past, older_rows)
    return LookUps(
        topic_settled_until_utc=topic_settled_until([one.of_topics(contract.topics) for one in samples], partitions),
        ledger_settled_until_utc=topic_settled_until([one.of_topics(contract.input_topics) for one in samples], inputs)
        if inputs
        else ledger_settled_until(samples, ledger_low_mark=snapshot.low_mark),
        earlier_rows=sides.ledger.count_by_place(cut.ledger_slice, cut_n=cut.n),
        older_rows=older_rows,
        log_is_whole=not past.rows_before_the_books
        and all(part.log_start == 0 and not is_recreated(past.baseline, part) for part in partitions),
        rows_moved_below=rows_moved_below,
        unread_rows=unread_rows,
        rows_may_be_older=past.has_moved_rows(cut, below=rows_moved_below),
        lost_before_the_books=(
            *loss_before_the_books(past.baseline, partitions, cut_n=cut.n, windows=contract.ledger.index_windows),
            *losses_of_closed(past.closed, partitions),
        ),
        legs_lost_within=contract.ledger.index_windows,
        inputs_out_of_sight=indexes is not None
        and ((bool(past.closed) and bool(inputs)) or indexes.leaves_unseen(inputs)),
        lost_indexes=indexes.lost_cuts if indexes else (),
        by_key=by_key,
        by_transaction=by_transaction,
    )


def _lookup_hits(
    sides: Sources,
    cut: Cut,
    past: RunHistory,
    asked: Questions,
    at_hand: AtHand,
    *,
    partitions: Sequence[PartitionSnapshot],
    inputs: Sequence[PartitionSnapshot],
) -> tuple[Mapping[str, tuple[LookupHit, ...]], Mapping[str, Mapping[str, tuple[LookupHit, ...]]]]:
    """Give what was seen by match key, and by transaction key and leg."""
    contract, keys = sides.contract, [case.match_key for case in asked.keyed]
    rows = sides.ledger.look_up_rows(keys, cut.ledger_slice)
    in_ledger = {
        case.match_key: asked.row_names.named(case, list(_located(rows[case.match_key], cut.ledger_slice, past.closed)))
        for case in asked.keyed
        if case.match_key in rows
    }
    indexed = index_hits(at_hand.indexes, keys) if at_hand.indexes else {}
    if inputs:
        wanted = _input_keys(asked, indexed, now_utc=cut.now_utc)
        in_ledger = _look_up_inputs(sides, cut, baseline=past.baseline, partitions=inputs, match_keys=wanted)
        _add_indexed(in_ledger, indexed, ItemSide.LEDGER)
    topic_keys = _topic_keys(asked, in_ledger, cut, past, contract)
    in_topics = _look_up_topics(
        sides,
        cut,
        baseline=past.baseline,
        partitions=partitions,
        match_keys=topic_keys,
        transaction_keys=set(asked.transaction_keys),
        acks=acks_of((row for key in sorted(topic_keys) for row in rows.get(key, ())), contract.legs),
        scan=at_hand.scan,
        heads=at_hand.heads,
    )
    _add_indexed(in_topics.by_key, indexed, ItemSide.TOPIC)
    by_key = {
        key: (*in_ledger.get(key, ()), *in_topics.by_key.get(key, ()))
        for key in (*in_ledger, *(key for key in in_topics.by_key if key not in in_ledger))
    }
    by_transaction = {
        key: {leg: tuple(found) for leg, found in legs.items()} for key, legs in in_topics.by_transaction.items()
    }
    return unread_where_closed(by_key, past.closed), by_transaction


def _located(rows: Sequence[LedgerRow], ledger_slice: LedgerSlice, closed: Sequence[Cut]) -> Iterator[LookupHit]:
    """Locate the rows of one key: an item with a row's id is never of one that nobody has read. One that a
    compensation's row takes back says its money.
    """
    taken_back = {row.reverses for row in rows if row.action_id}
    for row in rows:
        seen = unread_if_closed(locate_row(row, ledger_slice), closed)
        money = {"amount_minor": row.amount_minor, "currency": row.currency} if row.row_id in taken_back else {}
        yield replace(seen, detail={**seen.detail, **money})


def _input_keys(asked: Questions, indexed: _Hits, *, now_utc: datetime) -> set[str]:
    return {
        case.match_key
        for case in asked.keyed
        if needs_input(
            case, indexed.get(case.match_key, ()), now_utc=now_utc, new_copies_due_utc=asked.new_copies_due_utc
        )
    }


def _topic_keys(asked: Questions, in_ledger: _Hits, cut: Cut, past: RunHistory, contract: Contract) -> set[str]:
    inputs = inputs_of_before(cut, past.baseline, contract.input_topics)
    return {
        case.match_key
        for case in asked.keyed
        if needs_topic(
            case,
            in_ledger.get(case.match_key, ()),
            direction=contract.direction,
            now_utc=cut.now_utc,
            new_copies_due_utc=asked.new_copies_due_utc,
        )
        or (case.parts is not None and len(case.copies) > 1)  # a part of it may stand elsewhere
        or _may_be_repeated(case, cut, past)
        or _may_repeat_one_of_before(case, in_ledger.get(case.match_key, ()), past)
        or has_an_input_below(case, inputs)
    }


def _may_be_repeated(case: MatchGroup, cut: Cut, past: RunHistory) -> bool:
    """Return whether another event of a pair that waited may stand where neither scan nor key index has it."""
    moved_here = past.has_moved_rows(cut, below=past.rows_moved_below)
    older = past.ledger_starts.rows_may_be_older
    return pairs_beside_closed(case, past.items_beside_closed) or pairs_with_older_row(
        case, older, moved_here=moved_here
    )


def _may_repeat_one_of_before(case: MatchGroup, rows: Iterable[LookupHit], past: RunHistory) -> bool:
    """Return whether an event has a row that may be older than the books: its first event may be as well."""
    return bool(case.side(ItemSide.TOPIC)) and any(
        row.place not in BEYOND_THE_CUT and past.may_be_older_than_the_books(row.detail.get("transaction_id", -1))
        for row in rows
    )


def _add_indexed(found: dict[str, list[LookupHit]], indexed: Mapping[str, Sequence[LookupHit]], side: ItemSide) -> None:
    """Add what the key indexes know of one side."""
    for key, seen in indexed.items():
        add_unseen(found.setdefault(key, []), (one for one in seen if one.side is side))


def _moved_rows(sides: Sources, cut: Cut, past: RunHistory, older_rows: int | None) -> tuple[int, UnreadRows | None]:
    """Above every id of a row that moved, up to this run: by the guard, where nobody counted, by a changed file, or
    where one that had moved was touched once more, before a cut could read it. And those that no cut has read still.
    """
    expected = past.older_rows_expected
    nobody_counted = bool(past.closed) and past.closed[-1].n == cut.n - 1
    may_have_moved = expected is not None or nobody_counted
    counted_others = older_rows is not None and may_have_moved and older_rows != expected
    moved_now = counted_others or bool(cut.ledger_slice.changed)
    if not moved_now and not past.has_moved_rows(cut, below=past.rows_moved_below):
        return past.rows_moved_below, None
    count = sides.ledger.count_unread(cut.ledger_slice, below=past.rows_moved_below, before=past.unread_rows)
    if count is None:
        return max(past.rows_moved_below, sides.ledger.read_snapshot().high_mark if moved_now else 0), None
    return moved_on(
        count,
        past.unread_rows,
        slice_end=cut.ledger_slice.position_end,
        moved_below=past.rows_moved_below,
        moved_now=moved_now,
    )


def _look_up_inputs(
    sides: Sources,
    cut: Cut,
    *,
    baseline: Cut,
    partitions: Sequence[PartitionSnapshot],
    match_keys: set[str],
) -> dict[str, list[LookupHit]]:
    """One pass over what the input topics retain, only when somebody asks for it."""
    found: dict[str, list[LookupHit]] = {}
    still_the_same = [part for part in partitions if not is_recreated(cut, part)]
    wanted = Wanted(match_keys=frozenset(match_keys))
    for record in _read_log(sides, still_the_same if match_keys else (), wanted):
        found.setdefault(record.match_key, []).append(locate_input(record, cut, baseline))
    return found


@dataclass
class _InTopics:
    """Lookup hits on the topics, as they are found."""

    by_key: dict[str, list[LookupHit]] = field(default_factory=dict)
    by_transaction: dict[str, dict[str, list[LookupHit]]] = field(default_factory=dict)


def _look_up_topics(
    sides: Sources,
    cut: Cut,
    *,
    baseline: Cut,
    partitions: Sequence[PartitionSnapshot],
    match_keys: set[str],
    transaction_keys: set[str],
    acks: Sequence[AckedOffset],
    scan: SliceScan,
    heads: KeptHeads,
) -> _InTopics:
    """One pass over what the topics retain, only when somebody asks for it; the stray ones too."""
    found = _InTopics()
    if not match_keys and not transaction_keys:
        return found
    stray_topics = sides.contract.kafka.stray_topics
    strays = read_topic_snapshot(sides.admin, stray_topics) if stray_topics else ()
    asked = frozenset((ack.topic_partition, ack.kafka_offset) for ack in acks)
    keys = Wanted(match_keys=frozenset(match_keys), transaction_keys=frozenset(transaction_keys), places=asked)
    read = [part for part in cut.topic_slices if part.offsets.topic in sides.contract.topics]
    wanted, fetched = not_yet_fetched(keys, read, scan)
    retained = (*(part for part in partitions if not is_recreated(cut, part)), *strays)
    found_in_log = _read_log(sides, retained, wanted, heads.worth_picking(wanted.known))
    records = in_log_order([*found_in_log, *fetched], retained)
    undecided = {record.topic_partition for record in records if record.outcome is Outcome.OPEN}
    open_now = _open_on(sides, sorted(undecided)) if undecided else ()
    leg_of = {topic: leg for leg, topic in sides.contract.legs.items()}
    for record in records:
        seen = locate_record(record, cut, baseline, legs=leg_of, open_transactions=open_now)
        if record.match_key in match_keys:
            found.by_key.setdefault(record.match_key, []).append(seen)
        leg = record.leg if record.leg in sides.contract.legs else leg_of.get(record.topic_partition.topic)
        if record.transaction_key in transaction_keys and leg is not None:
            found.by_transaction.setdefault(record.transaction_key, {}).setdefault(leg, []).append(seen)
    standing = {(record.topic_partition, record.kafka_offset): record for record in records}
    first_topic_ids = {part.offsets.topic: part.snapshot.topic_id for part in baseline.topic_slices}
    for ack in acks:
        hit = locate_acked(
            ack,
            standing.get((ack.topic_partition, ack.kafka_offset)),
            partitions=partitions,
            first_topic_ids=first_topic_ids,
        )
        if hit is not None:
            found.by_key.setdefault(ack.match_key, []).append(hit)
    return found


def _open_on(sides: Sources, partitions: Sequence[TopicPartition]) -> tuple[OpenTransaction, ...]:
    """None where the broker cannot say: their records are pending then, and so not missing either."""
    try:
        return read_open_transactions(sides.admin, partitions)
    except TransactionsNotTold:
        return ()


def _read_log(
    sides: Sources, partitions: Iterable[PartitionSnapshot], wanted: Wanted, heads: KeptHeads = NO_HEADS
) -> Iterator[LogRecord]:
    """The wanted records of all that is retained."""
    ranges = [
        OffsetRange(
            topic=part.topic,
            partition=part.partition,
            kafka_offset_start=part.log_start,
            kafka_offset_end=part.high_watermark,
        )
        for part in partitions
    ]
    fetch = sides.fetcher(ahead=ranges)
    for offsets in ranges:
        yield from find_records(fetch, [offsets], sides.contract.event_on(offsets.topic), wanted, heads)


def _seen_json(seen: LookupHit) -> dict[str, Any]:
    detail = seen.detail if isinstance(seen.detail, dict) else dict(seen.detail)
    return {"side": seen.side.value, "place": seen.place.value, "item_id": seen.item_id, "detail": detail}


def _seen(document: Mapping[str, Any]) -> LookupHit:
    return LookupHit(
        side=ItemSide(document["side"]),
        place=RecordLocation(document["place"]),
        item_id=document["item_id"],
        detail=document["detail"],
    )


def _text(moment: datetime | None) -> str | None:
    return moment.isoformat() if moment else None
