"""The events that a compensation publishes: made from the ledger row, of the original's shape; or, to take a copy back,
from that copy. Their headers say who made them. And: which events of a key stand.
"""

import json
from codecs import BOM_UTF8
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

import msgspec

from tallystick.compensation.plan import PlanItem, RepairKind
from tallystick.compensation.record_keys import JoinedKeys, joined_keys, tells, written_forms
from tallystick.contract.equality import LONG_MAX
from tallystick.contract.event import EventFields
from tallystick.contract.field_path import ABSENT, document_of, names_of
from tallystick.kafka_log.committed_records import CommittedRecord
from tallystick.kafka_log.event_decoder import EventDecoder, EventReading, decoder_of
from tallystick.kafka_log.record import ACTION_HEADER, REVERSES_HEADER, SESSION_HEADER, header_text
from tallystick.model.cut import JudgedPart, PartitionSnapshot
from tallystick.model.offsets import OffsetRange, TopicPartition

_FIELDS_AS_WRITTEN = msgspec.json.Decoder(dict[str, msgspec.Raw])
"""A field that is not changed may be a number that Python does not write out."""


@dataclass(frozen=True, kw_only=True)
class CurrentEvent:
    """A committed event of a match key.

    action_id: set where a compensation published it. reverses: item id of the copy that it takes back. message_key,
    value: as the log has them. reading: what it says; None: what its value alone does.
    """

    topic: str
    partition: int
    kafka_offset: int
    action_id: str
    reverses: str = ""
    message_key: bytes = b""
    value: bytes = b""
    reading: EventReading | None = field(default=None, compare=False)

    @property
    def item_id(self) -> str:
        return f"topic:{self.topic}:{self.partition}:{self.kafka_offset}"

    @property
    def place(self) -> dict[str, str | int]:
        return {"topic": self.topic, "partition": self.partition, "offset": self.kafka_offset}


@dataclass(frozen=True, kw_only=True)
class CurrentEvents:
    """The events in force of the keys asked for, readable or not.

    unreadable_keys: message keys of unreadable records, as far as items have them. unnamed: of those that do not even
    say their match key, the newest offset by topic, message key (b"" of one without) and partition. unnamed_keys: these
    keys by topic. untold: topics with such a record whose message key does not tell either of what it is. unread: by
    topic, what is said of its first batch that nobody gets to read: any event may stand there.
    """

    by_key: Mapping[tuple[str, str], tuple[CurrentEvent, ...]]
    unreadable_keys: frozenset[tuple[str, bytes]]
    unnamed: Mapping[str, Mapping[bytes, Mapping[int, int]]] = field(default_factory=dict)
    unnamed_keys: Mapping[str, JoinedKeys] = field(default_factory=dict)
    untold: frozenset[str] = frozenset()
    unread: Mapping[str, str] = field(default_factory=dict)

    def of(self, item: PlanItem) -> tuple[CurrentEvent, ...]:
        return self.by_key.get((item.topic, item.match_key), ())

    def why_hidden(self, item: PlanItem, seen: Collection[CurrentEvent] = ()) -> str | None:
        """Return why an event of the item may be there and not be seen; None: it may not.

        seen: events of its key that stand elsewhere. What is about an event has its message key and comes after it; of
        a missing one nobody knows that.
        """
        if item.topic in self.unread:
            return f"not provable: {self.unread[item.topic]}"
        unnamed = self.unnamed_keys.get(item.topic)
        if (
            not _record_keys(item).isdisjoint(self.unreadable_keys)
            or any(self._may_have_followed(event) for event in (*self.of(item), *seen))
            or (unnamed and unnamed.may_tell(written_forms(item.transaction_key, item.match_key)))
        ):
            return f"not provable: a record of its message key in {item.topic} is unreadable"
        if item.kind is RepairKind.REPUBLISH and item.topic in self.untold:
            return f"not provable: a record in {item.topic} is unreadable, and its message key does not tell of what"
        return None

    def _may_have_followed(self, event: CurrentEvent) -> bool:
        """Return whether an unnamed record of its message key stands behind it, or on another partition, where nobody
        knows which of both came first.
        """
        newest = self.unnamed.get(event.topic, {}).get(event.message_key, {})
        return any(part != event.partition or offset > event.kafka_offset for part, offset in newest.items())


def _record_keys(item: PlanItem) -> set[tuple[str, bytes]]:
    """By which the item's records may be known where their values cannot be read: a tombstone, for one. Records without
    a key are no item's own, also where it has no transaction key.
    """
    return {(item.topic, key.encode()) for key in (item.transaction_key, item.match_key) if key}


def event_value(item: PlanItem, names: EventFields) -> bytes:
    """Return the payload under the contract's field names."""
    said = (
        (names.match_key, item.match_key),
        (names.transaction_key, item.transaction_key),
        (names.leg, item.leg),
        (names.amount_minor, item.amount_minor),
        (names.currency, item.currency),
        ("occurred_at", item.occurred_at),
    )
    return json.dumps(document_of({path: value for path, value in said if isinstance(path, str)})).encode()


def event_headers(item: PlanItem, *, session: str) -> tuple[tuple[str, bytes], ...]:
    """Return the headers. session: one per process, so that a second copy of the event can be told from a retry."""
    headers = (ACTION_HEADER, str(item.action_id).encode()), (SESSION_HEADER, session.encode())
    return (*headers, (REVERSES_HEADER, item.reverses.encode())) if item.reverses else headers


def reversal_value(copy: CurrentEvent, names: EventFields, *, negated: bool) -> bytes:
    """Return the payload of the copy that is taken back; negated: with the other sign before its amount."""
    if not negated:
        return copy.value
    return _with_other_sign(copy.value.removeprefix(BOM_UTF8), names_of(names.amount_minor))


def _with_other_sign(written: bytes, path: Sequence[str]) -> bytes:
    """Return a JSON object, or at its path's end a whole number, with the other sign before that number."""
    if not path:
        return b"%d" % -int(written)
    document = _FIELDS_AS_WRITTEN.decode(written)
    name, *inside = path
    return msgspec.json.encode(document | {name: msgspec.Raw(_with_other_sign(bytes(document[name]), inside))})


def document_at(written: bytes, paths: Iterable[str]) -> dict[str, Any]:
    """Return what a JSON object says at these paths, digit by digit, and nothing else: what nobody asks for may be a
    number that Python does not read.

    Raises ValueError where one of these values cannot be read.
    """
    try:
        values = {path: _value_at(written.removeprefix(BOM_UTF8), names_of(path)) for path in paths}
    except (ArithmeticError, RecursionError) as error:
        raise ValueError(f"expected values that can be read: {type(error).__name__}") from error
    return document_of({path: value for path, value in values.items() if value is not ABSENT})


def _value_at(written: bytes, names: Sequence[str]) -> Any:
    for name in names:
        try:
            written = bytes(_FIELDS_AS_WRITTEN.decode(written).get(name, b""))
        except msgspec.ValidationError:
            return ABSENT
        if not written:
            return ABSENT
    return json.loads(written, parse_float=Decimal)


def in_force(standing: Collection[CurrentEvent]) -> tuple[CurrentEvent, ...]:
    """Return the events of one key that nothing has taken back, without those that take others back."""
    taken_back = {event.reverses for event in standing if event.reverses}
    return tuple(event for event in standing if not event.reverses and event.item_id not in taken_back)


def why_not_reversible(
    item: PlanItem,
    standing: Collection[CurrentEvent],
    names: EventFields,
    *,
    elsewhere: Collection[str] = (),
    negated: bool = False,
    known: Collection[CurrentEvent] = (),
) -> str | None:
    """Return the reason not to take the item's copy back, by the events of its key now; None: there is none.

    elsewhere: item ids of copies that other actions take back, whether the log shows it or not. negated: a reversal has
    the other sign before the copy's amount. known: events that may differ.
    """
    if negated and -item.amount_minor > LONG_MAX:
        return f"its amount with the other sign, {-item.amount_minor}, is more than 64 bits hold: nobody could read it"
    copy = next((event for event in standing if event.item_id == item.reverses), None)
    if copy is None:
        return "not provable: the copy is not on the retained log any more"
    for event in standing:
        if event.reverses == item.reverses:
            return f"it was taken back already: {event.topic}[{event.partition}] at {event.kafka_offset}"
    if copy.reverses:
        return "the copy takes another one back itself"
    left = in_force(standing)
    if len(left) < 2:
        return "not provable: no other copy of the event is on the retained log any more"
    if len([event for event in left if event.item_id not in elsewhere]) < 2:
        return "another plan takes every other copy of the event back, or has done so"
    if not says_the_same(copy, item, names):
        return "the copy does not say what the run read"
    return _why_they_differ(left, item, names, known)


def _why_they_differ(
    left: Collection[CurrentEvent], item: PlanItem, names: EventFields, known: Collection[CurrentEvent]
) -> str | None:
    """Return the reason to leave it to people: of events that say something else, one may amend or cancel another."""
    if all(event in known or says_the_same(event, item, names) for event in left):
        return None
    return "events of its key differ in money, transaction or leg: one may amend or cancel another"


def why_not_postable(
    item: PlanItem, standing: Collection[CurrentEvent], names: EventFields, *, known: Collection[CurrentEvent] = ()
) -> str | None:
    """Return the reason not to post the item's event, by the events of its key now; None: there is none.

    known: events that may differ.
    """
    event = next((event for event in standing if event.item_id == item.posts), None)
    if event is None:
        return "not provable: the event is not on the retained log any more"
    left = in_force(standing)
    if event not in left:
        return "the event was taken back"
    if not says_the_same(event, item, names):
        return "the event does not say what the run read"
    return _why_they_differ(left, item, names, known)


def why_not_read_whole(
    partitions: Iterable[PartitionSnapshot], judged: Mapping[TopicPartition, JudgedPart]
) -> str | None:
    """Return the reason why an event that these do not show may have been written all the same; None: there is none.

    What the log retains no more must have been read by a run with a verdict. partitions: all of a topic, as they were
    before the log was read. judged: how far the newest verdict had read them by then.
    """
    for part in partitions:
        known = judged.get(part.topic_partition)
        if known is not None and known.topic_id != part.topic_id:
            return f"not provable: {part.topic} was made anew since the newest run"
        read_up_to = known.kafka_offset_end if known else 0
        if part.log_start > read_up_to:
            return (
                f"not provable: {part.topic_partition} begins at {part.log_start} by now, and runs have read it up to "
                f"{read_up_to}; the next run reads the rest"
            )
        if known is not None and part.leader_epoch != known.leader_epoch and part.log_start > known.log_start:
            return (
                f"not provable: {part.topic_partition} has another leader since the newest run, and has lost records: "
                "what that leader cut back, and what came in its place, may be among them; let the next window be "
                "judged, then plan anew"
            )
    return None


def unread_ranges(
    partitions: Iterable[PartitionSnapshot], judged: Mapping[TopicPartition, JudgedPart]
) -> list[OffsetRange]:
    """Return what the log retains below its LSO that no run with a verdict has read, of each partition that has any."""
    ranges = []
    for part in partitions:
        known = judged.get(part.topic_partition)
        start = max(part.log_start, known.kafka_offset_end if known else 0)
        if start < part.lso:
            ranges.append(part.stable_from(start))
    return ranges


def says_the_same(copy: CurrentEvent, item: PlanItem, names: EventFields) -> bool:
    """Return whether event and plan say the same. Compared as text, as a run reads keys: one may be a JSON number."""
    said = copy.reading or decoder_of(names).read(copy.value)
    return not said.problem and (said.match_key, said.transaction_key, said.leg, said.amount_minor, said.currency) == (
        item.match_key,
        item.transaction_key,
        item.leg,
        item.amount_minor,
        item.currency,
    )


def is_as_planned(event: CurrentEvent, item: PlanItem, names: EventFields, *, negated: bool) -> bool:
    """Return whether an event that names our action is what this action writes. A header alone proves nothing.

    negated: a reversal has the other sign before the copy's amount.
    """
    if event.reverses != item.reverses:
        return False
    if item.kind is RepairKind.REVERSE:
        amount_minor = -item.amount_minor if negated else item.amount_minor
        return says_the_same(event, replace(item, amount_minor=amount_minor), names)
    return event.message_key == item.transaction_key.encode() and says_the_same(event, item, names)


def event_at(item_id: str, standing: Collection[CurrentEvent]) -> CurrentEvent:
    """Return the event at a place where there is one."""
    return next(event for event in standing if event.item_id == item_id)


def find_events(records: Iterable[CommittedRecord], items: Collection[PlanItem], names: EventFields) -> CurrentEvents:
    """Return the events of the items' keys, whoever published them.

    A message key tells of what its record is where it is the transaction or match key of an item, or where every
    readable event of the topic, ours aside, has such a key of its own in it.
    """
    wanted = {(item.topic, item.match_key) for item in items}
    found: dict[tuple[str, str], list[CurrentEvent]] = {}
    unreadable: set[tuple[str, bytes]] = set()
    unnamed: dict[str, dict[bytes, dict[int, int]]] = {}
    keys_tell: dict[str, bool] = {}
    asked = {key for item in items for key in _record_keys(item)}
    decoder = decoder_of(names)
    unread: dict[str, str] = {}
    for record in records:
        if record.problem:
            place = f"{record.topic}[{record.partition}] at {record.kafka_offset}"
            unread.setdefault(record.topic, f"any event may stand in {place}, where {record.problem}")
            continue
        event = _read(decoder, record)
        if event.problem and (record.topic, record.key) in asked:
            unreadable.add((record.topic, record.key))
        if event.problem and not event.match_key:
            newest = unnamed.setdefault(record.topic, {}).setdefault(record.key, {})
            newest[record.partition] = max(newest.get(record.partition, -1), record.kafka_offset)
        if not event.problem and ACTION_HEADER not in record.headers and keys_tell.get(record.topic, True):
            keys_tell[record.topic] = tells(record.key, written_forms(event.transaction_key, event.match_key))
        key = (record.topic, event.match_key or "")
        if key in wanted:
            found.setdefault(key, []).append(_standing(record, event))
    return CurrentEvents(
        by_key={key: tuple(events) for key, events in found.items()},
        unreadable_keys=frozenset(unreadable),
        unnamed=unnamed,
        unnamed_keys={topic: joined_keys(keys) for topic, keys in unnamed.items()},
        untold=frozenset(
            topic
            for topic, keys in unnamed.items()
            if any(not key or not (keys_tell.get(topic) or (topic, key) in asked) for key in keys)
        ),
        unread=unread,
    )


def _read(decoder: EventDecoder, record: CommittedRecord) -> EventReading:
    if record.written is None:
        return decoder.read(record.value)
    return decoder.read_record(record.written)


def _standing(record: CommittedRecord, event: EventReading) -> CurrentEvent:
    return CurrentEvent(
        topic=record.topic,
        partition=record.partition,
        kafka_offset=record.kafka_offset,
        action_id=header_text(record.headers.get(ACTION_HEADER)) or "",
        reverses=header_text(record.headers.get(REVERSES_HEADER)) or "",
        message_key=record.key,
        value=record.value,
        reading=event,
    )
