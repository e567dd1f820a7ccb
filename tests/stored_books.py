"""Books as the pages find them: a store filled by the same commits as runs make, literal and the same each time.

Thirty hourly windows of one contract, up to a given hour: mostly matched, some held, two broken; a repair that was
done and one that waits for a yes, an alert that was delivered and taken on, an item that a person gave up.

One file, since it is one set of books, filled once, that every test of the pages reads.
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from sqlalchemy import Engine

from tallystick.alerting.alert import Alert, AlertAction
from tallystick.compensation.plan import ExcludedBreak, Plan, PlanItem, action_id_of
from tallystick.contract.alerts import Severity
from tallystick.contract.contract import Contract, load_contract
from tallystick.kafka_cluster.state import CLUSTER_STATE, BrokerSettings, ClusterState, TopicSettings, UnreadExpiry
from tallystick.model.census_values import PartitionCensus
from tallystick.model.cut import Cut, LedgerSlice, LedgerSnapshot, PartitionSnapshot, TopicSlice
from tallystick.model.finding_names import BreakClass, Doubt
from tallystick.model.findings import Break, DoubtFound, break_id
from tallystick.model.item_reason import read_reason
from tallystick.model.offsets import OffsetRange, TopicPartition
from tallystick.model.open_item import ItemSide, ItemState, OpenItem, WriteOff
from tallystick.model.partner_lag import Grace, RunLag, lags_of_pairs
from tallystick.model.run_result import RunResult
from tallystick.model.verdict import Verdict
from tallystick.store.alerts.acknowledgement_store import acknowledge
from tallystick.store.alerts.alert_store import pending_alerts, record_delivery
from tallystick.store.breaks.write_off_store import write_off_break
from tallystick.store.plans.claim_store import claim_actions
from tallystick.store.plans.plan_store import append_audit, record_done, save_plan
from tallystick.store.runs.cut_store import claim_attempt, save_cut
from tallystick.store.runs.run_store import commit_run
from tests.run_results import run_figures, run_result

CONTRACTS = Path(__file__).parents[1] / "dags" / "contracts"
WINDOWS = 30
FIRST_BROKEN, LAST_BROKEN, HELD = 12, 27, (20, 21)
HOUR = timedelta(hours=1)
LAST_HOUR = datetime(2026, 3, 2, 18, 15, tzinfo=UTC)


def payouts() -> Contract:
    """The example: an outbox publishes the ledger."""
    return load_contract(CONTRACTS / "billing_payouts.yaml")


def payments() -> Contract:
    """The other example: a consumer posts events of two legs."""
    return load_contract(CONTRACTS / "billing_payments.yaml")


def fill(store: Engine, contract: Contract, *, last_hour: datetime = LAST_HOUR, windows: int = WINDOWS) -> None:
    """Commit the windows, the newest of which ends at that hour."""
    for n in range(windows):
        end = last_hour - (windows - 1 - n) * HOUR
        save_cut(store, contract, cut_of(contract, n, end), scheduler_run_id=run_id_of(end))
        attempt = claim_attempt(store, contract.name, n)
        result = result_of(contract, n, end)
        commit_run(store, result, attempt=attempt, alerts=tuple(_alerts(result)))
        for pending in pending_alerts(store, contract.name):
            record_delivery(store, pending.alert, sink=pending.owed_to[0], delivered=True, detail="")
        if n == LAST_BROKEN:
            _repair(store, contract)
    if windows > LAST_BROKEN:
        given_up = WriteOff(by="finance", reason="refunded by hand", at_utc=last_hour)
        write_off_break(store, contract.name, str(mismatch(contract, "pay-15").break_id), given_up)
        acknowledge(store, contract.name, BreakClass.AMOUNT_MISMATCH, by="Ada")
        save_plan(
            store,
            waiting_plan(contract),
            requested_by=f"reconcile_{contract.name}",
            scheduler_run_id="triggered__2026-03-02T18:15:00+00:00",
        )


def plan_of(contract: Contract, n: int, *found: Break, left_out: tuple[ExcludedBreak, ...] = ()) -> Plan:
    """Publish the events of these breaks again."""
    return Plan(
        contract=contract.name,
        contract_fingerprint=contract.fingerprint,
        cut_n=n,
        dry_run=False,
        items=tuple(
            PlanItem(
                row_id=one.match_key.removeprefix("pay-"),
                match_key=one.match_key,
                transaction_key=one.transaction_key,
                leg=one.leg,
                amount_minor=one.amount_minor,
                currency=one.currency,
                occurred_at="2026-03-01T00:00:00Z",
                action_id=action_id_of(contract.name, one.break_id),
                break_id=one.break_id,
                break_class=one.break_class,
                topic=contract.legs[one.leg],
            )
            for one in found
        ),
        left_out=left_out,
    )


def done_plan(contract: Contract) -> Plan:
    """Ada asked for it, Grace agreed, and its event stands."""
    return plan_of(contract, FIRST_BROKEN, missing(contract, "pay-2", 99))


def waiting_plan(contract: Contract) -> Plan:
    """The reconciliation asked for it; nobody has answered."""
    why = "class {} is not compensated by the contract"
    left_out = tuple(
        ExcludedBreak(break_id=one.break_id, match_key=one.match_key, reason=why.format(one.break_class))
        for one in (mismatch(contract, "pay-7"), torn(contract, "pay-9"))
    )
    first, second = missing(contract, "pay-1", 125_000), missing(contract, "pay-8", 4_200)
    return plan_of(contract, LAST_BROKEN, first, second, left_out=left_out)


def _repair(store: Engine, contract: Contract) -> None:
    """While its break is outstanding: the next window clears it."""
    done, (item,) = done_plan(contract), done_plan(contract).items
    save_plan(store, done, requested_by="Ada", scheduler_run_id="manual__1")
    of_done: dict[str, Any] = {"plan_id": done.plan_id, "detail": {"plan_hash": done.plan_hash}}
    append_audit(store, contract.name, actor="Grace", event="agreed", **of_done)
    append_audit(store, contract.name, actor="Grace", event="approved", **of_done)
    claim_actions(store, done, done.items, executor="e", outcome={}, allow=lambda actions, spent: None)
    record_done(store, item.action_id, outcome={"topic": contract.topics[0], "partition": 0, "offset": 271})
    append_audit(store, contract.name, actor="Grace", event="finished", **of_done)


def run_id_of(end: datetime) -> str:
    return f"scheduled__{end.isoformat()}"


def cut_of(contract: Contract, n: int, end: datetime) -> Cut:
    """Partition 0 has ten offsets a window, partition 1 seven; the held cuts stop three short of their mark."""
    xid = 100 * n
    return Cut(
        contract=contract.name,
        n=n,
        window_start_utc=end - HOUR,
        window_end_utc=end,
        marked_at_utc=end + timedelta(seconds=2),
        now_utc=end + timedelta(seconds=40),
        topic_slices=tuple(
            _slice(topic, partition, each * max(0, n - 1), each * n, held=n in HELD and partition == 0)
            for topic in contract.topics
            for partition, each in enumerate((10, 7))
        ),
        ledger_slice=LedgerSlice(
            position_start=max(0, xid - 100),
            position_end=xid,
            snapshot=LedgerSnapshot(low_mark=xid, high_mark=xid, system_identifier="7400", timeline=1, lsn="0/1A2B3C"),
            mark=xid,
            baseline_position=0,
        ),
    )


def _slice(topic: str, partition: int, start: int, end: int, *, held: bool) -> TopicSlice:
    return TopicSlice(
        offsets=OffsetRange(topic=topic, partition=partition, kafka_offset_start=start, kafka_offset_end=end),
        snapshot=PartitionSnapshot(
            topic=topic,
            partition=partition,
            topic_id=f"9J2xGk3yTf6Q1w.{topic}",
            leader_epoch=4,
            log_start=0,
            lso=end,
            high_watermark=end + 3,
        ),
        mark=end + 3 if held else end,
    )


def result_of(contract: Contract, n: int, end: datetime) -> RunResult:
    """What the run of window n found."""
    breaks, items = tuple(_breaks(contract, n)), tuple(_items(contract, n, end))
    doubts = (_held(contract),) if n in HELD else ()
    if n == 0:
        doubts = (DoubtFound(doubt=Doubt.BASELINE, sentence="This is the contract's first cut: the books begin here."),)
    verdict = Verdict.BROKEN if breaks else Verdict.INCONCLUSIVE if doubts else Verdict.MATCHED
    waiting = [item for item in items if item.state is ItemState.OPEN]
    return run_result(
        contract.name,
        n,
        verdict=verdict,
        doubts=doubts,
        breaks=breaks,
        items=items,
        figures=run_figures(
            topic_rows=0 if n == 0 else 11 + n,
            ledger_rows=0 if n == 0 else 12 + n,
            matched_rows=0 if n == 0 else 10 + n,
            matched_money={} if n == 0 else {"EUR": 1_000_000 + 7 * n},
            in_flight_items=len(waiting),
            census=() if n == 0 else tuple(_census(contract, n)),
        ),
        digest=f"{n:064d}",
        look_ups={"surroundings": CLUSTER_STATE.dump_python(_cluster_state(contract, end), mode="json", by_alias=True)},
        lag=RunLag(
            topics=lags_of_pairs((topic, 40 * k) for topic in contract.topics for k in range(1, 9 + n)),
            grace=Grace(seconds=30),
        ),
    )


def _breaks(contract: Contract, n: int) -> Iterator[Break]:
    if n == FIRST_BROKEN:
        yield missing(contract, "pay-1", 125_000)
        yield missing(contract, "pay-2", 99)
        yield mismatch(contract, "pay-15")
    if n == LAST_BROKEN:
        yield mismatch(contract, "pay-7")
        yield missing(contract, "pay-8", 4_200)
        yield torn(contract, "pay-9")


def _items(contract: Contract, n: int, end: datetime) -> Iterator[OpenItem]:
    for found in _breaks(contract, n):
        yield item_of(found, n, end, ItemState.BROKEN)
    if n == LAST_BROKEN + 1:
        first = missing(contract, "pay-2", 99)
        then = end - (n - FIRST_BROKEN) * HOUR
        cleared = item_of(first, FIRST_BROKEN, then, ItemState.CLEARED)
        yield replace(cleared, cleared_by=f"topic:{contract.topics[0]}:0:271", reason=read_reason("its partner came"))
    if n == WINDOWS - 1:
        late = replace(missing(contract, "pay-30", 2_500), copies=1)
        yield replace(
            item_of(late, n, end, ItemState.OPEN), break_id=None, reason=read_reason("nothing on the other side yet")
        )


def missing(contract: Contract, key: str, amount_minor: int) -> Break:
    """A ledger row whose event was never produced."""
    found = BreakClass.MISSING_IN_TOPIC_NEVER_PRODUCED
    return Break(
        break_id=break_id(contract=contract.name, break_class=found, match_key=key, position=""),
        break_class=found,
        match_key=key,
        transaction_key=f"order-{key}",
        leg=next(iter(contract.legs)),
        amount_minor=amount_minor,
        currency="EUR",
        copies=1,
        story=f"Row {key} is committed in the ledger and its event is nowhere on the log.",
        evidence={"at": f"ledger:{key.removeprefix('pay-')}", "transaction_id": 2_711},
    )


def mismatch(contract: Contract, key: str) -> Break:
    """An event that says another amount than its row, with the log around it."""
    found, topic = BreakClass.AMOUNT_MISMATCH, contract.topics[0]
    number = int(key.removeprefix("pay-"))
    return Break(
        break_id=break_id(contract=contract.name, break_class=found, match_key=key, position=""),
        break_class=found,
        match_key=key,
        transaction_key=f"order-{key}",
        leg=next(iter(contract.legs)),
        amount_minor=9_000,
        currency="EUR",
        copies=1,
        story=f"topic:{topic}:0:266 says 1000 EUR, ledger:{number} says 10000 EUR (minor units).",
        evidence={
            "at": f"topic:{topic}:0:266",
            "topic": {"at": f"topic:{topic}:0:266", "amount_minor": 1_000, "currency": "EUR"},
            "ledger": {"at": f"ledger:{number}", "amount_minor": 10_000, "currency": "EUR"},
            "identity": {
                "producer_id": 4_001,
                "producer_epoch": 3,
                "sequence": 12,
                "transactional": True,
                "outcome": "committed",
                "session": "relay-7f",
            },
            "strip": {
                "topic": topic,
                "partition": 0,
                "kafka_offset": 266,
                "batches": [
                    [260, 263, "committed", 4_001, 3],
                    [263, 264, "commit marker", 4_001, 3],
                    [264, 266, "aborted", 4_002, 0],
                    [266, 268, "committed", 4_001, 3],
                    [268, 269, "abort marker", 4_002, 0],
                    [269, 270, "commit marker", 4_001, 3],
                ],
            },
        },
    )


def torn(contract: Contract, key: str) -> Break:
    """A business transaction of which one leg committed."""
    found, leg = BreakClass.TORN_TRANSACTION, next(iter(contract.legs))
    return Break(
        break_id=break_id(contract=contract.name, break_class=found, match_key=f"order-{key}", position=""),
        break_class=found,
        match_key=f"order-{key}",
        transaction_key=f"order-{key}",
        leg=leg,
        amount_minor=1_500,
        currency="USD",
        copies=1,
        story=f"order-{key} committed its {leg} only.",
        evidence={"at": f"legs:order-{key}", "seen_legs": {leg: f"topic:{contract.legs[leg]}:1:181"}},
    )


def item_of(found: Break, n: int, end: datetime, state: ItemState) -> OpenItem:
    legs = str(found.evidence["at"]).startswith("legs:")
    return OpenItem(
        item_id=str(found.evidence["at"]) if legs else f"ledger:{found.match_key.removeprefix('pay-')}",
        side=ItemSide.LEGS if legs else ItemSide.LEDGER,
        match_key=found.match_key,
        transaction_key=found.transaction_key,
        leg=found.leg,
        amount_minor=found.amount_minor,
        currency=found.currency,
        first_seen_cut=n,
        first_seen_utc=end + timedelta(seconds=2),
        due_utc=end + timedelta(seconds=32),
        state=state,
        reason=read_reason("its event was never produced"),
        break_id=found.break_id,
        found_as=found.break_class,
    )


def _census(contract: Contract, n: int) -> Iterator[PartitionCensus]:
    for topic in contract.topics:
        for partition, each in enumerate((10, 7)):
            yield PartitionCensus(
                topic=topic,
                partition=partition,
                kafka_offset_start=each * (n - 1),
                kafka_offset_end=each * n,
                committed=each - 4,
                aborted=2,
                plain=0,
                commit_markers=1,
                abort_markers=1,
                unexplained=0,
                without_producer_id=0,
                log_start=0,
                lso=each * n,
                high_watermark=each * n + 3,
                spark_rows=each - 4,
            )


def _held(contract: Contract) -> DoubtFound:
    return DoubtFound(
        doubt=Doubt.HELD_BY_OPEN_TRANSACTION,
        sentence=f"{contract.topics[0]}[0]: 3 offsets could not be read: relay-1 holds the LSO.",
        details={"transactional_id": "relay-1", "since_utc": "2026-03-02 08:40:00 UTC", "held_offsets": 3},
    )


def _cluster_state(contract: Contract, end: datetime) -> ClusterState:
    settings = {"replication_factor": 3, "in_sync_replicas": 3, "min_insync_replicas": 2, "retention_bytes": -1}
    return ClusterState(
        topic_settings=tuple(
            TopicSettings(
                topic=topic,
                **settings,
                unclean_leader_election=False,
                cleanup_policy=("delete",),
                retention_ms=86_400_000,
                message_timestamp_type="CreateTime",
            )
            for topic in contract.topics
        ),
        broker_settings=BrokerSettings(
            transaction_max_timeout_ms=900_000,
            transactional_id_expiration_ms=604_800_000,
            producer_id_expiration_ms=86_400_000,
            transaction_version=2,
        ),
        expiries=(
            UnreadExpiry(
                topic_partition=TopicPartition(topic=contract.topics[0], partition=0),
                kafka_offset=290,
                expires_utc=end + 22 * HOUR,
            ),
        ),
    )


def _alerts(result: RunResult) -> Iterator[Alert]:
    for break_class in sorted({found.break_class for found in result.breaks}):
        details: dict[str, Any] = {"breaks": 1}
        yield Alert(
            contract=result.contract,
            cut_n=result.cut_n,
            name=break_class,
            action=AlertAction.TRIGGER,
            severity=Severity.ERROR,
            summary=f"{break_class} in {result.contract}",
            details=details,
            sinks=("file:alerts.jsonl",),
        )


def break_ids(contract: Contract) -> list[UUID]:
    """Every break that the windows hold."""
    return [found.break_id for n in range(WINDOWS) for found in _breaks(contract, n)]
