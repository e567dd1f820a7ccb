"""Runs as JSON, for the command line and whoever reads it by machine. The keys are stable; money is in minor units."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from tallystick.alerting.alert import Alert
from tallystick.alerting.alert_json import Attempt, message_of
from tallystick.compensation.write_off import BreakWrittenOff
from tallystick.contract.change import ContractChange
from tallystick.contract.contract import Contract
from tallystick.judging.allowed_oddities import LEGAL_ODDITIES_VERSION, count_oddities
from tallystick.kafka_cluster.config_check import ConfigLine
from tallystick.matching.closed_cut import CutClosed
from tallystick.model.break_history import ToldBreak
from tallystick.model.census_values import PartitionCensus
from tallystick.model.findings import Break, NoticeFound, money_at_stake, negative_at_stake
from tallystick.model.open_item import WriteOff
from tallystick.model.stored_run import RunSummary, StoredRun
from tallystick.model.verdict import Verdict
from tallystick.report.break_story import explain
from tallystick.store.runs.contract_store import NewestContract
from tallystick.text.verdict_sentence import verdict_sentence


def summary_document(run: RunSummary) -> dict[str, Any]:
    """One run on one line."""
    return {
        "run": f"{run.contract}/{run.cut_n}",
        "contract": run.contract,
        "cut": run.cut_n,
        "verdict": str(run.verdict),
        "window_start_utc": _moment(run.window_start_utc),
        "window_end_utc": _moment(run.window_end_utc),
        "breaks": run.breaks,
        "money_at_stake_minor": dict(run.money_minor),
        "doubts": [str(found.doubt) for found in run.doubts],
        "read_whole_by_cut": run.completed_by_cut,
        "scheduler_run_id": run.scheduler_run_id,
        "recorded_at": _moment(run.recorded_at),
    }


def run_document(run: StoredRun) -> dict[str, Any]:
    """A run whole, but for the look-ups kept to judge it again. Null: what only a run that reads can count."""
    result, figures, unread = run.result, run.result.figures, run.result.read_nothing
    return {
        "run": f"{result.contract}/{result.cut_n}",
        "contract": result.contract,
        "cut": result.cut_n,
        "verdict": str(result.verdict),
        "sentence": verdict_sentence(result),
        "window_start_utc": _moment(run.window_start_utc),
        "window_end_utc": _moment(run.window_end_utc),
        "money_at_stake_minor": money_at_stake(result.breaks),
        "negative_at_stake_minor": _negative(result.breaks),
        "doubts": [
            {"doubt": str(found.doubt), "sentence": found.sentence, "details": dict(found.details)}
            for found in result.doubts
        ],
        "notices": [_notice_document(found) for found in result.notices],
        "legal_oddities": {
            "version": LEGAL_ODDITIES_VERSION,
            "counts": {oddity.name: None if unread else oddity.count for oddity in count_oddities(result)},
        },
        "breaks": [_break_document(item_break) for item_break in result.breaks],
        "topic_rows": None if unread else figures.topic_rows,
        "ledger_rows": None if unread else figures.ledger_rows,
        "matched_rows": figures.matched_rows,
        "matched_money_minor": dict(figures.matched_money),
        "in_flight_items": None if unread else figures.in_flight_items,
        "in_flight_money_minor": None if unread else dict(figures.in_flight_money),
        "undecidable_items": None if unread else figures.undecidable_items,
        "unreadable_records": None if unread else figures.unreadable_records,
        "census": [census_document(part) for part in figures.census],
        "ledger_guarantee": run.ledger_guarantee,
        "digest": result.digest,
        "scheduler_run_id": run.scheduler_run_id,
        "attempt": run.attempt,
        "recorded_at": _moment(run.recorded_at),
    }


def _negative(breaks: Iterable[Break]) -> dict[str, int]:
    return negative_at_stake((one.currency, one.amount_minor) for one in breaks)


def verdict_event_document(run: StoredRun) -> dict[str, Any]:
    """Return a verdict for other DAGs: figures, no keys of events."""
    result, figures = run.result, run.result.figures
    return {
        "run": f"{result.contract}/{result.cut_n}",
        "contract": result.contract,
        "cut": result.cut_n,
        "verdict": str(result.verdict),
        "window_start_utc": _moment(run.window_start_utc),
        "window_end_utc": _moment(run.window_end_utc),
        "breaks_by_class": dict(Counter(str(item_break.break_class) for item_break in result.breaks)),
        "money_at_stake_minor": money_at_stake(result.breaks),
        "negative_at_stake_minor": _negative(result.breaks),
        "doubts": sorted({str(found.doubt) for found in result.doubts}),
        "matched_rows": figures.matched_rows,
        "matched_money_minor": dict(figures.matched_money),
        "in_flight_items": None if result.read_nothing else figures.in_flight_items,
        "digest": result.digest,
        "scheduler_run_id": run.scheduler_run_id,
        "recorded_at": _moment(run.recorded_at),
    }


def _notice_document(found: NoticeFound) -> dict[str, Any]:
    return {
        "notice": str(found.notice),
        "sentence": found.sentence,
        "count": found.count,
        "pages": found.pages,
        "details": dict(found.details),
    }


def contract_changes_document(
    contract: Contract, stored: NewestContract | None, changes: Iterable[ContractChange], *, open_items: int
) -> dict[str, Any]:
    """A contract's file against the newest cut; cut and what belongs to it are null where there is none."""
    return {
        "contract": contract.name,
        "cut": stored.cut_n if stored else None,
        "cut_judged": stored.judged if stored else None,
        "version_before": stored.contract.version if stored else None,
        "version": contract.version,
        "fingerprint_before": stored.contract.fingerprint if stored else None,
        "fingerprint": contract.fingerprint,
        "open_items": open_items,
        "changes": [asdict(change) for change in changes],
    }


def config_check_document(lines: Iterable[ConfigLine]) -> list[dict[str, Any]]:
    """One object per setting."""
    return [asdict(line) for line in lines]


def story_document(told: ToldBreak) -> dict[str, Any]:
    """One break with its story and its life."""
    story = explain(told)
    return _break_document(told.item_break) | {
        "run": story.run,
        "title": story.title,
        "paragraphs": [
            {"heading": paragraph.heading, "sentences": list(paragraph.sentences)} for paragraph in story.paragraphs
        ],
        "life": [
            {
                "cut": step.cut_n,
                "judged_as_of_utc": _moment(step.judged_utc),
                "item_id": step.item.item_id,
                "state": str(step.item.state),
                "reason": step.item.reason.stored,
                "cleared_by": step.item.cleared_by,
                "written_off": _write_off_document(step.written_off) if step.written_off else None,
            }
            for step in told.life
        ],
    }


def written_off_document(done: BreakWrittenOff) -> dict[str, Any]:
    """Return the changes of a write-off."""
    return {
        "break_id": str(done.item_break.break_id),
        "class": str(done.item_break.break_class),
        "contract": done.contract,
        "after_cut": done.cut_n,
        "item_ids": [item.item_id for item in done.items],
        "written_off": _write_off_document(done.write_off),
        "outstanding_of_its_class": done.outstanding,
        "alert_resolved": done.alert_resolved,
    }


def closed_document(done: CutClosed) -> dict[str, Any]:
    """A cut that a person closed unread."""
    return {
        "run": f"{done.cut.contract}/{done.cut.n}",
        "verdict": str(Verdict.INCONCLUSIVE),
        "by": done.closing.by,
        "reason": done.closing.reason,
        "closed_at_utc": done.closing.at_utc.isoformat(),
        "attempts": done.attempts,
        "sentence": done.sentence,
    }


def alert_document(alert: Alert) -> dict[str, Any]:
    """One alert as its receivers get it."""
    return message_of(alert) | {"sinks": list(alert.sinks)}


def attempt_document(sink: str, attempt: Attempt) -> dict[str, Any]:
    """Return the result of sending one alert to one sink."""
    return {"sink": sink, "delivered": attempt.delivered, "detail": attempt.detail}


def _write_off_document(write_off: WriteOff) -> dict[str, Any]:
    return {"by": write_off.by, "reason": write_off.reason, "at_utc": _moment(write_off.at_utc)}


def census_document(part: PartitionCensus) -> dict[str, Any]:
    """One partition's census."""
    return asdict(part)


def _break_document(item_break: Break) -> dict[str, Any]:
    return {
        "break_id": str(item_break.break_id),
        "class": str(item_break.break_class),
        "match_key": item_break.match_key,
        "transaction_key": item_break.transaction_key,
        "leg": item_break.leg,
        "amount_minor": item_break.amount_minor,
        "currency": item_break.currency,
        "copies": item_break.copies,
        "story": item_break.story,
        "evidence": dict(item_break.evidence),
    }


def _moment(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
