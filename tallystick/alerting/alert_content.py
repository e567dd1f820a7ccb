"""The content of an alert for a person, as plain data that templates write out. Pure.

Everything in it is text, or made of it: no object, no number that a template could round, nothing that was not meant
to leave the house.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from tallystick.alerting.alert import (
    EXPECTATION_NOT_EVALUATED,
    EXPECTATION_NOT_MET,
    INCONCLUSIVE,
    NO_VERDICT,
    TEST,
    VERDICT_OVERDUE,
    Alert,
)
from tallystick.text.finding_guide import BREAK_TEXTS, DOUBT_TEXTS, NOTICE_TEXTS, ClassText
from tallystick.text.money import format_money
from tallystick.text.plain import format_time, format_window, story_text

ALERT_TEXTS: Mapping[str, ClassText] = {
    **{str(name): text for texts in (BREAK_TEXTS, DOUBT_TEXTS, NOTICE_TEXTS) for name, text in texts.items()},
    INCONCLUSIVE: ClassText(
        title="Nothing proven",
        means="A run could not see all that it needs, so its window is neither matched nor broken.",
        check_first="Look at the doubts: each names what could not be seen, and who holds it.",
    ),
    NO_VERDICT: ClassText(
        title="A run ended without a verdict",
        means="The run failed before it could judge its window, so nobody knows whether the books agree.",
        check_first="Open the run's first failed task: its last line says what does not answer or is refused.",
    ),
    VERDICT_OVERDUE: ClassText(
        title="A verdict is overdue",
        means="The window ended long ago, and no verdict of it is stored.",
        check_first="Look at the run: does a task hang, or wait for a worker, a pool or another run?",
    ),
    EXPECTATION_NOT_MET: ClassText(
        title="Expectation not met",
        means="The figures of a window are not what the contract's own suites expect. The verdict stays what it is.",
        check_first="Open the run's report, section Own expectations: which table, what was expected, what was found?",
    ),
    EXPECTATION_NOT_EVALUATED: ClassText(
        title="Expectation not evaluated",
        means="The contract's own suites, or a part of them, gave no answer, so nothing is known to be met by it.",
        check_first="Read the reason: can the module be imported where the report is written? Is there such a table?",
    ),
    TEST: ClassText(
        title="Test page",
        means="Somebody tests whether this page arrives; nothing is wrong.",
        check_first="Nothing. Where an incident was opened, close it.",
    ),
}
"""Of every name that an alert may have."""


def view_of(alert: Alert) -> dict[str, Any]:
    """The words of one alert. facts: pairs of a label and a text, in reading order. links: name to address.

    runbook: the address of its page, or its path in the repository; "" where nobody gave one.
    """
    text = ALERT_TEXTS[alert.name]
    links = dict(alert.details.get("links", {}))
    return {
        "action": str(alert.action),
        "dedup_key": alert.dedup_key,
        "severity": str(alert.severity),
        "contract": alert.contract,
        "owner": story_text(str(alert.details.get("owner", ""))),
        "topic": alert.name,
        "title": text.title,
        "summary": story_text(alert.summary),
        "means": text.means,
        "check_first": text.check_first,
        "facts": [[label, story_text(fact)] for label, fact in _facts(alert.details)],
        "runbook": links.pop("runbook", ""),
        "links": links,
    }


def _facts(details: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if "new_money_minor" in details:
        yield "New", f"{details['new']:,}, {format_money(details['new_money_minor'])}"
    if "outstanding_money_minor" in details:
        yield "Outstanding", f"{details['outstanding']:,}, {format_money(details['outstanding_money_minor'])}"
        yield "Oldest seen", _time(details["oldest_first_seen_utc"])
    if "escalated_after_seconds" in details:
        yield "Escalated", f"the oldest has stood for more than {details['escalated_after_seconds']:,} s"
    if details.get("samples"):
        yield "Samples", ", ".join(_sample(sample) for sample in details["samples"])
    yield from (("Seen", sentence) for sentence in details.get("sentences", ()))
    yield from (("Doubt", doubt["sentence"]) for doubt in details.get("doubts", ()))
    if "due_utc" in details:
        yield "Was due", _time(details["due_utc"])
    if "window_start_utc" in details:
        start_utc, end_utc = (datetime.fromisoformat(details[f"window_{end}_utc"]) for end in ("start", "end"))
        yield "Window", format_window(start_utc, end_utc) + (", caught up late" if details.get("backfilled") else "")
    if details.get("cut_n") is not None:
        yield "Run", f"{details['contract']}/{details['cut_n']}"
    if "scheduler_run_id" in details:
        yield "Scheduler's run", str(details["scheduler_run_id"])
    for what in ("acknowledged", "written_off"):
        if f"{what}_by" in details:
            yield what.replace("_", " ").capitalize(), f"by {details[f'{what}_by']}"


def _sample(sample: Mapping[str, Any]) -> str:
    """The beginning of a break's id, as `tallystick explain` takes it; its key where the contract shows keys."""
    shown: Sequence[str] = (str(sample["break_id"])[:8], *([sample["match_key"]] if "match_key" in sample else []))
    return " = ".join(shown)


def _time(text: str) -> str:
    return format_time(datetime.fromisoformat(text))
