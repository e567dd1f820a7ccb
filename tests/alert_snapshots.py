"""What each kind of sink writes, for an alert of each topic. `python -m tests.alert_snapshots` writes the expected
texts anew; look at what changed before you commit it. `tests/unit/alerting/test_template.py` compares
them byte for byte.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from tallystick.alerting.acknowledgement import acknowledgement
from tallystick.alerting.alert import INCONCLUSIVE, PAGING_DOUBTS, Alert
from tallystick.alerting.alert_json import message_of
from tallystick.alerting.expectation_alerts import expectation_alerts
from tallystick.alerting.sample_alert import page_of_test
from tallystick.alerting.template import JSON_KINDS, LINE_KINDS, render_json, render_lines
from tallystick.model.finding_names import BreakClass, Doubt, Notice
from tallystick.model.findings import NoticeFound
from tallystick.model.stored_run import ExpectationsOutcome, NotEvaluated, StoredRun
from tallystick.model.verdict import Verdict
from tallystick.pipeline.missing_verdict_alert import no_verdict_alert, overdue_alert
from tests.expectation_outcomes import MODULE, not_met
from tests.run_results import run_result
from tests.unit.alerting.run_alerts import CONTRACT, NOON, OLD, a_break, alerts, cut, standing

FOLDER = Path(__file__).parent / "unit" / "alerting" / "alert_snapshots"
HOUR = timedelta(hours=1)
LINKS = {"runs": "https://airflow.example.org/dags/reconcile_payouts"}


def snapshots() -> dict[str, str]:
    """File name to text: one per topic, and one per further thing that is told of a class."""
    return {f"{name}.txt": _text(alert) for name, alert in _alerts()}


def _alerts() -> Iterator[tuple[str, Alert]]:
    for break_class in BreakClass:
        found = [a_break(key, break_class=break_class) for key in "ab"]
        (alert,) = alerts(*found, outstanding=standing(*found))
        yield break_class, alert
    for doubt in PAGING_DOUBTS:
        (alert,) = alerts(verdict=Verdict.INCONCLUSIVE, doubts=(doubt,))
        yield doubt, alert
    for notice in Notice:
        seen = NoticeFound(notice=notice, sentence="3 of them, since 2026-03-01 11:00:00 UTC.", count=3, pages=True)
        (alert,) = alerts(verdict=Verdict.MATCHED, notices=(seen,))
        yield notice, alert
    quiet = tuple(doubt for doubt in Doubt if doubt not in (*PAGING_DOUBTS, Doubt.BASELINE))
    (alert,) = alerts(verdict=Verdict.INCONCLUSIVE, doubts=quiet)
    yield INCONCLUSIVE, alert
    window = (NOON - HOUR, NOON)
    for alert in (
        no_verdict_alert(CONTRACT, scheduler_run_id="scheduled__1", cut_n=5),
        overdue_alert(CONTRACT, scheduler_run_id="scheduled__1", window=window, due_utc=NOON + HOUR),
        page_of_test(CONTRACT, now_utc=NOON),
    ):
        yield alert.name, alert
    yield from _of_expectations()
    yield from _further()


def _of_expectations() -> Iterator[tuple[str, Alert]]:
    silent = NotEvaluated(what="my_package.suites", why="ModuleNotFoundError: No module named 'my_package'")
    outcome = ExpectationsOutcome(
        module=MODULE, met=4, not_met=(not_met(), not_met(table="currencies")), not_evaluated=(silent,)
    )
    run = StoredRun(
        result=run_result("payouts", 5),
        window_start_utc=NOON - HOUR,
        window_end_utc=NOON,
        now_utc=NOON,
        scheduler_run_id="scheduled__1",
        attempt=1,
        recorded_at=NOON,
        cut=cut(5),
    )
    for alert in expectation_alerts(CONTRACT, run, outcome, firing={}):
        yield alert.name, alert


def _further() -> Iterator[tuple[str, Alert]]:
    missing = BreakClass.MISSING_IN_TOPIC_NEVER_PRODUCED
    stands = standing(a_break("a"))
    (shown,) = alerts(a_break("<b>&\u202ea"), rules={"match_keys": "shown"}, by_time=True)
    yield "shown_key_of_a_backfill", shown
    (escalated,) = alerts(firing=(missing,), outstanding=stands, rules=OLD)
    yield "escalated", escalated
    yield "acknowledged", acknowledgement("payouts", missing, by="Ada Byron", firing={missing: escalated})
    (resolved,) = alerts(verdict=Verdict.MATCHED, firing=(missing,))
    yield "resolved", resolved


def _text(alert: Alert) -> str:
    linked = replace(alert, details={**alert.details, "links": LINKS | {"runbook": f"docs/runbooks/{alert.name}.md"}})
    parts = [("webhook, file", _json(message_of(linked)))]
    parts += [(kind, _json(render_json(kind, linked))) for kind in JSON_KINDS]
    parts += [(kind, "\n".join(render_lines(kind, linked))) for kind in LINE_KINDS]
    return "\n".join(f"=== {kind}\n{text.strip()}\n" for kind, text in parts)


def _json(document: object) -> str:
    return json.dumps(document, indent=1)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for path in FOLDER.iterdir():
        path.unlink()
    for name, text in snapshots().items():
        (FOLDER / name).write_text(text)
