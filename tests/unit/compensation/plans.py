"""Literal runs, candidates and the plans made of them."""

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any
from uuid import UUID

from tallystick.compensation import plan_text
from tallystick.compensation.plan import Candidate, CurrentRow, Plan
from tallystick.compensation.planning import make_plan
from tallystick.contract.contract import Contract
from tallystick.model.cut import Cut, LedgerSlice, LedgerSnapshot
from tallystick.model.finding_names import BreakClass, Doubt
from tallystick.model.findings import Break, DoubtFound, break_id
from tallystick.model.stored_run import OutstandingBreak, StoredRun
from tallystick.model.verdict import Verdict
from tests.run_results import run_result

describe_plan = partial(plan_text.describe_plan, shown_key=str)

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)

NEVER_PRODUCED, PHANTOM = BreakClass.MISSING_IN_TOPIC_NEVER_PRODUCED, BreakClass.PHANTOM_IN_TOPIC


def contract(**compensation: Any) -> Contract:
    rules = {"classes": [NEVER_PRODUCED], "max_items": 3, "max_amount_minor": {"EUR": 1000}} | compensation
    return Contract.model_validate(
        {
            "contract": "payouts",
            "version": 1,
            "owner": "payouts-team",
            "direction": "ledger_to_topic",
            "schedule": "0 * * * *",
            "start_date": NOON,
            "kafka": {"connection": "kafka_billing"},
            "legs": {"payout": "billing.payouts"},
            "ledger": {"connection": "ledger_billing", "table": "billing.payout"},
            "compensation": rules,
        }
    )


def run(*doubts: Doubt) -> StoredRun:
    snapshot = LedgerSnapshot(low_mark=1, high_mark=1, system_identifier="1", timeline=1, lsn="0/0")
    cut = Cut(
        contract="payouts",
        n=5,
        window_start_utc=NOON,
        window_end_utc=NOON,
        marked_at_utc=NOON,
        now_utc=NOON,
        topic_slices=(),
        ledger_slice=LedgerSlice(position_start=1, position_end=1, snapshot=snapshot, mark=1, baseline_position=1),
    )
    found = tuple(DoubtFound(doubt=doubt, sentence="") for doubt in doubts)
    return StoredRun(
        result=run_result("payouts", 5, verdict=Verdict.BROKEN, doubts=found),
        window_start_utc=NOON,
        window_end_utc=NOON,
        now_utc=NOON,
        scheduler_run_id="run",
        attempt=1,
        recorded_at=NOON,
        cut=cut,
    )


def row(key: str, *, amount_minor: int = 100, currency: str = "EUR") -> CurrentRow:
    return CurrentRow(
        row_id=f"row-{key}",
        match_key=key,
        transaction_key=f"transaction-{key}",
        leg="payout",
        amount_minor=amount_minor,
        currency=currency,
        occurred_at="2026-03-01T11:00:00+00:00",
    )


def candidate(
    key: str,
    *,
    cut_n: int = 5,
    first_seen_cut: int = 1,
    break_class: BreakClass = NEVER_PRODUCED,
    leg: str = "payout",
    amount_minor: int = 100,
    currency: str = "EUR",
    rows: tuple[CurrentRow, ...] | None = None,
    at: str = "",
    original: str = "",
    differs_by: BreakClass | None = None,
    came_after: int | None = None,
) -> Candidate:
    found = Break(
        break_id=break_id(contract="payouts", break_class=break_class, match_key=key, position=""),
        break_class=break_class,
        match_key=key,
        transaction_key=f"transaction-{key}",
        leg=leg,
        amount_minor=amount_minor,
        currency=currency,
        copies=1,
        story="",
        evidence={"at": at, "original": original},
    )
    stands = row(key, amount_minor=amount_minor, currency=currency)
    return Candidate(
        outstanding=OutstandingBreak(
            item_break=found, cut_n=cut_n, first_seen_utc=NOON, seen_by=((at or f"ledger:row-{key}", first_seen_cut),)
        ),
        rows=(stands,) if rows is None else rows,
        differs_by=differs_by,
        came_after=came_after,
    )


def plan(*candidates: Candidate, doubts: tuple[Doubt, ...] = (), taken: Sequence[UUID] = (), **rules: Any) -> Plan:
    return make_plan(contract(**rules), run(*doubts), candidates, taken=taken)


DOUBLED = BreakClass.DUPLICATE_IN_TOPIC_ZOMBIE
TAKES_BACK = {"classes": [NEVER_PRODUCED, DOUBLED], "reversal": "negated"}

HANDS_OVER: dict[str, Any] = {"trigger": {"connection": "airflow", "dags": {PHANTOM: "by_hand"}}}
