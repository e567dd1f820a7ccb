"""Every class of the registry fires on one planted case, and stays silent on its twin, one fact away.

The twin is what the class must be told apart from; `twin_is` says what it is instead, if anything.
"""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

import pytest

from tallystick.anomalies.registry import RULES
from tallystick.judging.canary_cases import name_of
from tallystick.judging.judge import judge
from tallystick.kafka_cluster.batch_fingerprints import compare_anchors
from tallystick.kafka_cluster.open_transactions import OpenTransaction
from tallystick.kafka_cluster.state import (
    BatchFingerprint,
    BrokerSettings,
    ClusterState,
    ExecutedAction,
    TopicSettings,
    UnreadExpiry,
)
from tallystick.kafka_log.batch_header import Marker
from tallystick.kafka_log.offset_census import with_compaction
from tallystick.kafka_log.producer_history import MarkerProtocol
from tallystick.kafka_log.record import ACTION_HEADER, LogRecord
from tallystick.kafka_log.transaction_span import TransactionSpan
from tallystick.matching.evidence import (
    Evidence,
    LegsCase,
    OutOfOrderEvent,
    RecordTimes,
    SecondReading,
    UnreadableRecord,
)
from tallystick.matching.match_case import Entry, LookupHit, RecordLocation
from tallystick.model.census_values import BledBatch
from tallystick.model.cut import Cut, PartitionSnapshot, TopicSlice
from tallystick.model.finding_names import BreakClass, Doubt, Notice
from tallystick.model.findings import Break
from tallystick.model.open_item import ItemSide, ItemState
from tallystick.model.verdict import Verdict
from tests.unit.builders import (
    HOUR,
    IN_TOPIC,
    L2T,
    LEDGER,
    MINUTE,
    NOON,
    PART,
    T2L,
    TOPIC,
    census_of,
    contract_of,
    cut_of,
    deadlines_of,
    event,
    evidence_of,
    item_of,
    ledger_at,
    ledger_slice_of,
    partition_at,
    positions_of,
    record_of,
    row,
    seen,
    slice_of,
)

Name = BreakClass | Doubt | Notice


@dataclass(frozen=True, kw_only=True)
class Pair:
    """fires: evidence that proves the class and nothing else but what it is about. twin: the same but for one fact."""

    fires: Evidence
    twin: Evidence
    twin_is: frozenset[Name] = frozenset()
    about: frozenset[Name] = frozenset()


ORIGINAL, COPY = event(11), event(12)


def doubled(*, original: object, copy: object) -> Evidence:
    """One row, its event, and the event again; by whom each was written."""
    return evidence_of(row(1), ORIGINAL, COPY, identities={ORIGINAL.item_id: original, COPY.item_id: copy})


def torn(*late: LookupHit) -> Evidence:
    """A payment whose payout leg is committed; what the log holds of its fee leg."""
    case = LegsCase(transaction_key="pay-1", seen={"payout": (1_000, "EUR", ORIGINAL.item_id)}, sightings={"fee": late})
    return evidence_of(contract=contract_of(legs={"payout": TOPIC, "fee": "billing.fees"}), incomplete=(case,))


def torn_here(*, aborted_epoch: int) -> Evidence:
    """A payment whose payout leg a producer committed under epoch 3, and whose fee leg it had aborted; under which."""
    committed, aborted = event(11), event(4, topic="billing.fees")
    case = LegsCase(
        transaction_key="pay-1",
        seen={"payout": (1_000, "EUR", committed.item_id)},
        sightings={
            "payout": (seen(IN_TOPIC, RecordLocation.SLICE, 11),),
            "fee": (seen(IN_TOPIC, RecordLocation.ABORTED, 4, topic="billing.fees"),),
        },
    )
    return evidence_of(
        contract=contract_of(legs={"payout": TOPIC, "fee": "billing.fees"}),
        incomplete=(case,),
        identities={
            committed.item_id: in_transaction(record_of(committed, producer_id=7), epoch=3),
            aborted.item_id: in_transaction(record_of(aborted, producer_id=7), epoch=aborted_epoch),
        },
    )


def in_transaction(record: LogRecord, *, epoch: int) -> LogRecord:
    """The same record, of a producer whose epoch moves with each transaction."""
    span = TransactionSpan(
        first_offset=record.kafka_offset,
        first_is_certain=True,
        marker=Marker.COMMIT,
        marker_offset=record.kafka_offset + 1,
        marker_epoch=epoch + 1,
        marker_timestamp_ms=1,
        coordinator_epoch=0,
        protocol=MarkerProtocol.EPOCH_PER_TRANSACTION,
    )
    return replace(record, producer_epoch=epoch, span=span)


def by_action(record: LogRecord, action_id: str) -> LogRecord:
    """The same record, published by a compensation."""
    return replace(record, headers={ACTION_HEADER: action_id})


def bled(stray: Entry, *others: Entry) -> Evidence:
    """An event that an earlier transaction of epoch 0 left behind, and that one of epoch 1 committed."""
    batch = BledBatch(
        kafka_offset_start=stray.order,
        kafka_offset_end=stray.order + 1,
        producer_id=7,
        producer_epoch=0,
        span_epoch=1,
        marker_offset=19,
    )
    evidence = evidence_of(stray, *others, identities={stray.item_id: record_of(stray, producer_id=7)})
    return replace(evidence, census=(replace(evidence.census[0], bled_batches=1, bled=(batch,)),))


def trailing(*earlier: tuple[int, int]) -> Evidence:
    """A slice that ends ten below its mark, and where the cuts before it ended: (cursor, mark), oldest first."""
    return replace(
        cut_with(slice_of(10, 20, mark=30)), surroundings=ClusterState(cursor_positions=positions_of(*earlier))
    )


def short_of(*, high_watermark: int) -> TopicSlice:
    """A slice that ends one offset below its mark, where the leader's log ends."""
    snapshot = partition_at(lso=20, high_watermark=high_watermark, log_end=21, replicas=(1, 2, 3), in_sync=(1,))
    return replace(slice_of(10, 20, mark=21), snapshot=snapshot)


def cut_with(topic_slice: object) -> Evidence:
    return evidence_of(cut=cut_of(topic_slice))


KEPT = TopicSettings(
    topic=TOPIC,
    replication_factor=3,
    in_sync_replicas=3,
    min_insync_replicas=2,
    unclean_leader_election=False,
    cleanup_policy=("delete",),
    retention_ms=604_800_000,
    retention_bytes=-1,
    message_timestamp_type="CreateTime",
)


def configured(**changes: Any) -> Evidence:
    """A topic whose settings keep the promise, but for these."""
    return evidence_of(surroundings=ClusterState(topic_settings=(replace(KEPT, **changes),)))


def held_by(**changes: Any) -> Evidence:
    """A slice that is one offset short, and the transaction that holds it: Ongoing, with a minute of time-out."""
    holder = OpenTransaction(
        topic_partition=PART,
        producer_id=4001,
        producer_epoch=3,
        kafka_offset_start=20,
        transactional_id="relay-1",
        started_ms=0,
        timeout_ms=60_000,
        coordinator_state="Ongoing",
        lists_partition=True,
        confirmed=True,
    )
    settings = BrokerSettings(
        transaction_max_timeout_ms=600_000,
        transactional_id_expiration_ms=604_800_000,
        producer_id_expiration_ms=86_400_000,
        transaction_version=2,
    )
    known = ClusterState(topic_settings=(KEPT,), broker_settings=settings)
    open_now = replace(known, open_transactions=(replace(holder, **changes),))
    return evidence_of(cut=cut_of(slice_of(10, 20, mark=21)), surroundings=open_now)


def around(before: PartitionSnapshot, after: PartitionSnapshot | None = None) -> Evidence:
    """The partition as it stood before the scan, and after it."""
    return evidence_of(surroundings=ClusterState(partitions_before=(before,), partitions_after=(after or before,)))


def expiring(expires_utc: datetime) -> Evidence:
    """When the first offset that no run has read may expire; the next run is through by 14:10."""
    expiry = UnreadExpiry(topic_partition=PART, kafka_offset=20, expires_utc=expires_utc)
    return evidence_of(surroundings=ClusterState(expiries=(expiry,)))


ANCHOR = BatchFingerprint(
    topic_partition=PART, kafka_offset_start=4, kafka_offset_end=9, crc32c=0xC0FFEE, leader_epoch=3, read_by_cut=1
)


def reread(**changes: Any) -> Evidence:
    """What the log shows where an earlier run read a batch."""
    found = compare_anchors([ANCHOR], [replace(ANCHOR, **changes)])
    return evidence_of(surroundings=ClusterState(rewritten=found))


def disordered(*copies: Entry) -> Evidence:
    """Sequence 4 at offset 12, and 5 before it, under one ordering key."""
    late = OutOfOrderEvent(
        topic=TOPIC,
        partition=0,
        kafka_offset=12,
        match_key="ev-1",
        transaction_key="pay-of-ev-1",
        leg="payout",
        ordering_key="account-1",
        sequence=4,
        highest_before=5,
        highest_offset=10,
    )
    return evidence_of(
        *copies,
        out_of_order=(late,),
        out_of_order_count=1,
        identities={one.item_id: record_of(one) for one in copies if one.side is IN_TOPIC},
    )


def amounts(*pairs: tuple[int, int]) -> Evidence:
    """Keys of their own, each with an event and a row of these amounts."""
    copies = [
        copy
        for number, (in_topic, in_ledger) in enumerate(pairs)
        for copy in (event(11 + number, f"ev-{number}", in_topic), row(1 + number, f"ev-{number}", in_ledger))
    ]
    return evidence_of(*copies)


def read_by(isolation: str | None, *, aborted: int = 0) -> Evidence:
    """Books whose owner says how the consumer reads."""
    ledger = {"connection": "ledger_billing", "table": "billing.payout", "consumer_isolation": isolation}
    census = replace(census_of(SLICE), plain=9 - aborted, spark_rows=9 - aborted, aborted=aborted)
    return evidence_of(direction=T2L, contract=contract_of(T2L, ledger=ledger), census=(census,))


def timed(*, early: int = 0, late: int = 0, previous: Cut | None = None) -> Evidence:
    """How many records the slice's times cannot hold; the previous cut's slice was whole unless told otherwise."""
    times = RecordTimes(
        topic=TOPIC, partition=0, early=early, late=late, earliest_ms=1_772_300_000_000, latest_ms=1_772_400_000_000
    )
    return evidence_of(record_times=(times,), previous_cut=previous or cut_of(slice_of(0, 10), n=1))


STRAY = "billing.refunds"
"""A topic of no leg."""


def written_by(origin: str) -> Evidence:
    """An event without a row; who wrote it."""
    alone, known = event(11), {"origin_header": "service", "known_origins": ["relay"]}
    identities = {alone.item_id: replace(record_of(alone), headers={"service": origin})}
    return evidence_of(alone, contract=contract_of(event=known), identities=identities)


def repaired(executed_utc: datetime) -> Evidence:
    """A broken row whose event we published again, and that no run has cleared."""
    item = item_of(row(1), ItemState.BROKEN, break_id=UUID(int=1))
    action = ExecutedAction(action_id=UUID(int=2), executed_utc=executed_utc, item=item)
    return evidence_of(surroundings=ClusterState(actions=(action,)))


CLEAN = evidence_of()
SLICE = CLEAN.cut.topic_slices[0]
HOLE = replace(census_of(SLICE, unexplained=1), holes=1)

PAIRS: dict[Name, Pair] = {
    BreakClass.MISSING_IN_TOPIC_NEVER_PRODUCED: Pair(
        fires=evidence_of(row(1)),
        twin=evidence_of(
            row(1), sightings=[seen(IN_TOPIC, RecordLocation.PENDING, 25)]
        ),  # committed above the cut, or open
    ),
    BreakClass.MISSING_IN_TOPIC_ABORTED_ONLY: Pair(
        fires=evidence_of(row(1), sightings=[seen(IN_TOPIC, RecordLocation.ABORTED, 12)]),
        twin=evidence_of(row(1), event(13), sightings=[seen(IN_TOPIC, RecordLocation.ABORTED, 12)]),  # written again
    ),
    BreakClass.LOST_ACKNOWLEDGED_WRITE: Pair(
        fires=evidence_of(row(1), sightings=[seen(IN_TOPIC, RecordLocation.LOST, 12, stands_there="no record")]),
        twin=evidence_of(row(1), sightings=[seen(IN_TOPIC, RecordLocation.EXPIRED, 3)]),  # below the log start
        twin_is=frozenset({Doubt.PARTNER_NOT_SETTLED}),
    ),
    BreakClass.MISROUTED_IN_TOPIC: Pair(
        fires=evidence_of(row(1), sightings=[seen(IN_TOPIC, RecordLocation.STRAY, 4, topic=STRAY)]),
        twin=evidence_of(row(1), sightings=[seen(IN_TOPIC, RecordLocation.ABORTED, 4, topic=STRAY)]),
        twin_is=frozenset({BreakClass.MISSING_IN_TOPIC_ABORTED_ONLY}),
    ),
    BreakClass.MISSING_IN_LEDGER: Pair(
        fires=evidence_of(event(11), direction=T2L),
        twin=evidence_of(
            event(11), direction=T2L, sightings=[seen(LEDGER, RecordLocation.PENDING, 1)]
        ),  # behind the horizon
    ),
    BreakClass.DUPLICATE_IN_TOPIC_NO_IDEMPOTENCE: Pair(
        fires=doubled(original=record_of(ORIGINAL), copy=record_of(COPY)),
        twin=doubled(original=record_of(ORIGINAL), copy=record_of(COPY, session="relay-2")),
        twin_is=frozenset({BreakClass.DUPLICATE_IN_TOPIC_REPROCESSED}),
    ),
    BreakClass.DUPLICATE_IN_TOPIC_NEW_SESSION: Pair(
        fires=doubled(original=record_of(ORIGINAL, producer_id=7), copy=record_of(COPY, producer_id=8)),
        twin=doubled(original=record_of(ORIGINAL), copy=record_of(COPY)),
        twin_is=frozenset({BreakClass.DUPLICATE_IN_TOPIC_NO_IDEMPOTENCE}),
    ),
    BreakClass.DUPLICATE_IN_TOPIC_ZOMBIE: Pair(
        fires=doubled(
            original=record_of(ORIGINAL, producer_id=7, source="in:0:4"),
            copy=replace(record_of(COPY, producer_id=7, source="in:0:4", session="relay-2"), producer_epoch=1),
        ),
        twin=doubled(
            original=record_of(ORIGINAL, producer_id=7, source="in:0:4"),
            copy=replace(record_of(COPY, producer_id=8, source="in:0:4", session="relay-2"), producer_epoch=1),
        ),
        twin_is=frozenset({BreakClass.DUPLICATE_IN_TOPIC_REPROCESSED}),
    ),
    BreakClass.DUPLICATE_IN_TOPIC_REPROCESSED: Pair(
        fires=doubled(
            original=record_of(ORIGINAL, producer_id=7, source="in:0:4"),
            copy=record_of(COPY, producer_id=8, source="in:0:4", session="relay-2"),
        ),
        twin=doubled(
            original=record_of(ORIGINAL, producer_id=7, source="in:0:4"),
            copy=record_of(COPY, producer_id=8, source="in:0:5", session="relay-2"),
        ),
        twin_is=frozenset({BreakClass.DUPLICATE_IN_TOPIC_NEW_SESSION}),
    ),
    BreakClass.DUPLICATE_IN_TOPIC_COMPENSATED: Pair(
        fires=doubled(
            original=by_action(record_of(ORIGINAL, producer_id=7), "a-1"), copy=record_of(COPY, producer_id=8)
        ),
        twin=doubled(original=record_of(ORIGINAL, producer_id=7), copy=record_of(COPY, producer_id=8)),
        twin_is=frozenset({BreakClass.DUPLICATE_IN_TOPIC_NEW_SESSION}),
    ),
    BreakClass.COMPENSATED_TWICE: Pair(
        fires=doubled(
            original=by_action(record_of(ORIGINAL, producer_id=7), "a-1"),
            copy=by_action(record_of(COPY, producer_id=8), "a-1"),
        ),
        twin=doubled(
            original=by_action(record_of(ORIGINAL, producer_id=7), "a-1"),
            copy=by_action(record_of(COPY, producer_id=8), "a-2"),
        ),
        twin_is=frozenset({BreakClass.DUPLICATE_IN_TOPIC_NEW_SESSION}),
    ),
    BreakClass.DUPLICATE_IN_TOPIC_CAUSE_UNKNOWN: Pair(
        fires=doubled(original=record_of(ORIGINAL, session=None), copy=record_of(COPY)),
        twin=doubled(original=record_of(ORIGINAL), copy=record_of(COPY)),
        twin_is=frozenset({BreakClass.DUPLICATE_IN_TOPIC_NO_IDEMPOTENCE}),
    ),
    BreakClass.DUPLICATE_IN_LEDGER: Pair(
        fires=evidence_of(event(11), row(1), row(2), direction=T2L),
        twin=evidence_of(event(11), event(12), row(1), row(2), direction=T2L),  # it follows a doubled event
        twin_is=frozenset({BreakClass.DUPLICATE_IN_TOPIC_CAUSE_UNKNOWN}),
    ),
    BreakClass.DUPLICATE_IN_LEDGER_COMPENSATED: Pair(
        fires=evidence_of(event(11), row(1), replace(row(2), action_id="a-1"), direction=T2L),
        twin=evidence_of(event(11), row(1), row(2), direction=T2L),
        twin_is=frozenset({BreakClass.DUPLICATE_IN_LEDGER}),
    ),
    BreakClass.PHANTOM_IN_TOPIC: Pair(
        fires=evidence_of(event(11)),
        twin=evidence_of(
            event(11), sightings=[seen(LEDGER, RecordLocation.PENDING, 1)]
        ),  # its row is behind the horizon
    ),
    BreakClass.PHANTOM_IN_LEDGER: Pair(
        fires=evidence_of(row(1), direction=T2L),
        twin=evidence_of(row(1), direction=T2L, sightings=[seen(IN_TOPIC, RecordLocation.PENDING, 25)]),
    ),
    BreakClass.ROW_WITHOUT_KEY: Pair(
        fires=evidence_of(row(1, key=""), row(2), event(11)),
        twin=evidence_of(row(1, key="row 1"), event(12, key="row 1"), row(2), event(11)),
    ),
    BreakClass.FOREIGN_IN_TOPIC: Pair(
        fires=written_by("load-test"),
        twin=written_by("relay"),
        twin_is=frozenset({BreakClass.PHANTOM_IN_TOPIC}),
    ),
    BreakClass.ABORTED_READ_IN_LEDGER: Pair(
        fires=evidence_of(row(1), direction=T2L, sightings=[seen(IN_TOPIC, RecordLocation.ABORTED, 12)]),
        twin=evidence_of(row(1), direction=T2L),  # no record at all
        twin_is=frozenset({BreakClass.PHANTOM_IN_LEDGER}),
    ),
    BreakClass.OPEN_READ_IN_LEDGER: Pair(
        fires=evidence_of(row(1), direction=T2L, sightings=[seen(IN_TOPIC, RecordLocation.OPEN, 25)]),
        twin=evidence_of(
            row(1), direction=T2L, sightings=[seen(IN_TOPIC, RecordLocation.PENDING, 25)]
        ),  # beyond the cut
    ),
    BreakClass.AMOUNT_MISMATCH: Pair(
        fires=evidence_of(event(11, amount_minor=10_000_000_000), row(1, amount_minor=10_000_000_399)),
        twin=evidence_of(event(11, amount_minor=10_000_000_399), row(1, amount_minor=10_000_000_399)),
    ),
    BreakClass.CURRENCY_MISMATCH: Pair(
        fires=evidence_of(event(11, currency="EUR"), row(1, currency="USD")),
        twin=evidence_of(event(11, currency="USD"), row(1, currency="USD")),
    ),
    BreakClass.OUT_OF_ORDER_IN_TOPIC: Pair(
        fires=disordered(),
        twin=disordered(row(1), event(11), event(12)),  # the event again: a retry repeats its sequence
        twin_is=frozenset({BreakClass.DUPLICATE_IN_TOPIC_NO_IDEMPOTENCE}),
    ),
    Notice.REPRESENTATION_DIFFERS: Pair(
        fires=replace(CLEAN, differently_written=3),
        twin=replace(CLEAN, differently_written=0),
    ),
    Notice.OFFSETTING_ERRORS: Pair(
        fires=amounts((1_000, 1_010), (2_000, 1_990)),
        about=frozenset({BreakClass.AMOUNT_MISMATCH}),
        twin=amounts((1_000, 1_010), (2_000, 1_989)),
        twin_is=frozenset({BreakClass.AMOUNT_MISMATCH}),
    ),
    Notice.UNFILTERED_READER: Pair(fires=read_by("read_uncommitted"), twin=read_by("read_committed")),
    Notice.TIMESTAMP_SKEW: Pair(
        fires=timed(early=1),
        twin=timed(early=1, previous=cut_of(slice_of(0, 10, mark=11), n=1)),  # written while that cut was held
    ),
    Notice.HOST_CLOCK_OFF: Pair(
        fires=replace(CLEAN, cut=replace(CLEAN.cut, host_ahead_ms=6_001)),
        twin=replace(CLEAN, cut=replace(CLEAN.cut, host_ahead_ms=6_000)),  # a tenth of the grace
    ),
    BreakClass.TORN_TRANSACTION: Pair(
        fires=torn(),
        twin=torn(seen(IN_TOPIC, RecordLocation.PENDING, 25)),  # the late leg
    ),
    BreakClass.TORN_BY_PROTOCOL: Pair(
        fires=torn_here(aborted_epoch=3),
        twin=torn_here(aborted_epoch=2),  # the transaction before, tried again
        twin_is=frozenset({BreakClass.TORN_TRANSACTION}),
    ),
    BreakClass.BLED_INTO_TRANSACTION: Pair(
        fires=bled(event(11), row(1)),
        twin=replace(bled(event(11), row(1)), census=(replace(census_of(SLICE), bled_batches=0, bled=()),)),
    ),
    Notice.EMPTY_TRANSACTION: Pair(
        fires=replace(CLEAN, census=(replace(census_of(SLICE), empty_transactions=1),)),
        twin=replace(CLEAN, census=(replace(census_of(SLICE), empty_transactions=0),)),
    ),
    Doubt.HELD_BY_OPEN_TRANSACTION: Pair(
        fires=cut_with(slice_of(10, 20, mark=21)),
        twin=cut_with(slice_of(10, 20, mark=20)),
    ),
    Doubt.HANGING_TRANSACTION: Pair(
        fires=held_by(lists_partition=False),
        twin=held_by(lists_partition=True),  # long but live
        twin_is=frozenset({Doubt.HELD_BY_OPEN_TRANSACTION}),
    ),
    Doubt.HELD_BY_PREPARED_TRANSACTION: Pair(
        fires=held_by(timeout_ms=2_147_483_647),
        twin=held_by(timeout_ms=600_000),  # as long as an ordinary one may be
        twin_is=frozenset({Doubt.HELD_BY_OPEN_TRANSACTION}),
    ),
    Doubt.HELD_BY_REPLICATION: Pair(
        fires=cut_with(short_of(high_watermark=20)),
        twin=cut_with(short_of(high_watermark=21)),  # all replicas have it; a transaction is open
        twin_is=frozenset({Doubt.HELD_BY_OPEN_TRANSACTION}),
    ),
    Doubt.HELD_BY_LEDGER_HORIZON: Pair(
        fires=evidence_of(cut=cut_of(ledger_slice=ledger_slice_of(200, 300, mark=301))),
        twin=evidence_of(cut=cut_of(ledger_slice=ledger_slice_of(200, 300, mark=300))),
    ),
    Doubt.PARTNER_NOT_SETTLED: Pair(
        fires=evidence_of(row(1), deadlines=deadlines_of(topic_settled_until_utc=NOON)),
        twin=evidence_of(row(1), deadlines=deadlines_of(topic_settled_until_utc=NOON + MINUTE)),  # just at its deadline
        twin_is=frozenset({BreakClass.MISSING_IN_TOPIC_NEVER_PRODUCED}),
    ),
    Doubt.LOG_EXPIRED: Pair(
        fires=cut_with(slice_of(10, 20, expired=1)),
        twin=cut_with(slice_of(10, 20, expired=0)),
    ),
    Doubt.LOG_COMPACTED: Pair(
        fires=replace(CLEAN, census=(with_compaction(HOLE, compacts=True),)),
        twin=replace(CLEAN, census=(with_compaction(HOLE, compacts=False),)),
        twin_is=frozenset({Doubt.UNEXPLAINED_GAP}),
    ),
    Doubt.LOG_REWRITTEN: Pair(
        fires=reread(crc32c=0xDECAF),
        twin=reread(leader_epoch=4),  # the same records, sent again to the next leader
    ),
    Doubt.TOPIC_RECREATED: Pair(
        fires=around(partition_at(topic_id="another")),
        twin=around(partition_at(high_watermark=30)),
    ),
    Doubt.LOG_TRUNCATED: Pair(
        fires=around(partition_at(lso=19, high_watermark=19)),
        twin=around(partition_at(lso=20, high_watermark=20)),
    ),
    Doubt.TORN_CUT: Pair(
        fires=around(partition_at(), partition_at(log_start=11)),
        twin=around(partition_at(), partition_at(log_start=10, lso=25, high_watermark=30, leader_epoch=5)),
    ),
    Notice.RETENTION_OVERTAKES: Pair(
        fires=expiring(NOON + 2 * HOUR + 9 * MINUTE),
        twin=expiring(NOON + 2 * HOUR + 10 * MINUTE),
    ),
    Notice.CURSOR_STOPPED: Pair(
        fires=trailing((20, 20), (20, 25), (20, 25)),
        about=frozenset({Doubt.HELD_BY_OPEN_TRANSACTION}),
        twin=trailing((19, 20), (20, 25), (20, 25)),  # it moved, by one
        twin_is=frozenset({Doubt.HELD_BY_OPEN_TRANSACTION}),
    ),
    Notice.BACKLOG_GROWS: Pair(
        fires=trailing((17, 17), (18, 20), (19, 23)),
        about=frozenset({Doubt.HELD_BY_OPEN_TRANSACTION}),
        twin=trailing((17, 18), (18, 19), (19, 23)),  # in one window it stayed
        twin_is=frozenset({Doubt.HELD_BY_OPEN_TRANSACTION}),
    ),
    Doubt.UNEXPLAINED_GAP: Pair(
        fires=replace(CLEAN, census=(census_of(SLICE, unexplained=1),)),
        twin=replace(CLEAN, census=(census_of(SLICE, unexplained=0),)),
    ),
    Doubt.READERS_DISAGREE: Pair(
        fires=replace(CLEAN, census=(census_of(SLICE, spark_rows=10),)),
        twin=replace(CLEAN, census=(census_of(SLICE, spark_rows=9),)),
    ),
    Doubt.UNREADABLE_PAYLOAD: Pair(
        fires=replace(
            CLEAN,
            unreadable_count=1,
            unreadable_sample=(UnreadableRecord(topic=TOPIC, partition=0, kafka_offset=14),),
        ),
        twin=CLEAN,
    ),
    Doubt.FORGED_REPAIR: Pair(
        fires=replace(CLEAN, forged_repairs=("topic:billing.payouts:0:14",)),
        twin=replace(CLEAN, forged_repairs=()),
    ),
    Doubt.LEDGER_REWRITTEN: Pair(
        fires=replace(CLEAN, older_rows=39, older_rows_expected=40),
        twin=replace(CLEAN, older_rows=40, older_rows_expected=40),
    ),
    Doubt.LEDGER_FAILED_OVER: Pair(
        fires=replace(CLEAN, previous_ledger=ledger_at(200, timeline=2)),
        twin=replace(CLEAN, previous_ledger=ledger_at(200, lsn="0/0")),
    ),
    Doubt.LEDGER_IDS_REUSED: Pair(
        fires=replace(CLEAN, previous_ledger=ledger_at(301)),
        twin=replace(CLEAN, previous_ledger=ledger_at(300)),  # idle: no id was given out since
    ),
    Doubt.KEY_INDEX_LOST: Pair(
        fires=replace(CLEAN, lost_indexes=(1,)),
        twin=replace(CLEAN, lost_indexes=()),
    ),
    Doubt.ROW_IDS_REPEAT: Pair(
        fires=replace(CLEAN, repeated_row_ids=("17",)),
        twin=replace(CLEAN, repeated_row_ids=()),
    ),
    Doubt.CANARY_MISSED: Pair(
        fires=replace(CLEAN, missed_canaries=("amount (scan)",)),
        twin=replace(CLEAN, missed_canaries=()),
    ),
    Doubt.VACUOUS_RUN: Pair(
        fires=replace(CLEAN, ledger_rows=0),
        twin=replace(CLEAN, ledger_rows=1),
    ),
    BreakClass.COMPENSATION_NOT_EFFECTIVE: Pair(
        fires=repaired(NOON - MINUTE),
        twin=repaired(NOON - MINUTE / 2),  # its grace runs
    ),
    Notice.LATE_PARTNER: Pair(
        fires=evidence_of(event(11), carried=[item_of(row(1), ItemState.BROKEN)]),
        twin=evidence_of(event(11), carried=[item_of(row(1), ItemState.OPEN)]),  # nobody had proven it alone
        twin_is=frozenset({Notice.PAIRED_ACROSS_WINDOWS}),
    ),
    Notice.PAIRED_ACROSS_WINDOWS: Pair(
        fires=evidence_of(event(11), carried=[item_of(row(1), cut_n=1)]),
        twin=evidence_of(carried=[item_of(event(11), cut_n=1), item_of(row(1), cut_n=1)]),
    ),
    Notice.PROMISE_AT_RISK: Pair(
        fires=configured(min_insync_replicas=1),
        twin=configured(min_insync_replicas=2),
    ),
}
NAMES = pytest.mark.parametrize("name", PAIRS, ids=str)


def found_in(evidence: Evidence) -> set[Name]:
    """All that the whole registry finds."""
    return {name_of(found) for rule in RULES for found in rule.judge(evidence)}


def found_breaks(evidence: Evidence) -> list[Break]:
    """The breaks that the whole registry finds."""
    return [found for rule in RULES for found in rule.judge(evidence) if isinstance(found, Break)]


def verdict_of(evidence: Evidence) -> Verdict:
    return judge(evidence, matched_rows=9, matched_money={}, content_digests={}, look_ups={}, carried=()).verdict


def test_every_name_of_the_registry_has_its_pair() -> None:
    assert {name for rule in RULES for name in rule.names} == set(PAIRS)


def test_every_break_and_every_doubt_is_in_the_registry_but_those_of_cuts_that_no_scan_judges() -> None:
    unscanned = {Doubt.BASELINE, Doubt.CUT_CLOSED}
    assert {*BreakClass, *Doubt} - {name for rule in RULES for name in rule.names} == unscanned


def test_no_name_is_judged_by_two_rules() -> None:
    names = [name for rule in RULES for name in rule.names]
    assert len(names) == len(set(names))


@NAMES
def test_the_planted_case_fires_and_nothing_else_does(name: Name) -> None:
    assert found_in(PAIRS[name].fires) == {name} | PAIRS[name].about


@NAMES
def test_its_twin_one_fact_away_does_not(name: Name) -> None:
    assert found_in(PAIRS[name].twin) == PAIRS[name].twin_is
    assert name not in PAIRS[name].twin_is


@NAMES
def test_a_break_makes_the_run_broken_a_doubt_inconclusive_and_a_notice_nothing(name: Name) -> None:
    kinds = {type(one) for one in (name, *PAIRS[name].about)}
    expected = Verdict.BROKEN if BreakClass in kinds else Verdict.INCONCLUSIVE if Doubt in kinds else Verdict.MATCHED
    assert verdict_of(PAIRS[name].fires) is expected


@NAMES
def test_a_class_yields_only_the_names_it_stands_for(name: Name) -> None:
    for rule in RULES:
        assert {name_of(one) for one in rule.judge(PAIRS[name].fires)} <= set(rule.names)


def test_clean_evidence_is_matched() -> None:
    assert found_in(CLEAN) == set()
    assert verdict_of(CLEAN) is Verdict.MATCHED


def test_no_classes_prove_nothing() -> None:
    result = judge(CLEAN, matched_rows=9, matched_money={}, content_digests={}, look_ups={}, carried=(), classes=())
    assert result.verdict is Verdict.INCONCLUSIVE


# Further twins, where a class must be told apart from more than one thing.


@pytest.mark.parametrize(
    ("evidence", "instead"),
    [
        pytest.param(
            evidence_of(row(1), deadlines=deadlines_of(now_utc=NOON + MINUTE / 2)), set(), id="within its grace"
        ),
        pytest.param(
            evidence_of(row(1), sightings=[seen(IN_TOPIC, RecordLocation.BEFORE_BASELINE, 3)]),
            set(),
            id="before the baseline",
        ),
        pytest.param(
            evidence_of(row(1), sightings=[seen(IN_TOPIC, RecordLocation.ABORTED, 12)]),
            {BreakClass.MISSING_IN_TOPIC_ABORTED_ONLY},
            id="aborted",
        ),
        pytest.param(
            evidence_of(row(1), deadlines=deadlines_of(topic_settled_until_utc=None)),
            {Doubt.PARTNER_NOT_SETTLED},
            id="the topic never settled",
        ),
        pytest.param(
            evidence_of(row(1), sightings=[seen(IN_TOPIC, RecordLocation.SLICE, 14)]),
            {Doubt.PARTNER_NOT_SETTLED},
            id="its event is there, unreadable",
        ),
        pytest.param(
            evidence_of(row(1), deadlines=deadlines_of(topic_lost_offsets=True)),
            {Doubt.PARTNER_NOT_SETTLED},
            id="its event may have expired unread",
        ),
        pytest.param(evidence_of(row(1), event(11)), set(), id="its event is there"),
        pytest.param(evidence_of(row(1, key="ev-2"), event(11, key="ev-2")), set(), id="another key"),
    ],
)
def test_a_row_is_not_called_never_produced_when(evidence: Evidence, instead: set[Name]) -> None:
    assert found_in(evidence) == instead


@pytest.mark.parametrize(
    ("evidence", "instead"),
    [
        pytest.param(
            evidence_of(
                row(1),
                sightings=[seen(IN_TOPIC, RecordLocation.ABORTED, 12)],
                deadlines=deadlines_of(now_utc=NOON + MINUTE / 2),
            ),
            set(),
            id="its producer may still try again",
        ),
        pytest.param(
            evidence_of(
                row(1),
                sightings=[seen(IN_TOPIC, RecordLocation.ABORTED, 12), seen(IN_TOPIC, RecordLocation.PENDING, 25)],
            ),
            set(),
            id="it was tried again beyond the cut",
        ),
    ],
)
def test_a_row_is_not_called_aborted_only_when(evidence: Evidence, instead: set[Name]) -> None:
    assert found_in(evidence) == instead


@pytest.mark.parametrize("direction", [L2T, T2L], ids=str)
def test_a_direction_knows_only_its_own_kind_of_missing(direction: object) -> None:
    """The same lone row is missing in the topic when the ledger is written first, and a phantom when it follows."""
    expected = BreakClass.MISSING_IN_TOPIC_NEVER_PRODUCED if direction is L2T else BreakClass.PHANTOM_IN_LEDGER
    assert found_in(evidence_of(row(1), direction=direction)) == {expected}
    assert found_in(evidence_of(event(11), direction=direction)) == {
        BreakClass.PHANTOM_IN_TOPIC if direction is L2T else BreakClass.MISSING_IN_LEDGER
    }


def test_a_row_posted_for_an_aborted_event_names_the_abort() -> None:
    sightings = [seen(LEDGER, RecordLocation.SLICE, 1), seen(IN_TOPIC, RecordLocation.ABORTED, 12)]
    evidence = evidence_of(row(1), direction=T2L, sightings=sightings)
    (found,) = [one for rule in RULES for one in rule.judge(evidence)]
    assert isinstance(found, Break)
    assert "topic:billing.payouts:0:12, in a producer transaction that was aborted" in found.story


def test_a_second_row_whose_event_lies_beyond_the_cut_is_no_duplicate_yet() -> None:
    carried = item_of(row(2), due_utc=NOON - HOUR)
    evidence = evidence_of(
        event(11), row(1), direction=T2L, carried=[carried], sightings=[seen(IN_TOPIC, RecordLocation.PENDING, 25)]
    )
    assert found_in(evidence) == {Notice.PAIRED_ACROSS_WINDOWS}


def test_a_partition_without_a_census_is_a_gap() -> None:
    assert found_in(replace(CLEAN, census=())) == {Doubt.UNEXPLAINED_GAP}


def test_a_reader_that_counted_nothing_disagrees() -> None:
    assert found_in(replace(CLEAN, census=(replace(census_of(SLICE), spark_rows=None),))) == {Doubt.READERS_DISAGREE}


@pytest.mark.parametrize("is_same", [True, False])
def test_a_second_reading_that_is_not_the_same_is_a_doubt(is_same: bool) -> None:
    """With as many records: what counts is their bytes."""
    reading = SecondReading(offsets=SLICE.readable, rows=9, client_rows=9, is_same=is_same)
    assert found_in(replace(CLEAN, second_readings=(reading,))) == (set() if is_same else {Doubt.READERS_DISAGREE})


def test_the_guard_of_older_rows_is_silent_where_the_slicing_column_makes_it_needless() -> None:
    assert found_in(replace(CLEAN, older_rows=None)) == set()


@pytest.mark.parametrize(("topic_rows", "ledger_rows"), [(0, 0), (0, 1), (1, 0)])
def test_an_empty_side_proves_nothing(topic_rows: int, ledger_rows: int) -> None:
    evidence = replace(CLEAN, topic_rows=topic_rows, ledger_rows=ledger_rows)
    assert found_in(evidence) == {Doubt.VACUOUS_RUN}


def test_two_empty_sides_pass_only_where_the_contract_allows_it_and_a_census_was_taken() -> None:
    silent = replace(CLEAN, topic_rows=0, ledger_rows=0, contract=contract_of(empty="allowed"))
    assert found_in(silent) == set()
    assert Doubt.VACUOUS_RUN in found_in(replace(silent, census=()))
    assert found_in(replace(silent, topic_rows=1)) == {Doubt.VACUOUS_RUN}


def test_a_window_whose_only_rows_clear_open_items_is_not_empty() -> None:
    clears = evidence_of(event(11), carried=[item_of(row(1))], topic_rows=1, ledger_rows=0)
    assert found_in(clears) == {Notice.PAIRED_ACROSS_WINDOWS}
    waits = evidence_of(event(11), sightings=[seen(LEDGER, RecordLocation.PENDING, 1)], topic_rows=1, ledger_rows=0)
    assert found_in(waits) == {Doubt.VACUOUS_RUN}


def test_a_legs_side_never_reaches_the_pairing() -> None:
    item = replace(item_of(row(1)), side=ItemSide.LEGS, item_id="legs:pay-1")
    assert evidence_of(carried=[item]).outcomes == ()
