"""Finding records by key in what a log retains, without reading most of it: look-ups only.

Pure but for the fetch it is given. For few keys, a batch whose bytes hold none of them is passed over before it is
decoded; for many, of each record only the two keys are decoded. Only what may be wanted is read as a whole.
"""

import re
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from tallystick.contract.event import EventFields
from tallystick.kafka_log.event_decoder import DECODE_ERRORS, decoder_of, written_keys
from tallystick.kafka_log.fetch import Fetch
from tallystick.kafka_log.header_cache import NO_HEADS, KeptHeads
from tallystick.kafka_log.log_walk import DecidedBatch, Outcome, walk_past_lso
from tallystick.kafka_log.open_batch import Record, open_batch, plain_batch
from tallystick.kafka_log.record import LogRecord, record_of
from tallystick.kafka_log.unpacking import UnreadableBatch
from tallystick.model.offsets import OffsetRange, TopicPartition

NEEDLES_MAX = 4
"""Above it, looking for each key in each batch costs more than decoding the keys of all records."""
_WRITTEN_AS_IT_IS = re.compile(r'[^"/\[\\\]{}]+', re.ASCII)
"""Keys that JSON writes byte by byte, save for \\u escapes; those of other characters have several spellings."""
_ESCAPE = rb"\u"
_SCANNED = (Outcome.COMMITTED, Outcome.PLAIN)


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """The records to look for: those of one of these keys, or at one of these places.

    known: at most one range of a partition, in which every committed and plain record of these keys stands at one of
    the places; there only what was aborted is searched for keys.
    """

    match_keys: frozenset[str] = frozenset()
    transaction_keys: frozenset[str] = frozenset()
    places: frozenset[tuple[TopicPartition, int]] = frozenset()
    known: tuple[OffsetRange, ...] = ()

    def __contains__(self, record: LogRecord) -> bool:
        return (
            record.match_key in self.match_keys
            or record.transaction_key in self.transaction_keys
            or (record.topic_partition, record.kafka_offset) in self.places
        )

    @property
    def needles(self) -> tuple[bytes, ...] | None:
        """The keys' bytes; None where a batch may hold a key that they do not find."""
        keys = self.match_keys | self.transaction_keys
        plain = all(key.isascii() and key.isprintable() and _WRITTEN_AS_IT_IS.fullmatch(key) for key in keys)
        return tuple(sorted(key.encode() for key in keys)) if plain and len(keys) <= NEEDLES_MAX else None


def find_records(
    fetch: Fetch, ranges: Iterable[OffsetRange], fields: EventFields, wanted: Wanted, heads: KeptHeads = NO_HEADS
) -> Iterator[LogRecord]:
    """Yield every wanted record in the given ranges, whatever its outcome: committed, aborted, plain or open.

    Reads to each range's end, also past the LSO, and raises OffsetNotInLog where it cannot: what is not found is taken
    to stand nowhere. heads: where they are kept, only what may hold one is fetched.
    """
    fetch = heads.over(fetch)
    possible: Iterable[Record]
    needles = wanted.needles if decoder_of(fields).keeps_text else None
    keys = _KeyFilter(fields, wanted)
    for offsets in ranges:
        places = sorted(offset for part, offset in wanted.places if part == offsets.topic_partition)
        at_places = frozenset(places)
        known = [part for part in wanted.known if part.topic_partition == offsets.topic_partition]
        if not len(offsets):
            continue
        lso = fetch(offsets.topic_partition, offsets.kafka_offset_start, True).lso
        for batch in walk_past_lso(fetch, offsets, lso=lso, to_end=True):
            if batch.outcome is Outcome.MARKER:
                continue
            is_known = _is_known(batch, known)
            if is_known and not _any_inside(batch, places):
                continue
            whole = heads.whole(offsets.topic_partition, batch)
            if is_known:
                possible = _standing_at(whole, at_places)
            else:
                possible = keys.possible(whole, at_places) if _may_hold(whole, needles, places) else ()
            for found in possible:
                record = record_of(found, whole, offsets.topic_partition, fields)
                inside = offsets.kafka_offset_start <= record.kafka_offset < offsets.kafka_offset_end
                if inside and record in wanted:
                    yield record


def _is_known(batch: DecidedBatch, known: Sequence[OffsetRange]) -> bool:
    """Return whether all of a batch lies where the places of wanted records are known."""
    return batch.outcome in _SCANNED and any(
        part.kafka_offset_start <= batch.header.base_offset and batch.header.next_offset <= part.kafka_offset_end
        for part in known
    )


def _standing_at(batch: DecidedBatch, places: Collection[int]) -> Iterator[Record]:
    return (record for record in open_batch(batch) if record.offset in places)


class _KeyFilter:
    """Tells from two fields of an event whether its record may be wanted. Only a no is certain.

    `decode_keys` is strict where `record_of` is lenient; what it refuses may be wanted. Where the empty key is, so may
    all be, since what cannot be read has it.
    """

    def __init__(self, fields: EventFields, wanted: Wanted) -> None:
        self._match_keys = written_keys(wanted.match_keys)
        self._transaction_keys = written_keys(wanted.transaction_keys)
        self._all = "" in wanted.match_keys | wanted.transaction_keys
        self._decoder = decoder_of(fields)

    def possible(self, batch: DecidedBatch, places: Collection[int]) -> Iterator[Record]:
        """Return the batch's records that may be wanted for their key, and those at these places."""
        if self._all:
            yield from open_batch(batch)
            return
        match_keys, transaction_keys = self._match_keys, self._transaction_keys
        decode, payload = self._decoder.decode_keys, self._decoder.payload
        for record in open_batch(batch):
            if record.value is None:  # nor does any key stand in it: a tombstone, or one of a batch that is not read
                if record.offset in places:
                    yield record
                continue
            try:
                event = decode(payload(record) or b"")
            except DECODE_ERRORS:
                yield record
                continue
            if event.match_key in match_keys or event.transaction_key in transaction_keys or record.offset in places:
                yield record


def _may_hold(batch: DecidedBatch, needles: tuple[bytes, ...] | None, places: Sequence[int]) -> bool:
    """Return whether a batch may hold a wanted record. Only False is certain."""
    if needles is None or _any_inside(batch, places):
        return True
    try:
        records = plain_batch(batch)
    except UnreadableBatch:
        return False
    return _ESCAPE in records or any(needle in records for needle in needles)


def _any_inside(batch: DecidedBatch, places: Sequence[int]) -> bool:
    """places: sorted offsets."""
    first = bisect_left(places, batch.header.base_offset)
    return first < len(places) and places[first] <= batch.header.last_offset
