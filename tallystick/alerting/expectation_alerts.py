"""The alerts of a contract's own expectations: what a window did not meet, and what gave no answer. Pure.

An outcome in which something gave no answer resolves nothing: what is not evaluated is not met.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from tallystick.alerting.alert import (
    EXPECTATION_NOT_EVALUATED,
    EXPECTATION_NOT_MET,
    SAMPLES_MAX,
    Alert,
    AlertAction,
)
from tallystick.alerting.policy import RISING, is_more, is_news, owner_told, sink_name, where_found
from tallystick.contract.alerts import Severity
from tallystick.contract.contract import Contract
from tallystick.model.stored_run import ExpectationsOutcome, StoredRun
from tallystick.text.expectation_words import not_evaluated_text, not_met_text


def expectation_alerts(
    contract: Contract, run: StoredRun, outcome: ExpectationsOutcome, *, firing: Mapping[str, Alert]
) -> tuple[Alert, ...]:
    """Say what an outcome changes for on-call, triggers first.

    firing: name to its newest alert, where that is no resolve. An alert is as severe as the most severe expectation
    that was not met, by the word of Great Expectations, and never becomes less severe while it fires.
    """
    found = _triggers(contract, run, outcome, firing)
    alerts = [alert for alert in found if is_news(alert, firing) or _is_louder(alert, firing[alert.name])]
    over = []
    if outcome.is_complete:
        over = [EXPECTATION_NOT_EVALUATED] + ([] if outcome.not_met else [EXPECTATION_NOT_MET])
    return (*alerts, *(_resolve(contract, run, firing[name]) for name in sorted(set(over) & set(firing))))


def tells_more(alert: Alert, before: Alert) -> bool:
    """Return whether a trigger says more than one before it: louder, a higher count, another expectation."""
    return _is_louder(alert, before) or is_more(alert, before)


def _is_louder(alert: Alert, before: Alert) -> bool:
    return RISING.index(alert.severity) > RISING.index(before.severity)


def _triggers(
    contract: Contract, run: StoredRun, outcome: ExpectationsOutcome, firing: Mapping[str, Alert]
) -> Iterator[Alert]:
    if outcome.not_met:
        severities = [Severity(one.severity) for one in outcome.not_met]
        if EXPECTATION_NOT_MET in firing:
            severities.append(firing[EXPECTATION_NOT_MET].severity)
        yield _trigger(
            contract,
            run,
            EXPECTATION_NOT_MET,
            severity=max(severities, key=RISING.index),
            sentences=[not_met_text(one) for one in outcome.not_met],
            expectations={" ".join((one.table, *one.columns, one.expected)) for one in outcome.not_met},
        )
    if outcome.not_evaluated:
        yield _trigger(
            contract,
            run,
            EXPECTATION_NOT_EVALUATED,
            severity=Severity.WARNING,
            sentences=[not_evaluated_text(one) for one in outcome.not_evaluated],
        )


def _trigger(
    contract: Contract,
    run: StoredRun,
    name: str,
    *,
    severity: Severity,
    sentences: list[str],
    expectations: Collection[str] = (),
) -> Alert:
    """expectations: which ones; another one is news, also to who has acknowledged these."""
    more = f" And {len(sentences) - 1} more." if len(sentences) > 1 else ""
    details = {"seen": name, "count": len(sentences), "sentences": sentences[:SAMPLES_MAX]}
    details |= {"expectations": sorted(expectations)} if expectations else {}
    summary = f"{name.replace('_', ' ')}: {sentences[0]}{more}"
    return _alert(contract, run, name, action=AlertAction.TRIGGER, severity=severity, summary=summary, details=details)


def _resolve(contract: Contract, run: StoredRun, before: Alert) -> Alert:
    over, action = f"{before.name.replace('_', ' ')}: not seen any more", AlertAction.RESOLVE
    details = owner_told(before)
    return _alert(contract, run, before.name, action=action, severity=Severity.INFO, summary=over, details=details)


def _alert(
    contract: Contract,
    run: StoredRun,
    name: str,
    *,
    action: AlertAction,
    severity: Severity,
    summary: str,
    details: dict[str, Any],
) -> Alert:
    return Alert(
        contract=contract.name,
        cut_n=run.result.cut_n,
        name=name,
        action=action,
        severity=severity,
        summary=f"{contract.name}: {summary}",
        details=where_found(contract, run.cut) | details,
        sinks=tuple(sink_name(sink) for sink in contract.alert.sinks),
    )
