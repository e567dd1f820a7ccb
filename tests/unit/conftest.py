"""Literal runs for whatever reads a stored run: one of each verdict, of one contract."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from tallystick.contract.contract import Contract
from tallystick.model.census_values import PartitionCensus
from tallystick.model.cut import Cut, LedgerSlice, LedgerSnapshot, PartitionSnapshot, TopicSlice
from tallystick.model.finding_names import BreakClass, Doubt
from tallystick.model.findings import Break, DoubtFound
from tallystick.model.item_reason import read_reason
from tallystick.model.offsets import OffsetRange
from tallystick.model.open_item import ItemSide, ItemState, ItemTotal, OpenItem
from tallystick.model.run_result import RunFigures
from tallystick.model.stored_run import StoredRun
from tallystick.model.verdict import Verdict
from tests.run_results import run_figures, run_result

NOON, HOUR = datetime(2026, 3, 1, 12, tzinfo=UTC), timedelta(hours=1)


@pytest.fixture
def contract() -> Contract:
    return Contract.model_validate(
        {
            "contract": "billing_payouts",
            "version": 3,
            "owner": "payouts",
            "description": "Payouts are written to an outbox table; a relay publishes them.",
            "direction": "ledger_to_topic",
            "schedule": "0 * * * *",
            "start_date": NOON - 48 * HOUR,
            "kafka": {"connection": "kafka_billing"},
            "legs": {"payout": "billing.payouts", "fee": "billing.fees"},
            "ledger": {"connection": "ledger_billing", "table": "billing.payout"},
            "alert": {"sinks": [{"kind": "file", "path": "alerts.jsonl"}], "critical_at_minor": {"EUR": 40_000}},
            "compensation": {
                "classes": ["missing_in_topic_never_produced"],
                "max_items": 50,
                "max_amount_minor": {"EUR": 2_000_000},
            },
        }
    )


@pytest.fixture
def matched_run() -> StoredRun:
    """Cut 6: two events, two rows, one more row within grace."""
    census = (
        partition("billing.fees", 0, start=0, committed=1, commit_markers=1),
        partition("billing.payouts", 0, start=17, committed=1, aborted=2, commit_markers=1, abort_markers=1),
    )
    waiting = OpenItem(
        item_id="ledger:815",
        side=ItemSide.LEDGER,
        match_key="ev-815",
        transaction_key="pay-815",
        leg="payout",
        amount_minor=2_500,
        currency="EUR",
        first_seen_cut=6,
        first_seen_utc=NOON,
        due_utc=NOON + timedelta(minutes=1),
        state=ItemState.OPEN,
        reason=read_reason("nothing on the other side yet"),
    )
    return stored_run(
        6,
        Verdict.MATCHED,
        figures=figures(census, matched_rows=2, matched_money={"EUR": 150_000}, in_flight=(waiting,)),
        items=(waiting,),
    )


@pytest.fixture
def broken_run(matched_run: StoredRun) -> StoredRun:
    """Cut 7: four breaks of four classes in two currencies, one partition held."""
    breaks = (
        item_break(
            1, BreakClass.AMOUNT_MISMATCH, "ev-1", 9_000, "EUR", "payout", "ledger:1 says 10000, topic says 1000."
        ),
        item_break(2, BreakClass.DUPLICATE_IN_TOPIC_REPROCESSED, "ev-2", 700, "JPY", "fee", "ev-2 stands twice."),
        item_break(3, BreakClass.MISSING_IN_TOPIC_NEVER_PRODUCED, "ev-3", 40_000, "EUR", "payout", "Never produced."),
        item_break(4, BreakClass.TORN_TRANSACTION, "pay-4", 1_000, "EUR", "fee", "pay-4 committed its payout only."),
    )
    doubt = DoubtFound(
        doubt=Doubt.HELD_BY_OPEN_TRANSACTION,
        sentence="billing.payouts[0]: 7 offsets could not be read: relay-1 holds the LSO at 22.",
        details={"transactional_id": "relay-1", "since_utc": "2026-03-01 11:40:00 UTC", "held_offsets": 7},
    )
    return stored_run(
        7,
        Verdict.BROKEN,
        figures=matched_run.result.figures,
        breaks=breaks,
        doubts=(doubt,),
        items=matched_run.result.items,
        standing=(
            standing(ItemState.BROKEN, NOON - 200 * HOUR, "EUR", 2, 71_000),
            standing(ItemState.BROKEN, NOON - 30 * HOUR, "", 1, 0),
            standing(ItemState.BROKEN, NOON + HOUR, "EUR", 3, 50_000),
            standing(ItemState.BROKEN, NOON + HOUR, "JPY", 1, 700),
            standing(ItemState.OPEN, NOON, "EUR", 1, 2_500),
        ),
    )


@pytest.fixture
def inconclusive_run(matched_run: StoredRun, broken_run: StoredRun) -> StoredRun:
    """Cut 8: nothing broken, one partition held."""
    return stored_run(
        8, Verdict.INCONCLUSIVE, figures=matched_run.result.figures, doubts=broken_run.result.doubts, items=()
    )


@pytest.fixture
def baseline_run() -> StoredRun:
    """Cut 0."""
    doubt = DoubtFound(doubt=Doubt.BASELINE, sentence="This is the contract's first cut: the books begin here.")
    return stored_run(0, Verdict.INCONCLUSIVE, figures=figures((), matched_rows=0, matched_money={}), doubts=(doubt,))


@pytest.fixture
def closed_run() -> StoredRun:
    """Cut 9: closed unread, while one item waits and one is broken."""
    doubt = DoubtFound(doubt=Doubt.CUT_CLOSED, sentence="Closed unread by Ada: its batch is corrupt.")
    return stored_run(
        9,
        Verdict.INCONCLUSIVE,
        figures=figures((), matched_rows=0, matched_money={}),
        doubts=(doubt,),
        standing=(
            standing(ItemState.OPEN, NOON, "EUR", 1, 2_500),
            standing(ItemState.BROKEN, NOON, "EUR", 1, 70_000),
        ),
    )


def standing(state: ItemState, first_seen_utc: datetime, currency: str, count: int, amount_minor: int) -> ItemTotal:
    return ItemTotal(
        state=state, first_seen_utc=first_seen_utc, currency=currency, count=count, amount_minor=amount_minor
    )


def item_break(
    n: int, break_class: BreakClass, match_key: str, amount_minor: int, currency: str, leg: str, story: str
) -> Break:
    return Break(
        break_id=UUID(int=n),
        break_class=break_class,
        match_key=match_key,
        transaction_key=f"pay-{n}",
        leg=leg,
        amount_minor=amount_minor,
        currency=currency,
        copies=1,
        story=story,
        evidence={"at": f"ledger:{n}", "found_elsewhere": [{"at": "topic:billing.fees:0:3", "producer_id": 4001}]},
    )


def partition(topic: str, number: int, *, start: int, **counts: int) -> PartitionCensus:
    """A partition's census; `end` follows from the counts, so that the law holds unless `unexplained` is given."""
    known = ("committed", "aborted", "plain", "commit_markers", "abort_markers", "unexplained", "without_producer_id")
    each = {name: counts.get(name, 0) for name in known}
    end = start + sum(each.values()) - each["without_producer_id"]
    return PartitionCensus(
        topic=topic,
        partition=number,
        kafka_offset_start=start,
        kafka_offset_end=end,
        **each,
        log_start=0,
        lso=end,
        high_watermark=end + 7,
        spark_rows=each["committed"] + each["plain"],
    )


def figures(
    census: tuple[PartitionCensus, ...],
    *,
    matched_rows: int,
    matched_money: dict[str, int],
    in_flight: tuple[OpenItem, ...] = (),
) -> RunFigures:
    return run_figures(
        topic_rows=sum(part.readable_records for part in census),
        ledger_rows=matched_rows + len(in_flight),
        matched_rows=matched_rows,
        matched_money=matched_money,
        in_flight_items=len(in_flight),
        in_flight_money={item.currency: item.amount_minor for item in in_flight},
        ledger_older_rows=1_204,
        census=census,
    )


def stored_run(
    n: int,
    verdict: Verdict,
    *,
    figures: RunFigures,
    breaks: tuple[Break, ...] = (),
    doubts: tuple[DoubtFound, ...] = (),
    items: tuple[OpenItem, ...] = (),
    standing: tuple[ItemTotal, ...] = (),
) -> StoredRun:
    window_start, window_end = NOON + (n - 7) * HOUR, NOON + (n - 6) * HOUR
    return StoredRun(
        result=run_result(
            "billing_payouts",
            n,
            verdict=verdict,
            doubts=doubts,
            breaks=breaks,
            items=items,
            figures=figures,
            digest="d1" * 32,
        ),
        window_start_utc=window_start,
        window_end_utc=window_end,
        now_utc=window_end + timedelta(seconds=90),
        scheduler_run_id=f"scheduled__{window_end:%Y-%m-%dT%H:%M:%S}+00:00",
        attempt=2,
        recorded_at=window_end + timedelta(seconds=110),
        cut=cut_of(n, figures.census, window_start, window_end),
        standing=standing,
    )


def cut_of(n: int, census: tuple[PartitionCensus, ...], window_start: datetime, window_end: datetime) -> Cut:
    ledger = LedgerSnapshot(
        low_mark=5_200, high_mark=5_204, system_identifier="7301234567890123456", timeline=1, lsn="0/1A2B3C8"
    )
    return Cut(
        contract="billing_payouts",
        n=n,
        window_start_utc=window_start,
        window_end_utc=window_end,
        marked_at_utc=window_end + timedelta(seconds=1),
        now_utc=window_end + timedelta(seconds=90),
        topic_slices=tuple(
            TopicSlice(
                offsets=OffsetRange(
                    topic=part.topic,
                    partition=part.partition,
                    kafka_offset_start=part.kafka_offset_start,
                    kafka_offset_end=part.kafka_offset_end,
                ),
                snapshot=PartitionSnapshot(
                    topic=part.topic,
                    partition=part.partition,
                    topic_id="9J2xGk3yTf6Q1w",
                    leader_epoch=4,
                    log_start=part.log_start,
                    lso=part.lso,
                    high_watermark=part.high_watermark,
                ),
                mark=part.kafka_offset_end + (7 if n >= 7 and part.topic == "billing.payouts" else 0),
            )
            for part in census
        ),
        ledger_slice=LedgerSlice(
            position_start=5_000, position_end=5_200, snapshot=ledger, mark=5_200, baseline_position=900
        ),
    )


@pytest.fixture
def many_breaks_run(broken_run: StoredRun) -> StoredRun:
    """5,000 breaks of three classes, amounts all different, with long evidence."""
    classes = (
        BreakClass.MISSING_IN_TOPIC_NEVER_PRODUCED,
        BreakClass.DUPLICATE_IN_TOPIC_NEW_SESSION,
        BreakClass.AMOUNT_MISMATCH,
    )
    breaks = tuple(
        replace(
            item_break(
                n, classes[n % 3], f"event-{n:08d}-{'k' * 24}", n, ("EUR", "JPY")[n % 2], "payout", "A story. " * 12
            ),
            evidence={
                "at": f"ledger:{n}",
                "found_elsewhere": [{"at": f"topic:billing.payouts:0:{n}"} for _ in range(8)],
            },
        )
        for n in range(1, 5_001)
    )
    return replace(broken_run, result=replace(broken_run.result, breaks=breaks))
