"""Literal values for the tests of the core: one contract, one cut at noon, and events, rows and evidence of it.

What a test does not say is unremarkable: nothing held, nothing expired, all deadlines past, both sides settled.
"""

from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import HealthCheck, settings

from tallystick.contract.contract import Contract
from tallystick.kafka_cluster.state import CursorPosition
from tallystick.kafka_log.log_walk import Outcome
from tallystick.kafka_log.record import LogRecord
from tallystick.matching.evidence import EarlierRun, Evidence, LookedUp, ScanOddities, SideTotals
from tallystick.matching.group_sums import pair_group
from tallystick.matching.grouping import group_by_key
from tallystick.matching.match_case import Deadlines, Entry, LookupHit, MatchGroup, RecordLocation
from tallystick.matching.pairing import pair_key
from tallystick.matching.scan_result import ledger_item_id, topic_item_id
from tallystick.model.census_values import PartitionCensus
from tallystick.model.cut import Cut, LedgerSlice, LedgerSnapshot, PartitionSnapshot, Sample, TopicSlice
from tallystick.model.direction import Direction
from tallystick.model.finding_names import BreakClass
from tallystick.model.item_reason import read_reason
from tallystick.model.offsets import OffsetRange, TopicPartition
from tallystick.model.open_item import ItemSide, ItemState, OpenItem

NOON, MINUTE, HOUR = datetime(2026, 3, 1, 12, tzinfo=UTC), timedelta(minutes=1), timedelta(hours=1)
TOPIC = "billing.payouts"
PART = TopicPartition(topic=TOPIC, partition=0)
L2T, T2L, T2T = Direction.LEDGER_TO_TOPIC, Direction.TOPIC_TO_LEDGER, Direction.TOPIC_TO_TOPIC
INPUT = "billing.requests"
LEDGER, IN_TOPIC = ItemSide.LEDGER, ItemSide.TOPIC

LAW = settings(
    max_examples=60,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
"""A law is tried on the same examples in every run: a red test stays red."""

MORE = settings(LAW, max_examples=500)
"""For laws over whole histories, where the odd case is rare."""


def contract_of(direction: Direction = L2T, **changes: Any) -> Contract:
    document = {
        "contract": "billing_payouts",
        "version": 1,
        "owner": "payouts",
        "direction": direction,
        "schedule": "0 * * * *",
        "start_date": NOON - 48 * HOUR,
        "kafka": {"connection": "kafka_billing"},
        "legs": {"payout": TOPIC},
        "ledger": {"connection": "ledger_billing", "table": "billing.payout"}
        if direction is not T2T
        else {"kind": "topic", "connection": "kafka_billing", "topics": [INPUT]},
    }
    return Contract.model_validate(document | changes)


def event(
    offset: int,
    key: str = "ev-1",
    amount_minor: int = 1_000,
    currency: str = "EUR",
    *,
    topic: str = TOPIC,
    partition: int = 0,
    leg: str = "payout",
    carried: OpenItem | None = None,
) -> Entry:
    """An event of the cut, at an offset; or, carried, of an earlier one."""
    return Entry(
        side=IN_TOPIC,
        item_id=topic_item_id(topic, partition, offset),
        match_key=key,
        transaction_key=f"pay-of-{key}",
        leg=leg,
        amount_minor=amount_minor,
        currency=currency,
        order=offset,
        carried=carried,
    )


def row(
    row_id: int, key: str = "ev-1", amount_minor: int = 1_000, currency: str = "EUR", *, carried: OpenItem | None = None
) -> Entry:
    """A ledger row of the cut; or, carried, of an earlier one."""
    return Entry(
        side=LEDGER,
        item_id=ledger_item_id(str(row_id)),
        match_key=key,
        transaction_key=f"pay-of-{key}",
        leg="payout",
        amount_minor=amount_minor,
        currency=currency,
        order=row_id,
        carried=carried,
    )


def item_of(
    copy: Entry, state: ItemState = ItemState.OPEN, *, due_utc: datetime = NOON - HOUR, cut_n: int = 1, **changes: Any
) -> OpenItem:
    """The item that an earlier cut made of a copy."""
    item = OpenItem(
        item_id=copy.item_id,
        side=copy.side,
        match_key=copy.match_key,
        transaction_key=copy.transaction_key,
        leg=copy.leg,
        amount_minor=copy.amount_minor,
        currency=copy.currency,
        first_seen_cut=cut_n,
        first_seen_utc=due_utc - MINUTE,
        due_utc=due_utc,
        state=state,
        reason=read_reason("within the partner's grace"),
    )
    reason = changes.get("reason")
    if reason is not None:
        changes |= {"reason": read_reason(reason)}
    return replace(item, **{"found_as": BreakClass(reason) if reason in set(BreakClass) else None, **changes})


def seen(side: ItemSide, place: RecordLocation, at: int, *, topic: str = TOPIC, **detail: Any) -> LookupHit:
    """A copy that a look-up found: at an offset, or under a row id."""
    item_id = topic_item_id(topic, 0, at) if side is IN_TOPIC else ledger_item_id(str(at))
    return LookupHit(side=side, place=place, item_id=item_id, detail=detail)


def record_of(
    copy: Entry, *, producer_id: int = -1, session: str | None = "relay-1", source: str | None = None
) -> LogRecord:
    """Who wrote an event."""
    return LogRecord(
        topic_partition=PART,
        kafka_offset=copy.order,
        outcome=Outcome.COMMITTED if producer_id >= 0 else Outcome.PLAIN,
        producer_id=producer_id,
        producer_epoch=0 if producer_id >= 0 else -1,
        sequence=copy.order if producer_id >= 0 else -1,
        is_transactional=producer_id >= 0,
        timestamp_ms=0,
        match_key=copy.match_key,
        transaction_key=copy.transaction_key,
        session=session,
        source=source,
    )


def deadlines_of(
    *,
    now_utc: datetime = NOON + HOUR,
    topic_settled_until_utc: datetime | None = NOON + HOUR,
    ledger_settled_until_utc: datetime | None = NOON + HOUR,
    **changes: Any,
) -> Deadlines:
    return Deadlines(
        now_utc=now_utc,
        new_copies_due_utc=NOON + MINUTE,
        topic_settled_until_utc=topic_settled_until_utc,
        ledger_settled_until_utc=ledger_settled_until_utc,
        **changes,
    )


def partition_at(*, log_start: int = 0, lso: int = 20, high_watermark: int = 20, **changes: Any) -> PartitionSnapshot:
    plain = PartitionSnapshot(
        topic=TOPIC,
        partition=0,
        topic_id="9J2xGk3yTf6Q1w",
        leader_epoch=4,
        log_start=log_start,
        lso=lso,
        high_watermark=high_watermark,
    )
    return replace(plain, **changes)


def slice_of(start: int, end: int, *, mark: int | None = None, expired: int = 0, topic: str = TOPIC) -> TopicSlice:
    return TopicSlice(
        offsets=offsets(start, end, topic=topic),
        snapshot=partition_at(
            log_start=start + expired if expired else 0, lso=end, high_watermark=max(end, mark or end), topic=topic
        ),
        mark=end if mark is None else mark,
        expired=expired,
    )


def offsets(start: int, end: int, *, topic: str = TOPIC) -> OffsetRange:
    return OffsetRange(topic=topic, partition=0, kafka_offset_start=start, kafka_offset_end=end)


def ledger_at(
    low_mark: int, *, high_mark: int | None = None, timeline: int = 1, lsn: str = "0/1A2B3C8"
) -> LedgerSnapshot:
    return LedgerSnapshot(
        low_mark=low_mark,
        high_mark=low_mark if high_mark is None else high_mark,
        system_identifier="73012345",
        timeline=timeline,
        lsn=lsn,
    )


def ledger_slice_of(start: int, end: int, *, mark: int | None = None, baseline: int = 100) -> LedgerSlice:
    return LedgerSlice(
        position_start=start,
        position_end=end,
        snapshot=ledger_at(end),
        mark=end if mark is None else mark,
        baseline_position=baseline,
    )


def sample_at(at_utc: datetime, high_watermark: int, ledger_high_mark: int) -> Sample:
    return Sample(
        at_utc=at_utc,
        high_watermarks=((PART, high_watermark),),
        ledger_low_mark=ledger_high_mark,
        ledger_high_mark=ledger_high_mark,
    )


def cut_of(*topic_slices: TopicSlice, ledger_slice: LedgerSlice | None = None, n: int = 2, **changes: Any) -> Cut:
    """Cut 2 unless told otherwise: offsets 10 to 20, transaction ids 200 to 300."""
    plain = Cut(
        contract="billing_payouts",
        n=n,
        window_start_utc=NOON - HOUR,
        window_end_utc=NOON,
        marked_at_utc=NOON,
        now_utc=NOON + HOUR,
        topic_slices=topic_slices or (slice_of(10, 20),),
        ledger_slice=ledger_slice or ledger_slice_of(200, 300),
    )
    return replace(plain, **changes)


def positions_of(
    *earlier: tuple[int, int], side: TopicPartition | None = PART, before: int = 30
) -> tuple[CursorPosition, ...]:
    """Where the cuts before that one ended on a side: (cursor, mark), oldest first. Their windows are hours."""
    return tuple(
        CursorPosition(
            topic_partition=side,
            cut_n=before - ago,
            window_start_utc=NOON - (ago + 1) * HOUR,
            cursor=cursor,
            mark=mark,
        )
        for ago, (cursor, mark) in zip(range(len(earlier), 0, -1), earlier, strict=True)
    )


def census_of(topic_slice: TopicSlice, *, unexplained: int = 0, spark_rows: int | None = None) -> PartitionCensus:
    """One commit marker, the rest plain records; the law holds."""
    part = topic_slice.readable
    plain = len(part) - unexplained - 1
    return PartitionCensus(
        topic=part.topic,
        partition=part.partition,
        kafka_offset_start=part.kafka_offset_start,
        kafka_offset_end=part.kafka_offset_end,
        committed=0,
        aborted=0,
        plain=plain,
        commit_markers=1,
        abort_markers=0,
        unexplained=unexplained,
        without_producer_id=plain,
        log_start=topic_slice.snapshot.log_start,
        lso=topic_slice.snapshot.lso,
        high_watermark=topic_slice.snapshot.high_watermark,
        spark_rows=plain if spark_rows is None else spark_rows,
    )


def evidence_of(
    *copies: Entry,
    direction: Direction = L2T,
    lookup_hits: Iterable[LookupHit] = (),
    carried: Iterable[OpenItem] = (),
    deadlines: Deadlines | None = None,
    cut: Cut | None = None,
    record_origins: Mapping[str, LogRecord] | None = None,
    **changes: Any,
) -> Evidence:
    """The evidence of one run whose exceptional copies are these; the hits are true of each of their keys."""
    contract, cut, deadlines = contract_of(direction), cut or cut_of(), deadlines or deadlines_of()
    grouped = group_by_key(copies, carried, parts=changes.get("contract", contract).parts_side)
    cases = (replace(case, lookup_hits=tuple(lookup_hits)) for case in grouped)
    plain = Evidence(
        contract=contract,
        cut=cut,
        earlier=EarlierRun(ledger=ledger_at(200), older_rows_expected=40),
        census=tuple(census_of(part) for part in cut.topic_slices),
        totals=SideTotals(topic_rows=9, ledger_rows=9),
        looked_up=LookedUp(older_rows=40),
        outcomes=tuple(
            pair_group(case, direction=direction, deadlines=deadlines)
            if case.parts
            else pair_key(
                case,
                direction=direction,
                deadlines=deadlines,
                legs=changes.get("contract", contract).legs,
                columns=changes.get("contract", contract).event.compared,
            )
            for case in cases
        ),
        incomplete=(),
        record_origins=record_origins or {},
        deadlines=deadlines,
    )
    return with_facts(plain, **changes)


_FACTS = {
    **{fact.name: ("totals", fact.name) for fact in fields(SideTotals)},
    **{fact.name: ("oddities", fact.name) for fact in fields(ScanOddities)},
    **{fact.name: ("looked_up", fact.name) for fact in fields(LookedUp)},
    "older_rows_expected": ("earlier", "older_rows_expected"),
    "previous_ledger": ("earlier", "ledger"),
    "previous_cut": ("earlier", "cut"),
}
"""Facts of the parts that hold several: by name, the part and the fact's name there."""


def with_facts(evidence: Evidence, **facts: Any) -> Evidence:
    """The same evidence but for these facts; a part of its own is named as it is."""
    for name, fact in facts.items():
        part, inside = _FACTS.get(name, (name, ""))
        value = replace(getattr(evidence, part), **{inside: fact}) if inside else fact
        evidence = replace(evidence, **{part: value})
    return evidence


def case_of(*copies: Entry, lookup_hits: Iterable[LookupHit] = ()) -> MatchGroup:
    return MatchGroup(match_key=copies[0].match_key, copies=copies, lookup_hits=tuple(lookup_hits))
