"""What stands elsewhere under the keys that found no partner, by key and place, and until when each side has settled.

The only part of a run that is not a function of the cut alone, so it is stored with the verdict: judging the cut again
reads it back instead of asking again.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from tallystick.census import Outcome
from tallystick.contract import Direction
from tallystick.cut import Cut, LedgerSlice, PartitionSnapshot, Sample
from tallystick.ledger_reader import LedgerRow, count_older_rows, describe_table, look_up_rows, read_ledger_snapshot
from tallystick.log_fetch import fetcher
from tallystick.log_record import LogRecord, find_records
from tallystick.offsets import OffsetRange, TopicPartition
from tallystick.pairing import KeyCase, Place, Sighting, origin_side
from tallystick.run_result import ItemSide
from tallystick.settlement import ledger_settled_until, topic_settled_until
from tallystick.settling import BothSides
from tallystick.slice_scan import ledger_item_id, topic_item_id
from tallystick.surroundings import SURROUNDINGS, Surroundings
from tallystick.topic_snapshot import read_topic_snapshot


@dataclass(frozen=True, kw_only=True)
class LookUps:
    """What the look-ups answered.

    by_key: sightings of a match key on both sides. by_transaction: sightings in the topics, by transaction key and leg.
    """

    topic_settled_until_utc: datetime | None
    ledger_settled_until_utc: datetime | None
    older_rows: int | None
    by_key: Mapping[str, tuple[Sighting, ...]] = field(default_factory=dict)
    by_transaction: Mapping[str, Mapping[str, tuple[Sighting, ...]]] = field(default_factory=dict)
    surroundings: Surroundings = field(default_factory=Surroundings)

    def to_json(self) -> dict[str, Any]:
        return {
            "topic_settled_until_utc": _text(self.topic_settled_until_utc),
            "ledger_settled_until_utc": _text(self.ledger_settled_until_utc),
            "older_rows": self.older_rows,
            "by_key": {key: [_seen_json(seen) for seen in found] for key, found in sorted(self.by_key.items())},
            "by_transaction": {
                key: {leg: [_seen_json(seen) for seen in found] for leg, found in sorted(legs.items())}
                for key, legs in sorted(self.by_transaction.items())
            },
            "surroundings": SURROUNDINGS.dump_python(self.surroundings, mode="json"),
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> "LookUps":
        return cls(
            topic_settled_until_utc=_moment(document["topic_settled_until_utc"]),
            ledger_settled_until_utc=_moment(document["ledger_settled_until_utc"]),
            older_rows=document["older_rows"],
            by_key={key: tuple(map(_seen, found)) for key, found in document["by_key"].items()},
            by_transaction={
                key: {leg: tuple(map(_seen, found)) for leg, found in legs.items()}
                for key, legs in document["by_transaction"].items()
            },
            surroundings=SURROUNDINGS.validate_python(document.get("surroundings", {})),
        )


def look_up(
    sides: BothSides,
    cut: Cut,
    *,
    baseline: Cut,
    samples: Collection[Sample],
    cases: Sequence[KeyCase],
    transaction_keys: Collection[str],
    new_copies_due_utc: datetime,
) -> LookUps:
    """Ask both sides. The bounds are read first, so that what ended below them is visible to the look-up itself."""
    contract = sides.contract
    snapshot = read_ledger_snapshot(sides.ledger)
    partitions = read_topic_snapshot(sides.admin, contract.topics)
    by_key: dict[str, list[Sighting]] = {}
    table = describe_table(sides.ledger, contract.ledger)
    keys = [case.match_key for case in cases]
    rows = look_up_rows(sides.ledger, contract.ledger, table, keys, near_xid=cut.ledger_slice.xid_end)
    for key, found in rows.items():
        by_key[key] = [ledger_sighting(row, cut.ledger_slice) for row in found]
    topic_keys = {
        case.match_key
        for case in cases
        if needs_topic(
            case,
            by_key.get(case.match_key, ()),
            direction=contract.direction,
            now_utc=cut.now_utc,
            new_copies_due_utc=new_copies_due_utc,
        )
    }
    by_transaction: dict[str, dict[str, list[Sighting]]] = {}
    legs = {topic: leg for leg, topic in contract.legs.items()}
    for record in _read_log(sides, partitions, topic_keys, set(transaction_keys)):
        seen = topic_sighting(record, cut, baseline)
        if record.match_key in topic_keys:
            by_key.setdefault(record.match_key, []).append(seen)
        if record.transaction_key in transaction_keys:
            by_leg = by_transaction.setdefault(record.transaction_key, {})
            by_leg.setdefault(legs[record.topic_partition.topic], []).append(seen)
    return LookUps(
        topic_settled_until_utc=topic_settled_until(samples, partitions),
        ledger_settled_until_utc=ledger_settled_until(samples, ledger_xmin=snapshot.xmin),
        older_rows=count_older_rows(sides.ledger, contract.ledger, xid_start=cut.ledger_slice.xid_start),
        by_key={key: tuple(found) for key, found in by_key.items()},
        by_transaction={
            key: {leg: tuple(found) for leg, found in found_legs.items()} for key, found_legs in by_transaction.items()
        },
    )


def needs_topic(
    case: KeyCase,
    rows: Iterable[Sighting],
    *,
    direction: Direction,
    now_utc: datetime,
    new_copies_due_utc: datetime,
) -> bool:
    """Must the log be asked about this key? It is long, so not for what is merely in flight.

    - A copy alone within its grace waits, whatever the log holds.
    - A row without an event here may have its event elsewhere.
    - An event whose row an earlier cut read, or the books do not reach, may double one that stands elsewhere.
    - So may a follower whose row stands nowhere: its owner may have archived it.
    """
    events, in_ledger = case.side(ItemSide.TOPIC), case.side(ItemSide.LEDGER)
    known = {copy.item_id for copy in case.copies}
    others = [row for row in rows if row.item_id not in known]
    if len(case.copies) == 1 and not others:
        (copy,) = case.copies
        if (copy.carried.due_utc if copy.carried else new_copies_due_utc) > now_utc:
            return False
    if len(in_ledger) > len(events):
        return True
    if events and not in_ledger and not others:
        return origin_side(direction) is ItemSide.LEDGER
    return any(row.place in (Place.EARLIER_SLICE, Place.BEFORE_BASELINE) for row in others)


def _read_log(
    sides: BothSides, partitions: Iterable[PartitionSnapshot], match_keys: set[str], transaction_keys: set[str]
) -> Iterable[LogRecord]:
    """The whole retained log, and only when somebody asks for it."""
    if not match_keys and not transaction_keys:
        return ()
    ranges = [
        OffsetRange(
            topic=part.topic,
            partition=part.partition,
            kafka_offset_start=part.log_start,
            kafka_offset_end=part.high_watermark,
        )
        for part in partitions
    ]
    return find_records(
        fetcher(sides.admin),
        ranges,
        sides.contract.event,
        lambda record: record.match_key in match_keys or record.transaction_key in transaction_keys,
    )


def ledger_sighting(row: LedgerRow, ledger_slice: LedgerSlice) -> Sighting:
    """A row's place by the id of the transaction that wrote it."""
    if row.row_xid < ledger_slice.baseline_xid:
        place = Place.BEFORE_BASELINE
    elif row.row_xid < ledger_slice.xid_start:
        place = Place.EARLIER_SLICE
    elif row.row_xid < ledger_slice.xid_end:
        place = Place.SLICE
    else:
        place = Place.PENDING
    return Sighting(
        side=ItemSide.LEDGER, place=place, item_id=ledger_item_id(row.row_id), detail={"transaction_id": row.row_xid}
    )


def topic_sighting(record: LogRecord, cut: Cut, baseline: Cut) -> Sighting:
    """A record's place by its offset; what was aborted has no place but that."""
    part, offset = record.topic_partition, record.kafka_offset
    begins = _slice_bounds(baseline, part)[1]
    start, end = _slice_bounds(cut, part)
    if record.outcome is Outcome.ABORTED:
        place = Place.ABORTED
    elif offset < begins:
        place = Place.BEFORE_BASELINE
    elif offset < start:
        place = Place.EARLIER_SLICE
    elif offset < end:
        place = Place.SLICE
    else:
        place = Place.PENDING
    return Sighting(
        side=ItemSide.TOPIC,
        place=place,
        item_id=topic_item_id(part.topic, part.partition, offset),
        detail={
            "outcome": str(record.outcome),
            "producer_id": record.producer_id,
            "producer_epoch": record.producer_epoch,
        },
    )


def _slice_bounds(cut: Cut, part: TopicPartition) -> tuple[int, int]:
    """[start, end) of one partition in a cut; (0, 0) for one that the cut did not know."""
    for topic_slice in cut.topic_slices:
        if topic_slice.offsets.topic_partition == part:
            return topic_slice.offsets.kafka_offset_start, topic_slice.offsets.kafka_offset_end
    return 0, 0


def _seen_json(seen: Sighting) -> dict[str, Any]:
    return {"side": str(seen.side), "place": str(seen.place), "item_id": seen.item_id, "detail": dict(seen.detail)}


def _seen(document: Mapping[str, Any]) -> Sighting:
    return Sighting(
        side=ItemSide(document["side"]),
        place=Place(document["place"]),
        item_id=document["item_id"],
        detail=document["detail"],
    )


def _text(moment: datetime | None) -> str | None:
    return moment.isoformat() if moment else None


def _moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
