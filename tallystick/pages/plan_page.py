"""The page of one plan: its actions, the money, the breaks left out, and the results. Pure."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from tallystick.compensation.abort_plan import AbortItem, abort_words
from tallystick.compensation.plan import PlanItem
from tallystick.compensation.plan_text import KIND_WORDS, action_label
from tallystick.contract.compensation import CompensationRules
from tallystick.contract.contract import Contract
from tallystick.model.findings import total_money
from tallystick.report.break_story import describe_place
from tallystick.report.masking import Mask
from tallystick.store.plans.plan_life_store import PLAN_EVENTS, ActionTold, PlanSum, PlanTold
from tallystick.store.plans.plan_store import ASKED, ActionState, AuditEntry
from tallystick.text.money import format_minor, format_money
from tallystick.text.plain import escape_untrusted, story_text
from tallystick.text.verdict_sentence import counted

_STANDING = {
    "planned": ("waits for an approval", "doubtful"),
    "agreed": ("approved, and about to be carried out", "doubtful"),
    "rejected": ("rejected: nothing was done", "none"),
    "unanswered": ("not answered in time, so it was not carried out", "none"),
    "approval_failed": ("the approval failed, so it was not carried out", "bad"),
    "approved": ("is being carried out", "doubtful"),
    "stopped": ("stopped before its end", "bad"),
    "finished": ("ended", "none"),
}
_NOT_DONE = (ActionState.REFUSED, ActionState.EXECUTING, ActionState.WAITING)
_UNKNOWN = ("stored, and no approval was asked for", "none")


@dataclass(frozen=True, kw_only=True)
class PlanItemRow:
    """One item. state: how its repair stands, in words; reason: why it was refused, or where its event stands."""

    break_id: UUID
    match_key: str
    amount: str
    deed: str
    state: str
    tone: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class PlanEndRow:
    """One hanging transaction that is ended. The rest as in PlanItemRow."""

    deed: str
    state: str
    tone: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class LeftOutRow:
    """Breaks that the plan leaves alone."""

    count: str
    reason: str
    examples: str


@dataclass(frozen=True, kw_only=True)
class TrailRow:
    """One line of the audit trail."""

    at_utc: datetime
    who: str
    words: str


@dataclass(frozen=True, kw_only=True)
class PlanPage:
    """Everything the template may say. approve_run: the scheduler's run that waits for a yes or no; "" for none."""

    plan_id: UUID
    contract: str
    cut_n: int
    plan_hash: str
    standing: str
    tone: str
    money: str
    intents: tuple[str, ...]
    done: str
    rules: tuple[tuple[str, str], ...]
    ends: tuple[PlanEndRow, ...]
    items: tuple[PlanItemRow, ...]
    items_left_out: int
    left_out: tuple[LeftOutRow, ...]
    trail: tuple[TrailRow, ...]
    approve_run: str


def plan_page(told: PlanTold, contract: Contract) -> PlanPage:
    """Gather the page. contract: as it is now, by which an approval would be held."""
    in_short, last = Mask(contract).in_short(told.in_short), _last_event(told)
    standing, tone = _STANDING.get(last, _UNKNOWN)
    if last == "finished":
        left = any(told.counts.get(one) for one in _NOT_DONE)
        standing, tone = ("ended, and not all of it was done", "doubtful") if left else ("carried out", "good")
    items = sum(total.items for total in in_short.sums)
    return PlanPage(
        plan_id=told.plan_id,
        contract=told.contract,
        cut_n=told.cut_n,
        plan_hash=told.plan_hash,
        standing=standing,
        tone=tone,
        money=money_of(in_short.sums),
        intents=(*_ends_intent(in_short.aborts), *_intents(in_short.sums)),
        done=_done(told.counts),
        rules=tuple(_rules(told, contract.compensation)),
        ends=tuple(
            PlanEndRow(deed=escape_untrusted(abort_words(abort)), **_fate(told.actions.get(abort.action_id)))
            for abort in in_short.aborts
        ),
        items=tuple(_item_row(item, told.actions) for item in in_short.items),
        items_left_out=items - len(in_short.items),
        left_out=tuple(
            LeftOutRow(
                count=counted(excluded.breaks, "break"),
                reason=escape_untrusted(excluded.reason),
                examples=", ".join(map(escape_untrusted, excluded.match_keys))
                + (", ..." if excluded.breaks > 3 else ""),
            )
            for excluded in in_short.left_out
        ),
        trail=tuple(_trail_row(entry) for entry in told.trail),
        approve_run=_asking_run(told) if last == ASKED else "",
    )


def plan_state(event: str) -> tuple[str, str]:
    """Return the state of a plan with this newest event: in words, and the tone of the mark beside them."""
    return _STANDING.get(event, _UNKNOWN)


def money_of(sums: tuple[PlanSum, ...]) -> str:
    """Return the money of the items, per currency, in words."""
    return escape_untrusted(format_money(total_money((total.currency, total.amount_minor) for total in sums)))


def _last_event(told: PlanTold) -> str:
    return next((entry.event for entry in reversed(told.trail) if entry.event in PLAN_EVENTS), "")


def _asking_run(told: PlanTold) -> str:
    asked = [entry for entry in told.trail if entry.event == ASKED]
    return str(asked[-1].detail.get("scheduler_run_id", "")) if asked else ""


def _ends_intent(aborts: Sequence[AbortItem]) -> Iterator[str]:
    if aborts:
        money = escape_untrusted(
            format_money(total_money(pair for abort in aborts for pair in abort.own_money_minor.items()))
        )
        yield (
            f"End {counted(len(aborts), 'hanging transaction')} by an ABORT marker, so that "
            f"{counted(sum(abort.own_events for abort in aborts), 'record')} will count as aborted: {money}."
        )


def _intents(sums: tuple[PlanSum, ...]) -> Iterator[str]:
    for kind, words in KIND_WORDS.items():
        mine = tuple(total for total in sums if total.kind is kind)
        if mine:
            intent = words.intent.format(count=counted(sum(total.items for total in mine), words.noun))
            yield f"{intent[0].upper()}{intent[1:]}: {money_of(mine)}{words.remark}."


def _done(counts: Mapping[ActionState, int]) -> str:
    """What came of the items that were begun; "" where none was."""
    words = {
        ActionState.DONE: "done",
        ActionState.REFUSED: "refused",
        ActionState.EXECUTING: "begun and not ended",
        ActionState.WAITING: "waiting for a person to look",
    }
    return ", ".join(f"{counts[state]:,} {word}" for state, word in words.items() if counts.get(state))


def _rules(told: PlanTold, rules: CompensationRules | None) -> Iterator[tuple[str, str]]:
    asked = dict.fromkeys(entry.actor for entry in told.trail if entry.event == ASKED)
    yield "asked for by", ", ".join(map(escape_untrusted, asked)) or "nobody on record"
    if rules is None:
        yield "allowed", "the contract allows no repair any more, so it would be refused"
        return
    caps = escape_untrusted(format_money(rules.max_amount_minor))
    yield "limit per plan", f"{counted(rules.max_items, 'event')}, {caps}"
    if rules.max_items_per_day is not None or rules.max_amount_minor_per_day:
        items = [counted(rules.max_items_per_day, "event")] if rules.max_items_per_day is not None else []
        money = (
            [escape_untrusted(format_money(rules.max_amount_minor_per_day))] if rules.max_amount_minor_per_day else []
        )
        yield "limit per day", ", ".join([*items, *money])
    above = escape_untrusted(format_money(rules.four_eyes_above_minor)) if rules.four_eyes_above_minor else "any amount"
    yield (
        "two people",
        f"above {above}: one who asks and one who approves, or two who approve a plan that no person asked for",
    )
    if rules.approvers:
        yield "may approve", escape_untrusted(", ".join(rules.approvers))
    if rules.acting_minutes is not None:
        yield "may act", f"in the minutes that {rules.acting_minutes} matches, in UTC"


_STATES = {
    ActionState.EXECUTING: ("begun, not ended", "doubtful"),
    ActionState.DONE: ("done", "good"),
    ActionState.REFUSED: ("refused", "bad"),
    ActionState.WAITING: ("a person has to look", "doubtful"),
}


def _item_row(item: PlanItem, actions: Mapping[UUID, ActionTold]) -> PlanItemRow:
    return PlanItemRow(
        break_id=item.break_id,
        match_key=escape_untrusted(item.match_key),
        amount=escape_untrusted(format_minor(item.amount_minor, item.currency)),
        deed=escape_untrusted(action_label(item, describe_place)),
        **_fate(actions.get(item.action_id)),
    )


def _fate(action: ActionTold | None) -> dict[str, str]:
    state, tone = _STATES[action.state] if action else ("not begun", "none")
    return {"state": state, "tone": tone, "reason": _reason(action)}


def _reason(action: ActionTold | None) -> str:
    if action is None:
        return ""
    outcome = action.outcome
    if action.state in (ActionState.REFUSED, ActionState.WAITING):
        return story_text(str(outcome.get("reason", "")))
    if action.state is ActionState.DONE and "dag_id" in outcome:
        return "a run of its DAG was started; whether that repaired the break, later runs say"
    kafka_offset = outcome.get("offset", outcome.get("kafka_offset"))  # of an event; of a marker
    if {"topic", "partition"} <= outcome.keys() and kafka_offset is not None:
        return describe_place(f"topic:{outcome['topic']}:{outcome['partition']}:{kafka_offset}")
    return ""


_TRAIL_WORDS = {
    "planned": "asked for it",
    "shown": "showed it to a person",
    "agreed": "agreed",
    "approval_rewritten": "refused an answer that was rewritten in Airflow",
    "rejected": "rejected it",
    "unanswered": "got no answer in time",
    "approval_failed": "the approval failed",
    "approved": "began to carry it out",
    "executing": "opened a producer or the ledger",
    "progress_not_ours": "found records on the progress topic that are about no action",
    "publishing": "began a producer transaction",
    "published": "committed a producer transaction",
    "aborted": "a producer transaction was aborted, and is tried again",
    "verified": "checked the result",
    "stopped": "stopped",
    "finished": "ended",
}


def _trail_row(entry: AuditEntry) -> TrailRow:
    words = _TRAIL_WORDS.get(entry.event, escape_untrusted(entry.event.replace("_", " ")))
    if entry.event == "verified" and "verdict" in entry.detail:
        effects = Counter(str(one).replace("_", " ") for one in dict(entry.detail.get("effects") or {}).values())
        counts = ", ".join(f"{number:,} {effect}" for effect, number in sorted(effects.items()))
        words = f"{words}: {escape_untrusted(str(entry.detail['verdict']))}, {escape_untrusted(counts)}"
    message = entry.detail.get("message")
    return TrailRow(
        at_utc=entry.recorded_at,
        who=escape_untrusted(entry.actor),
        words=f"{words}: {escape_untrusted(str(message))}" if message else words,
    )
