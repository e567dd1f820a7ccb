"""What a run tells, to whom it is grave, and when it is over."""

import json
from typing import Any

import pytest

from tallystick.alerting.alert import AlertAction
from tallystick.alerting.alert_json import message_of
from tallystick.alerting.policy import severity_of
from tallystick.contract.alerts import AlertRules, Severity
from tallystick.model.finding_names import BreakClass, Doubt, Notice
from tallystick.model.findings import DoubtFound, NoticeFound, money_at_stake
from tallystick.model.verdict import Verdict
from tallystick.report.break_sample import stakes
from tallystick.text.verdict_sentence import sums_of
from tests.unit.alerting.refunds import PAID, REFUNDED
from tests.unit.alerting.run_alerts import MISSING, OLD, PHANTOM, a_break, alerts, fired, standing


def told(*arguments: Any, **keywords: Any) -> list[tuple[str, str]]:
    return [(str(alert.action), alert.name) for alert in alerts(*arguments, **keywords)]


def test_a_thousand_breaks_of_a_class_are_one_alert() -> None:
    breaks = [a_break(f"{n:04}") for n in range(1000)]
    (alert,) = alerts(*breaks, outstanding=standing(*breaks))
    assert alert.dedup_key == "tallystick/payouts/missing_in_topic_never_produced"
    assert alert.summary == (
        "payouts: missing in topic never produced: 1000 new, 1000 outstanding, 4,000.00 EUR at stake"
    )
    assert alert.sinks == ("webhook:pager", "file:alerts.jsonl")


def test_an_alert_says_what_where_since_when_and_how_much() -> None:
    old, *new = (a_break(key) for key in "zcbax")
    (alert,) = alerts(*new, outstanding=standing(old, *new))
    assert alert.details == {
        "contract": "payouts",
        "owner": "payouts-team",
        "cut_n": 5,
        "window_start_utc": "2026-03-01T11:00:00+00:00",
        "window_end_utc": "2026-03-01T12:00:00+00:00",
        "verdict": "BROKEN",
        "break_class": "missing_in_topic_never_produced",
        "new": 4,
        "new_money_minor": {"EUR": 1600},
        "outstanding": 5,
        "outstanding_money_minor": {"EUR": 2000},
        "oldest_first_seen_utc": "2026-02-27T12:00:00+00:00",
        "samples": [{"break_id": found} for found in sorted(str(one.break_id) for one in new)],
        "backfilled": False,
    }


def test_each_class_has_an_alert_of_its_own() -> None:
    breaks = a_break("a"), a_break("b", break_class=PHANTOM)
    assert told(*breaks) == [("trigger", MISSING), ("trigger", PHANTOM)]


def test_a_class_resolves_when_none_of_it_is_outstanding() -> None:
    assert told(verdict=Verdict.MATCHED, firing=(MISSING,)) == [("resolve", MISSING)]


def test_a_class_does_not_resolve_while_one_is_outstanding() -> None:
    assert told(verdict=Verdict.MATCHED, firing=(MISSING,), outstanding=standing(a_break("a"))) == []


def test_a_class_that_did_not_fire_is_not_resolved() -> None:
    assert told(verdict=Verdict.MATCHED) == []


def test_one_class_resolves_while_another_fires() -> None:
    found = a_break("b", break_class=PHANTOM)
    assert told(found, firing=(MISSING,), outstanding=standing(found)) == [("trigger", PHANTOM), ("resolve", MISSING)]


def test_an_inconclusive_run_alerts_low_and_resolves_nothing() -> None:
    (alert,) = alerts(verdict=Verdict.INCONCLUSIVE, doubts=(Doubt.LOG_EXPIRED,), firing=(MISSING,))
    assert (alert.action, alert.name, alert.severity) == (AlertAction.TRIGGER, "inconclusive", Severity.WARNING)
    assert alert.summary == "payouts: cut 5 is inconclusive: log_expired: why."


def test_a_class_cleared_during_an_inconclusive_run_resolves_at_the_next_proven_one() -> None:
    assert told(verdict=Verdict.INCONCLUSIVE, doubts=(Doubt.LOG_EXPIRED,), firing=(MISSING,)) == [
        ("trigger", "inconclusive")
    ]
    assert told(verdict=Verdict.MATCHED, firing=(MISSING, "inconclusive")) == [
        ("resolve", "inconclusive"),
        ("resolve", MISSING),
    ]


def test_a_broken_run_with_doubts_leaves_the_inconclusive_alert_firing() -> None:
    found = a_break("a")
    assert told(found, doubts=(Doubt.LOG_EXPIRED,), firing=("inconclusive",), outstanding=standing(found)) == [
        ("trigger", MISSING)
    ]


def test_what_a_broken_run_could_not_see_stands_in_the_alert_of_each_of_its_breaks() -> None:
    found = a_break("a")
    (beside,) = alerts(found, doubts=(Doubt.LOG_EXPIRED, Doubt.VACUOUS_RUN), outstanding=standing(found))
    assert beside.summary.endswith("at stake; besides, not all could be seen: log expired, vacuous run")
    assert [one["doubt"] for one in beside.details["doubts"]] == ["log_expired", "vacuous_run"]
    (alone,) = alerts(found, outstanding=standing(found))
    assert alone.summary.endswith("at stake")
    assert "doubts" not in alone.details


HANGING = Doubt.HANGING_TRANSACTION
EXPIRES = NoticeFound(
    notice=Notice.RETENTION_OVERTAKES, sentence="3 unread offsets expire in 5 h, the next run is in 6 h.", pages=True
)


def test_a_hanging_transaction_is_critical_and_has_an_alert_of_its_own() -> None:
    (alert,) = alerts(verdict=Verdict.INCONCLUSIVE, doubts=(HANGING, HANGING))
    assert (alert.name, alert.severity) == ("hanging_transaction", Severity.CRITICAL)
    assert alert.dedup_key == "tallystick/payouts/hanging_transaction"
    assert alert.summary == ("payouts: hanging transaction: hanging_transaction: why. And 1 more.")
    assert alert.details["count"] == 2


def test_a_hanging_transaction_beside_another_doubt_leaves_that_one_low() -> None:
    critical, low = alerts(verdict=Verdict.INCONCLUSIVE, doubts=(HANGING, Doubt.LOG_EXPIRED))
    assert (critical.severity, low.severity) == (Severity.CRITICAL, Severity.WARNING)
    assert low.summary == "payouts: cut 5 is inconclusive: log_expired: why."
    assert [found["doubt"] for found in low.details["doubts"]] == ["log_expired"]


def test_a_held_transaction_that_is_only_long_stays_low() -> None:
    assert told(verdict=Verdict.INCONCLUSIVE, doubts=(Doubt.HELD_BY_OPEN_TRANSACTION,)) == [("trigger", "inconclusive")]


def test_a_hanging_transaction_pages_beside_breaks_too() -> None:
    found = a_break("a")
    assert told(found, doubts=(HANGING,), outstanding=standing(found)) == [("trigger", MISSING), ("trigger", HANGING)]


def test_a_notice_that_pages_is_a_warning_of_its_own_and_changes_nothing_else() -> None:
    (alert,) = alerts(verdict=Verdict.MATCHED, notices=(EXPIRES,))
    assert (alert.action, alert.name, alert.severity) == (
        AlertAction.TRIGGER,
        "retention_overtakes",
        Severity.WARNING,
    )
    assert alert.summary == f"payouts: retention overtakes: {EXPIRES.sentence}"
    assert alert.details["sentences"] == [EXPIRES.sentence]
    json.dumps(message_of(alert))


def test_a_notice_that_does_not_page_is_told_to_nobody() -> None:
    quiet = NoticeFound(notice=Notice.PROMISE_AT_RISK, sentence="One broker.")
    assert told(verdict=Verdict.MATCHED, notices=(quiet,)) == []
    assert told(verdict=Verdict.MATCHED, notices=(quiet,), firing=("promise_at_risk",)) == [
        ("resolve", "promise_at_risk")
    ]


@pytest.mark.parametrize("topic", ["retention_overtakes", "hanging_transaction"])
@pytest.mark.parametrize(
    ("verdict", "doubts"), [(Verdict.MATCHED, ()), (Verdict.INCONCLUSIVE, (Doubt.VACUOUS_RUN,))], ids=str
)
def test_what_is_looked_at_anew_resolves_at_the_first_run_that_does_not_see_it(
    topic: str, verdict: Verdict, doubts: tuple[Doubt, ...]
) -> None:
    found = told(verdict=verdict, doubts=doubts, firing=(topic, MISSING), outstanding=standing(a_break("a")))
    assert ("resolve", topic) in found
    assert ("resolve", MISSING) not in found


def held(partition: int) -> DoubtFound:
    details = {"topic": "billing.payouts", "partition": partition}
    return DoubtFound(doubt=Doubt.HELD_BY_OPEN_TRANSACTION, sentence="It is open.", details=details)


def test_a_cut_that_was_closed_unread_ends_nothing_that_runs_look_at_anew() -> None:
    firing = ("retention_overtakes", "hanging_transaction")
    assert told(verdict=Verdict.INCONCLUSIVE, doubts=(Doubt.CUT_CLOSED,), firing=firing) == [
        ("trigger", "inconclusive")
    ]


def hangs_on(partition: int) -> DoubtFound:
    details = {"topic": "billing.payouts", "partition": partition, "producer_id": partition}
    return DoubtFound(doubt=HANGING, sentence="It hangs.", details=details)


@pytest.mark.parametrize(("partition", "ends"), [(0, False), (11, False), (1, True)])
def test_a_hanging_transaction_does_not_end_while_one_is_open_where_it_hangs(partition: int, ends: bool) -> None:
    """Whether nobody will end it, a cluster that answers in part does not say."""
    hang = tuple(hangs_on(place) for place in (0, *range(10, 16)))
    (alert,) = alerts(verdict=Verdict.INCONCLUSIVE, doubts=hang)
    found = told(verdict=Verdict.INCONCLUSIVE, doubts=(held(partition),), firing={HANGING: alert})
    assert (("resolve", HANGING) in found) == ends


@pytest.mark.parametrize("before", [{"owner": "first-team"}, {}])
@pytest.mark.parametrize("verdict", [Verdict.MATCHED, Verdict.INCONCLUSIVE])
def test_an_end_names_the_owner_that_was_told_last(before: dict[str, str], verdict: Verdict) -> None:
    found = alerts(verdict=verdict, firing={HANGING: fired(HANGING, count=1, **before)})
    (over,) = (one for one in found if one.action is AlertAction.RESOLVE)
    assert over.details["owner"] == before.get("owner", "payouts-team")


@pytest.mark.parametrize(("producer_id", "pages"), [(7, []), (9, [("trigger", HANGING)])])
def test_another_producers_hanging_transaction_pages_though_as_many_were_acknowledged(
    producer_id: int, pages: list[tuple[str, str]]
) -> None:
    firing = {HANGING: fired(HANGING, by="Ada", count=1, producers=["billing.payouts 0 7"])}
    details = {"topic": "billing.payouts", "partition": 0, "producer_id": producer_id}
    hangs = DoubtFound(doubt=HANGING, sentence="It hangs.", details=details)
    assert told(verdict=Verdict.INCONCLUSIVE, doubts=(hangs,), firing=firing) == pages


BLED = BreakClass.BLED_INTO_TRANSACTION


def test_a_break_that_no_item_follows_counts_beside_an_older_one_and_its_end_says_what_it_is_worth() -> None:
    small, large = a_break("a", break_class=BLED, amount_minor=1), a_break("b", break_class=BLED, amount_minor=10**8)
    (alert,) = alerts(large, outstanding=standing(small))
    assert (alert.severity, alert.details["outstanding_money_minor"]) == (Severity.CRITICAL, {"EUR": 10**8})
    (over,) = alerts(verdict=Verdict.MATCHED, firing=(BLED,))
    assert over.summary.endswith("none outstanding; one that no item follows was told once, and stands as it was found")


def test_no_run_resolves_what_is_told_of_verdicts_that_are_not_there() -> None:
    assert told(verdict=Verdict.MATCHED, firing=("no_verdict", "verdict_overdue", MISSING)) == [("resolve", MISSING)]


def test_what_is_still_seen_does_not_resolve() -> None:
    firing = ("retention_overtakes", "hanging_transaction")
    assert told(verdict=Verdict.MATCHED, notices=(EXPIRES,), firing=firing[:1]) == [("trigger", "retention_overtakes")]
    assert told(verdict=Verdict.INCONCLUSIVE, doubts=(HANGING,), notices=(EXPIRES,), firing=firing) == [
        ("trigger", "hanging_transaction"),
        ("trigger", "retention_overtakes"),
    ]


def test_a_row_from_an_aborted_event_is_critical_whatever_the_money_unless_the_contract_says_otherwise() -> None:
    aborted = BreakClass.ABORTED_READ_IN_LEDGER
    assert severity_of(AlertRules(), aborted, {}) is Severity.CRITICAL
    assert severity_of(AlertRules(severity_by_class={aborted: Severity.INFO}), aborted, {}) is Severity.INFO


def test_a_baseline_alerts_nobody() -> None:
    assert told(n=0, verdict=Verdict.INCONCLUSIVE, doubts=(Doubt.BASELINE,)) == []


@pytest.mark.parametrize(
    ("money", "severity"),
    [
        ({"EUR": 999}, Severity.ERROR),
        ({"EUR": 1000}, Severity.CRITICAL),
        ({"EUR": 999, "JPY": 10**9}, Severity.ERROR),
        ({"EUR": 1, "USD": 5}, Severity.CRITICAL),
        ({}, Severity.ERROR),
    ],
)
def test_a_break_is_critical_from_the_limit_of_its_currency_on(money: dict[str, int], severity: Severity) -> None:
    rules = AlertRules(critical_at_minor={"EUR": 1000, "USD": 5})
    assert severity_of(rules, MISSING, money) is severity


def test_a_class_may_have_a_severity_of_its_own() -> None:
    rules = AlertRules(critical_at_minor={"EUR": 0}, severity_by_class={MISSING: Severity.INFO})
    assert severity_of(rules, MISSING, {"EUR": 10**9}) is Severity.INFO
    assert severity_of(rules, PHANTOM, {"EUR": 10**9}) is Severity.CRITICAL


def test_money_at_stake_counts_what_stands_not_only_what_is_new() -> None:
    old, new = a_break("a", amount_minor=600), a_break("b")
    (alert,) = alerts(new, outstanding=standing(old, new))
    assert alert.severity is Severity.CRITICAL


def test_an_alert_shows_up_to_five_samples_the_largest_first_and_no_keys() -> None:
    breaks = [a_break(f"{n}", amount_minor=n) for n in range(1, 8)]
    (alert,) = alerts(*breaks, outstanding=standing(*breaks))
    assert alert.details["samples"] == [{"break_id": str(one.break_id)} for one in reversed(breaks[2:])]


def test_keys_are_shown_where_the_contract_shows_them() -> None:
    (alert,) = alerts(a_break("a"), rules={"match_keys": "shown"})
    assert [sample["match_key"] for sample in alert.details["samples"]] == ["a"]


def test_a_break_that_stands_for_too_long_gets_the_next_severity_and_one_more_page() -> None:
    (alert,) = alerts(firing=(MISSING,), outstanding=standing(a_break("a")), rules=OLD)
    assert (alert.action, alert.name, alert.severity) == (AlertAction.TRIGGER, MISSING, Severity.CRITICAL)
    assert alert.summary == (
        "payouts: missing in topic never produced: escalated: since 2026-02-27 12:00:00 UTC, "
        "1 outstanding, 4.00 EUR at stake"
    )
    assert alerts(firing={MISSING: alert}, outstanding=standing(a_break("a")), rules=OLD) == []


@pytest.mark.parametrize("seconds", [2 * 86400 + 60, None])
def test_a_break_that_does_not_stand_for_so_long_does_not_escalate(seconds: int | None) -> None:
    rules = {"escalate_after_seconds": seconds}
    assert alerts(firing=(MISSING,), outstanding=standing(a_break("a")), rules=rules) == []


def test_an_inconclusive_run_escalates_too_since_time_passes_all_the_same() -> None:
    found = told(verdict=Verdict.INCONCLUSIVE, firing=(MISSING,), outstanding=standing(a_break("a")), rules=OLD)
    assert ("trigger", MISSING) in found


def test_what_is_critical_already_does_not_escalate() -> None:
    firing = {MISSING: fired(MISSING, severity=Severity.CRITICAL)}
    assert alerts(firing=firing, outstanding=standing(a_break("a")), rules=OLD) == []


def test_an_acknowledged_incident_does_not_escalate() -> None:
    firing = {MISSING: fired(MISSING, by="Ada")}
    assert alerts(firing=firing, outstanding=standing(a_break("a")), rules=OLD) == []


def test_an_acknowledged_incident_pages_and_escalates_when_it_is_worse() -> None:
    old, new = a_break("a"), a_break("b")
    (alert,) = alerts(new, firing={MISSING: fired(MISSING, by="Ada")}, outstanding=standing(old, new), rules=OLD)
    assert (alert.action, alert.severity) == (AlertAction.TRIGGER, Severity.CRITICAL)


def test_an_acknowledged_incident_resolves_by_itself() -> None:
    assert told(verdict=Verdict.MATCHED, firing={MISSING: fired(MISSING, by="Ada")}) == [("resolve", MISSING)]


@pytest.mark.parametrize(("count", "pages"), [(2, []), (1, [("trigger", HANGING)])])
def test_what_is_seen_again_pages_an_acknowledged_incident_only_where_it_is_more(
    count: int, pages: list[tuple[str, str]]
) -> None:
    firing = {HANGING: fired(HANGING, by="Ada", count=count)}
    assert told(verdict=Verdict.BROKEN, doubts=(HANGING, HANGING), firing=firing) == pages


@pytest.mark.parametrize(("doubt", "pages"), [(Doubt.LOG_EXPIRED, []), (Doubt.TORN_CUT, [("trigger", "inconclusive")])])
def test_an_acknowledged_doubt_is_quiet_and_another_one_is_not(doubt: Doubt, pages: list[tuple[str, str]]) -> None:
    firing = {"inconclusive": fired("inconclusive", by="Ada", doubts=[{"doubt": "log_expired"}])}
    assert told(verdict=Verdict.INCONCLUSIVE, doubts=(doubt,), firing=firing) == pages


def test_what_is_seen_is_not_resolved_because_it_is_acknowledged() -> None:
    firing = {HANGING: fired(HANGING, by="Ada", count=1)}
    assert told(verdict=Verdict.MATCHED, doubts=(HANGING,), firing=firing) == []
    assert told(verdict=Verdict.MATCHED, firing=firing) == [("resolve", HANGING)]


@pytest.mark.parametrize(
    ("rules", "by_time", "severity"),
    [
        ({}, False, Severity.ERROR),
        ({}, True, Severity.WARNING),
        ({"backfilled": "same"}, True, Severity.ERROR),
        ({"severity_by_class": {MISSING: Severity.CRITICAL}}, True, Severity.ERROR),
        ({"severity_by_class": {MISSING: Severity.WARNING}}, True, Severity.WARNING),
        ({"severity_by_class": {MISSING: Severity.INFO}}, True, Severity.INFO),
    ],
)
def test_a_window_that_was_caught_up_late_pages_one_lower_but_not_below_warning(
    rules: dict[str, Any], by_time: bool, severity: Severity
) -> None:
    (alert,) = alerts(a_break("a"), rules=rules, by_time=by_time)
    assert (alert.severity, alert.details["backfilled"]) == (severity, by_time)


def test_an_incident_never_becomes_less_severe_while_it_fires() -> None:
    firing = {MISSING: fired(MISSING, severity=Severity.CRITICAL)}
    (alert,) = alerts(a_break("a"), firing=firing, by_time=True)
    assert alert.severity is Severity.CRITICAL


CRITICAL = AlertRules(critical_at_minor={"EUR": 5_000_000})


def test_a_refund_and_a_payment_that_are_both_missing_do_not_add_up_to_nothing() -> None:
    (alert,) = alerts(PAID, REFUNDED)
    assert alert.severity is Severity.CRITICAL
    assert alert.summary.endswith("100,000.00 EUR at stake, of it 50,000.00 EUR in negative amounts")
    assert alert.details["new_money_minor"] == {"EUR": 10_000_000}
    assert alert.details["outstanding_negative_minor"] == {"EUR": 5_000_000}
    assert sums_of([PAID, REFUNDED]).money == {"EUR": 10_000_000}
    assert [stake.amount_minor for stake in stakes([PAID, REFUNDED])] == [10_000_000]


def test_a_missing_refund_is_as_critical_as_a_missing_payment_of_that_size() -> None:
    for found in (PAID, REFUNDED):
        assert severity_of(CRITICAL, MISSING, money_at_stake([found])) is Severity.CRITICAL
        (alert,) = alerts(found, rules={"critical_at_minor": {"EUR": 5_000_000}})
        assert alert.severity is Severity.CRITICAL
        (alert,) = alerts(found, rules={"critical_at_minor": {"EUR": 5_000_001}})
        assert alert.severity is Severity.ERROR


def test_without_negative_amounts_none_are_told() -> None:
    (alert,) = alerts(PAID)
    assert "negative" not in alert.summary
    assert "outstanding_negative_minor" not in alert.details
