"""The story of one break, in sentences: what each side says, who wrote it, what was ruled out, its life, what to do.

Pure: a break as it was stored, and the rows of its items, in; words out. The command line and the report tell the same.
Offsets, epochs, markers, times and money; of the payload nothing but what is compared.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from tallystick.contract.equality import NO_MONEY, Money
from tallystick.model.break_history import EarlierRepair, LifeStep, ToldBreak
from tallystick.model.finding_names import BreakClass
from tallystick.model.findings import Break
from tallystick.model.open_item import ItemState
from tallystick.model.stored_run import StoredRun
from tallystick.text.finding_guide import BREAK_TEXTS
from tallystick.text.money import format_minor
from tallystick.text.plain import escape_untrusted, format_time, format_window, parse_utc, story_text
from tallystick.text.reason_texts import reason_text
from tallystick.text.ruled_out import RULED_OUT
from tallystick.text.side_terms import for_inputs


def in_its_words(told: ToldBreak, *sentences: str) -> tuple[str, ...]:
    """Say sentences about a ledger in the words of an input topic, where one plays the ledger's part."""
    return tuple(map(for_inputs, sentences)) if told.of_inputs else sentences


@dataclass(frozen=True, kw_only=True)
class Paragraph:
    """Sentences under one heading."""

    heading: str
    sentences: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Story:
    """All that there is to say of one break. No paragraph is empty."""

    title: str
    run: str
    amount: str
    paragraphs: tuple[Paragraph, ...]


def explain(told: ToldBreak) -> Story:
    """Tell the story."""
    item_break = told.item_break
    text = BREAK_TEXTS[item_break.break_class]
    return Story(
        title=in_its_words(told, text.title)[0],
        run=f"{told.contract}/{told.cut_n}",
        amount=amount_of(item_break),
        paragraphs=(
            Paragraph(
                heading="What happened", sentences=(story_text(item_break.story), *in_its_words(told, text.means))
            ),
            *own_paragraphs(told),
            Paragraph(heading="What was ruled out", sentences=in_its_words(told, *RULED_OUT[item_break.break_class])),
            Paragraph(heading="Check first", sentences=in_its_words(told, text.check_first)),
        ),
    )


def own_paragraphs(told: ToldBreak) -> tuple[Paragraph, ...]:
    """Return the facts of this break alone, beside its own sentence: not those of its whole class. None is empty."""
    item_break = told.item_break
    paragraphs = (
        ("At stake", (_at_stake(item_break), *_unnamed(item_break.evidence))),
        (
            in_its_words(told, "What the ledger says")[0],
            in_its_words(told, *_side(item_break, "ledger"), *_settled("ledger", told.ledger_settled_until_utc)),
        ),
        ("What the log says", (*_side(item_break, "topic"), *_settled("topic", told.topic_settled_until_utc))),
        ("Writers", (*_writers(item_break.evidence), *map(_earlier_repair, told.repairs))),
        ("History", tuple(_life(told))),
    )
    return tuple(Paragraph(heading=heading, sentences=sentences) for heading, sentences in paragraphs if sentences)


def amount_of(item_break: Break) -> str:
    """The money at stake, in words."""
    if not item_break.currency:
        return "not known"
    return escape_untrusted(format_minor(item_break.amount_minor, item_break.currency))


def _at_stake(item_break: Break) -> str:
    key = f"match key {escape_untrusted(item_break.match_key)}" if item_break.match_key else "without a match key"
    leg = f", leg {escape_untrusted(item_break.leg)}" if item_break.leg else ""
    of = f" of {escape_untrusted(item_break.transaction_key)}" if item_break.transaction_key else ""
    copies = f" in {item_break.copies} copies" if item_break.copies != 1 else ""
    return f"{amount_of(item_break)}{copies}: {key}{leg}{of}."


def _unnamed(evidence: Mapping[str, Any]) -> Iterator[str]:
    if unnamed := evidence.get("found_elsewhere_unnamed"):
        yield f"{unnamed:,} more copies of its key were found and are not listed here."


_ABSENT_FROM = {
    BreakClass.MISSING_IN_TOPIC_NEVER_PRODUCED: "topic",
    BreakClass.MISSING_IN_LEDGER: "ledger",
    BreakClass.PHANTOM_IN_TOPIC: "ledger",
    BreakClass.FOREIGN_IN_TOPIC: "ledger",
    BreakClass.PHANTOM_IN_LEDGER: "topic",
}


def _side(item_break: Break, side: str) -> Iterator[str]:
    """Every place of one side that the evidence names: the copy itself, its counterparts, and what look-ups found."""
    if _ABSENT_FROM.get(item_break.break_class) == side:
        yield "The look-up found nothing of this key there."
    evidence, places = item_break.evidence, _places(item_break.evidence)
    for role, at in places:
        if at.startswith(f"{side}:"):
            yield f"{role} {describe_place(at)}."
    amounts = evidence.get(side)
    if isinstance(amounts, Mapping) and "amount_minor" in amounts:
        said = Money(int(amounts["amount_minor"]), str(amounts.get("currency", "")))
        says = "no whole amount of a currency" if said == NO_MONEY else escape_untrusted(format_minor(*said))
        yield f"It says {says}."
    for one in evidence.get("columns", ()):
        value = "nothing" if one[side] is None else escape_untrusted(str(one[side]))
        yield f"In {escape_untrusted(str(one['column']))} it says {value}."
    for seen in evidence.get("found_elsewhere", ()):
        if str(seen.get("at", "")).startswith(f"{side}:"):
            yield _found_copy(seen)


_ROLES = {
    "at": "The copy in question is",
    "event": "The event in question is",
    "stands_before_it": "The event before it is",
    "original": "The copy that it repeats is",
    "partner": "It is paired with",
    "found_at": "It was found at",
}


def _places(evidence: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, role in _ROLES.items():
        places = evidence.get(name)
        for place in [places] if isinstance(places, str) else places or ():
            yield role, str(place)
    for side in ("topic", "ledger"):
        document = evidence.get(side)
        if isinstance(document, Mapping) and document.get("at") not in (None, evidence.get("at")):
            yield "Its counterpart is", str(document["at"])
    for leg, at in sorted(evidence.get("seen_legs", {}).items()):
        yield f"Its {escape_untrusted(leg)} leg is", str(at)


def describe_place(item_id: str) -> str:
    """ "topic:billing.payouts:0:17" as "offset 17 of billing.payouts[0]", an input too; "ledger:815" as "row 815"; an
    action.
    """
    side, _, rest = item_id.partition(":")
    place = _OFFSET.fullmatch(rest) if side in ("topic", "ledger") else None
    if place is not None:
        return f"offset {place[3]} of {escape_untrusted(place[1])}[{place[2]}]"
    if side == "ledger":
        return f"row {escape_untrusted(rest)}"
    if side == "action":
        return f"compensation {escape_untrusted(rest)}"
    return escape_untrusted(item_id)


_OFFSET = re.compile(r"(.+):(\d+):(\d+)")

_PLACE_WORDS = {
    "before_baseline": "is older than the baseline",
    "earlier_slice": "was read by an earlier cut",
    "slice": "lies in this cut",
    "pending": "lies beyond this cut",
    "open": "lies in a producer transaction that had not ended",
    "aborted": "was aborted",
    "stray": "is committed on a topic of no leg",
    "lost": "was acknowledged there, and the log holds something else",
    "expired": "was acknowledged there, and has left the log",
}


def _found_copy(seen: Mapping[str, Any]) -> str:
    """One copy that a look-up found, with its writer."""
    words = _PLACE_WORDS.get(str(seen.get("place", "")), "was found")
    by = ""
    if seen.get("transaction_id") is not None:
        by = f", written by database transaction {seen['transaction_id']}"
    elif isinstance(seen.get("producer_id"), int) and seen["producer_id"] >= 0:
        by = f", written by producer {seen['producer_id']}"
        by += f" epoch {seen['producer_epoch']}" if "producer_epoch" in seen else ""
    place = describe_place(str(seen["at"]))
    return f"{place[0].upper()}{place[1:]} {words}{by}."


def _earlier_repair(repair: EarlierRepair) -> str:
    return (
        f"Compensation {repair.action_id} repaired {repair.break_class} of this key, done by "
        f"{format_time(repair.done_utc)}: one copy may be ours, and another the late original."
    )


_ORIGINS = ("identity", "copy_identity", "original_identity")


def record_origins_of(evidence: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    """Every writer that the evidence names, in the one shape of tallystick.kafka_log.record."""
    named = [evidence.get(name) for name in _ORIGINS]
    return tuple(origin for origin in (*named, *evidence.get("identities", {}).values()) if isinstance(origin, Mapping))


def _writers(evidence: Mapping[str, Any]) -> Iterator[str]:
    for origin in record_origins_of(evidence):
        who = describe_item(str(origin["at"])) if origin.get("at") else "It"
        yield f"{who} was written by {_producer(origin)}{_headers(origin)}."
        yield from _span(origin.get("span"))
    if any(name in evidence and evidence[name] is None for name in _ORIGINS):
        yield "The writer of the other copy is not known: the copy had left the log."


def _producer(origin: Mapping[str, Any]) -> str:
    if origin.get("producer_id", -1) < 0:
        return "a producer without idempotence, so without a producer id"
    sequence = f", sequence {origin['sequence']}" if origin.get("sequence", -1) >= 0 else ""
    outcome = origin.get("outcome")
    how = f"inside a producer transaction ({outcome})" if origin.get("transactional") else "outside any transaction"
    return f"producer {origin['producer_id']}, epoch {origin.get('producer_epoch')}{sequence}, {how}"


def _headers(origin: Mapping[str, Any]) -> str:
    named = [(name, origin.get(name)) for name in ("session", "source")]
    told = [f"{name} {escape_untrusted(str(value))}" for name, value in named if value is not None]
    return f"; {', '.join(told)}" if told else ""


def _span(span: Mapping[str, Any] | None) -> Iterator[str]:
    """The producer transaction around a record: where it begins, and how and when it ended."""
    if not span:
        return
    begins = "begins at" if span.get("first_is_certain") else "is seen from"
    if span.get("marker") is None:
        yield f"That transaction {begins} offset {span['first_offset']} and has not ended on this partition."
        return
    written = span.get("marker_timestamp_ms")
    when = ""
    if written is not None and written >= 0:
        when = f", at {format_time(datetime.fromtimestamp(written / 1000, UTC))} by the leader's clock"
    yield (
        f"That transaction {begins} offset {span['first_offset']} and ends with the {span['marker']} marker at offset "
        f"{span['marker_offset']}, epoch {span['marker_epoch']}{when}."
    )


def _settled(side: str, until: datetime | None) -> Iterator[str]:
    if until is not None:
        yield f"The {side} could be read completely up to {format_time(until)}."


_STATE_WORDS = {
    ItemState.OPEN: "left it open",
    ItemState.BROKEN: "found it broken",
    ItemState.CLEARED: "cleared it",
    ItemState.UNDECIDABLE: "could not decide it",
    ItemState.WRITTEN_OFF: "left it written off",
}


def _life(told: ToldBreak) -> Iterator[str]:
    """First seen, then each change of state, item by item."""
    window = format_window(told.window_start_utc, told.window_end_utc)
    judged = format_time(told.judged_utc)
    yield f"It was proven by run {told.contract}/{told.cut_n}, for {window}, judged as of {judged}."
    items: dict[str, list[LifeStep]] = {}
    for step in told.life:
        items.setdefault(step.item.item_id, []).append(step)
    for item_id, steps in items.items():
        first = steps[0].item
        yield (
            f"{describe_item(item_id)} was first seen by cut {first.first_seen_cut}, marked at "
            f"{format_time(first.first_seen_utc)}, and due at {format_time(first.due_utc)}."
        )
        yield from (_change(step) for step in steps)


def describe_item(item_id: str) -> str:
    """An item as the subject of a sentence."""
    if item_id.startswith("legs:"):
        return f"The transaction {escape_untrusted(item_id.removeprefix('legs:'))}"
    place = describe_place(item_id)
    return f"{place[0].upper()}{place[1:]}"


def _change(step: LifeStep) -> str:
    given_up = step.written_off
    if given_up is not None:
        who, why = escape_untrusted(given_up.by), story_text(given_up.reason)
        return f"{who} wrote it off at {format_time(given_up.at_utc)}, after cut {step.cut_n}: {why.rstrip('.')}."
    by = ", ".join(describe_place(partner) for partner in step.item.cleared_by.split(",") if partner)
    because = reason_text(step.item.reason)
    why = f": {story_text(because)}" if because else ""
    partner = f" (by {by})" if by else ""
    return f"Cut {step.cut_n}, at {format_time(step.judged_utc)}, {_STATE_WORDS[step.item.state]}{why}{partner}."


def tell_breaks(run: StoredRun, breaks: Iterable[Break]) -> dict[UUID, ToldBreak]:
    """Breaks of one run, by id, with the rows that this run wrote of their items."""
    wanted = {item_break.break_id: item_break for item_break in breaks}
    lives: dict[UUID, list[LifeStep]] = {}
    for item in run.result.items:
        if item.break_id in wanted:
            step = LifeStep(cut_n=run.result.cut_n, judged_utc=run.now_utc, item=item)
            lives.setdefault(item.break_id, []).append(step)
    return {
        break_id: ToldBreak(
            item_break=item_break,
            contract=run.result.contract,
            cut_n=run.result.cut_n,
            window_start_utc=run.window_start_utc,
            window_end_utc=run.window_end_utc,
            judged_utc=run.now_utc,
            topic_settled_until_utc=parse_utc(run.result.look_ups.get("topic_settled_until_utc")),
            ledger_settled_until_utc=parse_utc(run.result.look_ups.get("ledger_settled_until_utc")),
            life=tuple(lives.get(break_id, ())),
            of_inputs=run.result.of_inputs,
        )
        for break_id, item_break in wanted.items()
    }
