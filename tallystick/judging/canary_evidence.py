"""A calm cut that holds planted copies only, and what one fact more makes of it: what a census, a look-up, a batch
header or the cluster would have said. Stands for itself, so that nothing the run has found is mistaken for a canary.

One file, since it is a list of small changes to one calm cut, a few lines for each class.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

from tallystick.contract.compare import ComparedColumns, CompareRule
from tallystick.contract.contract import Contract
from tallystick.kafka_cluster.batch_fingerprints import compare_anchors
from tallystick.kafka_cluster.open_transactions import OpenTransaction
from tallystick.kafka_cluster.state import (
    BatchFingerprint,
    BrokerSettings,
    ClusterState,
    CursorPosition,
    ExecutedAction,
    TopicSettings,
    UnreadExpiry,
)
from tallystick.kafka_log.batch_header import Marker
from tallystick.kafka_log.log_walk import Outcome
from tallystick.kafka_log.producer_history import MarkerProtocol
from tallystick.kafka_log.record import LogRecord
from tallystick.kafka_log.transaction_span import TransactionSpan
from tallystick.matching.evidence import (
    EarlierRun,
    Evidence,
    LegsCase,
    LookedUp,
    OutOfOrderEvent,
    RecordTimes,
    SideTotals,
    UnreadableRecord,
)
from tallystick.matching.group_sums import pair_group
from tallystick.matching.grouping import group_by_key
from tallystick.matching.match_case import Deadlines, Entry, LookupHit, RecordLocation, UnmatchedItem
from tallystick.matching.pairing import pair_key
from tallystick.matching.scan_result import CANARY, CANARY_PARTITION, ledger_item_id, topic_item_id
from tallystick.model.census_values import BledBatch, PartitionCensus
from tallystick.model.cut import LedgerSnapshot, PartitionSnapshot, TopicSlice
from tallystick.model.direction import Direction
from tallystick.model.item_reason import ReasonCode, reason_of
from tallystick.model.offsets import OffsetRange, TopicPartition
from tallystick.model.open_item import ItemSide, ItemState, OpenItem

Change = Callable[[Evidence], Evidence]

ORIGIN_HEADER = "service"
_OURS = "canary"
_DAY = timedelta(days=1)
_ID = UUID(int=1)


def calm_evidence(evidence: Evidence) -> Evidence:
    """Return the evidence of a cut of one planted partition where nothing is wrong, with the run's contract and its
    times.
    """
    contract, cut = _plain(evidence.contract), evidence.cut
    part = TopicPartition(topic=min(contract.topics), partition=CANARY_PARTITION)
    one = _slice(part)
    end = cut.ledger_slice.position_end
    snapshot = replace(cut.ledger_slice.snapshot, low_mark=end, high_mark=end)
    ledger_slice = replace(cut.ledger_slice, mark=end, snapshot=snapshot, changed=(), anchors=(), lost=())
    later = cut.now_utc + _DAY
    return Evidence(
        contract=contract,
        cut=replace(cut, topic_slices=(one,), ledger_slice=ledger_slice, host_ahead_ms=None),
        earlier=EarlierRun(ledger=ledger_slice.snapshot, older_rows_expected=1),
        census=(_census(one),),
        totals=SideTotals(topic_rows=1, ledger_rows=1),
        looked_up=LookedUp(older_rows=1),
        outcomes=(),
        incomplete=(),
        record_origins={},
        deadlines=Deadlines(
            now_utc=later,
            new_copies_due_utc=cut.now_utc,
            topic_settled_until_utc=later,
            ledger_settled_until_utc=later,
        ),
    )


def _plain(contract: Contract) -> Contract:
    """Return the contract, with an origin header and a reader chosen here."""
    event = contract.event.model_copy(update={"origin_header": ORIGIN_HEADER, "known_origins": (_OURS,)})
    ledger = contract.ledger.model_copy(update={"consumer_isolation": None})
    return contract.model_copy(update={"event": event, "ledger": ledger})


def with_plant(
    calm: Evidence,
    copies: Sequence[Entry],
    *,
    seen: RecordLocation | None = None,
    written: Sequence[Mapping[str, Any]] = (),
    carried: Iterable[OpenItem] = (),
    deadlines: Deadlines | None = None,
) -> Evidence:
    """Judge these copies with the given facts; a writer that is not described is like any other known writer."""
    contract, deadlines = calm.contract, deadlines or calm.deadlines
    events = sorted((copy for copy in copies if copy.side is ItemSide.TOPIC), key=lambda copy: copy.order)
    detail = {"stands_there": "no record"} if seen is RecordLocation.LOST else {}
    lookup_hits = (
        () if seen is None else (LookupHit(side=ItemSide.TOPIC, place=seen, item_id=_item(calm, 17), detail=detail),)
    )
    outcomes = tuple(
        pair_key(
            replace(case, lookup_hits=lookup_hits),
            direction=contract.direction,
            deadlines=deadlines,
            legs=contract.legs,
            columns=contract.event.compared,
        )
        for case in group_by_key(copies, carried)
    )
    records = [
        _record(copy, **(written[number] if number < len(written) else {})) for number, copy in enumerate(events)
    ]
    return replace(
        calm,
        outcomes=outcomes,
        deadlines=deadlines,
        record_origins={record.item_id: record for record in records} if written else {},
    )


def _record(copy: Entry, *, producer_id: int = -1, producer_epoch: int = 0, **changes: Any) -> LogRecord:
    _, topic, partition, _ = copy.item_id.split(":")
    plain = LogRecord(
        topic_partition=TopicPartition(topic=topic, partition=int(partition)),
        kafka_offset=copy.order,
        outcome=Outcome.PLAIN if producer_id < 0 else Outcome.COMMITTED,
        producer_id=producer_id,
        producer_epoch=producer_epoch if producer_id >= 0 else -1,
        sequence=copy.order if producer_id >= 0 else -1,
        is_transactional=producer_id >= 0,
        timestamp_ms=0,
        match_key=copy.match_key,
        transaction_key=copy.transaction_key,
        session="one",
        source=None,
        headers={ORIGIN_HEADER: _OURS},
    )
    return replace(plain, **changes)


def _slice(part: TopicPartition, *, mark: int = 20, **changes: Any) -> TopicSlice:
    plain = TopicSlice(
        offsets=OffsetRange(topic=part.topic, partition=part.partition, kafka_offset_start=10, kafka_offset_end=20),
        snapshot=PartitionSnapshot(
            topic=part.topic,
            partition=part.partition,
            topic_id="canary",
            leader_epoch=0,
            log_start=0,
            lso=20,
            high_watermark=mark,
        ),
        mark=mark,
    )
    return replace(plain, **changes)


def _census(one: TopicSlice) -> PartitionCensus:
    part = one.readable
    return PartitionCensus(
        topic=part.topic,
        partition=part.partition,
        kafka_offset_start=part.kafka_offset_start,
        kafka_offset_end=part.kafka_offset_end,
        committed=0,
        aborted=0,
        plain=len(part) - 1,
        commit_markers=1,
        abort_markers=0,
        unexplained=0,
        without_producer_id=len(part) - 1,
        log_start=one.snapshot.log_start,
        lso=one.snapshot.lso,
        high_watermark=one.snapshot.high_watermark,
        spark_rows=len(part) - 1,
    )


def _part(evidence: Evidence) -> TopicPartition:
    return evidence.cut.topic_slices[0].offsets.topic_partition


def _item(evidence: Evidence, kafka_offset: int) -> str:
    part = _part(evidence)
    return topic_item_id(part.topic, part.partition, kafka_offset)


# What one fact more makes of a calm cut.


def slices(**changes: Any) -> Change:
    def change(evidence: Evidence) -> Evidence:
        one = _slice(_part(evidence), **changes)
        return replace(evidence, cut=replace(evidence.cut, topic_slices=(one,)), census=(_census(one),))

    return change


def unreplicated(evidence: Evidence) -> Evidence:
    """Give the leader one record that too few replicas have."""
    snapshot = replace(_slice(_part(evidence)).snapshot, log_end=21, replicas=(1, 2, 3), in_sync=(1,))
    return slices(mark=21, snapshot=snapshot)(evidence)


def counted(**changes: Any) -> Change:
    return lambda evidence: replace(evidence, census=(replace(evidence.census[0], **changes),))


def totals(**changes: Any) -> Change:
    return lambda evidence: replace(evidence, totals=replace(evidence.totals, **changes))


def oddities(**changes: Any) -> Change:
    return lambda evidence: replace(evidence, oddities=replace(evidence.oddities, **changes))


def looked_up(**changes: Any) -> Change:
    return lambda evidence: replace(evidence, looked_up=replace(evidence.looked_up, **changes))


def _before(evidence: Evidence, ledger: LedgerSnapshot) -> Evidence:
    return replace(evidence, earlier=replace(evidence.earlier, ledger=ledger))


def around(make: Callable[[TopicPartition], ClusterState]) -> Change:
    return lambda evidence: replace(evidence, cluster=make(_part(evidence)))


def stood(**changes: Any) -> Change:
    """Describe the partition before and after the scan."""

    def make(part: TopicPartition) -> ClusterState:
        now = replace(_slice(part).snapshot, **changes)
        return ClusterState(partitions_before=(now,), partitions_after=(now,))

    return around(make)


def moved_start(part: TopicPartition) -> ClusterState:
    now = _slice(part).snapshot
    return ClusterState(partitions_before=(now,), partitions_after=(replace(now, log_start=11),))


def held_by(**changes: Any) -> Change:
    def change(evidence: Evidence) -> Evidence:
        holder = OpenTransaction(
            topic_partition=_part(evidence),
            producer_id=1,
            producer_epoch=0,
            kafka_offset_start=20,
            transactional_id="canary",
            started_ms=0,
            timeout_ms=60_000,
            coordinator_state="Ongoing",
            lists_partition=True,
            confirmed=True,
        )
        known = ClusterState(
            topic_settings=(settings(_part(evidence)),),
            broker_settings=BrokerSettings(
                transaction_max_timeout_ms=600_000,
                transactional_id_expiration_ms=604_800_000,
                producer_id_expiration_ms=86_400_000,
                transaction_version=2,
            ),
            open_transactions=(replace(holder, **changes),),
        )
        return replace(slices(mark=21)(evidence), cluster=known)

    return change


def settings(part: TopicPartition, **changes: Any) -> TopicSettings:
    plain = TopicSettings(
        topic=part.topic,
        replication_factor=3,
        in_sync_replicas=3,
        min_insync_replicas=2,
        unclean_leader_election=False,
        cleanup_policy=("delete",),
        retention_ms=-1,
        retention_bytes=-1,
        message_timestamp_type="CreateTime",
    )
    return replace(plain, **changes)


def rewritten(part: TopicPartition) -> ClusterState:
    read = BatchFingerprint(
        topic_partition=part, kafka_offset_start=4, kafka_offset_end=9, crc32c=1, leader_epoch=0, read_by_cut=1
    )
    return ClusterState(rewritten=compare_anchors([read], [replace(read, crc32c=2)]))


def expiring(evidence: Evidence) -> Evidence:
    soon = UnreadExpiry(topic_partition=_part(evidence), kafka_offset=20, expires_utc=evidence.cut.now_utc)
    return replace(evidence, cluster=ClusterState(expiries=(soon,)))


def trailing(*earlier: tuple[int, int]) -> Change:
    """Return a held slice, and where the cuts before it ended: (cursor, mark), oldest first."""

    def change(evidence: Evidence) -> Evidence:
        positions = (
            CursorPosition(
                topic_partition=_part(evidence),
                cut_n=number,
                window_start_utc=evidence.cut.window_start_utc,
                cursor=cursor,
                mark=mark,
            )
            for number, (cursor, mark) in enumerate(earlier, evidence.cut.n - len(earlier))
        )
        return replace(slices(mark=30)(evidence), cluster=ClusterState(cursor_positions=tuple(positions)))

    return change


def unsettled(evidence: Evidence) -> Evidence:
    """Leave the side that a lone row waits for unsettled."""
    copies = [residue.copy for outcome in evidence.outcomes for residue in outcome.residues]
    never = replace(evidence.deadlines, topic_settled_until_utc=None)
    return with_plant(evidence, copies, deadlines=never)


def bled(evidence: Evidence) -> Evidence:
    copy = evidence.outcomes[0].residues[0].copy
    batch = BledBatch(
        kafka_offset_start=copy.order,
        kafka_offset_end=copy.order + 1,
        producer_id=1,
        producer_epoch=0,
        span_epoch=1,
        marker_offset=19,
    )
    part = _record(copy).topic_partition
    census = replace(evidence.census[0], topic=part.topic, partition=part.partition, bled_batches=1, bled=(batch,))
    return replace(evidence, census=(census,))


def out_of_order(evidence: Evidence) -> Evidence:
    part = _part(evidence)
    late = OutOfOrderEvent(
        topic=part.topic,
        partition=part.partition,
        kafka_offset=12,
        match_key=f"{CANARY}order",
        transaction_key=f"{CANARY}order",
        leg=min(evidence.contract.legs),
        ordering_key="canary",
        sequence=4,
        highest_before=5,
        highest_offset=10,
    )
    return oddities(out_of_order=(late,), out_of_order_count=1)(evidence)


def parts_of_another_sum(evidence: Evidence) -> Evidence:
    """Return two events that are parts of a row, and add up to one minor unit less than it says."""
    one, other = (_leg_copy(*min(evidence.contract.legs.items()), offset) for offset in (13, 14))
    says = one.amount_minor + other.amount_minor + 1
    row = replace(one, side=ItemSide.LEDGER, item_id=ledger_item_id(CANARY), amount_minor=says)
    (case,) = group_by_key((one, other, row), (), parts=ItemSide.TOPIC)
    outcome = pair_group(case, direction=evidence.contract.direction, deadlines=evidence.deadlines)
    return replace(evidence, outcomes=(outcome,))


def other_column(evidence: Evidence) -> Evidence:
    """Return an event and a row of the same money, which say other things in a column that is compared."""
    columns = ComparedColumns((CANARY,), (CompareRule(exact="text"),))
    contract = evidence.contract
    comparing = contract.model_copy(update={"event": contract.event.comparing(columns)})
    event = replace(_leg_copy(*min(contract.legs.items()), 13), compared_text=columns.text_of(["one"]))
    row = replace(event, side=ItemSide.LEDGER, item_id=ledger_item_id(CANARY), compared_text=columns.text_of(["other"]))
    return with_plant(replace(evidence, contract=comparing), (event, row))


def torn(*, aborted_by: int | None) -> Change:
    """Return a transaction of two legs, one committed; the other absent, or aborted by the producer of this id."""

    def change(evidence: Evidence) -> Evidence:
        legs = {"here": f"{CANARY}here", "there": f"{CANARY}there"}
        here, there = (_leg_copy(leg, topic, at) for at, (leg, topic) in enumerate(legs.items()))
        lookup_hits: dict[str, tuple[LookupHit, ...]] = {}
        record_origins: dict[str, LogRecord] = {}
        if aborted_by is not None:
            lookup_hits = {
                "here": (LookupHit(side=ItemSide.TOPIC, place=RecordLocation.SLICE, item_id=here.item_id),),
                "there": (LookupHit(side=ItemSide.TOPIC, place=RecordLocation.ABORTED, item_id=there.item_id),),
            }
            record_origins = {
                copy.item_id: _record(copy, producer_id=number, span=_span(copy))
                for copy, number in ((here, 1), (there, aborted_by))
            }
        case = LegsCase(
            transaction_key=here.transaction_key, seen={"here": (100, "EUR", here.item_id)}, lookup_hits=lookup_hits
        )
        contract = evidence.contract.model_copy(update={"legs": legs, "direction": Direction.TOPIC_TO_LEDGER})
        return replace(evidence, contract=contract, incomplete=(case,), record_origins=record_origins)

    return change


def _leg_copy(leg: str, topic: str, order: int) -> Entry:
    return Entry(
        side=ItemSide.TOPIC,
        item_id=topic_item_id(topic, CANARY_PARTITION, order),
        match_key=f"{CANARY}{leg}",
        transaction_key=f"{CANARY}legs",
        leg=leg,
        amount_minor=100,
        currency="EUR",
        order=order,
    )


def _span(copy: Entry) -> TransactionSpan:
    return TransactionSpan(
        first_offset=copy.order,
        first_is_certain=True,
        marker=Marker.COMMIT,
        marker_offset=copy.order + 1,
        marker_epoch=1,
        marker_timestamp_ms=1,
        coordinator_epoch=0,
        protocol=MarkerProtocol.EPOCH_PER_TRANSACTION,
    )


def _carried(copy: Entry, evidence: Evidence, state: ItemState) -> OpenItem:
    return OpenItem(
        item_id=copy.item_id,
        side=copy.side,
        match_key=copy.match_key,
        transaction_key=copy.transaction_key,
        leg=copy.leg,
        amount_minor=copy.amount_minor,
        currency=copy.currency,
        first_seen_cut=0,
        first_seen_utc=evidence.cut.now_utc - _DAY,
        due_utc=evidence.cut.now_utc - _DAY,
        state=state,
        reason=reason_of(ReasonCode.UNKNOWN),
        break_id=_ID if state is ItemState.BROKEN else None,
    )


def partner_of_earlier(state: ItemState) -> Change:
    """Let the lone event's row be there before, as an item in this state."""

    def change(evidence: Evidence) -> Evidence:
        event = evidence.outcomes[0].residues[0].copy
        row = replace(event, side=ItemSide.LEDGER, item_id=ledger_item_id(f"{CANARY}earlier"), order=0)
        return with_plant(evidence, [event], carried=[_carried(row, evidence, state)])

    return change


def repaired_in_vain(evidence: Evidence) -> Evidence:
    row = evidence.outcomes[0].residues[0].copy
    action = ExecutedAction(
        action_id=_ID,
        executed_utc=evidence.cut.now_utc - _DAY - evidence.grace.duration,
        item=_carried(row, evidence, ItemState.BROKEN),
    )
    return replace(evidence, outcomes=(), cluster=ClusterState(actions=(action,)))


def posted_by_us(evidence: Evidence) -> Evidence:
    """Let the extra row hold the id of a compensation."""
    outcomes = tuple(
        replace(
            outcome,
            residues=tuple(
                replace(residue, copy=replace(residue.copy, action_id=str(_ID))) for residue in outcome.residues
            ),
        )
        for outcome in evidence.outcomes
    )
    return replace(evidence, outcomes=outcomes)


def offsetting(evidence: Evidence) -> Evidence:
    """Add, beside an amount that is one too small on the topic, one that is too large by as much."""
    pair = [copy for outcome in evidence.outcomes for residue in outcome.residues for copy in _both(residue)]
    other = [
        replace(
            copy,
            match_key=f"{CANARY}other",
            item_id=f"{copy.item_id}0",
            amount_minor=copy.amount_minor + (2 if copy.side is ItemSide.TOPIC else 0),
        )
        for copy in pair
    ]
    return with_plant(evidence, [*pair, *other])


def _both(residue: UnmatchedItem) -> tuple[Entry, ...]:
    return (residue.copy,) if residue.partner is None else (residue.copy, residue.partner)


def read_uncommitted(evidence: Evidence) -> Evidence:
    ledger = evidence.contract.ledger.model_copy(update={"consumer_isolation": "read_uncommitted"})
    contract = evidence.contract.model_copy(update={"ledger": ledger, "direction": Direction.TOPIC_TO_LEDGER})
    return replace(evidence, contract=contract)


def too_late(evidence: Evidence) -> Evidence:
    part = _part(evidence)
    times = RecordTimes(topic=part.topic, partition=part.partition, early=0, late=1, earliest_ms=0, latest_ms=1)
    return oddities(record_times=(times,))(evidence)


def clock_off(evidence: Evidence) -> Evidence:
    grace_ms = 1000 * max(1, evidence.contract.partner_grace_seconds)
    return replace(evidence, cut=replace(evidence.cut, host_ahead_ms=grace_ms + 1))


def failed_over(evidence: Evidence) -> Evidence:
    now = evidence.cut.ledger_slice.snapshot
    return _before(evidence, replace(now, timeline=now.timeline + 1))


def set_back(evidence: Evidence) -> Evidence:
    ours = evidence.cut.ledger_slice
    now = replace(ours.snapshot, timeline=1)  # of a server that keeps its history: only there it says so
    cut = replace(evidence.cut, ledger_slice=replace(ours, snapshot=now))
    return _before(replace(evidence, cut=cut), replace(now, low_mark=now.low_mark + 1))


def held_horizon(evidence: Evidence) -> Evidence:
    ours = evidence.cut.ledger_slice
    return replace(evidence, cut=replace(evidence.cut, ledger_slice=replace(ours, mark=ours.position_end + 1)))


def unreadable(evidence: Evidence) -> Evidence:
    part = _part(evidence)
    one = UnreadableRecord(topic=part.topic, partition=part.partition, kafka_offset=14)
    return oddities(unreadable_count=1, unreadable_sample=(one,))(evidence)
