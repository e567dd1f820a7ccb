"""The page of one break: its story, both sides field by field, the log around it, and its history. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from markupsafe import Markup

from tallystick.alerting.alert import AlertAction
from tallystick.contract.contract import Contract
from tallystick.model.break_history import ToldBreak
from tallystick.model.findings import Break
from tallystick.model.open_item import ItemState
from tallystick.report.break_story import Paragraph, amount_of, describe_item, describe_place, explain, in_its_words
from tallystick.report.evidence_lines import evidence_lines
from tallystick.report.leg_marks import LegMark, leg_marks
from tallystick.report.log_excerpt import EVIDENCE_KEY as STRIP_KEY
from tallystick.report.log_excerpt import strip_of
from tallystick.report.masking import Mask
from tallystick.report.strip_drawing import draw_strip
from tallystick.store.breaks.break_life_store import AlertTold, RepairTold
from tallystick.store.plans.plan_store import ActionState
from tallystick.text.money import format_minor
from tallystick.text.plain import escape_untrusted, story_text

_NOTHING, _UNKNOWN = "nothing", "not in the evidence"


@dataclass(frozen=True, kw_only=True)
class FieldRow:
    """One field on both sides, in words. differs: do they say two different things?"""

    field: str
    topic: str
    ledger: str
    differs: bool


@dataclass(frozen=True, kw_only=True)
class LifeRow:
    """Something that happened to the break.

    kind: seen, proven, told, acknowledged, planned, acted, changed, cleared, given up. plan_id: whose page tells more.
    """

    at_utc: datetime
    kind: str
    words: str
    plan_id: UUID | None = None


@dataclass(frozen=True, kw_only=True)
class BreakPage:
    """Everything the template may say."""

    break_id: str
    break_class: str
    title: str
    contract: str
    cut_n: int
    window_start_utc: datetime
    window_end_utc: datetime
    amount: str
    match_key: str
    leg: str
    standing: str
    repairable: bool
    paragraphs: tuple[Paragraph, ...]
    ledger_side: str
    fields: tuple[FieldRow, ...]
    strip: Markup | None
    strip_title: str
    legs: tuple[LegMark, ...]
    life: tuple[LifeRow, ...]
    evidence: tuple[tuple[str, str], ...]


def break_page(
    told: ToldBreak, contract: Contract, *, alerts: Iterable[AlertTold], repairs: Iterable[RepairTold]
) -> BreakPage:
    """Gather the page. contract: the one that the run judged by."""
    told = Mask(contract).told(told)
    item_break, story = told.item_break, explain(told)
    strip = strip_of(item_break)
    evidence = {name: value for name, value in item_break.evidence.items() if name != STRIP_KEY}
    return BreakPage(
        break_id=str(item_break.break_id),
        break_class=str(item_break.break_class),
        title=story.title,
        contract=told.contract,
        cut_n=told.cut_n,
        window_start_utc=told.window_start_utc,
        window_end_utc=told.window_end_utc,
        amount=amount_of(item_break),
        match_key=escape_untrusted(item_break.match_key),
        leg=escape_untrusted(item_break.leg),
        standing=state_words(told),
        repairable=contract.compensation is not None and item_break.break_class in contract.compensation.classes,
        paragraphs=tuple(paragraph for paragraph in story.paragraphs if paragraph.heading != "History"),
        ledger_side=in_its_words(told, "ledger row")[0],
        fields=side_by_side(item_break),
        strip=draw_strip(strip) if strip else None,
        strip_title=escape_untrusted(f"{strip.topic_partition}, around offset {strip.kafka_offset}") if strip else "",
        legs=leg_marks(item_break, contract.legs),
        life=tuple(sorted(_life(told, alerts, repairs), key=lambda row: row.at_utc)),
        evidence=evidence_lines(evidence),
    )


STATE_WORDS = {
    ItemState.OPEN: "waiting",
    ItemState.BROKEN: "outstanding",
    ItemState.CLEARED: "cleared",
    ItemState.UNDECIDABLE: "undecidable",
    ItemState.WRITTEN_OFF: "written off",
}


def state_words(told: ToldBreak) -> str:
    """Return its present state: outstanding while any of its items is broken by it."""
    newest = {step.item.item_id: step.item for step in told.life}
    states = {
        item.state
        for item in newest.values()
        if item.break_id == told.item_break.break_id or item.state is not ItemState.BROKEN
    }
    if not states:
        return "answered for by another break" if newest else "proven by its run"
    if ItemState.BROKEN in states:
        return STATE_WORDS[ItemState.BROKEN]
    return ", ".join(STATE_WORDS[state] for state in ItemState if state in states)


def side_by_side(item_break: Break) -> tuple[FieldRow, ...]:
    """Event and ledger row, as the evidence has them; what it does not have is said, not guessed."""
    topic, ledger = _side(item_break, "topic"), _side(item_break, "ledger")
    key = escape_untrusted(item_break.match_key)
    rows = (
        ("place", _place(topic), _place(ledger), False),
        ("match key", key if topic else _NOTHING, key if ledger else _NOTHING, False),
        ("amount", _amount(topic), _amount(ledger), _differ(topic, ledger, "amount_minor")),
        ("currency", _text(topic, "currency"), _text(ledger, "currency"), _differ(topic, ledger, "currency")),
    )
    columns = (
        (escape_untrusted(str(one["column"])), _value(one["topic"]), _value(one["ledger"]), True)
        for one in item_break.evidence.get("columns", ())
    )
    return tuple(
        FieldRow(field=field, topic=one, ledger=other, differs=differs)
        for field, one, other, differs in (*rows, *columns)
    )


def _value(said: object) -> str:
    return "null" if said is None else escape_untrusted(str(said))


def _side(item_break: Break, side: str) -> Mapping[str, object]:
    """What the evidence says of one side; empty where nothing of the break stands there."""
    evidence = item_break.evidence
    document = evidence.get(side)
    if isinstance(document, Mapping):
        return document
    places = [evidence.get(name) for name in ("at", "event", "partner", "original", "found_at")]
    here = [place for place in places if isinstance(place, str) and place.startswith(f"{side}:")]
    if not here:
        return {}
    if here[0] == evidence.get("at") and item_break.currency and item_break.copies == 1:
        return {"at": here[0], "amount_minor": item_break.amount_minor, "currency": item_break.currency}
    return {"at": here[0]}


def _place(side: Mapping[str, object]) -> str:
    return describe_place(str(side["at"])) if side.get("at") else _NOTHING


def _amount(side: Mapping[str, object]) -> str:
    amount, currency = side.get("amount_minor"), side.get("currency")
    if isinstance(amount, int):
        return escape_untrusted(format_minor(amount, str(currency or "")))
    return _UNKNOWN if side else _NOTHING


def _text(side: Mapping[str, object], field: str) -> str:
    if not side:
        return _NOTHING
    return escape_untrusted(str(side[field])) if side.get(field) else _UNKNOWN


def _differ(topic: Mapping[str, object], ledger: Mapping[str, object], field: str) -> bool:
    return field in topic and field in ledger and topic[field] != ledger[field]


def _life(told: ToldBreak, alerts: Iterable[AlertTold], repairs: Iterable[RepairTold]) -> Iterator[LifeRow]:
    yield from _seen(told)
    yield LifeRow(at_utc=told.judged_utc, kind="proven", words=f"Run {told.contract}/{told.cut_n} proved it.")
    for alert in alerts:
        yield from _told(alert)
    for repair in repairs:
        yield from _repaired(repair)
    yield from _changes(told)


def _seen(told: ToldBreak) -> Iterator[LifeRow]:
    for item in {step.item.item_id: step.item for step in reversed(told.life)}.values():
        words = f"{describe_item(item.item_id)} was first seen by cut {item.first_seen_cut}."
        yield LifeRow(at_utc=item.first_seen_utc, kind="seen", words=words)


def _told(alert: AlertTold) -> Iterator[LifeRow]:
    if alert.action is AlertAction.ACKNOWLEDGE:
        words = f"{escape_untrusted(alert.acknowledged_by)} acknowledged the incident."
        yield LifeRow(at_utc=alert.recorded_at, kind="acknowledged", words=words)
    else:
        verb = "An alert of its class was written" if alert.action is AlertAction.TRIGGER else "The alert was resolved"
        yield LifeRow(at_utc=alert.recorded_at, kind="sent", words=f"{verb} for {_sinks(alert.sinks)}.")
    for sink, at_utc in sorted(alert.delivered_at.items()):
        yield LifeRow(at_utc=at_utc, kind="sent", words=f"{escape_untrusted(sink)} got it.")


def _sinks(sinks: Sequence[str]) -> str:
    return ", ".join(escape_untrusted(sink) for sink in sinks) or "nobody: the contract names no sink"


_ACTION_WORDS = {
    ActionState.EXECUTING: "The repair was begun and has not ended.",
    ActionState.DONE: "The repair was done.",
    ActionState.REFUSED: "The repair was begun and refused: nothing was published.",
    ActionState.WAITING: "It is not known whether the repair was done: a person has to look.",
}


def _repaired(repair: RepairTold) -> Iterator[LifeRow]:
    by = escape_untrusted(repair.requested_by)
    words = f"Plan {repair.plan_id} was made for {by}."
    yield LifeRow(at_utc=repair.planned_at, kind="planned", words=words, plan_id=repair.plan_id)
    yield LifeRow(at_utc=repair.begun_at, kind="acted", words=_action_words(repair))


def _action_words(repair: RepairTold) -> str:
    if repair.state is not ActionState.DONE or not repair.dag_id:
        return _ACTION_WORDS[repair.state]
    return f"A run of DAG {escape_untrusted(repair.dag_id)} was started. Whether it repaired the break, later runs say."


def _changes(told: ToldBreak) -> Iterator[LifeRow]:
    for step in told.life:
        name = describe_item(step.item.item_id)
        if step.written_off is not None:
            who, why = escape_untrusted(step.written_off.by), story_text(step.written_off.reason)
            words = f"{who} wrote {name[0].lower()}{name[1:]} off: {why.rstrip('.')}."
            yield LifeRow(at_utc=step.written_off.at_utc, kind="written off", words=words)
        elif step.cut_n != told.cut_n and step.item.state is ItemState.CLEARED:
            partners = ", ".join(describe_place(partner) for partner in step.item.cleared_by.split(",") if partner)
            by = f" by {partners}" if partners else ""
            words = f"Cut {step.cut_n} cleared {name[0].lower()}{name[1:]}{by}."
            yield LifeRow(at_utc=step.judged_utc, kind="cleared", words=words)
        elif step.cut_n != told.cut_n:
            words = f"After cut {step.cut_n}, {name[0].lower()}{name[1:]} is {STATE_WORDS[step.item.state]}."
            yield LifeRow(at_utc=step.judged_utc, kind="changed", words=words)
