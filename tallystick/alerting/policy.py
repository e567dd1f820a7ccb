"""The rules by which alerts fire, escalate and resolve after a run or a write-off. Pure."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from heapq import nsmallest
from typing import Any

from tallystick.alerting.alert import (
    CRITICAL_CLASSES,
    INCONCLUSIVE,
    OWN_EXPECTATIONS,
    PAGING_DOUBTS,
    SAMPLES_MAX,
    SILENCES,
    Alert,
    AlertAction,
    Outstanding,
)
from tallystick.alerting.looked_for import SEEN_ANEW, not_looked_for, with_places
from tallystick.contract.alerts import AlertRules, AlertSinkSection, Severity
from tallystick.contract.contract import Contract
from tallystick.model.cut import Cut
from tallystick.model.finding_names import BreakClass, Doubt, Notice
from tallystick.model.findings import Break, DoubtFound, Money, money_at_stake, negative_at_stake
from tallystick.model.open_item import WriteOff
from tallystick.model.run_result import RunResult
from tallystick.model.verdict import Verdict
from tallystick.text.money import format_money
from tallystick.text.plain import escape_untrusted, format_time


def alerts_for(
    contract: Contract,
    result: RunResult,
    *,
    cut: Cut,
    firing: Mapping[str, Alert],
    outstanding: Mapping[BreakClass, Outstanding],
) -> tuple[Alert, ...]:
    """Say what this run changes for on-call, triggers first, each by name.

    firing: name to its newest alert, where that is no resolve. outstanding: as it will be once this run is committed.
    A class that was cleared while a run was inconclusive resolves at the next run with a verdict, so firing decides.
    """
    if cut.is_baseline:
        return ()
    found = {item_break.break_class for item_break in result.breaks}
    stand = {name: outstanding[name] for name in BreakClass if name in outstanding and name in set(firing) - found}
    told = [_break_alert(contract, result, cut, one, outstanding, firing.get(one)) for one in sorted(found)]
    grown = [_escalation(contract, cut, one, stand[one], firing[one]) for one in sorted(stand)]
    seen = list(_seen_alerts(contract, result, cut, firing))
    alerts = [*told, *(alert for alert in grown if alert), *(one for one in seen if is_news(one, firing))]
    gone = (set(firing) & SEEN_ANEW) - {alert.name for alert in seen} - not_looked_for(result, firing)
    if contract.expectations is None:
        gone |= set(firing) & OWN_EXPECTATIONS
    if result.verdict is Verdict.INCONCLUSIVE:
        if not result.doubts or _quiet_doubts(result):
            quiet = _inconclusive_alert(contract, result, cut)
            alerts += [quiet] if is_news(quiet, firing) else []
        return (*alerts, *(_resolve(contract, cut, firing[alert_name]) for alert_name in sorted(gone)))
    still = {INCONCLUSIVE} if result.doubts else set()
    over = (set(firing) - SILENCES - OWN_EXPECTATIONS - SEEN_ANEW - set(outstanding) - found - still) | gone
    return (*alerts, *(_resolve(contract, cut, firing[alert_name]) for alert_name in sorted(over)))


def alerts_of_write_off(
    contract: Contract,
    break_class: BreakClass,
    write_off: WriteOff,
    *,
    cut: Cut,
    firing: Mapping[str, Alert],
    outstanding: Mapping[BreakClass, Outstanding],
) -> tuple[Alert, ...]:
    """Resolve the alert of a class whose last outstanding break a person has given up.

    outstanding: with the write-off done. Not left to the next run: nobody must be paged for what was decided.
    """
    if break_class not in firing or break_class in outstanding:
        return ()
    over = _resolve(contract, cut, firing[break_class])
    told = {"written_off_by": write_off.by, "written_off_because": write_off.reason}
    summary = f"{over.summary}; the last was written off by {escape_untrusted(write_off.by)}"
    return (replace(over, summary=summary, details={**over.details, **told}),)


_TOLD_ONCE = frozenset((BreakClass.OUT_OF_ORDER_IN_TOPIC, BreakClass.BLED_INTO_TRANSACTION))
"""Classes of which a break may have no item that later runs follow."""


def sink_name(sink: AlertSinkSection) -> str:
    """The name deliveries are recorded under."""
    return f"{sink.kind}:{sink.connection or sink.path}"


def severity_of(rules: AlertRules, break_class: BreakClass, money: Money) -> Severity:
    """The contract's severity for the class, else critical for CRITICAL_CLASSES and from the contract's limit on in
    any one currency, else error."""
    if break_class in rules.severity_by_class:
        return rules.severity_by_class[break_class]
    if break_class in CRITICAL_CLASSES:
        return Severity.CRITICAL
    limits = rules.critical_at_minor
    critical = any(currency in limits and amount >= limits[currency] for currency, amount in money.items())
    return Severity.CRITICAL if critical else Severity.ERROR


def severity_now(rules: AlertRules, break_class: BreakClass, now: Outstanding, *, cut: Cut) -> Severity:
    """The same, with what stands as of a cut: one more where it has stood for too long, one less where the window was
    caught up late, though that not below warning."""
    n = RISING.index(severity_of(rules, break_class, now.money))
    if _is_old(rules, now, cut):
        n = min(n + 1, len(RISING) - 1)
    if cut.by_time and rules.backfilled == "lower" and n > RISING.index(Severity.WARNING):
        n -= 1
    return RISING[n]


def _is_old(rules: AlertRules, now: Outstanding, cut: Cut) -> bool:
    limit = rules.escalate_after_seconds
    return limit is not None and cut.now_utc - now.first_seen_utc > timedelta(seconds=limit)


RISING = tuple(Severity)
"""Its members stand from the quietest to the loudest."""


def _break_alert(
    contract: Contract,
    result: RunResult,
    cut: Cut,
    break_class: BreakClass,
    outstanding: Mapping[BreakClass, Outstanding],
    before: Alert | None,
) -> Alert:
    """What a run that found breaks of the class says. before: its newest alert, where that is no resolve."""
    breaks = [item_break for item_break in result.breaks if item_break.break_class is break_class]
    now = _with_new(
        outstanding.get(break_class),
        Outstanding(
            count=len(breaks),
            money=money_at_stake(breaks),
            first_seen_utc=cut.now_utc,
            negative=negative_at_stake((one.currency, one.amount_minor) for one in breaks),
        ),
    )
    severity = severity_now(contract.alert, break_class, now, cut=cut)
    return Alert(
        contract=contract.name,
        cut_n=cut.n,
        name=break_class,
        action=AlertAction.TRIGGER,
        severity=max(severity, before.severity, key=RISING.index) if before else severity,
        summary=f"{contract.name}: {_words(break_class)}: {len(breaks)} new, {_at_stake(now)}{_besides(result)}",
        details=where_found(contract, cut)
        | {
            "verdict": result.verdict,
            "break_class": break_class,
            "new": len(breaks),
            "new_money_minor": money_at_stake(breaks),
            **_standing(now),
            "samples": _samples(contract.alert, breaks),
            **({"doubts": _doubts_in_words(result)} if _quiet_doubts(result) else {}),
        },
        sinks=_sinks(contract),
    )


def _with_new(stands: Outstanding | None, new: Outstanding) -> Outstanding:
    """What stands, and no less than what is new: a break that is told once has no item that would stand."""
    if stands is None:
        return new
    return replace(
        stands,
        count=max(stands.count, new.count),
        money={one: max(stands.money.get(one, 0), new.money.get(one, 0)) for one in {**stands.money, **new.money}},
    )


def _escalation(contract: Contract, cut: Cut, break_class: BreakClass, now: Outstanding, before: Alert) -> Alert | None:
    """What a run without new breaks of the class says: nothing, unless it has stood for too long and nobody has taken
    it on."""
    if before.action is AlertAction.ACKNOWLEDGE or not _is_old(contract.alert, now, cut):
        return None
    severity = severity_now(contract.alert, break_class, now, cut=cut)
    if RISING.index(severity) <= RISING.index(before.severity):
        return None
    since = f"{_words(break_class)}: escalated: since {format_time(now.first_seen_utc)}"
    return Alert(
        contract=contract.name,
        cut_n=cut.n,
        name=break_class,
        action=AlertAction.TRIGGER,
        severity=severity,
        summary=f"{contract.name}: {since}, {_at_stake(now)}",
        details=where_found(contract, cut)
        | {
            "break_class": break_class,
            **_standing(now),
            "escalated_after_seconds": contract.alert.escalate_after_seconds,
            "samples": list(before.details.get("samples", ())),
        },
        sinks=_sinks(contract),
    )


def is_news(alert: Alert, firing: Mapping[str, Alert]) -> bool:
    """Return whether to tell what was looked at anew: not where a person acknowledged as much already."""
    before = firing.get(alert.name)
    if before is None or before.action is not AlertAction.ACKNOWLEDGE:
        return True
    if alert.name == INCONCLUSIVE:
        return not _doubts_told(alert) <= _doubts_told(before)
    return is_more(alert, before)


def is_more(alert: Alert, before: Alert) -> bool:
    """Return whether it counts more than one before it, or names another place, producer or expectation."""
    another = any(
        name in before.details and not set(alert.details.get(name, ())) <= set(before.details[name])
        for name in ("places", "producers", "expectations")
    )
    return another or bool(alert.details["count"] > before.details["count"])


def _doubts_told(alert: Alert) -> set[str]:
    return {found["doubt"] for found in alert.details["doubts"]}


def _seen_alerts(contract: Contract, result: RunResult, cut: Cut, firing: Mapping[str, Alert]) -> Iterator[Alert]:
    """One per paging doubt and per paging notice that this run saw, by name within each."""
    for doubt in PAGING_DOUBTS:
        told_here = [found for found in result.doubts if found.doubt is doubt]
        sentences = [found.sentence for found in told_here]
        if sentences:
            seen = _seen_alert(contract, cut, doubt, Severity.CRITICAL, sentences, len(sentences))
            yield with_places(seen, told_here, result, firing.get(doubt))
    for notice in sorted({found.notice for found in result.notices if found.pages}):
        told = [found for found in result.notices if found.notice is notice and found.pages]
        sentences = [found.sentence for found in told]
        seen = _seen_alert(contract, cut, notice, Severity.WARNING, sentences, sum(found.count for found in told))
        yield with_places(seen, told, result, firing.get(notice))


def _seen_alert(
    contract: Contract, cut: Cut, alert_name: Doubt | Notice, severity: Severity, sentences: list[str], count: int
) -> Alert:
    more = f" And {len(sentences) - 1} more." if len(sentences) > 1 else ""
    return Alert(
        contract=contract.name,
        cut_n=cut.n,
        name=alert_name,
        action=AlertAction.TRIGGER,
        severity=severity,
        summary=f"{contract.name}: {_words(alert_name)}: {sentences[0]}{more}",
        details=where_found(contract, cut) | {"seen": alert_name, "count": count, "sentences": sentences[:SAMPLES_MAX]},
        sinks=_sinks(contract),
    )


def _quiet_doubts(result: RunResult) -> list[DoubtFound]:
    """The doubts that have no alert of their own."""
    return [found for found in result.doubts if found.doubt not in PAGING_DOUBTS]


def _doubts_in_words(result: RunResult) -> list[dict[str, str]]:
    return [{"doubt": str(found.doubt), "sentence": found.sentence} for found in _quiet_doubts(result)]


def _besides(result: RunResult) -> str:
    """What a run with breaks could not see has no page of its own: it is BROKEN, and not INCONCLUSIVE."""
    doubts = sorted({_words(found.doubt) for found in _quiet_doubts(result)})
    return f"; besides, not all could be seen: {', '.join(doubts)}" if doubts else ""


def _inconclusive_alert(contract: Contract, result: RunResult, cut: Cut) -> Alert:
    quiet = _quiet_doubts(result)
    reason = quiet[0].sentence if quiet else "nothing was proven"
    return Alert(
        contract=contract.name,
        cut_n=cut.n,
        name=INCONCLUSIVE,
        action=AlertAction.TRIGGER,
        severity=Severity.WARNING,
        summary=f"{contract.name}: cut {cut.n} is inconclusive: {reason}",
        details=where_found(contract, cut) | {"verdict": result.verdict, "doubts": _doubts_in_words(result)},
        sinks=_sinks(contract),
    )


def _resolve(contract: Contract, cut: Cut, before: Alert) -> Alert:
    """The end of the incident whose newest alert is before."""
    alert_name = before.name
    text = "runs prove the books again" if alert_name == INCONCLUSIVE else f"{_words(alert_name)}: {_over(alert_name)}"
    return Alert(
        contract=contract.name,
        cut_n=cut.n,
        name=alert_name,
        action=AlertAction.RESOLVE,
        severity=Severity.INFO,
        summary=f"{contract.name}: {text}",
        details=where_found(contract, cut) | owner_told(before),
        sinks=_sinks(contract),
    )


def owner_told(before: Alert) -> dict[str, Any]:
    """The owner that an incident was told with: Alertmanager knows it by that label, and ends no other."""
    return {name: before.details[name] for name in ("owner",) if name in before.details}


def _over(alert_name: str) -> str:
    if alert_name in _TOLD_ONCE:
        return "none outstanding; one that no item follows was told once, and stands as it was found"
    return "not seen any more" if alert_name in SEEN_ANEW else "none outstanding"


def where_found(contract: Contract, cut: Cut) -> dict[str, Any]:
    return {
        "contract": contract.name,
        "owner": contract.owner,
        "cut_n": cut.n,
        "window_start_utc": cut.window_start_utc.isoformat(),
        "window_end_utc": cut.window_end_utc.isoformat(),
        "backfilled": cut.by_time,
    }


def _standing(now: Outstanding) -> dict[str, Any]:
    return {
        "outstanding": now.count,
        "outstanding_money_minor": dict(now.money),
        "oldest_first_seen_utc": now.first_seen_utc.isoformat(),
    } | ({"outstanding_negative_minor": dict(now.negative)} if now.negative else {})


def _samples(rules: AlertRules, breaks: Collection[Break]) -> list[dict[str, str]]:
    """The largest, by the ids that `tallystick explain` takes; by their keys only where the contract shows them."""
    largest = nsmallest(SAMPLES_MAX, breaks, key=lambda one: (-abs(one.amount_minor), one.break_id.int))
    shown = rules.match_keys == "shown"
    return [
        {"break_id": str(one.break_id)} | ({"match_key": one.match_key} if shown and one.match_key else {})
        for one in largest
    ]


def _at_stake(outstanding: Outstanding) -> str:
    negative = f", of it {format_money(outstanding.negative)} in negative amounts" if outstanding.negative else ""
    return f"{outstanding.count} outstanding, {format_money(outstanding.money)} at stake{negative}"


def _words(alert_name: str) -> str:
    return alert_name.replace("_", " ")


def _sinks(contract: Contract) -> tuple[str, ...]:
    return tuple(sink_name(sink) for sink in contract.alert.sinks)
