"""Alerts of literal runs: one contract, breaks by key, and what stands of them."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from tallystick.alerting.alert import Alert, AlertAction, Outstanding
from tallystick.alerting.policy import alerts_for
from tallystick.contract.alerts import Severity
from tallystick.contract.contract import Contract
from tallystick.model.cut import Cut, LedgerSlice, LedgerSnapshot
from tallystick.model.finding_names import BreakClass, Doubt
from tallystick.model.findings import Break, DoubtFound, NoticeFound, break_id, money_at_stake
from tallystick.model.verdict import Verdict
from tests.run_results import run_result

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
MISSING, PHANTOM = BreakClass.MISSING_IN_TOPIC_NEVER_PRODUCED, BreakClass.PHANTOM_IN_TOPIC
CONTRACT = Contract.model_validate(
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
        "alert": {
            "sinks": [{"kind": "webhook", "connection": "pager"}, {"kind": "file", "path": "alerts.jsonl"}],
            "critical_at_minor": {"EUR": 1000},
        },
    }
)


def cut(n: int) -> Cut:
    snapshot = LedgerSnapshot(low_mark=1, high_mark=1, system_identifier="1", timeline=1, lsn="0/0")
    return Cut(
        contract="payouts",
        n=n,
        window_start_utc=NOON - timedelta(hours=1),
        window_end_utc=NOON,
        marked_at_utc=NOON,
        now_utc=NOON + timedelta(minutes=1),
        topic_slices=(),
        ledger_slice=LedgerSlice(position_start=1, position_end=1, snapshot=snapshot, mark=1, baseline_position=1),
    )


def a_break(key: str, *, break_class: BreakClass = MISSING, amount_minor: int = 400) -> Break:
    return Break(
        break_id=break_id(contract="payouts", break_class=break_class, match_key=key, position=""),
        break_class=break_class,
        match_key=key,
        transaction_key=f"transaction-{key}",
        leg="payout",
        amount_minor=amount_minor,
        currency="EUR",
        copies=1,
        story="The row stands, the event does not.",
        evidence={},
    )


def alerts(
    *breaks: Break,
    n: int = 5,
    verdict: Verdict = Verdict.BROKEN,
    doubts: tuple[Doubt | DoubtFound, ...] = (),
    notices: tuple[NoticeFound, ...] = (),
    firing: tuple[str, ...] | Mapping[str, Alert] = (),
    outstanding: Mapping[BreakClass, Outstanding] | None = None,
    rules: Mapping[str, Any] | None = None,
    by_time: bool = False,
    expectations: str | None = None,
    unseen: Mapping[str, frozenset[str]] | None = None,
) -> list[Alert]:
    told = tuple(
        one if isinstance(one, DoubtFound) else DoubtFound(doubt=one, sentence=f"{one}: why.") for one in doubts
    )
    result = run_result("payouts", n, verdict=verdict, doubts=told, breaks=breaks, notices=notices, unseen=unseen or {})
    changes = {"alert": CONTRACT.alert.model_copy(update=rules or {}), "expectations": expectations}
    contract = CONTRACT.model_copy(update=changes)
    before = firing if isinstance(firing, Mapping) else {name: fired(name) for name in firing}
    this = replace(cut(n), by_time=by_time)
    return list(alerts_for(contract, result, cut=this, firing=before, outstanding=outstanding or {}))


def fired(name: str, *, severity: Severity = Severity.ERROR, by: str = "", **details: Any) -> Alert:
    """The newest alert of a name, acknowledged where somebody did."""
    return Alert(
        contract="payouts",
        cut_n=4,
        name=name,
        action=AlertAction.ACKNOWLEDGE if by else AlertAction.TRIGGER,
        severity=severity,
        summary=name,
        details={**details, "acknowledged_by": by} if by else details,
        sinks=("webhook:pager",),
    )


def standing(*breaks: Break) -> dict[BreakClass, Outstanding]:
    return {
        breaks[0].break_class: Outstanding(
            count=len(breaks), money=money_at_stake(breaks), first_seen_utc=NOON - timedelta(days=2)
        )
    }


OLD = {"escalate_after_seconds": 2 * 86400}
"""Two days: what `standing` gives was first seen two days before noon, a minute before the cut's time."""
